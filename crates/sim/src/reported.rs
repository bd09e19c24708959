//! What the simulated counters report: the true counts with noise and faults.

use crate::machine::CountersSpec;
use crate::world::Tally;
use cosched_core::{Absence, Counter, Counts, PerCounter, Reading, Rng};

/// The counters of one task.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    rng: Rng,
    seen: Tally,
    told: PerCounter<u64>,
    /// What was counted beyond `told`, less than one event each. It keeps small intervals from being rounded away.
    rest: PerCounter<f64>,
}

/// A fault of all counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    /// No counter answers any more.
    pub(crate) vanished: bool,
    /// Events reported for each event that happened; 1 when the counters are right.
    pub(crate) factor: f64,
}

impl Reported {
    pub(crate) fn new(rng: Rng) -> Reported {
        Reported { rng, seen: Tally::default(), told: PerCounter::default(), rest: PerCounter::default() }
    }

    /// The task starts again, so nothing has been counted yet.
    pub(crate) fn begin_anew(&mut self) {
        (self.seen, self.told, self.rest) = Default::default();
    }

    /// All counters start again from zero.
    pub(crate) fn wrap(&mut self) {
        (self.told, self.rest) = Default::default();
    }

    /// Reads the cumulative counts. What was added since the last reading is off by the counters' noise.
    pub(crate) fn read(&mut self, now: &Tally, spec: &CountersSpec, trouble: Trouble) -> Counts {
        // Every counter draws a random number, even one that the machine lacks. So a counter's noise does not depend on
        // which others the machine has.
        for counter in Counter::ALL {
            let error = (uniform(&mut self.rng) * 2.0 - 1.0) * spec.noise;
            let news = now.of(counter) - self.seen.of(counter);
            let counted = self.rest[counter] + news * (1.0 + error) * trouble.factor;
            let whole = counted as u64;
            self.told[counter] = self.told[counter].saturating_add(whole);
            self.rest[counter] = counted - whole as f64;
        }
        self.seen = *now;
        if trouble.vanished {
            return Counts::absent(Absence::CountersLost);
        }
        Counts::from_fn(|counter| match spec.absence(counter) {
            None => Reading::Value(self.told[counter]),
            Some(why) => Reading::Absent(why),
        })
    }
}

/// A uniform number in [0, 1).
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> CountersSpec {
        CountersSpec { counts: PerCounter::from_fn(|_| true), energy: true, noise: 0.0 }
    }

    fn reads(reads: f64) -> Tally {
        Tally { reads, ..Tally::default() }
    }

    #[test]
    fn events_of_many_short_intervals_are_all_counted() {
        for each in [0.4, 0.6] {
            let mut reported = Reported::new(Rng::new(1));
            let trouble = Trouble { vanished: false, factor: 1.0 };
            let mut last = 0;
            for interval in 1..=1_000 {
                let counts = reported.read(&reads(each * f64::from(interval)), &all(), trouble);
                last = counts[Counter::MmReads].value().unwrap();
            }
            assert!(last.abs_diff((each * 1_000.0) as u64) <= 1, "{each}: {last}");
        }
    }

    #[test]
    fn counters_that_lie_beyond_their_range_stay_at_its_end() {
        let mut reported = Reported::new(Rng::new(1));
        let trouble = Trouble { vanished: false, factor: 1e300 };
        for interval in 1..=3 {
            let counts = reported.read(&reads(1e9 * f64::from(interval)), &all(), trouble);
            assert_eq!(counts[Counter::MmReads], Reading::Value(u64::MAX));
            assert_eq!(counts[Counter::MmWrites], Reading::Value(0));
        }
    }
}
