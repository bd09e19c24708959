//! The table of jobs: those that failed first, then the most slowed-down.

use super::time_cell;
use crate::html::{HtmlCell, HtmlTable};
use crate::view::RunView;
use cosched_report::{Job, bytes, clip, decimal};

/// Maximum number of characters of a command.
const MAX_COMMAND: usize = 160;

/// A job and its run; the run is `None` for the one that is shown.
struct BatchJob<'a> {
    job: &'a Job,
    run: Option<&'a str>,
}

type Column = (&'static str, fn(&BatchJob<'_>) -> HtmlCell);

/// The columns that are shown if any job has a value.
const COLUMNS: [Column; 14] = [
    ("#time", |row| time_cell(row.job.time_s())),
    ("ended", exit_cell),
    ("#slowdown", |row| HtmlCell::number(row.job.slowdown, ratio)),
    ("#slowdown, estimated", |row| {
        HtmlCell::number(row.job.slowdown_estimate, |x| format!("~{}", ratio(x)))
    }),
    ("#turnaround", |row| time_cell(row.job.turnaround_s())),
    ("#alone", |row| time_cell(row.job.solo_s)),
    ("#started after", |row| {
        time_cell(
            row.job
                .end
                .start_s
                .map(|start_s| start_s - row.job.arrival_s),
        )
    }),
    ("#longest wait", |row| time_cell(row.job.end.waited_max_s)),
    ("#CPU", |row| time_cell(row.job.end.cpu_s)),
    ("#expected", |row| {
        time_cell(row.job.expected.map(|expected| expected.time_s))
    }),
    ("#IPC", |row| HtmlCell::number(row.job.ipc, ratio)),
    ("#memory", memory_cell),
    ("#starts", |row| match row.job.end.runs {
        Some(runs) => HtmlCell::Text(runs.to_string()),
        None => HtmlCell::None,
    }),
    ("run", |row| HtmlCell::text(row.run.unwrap_or("this one"))),
];

fn name_cell(row: &BatchJob<'_>) -> HtmlCell {
    HtmlCell::text(&row.job.name)
}

fn ratio(x: f64) -> String {
    decimal(x, 2)
}

fn memory_cell(row: &BatchJob<'_>) -> HtmlCell {
    match row.job.end.max_rss_bytes {
        Some(size) => HtmlCell::Text(bytes(size as f64)),
        None => HtmlCell::None,
    }
}

fn command_cell(row: &BatchJob<'_>) -> HtmlCell {
    match &row.job.command {
        Some(command) => HtmlCell::text(clip(command, MAX_COMMAND)),
        None => HtmlCell::None,
    }
}

fn exit_cell(row: &BatchJob<'_>) -> HtmlCell {
    let job = row.job;
    let text = job.end_text();
    match job.end.exit {
        _ if job.end.timed_out => HtmlCell::Marked("bad", format!("failed: {text}")),
        Some(0) => HtmlCell::text(text),
        Some(_) if job.end.interrupted => HtmlCell::text(format!("interrupted: {text}")),
        Some(_) => HtmlCell::Marked("bad", format!("failed: {text}")),
        None => HtmlCell::Marked("bad", text),
    }
}

/// Return the jobs of the batch: those of this run and of the runs before it.
fn batch_jobs<'a>(run: &'a RunView<'_>) -> Vec<BatchJob<'a>> {
    let mut jobs = Vec::new();
    for job in &run.record.jobs {
        jobs.push(BatchJob { job, run: None });
    }
    for earlier in &run.record.earlier_jobs {
        let run = earlier.run_id.as_deref().unwrap_or("earlier");
        if let Some(job) = &earlier.job {
            let run = Some(run);
            jobs.push(BatchJob { job, run });
        }
    }
    jobs
}

/// Return the table.
pub(super) fn table(run: &RunView<'_>) -> String {
    let mut jobs = batch_jobs(run);
    if jobs.is_empty() {
        return String::new();
    }
    jobs.sort_by(|a, b| {
        let failed_first = b.job.failed().cmp(&a.job.failed());
        failed_first.then_with(|| a.job.worst_first(b.job))
    });
    let is_estimated = jobs.iter().all(|row| row.job.slowdown.is_none());
    let mut columns: Vec<Column> = vec![("job", name_cell)];
    columns.extend(COLUMNS.iter().filter(|column| has_news(column, &jobs)));
    if !is_estimated {
        columns.retain(|(name, _)| *name != "#slowdown, estimated");
    }
    if jobs.iter().any(has_command) {
        columns.push(("command", command_cell));
    }
    let mut rows = Vec::new();
    for job in &jobs {
        rows.push(columns.iter().map(|(_, cell)| cell(job)).collect());
    }
    let caption = if is_estimated {
        "failed jobs first, then the longest turnaround"
    } else {
        "failed jobs first, then the greatest slowdown"
    };
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let table = HtmlTable {
        caption,
        ..HtmlTable::new(&names, rows)
    };
    table.html()
}

/// Whether a column says something about any job.
fn has_news((name, cell): &Column, jobs: &[BatchJob<'_>]) -> bool {
    match *name {
        "#starts" => jobs.iter().any(|row| row.job.end.runs != Some(1)),
        "run" => jobs.iter().any(|row| row.run.is_some()),
        _ => jobs.iter().any(|row| !matches!(cell(row), HtmlCell::None)),
    }
}

fn has_command(row: &BatchJob<'_>) -> bool {
    let command = row.job.command.as_ref();
    command.is_some_and(|command| *command != row.job.name)
}
