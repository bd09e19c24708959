//! The user of a comparison, who watches its progress and may interrupt it.

use crate::exit::{Exit, Failure};
use anyhow::{Context as _, Result};
use cosched_linux::{Interrupt, Interrupts};
use cosched_report::{count, seconds};
use cosched_run::Screen;
use std::time::Instant;

/// What a comparison shows, and the signals that it gets.
pub struct User {
    pub signals: Interrupts,
    pub screen: Screen,
}

impl User {
    /// Holds signals back from now on.
    pub fn new(quiet: bool, is_simulated: bool) -> Result<User> {
        // A simulation is suspended as any other process.
        let signals = if is_simulated {
            Interrupts::hold()
        } else {
            Interrupts::hold_all()
        };
        Ok(User {
            signals: signals.context("taking signals")?,
            screen: Screen::new(quiet),
        })
    }

    /// Shows what is being done, and returns a signal that has come.
    pub fn look(&self, line: &str) -> Option<Interrupt> {
        self.screen.progress(|_| line.to_owned());
        self.screen.sign_of_life(|| line.to_owned());
        self.signals.next_signal()
    }
}

/// The error of a comparison that the user has ended with a signal.
pub fn interrupted(signal: i32) -> anyhow::Error {
    let failure = Failure {
        exit: Exit::Signal(signal),
        message: "interrupted".to_owned(),
    };
    failure.into()
}

/// Whether an error is such a one.
pub fn is_interruption(error: &anyhow::Error) -> bool {
    let failure = error.downcast_ref::<Failure>();
    failure.is_some_and(|failure| matches!(failure.exit, Exit::Signal(_)))
}

/// How many of the runs are done.
pub struct Progress {
    /// What all lines begin with.
    aim: String,
    total: usize,
    began: Instant,
}

impl Progress {
    pub fn new(aim: &str, total: usize) -> Progress {
        Progress {
            aim: aim.to_owned(),
            total,
            began: Instant::now(),
        }
    }

    /// The progress in words, with the time that is left.
    pub fn line(&self, done: usize) -> String {
        let aim = &self.aim;
        let total = count(self.total as u64, "run");
        if done == 0 {
            return format!("{aim}0 of {total} done");
        }
        let each_s = self.began.elapsed().as_secs_f64() / done as f64;
        let left = seconds(each_s * (self.total - done) as f64);
        format!("{aim}{done} of {total} done, about {left} left")
    }
}
