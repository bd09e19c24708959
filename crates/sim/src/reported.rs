//! The counts that the simulated counters report: the true counts with noise and faults.

use crate::machine::CountersSpec;
use crate::world::TrueCounts;
use cosched_core::{Absence, Counter, Counts, PerCounter, Reading, Rng, Traffic};

/// A cumulative count as reported.
#[derive(Clone, Copy, Default)]
struct Count {
    /// The true count at the last reading.
    seen: f64,
    told: u64,
    /// The count beyond `told`, less than one event. It keeps small intervals from being rounded away.
    rest: f64,
}

impl Count {
    /// Counts the events since the last reading, `factor` for each one.
    fn read(&mut self, now: f64, factor: f64) -> u64 {
        let counted = self.rest + (now - self.seen) * factor;
        let whole = counted as u64;
        self.told = self.told.saturating_add(whole);
        self.rest = counted - whole as f64;
        self.seen = now;
        self.told
    }

    /// Starts again from zero.
    fn wrap(&mut self) {
        (self.told, self.rest) = Default::default();
    }
}

/// The counters of one task.
pub(crate) struct Reported {
    rng: Rng,
    counts: PerCounter<Count>,
}

/// A fault of all counters.
#[derive(Clone, Copy)]
pub(crate) struct Trouble {
    /// Whether no counter can be read any more.
    pub vanished: bool,
    /// Events reported per event; 1 if the counters are right.
    pub factor: f64,
}

impl Trouble {
    /// Events reported per event: 1 with an error of at most `noise`, times the fault's factor.
    fn factor(&self, noise: f64, rng: &mut Rng) -> f64 {
        (1.0 + (uniform(rng) * 2.0 - 1.0) * noise) * self.factor
    }
}

impl Reported {
    pub(crate) fn new(rng: Rng) -> Reported {
        Reported {
            rng,
            counts: PerCounter::default(),
        }
    }

    /// Restarts the task's counters at zero.
    pub(crate) fn begin_anew(&mut self) {
        self.counts = PerCounter::default();
    }

    /// Restarts all counters at zero.
    pub(crate) fn wrap(&mut self) {
        for counter in Counter::ALL {
            self.counts[counter].wrap();
        }
    }

    /// Reads the cumulative counts. The increase since the last reading has the counters' noise.
    pub(crate) fn read(
        &mut self,
        now: &TrueCounts,
        spec: &CountersSpec,
        trouble: Trouble,
    ) -> Counts {
        // Every counter draws a random number, even if the machine lacks it. So a counter's noise does not depend on
        // the machine's other counters.
        let told = PerCounter::from_fn(|counter| {
            let factor = trouble.factor(spec.noise, &mut self.rng);
            self.counts[counter].read(now.of(counter), factor)
        });
        if trouble.vanished {
            return Counts::absent(Absence::CountersLost);
        }
        Counts::from_fn(|counter| match spec.absence(counter) {
            None => Reading::Value(told[counter]),
            Some(why) => Reading::Absent(why),
        })
    }
}

/// The meters of the memory domains: lines read and written.
pub(crate) struct ReportedTraffic {
    rng: Rng,
    domains: Vec<[Count; 2]>,
}

impl ReportedTraffic {
    pub(crate) fn new(rng: Rng, domains: usize) -> ReportedTraffic {
        ReportedTraffic {
            rng,
            domains: vec![[Count::default(); 2]; domains],
        }
    }

    /// Restarts all meters at zero.
    pub(crate) fn wrap(&mut self) {
        self.domains.iter_mut().flatten().for_each(Count::wrap);
    }

    /// Reads the meters. `moved` are the true lines read from and written to each domain.
    pub(crate) fn read(
        &mut self,
        moved: &[(f64, f64)],
        spec: &CountersSpec,
        trouble: Trouble,
    ) -> Vec<Traffic> {
        let absence = match trouble.vanished {
            true => Some(Absence::CountersLost),
            false => spec.traffic_absence(),
        };
        let mut all = Vec::new();
        for ([read, written], &(reads, writes)) in self.domains.iter_mut().zip(moved) {
            let reads = read.read(reads, trouble.factor(spec.noise, &mut self.rng));
            let writes = written.read(writes, trouble.factor(spec.noise, &mut self.rng));
            all.push(match absence {
                Some(why) => Traffic::absent(why),
                None => Traffic {
                    reads: Reading::Value(reads),
                    writes: Reading::Value(writes),
                },
            });
        }
        all
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
        CountersSpec {
            counts: PerCounter::from_fn(|_| true),
            traffic: true,
            energy: true,
            noise: 0.0,
        }
    }

    fn reads(reads: f64) -> TrueCounts {
        TrueCounts {
            reads,
            ..TrueCounts::default()
        }
    }

    #[test]
    fn events_of_many_short_intervals_are_all_counted() {
        for each in [0.4, 0.6] {
            let mut reported = Reported::new(Rng::new(1));
            let trouble = Trouble {
                vanished: false,
                factor: 1.0,
            };
            let mut last = 0;
            for interval in 1..=1_000 {
                let counts = reported.read(&reads(each * f64::from(interval)), &all(), trouble);
                last = counts[Counter::MmReads].value().unwrap();
            }
            assert!(
                last.abs_diff((each * 1_000.0) as u64) <= 1,
                "{each}: {last}"
            );
        }
    }

    #[test]
    fn counters_that_lie_beyond_their_range_stay_at_its_end() {
        let mut reported = Reported::new(Rng::new(1));
        let trouble = Trouble {
            vanished: false,
            factor: 1e300,
        };
        for interval in 1..=3 {
            let counts = reported.read(&reads(1e9 * f64::from(interval)), &all(), trouble);
            assert_eq!(counts[Counter::MmReads], Reading::Value(u64::MAX));
            assert_eq!(counts[Counter::MmWrites], Reading::Value(0));
        }
    }
    #[test]
    fn each_memory_domain_has_a_meter_of_its_own() {
        let mut reported = ReportedTraffic::new(Rng::new(1), 2);
        let right = Trouble {
            vanished: false,
            factor: 1.0,
        };
        let values = |reads, writes| Traffic {
            reads: Reading::Value(reads),
            writes: Reading::Value(writes),
        };
        assert_eq!(
            reported.read(&[(10.0, 2.0), (0.0, 0.5)], &all(), right),
            [values(10, 2), values(0, 0)]
        );
        assert_eq!(
            reported.read(&[(15.0, 2.0), (0.0, 1.0)], &all(), right),
            [values(15, 2), values(0, 1)]
        );
        reported.wrap();
        assert_eq!(
            reported.read(&[(16.0, 2.0), (0.0, 1.0)], &all(), right),
            [values(1, 0), values(0, 0)]
        );
        let vanished = Trouble {
            vanished: true,
            ..right
        };
        assert_eq!(
            reported.read(&[(17.0, 2.0), (0.0, 1.0)], &all(), vanished),
            [Traffic::absent(Absence::CountersLost); 2]
        );
        let none = CountersSpec {
            traffic: false,
            ..all()
        };
        assert_eq!(
            reported.read(&[(17.0, 2.0), (0.0, 1.0)], &none, right),
            [Traffic::absent(Absence::NoSuchEvent); 2]
        );
    }
}
