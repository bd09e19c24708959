//! What the simulated counters tell, which is not quite what happened.

use crate::machine::CountersSpec;
use crate::world::Tally;
use cosched_core::{Absence, Counts, Reading, Rng};

/// The counters of one task.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    rng: Rng,
    seen: Tally,
    told: [u64; 6],
    /// What was counted beyond `told`, less than one event each: small intervals must not be rounded away.
    rest: [f64; 6],
}

/// What is wrong with all counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    pub(crate) vanished: bool,
    pub(crate) factor: f64,
}

impl Reported {
    pub(crate) fn new(rng: Rng) -> Reported {
        Reported { rng, seen: Tally::default(), told: [0; 6], rest: [0.0; 6] }
    }

    /// The task does: nothing was seen of it yet.
    pub(crate) fn begin_anew(&mut self) {
        (self.seen, self.told, self.rest) = (Tally::default(), [0; 6], [0.0; 6]);
    }

    /// The counters start again.
    pub(crate) fn wrap(&mut self) {
        (self.told, self.rest) = ([0; 6], [0.0; 6]);
    }

    /// Cumulative counts; what was added since the last reading is off by the counters' noise.
    pub(crate) fn read(&mut self, now: &Tally, spec: &CountersSpec, trouble: Trouble) -> Counts {
        let news = [
            now.cycles - self.seen.cycles,
            now.instructions - self.seen.instructions,
            now.l1 - self.seen.l1,
            now.llc - self.seen.llc,
            now.reads - self.seen.reads,
            now.writes - self.seen.writes,
        ];
        self.seen = *now;
        for ((told, rest), news) in self.told.iter_mut().zip(&mut self.rest).zip(news) {
            let error = (uniform(&mut self.rng) * 2.0 - 1.0) * spec.noise;
            let counted = *rest + news * (1.0 + error) * trouble.factor;
            let whole = counted as u64;
            *told = told.saturating_add(whole);
            *rest = counted - whole as f64;
        }
        if trouble.vanished {
            return Counts::absent(Absence::CountersLost);
        }
        let none = !(spec.ipc || spec.l1_accesses || spec.llc_accesses || spec.mm_reads || spec.mm_writes);
        let why = if none { Absence::NoCounters } else { Absence::NoSuchEvent };
        let reading = |has: bool, ix: usize| if has { Reading::Value(self.told[ix]) } else { Reading::Absent(why) };
        Counts {
            cycles: reading(spec.ipc, 0),
            instructions: reading(spec.ipc, 1),
            l1_accesses: reading(spec.l1_accesses, 2),
            llc_accesses: reading(spec.llc_accesses, 3),
            mm_reads: reading(spec.mm_reads, 4),
            mm_writes: reading(spec.mm_writes, 5),
        }
    }
}

/// A uniform number in [0, 1).
pub(crate) fn uniform(rng: &mut Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: CountersSpec = CountersSpec {
        ipc: true,
        l1_accesses: true,
        llc_accesses: true,
        mm_reads: true,
        mm_writes: true,
        energy: true,
        noise: 0.0,
    };

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
                let counts = reported.read(&reads(each * f64::from(interval)), &ALL, trouble);
                last = counts.mm_reads.value().unwrap();
            }
            assert!(last.abs_diff((each * 1_000.0) as u64) <= 1, "{each}: {last}");
        }
    }

    #[test]
    fn counters_that_lie_beyond_their_range_stay_at_its_end() {
        let mut reported = Reported::new(Rng::new(1));
        let trouble = Trouble { vanished: false, factor: 1e300 };
        for interval in 1..=3 {
            let counts = reported.read(&reads(1e9 * f64::from(interval)), &ALL, trouble);
            assert_eq!(counts.mm_reads, Reading::Value(u64::MAX));
            assert_eq!(counts.mm_writes, Reading::Value(0));
        }
    }
}
