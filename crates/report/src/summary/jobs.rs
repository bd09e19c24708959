//! The table of jobs. Of many jobs it shows those that failed or took longest.

use crate::record::{Job, Record};
use crate::table::{Column, NONE, or_none};
use crate::text::{clip, decimal, grouped, seconds, visible};
use cosched_core::ProgressBasis;

/// Maximum number of jobs that all have a row.
const MAX_ROWS: usize = 40;
/// Number of rows if there are more jobs.
const FEW_ROWS: usize = 15;
/// Maximum width of a cell for how a job ended. A line below the table has the whole text.
const MAX_EXIT: usize = 24;
/// Maximum number of failures with a line of their own.
const MAX_FAILURES: usize = 10;
/// A shorter time in the queue, as a share of the turnaround, is not worth a column.
const LEAST_QUEUED: f64 = 0.01;

/// The columns of the table, and for each row whether its job failed.
pub(super) struct Jobs {
    pub columns: Vec<Column>,
    pub failed: Vec<bool>,
    /// Number of jobs without a row.
    pub others: usize,
}

type Cell = fn(&Record, &Job) -> Option<String>;

/// Columns of numbers: title, the order in which they go if there is no room, and the cell. A column without a value goes.
const NUMBERS: [(&str, u8, Cell); 7] = [
    ("TIME", 0, |_, job| time(job).map(seconds)),
    ("CPU", 3, |_, job| job.cpu_s.map(seconds)),
    ("SLOWDOWN", 0, |_, job| slowdown(job)),
    ("QUEUED", 2, |record, job| queued(record, job).map(seconds)),
    ("WAITED", 2, |_, job| job.waited_max_s.map(seconds)),
    ("IPC", 4, |_, job| Some(decimal(job.ipc?, 2))),
    ("PROGRESS", 5, progress),
];

pub(super) fn jobs(record: &Record) -> Jobs {
    let shown = shown_jobs(&record.jobs);
    let mut columns = vec![
        Column::text("JOB", 0, &shown, |job| visible(&job.name)),
        Column::text("EXIT", 0, &shown, |job| exit_cell(job)),
    ];
    for (title, expendable, cell) in NUMBERS {
        let column = Column::number(title, expendable, &shown, |job| or_none(cell(record, job)));
        if column.has_values() {
            columns.push(column);
        }
    }
    Jobs {
        columns,
        failed: shown.iter().map(|job| failed(job)).collect(),
        others: record.jobs.len() - shown.len(),
    }
}

/// The jobs with a row. Of many jobs those that failed come first, then those that took longest.
fn shown_jobs(jobs: &[Job]) -> Vec<&Job> {
    let mut shown: Vec<&Job> = jobs.iter().collect();
    if shown.len() > MAX_ROWS {
        shown.sort_by(|a, b| {
            let by_time = time(b).unwrap_or(0.0).total_cmp(&time(a).unwrap_or(0.0));
            failed(b).cmp(&failed(a)).then(by_time)
        });
        shown.truncate(FEW_ROWS);
    }
    shown
}

fn failed(job: &Job) -> bool {
    job.exit.is_some_and(|exit| exit != 0)
}

/// How a job ended, in the shortest form.
fn exit_cell(job: &Job) -> String {
    let text = match (job.exit, &job.exit_text) {
        (Some(code), Some(text)) if *text == format!("exit {code}") => code.to_string(),
        (_, Some(text)) => visible(text.split(": ").next().unwrap_or(text)),
        (_, None) => job.absent.why("exit").unwrap_or(NONE).to_owned(),
    };
    let timed_out = if job.timed_out { ", timed out" } else { "" };
    clip(&format!("{text}{timed_out}"), MAX_EXIT)
}

fn time(job: &Job) -> Option<f64> {
    Some(job.finish_s? - job.start_s?)
}

fn slowdown(job: &Job) -> Option<String> {
    match (job.slowdown, job.slowdown_estimate) {
        (Some(slowdown), _) => Some(decimal(slowdown, 2)),
        (None, Some(estimate)) => Some(format!("~{}", decimal(estimate, 2))),
        (None, None) => None,
    }
}

/// The time from a job's arrival to its start, if it is long. It is not known of a job that was retried.
fn queued(record: &Record, job: &Job) -> Option<f64> {
    let turnaround = record.metrics.get("turnaround_s").copied().unwrap_or(0.0);
    let queued = job.start_s? - job.arrival_s;
    (job.runs <= 1 && queued > LEAST_QUEUED * turnaround).then_some(queued)
}

/// The progress, if it says more than the CPU time.
fn progress(record: &Record, job: &Job) -> Option<String> {
    let about = match job.progress_basis {
        ProgressBasis::Ipc | ProgressBasis::Trace => "",
        ProgressBasis::CpuTime => return None,
        _ => "~",
    };
    let progress = seconds(job.progress? * record.quantum_s);
    Some(format!("{about}{progress}"))
}

/// The jobs that failed, each with how it ended and its command.
pub(super) fn failures(record: &Record, width: usize) -> Vec<String> {
    let all: Vec<&Job> = record.jobs.iter().filter(|job| failed(job)).collect();
    let mut lines = Vec::new();
    for job in all.iter().take(MAX_FAILURES) {
        lines.push(clip(&failure(job), width));
    }
    if all.len() > MAX_FAILURES {
        let more = grouped((all.len() - MAX_FAILURES) as u64);
        lines.push(format!("and {more} more failed"));
    }
    lines
}

fn failure(job: &Job) -> String {
    let name = visible(&job.name);
    let exit = visible(job.exit_text.as_deref().unwrap_or("ended"));
    let mut text = format!("failed: {name} ({exit})");
    let command = job.command.as_deref().map(visible).unwrap_or_default();
    // A name that is the whole command says enough.
    if !command.is_empty() && command != name {
        text += &format!(": {command}");
    }
    text
}
