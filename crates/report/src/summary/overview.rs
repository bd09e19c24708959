//! Several runs side by side: a row for each.

use super::{metric_name, metric_value};
use crate::record::Record;
use crate::table::{Column, lines};
use crate::text::visible;
use cosched_core::metric::{METRICS, Metric};

/// Metrics in the order in which they stay when the table is too wide.
const FIRST: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// A table with a row for each run, in at most `width` characters if possible. Each run has a name for the reader.
pub fn overview(runs: &[(String, &Record)], width: usize) -> String {
    let records: Vec<&Record> = runs.iter().map(|(_, record)| *record).collect();
    let names = runs.iter().map(|(name, _)| visible(name)).collect();
    let policies = cells(&records, |record| visible(&record.policy));
    let machines = cells(&records, |record| visible(&record.machine));
    let jobs = cells(&records, |record| record.totals.jobs.to_string());
    let failed = cells(&records, |record| record.totals.failed.to_string());
    let mut columns = vec![
        Column::text("RUN", 0, names),
        Column::text("POLICY", 0, policies),
        Column::text("MACHINE", 9, machines),
        Column::number("JOBS", 2, jobs),
        Column::number("FAILED", 1, failed),
    ];
    // A job that was never started, or did not end, is no failure.
    if records.iter().any(|record| record.totals.unfinished > 0) {
        let unfinished = cells(&records, |record| record.totals.unfinished.to_string());
        columns.push(Column::number("NOT ENDED", 1, unfinished));
    }
    let mut metrics: Vec<&Metric> = METRICS.iter().collect();
    metrics.sort_by_key(|metric| {
        let rank = FIRST.iter().position(|name| *name == metric.name);
        rank.unwrap_or(FIRST.len())
    });
    for (rank, metric) in metrics.into_iter().enumerate() {
        let values = cells(&records, |record| {
            let value = record.metrics.get(metric.name);
            value.map_or_else(|| "-".to_owned(), |value| metric_value(metric, *value))
        });
        if values.iter().any(|value| value != "-") {
            let title = metric_name(metric.name).to_uppercase();
            columns.push(Column::number(title, rank as u8, values));
        }
    }
    let mut text = lines(columns, width).join("\n");
    text.push('\n');
    text
}

/// The cells of a column: one for each run.
fn cells(records: &[&Record], show: impl Fn(&Record) -> String) -> Vec<String> {
    records.iter().map(|record| show(record)).collect()
}
