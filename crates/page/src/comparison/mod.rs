//! The page of a comparison: the verdicts, and what they rest on.
//!
//! [`verdicts`]: in words and tables; [`jobs`]: what became of each job.

mod jobs;
mod verdicts;

use crate::charts::{against, completion, fair_and_fast, slowdowns};
use crate::frame::{Head, Section, document};
use crate::html::{Cell, Table, charts, details, list, paragraph};
use crate::run::machine;
use crate::timeline::timeline_figure;
use crate::view::ComparisonView;
use cosched_experiments::comparison::{Answer, Means, number, runs_text, what};
use cosched_report::{EnergySource, escaped};

/// The page.
pub fn comparison_page(view: &ComparisonView<'_>) -> String {
    let answer = view.answer;
    let design = &answer.manifest.design;
    let names: Vec<&str> = design
        .candidates
        .iter()
        .map(|candidate| candidate.name.as_str())
        .collect();
    let head = Head {
        title: format!("Comparison: {}", names.join(", ")),
        intro: paragraph(&what(answer)),
        is_simulated: design.is_simulated(),
    };
    let mut pictures: Vec<_> = answer
        .judged
        .iter()
        .filter_map(|judged| against(view, judged))
        .collect();
    pictures.extend(fair_and_fast(view));
    let all = [
        Section::of("verdicts", "Verdicts", verdicts::verdicts(answer)),
        Section::of("charts", "How they compare", charts(pictures)),
        Section::of("doubts", "Doubtful", doubts(answer)),
        Section::of("completion", "Jobs over time", completions(view)),
        Section::of("jobs", "Slowdown of each job", jobs::section(view)),
        Section::of("timelines", "Timelines", timelines(view)),
        Section::of("energy", "Energy", energy(view)),
        Section::of("runs", "Every run", runs_table(view)),
        Section::of("setting", "Machine and setting", setting(view)),
    ];
    document(&head, &all)
}

/// One part for each mix; the first is open.
fn by_mix(view: &ComparisonView<'_>, part: impl Fn(usize) -> String) -> String {
    let mixes = &view.answer.manifest.design.mixes;
    let parts: Vec<(usize, String)> = (0..mixes.len())
        .map(|mix| (mix, part(mix)))
        .filter(|(_, body)| !body.is_empty())
        .collect();
    match &parts[..] {
        [(_, only)] if mixes.len() == 1 => only.clone(),
        parts => parts
            .iter()
            .map(|(mix, body)| details(&mixes[*mix].name, body, *mix == 0))
            .collect(),
    }
}

const MEDIAN_RUNS: &str = "Of each candidate the run with the median turnaround.";

fn completions(view: &ComparisonView<'_>) -> String {
    let parts = by_mix(view, |mix| {
        let runs = view.shown_runs(mix);
        let name = &view.answer.manifest.design.mixes[mix].name;
        let all = [
            completion(&runs, &format!("Jobs of {name} ended over time")),
            slowdowns(&runs, &format!("Slowdown of each job of {name}")),
        ];
        charts(all.into_iter().flatten())
    });
    if parts.is_empty() {
        parts
    } else {
        format!("{}{parts}", paragraph(MEDIAN_RUNS))
    }
}

fn timelines(view: &ComparisonView<'_>) -> String {
    let mut body = String::new();
    for (at, (trial, record, timeline)) in view.whole.iter().enumerate() {
        let name = view.name(*trial);
        let figure = timeline
            .as_ref()
            .and_then(|timeline| timeline_figure(&name, timeline, record));
        if let Some(figure) = figure {
            body.push_str(&details(&name, &figure, at == 0));
        }
    }
    if body.is_empty() {
        body
    } else {
        format!("{}{body}", paragraph(&which_timelines(view)))
    }
}

/// Of which runs timelines are shown.
fn which_timelines(view: &ComparisonView<'_>) -> String {
    let design = &view.answer.manifest.design;
    let which = if design.is_simulated() {
        "Of each candidate the run of the first block."
    } else {
        MEDIAN_RUNS
    };
    let shown = view.whole.len();
    // Of other programs nobody knows who ran where.
    let policies = design
        .candidates
        .iter()
        .filter(|one| matches!(one.means, Means::Policy { .. }))
        .count();
    let all = policies * design.mixes.len();
    if shown < all {
        format!("{which} {shown} of {all} are shown.")
    } else {
        which.to_owned()
    }
}

/// What makes figures doubtful.
fn doubts(answer: &Answer) -> String {
    let doubts = answer
        .doubts()
        .into_iter()
        .map(|(doubt, trials)| format!("{}: {doubt}", runs_text(answer, &trials)));
    list(
        &doubts
            .chain(answer.notes.iter().cloned())
            .collect::<Vec<_>>(),
    )
}

fn energy(view: &ComparisonView<'_>) -> String {
    let mut sources: Vec<EnergySource> = view.runs.values().map(|facts| facts.energy).collect();
    sources.dedup();
    sources.sort_by_key(|source| *source as u8);
    sources.dedup();
    let told = match &sources[..] {
        [] => return String::new(),
        [EnergySource::Measured] => {
            "All figures of energy were measured by the processor's energy counters."
        }
        [EnergySource::Modelled] => {
            "All figures of energy come from a power model: nothing was measured."
        }
        [EnergySource::Absent] => "Nothing here can measure energy, so nothing is said of it.",
        _ => {
            "Figures of energy come from different sources in different runs: do not compare them."
        }
    };
    paragraph(told)
}

fn runs_table(view: &ComparisonView<'_>) -> String {
    let answer = view.answer;
    let design = &answer.manifest.design;
    let shown: Vec<&str> = answer
        .judged
        .iter()
        .map(|judged| judged.metric.name)
        .collect();
    let mut columns = vec!["#block".to_owned()];
    if design.mixes.len() > 1 {
        columns.push("mix".to_owned());
    }
    columns.extend(["candidate".to_owned(), "policy".to_owned()]);
    columns.extend(shown.iter().map(|name| format!("#{name}")));
    columns.push("#failed jobs".to_owned());
    let rows = answer.outcomes.iter().map(|outcome| {
        let trial = outcome.trial;
        let mut cells = vec![Cell::Text(trial.block.to_string())];
        if design.mixes.len() > 1 {
            cells.push(Cell::text(&design.mixes[trial.mix].name));
        }
        cells.push(Cell::text(&design.candidates[trial.candidate].name));
        cells.push(outcome.policy.as_ref().map_or(Cell::None, Cell::text));
        cells.extend(
            shown
                .iter()
                .map(|name| Cell::number(outcome.figure(name), number)),
        );
        cells.push(Cell::Text(outcome.failed.to_string()));
        cells
    });
    let table = Table {
        caption: "",
        columns,
        rows: rows.collect(),
    };
    details(
        &format!("{} runs", answer.outcomes.len()),
        &table.html(),
        false,
    )
}

fn setting(view: &ComparisonView<'_>) -> String {
    let manifest = &view.answer.manifest;
    let design = &manifest.design;
    let rows = design.candidates.iter().enumerate().map(|(at, candidate)| {
        let how = match &candidate.means {
            Means::Command(line) => line.clone(),
            Means::Policy { policy, params } => {
                let params: String = params
                    .iter()
                    .map(|(name, value)| format!(" --param {name}={value}"))
                    .collect();
                format!("cosched run MIX --policy {policy}{params}")
            }
        };
        let name = if at == design.baseline {
            format!("{} (the baseline)", candidate.name)
        } else {
            candidate.name.clone()
        };
        vec![Cell::Text(name), Cell::Text(how)]
    });
    let columns = vec!["candidate".to_owned(), "is".to_owned()];
    let mut body = Table {
        caption: "",
        columns,
        rows: rows.collect(),
    }
    .html();
    let rows = design
        .mixes
        .iter()
        .map(|mix| vec![Cell::text(&mix.name), Cell::text(&mix.file)]);
    let columns = ["mix", "file"].map(str::to_owned).to_vec();
    body.push_str(
        &Table {
            caption: "",
            columns,
            rows: rows.collect(),
        }
        .html(),
    );
    body.push_str(&format!(
        "<h3>The same again</h3>\n<pre>{}</pre>\n",
        escaped(&manifest.command_line.join(" "))
    ));
    if let Some((trial, record, _)) = view.whole.first() {
        body.push_str(&details(
            &format!("The run of {}", view.name(*trial)),
            &machine(record),
            false,
        ));
    }
    body
}
