//! Running batches, and the jobs of one of them, in words, for `cosched status`.

use super::{JobNow, JobState, RunStatus};
use crate::table::{Table, TableColumn};
use crate::text::{bytes, clip, clock, count, seconds, visible, wrap};

/// Maximum number of jobs shown.
const MAX_ROWS: usize = 60;
/// Maximum number of reasons to wait shown.
const MAX_REASONS: usize = 10;
/// Which line has the numbers of jobs by state.
pub(super) const NUMBERS_LINE: usize = 2;
/// A run and its state.
#[derive(Clone, Copy, Debug)]
pub struct RunLine<'a> {
    /// Its process.
    pub pid: i32,
    /// Its state; or why there is none.
    pub status: Result<&'a RunStatus, &'a str>,
}

/// Render a table of jobs, the titles first. Columns in which no job has a value are left out.
pub fn live_job_table(jobs: &[&JobNow], now_s: f64, width: usize, has_waits: bool) -> Vec<String> {
    let known: Vec<Option<&JobNow>> = jobs.iter().map(|job| Some(*job)).collect();
    let mut columns = vec![
        TableColumn::text("JOB", 0, jobs, |job| job.name.clone()),
        TableColumn::text("STATE", 0, jobs, |job| state_text(job)),
        cpu_column(&known),
        TableColumn::number("RAN", 1, jobs, |job| job.end.ran_s.map(seconds)),
    ];
    columns.extend(measured_columns(&known));
    if has_waits {
        columns.push(TableColumn::text("WAITS", 3, jobs, |job| {
            waits_text(job, now_s)
        }));
    }
    columns.retain(|column| jobs.is_empty() || column.has_values());
    Table { columns }.lines(width)
}

/// Return the column with the CPUs of jobs.
pub(super) fn cpu_column(jobs: &[Option<&JobNow>]) -> TableColumn {
    TableColumn::text("CPU", 6, jobs, |job| job.and_then(|job| job.cpus.clone()))
}

/// Return the columns with what was measured of jobs, as far as they are known to the run.
pub(super) fn measured_columns(jobs: &[Option<&JobNow>]) -> Vec<TableColumn> {
    let number = |title: &'static str, expendable: u8, text: fn(&JobNow) -> Option<String>| {
        TableColumn::number(title, expendable, jobs, |job| job.and_then(text))
    };
    vec![
        number("CPU TIME", 9, |job| job.end.cpu_s.map(seconds)),
        number("IPC", 8, |job| figure(job, "ipc", two_decimals)),
        number("GB/s", 7, bandwidth_text),
        number("DONE", 2, JobNow::share_text),
        number("SLOWDOWN", 4, |job| figure(job, "slowdown", two_decimals)),
        number("MEMORY", 5, |job| figure(job, "resident_bytes", bytes)),
        number("LEFT", 2, JobNow::left_text),
    ]
}

/// Return for how long a job has waited, and why.
fn waits_text(job: &JobNow, now_s: f64) -> String {
    let mut parts = Vec::new();
    parts.extend(job.waited_s(now_s).map(seconds));
    parts.extend(job.reason.as_ref().map(|reason| reason.why.clone()));
    parts.join(" ")
}

fn two_decimals(value: f64) -> String {
    format!("{value:.2}")
}

fn figure(job: &JobNow, name: &str, show: fn(f64) -> String) -> Option<String> {
    job.figures.get(name).map(|value| show(*value))
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
                if status.paused {
                    notes.push(format!("{}: paused", run.pid));
                }
                if let Some(old) = old_text(status) {
                    notes.push(format!("{}: {old}", run.pid));
                }
            }
            Err(why) => notes.push(format!("{}: {}", run.pid, visible(why))),
        }
    }
    let mut text = Vec::new();
    if !rows.is_empty() {
        text = Table {
            columns: run_columns(&rows),
        }
        .lines(width);
    }
    text.extend(notes);
    joined(text)
}

/// Return the columns of the table of runs.
fn run_columns(runs: &[(i32, &RunStatus)]) -> Vec<TableColumn> {
    vec![
        TableColumn::text("RUN", 0, runs, |(pid, _)| pid.to_string()),
        TableColumn::text("POLICY", 2, runs, |(_, run)| run.run.policy.clone()),
        TableColumn::number("DONE", 0, runs, |(_, run)| done_text(run)),
        TableColumn::number("FAILED", 5, runs, |(_, run)| run.totals.failed.to_string()),
        TableColumn::number("RUNNING", 4, runs, |(_, run)| {
            run.totals.running.to_string()
        }),
        TableColumn::number("WAITING", 6, runs, |(_, run)| {
            run.totals.waiting.to_string()
        }),
        TableColumn::number("QUEUED", 7, runs, |(_, run)| run.totals.queued.to_string()),
        TableColumn::number("ELAPSED", 3, runs, |(_, run)| clock(run.elapsed_s)),
        TableColumn::number("LEFT", 0, runs, |(_, run)| left_text(run)),
        TableColumn::text("FOLDER", 1, runs, |(_, run)| run.run.folder.clone()),
    ]
}

fn done_text(status: &RunStatus) -> String {
    let totals = &status.totals;
    format!("{}/{}", totals.done, totals.jobs)
}

fn left_text(status: &RunStatus) -> String {
    match status.totals.left_s {
        Some(left_s) => clock(left_s),
        None => "--:--".to_owned(),
    }
}

/// Return that a run is suspended, or that its state is old.
fn old_text(status: &RunStatus) -> Option<String> {
    if status.suspended {
        let pid = status.run.pid;
        return Some(format!(
            "suspended; `fg` in its terminal, or `kill -CONT {pid}`, continues it"
        ));
    }
    let age = seconds(status.old_s()?);
    Some(format!("this state is {age} old"))
}

pub(super) fn joined(lines: Vec<String>) -> String {
    lines.join("\n") + "\n"
}

/// Render the state of a run: its totals, its CPUs, its jobs, and why they wait.
pub fn jobs_text(status: &RunStatus, width: usize) -> String {
    let mut text = head_lines(status);
    text.insert(NUMBERS_LINE, status.totals.texts().join(", "));
    text.push(clip(&format!("CPUs: {}", status.holders_text()), width));
    let shown = status.jobs.len().min(MAX_ROWS);
    if shown > 0 {
        text.push(String::new());
        let jobs: Vec<&JobNow> = status.jobs[..shown].iter().collect();
        text.extend(live_job_table(&jobs, status.elapsed_s, width, false));
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
    text.extend(reason_lines(status, &status.jobs, width));
    joined(text)
}

/// Return what stands above the table of jobs, without their numbers by state.
pub(super) fn head_lines(status: &RunStatus) -> Vec<String> {
    let RunStatus { run, totals, .. } = status;
    let phase = if run.phase == "alone" {
        ", each job alone first,"
    } else {
        ""
    };
    let left = match totals.left_text() {
        Some(left) => left,
        None => "time left not known yet".to_owned(),
    };
    let elapsed = clock(status.elapsed_s);
    let old = match old_text(status) {
        Some(old) => format!(" ({old})"),
        None => String::new(),
    };
    let paused = if status.paused { "paused, " } else { "" };
    let mut text = vec![
        format!(
            "run {} of process {}: {}{phase} on CPUs {} of {}",
            run.run_id, run.pid, run.policy, run.cpus, run.machine
        ),
        format!("{paused}{elapsed} elapsed, {left}{old}"),
    ];
    if let Some(folder) = &run.folder {
        text.push(format!("logs in {folder}"));
    }
    if let Some(joules) = status.energy.joules {
        text.push(format!("energy so far {joules:.0} J"));
    }
    let own = &status.own.figures;
    if let Some(cpu_s) = own.get("cpu_s") {
        text.push(format!("cosched itself: {} of CPU time", seconds(*cpu_s)));
    }
    text
}

/// Return why jobs wait, after an empty line.
pub(super) fn reason_lines(status: &RunStatus, jobs: &[JobNow], width: usize) -> Vec<String> {
    let mut reasons = Vec::new();
    // While all jobs are paused there is one reason, which stands above.
    let jobs = if status.paused { &[] } else { jobs };
    for job in jobs {
        reasons.extend(reason(job, status.elapsed_s));
    }
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

/// Return the state of a job, or its end.
fn state_text(job: &JobNow) -> String {
    match job.state {
        JobState::Ended if !job.end.failed() => "done".to_owned(),
        JobState::Ended => clip(&job.end.text(), 24),
        state => state.text().to_owned(),
    }
}

/// Return why a job waits, for how long, and when its turn comes at the latest.
fn reason(job: &JobNow, now_s: f64) -> Option<String> {
    let reason = &job.reason.as_ref()?.text;
    let waited = match job.waited_s(now_s) {
        Some(waited_s) => format!(" for {}", seconds(waited_s)),
        None => String::new(),
    };
    let turn = job.turn_text(now_s).unwrap_or_default();
    Some(format!("{} waits{waited}: {reason}{turn}", job.name))
}
