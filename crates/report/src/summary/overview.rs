//! Several runs side by side: a row for each.

use super::{metric_name, metric_value};
use crate::record::Record;
use crate::table::{Column, lines};
use crate::text::visible;
use cosched_core::metric::METRICS;

/// Metrics in the order in which they stay when the table is too wide.
const FIRST: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// A table with a row for each run, in at most `width` characters if possible. Each run has a name for the reader.
pub fn overview(runs: &[(String, &Record)], width: usize) -> String {
    let column = |title: &str, right, expendable, cells| Column {
        title: title.to_owned().into(),
        right,
        expendable,
        cells,
    };
    let cells = |show: &dyn Fn(&Record) -> String| {
        runs.iter()
            .map(|(_, record)| show(record))
            .collect::<Vec<_>>()
    };
    let mut columns = vec![
        column(
            "RUN",
            false,
            0,
            runs.iter().map(|(name, _)| visible(name)).collect(),
        ),
        column("POLICY", false, 0, cells(&|record| visible(&record.policy))),
        column(
            "MACHINE",
            false,
            9,
            cells(&|record| visible(&record.machine)),
        ),
        column(
            "JOBS",
            true,
            2,
            cells(&|record| record.totals.jobs.to_string()),
        ),
        column(
            "FAILED",
            true,
            1,
            cells(&|record| record.totals.failed.to_string()),
        ),
    ];
    // A job that was never started, or did not end, is no failure.
    if runs.iter().any(|(_, record)| record.totals.unfinished > 0) {
        columns.push(column(
            "NOT ENDED",
            true,
            1,
            cells(&|record| record.totals.unfinished.to_string()),
        ));
    }
    let mut metrics: Vec<_> = METRICS.iter().collect();
    metrics.sort_by_key(|metric| {
        FIRST
            .iter()
            .position(|name| *name == metric.name)
            .unwrap_or(FIRST.len())
    });
    for (at, metric) in metrics.into_iter().enumerate() {
        let value = |record: &Record| {
            let value = record.metrics.get(metric.name);
            value.map_or_else(|| "-".to_owned(), |value| metric_value(metric, *value))
        };
        if runs
            .iter()
            .any(|(_, record)| record.metrics.get(metric.name).is_some())
        {
            columns.push(column(
                &metric_name(metric.name).to_uppercase(),
                true,
                at as u8,
                cells(&value),
            ));
        }
    }
    let mut text = lines(columns, width).join("\n");
    text.push('\n');
    text
}
