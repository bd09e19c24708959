//! The page of a comparison: the verdicts, and what they rest on.
//!
//! [`verdicts`]: their tables.

mod verdicts;

use crate::charts::{against, fair_and_fast};
use crate::frame::{Head, PageSection, document};
use crate::html::{HtmlCell, HtmlTable, charts, details, list, paragraph};
use crate::pictures::mix_charts;
use crate::run::{machine, same_again};
use crate::timeline::timeline_figure;
use crate::view::ComparisonView;
use cosched_experiments::comparison::{
    ComparisonResult, Means, RunFigures, conclusion, number, runs_text, what,
};
use cosched_report::{count, escaped};

/// The page.
pub fn comparison_page(view: &ComparisonView<'_>) -> String {
    let answer = view.answer;
    let design = &answer.manifest.design;
    let names: Vec<&str> = design.candidates.iter().map(|one| &*one.name).collect();
    let head = Head {
        title: format!("Comparison: {}", names.join(", ")),
        intro: paragraph(&conclusion(answer)) + &paragraph(&what(answer)),
        is_simulated: design.is_simulated(),
    };
    let judged = answer.judged.iter();
    let mut pictures: Vec<_> = judged.filter_map(|judged| against(view, judged)).collect();
    pictures.extend(fair_and_fast(view));
    let all = [
        PageSection::of("verdicts", "Verdicts", verdicts::verdicts(answer)),
        PageSection::of("charts", "How they compare", charts(pictures)),
        PageSection::of("doubts", "Doubtful", doubts(answer)),
        PageSection::of("completion", "Jobs over time", completions(view)),
        PageSection::of("timelines", "Timelines", timelines(view)),
        PageSection::of("runs", "Every run", runs_table(view)),
        PageSection::of("setting", "Machine and setting", setting(view)),
    ];
    document(&head, &all)
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

/// What makes figures doubtful.
fn doubts(answer: &ComparisonResult) -> String {
    let mut lines = Vec::new();
    for (doubt, trials) in answer.doubts() {
        lines.push(format!("{}: {doubt}", runs_text(answer, &trials)));
    }
    lines.extend(answer.notes.iter().cloned());
    list(&lines)
}

fn runs_table(view: &ComparisonView<'_>) -> String {
    let answer = view.answer;
    let rows = answer
        .outcomes
        .iter()
        .map(|outcome| run_row(answer, outcome));
    let mut table = HtmlTable::new(&["#block", "mix", "candidate", "policy"], rows.collect());
    for judged in &answer.judged {
        table.columns.push(format!("#{}", judged.metric.name));
    }
    table.columns.push("#failed jobs".to_owned());
    let title = count(answer.outcomes.len() as u64, "run");
    details(&title, &table.html(), false)
}

fn run_row(answer: &ComparisonResult, outcome: &RunFigures) -> Vec<HtmlCell> {
    let (design, trial) = (&answer.manifest.design, outcome.trial);
    let mut cells = vec![
        HtmlCell::Text(trial.block.to_string()),
        HtmlCell::text(&design.mixes[trial.mix].name),
        HtmlCell::text(&design.candidates[trial.candidate].name),
        outcome
            .policy
            .as_ref()
            .map_or(HtmlCell::None, HtmlCell::text),
    ];
    for judged in &answer.judged {
        cells.push(HtmlCell::number(outcome.figure(judged.metric.name), number));
    }
    cells.push(HtmlCell::Text(outcome.failed.to_string()));
    cells
}

fn setting(view: &ComparisonView<'_>) -> String {
    let manifest = &view.answer.manifest;
    let design = &manifest.design;
    let mut candidates = Vec::new();
    for one in &design.candidates {
        candidates.push(vec![
            HtmlCell::text(&one.name),
            HtmlCell::Text(how(&one.means)),
        ]);
    }
    let mut mixes = Vec::new();
    for mix in &design.mixes {
        let file = mix.file.iter();
        mixes.extend(file.map(|file| vec![HtmlCell::text(&mix.name), HtmlCell::text(file)]));
    }
    let mut body = HtmlTable::new(&["candidate", "is"], candidates).html();
    if !mixes.is_empty() {
        body.push_str(&HtmlTable::new(&["mix", "file"], mixes).html());
    }
    body.push_str(&same_again(&escaped(&manifest.command_line.join(" "))));
    if let Some((trial, record, _)) = view.whole.first() {
        let title = format!("The run of {}", view.name(*trial));
        body.push_str(&details(&title, &machine(record), false));
    }
    body
}

/// How a candidate runs the batch.
fn how(means: &Means) -> String {
    match means {
        Means::Command(line) => line.clone(),
        Means::Policy { policy, params } => {
            let mut line = format!("cosched run MIX --policy {policy}");
            for (name, value) in params {
                line.push_str(&format!(" --param {name}={value}"));
            }
            line
        }
    }
}
