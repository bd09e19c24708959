//! The simulated runs of a comparison, several at once.

use super::options::{name, run_options, words};
use super::user::{Progress, User, interrupted};
use crate::exit::{self, Exit, Failure};
use crate::run_files::SERIES;
use anyhow::Result;
use cosched_experiments::comparison::{
    CandidateRun, ComparisonDesign, ComparisonFolder, RunFigures, SHOWN_BLOCK,
};
use cosched_linux::Interrupt;
use cosched_run::RunOptions;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Time between two checks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// The runs that the threads take one after the other.
struct Queue {
    design: ComparisonDesign,
    store: ComparisonFolder,
    trials: Vec<CandidateRun>,
    next: AtomicUsize,
}

type Made = Result<Option<RunFigures>>;

/// Makes these runs, and adds their outcomes. The threads of an interrupted comparison end with the process.
///
/// # Errors
/// A run could not be made, or the user interrupted it.
pub fn make(
    design: &ComparisonDesign,
    store: &ComparisonFolder,
    user: &User,
    trials: Vec<CandidateRun>,
    aim: &str,
    outcomes: &mut Vec<RunFigures>,
) -> Result<()> {
    let progress = Progress::new(aim, trials.len());
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let queue = Arc::new(Queue {
        design: design.clone(),
        store: store.clone(),
        trials,
        next: AtomicUsize::new(0),
    });
    let (sender, made) = channel();
    for _ in 0..threads {
        let (queue, sender) = (queue.clone(), sender.clone());
        std::thread::spawn(move || work(&queue, &sender));
    }
    drop(sender);
    let result = collect(&made, &progress, user, outcomes);
    user.screen.clear();
    result
}

fn work(queue: &Queue, made: &Sender<Made>) {
    while let Some(&trial) = queue.trials.get(queue.next.fetch_add(1, Ordering::Relaxed)) {
        if made.send(simulate(queue, trial)).is_err() {
            return;
        }
    }
}

/// Collects the outcomes until all threads have ended.
fn collect(
    made: &Receiver<Made>,
    progress: &Progress,
    user: &User,
    outcomes: &mut Vec<RunFigures>,
) -> Result<()> {
    let before = outcomes.len();
    loop {
        match made.recv_timeout(LOOK) {
            Ok(outcome) => outcomes.extend(outcome?),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
        match user.look(&progress.line(outcomes.len() - before)) {
            Some(Interrupt::End(signal)) => return Err(interrupted(signal)),
            Some(Interrupt::Suspend) | None => {}
        }
    }
}

fn simulate(queue: &Queue, trial: CandidateRun) -> Made {
    let words = words(&queue.design, &queue.store, trial);
    let options = RunOptions {
        leaves_signals: true,
        ..run_options(words)?
    };
    let run = cosched_run::run(&options).map_err(|error| named(error, &queue.design, trial))?;
    if trial.block != SHOWN_BLOCK {
        // It takes megabytes, and can be simulated again.
        let _ = std::fs::remove_file(queue.store.run(trial).join(SERIES));
    }
    let record = run.record.as_ref();
    Ok(record.and_then(|record| RunFigures::of_record(trial, record)))
}

/// An error with the name of its run, and the same exit code.
fn named(error: anyhow::Error, design: &ComparisonDesign, trial: CandidateRun) -> anyhow::Error {
    let message = format!("{}: {}", name(design, trial), exit::one_line(&error));
    let exit = error
        .downcast_ref()
        .map_or(Exit::Failure, |failure: &Failure| failure.exit);
    Failure { exit, message }.into()
}
