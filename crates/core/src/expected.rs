//! The one place that says how long a task is expected to take, whatever it was learnt from. The order of the jobs, the
//! tail of a batch and the time left follow from it. It may be stale or wrong, so it only sets the starting point:
//! measurements of this run override it.

use crate::listed::listed_enum;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

listed_enum! {
    /// Source of an expectation, the best first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, strum::IntoStaticStr)]
    #[strum(serialize_all = "kebab-case")]
    #[serde(rename_all = "kebab-case")]
    pub enum ExpectedFrom {
        /// The job itself, alone on the machine before this run.
        Solo,
        /// The same command in the same folder, with the same program file.
        Same,
        /// The same command, but in another folder, or with a program file that has changed since.
        Changed,
        /// Other commands with the same program.
        Program,
        /// Not from runs: the user says it.
        Told,
    }
}

/// Expectations for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// Time placed with exclusive CPUs: the median of earlier runs.
    pub time: Nanos,
    /// Shortest known time, at most `time`.
    pub least: Nanos,
    /// Longest known time, at least `time`.
    pub greatest: Nanos,
    /// Peak resident memory of its largest process in bytes: the maximum of earlier runs. `None` if this very command
    /// has not been measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// Source of the figures.
    pub from: ExpectedFrom,
    /// Number of runs behind the times, at least 1.
    pub runs: u32,
}

/// Shorter times count as equal: their order gains nothing.
const SHORTEST: Nanos = Nanos::from_ms(100);

/// Greatest time over the least of commands with the same program, up to which they tell of another one.
const WIDEST: u64 = 3;
/// Least number of such runs.
const FEWEST: u32 = 3;

impl Expected {
    /// Whether it tells when a job will end: the times of other commands with its program may be of any length.
    pub fn is_telling(&self) -> bool {
        let are_alike = self.greatest.0 <= self.least.0.saturating_mul(WIDEST);
        self.from != ExpectedFrom::Program || (are_alike && self.runs >= FEWEST)
    }

    /// An expectation from one run that took `time`.
    pub fn of(time: Nanos, from: ExpectedFrom) -> Expected {
        Expected {
            time,
            least: time,
            greatest: time,
            memory: None,
            from,
            runs: 1,
        }
    }

    /// The class of its length; longer tasks have a greater class. Times within a class differ by at most a quarter, so
    /// that similar tasks keep their order of submission. Times below a tenth of a second are in class 0.
    ///
    /// ```
    /// use cosched_core::{Expected, ExpectedFrom, Nanos};
    /// let class = |s| Expected::of(Nanos::from_s(s), ExpectedFrom::Same).class();
    /// assert_eq!((class(0.0), class(0.09)), (0, 0));
    /// assert_eq!(class(10.2), class(10.4));
    /// assert!(class(10.0) < class(13.0) && class(13.0) < class(1000.0));
    /// ```
    pub fn class(&self) -> u32 {
        let steps = self.time.0 / (SHORTEST.0 / 4);
        if steps < 4 {
            return 0;
        }
        // The place of the highest bit, and the two bits after it.
        let high = steps.ilog2();
        4 * (high - 2) + ((steps >> (high - 2)) & 3) as u32 + 1
    }

    /// The shortest time of a [class](Expected::class) that there is; of class 0 the longest.
    pub(crate) fn least_of(class: u32) -> Nanos {
        let Some(above) = class.checked_sub(1) else {
            return SHORTEST;
        };
        let steps = u64::from(4 + above % 4) << (above / 4);
        Nanos(steps * (SHORTEST.0 / 4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_commands_tell_if_they_are_several_and_alike() {
        let of = |from, least, greatest, runs| Expected {
            least: Nanos::from_ms(least),
            greatest: Nanos::from_ms(greatest),
            runs,
            ..Expected::of(Nanos::from_ms(least), from)
        };
        let tells =
            |least, greatest, runs| of(ExpectedFrom::Program, least, greatest, runs).is_telling();
        assert!(tells(100, 300, 3) && !tells(100, 301, 3) && !tells(100, 100, 2));
        assert!(of(ExpectedFrom::Same, 1, 1_000, 1).is_telling());
    }

    #[test]
    fn classes_rise_and_are_narrow() {
        let class = |ns: u64| Expected::of(Nanos(ns), ExpectedFrom::Same).class();
        let mut first = 0u64;
        let mut last = 0;
        for step in 0..4_000u64 {
            // From 0.1 ms to a year.
            let time = 100_000 + (1.007f64.powi(step as i32) * 1e5) as u64;
            let now = class(time);
            assert!(now >= last, "{time}");
            if now > last {
                first = time;
            }
            assert!(
                now == 0 || time as f64 / first as f64 <= 1.25,
                "{first} {time} are both {now}"
            );
            last = now;
            let least = Expected::least_of(now);
            assert!(now == 0 || (class(least.0), class(least.0 - 1)) == (now, now - 1));
        }
        assert_eq!(
            (class(0), class(u64::MAX) > class(1_000_000_000)),
            (0, true)
        );
    }
}
