//! The page of one run, or of several.
//!
//! [`setting`]: what ran where, and how to repeat it.

mod setting;

use crate::charts::{completion, slowdowns};
use crate::frame::{Head, PageSection, document};
use crate::html::{charts, details, list, paragraph, table};
use crate::pictures::run_charts;
use crate::timeline::timeline_figure;
use crate::view::RunView;
use cosched_report::{
    RunRecord, count, headline_text, job_table, metric_notes, metric_table, overview,
};
pub(crate) use setting::{machine, same_again, warnings};

/// The page of these runs.
pub fn run_page(runs: &[RunView<'_>]) -> String {
    match runs {
        [run] => one_run(run),
        runs => several_runs(runs),
    }
}

fn one_run(run: &RunView<'_>) -> String {
    let record = run.record;
    let head = Head {
        title: format!(
            "{}: policy {} on {}",
            run.label, record.policy, record.machine
        ),
        intro: intro(run),
        is_simulated: run.is_simulated(),
    };
    let pictures = run_charts(run).into_iter().map(|picture| picture.chart);
    document(
        &head,
        &[
            PageSection::of("result", "Result", metrics(record)),
            PageSection::of("timeline", "Timeline", timeline(run)),
            PageSection::of("jobs", "Jobs", jobs(record)),
            PageSection::of("charts", "Charts", charts(pictures)),
            PageSection::of("warnings", "Warnings", warnings(record)),
            PageSection::of("machine", "Machine and setting", machine(record)),
        ],
    )
}

/// The outcome in a sentence, and notes on the files.
fn intro(run: &RunView<'_>) -> String {
    paragraph(&headline_text(run.record)) + &list(&run.notes)
}

fn timeline(run: &RunView<'_>) -> String {
    let figure = run
        .timeline
        .and_then(|timeline| timeline_figure(&run.label, timeline, run.record));
    figure.unwrap_or_default()
}

/// Every metric with its value and what it means; why others have none.
fn metrics(record: &RunRecord) -> String {
    table("", &metric_table(record)) + &list(&metric_notes(record))
}

/// Every job of the batch.
fn jobs(record: &RunRecord) -> String {
    let jobs = job_table(record);
    if jobs.rows() == 0 {
        return String::new();
    }
    table(
        "failed jobs first, then the greatest slowdown or the longest turnaround",
        &jobs,
    )
}

/// The runs with their names.
fn named<'a>(runs: &'a [RunView<'_>]) -> Vec<(String, &'a RunRecord)> {
    let mut named = Vec::new();
    for run in runs {
        named.push((run.label.clone(), run.record));
    }
    named
}

/// Maximum number of runs that are shown whole.
const MAX_WHOLE: usize = 12;

fn several_runs(runs: &[RunView<'_>]) -> String {
    let head = Head {
        title: count(runs.len() as u64, "run"),
        intro: paragraph(
            "Runs side by side. To test whether one policy is better than another, use `cosched compare`.",
        ),
        is_simulated: runs.iter().all(RunView::is_simulated),
    };
    document(
        &head,
        &[
            PageSection::of("runs", "Runs", table("", &overview(&named(runs)))),
            PageSection::of("charts", "Charts", charts_of_several(runs)),
            PageSection::of("each", "Each run", each_run(runs)),
        ],
    )
}

fn charts_of_several(runs: &[RunView<'_>]) -> String {
    if runs.len() > MAX_WHOLE {
        return String::new();
    }
    let named = named(runs);
    let pictures = [
        completion(&named, "Jobs ended over time"),
        slowdowns(&named, "Slowdown of each job"),
    ];
    charts(pictures.into_iter().flatten())
}

fn each_run(runs: &[RunView<'_>]) -> String {
    let mut out = String::new();
    for run in runs.iter().take(MAX_WHOLE) {
        let mut body = intro(run);
        body.push_str(&timeline(run));
        body.push_str(&warnings(run.record));
        body.push_str(&machine(run.record));
        out.push_str(&details(&run.label, &body, false));
    }
    if runs.len() > MAX_WHOLE {
        out.push_str(&paragraph(&format!(
            "The first {MAX_WHOLE} runs are shown; name some to see others."
        )));
    }
    out
}
