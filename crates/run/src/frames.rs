//! What a run tells other programs of itself: the frames of `--frames`, some of which are the lines of `--progress-to`.

use super::console::{Order, Showing};
use super::options::{RunOptions, Show, SoloSource};
use super::platform::View;
use super::screen::Screen;
use crate::exit::usage;
use crate::stderr;
use anyhow::{Context as _, Result};
use cosched_core::{Exit, Nanos, TaskResult, TaskSpec};
use cosched_linux::identity::host_name;
use cosched_linux::own_run;
use cosched_linux::root::Root;
use cosched_nodes::protocol::{Frame, JobEnd, JobName, Node, Progress};
use cosched_report::{JobInfo, LiveProgress, Notice, exit_status};
use std::path::Path;

/// Least time between two frames about the whole run.
const EVERY: Nanos = Nanos::from_ms(1_000);

/// The files that the coordinator keeps of a node, in their order.
const FILES: [&str; 2] = ["run.json", "series.jsonl"];

/// Refuses what does not fit a worker.
///
/// # Errors
/// The options have something of it.
pub(crate) fn check_options(options: &RunOptions) -> Result<()> {
    let given = [
        ("--on", options.is_simulated()),
        ("--resume", options.resume.is_some()),
        ("--retries", options.limits.attempts > 1),
        ("--solo", options.solo != SoloSource::Nothing),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(usage(format!("{option} has no meaning with --frames"))),
        None => Ok(()),
    }
}

/// Starts the console that writes frames, with the first one. `jobs` run at once, or any number if it is 0.
///
/// # Errors
/// There is no console.
pub(crate) fn open(
    screen: &Screen,
    options: &RunOptions,
    view: &View,
    jobs: usize,
    folder: &Path,
) -> Result<()> {
    let as_they_come = matches!(options.output.show, Some(Show::Live | Show::Tag));
    let showing = Showing {
        run: std::process::id(),
        output: Some(if as_they_come {
            Show::Live
        } else {
            Show::Group
        }),
        keep_order: false,
        to_stderr: false,
        frames: true,
    };
    let opened = screen.try_console(&showing, folder);
    opened.context("cannot start the process that writes frames")?;
    let root = Root::default();
    let node = Node {
        host: host_name(&root).unwrap_or_default(),
        cpus: view.machine.cpus.len() as u32,
        jobs: (jobs > 0).then_some(jobs as u32),
        memory: view.memory,
        machine: view.machine.name.clone(),
        run_id: own_run(&root).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    screen.send(Order::Frame(Box::new(Frame::Node(node))));
    Ok(())
}

/// Sends the files of the run, which lie in `logs`, and waits until all frames are written.
pub(crate) fn close(screen: &Screen, logs: &Path) {
    for name in FILES {
        screen.send(Order::File {
            name: name.to_owned(),
            path: logs.join(name),
        });
    }
    if let Some(why) = screen.leave_console().lost {
        stderr::say(format_args!("cosched: frames are missing: {why}"));
    }
}

/// Makes frames of notices.
#[derive(Default)]
pub(crate) struct Events {
    /// When the next frame about the whole run is due.
    next: Nanos,
}

impl Events {
    /// The frame of a notice about a job or the whole run, if it has one.
    pub(crate) fn frame(&mut self, notice: &Notice<'_>) -> Option<Frame> {
        match notice {
            Notice::Started { task, info, at, .. } => Some(Frame::Start {
                job: job_name(task, *info),
                at_s: at.as_s(),
            }),
            Notice::Retried { result, info } => Some(Frame::Retry {
                job: job_name(&result.spec, *info),
                how: job_end(result),
                attempt: result.runs,
            }),
            Notice::Ended { result, info, .. } => Some(Frame::End {
                job: job_name(&result.spec, *info),
                how: job_end(result),
            }),
            Notice::Progress(now) => self.progress(now),
            Notice::Starting { .. }
            | Notice::Lost { .. }
            | Notice::Status(_)
            | Notice::Warning(_) => None,
        }
    }

    fn progress(&mut self, now: &LiveProgress) -> Option<Frame> {
        if now.elapsed < self.next {
            return None;
        }
        self.next = now.elapsed + EVERY;
        Some(Frame::Progress(Progress {
            total: now.total,
            done: now.done,
            failed: now.failed,
            running: now.running,
            waiting: now.waiting,
            queued: now.queued,
            elapsed_s: now.elapsed.as_s(),
            left_s: now.left.map(Nanos::as_s),
        }))
    }
}

fn job_name(spec: &TaskSpec, info: Option<&JobInfo>) -> JobName {
    JobName {
        job: info.map_or(u64::from(spec.id.0) + 1, |info| info.seq),
        id: info.and_then(|info| info.id.clone()),
        name: spec.name.clone(),
    }
}

fn job_end(result: &TaskResult) -> JobEnd {
    let exit = result.exit.as_ref();
    let used = &result.resources;
    JobEnd {
        exit: exit.and_then(exit_status),
        signal: match exit {
            Some(Exit::Signal { signal, .. }) => Some(*signal),
            _ => None,
        },
        exit_text: exit.map(Exit::to_string).unwrap_or_default(),
        timed_out: result.timed_out,
        start_s: result.started.map(Nanos::as_s),
        end_s: result.finished.map(Nanos::as_s),
        cpu_s: result.cpu_time.value().map(Nanos::as_s),
        user_s: used.user_time.value().map(Nanos::as_s),
        system_s: used.system_time.value().map(Nanos::as_s),
        max_rss_bytes: used.max_rss.value(),
        read_bytes: used.read_bytes.value(),
        written_bytes: used.written_bytes.value(),
    }
}
