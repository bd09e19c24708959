//! The jobs of the queue in words, for `cosched status`.

use super::tables::{NUMBERS_LINE, cpu_column, head_lines, joined, measured_columns, reason_lines};
use super::{JobNow, JobState, RunStatus};
use crate::table::{Table, TableColumn};
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
    /// Its name in the run, with number and attempt.
    pub name_in_run: String,
    /// Its state, or how it ended.
    pub state: String,
    /// Whether it has started and has not ended.
    pub is_live: bool,
    /// Whether it has ended, or will never start.
    pub is_over: bool,
    /// For how many seconds.
    pub since_s: f64,
    /// Its command.
    pub command: String,
}

impl QueueRow {
    /// What the run knows of it. The run writes its state once a second, so it may not know yet that the job has ended.
    fn in_run<'a>(&self, status: &'a RunStatus) -> Option<&'a JobNow> {
        let name = visible(&self.name_in_run);
        status.jobs.iter().find(|job| job.name == name)
    }

    /// The same while it has started and has not ended.
    fn live_in_run<'a>(&self, status: &'a RunStatus) -> Option<&'a JobNow> {
        let job = self.in_run(status).filter(|_| self.is_live);
        job.filter(|job| !matches!(job.state, JobState::Queued | JobState::Ended))
    }

    /// The same while it waits, before its start or after it.
    fn waiting<'a>(&self, status: &'a RunStatus) -> Option<&'a JobNow> {
        let job = self.in_run(status).filter(|_| !self.is_over);
        job.filter(|job| match job.state {
            JobState::Queued => !self.is_live,
            JobState::Waiting => self.is_live,
            _ => false,
        })
    }

    fn state_text(&self, in_run: Option<&JobNow>) -> String {
        match in_run {
            Some(job) => job.state.text().to_owned(),
            None => visible(&self.state),
        }
    }
}

/// Render the state of the run that runs the jobs of the queue, with one table of jobs: what the service knows, and what the
/// run has measured.
pub fn queue_run_text(status: &RunStatus, title: &str, rows: &[QueueRow], width: usize) -> String {
    let mut text = head_lines(status);
    text.insert(NUMBERS_LINE, title.to_owned());
    text.push(clip(&format!("CPUs: {}", status.holders_text()), width));
    if !rows.is_empty() {
        text.push(String::new());
        text.extend(queue_table(rows, Some(status), width));
    }
    let mut waiting = Vec::new();
    for row in rows {
        waiting.extend(row.waiting(status).cloned());
    }
    text.extend(reason_lines(status, &waiting, width));
    joined(text)
}

/// Render a table of the newest jobs, the titles first. `status` is the state of the run that runs them, if it is known.
pub fn queue_text(jobs: &[QueueRow], status: Option<&RunStatus>, width: usize) -> String {
    queue_table(jobs, status, width).join("\n") + "\n"
}

fn queue_table(jobs: &[QueueRow], status: Option<&RunStatus>, width: usize) -> Vec<String> {
    let left_out = jobs.len().saturating_sub(MAX_ROWS);
    let shown = &jobs[left_out..];
    let mut in_run = Vec::new();
    let mut states = Vec::new();
    for job in shown {
        let now = status.and_then(|status| job.live_in_run(status));
        states.push(job.state_text(now));
        in_run.push(now);
    }
    let mut columns = vec![
        TableColumn::number("JOB", 0, shown, |job| job.id.to_string()),
        TableColumn::text("NAME", 2, shown, |job| visible(&job.name)),
        TableColumn::text("STATE", 0, &states, String::clone),
        TableColumn::number("SINCE", 1, shown, |job| seconds(job.since_s)),
        cpu_column(&in_run),
    ];
    columns.extend(measured_columns(&in_run));
    columns.push(TableColumn::text("COMMAND", 0, shown, |job| {
        clip(&visible(&job.command), WIDEST)
    }));
    columns.retain(TableColumn::has_values);
    let mut text = Table { columns }.lines(width);
    if left_out > 0 {
        text.push(format!(
            "and {left_out} earlier jobs; --format json has all"
        ));
    }
    text
}
