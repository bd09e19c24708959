//! The page of one run, or of several.
//!
//! [`jobs`]: the table of jobs; [`setting`]: what ran where, and how to repeat it.

mod jobs;
mod setting;

use crate::charts::{completion, estimates, memory, slowdowns};
use crate::facts::RunFacts;
use crate::frame::{Head, Section, document};
use crate::html::{Cell, Table, charts, details, esc, list, paragraph};
use crate::timeline::timeline_figure;
use crate::view::RunView;
use cosched_core::metric::{METRICS, Needs};
use cosched_report::{
    EnergySource, Record, count, headline_text, metric_name, metric_value, seconds,
};
pub(crate) use setting::{machine, warnings};

/// The page of these runs.
pub fn run_page(runs: &[RunView<'_>]) -> String {
    match runs {
        [run] => single(run),
        runs => several(runs),
    }
}

fn single(run: &RunView<'_>) -> String {
    let record = run.record;
    let head = Head {
        title: format!(
            "{}: policy {} on {}",
            run.label, record.policy, record.machine
        ),
        intro: format!(
            "<p>{}</p>\n{}",
            esc(&headline_text(record)),
            list(&run.notes)
        ),
        is_simulated: run.is_simulated(),
    };
    document(&head, &sections(run))
}

/// The sections of a run.
fn sections(run: &RunView<'_>) -> Vec<Section> {
    let record = run.record;
    let facts = RunFacts::of(record);
    let named = [(record.policy.clone(), &facts)];
    let timeline = run
        .timeline
        .and_then(|timeline| timeline_figure(&run.label, timeline, record));
    let no_timeline = || match run.timeline {
        Some(_) => paragraph("Nobody was placed on a CPU."),
        None => paragraph("The series of this run is not there, so it is not known who ran when."),
    };
    let pictures = [
        completion(&named, "Jobs ended over time"),
        slowdowns(&named, "Slowdown of each job"),
        run.timeline
            .and_then(|timeline| memory(timeline.traffic.as_ref()?)),
    ];
    let estimated = estimates(&named, "Estimated against true slowdown");
    let all = [
        Section::of("result", "Result", metrics(record)),
        Section::of("timeline", "Timeline", timeline.unwrap_or_else(no_timeline)),
        Section::of("jobs", "Jobs", jobs::table(run)),
        Section::of(
            "charts",
            "Charts",
            charts(&pictures.into_iter().flatten().collect::<Vec<_>>()),
        ),
        Section::of(
            "estimates",
            "Estimate against truth",
            estimate_section(estimated),
        ),
        Section::of("energy", "Energy", energy(record)),
        Section::of("earlier", "Earlier runs of this batch", earlier(run)),
        Section::of("warnings", "Warnings", warnings(record)),
        Section::of("machine", "Machine and setting", machine(record)),
    ];
    all.into_iter().flatten().collect()
}

fn estimate_section(chart: Option<cosched_report::chart::Chart>) -> String {
    match chart {
        Some(chart) => charts(&[chart]),
        None => paragraph(
            "There is nothing to compare: that needs times alone (--solo measure), and progress that was measured or learnt \
             by counters.",
        ),
    }
}

/// Every metric with its value and what it means; why others have none.
fn metrics(record: &Record) -> String {
    let estimated = record.metrics_estimated.as_ref();
    let row = |metric: &cosched_core::metric::Metric| {
        let name = metric_name(metric.name);
        let source = match (metric.needs, record.energy.source) {
            (Needs::Energy, EnergySource::Modelled) => " (from a power model)",
            (Needs::Energy, EnergySource::Measured) => " (measured)",
            _ => "",
        };
        let meaning = format!("{}{source}", metric.hint);
        let (value, more) = match (
            record.metrics.entry(metric.name)?,
            estimated.and_then(|all| all.get(metric.name)),
        ) {
            (Ok(value), _) => (
                Cell::Number(metric_value(metric, *value), *value),
                String::new(),
            ),
            (Err(_), Some(value)) => (
                Cell::Number(format!("~{}", metric_value(metric, *value)), *value),
                "; estimated from progress".to_owned(),
            ),
            (Err(why), None) => (Cell::None, format!("; not known: {why}")),
        };
        Some(vec![
            Cell::text(name),
            value,
            Cell::text(format!("{meaning}{more}")),
        ])
    };
    let table = Table {
        id: None,
        caption: match record.totals.earlier {
            0 => "",
            _ => "These figures are over the jobs of this run, without those done earlier.",
        },
        columns: ["metric", "#value", "meaning"].map(str::to_owned).to_vec(),
        rows: METRICS.iter().filter_map(row).collect(),
    };
    table.html()
}

/// Energy and where the figure comes from.
fn energy(record: &Record) -> String {
    let energy = &record.energy;
    match (energy.joules, energy.source) {
        (Some(joules), EnergySource::Measured) => paragraph(&format!(
            "{joules:.1} J, measured by the processor's energy counters over the whole package."
        )),
        (Some(joules), _) => paragraph(&format!(
            "{joules:.1} J, from a power model: nothing was measured."
        )),
        (None, _) => paragraph(&format!(
            "Not known: {}.",
            energy
                .absent
                .why("joules")
                .unwrap_or("the record does not tell why")
        )),
    }
}

/// Runs that did jobs of the batch before this one.
fn earlier(run: &RunView<'_>) -> String {
    if run.earlier.is_empty() {
        return match run.record.totals.earlier {
            0 => String::new(),
            n => paragraph(&format!(
                "{} of this batch ended in earlier runs, whose records were not given.",
                count(n as u64, "job")
            )),
        };
    }
    let mut body = runs_table(&run.earlier, "earlier-runs");
    for part in &run.earlier {
        if let Some(shown) = part
            .timeline
            .and_then(|timeline| timeline_figure(&part.label, timeline, part.record))
        {
            body.push_str(&details(
                &format!("Timeline of {}", part.label),
                &shown,
                true,
            ));
        }
    }
    body
}

/// A row for each run.
fn runs_table(runs: &[RunView<'_>], id: &str) -> String {
    let shown: Vec<_> = METRICS
        .iter()
        .filter(|metric| {
            runs.iter()
                .any(|run| run.record.metrics.get(metric.name).is_some())
        })
        .collect();
    let mut columns = [
        "run",
        "policy",
        "machine",
        "#jobs",
        "#failed",
        "#not ended",
        "ended by",
    ]
    .map(str::to_owned)
    .to_vec();
    columns.extend(shown.iter().map(|metric| format!("#{}", metric.name)));
    let row = |run: &RunView<'_>| {
        let record = run.record;
        let number = |n: usize| Cell::Number(n.to_string(), n as f64);
        let mut cells = vec![
            Cell::text(&run.label),
            Cell::text(&record.policy),
            Cell::text(&record.machine),
            number(record.totals.jobs),
            number(record.totals.failed),
            number(record.totals.unfinished),
            Cell::text(&record.finished_by),
        ];
        cells.extend(shown.iter().map(|metric| {
            Cell::number(record.metrics.get(metric.name).copied(), |value| {
                metric_value(metric, value)
            })
        }));
        cells
    };
    let rows = runs.iter().map(row).collect();
    Table {
        id: Some(id.to_owned()),
        caption: "",
        columns,
        rows,
    }
    .html()
}

/// With more runs than this none is shown whole.
const MOST_WHOLE: usize = 12;

fn several(runs: &[RunView<'_>]) -> String {
    let facts: Vec<RunFacts> = runs.iter().map(|run| RunFacts::of(run.record)).collect();
    let named: Vec<(String, &RunFacts)> = runs
        .iter()
        .map(|run| run.label.clone())
        .zip(&facts)
        .collect();
    let head = Head {
        title: count(runs.len() as u64, "run"),
        intro: paragraph(
            "Runs side by side. Whether one way to run a batch is better than another, and whether that is sure, is told by \
             `cosched compare`, where they take turns.",
        ),
        is_simulated: runs.iter().all(RunView::is_simulated),
    };
    let pictures = if runs.len() <= MOST_WHOLE {
        [
            completion(&named, "Jobs ended over time"),
            slowdowns(&named, "Slowdown of each job"),
        ]
    } else {
        [None, None]
    };
    let mut whole = String::new();
    for run in runs.iter().take(MOST_WHOLE) {
        let mut body = format!(
            "{}{}",
            paragraph(&headline_text(run.record)),
            list(&run.notes)
        );
        body.push_str(
            &run.timeline
                .and_then(|timeline| timeline_figure(&run.label, timeline, run.record))
                .unwrap_or_default(),
        );
        body.push_str(&warnings(run.record));
        body.push_str(&machine(run.record));
        whole.push_str(&details(&run.label, &body, false));
    }
    if runs.len() > MOST_WHOLE {
        whole.push_str(&paragraph(&format!(
            "The first {MOST_WHOLE} runs are shown; name some to see others."
        )));
    }
    let all = [
        Section::of("runs", "Runs", runs_table(runs, "runs-table")),
        Section::of(
            "charts",
            "Charts",
            charts(&pictures.into_iter().flatten().collect::<Vec<_>>()),
        ),
        Section::of("each", "Each run", whole),
    ];
    document(&head, &all.into_iter().flatten().collect::<Vec<_>>())
}

/// A time, as tables show it.
pub(crate) fn time_cell(s: Option<f64>) -> Cell {
    Cell::number(s, seconds)
}
