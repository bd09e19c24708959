//! `--frames`: a run whose standard output is frames for a coordinator.

use super::console::{Order, Showing};
use super::options::{RunOptions, Show, SoloTimes};
use super::platform::MachineView;
use super::screen::Screen;
use super::signals::Signals;
use crate::exit::usage;
use crate::stderr;
use anyhow::{Context as _, Result};
use cosched_linux::identity::host_name;
use cosched_linux::own_run;
use cosched_linux::root::Root;
use cosched_nodes::protocol::{FILES, NodeDescription, WorkerFrame};
use std::path::Path;

/// Refuses what does not fit a worker.
///
/// # Errors
/// The options have something of it.
pub(crate) fn check_options(options: &RunOptions) -> Result<()> {
    let given = [
        ("--on", options.is_simulated()),
        ("--resume", options.resume.is_some()),
        ("--retries", options.limits.attempts > 1),
        ("--solo", options.solo != SoloTimes::Nothing),
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
    view: &MachineView,
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
    let node = NodeDescription {
        host: host_name(&root).unwrap_or_default(),
        cpus: view.machine.cpus.len() as u32,
        jobs: (jobs > 0).then_some(jobs as u32),
        memory: view.memory,
        machine: view.machine.name.clone(),
        run_id: own_run(&root).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    screen.send(Order::Frame(Box::new(WorkerFrame::Node(node))));
    Ok(())
}

/// Sends the files of the run, which lie in `logs`, and waits until all frames are written, or a signal comes.
pub(crate) fn close(screen: &Screen, logs: &Path, signals: &Signals) {
    for name in FILES {
        screen.send(Order::File {
            name: name.to_owned(),
            path: logs.join(name),
        });
    }
    if let Some(why) = screen.leave_console(signals).lost {
        stderr::say(format_args!("cosched: frames are missing: {why}"));
    }
}
