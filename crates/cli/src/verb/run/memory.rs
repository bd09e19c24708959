//! What a run takes from earlier runs, and what it keeps for later ones. Whatever goes wrong here costs nothing else: one
//! warning, and the run goes on without.

use super::args::RunArgs;
use crate::history;
use cosched_core::{Exit, ExpectedFrom, TaskResult, TaskSpec};
use cosched_memory::{Ended, Error, Key, Patience, Problem, Recalled, Run};
use cosched_report::RunWarning;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// What is noted is written so often: a run that is killed loses no more than this.
const EVERY: Duration = Duration::from_secs(30);

/// Of a job that is shorter, what it does is kept for its program and not for its command, unless more was expected of
/// it: thousands of such jobs would push out what is worth knowing, and nothing is gained by telling them apart.
const SHORT_S: f64 = 0.1;

/// What is known of commands, for one run.
#[derive(Debug)]
pub(crate) struct Memory {
    /// `None` where nothing is used or kept.
    path: Option<PathBuf>,
    noted: Vec<Ended>,
    written: Instant,
}

impl Default for Memory {
    /// Keeps nothing.
    fn default() -> Memory {
        Memory { path: None, noted: Vec::new(), written: Instant::now() }
    }
}

/// A job as it is known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    key: Key,
    recalled: Recalled,
}

impl Known {
    /// Lets a task begin with what is known of it.
    pub(crate) fn tell(&self, spec: &mut TaskSpec) {
        spec.expected = self.recalled.expected;
        spec.earlier.clone_from(&self.recalled.learnt);
    }
}

impl Memory {
    /// Looks up jobs by their keys.
    pub(crate) fn recall(args: &RunArgs, keys: Vec<Option<Key>>) -> (Memory, Vec<Option<Known>>, Option<RunWarning>) {
        Memory::at(args.history(), keys)
    }

    fn at(path: Option<PathBuf>, keys: Vec<Option<Key>>) -> (Memory, Vec<Option<Known>>, Option<RunWarning>) {
        let mut memory = Memory { path, ..Memory::default() };
        let (recalled, warning) = match memory.path.as_deref().map(|path| recalled(path, &keys)) {
            None => (Vec::new(), None),
            Some(Ok(recalled)) => (recalled, None),
            // Another run writes. What this one does is kept all the same.
            Some(Err(error @ Error { problem: Problem::Busy, .. })) => {
                (Vec::new(), Some(RunWarning::HistoryBusy { lost: false, why: error.to_string() }))
            }
            Some(Err(error)) => (Vec::new(), memory.give_up(error)),
        };
        let recalled = recalled.into_iter().chain(std::iter::repeat_with(Recalled::default));
        let known = |(key, recalled): (Option<Key>, Recalled)| Some(Known { key: key?, recalled });
        (memory, keys.into_iter().zip(recalled).map(known).collect(), warning)
    }

    fn give_up(&mut self, error: Error) -> Option<RunWarning> {
        self.path = None;
        self.noted.clear();
        Some(RunWarning::NoHistory { why: error.to_string() })
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, known: &Known, result: &TaskResult) {
        // What we ended ourselves, and what never began, tells nothing of the command.
        if self.path.is_none() || result.told_to_end || matches!(result.exit, Some(Exit::NotStarted(_)) | None) {
            return;
        }
        let at = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64);
        let is_whole = result.exit.as_ref().is_some_and(Exit::ok) && !result.timed_out;
        let run = run(result, at).filter(|_| is_whole);
        let is_short = result.ran.as_s() < SHORT_S;
        let expects = known.recalled.expected.filter(|expected| expected.from != ExpectedFrom::Program);
        let is_known = expects.is_some_and(|expected| expected.time.as_s() >= SHORT_S);
        let is_own = is_known || !is_short;
        let key = if is_own { known.key.clone() } else { known.key.of_program() };
        // What one command asks for tells nothing of the others with its program.
        let learnt = result.learnt.clone().filter(|_| is_whole && is_own);
        let mut exit = result.exit.as_ref().map(ToString::to_string).unwrap_or_default();
        if result.timed_out {
            exit.push_str(" (ran out of its time)");
        }
        self.noted.push(Ended { key, at, exit, run, learnt });
    }

    /// Writes what was noted, if it is time. Jobs run meanwhile, so nobody is waited for.
    pub(crate) fn pass(&mut self) -> Option<RunWarning> {
        if self.noted.is_empty() || self.written.elapsed() < EVERY {
            return None;
        }
        self.written = Instant::now();
        self.write(Patience::None)
    }

    /// Writes what is left.
    pub(crate) fn finish(&mut self) -> Option<RunWarning> {
        if self.noted.is_empty() { None } else { self.write(Patience::Some) }
    }

    fn write(&mut self, patience: Patience) -> Option<RunWarning> {
        let path = self.path.as_deref()?;
        let written = history::open(path, patience).and_then(|mut store| store.note(&self.noted));
        match written {
            Ok(()) => {
                self.noted.clear();
                None
            }
            Err(Error { problem: Problem::Busy, .. }) if patience == Patience::None => None,
            Err(error @ Error { problem: Problem::Busy, .. }) => {
                self.noted.clear();
                Some(RunWarning::HistoryBusy { lost: true, why: error.to_string() })
            }
            Err(error) => self.give_up(error),
        }
    }
}

/// What the file tells of each of these commands; nothing if there is no file.
fn recalled(path: &Path, keys: &[Option<Key>]) -> Result<Vec<Recalled>, Error> {
    history::open_existing(path, Patience::Some)?.map_or_else(|| Ok(Vec::new()), |store| store.recall(keys))
}

/// What a run of a job was like.
fn run(result: &TaskResult, at: u64) -> Option<Run> {
    // Microseconds are enough, and shorter.
    let seconds = |s: f64| (s * 1e6).round() / 1e6;
    let (started, finished) = (result.started?, result.finished?);
    Some(Run {
        at,
        wall_s: seconds((finished - started).as_s()),
        placed_s: seconds(result.ran.as_s()),
        cpu_s: result.cpu_time.value().map(|time| seconds(time.as_s())),
        width: result.width.value(),
        max_rss: result.resources.max_rss.value(),
        shared: result.shared,
    })
}
