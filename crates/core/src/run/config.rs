//! Settings of a run, except its tasks and its policy.

use super::admit::{RateAt, Untried};
use crate::topology::Machine;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use strum::{EnumIter, EnumMessage, EnumString, IntoStaticStr};

/// Settings of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    /// The unit of progress: the policy's ordinary quantum.
    pub quantum: Nanos,
    /// Maximum number of admitted tasks; the rest queue.
    pub jobs: usize,
    /// The same for each CPU of the machine, in place of `jobs`: the machine may change.
    pub jobs_per_cpu: Option<usize>,
    /// Whether to learn how many tasks are best at once, up to `jobs` or `jobs_per_cpu`, with what earlier runs learnt.
    pub at_once: Option<Vec<RateAt>>,
    /// Whether the user asked for that, who then hears why nothing was tried.
    pub at_once_asked: bool,
    /// Order of admission of the tasks that have arrived.
    pub order: Order,
    /// Bound on the time that a started task stays frozen; exceeded only slightly.
    pub max_pause: Nanos,
    /// Condition for stopping early.
    pub halt: Halt,
    /// Limit on the time that a task is placed; the task is then ended.
    pub timeout: Option<TimeLimit>,
    /// Time of the run at which its tasks are ended, and no further task starts.
    pub deadline: Option<Nanos>,
    /// Time of the run at which the machine is taken away. A task does not start if its [`expected`](crate::TaskSpec::expected)
    /// time is known and would end later. Ignored if tasks restart.
    pub ends: Option<Nanos>,
    /// Least time between the starts of two tasks.
    pub delay: Nanos,
    /// Maximum number of starts of a failing task, at least 1. Its result is that of its last attempt.
    pub attempts: u32,
    /// Time from SIGTERM to SIGKILL.
    pub grace: Nanos,
    /// Seed of the run's generator.
    pub seed: u64,
    /// Whether ended tasks restart while others run.
    pub restart: Restart,
    /// How decisions are carried out.
    pub actuation: Actuation,
    /// Whether to read the traffic of each memory domain; for policies that need
    /// [`Capability::Traffic`](crate::Capability::Traffic).
    pub traffic: bool,
    /// Maximum number of results to keep, and as many more of tasks that fail. The others are only counted.
    pub results_max: usize,
    /// Whether to read how long devices work for each task; for policies that need a
    /// [`Capability::Device`](crate::Capability::Device).
    pub devices: bool,
}

/// Limit on the time that a task is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeLimit {
    /// A fixed time.
    Fixed(Nanos),
    /// A percentage of the median time placed of the tasks that succeeded; no limit until [`TimeLimit::LEAST_KNOWN`]
    /// have succeeded.
    PercentOfMedian(u32),
}

impl TimeLimit {
    /// Least number of times for a median (as in GNU parallel).
    pub const LEAST_KNOWN: usize = 3;

    /// The limit after these times, which are in ascending order; `None` if there is no limit yet.
    pub fn after(self, times: &[Nanos]) -> Option<Nanos> {
        match self {
            TimeLimit::Fixed(time) => Some(time),
            TimeLimit::PercentOfMedian(_) if times.len() < TimeLimit::LEAST_KNOWN => None,
            TimeLimit::PercentOfMedian(share) => {
                let (low, high) = (times[(times.len() - 1) / 2].0, times[times.len() / 2].0);
                let median = low + (high - low) / 2;
                let limit = u128::from(median) * u128::from(share) / 100;
                Some(Nanos(u64::try_from(limit).unwrap_or(u64::MAX)))
            }
        }
    }
}

/// The order in which waiting tasks are admitted.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    EnumString,
    EnumIter,
    EnumMessage,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Order {
    /// By the times of earlier runs: the longest first, or short ones first while more jobs may come
    #[default]
    Auto,
    /// As given
    Given,
    /// At random, by the seed
    Random,
}

/// How decisions are carried out.
///
/// A backend carries out plans by itself. They need [`Capability::Plans`](crate::Capability::Plans).
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    EnumString,
    EnumIter,
    EnumMessage,
    IntoStaticStr,
)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Actuation {
    /// One by one: a CPU whose job sleeps stands idle until the next decision
    #[default]
    Decisions,
    /// As plans: a CPU whose job sleeps or ends goes to the next job at once
    Plans,
}

/// Whether an ended task restarts while others run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum Restart {
    /// Tasks do not restart.
    #[default]
    Never,
    /// A task that succeeds restarts until every task has ended once. This keeps the load constant to the end, as in
    /// the experiment of the lucky paper, section 4. The result of a task is that of its first run.
    UntilLast,
}

/// Maximum number of tasks admitted beyond the CPUs of several nodes: each costs time at every event.
const MOST_WAITING: usize = 512;

/// Least full width to learn from, unless the user asks for it. Of two tasks one alone would have to end more than twice
/// as fast.
const LEAST_FULL: usize = 3;

impl RunConfig {
    /// Maximum number of admitted tasks on this machine, before anything is learnt.
    pub(super) fn full_width(&self, machine: &Machine) -> usize {
        let cpus = machine.cpus.len();
        let most = match machine.nodes.len() {
            0 => usize::MAX,
            _ => cpus + MOST_WAITING,
        };
        let by_cpus = self.jobs_per_cpu;
        let by_cpus = by_cpus.map(|jobs| most.min(jobs * cpus));
        by_cpus.unwrap_or(self.jobs)
    }

    /// Whether this full width leaves something to learn.
    pub(super) fn is_wide(&self, full: usize) -> bool {
        full >= LEAST_FULL || self.at_once_asked
    }

    /// Whether a run on this machine may try how many tasks at once are best.
    pub fn tries_at_once(&self, machine: &Machine) -> bool {
        let is_wide = self.is_wide(self.full_width(machine));
        self.at_once.is_some() && is_wide && Untried::on(machine).is_none()
    }
}

impl Default for RunConfig {
    fn default() -> RunConfig {
        RunConfig {
            quantum: Nanos::from_ms(200),
            jobs: usize::MAX,
            jobs_per_cpu: None,
            at_once: None,
            at_once_asked: false,
            order: Order::default(),
            max_pause: Nanos::from_ms(30_000),
            halt: Halt::default(),
            timeout: None,
            deadline: None,
            ends: None,
            delay: Nanos::ZERO,
            attempts: 1,
            grace: Nanos::from_ms(5_000),
            seed: 1,
            restart: Restart::Never,
            actuation: Actuation::Decisions,
            traffic: false,
            results_max: usize::MAX,
            devices: false,
        }
    }
}

/// The condition for halting a run, and the action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Halt {
    /// The action.
    pub when: HaltWhen,
    /// The jobs that are counted.
    pub on: HaltOn,
    /// The number of counted jobs that triggers the action.
    pub count: u32,
    /// Whether `count` is a percentage of all jobs.
    pub is_percent: bool,
}

/// How a run halts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HaltWhen {
    /// Never.
    #[default]
    Never,
    /// Start no more jobs, and let running jobs finish.
    Soon,
    /// End the running jobs.
    Now,
}

/// Which jobs a halt rule counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HaltOn {
    /// Failed jobs.
    #[default]
    Failures,
    /// Successful jobs.
    Successes,
    /// All ended jobs.
    Ended,
}

impl Halt {
    /// Whether successful jobs count.
    pub fn is_on_successes(&self) -> bool {
        self.on == HaltOn::Successes
    }

    /// The action after `failed` and `succeeded` of `total` jobs. A percentage is not judged before the total is known.
    pub fn verdict(&self, failed: u32, succeeded: u32, total: Option<u32>) -> HaltWhen {
        let counted = match self.on {
            HaltOn::Failures => failed,
            HaltOn::Successes => succeeded,
            HaltOn::Ended => failed + succeeded,
        };
        let reached = if self.is_percent {
            total.is_some_and(|total| {
                let percent = u64::from(counted) * 100 / u64::from(total.max(1));
                counted > 0 && percent >= u64::from(self.count)
            })
        } else {
            counted >= self.count
        };
        if reached { self.when } else { HaltWhen::Never }
    }
}

impl fmt::Display for Halt {
    /// In GNU parallel's form.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let when = match self.when {
            HaltWhen::Never => return f.write_str("never"),
            HaltWhen::Soon => "soon",
            HaltWhen::Now => "now",
        };
        let on = match self.on {
            HaltOn::Failures => "fail",
            HaltOn::Successes => "success",
            HaltOn::Ended => "done",
        };
        let unit = if self.is_percent { "%" } else { "" };
        write!(f, "{when},{on}={}{unit}", self.count)
    }
}

/// An invalid halt rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a halt rule; expected `never`, or `now` or `soon` with `fail=N`, `success=N`, `done=N` or one of these with `N%`, as in `soon,fail=1`"
)]
pub struct HaltParseError {
    /// The text that was given.
    pub text: String,
}

impl FromStr for Halt {
    type Err = HaltParseError;

    /// Parses GNU parallel's form.
    fn from_str(text: &str) -> Result<Halt, HaltParseError> {
        if text == "never" {
            return Ok(Halt::default());
        }
        parse_halt(text).ok_or_else(|| HaltParseError {
            text: text.to_owned(),
        })
    }
}

/// Parses a rule such as `soon,fail=1` or `now,done=30%`.
fn parse_halt(text: &str) -> Option<Halt> {
    let (when, rule) = text.split_once(',')?;
    let (on, count) = rule.split_once('=')?;
    let is_percent = count.ends_with('%');
    let count: u32 = count.strip_suffix('%').unwrap_or(count).parse().ok()?;
    if count == 0 || (is_percent && count > 100) {
        return None;
    }
    Some(Halt {
        when: match when {
            "now" => HaltWhen::Now,
            "soon" => HaltWhen::Soon,
            _ => return None,
        },
        on: match on {
            "fail" => HaltOn::Failures,
            "success" => HaltOn::Successes,
            "done" => HaltOn::Ended,
            _ => return None,
        },
        count,
        is_percent,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_by_the_median() {
        let ms = Nanos::from_ms;
        let double = |times: &[u64]| {
            let times: Vec<Nanos> = times.iter().map(|&time| ms(time)).collect();
            TimeLimit::PercentOfMedian(200).after(&times)
        };
        assert_eq!((double(&[]), double(&[1, 2])), (None, None));
        assert_eq!(
            (double(&[1, 2, 9]), double(&[1, 2, 4, 9])),
            (Some(ms(4)), Some(ms(6)))
        );
        assert_eq!(TimeLimit::Fixed(ms(5)).after(&[]), Some(ms(5)));
        assert_eq!(
            TimeLimit::PercentOfMedian(u32::MAX).after(&[Nanos(u64::MAX); 3]),
            Some(Nanos(u64::MAX))
        );
    }

    #[test]
    fn halt_rules() {
        let check = |text: &str, failed, succeeded, expected| {
            assert_eq!(
                text.parse::<Halt>()
                    .unwrap()
                    .verdict(failed, succeeded, Some(10)),
                expected,
                "{text}"
            );
        };
        check("never", 10, 0, HaltWhen::Never);
        check("now,fail=1", 0, 9, HaltWhen::Never);
        check("now,fail=1", 1, 0, HaltWhen::Now);
        check("soon,success=2", 0, 2, HaltWhen::Soon);
        check("soon,fail=30%", 2, 0, HaltWhen::Never);
        check("soon,fail=30%", 3, 0, HaltWhen::Soon);
        check("now,success=100%", 0, 10, HaltWhen::Now);
        check("now,done=3", 1, 1, HaltWhen::Never);
        check("now,done=3", 1, 2, HaltWhen::Now);
        check("soon,done=30%", 1, 2, HaltWhen::Soon);
        for text in [
            "",
            "now",
            "later,fail=1",
            "now,fail=0",
            "now,fail=101%",
            "now,ended=1",
            "now,fail",
        ] {
            assert!(text.parse::<Halt>().is_err(), "{text}");
        }
    }
}
