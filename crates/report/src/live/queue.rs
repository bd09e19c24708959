//! The queue in words, for `cosched status`.

use crate::table::{Column, lines};
use crate::text::{clip, seconds, visible};

/// Maximum number of jobs shown.
const MAX_ROWS: usize = 60;

/// Greatest width of a command.
const WIDEST: usize = 60;

/// A job of the queue.
#[derive(Clone, Debug)]
pub struct QueueRow {
    /// Its number.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its state, or how it ended.
    pub state: String,
    /// For how many seconds.
    pub since_s: f64,
    /// Its command.
    pub command: String,
}

/// Render a table of the newest jobs, the titles first.
pub fn queue_text(jobs: &[QueueRow], width: usize) -> String {
    let left_out = jobs.len().saturating_sub(MAX_ROWS);
    let shown = &jobs[left_out..];
    let columns = vec![
        Column::number("JOB", 0, shown, |job| job.id.to_string()),
        Column::text("NAME", 2, shown, |job| visible(&job.name)),
        Column::text("STATE", 0, shown, |job| visible(&job.state)),
        Column::number("SINCE", 1, shown, |job| seconds(job.since_s)),
        Column::text("COMMAND", 0, shown, |job| {
            clip(&visible(&job.command), WIDEST)
        }),
    ];
    let mut text = lines(columns, width);
    if left_out > 0 {
        text.push(format!(
            "and {left_out} earlier jobs; --format json has all"
        ));
    }
    text.join("\n") + "\n"
}
