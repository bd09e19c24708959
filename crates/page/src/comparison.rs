//! The page of a comparison: the verdicts, and what they rest on.

use crate::charts::{against, fair_and_fast};
use crate::frame::{Head, PageSection, document};
use crate::html::{charts, details, element, list, paragraph, table};
use crate::pictures::mix_charts;
use crate::run::{machine, same_again};
use crate::timeline::timeline_figure;
use crate::view::ComparisonView;
use cosched_experiments::comparison::{
    ComparisonMeans, ComparisonResult, ComparisonText, LEVELS, MetricText, number,
};
use cosched_report::{Table, TableColumn, count, escaped};

/// The page.
pub fn comparison_page(view: &ComparisonView<'_>) -> String {
    let answer = view.answer;
    let design = &answer.manifest.design;
    let told = ComparisonText::of(answer);
    let names: Vec<&str> = design.candidates.iter().map(|one| &*one.name).collect();
    let head = Head {
        title: format!("Comparison: {}", names.join(", ")),
        intro: paragraph(&told.conclusion) + &paragraph(&told.what),
        is_simulated: design.is_simulated(),
    };
    let judged = answer.judged.iter();
    let mut pictures: Vec<_> = judged.filter_map(|judged| against(view, judged)).collect();
    pictures.extend(fair_and_fast(view));
    let all = [
        PageSection::of("verdicts", "Verdicts", verdicts(&told.metrics)),
        PageSection::of("charts", "How they compare", charts(pictures)),
        PageSection::of("doubts", "Doubtful", list(&told.doubts)),
        PageSection::of("completion", "Jobs over time", completions(view)),
        PageSection::of("timelines", "Timelines", timelines(view)),
        PageSection::of("runs", "Every run", runs_table(answer)),
        PageSection::of("setting", "Machine and setting", setting(view)),
    ];
    document(&head, &all)
}

/// The tables of each metric.
fn verdicts(metrics: &[MetricText]) -> String {
    let mut tables = String::new();
    for metric in metrics {
        // What is most important comes first: on a small screen the rest must be scrolled to.
        let mut candidates = metric.candidates.clone();
        candidates.columns[1..].reverse();
        let name = element("h3", &escaped(metric.name));
        let candidates = table(&metric.meaning, &candidates);
        let mixes = metric.mixes.as_ref();
        let mixes = mixes.map_or(String::new(), |mixes| table("with each mix", mixes));
        tables.push_str(&format!("<div>\n{name}{candidates}{mixes}</div>\n"));
    }
    let levels = paragraph(LEVELS);
    format!("{levels}<div class=\"tables\">\n{tables}</div>\n")
}

/// Charts of the runs of the first block, one part for each mix; the first is open.
fn completions(view: &ComparisonView<'_>) -> String {
    let mut body = String::new();
    for (at, mix) in view.answer.manifest.design.mixes.iter().enumerate() {
        let figures = charts(mix_charts(view, at).into_iter().flatten());
        if !figures.is_empty() {
            body.push_str(&details(&mix.name, &figures, at == 0));
        }
    }
    of_first_block(view, body)
}

fn timelines(view: &ComparisonView<'_>) -> String {
    let mut body = String::new();
    for (at, (trial, record, timeline)) in view.whole.iter().enumerate() {
        let Some(timeline) = timeline else { continue };
        let name = view.name(*trial);
        if let Some(figure) = timeline_figure(&name, timeline, record) {
            body.push_str(&details(&name, &figure, at == 0));
        }
    }
    of_first_block(view, body)
}

/// A body with a note which runs it shows; empty if it is.
fn of_first_block(view: &ComparisonView<'_>, body: String) -> String {
    if body.is_empty() {
        return body;
    }
    let shown = count(view.whole.len() as u64, "run");
    let note = format!("This shows {shown} of the first block.");
    format!("{}{body}", paragraph(&note))
}

fn runs_table(answer: &ComparisonResult) -> String {
    let design = &answer.manifest.design;
    let runs = &answer.outcomes;
    let mut columns = vec![
        TableColumn::number("block", 0, runs, |run| run.trial.block.to_string()),
        TableColumn::text("mix", 0, runs, |run| {
            design.mixes[run.trial.mix].name.clone()
        }),
        TableColumn::text("candidate", 0, runs, |run| {
            design.candidates[run.trial.candidate].name.clone()
        }),
        TableColumn::text("policy", 0, runs, |run| run.policy.clone()),
    ];
    for judged in &answer.judged {
        let name = judged.metric.name;
        columns.push(TableColumn::number(name, 0, runs, |run| {
            run.figure(name).map(number)
        }));
    }
    columns.push(TableColumn::number("failed jobs", 0, runs, |run| {
        run.failed.to_string()
    }));
    let title = count(runs.len() as u64, "run");
    details(&title, &table("", &Table { columns }), false)
}

fn setting(view: &ComparisonView<'_>) -> String {
    let manifest = &view.answer.manifest;
    let design = &manifest.design;
    let candidates = vec![
        TableColumn::text("candidate", 0, &design.candidates, |one| one.name.clone()),
        TableColumn::text("is", 0, &design.candidates, |one| how(&one.means)),
    ];
    let mut mixes = design.mixes.clone();
    mixes.retain(|mix| mix.file.is_some());
    let files = vec![
        TableColumn::text("mix", 0, &mixes, |mix| mix.name.clone()),
        TableColumn::text("file", 0, &mixes, |mix| mix.file.clone()),
    ];
    let mut body = table(
        "",
        &Table {
            columns: candidates,
        },
    );
    if !mixes.is_empty() {
        body.push_str(&table("", &Table { columns: files }));
    }
    body.push_str(&same_again(&escaped(&manifest.command_line.join(" "))));
    if let Some((trial, record, _)) = view.whole.first() {
        let title = format!("The run of {}", view.name(*trial));
        body.push_str(&details(&title, &machine(record), false));
    }
    body
}

/// How a candidate runs the batch.
fn how(means: &ComparisonMeans) -> String {
    match means {
        ComparisonMeans::Command(line) => line.clone(),
        ComparisonMeans::Policy { policy, params } => {
            let mut line = format!("cosched run MIX --policy {policy}");
            for (name, value) in params {
                line.push_str(&format!(" --param {name}={value}"));
            }
            line
        }
    }
}
