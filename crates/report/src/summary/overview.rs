//! Several runs side by side: a row for each.

use super::{metric_name, metric_value};
use crate::record::Record;
use crate::table::{Column, NONE, lines};
use crate::text::visible;
use cosched_core::metric::{METRICS, Metric};

/// Metrics in the order in which they stay when the table is too wide.
const FIRST: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// A table with a row for each run, in at most `width` characters if possible. Each run has a name for the reader.
pub fn overview(runs: &[(String, &Record)], width: usize) -> String {
    let mut columns = vec![
        Column::text("RUN", 0, runs, |(name, _)| visible(name)),
        Column::text("POLICY", 0, runs, |(_, run)| visible(&run.policy)),
        Column::number("JOBS", 2, runs, |(_, run)| run.totals.jobs.to_string()),
        Column::number("FAILED", 1, runs, |(_, run)| run.totals.failed.to_string()),
    ];
    if runs.iter().any(|(_, run)| run.machine != runs[0].1.machine) {
        let machine = Column::text("MACHINE", 9, runs, |(_, run)| visible(&run.machine));
        columns.insert(2, machine);
    }
    // A job that was never started, or did not end, is no failure.
    if runs.iter().any(|(_, run)| run.totals.unfinished > 0) {
        columns.push(Column::number("NOT ENDED", 1, runs, |(_, run)| {
            run.totals.unfinished.to_string()
        }));
    }
    let mut metrics: Vec<&Metric> = METRICS.iter().collect();
    metrics.sort_by_key(|metric| {
        let rank = FIRST.iter().position(|name| *name == metric.name);
        rank.unwrap_or(FIRST.len())
    });
    for (rank, metric) in metrics.into_iter().enumerate() {
        let title = metric_name(metric.name).to_uppercase();
        let column = Column::number(title, rank as u8, runs, |(_, run)| {
            match run.metrics.get(metric.name) {
                Some(value) => metric_value(metric, *value),
                None => NONE.to_owned(),
            }
        });
        if column.says_something() {
            columns.push(column);
        }
    }
    let mut text = lines(columns, width).join("\n");
    text.push('\n');
    text
}
