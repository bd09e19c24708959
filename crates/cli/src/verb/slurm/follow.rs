//! Waits for the end of a batch job.

use super::Batch;
use crate::exit::Exit;
use crate::input::{quote, told};
use crate::stderr::{self, say};
use anyhow::{Result, bail};
use cosched_report::{RunRecord, count, visible};
use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

/// The time between two questions to Slurm grows up to this while the job's state stays: many users may wait for its one
/// controller.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_millis(250);

/// States in which a job stays.
const ENDED: [&str; 10] = [
    "COMPLETED",
    "FAILED",
    "CANCELLED",
    "TIMEOUT",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "BOOT_FAIL",
    "DEADLINE",
    "PREEMPTED",
    "REVOKED",
];

/// Shows the state of the job until it has ended, and returns how the run did.
///
/// # Errors
/// Slurm does not know the job any more.
pub fn until_end(id: &str, batch: &Batch, total: Option<usize>, quiet: bool) -> Result<Exit> {
    let in_place = std::io::stderr().is_terminal();
    let mut pause = FIRST_PAUSE;
    let mut last_state = String::new();
    let mut shown = String::new();
    loop {
        if let Some(job) = ask(id)? {
            let is_over = ENDED.contains(&field(&job, "JobState"));
            let mut line = state(id, &job);
            if line != last_state {
                pause = FIRST_PAUSE;
                last_state.clone_from(&line);
            }
            if in_place || is_over {
                line += &progress(batch, total);
            }
            if !quiet && line != shown {
                show(&line, in_place && !is_over);
                shown = line;
            }
            if is_over {
                return Ok(exit(&job, batch, quiet));
            }
        }
        sleep(pause);
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What Slurm knows of the job; `None` if its controller does not answer now.
pub(super) fn ask(id: &str) -> Result<Option<String>> {
    let output = Command::new("scontrol")
        .args(["show", "job", "-o", id])
        .output()?;
    if output.status.success() {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return Ok(Some(text));
    }
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("Invalid job id") {
        bail!("Slurm does not know job {id} any more, so its end is not known");
    }
    Ok(None)
}

/// A field of a job, as scontrol prints it: `NAME=VALUE`, up to a blank.
pub(super) fn field<'a>(job: &'a str, name: &str) -> &'a str {
    let mut words = job.split_whitespace();
    let value = words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    value.unwrap_or_default()
}

fn state(id: &str, job: &str) -> String {
    let state = field(job, "JobState");
    let [reason, start, nodes] =
        ["Reason", "StartTime", "NodeList"].map(|name| visible(field(job, name)));
    match state {
        // Slurm delays a job that it starts again.
        "PENDING" if reason == "BeginTime" => {
            format!("job {id}: {state} ({reason}), waits until {start}")
        }
        "PENDING" => format!("job {id}: {state} ({reason})"),
        _ => format!("job {id}: {state} on {nodes}"),
    }
}

/// How many jobs of the run have ended, with the attempts that failed.
fn progress(batch: &Batch, total: Option<usize>) -> String {
    let log = std::fs::read(&batch.joblog).unwrap_or_default();
    let lines = log.iter().filter(|byte| **byte == b'\n').count();
    let ended = lines.saturating_sub(1) as u64;
    match total {
        Some(total) => format!(", {ended} of {} ended", count(total as u64, "job")),
        None => format!(", {} ended", count(ended, "job")),
    }
}

fn show(line: &str, in_place: bool) {
    let line = format!("cosched: {line}");
    if in_place {
        stderr::write(&format!("\r\u{1b}[K{line}"));
    } else if std::io::stderr().is_terminal() {
        say(format_args!("\r\u{1b}[K{line}"));
    } else {
        say(line);
    }
}

/// How the run ended. Slurm prints its exit code and its signal. Success is what the record says: Slurm reports it also of a
/// script that never started.
fn exit(job: &str, batch: &Batch, quiet: bool) -> Exit {
    let code = field(job, "ExitCode");
    let (code, signal) = code.split_once(':').unwrap_or((code, ""));
    let state = field(job, "JobState");
    let exit = match (code.parse(), signal.parse()) {
        (Ok(0), Ok(0)) if state == "COMPLETED" => match no_success(batch) {
            None => return Exit::Success,
            Some(why) => {
                say(format_args!("cosched: {why}"));
                Exit::Failure
            }
        },
        (Ok(0), Ok(0)) => Exit::Failure,
        (Ok(code), Ok(0)) => Exit::OnlyJob(code),
        (_, Ok(signal)) => Exit::Signal(signal),
        _ => Exit::Failure,
    };
    if !quiet {
        let script = quote(batch.script().as_os_str().as_bytes());
        say(format_args!(
            "cosched: output in {}; `sbatch {script}` resumes the run",
            told(batch.output()),
        ));
    }
    exit
}

/// Why the run was no success, by its record; `None` if it was one.
fn no_success(batch: &Batch) -> Option<String> {
    let file = batch.record();
    // A network file system then looks for new files.
    let _ = std::fs::read_dir(&batch.folder);
    let text = match std::fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) => {
            let file = told(file);
            return Some(format!(
                "Slurm reports success, and the run left no record ({file}: {error}): its script may not have started"
            ));
        }
    };
    let record = match RunRecord::from_json(&text) {
        Ok(record) => record,
        Err(error) => return Some(format!("{}: {error}", told(file))),
    };
    let missing = record.totals.failed + record.totals.unfinished;
    // Under --halt jobs may be left out.
    if missing == 0 || record.finished_by == "halt" {
        return None;
    }
    let jobs = count(missing as u64, "job");
    Some(format!(
        "Slurm reports success, and the record says that {jobs} failed or did not end"
    ))
}
