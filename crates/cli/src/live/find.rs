//! The live runs with their states, and the run that a user means.

use crate::exit::usage;
use crate::input::told;
use crate::run_files::{RECORD, SERIES, open_series};
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, live_runs};
use cosched_report::{RunLine, Status};
use std::path::Path;

/// A live run.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) run: LiveRun,
    /// Its state; or why there is none.
    pub(crate) status: Result<Box<Status>, String>,
}

impl Known {
    fn of(run: LiveRun) -> Known {
        let status = state_of(&run);
        Known { run, status }
    }

    pub(crate) fn line(&self) -> RunLine<'_> {
        RunLine {
            pid: self.run.pid,
            status: self.status.as_deref().map_err(String::as_str),
        }
    }
}

/// The live runs with their states.
pub(crate) fn known(root: &Root) -> Vec<Known> {
    live_runs(root).into_iter().map(Known::of).collect()
}

/// Reads the state of a run.
///
/// # Errors
/// Why it can't be read.
pub(crate) fn state_of(run: &LiveRun) -> Result<Box<Status>, String> {
    if !run.has_status() {
        return Err(why_no_state(run));
    }
    let (text, age_s) = run
        .status()
        .map_err(|error| format!("its state can't be read: {error}"))?;
    let mut status =
        Status::from_json(&text).map_err(|error| format!("its state can't be read: {error}"))?;
    status.age_s = Some(age_s);
    Ok(Box::new(status))
}

fn why_no_state(run: &LiveRun) -> String {
    let user = rustix::process::geteuid().as_raw();
    if user != 0 && user != run.owner {
        format!("only user {} and root can watch it", run.owner)
    } else if !run.is_seen {
        "it may be live; it can't be seen from here".to_owned()
    } else {
        "it has not written its state: it is starting, or it can't write".to_owned()
    }
}

/// The live run that `name` means: by its identity or the beginning of that, by its process, or by its log folder.
///
/// # Errors
/// No run is meant, or several could be.
pub(crate) fn meant(root: &Root, name: &str) -> anyhow::Result<Known> {
    let of_folder = run_of_folder(Path::new(name));
    let mut exact = Vec::new();
    let mut similar = Vec::new();
    for run in live_runs(root) {
        let id = &run.run;
        if id == name || run.pid.to_string() == name || of_folder.as_ref() == Some(id) {
            exact.push(run);
        } else if !name.is_empty() && id.starts_with(name) {
            similar.push(run);
        }
    }
    let mut found = if exact.is_empty() { similar } else { exact };
    if found.len() > 1 {
        let all: Vec<&str> = found.iter().map(|run| run.run.as_str()).collect();
        return Err(usage(format!(
            "{} can be several runs: {}; give more of its name",
            told(name),
            all.join(", ")
        )));
    }
    match found.pop() {
        Some(run) => Ok(Known::of(run)),
        None => Err(not_live(name, of_folder.is_some())),
    }
}

/// The run that a log folder is of.
fn run_of_folder(folder: &Path) -> Option<String> {
    let series = open_series(&folder.join(SERIES)).ok()?;
    series.header().run_id.clone()
}

fn not_live(name: &str, is_folder: bool) -> anyhow::Error {
    let shown = told(name);
    usage(if !is_folder {
        format!(
            "no run {shown} is live; `cosched status` lists the live runs: give a process, an identity or a log folder"
        )
    } else if Path::new(name).join(RECORD).exists() {
        format!("run {shown} has ended; `cosched report` shows it")
    } else {
        format!(
            "run {shown} was killed; `cosched report` shows it, and `cosched thaw` what it left behind"
        )
    })
}
