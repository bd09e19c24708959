//! The table of the jobs that did not fail. Of many jobs it shows those that took longest.

use crate::record::{Job, Record};
use crate::table::{Column, NONE, or_none};
use crate::text::{decimal, seconds, visible};
use cosched_core::ProgressBasis;

/// Maximum number of rows.
const MAX_ROWS: usize = 20;
/// Times of jobs are worth a table if one of them is longer, in seconds.
const WORTH_S: f64 = 1.0;
/// A shorter time in the queue, as a share of the turnaround, is not worth a column.
const LEAST_QUEUED: f64 = 0.05;

pub(super) struct Jobs {
    pub columns: Vec<Column>,
    /// Number of jobs without a row.
    pub others: usize,
}

type Cell = fn(&Record, &Job) -> Option<String>;

/// Columns of numbers: title, the order in which they go if there is no room, and the cell.
const NUMBERS: [(&str, u8, Cell); 8] = [
    ("TIME", 0, |_, job| job.time_s().map(seconds)),
    ("CPU", 3, |_, job| job.end.cpu_s.map(seconds)),
    ("NODE", 1, |_, job| job.node.as_deref().map(visible)),
    ("SLOWDOWN", 0, |_, job| slowdown(job)),
    ("QUEUED", 2, |record, job| queued(record, job).map(seconds)),
    ("LONGEST WAIT", 2, |_, job| {
        job.end.waited_max_s.map(seconds)
    }),
    ("IPC", 4, |_, job| Some(decimal(job.ipc?, 2))),
    ("PROGRESS", 5, progress),
];

/// Whether a job took long.
pub(super) fn are_long(record: &Record) -> bool {
    let mut times = record.jobs.iter().filter_map(Job::time_s);
    times.any(|time_s| time_s > WORTH_S)
}

/// Return the table; `verbose` adds the progress.
pub(super) fn jobs(record: &Record, verbose: bool) -> Jobs {
    let (shown, others) = shown_jobs(record);
    let mut columns = vec![Column::text("JOB", 0, &shown, |job| visible(&job.name))];
    if shown.iter().any(|job| job.end.exit.is_none()) {
        columns.push(Column::text("EXIT", 0, &shown, |job| exit_cell(job)));
    }
    for (title, expendable, cell) in NUMBERS {
        let column = Column::number(title, expendable, &shown, |job| or_none(cell(record, job)));
        let is_wanted = verbose || title != "PROGRESS";
        if is_wanted && column.says_something() {
            columns.push(column);
        }
    }
    Jobs { columns, others }
}

/// The jobs with a row, and the number of others.
fn shown_jobs(record: &Record) -> (Vec<&Job>, usize) {
    let mut shown: Vec<&Job> = record.jobs.iter().filter(|job| has_row(job)).collect();
    let left_out = record.left_out.map_or(0, |left_out| left_out.jobs);
    let others = shown.len().saturating_sub(MAX_ROWS) + left_out;
    if shown.len() > MAX_ROWS {
        shown.sort_by(|a, b| {
            let [a, b] = [a, b].map(|job| job.time_s().unwrap_or(f64::INFINITY));
            b.total_cmp(&a)
        });
        shown.truncate(MAX_ROWS);
    }
    (shown, others)
}

/// Failed jobs have lines of their own; jobs that were not started are only counted.
fn has_row(job: &Job) -> bool {
    !job.failed() && (job.end.exit.is_some() || job.end.start_s.is_some())
}

fn exit_cell(job: &Job) -> String {
    match job.end.exit {
        Some(code) => code.to_string(),
        None => job.absent.why("exit").unwrap_or(NONE).to_owned(),
    }
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
    let queued = job.end.start_s? - job.arrival_s;
    (job.end.runs <= Some(1) && queued > LEAST_QUEUED * turnaround).then_some(queued)
}

/// The progress, if it says more than the CPU time.
fn progress(record: &Record, job: &Job) -> Option<String> {
    let about = match job.end.progress_basis {
        Some(ProgressBasis::Ipc | ProgressBasis::Trace) => "",
        Some(ProgressBasis::CpuTime) => return None,
        _ => "~",
    };
    let progress = seconds(job.end.progress? * record.quantum_s);
    Some(format!("{about}{progress}"))
}
