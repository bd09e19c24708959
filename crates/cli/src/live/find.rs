//! The live runs with their states, and the run that a user means.

use crate::exit::usage;
use crate::input::told;
use crate::run_files::{RECORD, SERIES, open_series};
use anyhow::Result;
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, RunFate, fate_of, live_runs};
use cosched_report::{RunLine, RunStatus};
use std::fmt::Display;
use std::io::ErrorKind;
use std::path::Path;

/// A live run.
pub struct LiveRunStatus {
    pub run: LiveRun,
    /// Its state; or why there is none.
    pub status: Result<Box<RunStatus>, String>,
}

impl LiveRunStatus {
    fn of(run: LiveRun) -> LiveRunStatus {
        let status = state_of(&run);
        LiveRunStatus { run, status }
    }

    pub fn line(&self) -> RunLine<'_> {
        RunLine {
            pid: self.run.pid,
            status: self.status.as_deref().map_err(String::as_str),
        }
    }
}

/// The live runs with their states; those of other containers, which may be dead, come last.
pub fn known(root: &Root) -> Vec<LiveRunStatus> {
    let mut runs = live_runs(root);
    runs.sort_by_key(|run| !run.is_seen);
    runs.into_iter().map(LiveRunStatus::of).collect()
}

/// Reads the state of a run.
///
/// # Errors
/// Why it can't be read.
pub fn state_of(run: &LiveRun) -> Result<Box<RunStatus>, String> {
    if !run.has_status() {
        return Err(why_no_state(run));
    }
    let (text, age_s) = run.status().map_err(|error| match error.kind() {
        ErrorKind::NotFound => why_no_state(run),
        _ => unreadable(error),
    })?;
    let mut status = RunStatus::from_json(&text).map_err(unreadable)?;
    status.set_age(age_s);
    Ok(Box::new(status))
}

fn unreadable(error: impl Display) -> String {
    format!("its state can't be read: {error}")
}

fn why_no_state(run: &LiveRun) -> String {
    let user = rustix::process::geteuid().as_raw();
    if user != 0 && user != run.owner {
        format!("only user {} and root can watch it", run.owner)
    } else if !run.is_seen {
        "live or killed: its state can't be seen from here, as in another container".to_owned()
    } else {
        "no state to show: it is starting, waits for jobs of a killed run, or is ending".to_owned()
    }
}

/// The live run that `name` means: by its identity, its process, or its log folder.
///
/// # Errors
/// No run is meant.
pub fn meant(root: &Root, name: &str) -> Result<LiveRunStatus> {
    let of_folder = run_of_folder(Path::new(name));
    for run in live_runs(root) {
        let id = &run.run;
        let is_process = run.pid.to_string() == name;
        if is_process || id == name || of_folder.as_ref() == Some(id) {
            return Ok(LiveRunStatus::of(run));
        }
    }
    Err(not_live(root, name, of_folder))
}

/// The live run that `name` means, or the only one; `None` if there is none. Another container's counts if there is no other.
///
/// # Errors
/// No run is meant, or several could be.
pub fn chosen(root: &Root, name: Option<&str>) -> Result<Option<LiveRunStatus>> {
    if let Some(name) = name {
        return meant(root, name).map(Some);
    }
    let mut runs = known(root);
    runs.retain(|known| known.run.has_status());
    if runs.iter().any(|known| known.run.is_seen) {
        runs.retain(|known| known.run.is_seen);
    }
    if runs.len() > 1 {
        let pids: Vec<String> = runs.iter().map(|known| known.run.pid.to_string()).collect();
        return Err(usage(format!(
            "several runs are live: name one of the processes {}; `cosched status` shows them",
            pids.join(", ")
        )));
    }
    Ok(runs.pop())
}

/// The run that a log folder is of.
fn run_of_folder(folder: &Path) -> Option<String> {
    let series = open_series(&folder.join(SERIES)).ok()?;
    series.header().run_id.clone()
}

/// Why a name means no live run; `run` is the run that its folder is of.
fn not_live(root: &Root, name: &str, run: Option<String>) -> anyhow::Error {
    let shown = told(name);
    let Some(run) = run else {
        return usage(format!(
            "no run {shown} is live; `cosched status` lists the live runs"
        ));
    };
    usage(if fate_of(root, &run) == RunFate::Alive {
        format!(
            "run {shown} is live, but its state is elsewhere: it was started with another XDG_RUNTIME_DIR or COSCHED_RUNS_DIR"
        )
    } else if Path::new(name).join(RECORD).exists() {
        format!("run {shown} has ended; `cosched report` shows it")
    } else {
        format!(
            "run {shown} was killed; `cosched report` shows it, and `cosched thaw` what it left behind"
        )
    })
}
