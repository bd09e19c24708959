//! The page of one run, or of several.
//!
//! [`jobs`]: the table of jobs; [`setting`]: what ran where, and how to repeat it.

mod jobs;
mod setting;

use crate::charts::{completion, slowdowns};
use crate::frame::{Head, PageSection, document};
use crate::html::{HtmlCell, HtmlTable, charts, details, list, paragraph};
use crate::pictures::run_charts;
use crate::timeline::timeline_figure;
use crate::view::RunView;
use cosched_core::metric::{METRICS, Metric, Needs};
use cosched_report::{
    EnergySource, Record, count, headline_text, metric_name, metric_value, seconds,
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
            PageSection::of("jobs", "Jobs", jobs::table(run)),
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
fn metrics(record: &Record) -> String {
    let rows = METRICS.iter();
    let rows = rows.filter_map(|metric| metric_row(record, metric));
    let mut table = HtmlTable::new(&["metric", "#value", "meaning"], rows.collect());
    if record.totals.earlier > 0 {
        table.caption = "These figures are over the jobs of this run, without those done earlier.";
    }
    table.html()
}

fn metric_row(record: &Record, metric: &Metric) -> Option<Vec<HtmlCell>> {
    let source = match (metric.needs, record.energy.source) {
        (Needs::Energy, EnergySource::Modelled) => " (from a power model)",
        (Needs::Energy, EnergySource::Measured) => " (measured)",
        _ => "",
    };
    let estimated = record.metrics_estimated.as_ref();
    let estimate = estimated.and_then(|all| all.get(metric.name));
    let (value, more) = match (record.metrics.entry(metric.name)?, estimate) {
        (Ok(value), _) => (HtmlCell::Text(metric_value(metric, *value)), String::new()),
        (Err(_), Some(value)) => (
            HtmlCell::Text(format!("~{}", metric_value(metric, *value))),
            "; estimated from progress".to_owned(),
        ),
        (Err(why), None) => (HtmlCell::None, format!("; not known: {why}")),
    };
    let meaning = format!("{}{source}{more}", metric.hint);
    Some(vec![
        HtmlCell::text(metric_name(metric.name)),
        value,
        HtmlCell::Text(meaning),
    ])
}

/// A row for each run.
fn runs_table(runs: &[RunView<'_>]) -> String {
    let metrics = METRICS.iter();
    let shown: Vec<&Metric> = metrics.filter(|metric| has_value(runs, metric)).collect();
    let columns = [
        "run",
        "policy",
        "machine",
        "#jobs",
        "#failed",
        "#not ended",
        "ended by",
    ];
    let rows = runs.iter().map(|run| run_row(run, &shown));
    let mut table = HtmlTable::new(&columns, rows.collect());
    for metric in shown {
        table.columns.push(format!("#{}", metric.name));
    }
    table.html()
}

fn has_value(runs: &[RunView<'_>], metric: &Metric) -> bool {
    let mut records = runs.iter().map(|run| run.record);
    records.any(|record| record.metrics.get(metric.name).is_some())
}

fn run_row(run: &RunView<'_>, shown: &[&Metric]) -> Vec<HtmlCell> {
    let record = run.record;
    let mut cells = vec![
        HtmlCell::text(&run.label),
        HtmlCell::text(&record.policy),
        HtmlCell::text(&record.machine),
        HtmlCell::Text(record.totals.jobs.to_string()),
        HtmlCell::Text(record.totals.failed.to_string()),
        HtmlCell::Text(record.totals.unfinished.to_string()),
        HtmlCell::text(&record.finished_by),
    ];
    for metric in shown {
        let value = record.metrics.get(metric.name).copied();
        cells.push(HtmlCell::number(value, |value| metric_value(metric, value)));
    }
    cells
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
            PageSection::of("runs", "Runs", runs_table(runs)),
            PageSection::of("charts", "Charts", charts_of_several(runs)),
            PageSection::of("each", "Each run", each_run(runs)),
        ],
    )
}

fn charts_of_several(runs: &[RunView<'_>]) -> String {
    if runs.len() > MAX_WHOLE {
        return String::new();
    }
    let mut named = Vec::new();
    for run in runs {
        named.push((run.label.clone(), run.record));
    }
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

/// A time, as tables show it.
pub(crate) fn time_cell(s: Option<f64>) -> HtmlCell {
    HtmlCell::number(s, seconds)
}
