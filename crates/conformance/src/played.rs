//! Plays scenarios within this process, one after the other. It is for backends that leave nothing behind.

use crate::fixture::Skip;
use crate::scenarios::Case;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Arc, Mutex, PoisonError};

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Passed,
    /// It can't be played, for this reason.
    Skipped(String),
    /// It does not hold: what was found, and where the scenario says so.
    Failed(String),
}

/// A scenario that was played.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
}

/// Plays scenarios, and tells of each when it ends.
pub fn play(cases: &[Case], mut tell: impl FnMut(&Played)) -> Vec<Played> {
    let said = Arc::new(Mutex::new(String::new()));
    let listener = said.clone();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let mut said = listener.lock().unwrap_or_else(PoisonError::into_inner);
        *said = panicked.to_string();
    }));
    let mut all = Vec::new();
    for case in cases {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (case.play)()));
        let verdict = match outcome {
            Ok(Ok(())) => Verdict::Passed,
            Ok(Err(Skip(why))) => Verdict::Skipped(why),
            Err(_) => Verdict::Failed(said.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        };
        let played = Played {
            name: case.name.clone(),
            verdict,
        };
        tell(&played);
        all.push(played);
    }
    panic::set_hook(usual);
    all
}
