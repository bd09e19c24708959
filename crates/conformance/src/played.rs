//! Plays scenarios within this process, one after the other. It is for backends that leave nothing behind.

use crate::fixture::ScenarioSkip;
use crate::scenarios::Case;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::{Arc, Mutex, PoisonError};

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScenarioVerdict {
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
    pub verdict: ScenarioVerdict,
}

/// What a panic says, and the line of the scenario.
fn what_and_where(panicked: &PanicHookInfo<'_>) -> String {
    let payload = panicked.payload();
    let constant = payload.downcast_ref::<&str>().copied();
    let made = payload.downcast_ref::<String>().map(String::as_str);
    let what = constant.or(made).unwrap_or_default();
    match panicked.location() {
        Some(place) => format!("{what}\n({place})"),
        None => what.to_owned(),
    }
}

/// Plays scenarios, and tells of each when it ends; `tell` returns whether to go on.
pub fn play(cases: &[Case], mut tell: impl FnMut(&Played) -> bool) -> Vec<Played> {
    let said = Arc::new(Mutex::new(String::new()));
    let listener = said.clone();
    let usual = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        let mut said = listener.lock().unwrap_or_else(PoisonError::into_inner);
        *said = what_and_where(panicked);
    }));
    let mut all = Vec::new();
    for case in cases {
        let outcome = panic::catch_unwind(AssertUnwindSafe(|| (case.play)()));
        let verdict = match outcome {
            Ok(Ok(())) => ScenarioVerdict::Passed,
            Ok(Err(ScenarioSkip(why))) => ScenarioVerdict::Skipped(why),
            Err(_) => {
                ScenarioVerdict::Failed(said.lock().unwrap_or_else(PoisonError::into_inner).clone())
            }
        };
        let played = Played {
            name: case.name.clone(),
            verdict,
        };
        let goes_on = tell(&played);
        all.push(played);
        if !goes_on {
            break;
        }
    }
    panic::set_hook(usual);
    all
}
