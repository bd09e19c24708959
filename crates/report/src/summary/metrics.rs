//! The metrics of a summary, with their meaning.

use super::page::{Page, Style};
use crate::record::RunRecord;
use crate::source::EnergySource;
use crate::table::{Table, TableColumn};
use crate::text::{count, decimal, grouped, seconds};
use cosched_core::metric::{METRICS, Metric, Needs};
use std::collections::BTreeMap;

/// A metric's value with its unit, for people.
pub fn metric_value(metric: &Metric, value: f64) -> String {
    match metric.unit {
        "s" => seconds(value),
        "1" | "instructions/cycle" => decimal(value, 2),
        unit if value >= 1e15 => format!("{} {unit}", decimal(value, 1)),
        unit if value >= 99_999.5 => format!("{} {unit}", grouped((value + 0.5) as u64)),
        unit => format!("{value:.1} {unit}"),
    }
}

/// A metric's name without its unit, in words.
pub fn metric_name(name: &str) -> String {
    let name = name
        .trim_end_matches("_s")
        .trim_end_matches("_js")
        .trim_end_matches("_j");
    match name {
        "stp" | "antt" | "edp" => name.to_uppercase(),
        "jain" => "Jain's index".to_owned(),
        "mean_ipc" => "mean IPC".to_owned(),
        "max_wait" => "longest wait".to_owned(),
        name => name.replace('_', " "),
    }
}

/// A metric with its value and meaning, in words.
struct MetricRow {
    metric: &'static Metric,
    /// The value, or why there is none.
    value: Result<String, String>,
    meaning: String,
}

impl MetricRow {
    /// `None` if the record does not have the metric.
    fn of(record: &RunRecord, metric: &'static Metric) -> Option<MetricRow> {
        let estimated = record.metrics_estimated.as_ref();
        let estimate = estimated.and_then(|all| all.get(metric.name));
        let value = match (record.metrics.entry(metric.name)?, estimate) {
            (Ok(value), _) => Ok(metric_value(metric, *value)),
            (Err(_), Some(value)) => Ok(format!("~{}", metric_value(metric, *value))),
            (Err(why), None) => Err(why.to_owned()),
        };
        let source = match (metric.needs, record.energy.source) {
            (Needs::Energy, EnergySource::Modelled) => " (from a power model)",
            (Needs::Energy, EnergySource::Measured) => " (measured)",
            _ => "",
        };
        Some(MetricRow {
            metric,
            value,
            meaning: format!("{}{source}", metric.hint),
        })
    }

    fn all(record: &RunRecord) -> Vec<MetricRow> {
        let metrics = METRICS.iter();
        metrics
            .filter_map(|metric| MetricRow::of(record, metric))
            .collect()
    }

    fn meaning(&self) -> String {
        match &self.value {
            Ok(_) => self.meaning.clone(),
            Err(why) => format!("{}; not known: {why}", self.meaning),
        }
    }
}

/// Return the table of all metrics, with the reasons why some are not known.
pub fn metric_table(record: &RunRecord) -> Table {
    table(&MetricRow::all(record), ["metric", "value", "meaning"])
}

fn table(rows: &[MetricRow], [name, value, meaning]: [&str; 3]) -> Table {
    let columns = vec![
        TableColumn::text(name, 0, rows, |row| metric_name(row.metric.name)),
        TableColumn::number(value, 0, rows, |row| row.value.clone().ok()),
        TableColumn::text(meaning, 0, rows, MetricRow::meaning).wrapped(),
    ];
    Table { columns }
}

/// Return what the metrics cover, and how some were obtained, in sentences.
pub fn metric_notes(record: &RunRecord) -> Vec<String> {
    let mut notes = Vec::new();
    if record.totals.earlier > 0 {
        let jobs = count(record.totals.jobs as u64, "job");
        notes.push(format!(
            "these figures are over the {jobs} of this run, without those done earlier"
        ));
    }
    if record.metrics_estimated.is_some() {
        let note = "~ estimated from progress measured by IPC, since solo times are missing";
        notes.push(note.to_owned());
    }
    notes
}

/// Adds the metrics and what they cover.
pub(super) fn metrics(record: &RunRecord, page: &mut Page) {
    let verbose = page.options.verbose;
    let all = MetricRow::all(record);
    let (known, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(|row| row.value.is_ok());
    let mut shown = known;
    shown.retain(|row| verbose || says_something(row.metric, record));
    for line in table(&shown, [""; 3]).lines(page.options.width) {
        page.line(&line, Style::Plain);
    }
    for note in metric_notes(record) {
        page.plain(&note);
    }
    for (why, names) in by_reason(&unknown, record, verbose) {
        page.plain(&format!("not known: {} ({why})", names.join(", ")));
    }
}

/// Whether a metric is more than 0, and not in the last line anyway.
fn says_something(metric: &Metric, record: &RunRecord) -> bool {
    metric.name != "turnaround_s" && record.metrics.get(metric.name) != Some(&0.0)
}

/// The metrics without a value, by the reason. A user who asked for solo times must see why there are no slowdowns.
fn by_reason<'a>(
    unknown: &'a [MetricRow],
    record: &RunRecord,
    verbose: bool,
) -> BTreeMap<&'a str, Vec<String>> {
    let asked = record.asks_for_slowdowns();
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for row in unknown {
        let is_shown = verbose || (asked && row.metric.needs == Needs::Slowdowns);
        if let (Err(why), true) = (&row.value, is_shown) {
            let names = reasons.entry(why).or_default();
            names.push(metric_name(row.metric.name));
        }
    }
    reasons
}
