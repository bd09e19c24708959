//! Several runs side by side: a row for each.

use super::{metric_name, metric_value};
use crate::record::RunRecord;
use crate::table::{Table, TableColumn};
use cosched_core::metric::{METRICS, Metric};

/// Metrics in the order in which they stay when the table is too wide.
const FIRST: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// A table with a row for each run. Each run has a name for the reader.
pub fn overview(runs: &[(String, &RunRecord)]) -> Table {
    let mut columns = vec![
        TableColumn::text("run", 0, runs, |(name, _)| name.clone()),
        TableColumn::text("policy", 0, runs, |(_, run)| run.policy.clone()),
        TableColumn::number("jobs", 2, runs, |(_, run)| run.totals.jobs.to_string()),
        TableColumn::number("failed", 1, runs, |(_, run)| run.totals.failed.to_string()),
    ];
    if runs.iter().any(|(_, run)| run.machine != runs[0].1.machine) {
        let machine = TableColumn::text("machine", 9, runs, |(_, run)| run.machine.clone());
        columns.insert(2, machine);
    }
    // A job that was never started, or did not end, is no failure.
    if runs.iter().any(|(_, run)| run.totals.unfinished > 0) {
        columns.push(TableColumn::number("not ended", 1, runs, |(_, run)| {
            run.totals.unfinished.to_string()
        }));
    }
    let mut metrics: Vec<&Metric> = METRICS.iter().collect();
    metrics.sort_by_key(|metric| {
        let rank = FIRST.iter().position(|name| *name == metric.name);
        rank.unwrap_or(FIRST.len())
    });
    for (rank, metric) in metrics.into_iter().enumerate() {
        let title = metric_name(metric.name);
        let column = TableColumn::number(title, rank as u8, runs, |(_, run)| {
            let value = run.metrics.get(metric.name);
            value.map(|value| metric_value(metric, *value))
        });
        if column.says_something() {
            columns.push(column);
        }
    }
    if runs.iter().any(|(_, run)| run.finished_by != "completion") {
        columns.push(TableColumn::text("ended by", 9, runs, |(_, run)| {
            run.finished_by.clone()
        }));
    }
    Table { columns }
}
