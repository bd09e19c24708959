//! `cosched status`: the live runs, what their jobs do, and the queue.

use super::queue::table::QueueReport;
use super::run::Format;
use crate::input::told;
use crate::live::{LiveRunStatus, known, last_run, look_at_jobs, meant};
use crate::offer;
use crate::print::print;
use crate::run_files::{SERIES, open_series};
use anyhow::Result;
use clap::Args;
use clap_complete::engine::ArgValueCandidates;
use cosched_linux::LiveRun;
use cosched_linux::attached::sessions;
use cosched_linux::orphans::{Orphan, orphans};
use cosched_linux::root::Root;
use cosched_report::{
    AttachedNow, RunLine, RunStatus, count, jobs_text, runs_text, visible, visible_json,
};
use cosched_run::terminal_width;
use serde::Serialize;
use std::process::ExitCode;

/// Columns where the output is no terminal.
const WIDE: usize = 120;

/// Show live runs, or the jobs of one of them, and the queue
///
/// It shows the jobs, the CPUs and the reasons to wait of RUN, or of the only live run. For several runs it shows a line each.
/// SLOWDOWN is the time since a job's arrival, divided by its time alone. Time in the queue counts. Only root sees other
/// users' runs.
#[derive(Args)]
pub struct StatusArgs {
    /// The run: its process number, its identity (COSCHED_RUN of its jobs), or its log folder
    #[arg(value_name = "RUN", add = ArgValueCandidates::new(offer::runs))]
    run: Option<String>,

    /// Also show the jobs of the queue that are over
    #[arg(long, conflicts_with = "run")]
    all: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text, value_name = "FORMAT")]
    format: Format,
}

pub fn run(args: StatusArgs) -> Result<ExitCode> {
    let root = Root::default();
    let mut runs = match &args.run {
        Some(name) => vec![meant(&root, name)?],
        None => known(&root),
    };
    for run in &mut runs {
        if let Ok(status) = &mut run.status {
            look_at_jobs(&root, status);
        }
    }
    let queue = queue(&args);
    if args.format == Format::Json {
        let runs = Runs {
            schema: RUNS_SCHEMA,
            runs: runs.iter().map(OneRun::of).collect(),
            queue: queue.as_ref().and_then(|queue| queue.as_ref().ok()),
            queue_absent: queue.as_ref().and_then(|queue| queue.as_ref().err()),
        };
        let text = visible_json(&serde_json::to_string(&runs)?);
        return print(text + "\n");
    }
    let width = terminal_width(std::io::stdout()).unwrap_or(WIDE);
    let lines: Vec<RunLine<'_>> = runs.iter().map(LiveRunStatus::line).collect();
    let seen = queue.as_ref().and_then(|queue| queue.as_ref().ok());
    let worker = seen.and_then(QueueReport::worker_pid);
    let of_queue = lines.iter().find(|line| Some(line.pid) == worker);
    let of_queue = of_queue.and_then(|line| line.status.ok());
    let is_alone = lines.len() == 1;
    let mut text = match (&lines[..], of_queue, seen) {
        ([], ..) => "no run is live\n".to_owned(),
        // One table has what the service knows and what the run knows of a job.
        (_, Some(status), Some(queue)) if is_alone => queue.text_with_run(status, width),
        (
            [
                RunLine {
                    status: Ok(status), ..
                },
            ],
            ..,
        ) => jobs_text(status, width),
        _ => runs_text(&lines, width),
    };
    if args.run.is_none() {
        text += &left_text(&orphans(&root), seen.is_some());
        text += &sessions_text(&sessions(&root));
    }
    match &queue {
        Some(Ok(_)) if is_alone && of_queue.is_some() => {}
        Some(Ok(queue)) => text += &format!("\n{}", queue.text(of_queue, width)),
        Some(Err(why)) => text += &format!("\nqueue: {}\n", visible(why)),
        None => {}
    }
    print(text)
}

/// The queue, or why it can't be seen; `None` where it is not asked for, or where there never was one.
fn queue(args: &StatusArgs) -> Option<Result<QueueReport, String>> {
    if args.run.is_some() {
        return None;
    }
    match QueueReport::read(args.all) {
        Ok(queue) => Some(Ok(queue)),
        Err(why) => Some(Err(why?)),
    }
}

/// What killed runs have left. The next start of the service takes the jobs of the queue over, unless they are of a database
/// that was moved away: a service that lives does not know those.
fn left_text(orphans: &[Orphan], is_served: bool) -> String {
    let user = rustix::process::geteuid().as_raw();
    let (of_queue, others): (Vec<&Orphan>, Vec<&Orphan>) = orphans
        .iter()
        .partition(|orphan| orphan.has_reaper && orphan.user == user);
    let mut text = String::new();
    if !of_queue.is_empty() {
        let jobs = count(of_queue.len() as u64, "job");
        let what = if is_served {
            "and the service does not follow them; `cosched thaw` lists them"
        } else {
            "without its service; `cosched serve` takes them over"
        };
        text += &format!("{jobs} of a queue run on {what}\n");
    }
    if others.is_empty() {
        return text;
    }
    let jobs = count(others.len() as u64, "job");
    let resume = resume_text(&others).unwrap_or_default();
    text += &format!(
        "a killed run left {jobs}; `cosched thaw` thaws and lists them, `cosched thaw --kill` asks and ends them\n{resume}"
    );
    text
}

/// How to continue the run that was started last in this folder, if some of the orphans are of it.
fn resume_text(orphans: &[&Orphan]) -> Option<String> {
    let folder = last_run().ok()?;
    let series = open_series(&folder.join(SERIES)).ok()?;
    let run = series.header().run_id.clone()?;
    let folder = told(&folder);
    orphans.iter().any(|orphan| orphan.run == run).then(|| {
        format!(
            "`cosched run --resume={folder} --orphans wait` awaits them, then runs them again and what is left\n"
        )
    })
}

/// The sessions that observe programs which run already.
fn sessions_text(sessions: &[LiveRun]) -> String {
    let mut text = String::new();
    for session in sessions {
        let read = session.status().ok();
        let now = read.and_then(|(text, _)| serde_json::from_slice::<AttachedNow>(&text).ok());
        let selected = now.map_or_else(String::new, |now| visible(&now.selected.join(" ")));
        let pid = session.pid;
        text += &format!(
            "process {pid} observes {selected}; `cosched top {pid}` shows who disturbs whom\n"
        );
    }
    text
}

/// The schema of all runs that go on.
const RUNS_SCHEMA: &str = "cosched.runs-now/1";

#[derive(Serialize)]
struct Runs<'a> {
    schema: &'static str,
    runs: Vec<OneRun<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a QueueReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_absent: Option<&'a String>,
}

#[derive(Serialize)]
struct OneRun<'a> {
    run_id: &'a str,
    pid: i32,
    user: u32,
    status: Option<&'a RunStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status_absent: Option<&'a str>,
}

impl OneRun<'_> {
    fn of(known: &LiveRunStatus) -> OneRun<'_> {
        let status = known.status.as_ref();
        OneRun {
            run_id: &known.run.run,
            pid: known.run.pid,
            user: known.run.owner,
            status: status.ok().map(|status| &**status),
            status_absent: status.err().map(String::as_str),
        }
    }
}
