//! The jobs that failed: how, their commands, and the last lines of their error output.

use super::SummaryOptions;
use crate::record::{JobRecord, RunRecord};
use crate::text::{clip, grouped, seconds, visible};

/// Maximum number of failures with lines of their own.
const MAX_FAILURES: usize = 10;

/// Return a line for each failure, and another for its last error if that has not been shown.
pub(super) fn failures(record: &RunRecord, options: &SummaryOptions) -> Vec<String> {
    let failed = record.jobs.iter().filter(|job| job.failed());
    let all: Vec<&JobRecord> = failed.filter(|job| !job.end.interrupted).collect();
    let mut lines = Vec::new();
    for job in all.iter().take(MAX_FAILURES) {
        lines.push(failure(job));
        let error = job.last_error().filter(|_| options.last_errors);
        lines.extend(error.map(|line| format!("    {}", visible(&line))));
    }
    if all.len() > MAX_FAILURES {
        let more = grouped((all.len() - MAX_FAILURES) as u64);
        lines.push(format!("and {more} more failed"));
    }
    for line in &mut lines {
        *line = clip(line, options.width);
    }
    lines
}

fn failure(job: &JobRecord) -> String {
    let name = visible(&job.name);
    let what = if job.end.ended_by_user {
        "cancelled"
    } else {
        "failed"
    };
    let mut text = format!("{what}: {name} ({})", end_of(job));
    let command = job.command.as_deref().map(visible).unwrap_or_default();
    // A name that is the whole command says enough.
    if !command.is_empty() && command != name {
        text += &format!(": {command}");
    }
    text
}

/// How a job ended, and after how long.
fn end_of(job: &JobRecord) -> String {
    let end = visible(&job.end.text());
    match job.time_s() {
        Some(time_s) => format!("{end} after {}", seconds(time_s)),
        None => end,
    }
}
