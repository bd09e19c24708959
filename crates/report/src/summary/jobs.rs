//! The table of the jobs of a run: brief at its end, whole in documents.

use crate::record::{JobRecord, RunRecord};
use crate::table::{CellTone, Table, TableCell, TableColumn};
use crate::text::{bytes, clip, decimal, seconds};
use cosched_core::ProgressBasis;

/// Maximum number of rows of the brief table.
const MAX_ROWS: usize = 20;
/// Maximum number of characters of a command.
const MAX_COMMAND: usize = 160;
/// Times of jobs are worth a table if one of them is longer, in seconds.
const WORTH_S: f64 = 1.0;
/// A shorter time in the queue, as a share of the turnaround, is not worth a column of the brief table.
const LEAST_QUEUED: f64 = 0.05;

/// A job of the batch.
struct JobRow<'a> {
    record: &'a RunRecord,
    job: &'a JobRecord,
    /// The run that did it, if it was one before this.
    earlier: Option<&'a str>,
}

impl<'a> JobRow<'a> {
    fn of(record: &'a RunRecord, job: &'a JobRecord) -> JobRow<'a> {
        JobRow {
            record,
            job,
            earlier: None,
        }
    }
}

/// Where a column stands.
#[derive(Clone, Copy, PartialEq)]
enum Shown {
    /// In both tables. If there is no room in the brief one, columns with greater numbers go first.
    Both(u8),
    /// In documents.
    Whole,
}
use Shown::{Both, Whole};

type JobColumn = (&'static str, Shown, fn(&JobRow<'_>) -> TableCell);

/// The columns after the name.
const COLUMNS: [JobColumn; 16] = [
    ("time", Both(0), |row| time_cell(row.job.time_s())),
    ("ended", Both(0), end_cell),
    ("CPU", Both(3), |row| time_cell(row.job.end.cpu_s)),
    ("node", Both(1), |row| row.job.node.clone().into()),
    ("slowdown", Both(0), |row| slowdown(row.job).into()),
    ("turnaround", Whole, |row| time_cell(row.job.turnaround_s())),
    ("alone", Whole, |row| time_cell(row.job.solo_s)),
    ("queued", Both(2), |row| time_cell(queued_s(row.job))),
    ("longest wait", Both(2), |row| {
        time_cell(row.job.end.waited_max_s)
    }),
    ("expected", Whole, |row| {
        time_cell(row.job.expected.map(|expected| expected.time_s))
    }),
    ("IPC", Both(4), |row| {
        row.job.ipc.map(|ipc| decimal(ipc, 2)).into()
    }),
    ("progress", Both(5), |row| progress(row).into()),
    ("memory", Whole, |row| {
        let size = row.job.end.max_rss_bytes;
        size.map(|size| bytes(size as f64)).into()
    }),
    ("starts", Whole, |row| {
        row.job.end.runs.map(|runs| runs.to_string()).into()
    }),
    ("run", Whole, |row| row.earlier.unwrap_or("this one").into()),
    ("command", Whole, |row| {
        let command = row.job.command.as_deref();
        command.map(|command| clip(command, MAX_COMMAND)).into()
    }),
];

/// Columns of words.
const WORDS: [&str; 3] = ["ended", "run", "command"];

/// Whether a job took long.
pub(super) fn are_long(record: &RunRecord) -> bool {
    let mut times = record.jobs.iter().filter_map(JobRecord::time_s);
    times.any(|time_s| time_s > WORTH_S)
}

/// Return the table of the jobs that did not fail, of many those that took longest, and the number of the others. `verbose`
/// adds the progress.
pub(super) fn brief_job_table(record: &RunRecord, verbose: bool) -> (Table, usize) {
    let (jobs, others) = shown_jobs(record);
    let mut rows = Vec::new();
    for job in jobs {
        rows.push(JobRow::of(record, job));
    }
    let mut columns = vec![name_column(&rows)];
    for (title, shown, cell) in COLUMNS {
        let Both(expendable) = shown else { continue };
        let is_wanted = match title {
            "ended" => rows.iter().any(|row| row.job.end.exit.is_none()),
            "queued" => rows.iter().any(was_long_queued),
            "progress" => verbose,
            _ => true,
        };
        let column = column(title, expendable, &rows, cell);
        if is_wanted && column.says_something() {
            columns.push(column);
        }
    }
    (Table { columns }, others)
}

/// Return the table of all jobs of the batch, those of this run and of the runs before it. Failed jobs come first, then those
/// that were slowed down most.
pub fn job_table(record: &RunRecord) -> Table {
    let mut rows = Vec::new();
    for job in &record.jobs {
        rows.push(JobRow::of(record, job));
    }
    for before in &record.earlier_jobs {
        let earlier = Some(before.run_id.as_deref().unwrap_or("earlier"));
        rows.extend(before.job.iter().map(|job| JobRow {
            earlier,
            ..JobRow::of(record, job)
        }));
    }
    rows.sort_by(|a, b| {
        let failed_first = b.job.failed().cmp(&a.job.failed());
        failed_first.then_with(|| a.job.worst_first(b.job))
    });
    let mut columns = vec![name_column(&rows)];
    for (title, _, cell) in COLUMNS {
        let is_wanted = match title {
            "starts" => rows.iter().any(|row| row.job.end.runs != Some(1)),
            "run" => rows.iter().any(|row| row.earlier.is_some()),
            "command" => rows.iter().any(has_command),
            _ => true,
        };
        let column = column(title, 0, &rows, cell);
        if is_wanted && column.says_something() {
            columns.push(column);
        }
    }
    Table { columns }
}

fn name_column(rows: &[JobRow<'_>]) -> TableColumn {
    TableColumn::text("job", 0, rows, |row| row.job.name.clone())
}

fn column(
    title: &str,
    expendable: u8,
    rows: &[JobRow<'_>],
    cell: fn(&JobRow<'_>) -> TableCell,
) -> TableColumn {
    if WORDS.contains(&title) {
        TableColumn::text(title, expendable, rows, cell)
    } else {
        TableColumn::number(title, expendable, rows, cell)
    }
}

/// The jobs with a row of the brief table, and the number of others.
fn shown_jobs(record: &RunRecord) -> (Vec<&JobRecord>, usize) {
    let mut shown: Vec<&JobRecord> = record.jobs.iter().filter(|job| has_row(job)).collect();
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
fn has_row(job: &JobRecord) -> bool {
    !job.failed() && (job.end.exit.is_some() || job.end.start_s.is_some())
}

fn time_cell(time_s: Option<f64>) -> TableCell {
    time_s.map(seconds).into()
}

fn end_cell(row: &JobRow<'_>) -> TableCell {
    let job = row.job;
    let text = job.end_text();
    let failed = TableCell::toned(&format!("failed: {text}"), CellTone::Bad);
    match job.end.exit {
        _ if job.end.timed_out => failed,
        Some(0) => text.into(),
        Some(_) if job.end.interrupted => format!("interrupted: {text}").into(),
        Some(_) => failed,
        None => TableCell::toned(&text, CellTone::Bad),
    }
}

fn slowdown(job: &JobRecord) -> Option<String> {
    match (job.slowdown, job.slowdown_estimate) {
        (Some(slowdown), _) => Some(decimal(slowdown, 2)),
        (None, Some(estimate)) => Some(format!("~{}", decimal(estimate, 2))),
        (None, None) => None,
    }
}

/// The time from a job's arrival to its start. It is not known of a job that was retried.
fn queued_s(job: &JobRecord) -> Option<f64> {
    let queued_s = job.end.start_s? - job.arrival_s;
    (job.end.runs <= Some(1)).then_some(queued_s)
}

fn was_long_queued(row: &JobRow<'_>) -> bool {
    let metrics = &row.record.metrics;
    let turnaround_s = metrics.get("turnaround_s").copied().unwrap_or(0.0);
    queued_s(row.job).is_some_and(|queued_s| queued_s > LEAST_QUEUED * turnaround_s)
}

/// The progress, if it says more than the CPU time.
fn progress(row: &JobRow<'_>) -> Option<String> {
    let about = match row.job.end.progress_basis {
        Some(ProgressBasis::Ipc | ProgressBasis::Trace) => "",
        Some(ProgressBasis::CpuTime) => return None,
        _ => "~",
    };
    let progress = seconds(row.job.end.progress? * row.record.quantum_s);
    Some(format!("{about}{progress}"))
}

fn has_command(row: &JobRow<'_>) -> bool {
    let command = row.job.command.as_ref();
    command.is_some_and(|command| *command != row.job.name)
}
