//! The settings of a run, besides its tasks and its policy.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunConfig {
    /// The unit of progress: the policy's ordinary quantum.
    pub quantum: Nanos,
    /// Tasks that may be live at once; the rest queue.
    pub jobs: usize,
    /// No started task is kept frozen much longer than this.
    pub max_pause: Nanos,
    /// When to give up early.
    pub halt: Halt,
    /// A task that has been placed for longer than this is ended.
    pub timeout: Option<Nanos>,
    /// Time from SIGTERM to SIGKILL.
    pub grace: Nanos,
    /// Seed of the run's generator.
    pub seed: u64,
    /// What becomes of a task that has ended while others have not.
    #[serde(default)]
    pub restart: Restart,
    /// How decisions are carried out.
    #[serde(default)]
    pub actuation: Actuation,
    /// Whether to read what each memory domain moves; for policies that need
    /// [`Capability::Traffic`](crate::Capability::Traffic).
    #[serde(default)]
    pub traffic: bool,
}

/// How decisions are carried out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Actuation {
    /// One by one, as changes. Between two decisions a CPU whose task sleeps stands idle.
    #[default]
    Decisions,
    /// As plans, which the backend carries out by itself: a CPU whose task sleeps or ends goes at once to the next task
    /// in the policy's order. Needs [`Capability::Plans`](crate::Capability::Plans).
    Plans,
}

/// What becomes of a task that has ended while others have not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Restart {
    /// It is not started again.
    #[default]
    Never,
    /// It is started again if it ended well, until every task has ended once (the experiment of the lucky paper,
    /// section 4, which keeps the load the same to the end). Its result is that of its first run.
    UntilLast,
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            quantum: Nanos::from_ms(200),
            jobs: usize::MAX,
            max_pause: Nanos::from_ms(30_000),
            halt: Halt::default(),
            timeout: None,
            grace: Nanos::from_ms(5_000),
            seed: 1,
            restart: Restart::Never,
            actuation: Actuation::Decisions,
            traffic: false,
        }
    }
}

/// What to do when enough jobs have failed, or succeeded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// What to do when the condition is met.
    pub when: HaltWhen,
    /// The condition.
    pub on: HaltOn,
}

/// How a run is halted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HaltWhen {
    /// Never.
    #[default]
    Never,
    /// Start no more jobs, and let those that run finish.
    Soon,
    /// End the jobs that run.
    Now,
}

/// What halts a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HaltOn {
    /// This many jobs have failed.
    Failures(u32),
    /// This many jobs have succeeded.
    Successes(u32),
    /// This share of all jobs has failed, in per cent.
    FailedPercent(u32),
    /// This share of all jobs has succeeded, in per cent.
    SucceededPercent(u32),
}

impl Default for HaltOn {
    fn default() -> HaltOn {
        HaltOn::Failures(1)
    }
}

impl Halt {
    /// What to do after `failed` and `succeeded` of `total` jobs.
    pub fn verdict(&self, failed: u32, succeeded: u32, total: u32) -> HaltWhen {
        let percent = |n: u32| u64::from(n) * 100 / u64::from(total.max(1));
        let reached = match self.on {
            HaltOn::Failures(n) => failed >= n,
            HaltOn::Successes(n) => succeeded >= n,
            HaltOn::FailedPercent(p) => failed > 0 && percent(failed) >= u64::from(p),
            HaltOn::SucceededPercent(p) => succeeded > 0 && percent(succeeded) >= u64::from(p),
        };
        if reached { self.when } else { HaltWhen::Never }
    }
}

/// A halt rule that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a halt rule; expected `never`, or `now` or `soon` with `fail=N`, `success=N`, `fail=N%` or `success=N%`, as in `soon,fail=1`"
)]
pub struct HaltParseError {
    /// The text that was given.
    pub text: String,
}

impl FromStr for Halt {
    type Err = HaltParseError;

    /// Reads GNU parallel's form.
    fn from_str(text: &str) -> Result<Halt, HaltParseError> {
        let bad = || HaltParseError { text: text.to_owned() };
        if text == "never" {
            return Ok(Halt::default());
        }
        let (when, on) = text.split_once(',').ok_or_else(bad)?;
        let when = match when {
            "now" => HaltWhen::Now,
            "soon" => HaltWhen::Soon,
            _ => return Err(bad()),
        };
        let (what, count) = on.split_once('=').ok_or_else(bad)?;
        let (number, is_percent) = match count.strip_suffix('%') {
            Some(number) => (number, true),
            None => (count, false),
        };
        let number: u32 = number.parse().ok().filter(|&n| n > 0).ok_or_else(bad)?;
        if is_percent && number > 100 {
            return Err(bad());
        }
        let on = match (what, is_percent) {
            ("fail", false) => HaltOn::Failures(number),
            ("fail", true) => HaltOn::FailedPercent(number),
            ("success", false) => HaltOn::Successes(number),
            ("success", true) => HaltOn::SucceededPercent(number),
            _ => return Err(bad()),
        };
        Ok(Halt { when, on })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halt_rules() {
        let check = |text: &str, failed, succeeded, expected| {
            assert_eq!(text.parse::<Halt>().unwrap().verdict(failed, succeeded, 10), expected, "{text}");
        };
        check("never", 10, 0, HaltWhen::Never);
        check("now,fail=1", 0, 9, HaltWhen::Never);
        check("now,fail=1", 1, 0, HaltWhen::Now);
        check("soon,success=2", 0, 2, HaltWhen::Soon);
        check("soon,fail=30%", 2, 0, HaltWhen::Never);
        check("soon,fail=30%", 3, 0, HaltWhen::Soon);
        check("now,success=100%", 0, 10, HaltWhen::Now);
        for text in ["", "now", "later,fail=1", "now,fail=0", "now,fail=101%", "now,done=1", "now,fail"] {
            assert!(text.parse::<Halt>().is_err(), "{text}");
        }
    }
}
