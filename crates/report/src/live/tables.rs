//! Running batches, and the jobs of one of them, in words, for `cosched status`.

use super::{JobNow, JobState, Status};
use crate::table::{Column, lines};
use crate::text::{bytes, clip, clock, count, seconds, visible, wrap};

/// Shown in place of an absent value.
const NONE: &str = "-";
/// Maximum number of jobs shown.
const MAX_ROWS: usize = 60;
/// Maximum number of reasons to wait shown.
const MAX_REASONS: usize = 10;
/// A run and its state.
#[derive(Clone, Copy, Debug)]
pub struct RunLine<'a> {
    /// Its process.
    pub pid: i32,
    /// Its state; or why there is none.
    pub status: Result<&'a Status, &'a str>,
}

/// A column of a table of `T`.
struct Shown<T> {
    title: &'static str,
    right: bool,
    /// Columns with higher numbers go first where there is little room; 0 stays.
    expendable: u8,
    cell: fn(&T) -> String,
}

impl<T> Shown<T> {
    fn of(&self, rows: &[T]) -> Column {
        Column {
            title: self.title.into(),
            right: self.right,
            expendable: self.expendable,
            cells: rows.iter().map(self.cell).collect(),
        }
    }
}

fn left<T>(title: &'static str, expendable: u8, cell: fn(&T) -> String) -> Shown<T> {
    Shown {
        title,
        right: false,
        expendable,
        cell,
    }
}

fn right<T>(title: &'static str, expendable: u8, cell: fn(&T) -> String) -> Shown<T> {
    Shown {
        title,
        right: true,
        expendable,
        cell,
    }
}

type RunRow<'a> = (i32, &'a Status);

/// Return the columns of the table of runs.
fn run_columns<'a>() -> [Shown<RunRow<'a>>; 9] {
    [
        left("RUN", 0, |(pid, _)| pid.to_string()),
        left("POLICY", 2, |(_, status)| status.run.policy.clone()),
        right("DONE", 0, |(_, status)| {
            format!("{}/{}", status.totals.done, status.totals.jobs)
        }),
        right("FAILED", 5, |(_, status)| status.totals.failed.to_string()),
        right("RUNNING", 4, |(_, status)| {
            status.totals.running.to_string()
        }),
        right("WAITING", 6, |(_, status)| {
            status.totals.waiting.to_string()
        }),
        right("ELAPSED", 3, |(_, status)| clock(status.elapsed_s)),
        right("LEFT", 0, |(_, status)| {
            status.totals.left_s.map_or("--:--".to_owned(), clock)
        }),
        left("FOLDER", 1, |(_, status)| {
            or_none(status.run.folder.clone())
        }),
    ]
}

/// A job, and the time of the state in seconds.
type JobRow<'a> = (&'a JobNow, f64);

/// Return the columns of the table of jobs.
fn job_columns<'a>() -> [Shown<JobRow<'a>>; 12] {
    [
        left("JOB", 0, |(job, _)| job.name.clone()),
        left("STATE", 0, |(job, _)| state_text(job)),
        left("CPU", 6, |(job, _)| or_none(job.cpus.clone())),
        right("RAN", 1, |(job, _)| figure(job, "ran_s", seconds)),
        right("CPU TIME", 9, |(job, _)| figure(job, "cpu_s", seconds)),
        right("IPC", 8, |(job, _)| {
            figure(job, "ipc", |ipc| format!("{ipc:.2}"))
        }),
        right("GB/s", 7, |(job, _)| or_none(bandwidth_text(job))),
        right("DONE", 2, |(job, _)| or_none(job.share_text())),
        right("SLOWDOWN", 4, |(job, _)| slowdown_text(job)),
        right("MEMORY", 5, |(job, _)| figure(job, "resident_bytes", bytes)),
        right("LEFT", 2, |(job, _)| or_none(job.left_text())),
        left(WAITS, 3, |(job, now_s)| waits_text(job, *now_s)),
    ]
}

/// The column that says for how long a job waits, and why.
const WAITS: &str = "WAITS";

/// Render a table of jobs, the titles first. Columns in which no job has a value are left out.
pub fn job_table(jobs: &[&JobNow], now_s: f64, width: usize, has_waits: bool) -> Vec<String> {
    let rows: Vec<JobRow<'_>> = jobs.iter().map(|job| (*job, now_s)).collect();
    let mut columns = Vec::new();
    for shown in job_columns() {
        let column = shown.of(&rows);
        let is_known = rows.is_empty() || column.cells.iter().any(|cell| cell != NONE);
        if is_known && (has_waits || column.title != WAITS) {
            columns.push(column);
        }
    }
    lines(columns, width)
}

/// Return for how long a job has waited, and why.
fn waits_text(job: &JobNow, now_s: f64) -> String {
    let waited = job.waited_s(now_s).map(seconds);
    let reason = job.reason.as_ref().map(|reason| reason.why.clone());
    let parts: Vec<String> = waited.into_iter().chain(reason).collect();
    parts.join(" ")
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

fn figure(job: &JobNow, name: &str, show: fn(f64) -> String) -> String {
    or_none(job.figures.get(name).map(|value| show(*value)))
}

fn bandwidth_text(job: &JobNow) -> Option<String> {
    let read = job.figures.get("read_bytes_per_s")?;
    let written = job.figures.get("written_bytes_per_s").unwrap_or(&0.0);
    Some(format!("{:.2}", (read + written) / 1e9))
}

/// Render a line for each run, and below them why others have no state.
pub fn runs_text(runs: &[RunLine<'_>], width: usize) -> String {
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for run in runs {
        match run.status {
            Ok(status) => {
                rows.push((run.pid, status));
                if let Some(old) = old_text(status) {
                    notes.push(format!("{}: {old}", run.pid));
                }
            }
            Err(why) => notes.push(format!("{}: {}", run.pid, visible(why))),
        }
    }
    let mut table = Vec::new();
    if !rows.is_empty() {
        let columns = run_columns().map(|column| column.of(&rows));
        table = lines(columns.into(), width);
    }
    joined(table.into_iter().chain(notes))
}

/// Return that a state is old: the run may be suspended.
fn old_text(status: &Status) -> Option<String> {
    let age = seconds(status.old_s()?);
    Some(format!("this state is {age} old; the run may be suspended"))
}

fn joined(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Render the state of a run: its totals, its CPUs, its jobs, and why they wait.
pub fn jobs_text(status: &Status, width: usize) -> String {
    let mut text = head_lines(status);
    text.push(cpus_text(status, width));
    let shown = status.jobs.len().min(MAX_ROWS);
    if shown > 0 {
        text.push(String::new());
        let jobs: Vec<&JobNow> = status.jobs[..shown].iter().collect();
        text.extend(job_table(&jobs, status.elapsed_s, width, false));
    }
    let left_out = status.left_out;
    let more = status.jobs.len() - shown + left_out.live + left_out.queued + left_out.ended;
    if more > 0 {
        text.push(format!(
            "and {} more (--format json has {})",
            count(more as u64, "job"),
            status.jobs.len()
        ));
    }
    text.extend(reason_lines(status, width));
    joined(text)
}

fn head_lines(status: &Status) -> Vec<String> {
    let Status { run, totals, .. } = status;
    let phase = if run.phase == "alone" {
        ", each job alone first,"
    } else {
        ""
    };
    let left = totals
        .left_text()
        .unwrap_or_else(|| "time left not known yet".to_owned());
    let old = old_text(status).map(|old| format!(" ({old})"));
    let mut text = vec![
        format!(
            "run {} of process {}: {}{phase} on CPUs {} of {}",
            run.run_id, run.pid, run.policy, run.cpus, run.machine
        ),
        format!(
            "{} elapsed, {left}{}",
            clock(status.elapsed_s),
            old.unwrap_or_default()
        ),
        totals.texts().join(", "),
    ];
    if let Some(folder) = &run.folder {
        text.push(format!("logs in {folder}"));
    }
    if let Some(joules) = status.energy.joules {
        text.push(format!("energy so far {joules:.0} J"));
    }
    let own = &status.own.figures;
    if let (Some(cpu_s), Some(share)) = (own.get("cpu_s"), own.get("cpu_share")) {
        text.push(format!(
            "cosched itself: {} of CPU time, {:.2} % of a CPU",
            seconds(*cpu_s),
            share * 100.0
        ));
    }
    text
}

/// Return why jobs wait, after an empty line.
fn reason_lines(status: &Status, width: usize) -> Vec<String> {
    let jobs = status.jobs.iter();
    let reasons: Vec<String> = jobs
        .filter_map(|job| reason(job, status.elapsed_s))
        .collect();
    let mut text = Vec::new();
    if !reasons.is_empty() {
        text.push(String::new());
    }
    for reason in reasons.iter().take(MAX_REASONS) {
        text.extend(wrap(reason, width));
    }
    if let more @ 1.. = reasons.len().saturating_sub(MAX_REASONS) {
        text.push(format!("and {} more that wait", count(more as u64, "job")));
    }
    text
}

/// Return the job on each CPU, clipped to a line.
fn cpus_text(status: &Status, width: usize) -> String {
    clip(&format!("CPUs: {}", status.holders_text()), width)
}

/// Return the slowdown of a job; a lower bound where only CPU time is known.
fn slowdown_text(job: &JobNow) -> String {
    match job.progress_from.as_deref() {
        Some("cpu-time") => figure(job, "slowdown", |slowdown| format!("≥{slowdown:.2}")),
        _ => figure(job, "slowdown", |slowdown| format!("{slowdown:.2}")),
    }
}

/// Return the state of a job, or its end.
fn state_text(job: &JobNow) -> String {
    match (job.state, &job.exit_text) {
        (JobState::Ended, Some(_)) if job.exit == Some(0) => "done".to_owned(),
        (JobState::Ended, Some(exit)) => clip(exit, 24),
        (state, _) => state.text().to_owned(),
    }
}

/// Return why a job waits, for how long, and when its turn comes at the latest.
fn reason(job: &JobNow, now_s: f64) -> Option<String> {
    let reason = &job.reason.as_ref()?.text;
    let waited = job.waited_s(now_s).map(seconds);
    let waited = waited.map_or(String::new(), |waited| format!(" for {waited}"));
    let turn = job.turn_text(now_s).unwrap_or_default();
    Some(format!("{} waits{waited}: {reason}{turn}", job.name))
}
