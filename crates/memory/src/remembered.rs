//! What is kept of one command, and what is expected of it.
//!
//! The last five runs are kept, and the median of their times is expected. One odd run does not move a median, and a
//! lasting change is believed after three runs. A mean, also one that forgets, would need a weight for that.
//!
//! # The time that is expected
//!
//! A job's time between start and end depends on its company: on pauses, on CPUs that were lent, on the kernel where
//! it time-shares. Its CPU time depends on these the least. So of each run the time is taken for which it would have been
//! placed on CPUs of its own ([`RememberedRun::time_s`]):
//!
//! - with one CPU of its own, the time for which it was placed: that holds its sleep as well;
//! - where it had more CPUs at some times than at others, or shared them, its CPU time by its width;
//! - unless it hardly used a CPU: then it waited for something else, and the time for which it was placed counts.

use crate::key::CommandKey;
use cosched_core::{EarlierPhases, Expected, ExpectedFrom, Interference, Nanos, RateAt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of runs kept of a command.
pub const MOST_RUNS: usize = 5;

/// Maximum length of a command and of other texts in characters; longer ones are cut off.
const LONGEST: usize = 1_000;

/// A job that used less than this share of a CPU waited for something else than a CPU.
const HARDLY: f64 = 0.1;

/// One run of a command that ended well.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RememberedRun {
    /// When it ended, in milliseconds since 1970.
    pub at: u64,
    /// Time from its start to its end in seconds.
    pub wall_s: f64,
    /// Time for which it was placed, in seconds.
    pub placed_s: f64,
    /// CPU time of all its processes in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_s: Option<f64>,
    /// CPUs that it used at once, at least 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// Greatest resident memory of any one of its processes, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss: Option<u64>,
    /// The kernel let several jobs share CPUs, so that it was placed all the time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The [numbers](CommandKey::number_of) of the programs beside it, each with its share of the time placed; `None` if they were
    /// not noted all the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<BTreeMap<i64, f64>>,
}

impl RememberedRun {
    /// The time for which it would have been placed on CPUs of its own, in seconds.
    pub fn time_s(&self) -> f64 {
        let width = self.width.unwrap_or(1).max(1);
        match self.cpu_s {
            Some(_) if !self.shared && width == 1 => self.placed_s,
            Some(cpu_s) if cpu_s >= HARDLY * self.placed_s => {
                (cpu_s / f64::from(width)).min(self.placed_s)
            }
            _ => self.placed_s,
        }
    }
}

/// What is kept of one command; the fields are those of the JSON object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RememberedCommand {
    /// The command as one line; `None` for all commands with the program that were too short to be kept one by one.
    pub command: Option<String>,
    /// The program, without its arguments.
    pub program: String,
    /// The folder in which it ran; `None` where `command` is.
    pub folder: Option<String>,
    /// The kind of machine.
    pub machine: String,
    /// Tells the program's files from those of another version; `None` where `command` is.
    pub identity: Option<String>,
    /// The expected time in seconds; `None` if it never succeeded.
    pub time_s: Option<f64>,
    /// Number of ends, successful or not.
    pub ends: u64,
    /// Number of ends that were not successful.
    pub failures: u64,
    /// The last end, in words.
    pub last_exit: String,
    /// The last end, in milliseconds since 1970.
    pub seen: u64,
    /// The last runs that succeeded, the last first; [`MOST_RUNS`] at most.
    pub runs: Vec<RememberedRun>,
    /// What the last run that learnt anything learnt of its demands on caches and memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub learnt: Option<EarlierPhases>,
    /// The rates of ends with different numbers of jobs at once; of a template alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateAt>,
}

/// An end of a command.
#[derive(Clone, Debug)]
pub struct RememberedEnd {
    /// The command.
    pub key: CommandKey,
    /// The time, in milliseconds since 1970.
    pub at: u64,
    /// The end, in words.
    pub exit: String,
    /// The run; `None` if it did not succeed, so that its figures say nothing.
    pub run: Option<RememberedRun>,
    /// What the run learnt of its demands on caches and memory; `None` leaves what was known.
    pub learnt: Option<Arc<EarlierPhases>>,
}

/// What is known of a command before it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecalledCommand {
    /// What is expected of it.
    pub expected: Option<Expected>,
    /// What was learnt of what it asks of caches and memory. Only its own runs tell: the same command, in the same folder,
    /// with the same program files.
    pub learnt: Option<Arc<EarlierPhases>>,
    /// How its program fared beside those of the other commands that were looked up.
    pub interference: Option<Interference>,
}

impl RememberedCommand {
    /// A command that has not ended yet.
    pub(crate) fn new(key: &CommandKey) -> RememberedCommand {
        let is_own = !key.command.is_empty();
        RememberedCommand {
            command: is_own.then(|| beginning(&key.command)),
            program: beginning(&key.program),
            folder: is_own.then(|| beginning(&key.folder)),
            machine: beginning(&key.machine),
            identity: is_own.then(|| beginning(&key.identity)),
            ..RememberedCommand::default()
        }
    }

    /// Adds an end.
    pub(crate) fn note(&mut self, end: &RememberedEnd) {
        self.ends += 1;
        self.failures += u64::from(end.run.is_none());
        // The last end counts even if its time is earlier: the clock may have been ahead once.
        self.seen = end.at;
        self.last_exit = beginning(&end.exit);
        if let Some(run) = &end.run {
            self.add(run.clone());
        }
        if let Some(learnt) = end.learnt.as_ref().filter(|learnt| learnt.is_sound()) {
            self.learnt = Some((**learnt).clone());
        }
    }

    /// Adds a run that succeeded.
    fn add(&mut self, run: RememberedRun) {
        self.runs.insert(0, run);
        self.runs.truncate(MOST_RUNS);
        let expected = expected(&self.runs, ExpectedFrom::Same);
        self.time_s = expected.map(|expected| expected.time.as_s());
    }

    /// The greatest resident memory of any of the runs, in bytes.
    pub fn max_rss(&self) -> Option<u64> {
        self.runs.iter().filter_map(|run| run.max_rss).max()
    }

    /// Whether its command, program or folder contains this text.
    pub(crate) fn contains(&self, text: &str) -> bool {
        let own = [&self.command, &self.folder].into_iter().flatten();
        own.chain([&self.program]).any(|part| part.contains(text))
    }
}

/// The beginning of a text.
fn beginning(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// What is expected after these runs; `None` without any. Where they are not of the same command (`from` is
/// [`ExpectedFrom::Program`]) they tell nothing of its memory.
pub fn expected(runs: &[RememberedRun], from: ExpectedFrom) -> Option<Expected> {
    let mut times: Vec<f64> = runs
        .iter()
        .map(RememberedRun::time_s)
        .filter(|time| time.is_finite() && *time >= 0.0)
        .collect();
    times.sort_by(f64::total_cmp);
    let (&least, &greatest) = (times.first()?, times.last()?);
    let median = (times[(times.len() - 1) / 2] + times[times.len() / 2]) / 2.0;
    let memory = runs
        .iter()
        .filter_map(|run| run.max_rss)
        .max()
        .filter(|_| from != ExpectedFrom::Program);
    Some(Expected {
        time: Nanos::from_s(median),
        least: Nanos::from_s(least),
        greatest: Nanos::from_s(greatest),
        memory,
        from,
        runs: times.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(placed_s: f64, cpu_s: f64, width: u32, shared: bool) -> RememberedRun {
        RememberedRun {
            at: 0,
            wall_s: 2.0 * placed_s,
            placed_s,
            cpu_s: Some(cpu_s),
            width: Some(width),
            max_rss: Some((placed_s * 1e6) as u64),
            shared,
            ..RememberedRun::default()
        }
    }

    #[test]
    fn times_do_not_depend_on_company() {
        // It sleeps for half of its time.
        assert_eq!(run(10.0, 5.0, 1, false).time_s(), 10.0);
        // Four threads that had between one and four CPUs.
        assert_eq!(run(10.0, 20.0, 4, false).time_s(), 5.0);
        // It shared a CPU with three others, and slept beside many.
        assert_eq!(
            (
                run(40.0, 10.0, 1, true).time_s(),
                run(10.0, 0.1, 1, true).time_s()
            ),
            (10.0, 10.0)
        );
        // More CPU time than there is: never longer than it took.
        assert_eq!(run(1.0, 8.0, 1, true).time_s(), 1.0);
        let unknown = RememberedRun {
            cpu_s: None,
            width: None,
            ..run(3.0, 0.0, 1, true)
        };
        assert_eq!(unknown.time_s(), 3.0);
    }

    #[test]
    fn a_clock_that_was_ahead_keeps_nothing_out() {
        let mut known = RememberedCommand::default();
        (0..MOST_RUNS).for_each(|_| {
            known.add(RememberedRun {
                at: u64::MAX,
                ..run(1.0, 1.0, 1, false)
            })
        });
        (0..3).for_each(|at| {
            known.add(RememberedRun {
                at,
                ..run(9.0, 9.0, 1, false)
            })
        });
        assert_eq!(
            expected(&known.runs, ExpectedFrom::Same).map(|expected| expected.time.as_s()),
            Some(9.0)
        );
    }

    #[test]
    fn one_odd_run_moves_nothing_and_three_move_all() {
        let time = |times: &[f64]| {
            let mut known = RememberedCommand::default();
            for (at, &time) in times.iter().enumerate() {
                known.add(RememberedRun {
                    at: at as u64,
                    ..run(time, time, 1, false)
                });
            }
            assert!(known.runs.len() <= MOST_RUNS);
            expected(&known.runs, ExpectedFrom::Same).map(|expected| expected.time.as_s())
        };
        assert_eq!(time(&[]), None);
        assert_eq!(time(&[10.0, 10.0, 10.0, 900.0]), Some(10.0));
        assert_eq!(
            time(&[10.0, 10.0, 10.0, 10.0, 10.0, 100.0, 100.0, 100.0]),
            Some(100.0)
        );
        assert_eq!(time(&[10.0, 20.0]), Some(15.0));
    }

    #[test]
    fn memory_is_the_greatest_known_and_of_this_command_alone() {
        let runs = [
            run(1.0, 1.0, 1, false),
            run(7.0, 7.0, 1, false),
            run(2.0, 2.0, 1, false),
        ];
        let same = expected(&runs, ExpectedFrom::Changed).unwrap();
        assert_eq!((same.memory, same.runs), (Some(7_000_000), 3));
        assert_eq!(
            (same.least.as_s(), same.time.as_s(), same.greatest.as_s()),
            (1.0, 2.0, 7.0)
        );
        assert_eq!(expected(&runs, ExpectedFrom::Program).unwrap().memory, None);
        // What somebody wrote into the file does no harm.
        let odd = [
            RememberedRun {
                placed_s: f64::NAN,
                cpu_s: None,
                ..runs[0].clone()
            },
            RememberedRun {
                placed_s: -1.0,
                cpu_s: None,
                ..runs[0].clone()
            },
        ];
        assert_eq!(expected(&odd, ExpectedFrom::Same), None);
    }
}
