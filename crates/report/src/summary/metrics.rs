//! The metrics of a summary, with their meaning.

use super::page::{Page, Style};
use crate::record::Record;
use crate::source::EnergySource;
use crate::text::{count, decimal, grouped, seconds, wrap};
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
    name: String,
    value: String,
    hint: String,
}

impl MetricRow {
    /// `None` if the metric has neither a value nor an estimate.
    fn of(record: &Record, metric: &Metric) -> Option<MetricRow> {
        let estimated = record.metrics_estimated.as_ref();
        let value = match record.metrics.get(metric.name) {
            Some(value) => metric_value(metric, *value),
            None => format!("~{}", metric_value(metric, *estimated?.get(metric.name)?)),
        };
        let source = match (metric.needs, record.energy.source) {
            (Needs::Energy, EnergySource::Modelled) => " (from a power model)",
            (Needs::Energy, EnergySource::Measured) => " (measured)",
            _ => "",
        };
        Some(MetricRow {
            name: metric_name(metric.name),
            value,
            hint: format!("{}{source}", metric.hint),
        })
    }
}

/// Adds the metrics and what they cover.
pub(super) fn metrics(record: &Record, page: &mut Page) {
    let verbose = page.options.verbose;
    let metrics = METRICS.iter();
    let metrics = metrics.filter(|metric| verbose || says_something(metric, record));
    let rows: Vec<MetricRow> = metrics
        .filter_map(|metric| MetricRow::of(record, metric))
        .collect();
    table(&rows, page);
    if record.totals.earlier > 0 {
        let jobs = count(record.totals.jobs as u64, "job");
        page.plain(&format!(
            "these figures are over the {jobs} of this run, without those done earlier"
        ));
    }
    if record.metrics_estimated.is_some() {
        page.plain("~ estimated from progress measured by IPC, since solo times are missing");
    }
    for (why, names) in unknown(record, verbose) {
        page.plain(&format!("not known: {} ({why})", names.join(", ")));
    }
}

/// Whether a metric is more than 0, and not in the last line anyway.
fn says_something(metric: &Metric, record: &Record) -> bool {
    metric.name != "turnaround_s" && record.metrics.get(metric.name) != Some(&0.0)
}

fn table(rows: &[MetricRow], page: &mut Page) {
    let widths = rows.iter().map(|row| row.name.chars().count());
    let name_width = widths.max().unwrap_or(0);
    let widths = rows.iter().map(|row| row.value.chars().count());
    let value_width = widths.max().unwrap_or(0);
    let indent = name_width + value_width + 4;
    let room = page.options.width.saturating_sub(indent).max(20);
    for MetricRow { name, value, hint } in rows {
        let hint = wrap(hint, room).join(&format!("\n{:indent$}", ""));
        let text = format!("{name:<name_width$}  {value:>value_width$}  {hint}");
        for line in text.lines() {
            page.line(line, Style::Plain);
        }
    }
}

/// The metrics without a value, by the reason.
fn unknown(record: &Record, verbose: bool) -> BTreeMap<&str, Vec<String>> {
    let mut unknown: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    // A user who asked for solo times must see why there are no slowdowns.
    let asked = record.asks_for_slowdowns();
    let estimated = record.metrics_estimated.as_ref();
    for metric in METRICS {
        let is_estimated = estimated.is_some_and(|all| all.get(metric.name).is_some());
        let is_shown = verbose || (asked && metric.needs == Needs::Slowdowns);
        if let Some(Err(why)) = record.metrics.entry(metric.name)
            && is_shown
            && !is_estimated
        {
            unknown
                .entry(why)
                .or_default()
                .push(metric_name(metric.name));
        }
    }
    unknown
}
