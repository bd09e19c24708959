//! The runs that go on, with their states, and the one of them that a user means.

use super::client::{Answer, Client};
use crate::exit::usage;
use crate::input::told;
use crate::run_files::{RECORD, SERIES, open_series};
use cosched_linux::root::Root;
use cosched_linux::{LiveRun, live_runs};
use cosched_report::Status;
use cosched_run::Request;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long runs are waited for, all together. A window gives up after less.
const PATIENCE: Duration = Duration::from_secs(4);

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) run: LiveRun,
    /// Its state and how old that is in seconds; or in words why there is none.
    pub(crate) status: Result<(Box<Status>, f64), String>,
}

/// The runs that go on and that `wanted` accepts, with their states.
pub(crate) fn known(root: &Root, wanted: impl Fn(&LiveRun) -> bool) -> Vec<Known> {
    let runs: Vec<LiveRun> = live_runs(root).into_iter().filter(wanted).collect();
    let end = Instant::now() + PATIENCE;
    let asked: Vec<(LiveRun, Result<Client, String>)> = runs
        .into_iter()
        .map(|run| {
            let client = ask(&run);
            (run, client)
        })
        .collect();
    let answered = asked.into_iter().filter_map(|(run, client)| {
        let status = match client {
            Err(why) => Err(why),
            Ok(mut client) => match client.wait(end.saturating_duration_since(Instant::now())) {
                Ok(Answer::Status(status, age_s)) => Ok((status, age_s)),
                Ok(Answer::Absent(why)) => Err(format!("it goes on, and {why}")),
                Ok(Answer::Done) => {
                    Err("it goes on, and its answer is to another question".to_owned())
                }
                // It ended while it was asked.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof && !goes_on(root, &run) => {
                    return None;
                }
                Err(error) if error.kind() == ErrorKind::TimedOut => Err(
                    "it goes on, and does not answer: it is suspended, or it begins or ends"
                        .to_owned(),
                ),
                Err(error) => Err(format!("it goes on, and its answer can't be read: {error}")),
            },
        };
        Some(Known { run, status })
    });
    answered.collect()
}

fn goes_on(root: &Root, run: &LiveRun) -> bool {
    cosched_linux::fate_of(root, &run.run) != cosched_linux::Fate::Dead
}

/// A connection to the run of this identity; `None` if it does not go on.
///
/// # Errors
/// It goes on, and can't be reached.
pub(crate) fn connect(root: &Root, run: &str) -> io::Result<Option<Client>> {
    let found = live_runs(root).into_iter().find(|known| known.run == run);
    found
        .map(|known| known.connect().and_then(Client::new))
        .transpose()
}

/// Asks a run for its state; or in words why it can't be asked.
fn ask(run: &LiveRun) -> Result<Client, String> {
    let own = rustix::process::geteuid().as_raw();
    if !run.has_window() && run.owner != own && own != 0 {
        return Err(format!(
            "it goes on; it is a run of user {}, which only that user and root may look at",
            run.owner
        ));
    }
    if !run.has_window() && !run.is_seen {
        return Err("it may go on; it can't be seen from here".to_owned());
    }
    if !run.has_window() {
        let why = "it is of an older version, or its socket could not be made";
        return Err(format!(
            "it goes on, and can't be looked at: {why}; `kill -USR1 {}` asks it what runs",
            run.pid
        ));
    }
    let client = run.connect().and_then(Client::new).and_then(|mut client| {
        client.ask(&Request::Status)?;
        Ok(client)
    });
    client.map_err(|error| format!("it goes on, and can't be reached: {error}"))
}

/// Whether a run has this log folder.
fn logs_to(run: &Known, folder: &Path) -> bool {
    let Ok((status, _)) = &run.status else {
        return false;
    };
    let own = status.run.folder.as_ref().map(std::fs::canonicalize);
    own.is_some_and(|own| own.is_ok_and(|own| own == folder))
}

/// The run that `name` means: by its identity or the beginning of that, by its process, or by its log folder.
///
/// # Errors
/// No run is meant, or several could be.
pub(crate) fn meant(root: &Root, name: &str) -> anyhow::Result<Known> {
    let runs = live_runs(root);
    let mut ids: Vec<&LiveRun> = runs
        .iter()
        .filter(|run| run.run == name || run.pid.to_string() == name)
        .collect();
    if ids.is_empty() && !name.is_empty() {
        ids.extend(runs.iter().filter(|run| run.run.starts_with(name)));
    }
    match ids[..] {
        [one] => {
            let id = one.run.clone();
            let found = known(root, |run| run.run == id).pop();
            return found.ok_or_else(|| {
                usage(format!(
                    "run {} has just ended; its log folder has its record",
                    told(name)
                ))
            });
        }
        [] => {}
        _ => {
            let all: Vec<&str> = ids.iter().map(|run| run.run.as_str()).collect();
            return Err(usage(format!(
                "{} can be several runs: {}; give more of its name",
                told(name),
                all.join(", ")
            )));
        }
    }
    let folder = std::fs::canonicalize(name).ok();
    // Its series tells which run it is, also while that answers nobody.
    let own = folder
        .as_ref()
        .and_then(|folder| open_series(&folder.join(SERIES)).ok());
    let own = own.and_then(|series| series.header().run_id.clone());
    if let Some(run) = own
        .as_ref()
        .and_then(|own| runs.iter().find(|run| run.run == *own))
    {
        return known(root, |other| other.run == run.run)
            .pop()
            .ok_or_else(|| {
                usage(format!(
                    "run {} has just ended; `cosched report` tells what it did",
                    told(name)
                ))
            });
    }
    let found = folder.as_ref().and_then(|folder| {
        let mut runs = known(root, LiveRun::has_window).into_iter();
        runs.find(|run| logs_to(run, folder))
    });
    found.ok_or_else(|| match (&folder, own) {
        (Some(folder), Some(_)) if folder.join(RECORD).exists() => {
            usage(format!("run {} has ended; `cosched report` tells what it did", told(name)))
        }
        (Some(_), Some(_)) => usage(format!(
            "run {} was killed; `cosched report` tells what it did, and `cosched thaw` what it left behind",
            told(name)
        )),
        _ => usage(format!(
            "no run {} goes on; `cosched status` lists those that do: give the number of its process, its identity or its \
             log folder",
            told(name)
        )),
    })
}
