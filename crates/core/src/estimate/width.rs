//! Width: the number of threads of a task that want a CPU at the same time.
//!
//! A single observation is unreliable: a starting program shows many threads for a moment, and a program that reads a
//! file none. So the estimate is the maximum over medians of consecutive observations: a build that ends with a single
//! linker has the width of its compilers. Observations cost time, so they become rare while they agree.

use crate::units::{Absence, Reading};
use std::collections::VecDeque;

/// Observations per median.
const WINDOW: usize = 5;
/// Least number of observations for a median.
const LEAST: usize = 3;
/// Longest gap between observations, in intervals.
const RAREST: u32 = 32;

/// The estimator of a task's width.
#[derive(Clone, Debug)]
pub(crate) struct WidthEstimator {
    /// The last observations, the oldest first.
    window: VecDeque<u32>,
    looks: u32,
    /// Intervals from one observation to the next.
    gap: u32,
    /// Intervals that have ended since the last observation.
    passed: u32,
    /// The largest median so far; before the first median, the minimum of the observations.
    found: Reading<u32>,
}

impl WidthEstimator {
    pub(crate) fn new() -> WidthEstimator {
        let found = Reading::Absent(Absence::NotYetMeasured);
        WidthEstimator {
            window: VecDeque::with_capacity(WINDOW),
            looks: 0,
            gap: 1,
            passed: 0,
            found,
        }
    }

    /// Counts an ended interval, and returns whether an observation is due. A backend that does not offer any is asked once.
    pub(crate) fn is_due(&mut self) -> bool {
        if self.found == Reading::Absent(Absence::NotOffered) {
            return false;
        }
        self.passed = self.passed.saturating_add(1);
        self.passed >= self.gap
    }

    /// Number of observations so far.
    pub(crate) fn looks(&self) -> u32 {
        self.looks
    }

    /// Adds an observation: the number of threads that want a CPU now. A sleeping task has width 1.
    pub(crate) fn add(&mut self, wanting: Reading<u32>) {
        self.looks += 1;
        self.passed = 0;
        let wanting = match wanting {
            Reading::Value(wanting) => wanting.max(1),
            Reading::Absent(why) => {
                if !self.found.is_value() {
                    self.found = Reading::Absent(why);
                }
                return;
            }
        };
        if self.window.len() == WINDOW {
            self.window.pop_front();
        }
        self.window.push_back(wanting);
        let mut sorted: Vec<u32> = self.window.iter().copied().collect();
        sorted.sort_unstable();
        let median = sorted[(sorted.len() - 1) / 2];
        // The first median is never below the minimum of the observations before it.
        self.found = Reading::Value(match self.found.value() {
            Some(found) if self.window.len() >= LEAST => found.max(median),
            _ => sorted[0],
        });
        let is_settled = self.window.len() == WINDOW && sorted[0] == sorted[WINDOW - 1];
        self.gap = if is_settled {
            (2 * self.gap).min(RAREST)
        } else {
            1
        };
    }

    /// The largest width that lasted.
    pub(crate) fn found(&self) -> Reading<u32> {
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(looks: &[u32]) -> Reading<u32> {
        let mut width = WidthEstimator::new();
        looks
            .iter()
            .for_each(|&look| width.add(Reading::Value(look)));
        width.found()
    }

    #[test]
    fn what_lasts_counts_and_what_passes_does_not() {
        assert_eq!(found(&[]), Reading::Absent(Absence::NotYetMeasured));
        assert_eq!(
            (found(&[4]), found(&[8, 1]), found(&[0])),
            (Reading::Value(4), Reading::Value(1), Reading::Value(1))
        );
        assert_eq!(found(&[9, 1, 1]), Reading::Value(1), "a burst at the start");
        assert_eq!(
            found(&[1, 1, 1, 1, 1, 8, 1, 1, 8, 1]),
            Reading::Value(1),
            "now and then"
        );
        assert_eq!(
            found(&[1, 1, 1, 1, 8, 8, 8, 1, 1, 1, 1]),
            Reading::Value(8),
            "a phase of three looks"
        );
    }

    #[test]
    fn a_look_that_fails_says_why_and_takes_nothing_away() {
        let mut width = WidthEstimator::new();
        width.add(Reading::Absent(Absence::NotTold));
        assert_eq!(width.found(), Reading::Absent(Absence::NotTold));
        (0..3).for_each(|_| width.add(Reading::Value(2)));
        width.add(Reading::Absent(Absence::NotTold));
        assert_eq!(width.found(), Reading::Value(2));
    }

    #[test]
    fn looks_become_rare_while_they_agree_and_frequent_again_at_once() {
        let mut width = WidthEstimator::new();
        let mut taken = Vec::new();
        for interval in 0..200 {
            if width.is_due() {
                taken.push(interval);
                width.add(Reading::Value(if interval < 150 { 1 } else { 6 }));
            }
        }
        let before = taken.iter().filter(|&&interval| interval < 150).count();
        assert!(
            (5..20).contains(&before),
            "{before} looks at a task that never changes"
        );
        let noticed = taken.iter().position(|&interval| interval >= 150).unwrap();
        assert!(
            taken[noticed] < 150 + RAREST && taken[noticed + 4] == taken[noticed] + 4,
            "{taken:?}"
        );
        assert_eq!(width.found(), Reading::Value(6));
    }

    proptest! {
        #[test]
        fn the_width_is_one_of_the_looks(looks in prop::collection::vec(1u32..9, 1..40)) {
            let found = found(&looks).value().unwrap();
            prop_assert!(looks.contains(&found));
        }
    }
}
