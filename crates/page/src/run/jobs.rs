//! The table of jobs, those that were slowed down most first.

use super::time_cell;
use crate::html::{Cell, Table};
use crate::view::RunView;
use cosched_report::{Job, Record, decimal};

/// A job and the run that did it.
struct Done<'a> {
    job: &'a Job,
    run: Option<&'a str>,
}

/// The jobs of the batch: of this run and of those before it.
fn all<'a>(run: &'a RunView<'_>) -> Vec<Done<'a>> {
    let record: &Record = run.record;
    let mut all: Vec<Done<'_>> = record
        .jobs
        .iter()
        .map(|job| Done { job, run: None })
        .collect();
    for earlier in &record.earlier_jobs {
        let of_part = || {
            let part = run
                .earlier
                .iter()
                .find(|part| part.record.run_id == earlier.run_id)?;
            part.record
                .jobs
                .iter()
                .find(|job| job.name == earlier.name && job.command == earlier.command)
        };
        if let Some(job) = earlier.job.as_ref().or_else(of_part) {
            all.push(Done {
                job,
                run: Some(earlier.run_id.as_deref().unwrap_or("earlier")),
            });
        }
    }
    all
}

fn ratio(x: f64) -> String {
    decimal(x, 2)
}

/// How a job ended.
fn exit_cell(job: &Job) -> Cell {
    let text = job
        .exit_text
        .as_deref()
        .or(job.absent.why("exit"))
        .unwrap_or("did not end")
        .to_owned();
    let text = if job.timed_out {
        format!("{text}, timed out")
    } else {
        text
    };
    match job.exit {
        Some(0) if !job.timed_out => Cell::Text(text),
        _ => Cell::Marked("bad", text),
    }
}

/// The table.
pub(super) fn table(run: &RunView<'_>) -> String {
    let mut jobs = all(run);
    jobs.sort_by(|a, b| a.job.worst_first(b.job));
    let estimated = jobs.iter().all(|done| done.job.slowdown.is_none());
    type Show = fn(&Job) -> Cell;
    let columns: [(&str, Show, bool); 12] = [
        (
            "#slowdown",
            |job| Cell::number(job.slowdown, ratio),
            !estimated,
        ),
        (
            "#slowdown, estimated",
            |job| Cell::number(job.slowdown_estimate, |x| format!("~{}", ratio(x))),
            estimated,
        ),
        ("#turnaround", |job| time_cell(job.turnaround_s()), true),
        ("#alone", |job| time_cell(job.solo_s), true),
        (
            "#started after",
            |job| time_cell(job.start_s.map(|start| start - job.arrival_s)),
            true,
        ),
        ("#longest wait", |job| time_cell(job.waited_max_s), true),
        ("#CPU time", |job| time_cell(job.cpu_s), true),
        (
            "#expected",
            |job| time_cell(job.expected.map(|expected| expected.time_s)),
            true,
        ),
        ("#IPC", |job| Cell::number(job.ipc, ratio), true),
        (
            "#memory",
            |job| {
                Cell::number(
                    job.max_rss_bytes.map(|bytes| bytes as f64 / 1048576.0),
                    |mb| format!("{mb:.1} MiB"),
                )
            },
            true,
        ),
        (
            "#starts",
            |job| Cell::Number(job.runs.to_string(), job.runs.into()),
            true,
        ),
        ("ended", exit_cell, true),
    ];
    let is_worth = |show: Show| {
        jobs.iter()
            .any(|done| !matches!(show(done.job), Cell::None))
    };
    let mut shown: Vec<(&str, Show)> = columns
        .into_iter()
        .filter(|(_, show, wanted)| *wanted && is_worth(*show))
        .map(|(name, show, _)| (name, show))
        .collect();
    if jobs.iter().all(|done| done.job.runs == 1) {
        shown.retain(|(name, _)| *name != "#starts");
    }
    let has_earlier = jobs.iter().any(|done| done.run.is_some());
    let has_commands = jobs.iter().any(|done| {
        done.job
            .command
            .as_ref()
            .is_some_and(|command| *command != done.job.name)
    });
    let mut names = vec!["job".to_owned()];
    names.extend(shown.iter().map(|(name, _)| (*name).to_owned()));
    if has_earlier {
        names.push("run".to_owned());
    }
    if has_commands {
        names.push("command".to_owned());
    }
    let row = |done: &Done<'_>| {
        let mut cells = vec![Cell::text(&done.job.name)];
        cells.extend(shown.iter().map(|(_, show)| show(done.job)));
        if has_earlier {
            cells.push(Cell::text(done.run.unwrap_or("this one")));
        }
        if has_commands {
            cells.push(done.job.command.as_ref().map_or(Cell::None, |command| {
                Cell::text(cosched_report::clip(command, 160))
            }));
        }
        cells
    };
    let rows = jobs.iter().map(row).collect();
    let caption = if estimated {
        "the longest turnaround first"
    } else {
        "the greatest slowdown first"
    };
    Table {
        id: Some("jobs-table".to_owned()),
        caption,
        columns: names,
        rows,
    }
    .html()
}
