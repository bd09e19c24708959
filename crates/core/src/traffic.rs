//! Traffic of a memory domain, from all sources: jobs of the run, other processes, devices.

use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};

/// Lines of 64 bytes that one memory domain has moved, cumulative like counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// Lines read.
    pub reads: Reading<u64>,
    /// Lines written.
    pub writes: Reading<u64>,
}

/// Traffic rates over an interval: the sum over the memory domains of a task's CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrafficRates {
    /// Rate of lines read.
    pub reads: Reading<Rate>,
    /// Rate of lines written.
    pub writes: Reading<Rate>,
    /// Number of domains.
    pub domains: u32,
}

impl Traffic {
    /// All values absent, for one reason.
    pub fn absent(why: Absence) -> Traffic {
        Traffic {
            reads: Reading::Absent(why),
            writes: Reading::Absent(why),
        }
    }
}

impl TrafficRates {
    /// All values absent, for one reason.
    pub fn absent(why: Absence) -> TrafficRates {
        TrafficRates {
            reads: Reading::Absent(why),
            writes: Reading::Absent(why),
            domains: 0,
        }
    }

    /// Absent because the run does not need it.
    pub(crate) fn not_requested() -> TrafficRates {
        TrafficRates::absent(Absence::NotRequested)
    }

    pub(crate) fn is_not_requested(&self) -> bool {
        *self == TrafficRates::not_requested()
    }

    /// The rates between two readings of all domains that are `length` apart. Absent if either reading lacks one of
    /// these domains.
    pub fn between(
        before: &[Traffic],
        now: &[Traffic],
        domains: &[usize],
        length: Nanos,
    ) -> TrafficRates {
        let sum = |of: fn(&Traffic) -> Reading<u64>| {
            let mut moved = 0_u64;
            for &domain in domains {
                let (Some(before), Some(now)) = (before.get(domain), now.get(domain)) else {
                    return Reading::Absent(Absence::NotYetMeasured);
                };
                let since = of(now).and_then(|now| {
                    of(before).and_then(|before| {
                        Reading::from_option(now.checked_sub(before), Absence::WentBackwards)
                    })
                });
                match since {
                    Reading::Value(lines) => moved = moved.saturating_add(lines),
                    Reading::Absent(why) => return Reading::Absent(why),
                }
            }
            let rate = Rate::from_count(moved, length).filter(|_| !domains.is_empty());
            Reading::from_option(rate, Absence::NotYetMeasured)
        };
        let domains = domains.len() as u32;
        TrafficRates {
            reads: sum(|traffic| traffic.reads),
            writes: sum(|traffic| traffic.writes),
            domains,
        }
    }

    /// Mean rate of lines moved per domain: `accesses_p` of EFS, Eq. 18, as a rate.
    pub fn lines_of_each(&self) -> Reading<Rate> {
        let each = |lines: u64| {
            Reading::from_option(
                lines.checked_div(self.domains.into()),
                Absence::NotYetMeasured,
            )
        };
        self.reads.and_then(|reads| {
            self.writes
                .and_then(|writes| each(reads.0.saturating_add(writes.0)).map(Rate))
        })
    }

    /// The share of the writes that is attributed to a task with this rate of reads: writes are assumed to be
    /// distributed over tasks as reads are (EFS, Eq. 19). It is at most all writes: a task whose data lie in another
    /// domain can read more than its own domain serves.
    pub fn writes_of(&self, reads: Rate) -> Reading<Rate> {
        self.reads.and_then(|all| {
            self.writes.and_then(|writes| {
                let share = u128::from(writes.0) * u128::from(reads.0.min(all.0));
                match (share + u128::from(all.0) / 2).checked_div(u128::from(all.0)) {
                    Some(share) => Reading::Value(Rate(u64::try_from(share).unwrap_or(u64::MAX))),
                    // Without reads, the writes cannot be attributed.
                    None if writes.0 == 0 => Reading::Value(Rate(0)),
                    None => Reading::Absent(Absence::NotYetMeasured),
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moved(reads: u64, writes: u64) -> Traffic {
        Traffic {
            reads: Reading::Value(reads),
            writes: Reading::Value(writes),
        }
    }

    fn rates(reads: u64, writes: u64) -> TrafficRates {
        TrafficRates {
            reads: Reading::Value(Rate(reads)),
            writes: Reading::Value(Rate(writes)),
            domains: 1,
        }
    }

    #[test]
    fn writes_are_shared_out_as_reads_are_and_add_up() {
        // EFS, Eq. 19 with accesses_p = 1,200 and writes_p = 300.
        let all = rates(900, 300);
        assert_eq!(all.lines_of_each(), Reading::Value(Rate(1_200)));
        let parts = [600, 300, 0].map(|reads| all.writes_of(Rate(reads)).value().unwrap().0);
        assert_eq!(parts, [200, 100, 0]);
        // Most of this task's reads are remote.
        assert_eq!(all.writes_of(Rate(5_000)), Reading::Value(Rate(300)));
    }

    #[test]
    fn without_reads_nobody_can_be_told_to_have_written() {
        assert_eq!(
            rates(0, 5).writes_of(Rate(0)),
            Reading::Absent(Absence::NotYetMeasured)
        );
        assert_eq!(rates(0, 0).writes_of(Rate(0)), Reading::Value(Rate(0)));
        let unknown = TrafficRates::absent(Absence::NoPermission);
        assert_eq!(
            unknown.writes_of(Rate(7)),
            Reading::Absent(Absence::NoPermission)
        );
        assert_eq!(
            unknown.lines_of_each(),
            Reading::Absent(Absence::NoPermission)
        );
    }

    #[test]
    fn rates_are_of_all_domains_that_a_task_ran_on() {
        let ms = Nanos::from_ms;
        let (before, now) = (
            [moved(100, 10), moved(0, 0)],
            [moved(500, 30), moved(1_600, 0)],
        );
        assert_eq!(
            TrafficRates::between(&before, &now, &[0], ms(2)),
            rates(200, 10)
        );
        let both = TrafficRates::between(&before, &now, &[0, 1], ms(2));
        assert_eq!(
            both,
            TrafficRates {
                domains: 2,
                ..rates(1_000, 10)
            }
        );
        assert_eq!(both.lines_of_each(), Reading::Value(Rate(505)));
        let none = |domains| TrafficRates {
            domains,
            ..TrafficRates::absent(Absence::NotYetMeasured)
        };
        assert_eq!(
            TrafficRates::between(&before, &now[..1], &[1], ms(2)),
            none(1)
        );
        assert_eq!(TrafficRates::between(&before, &now, &[], ms(2)), none(0));
        assert_eq!(TrafficRates::between(&before, &now, &[0], ms(0)), none(1));
        assert_eq!(
            none(0).lines_of_each(),
            Reading::Absent(Absence::NotYetMeasured)
        );
    }

    #[test]
    fn a_counter_that_goes_back_is_absent_for_its_own_part_only() {
        let back = TrafficRates::between(&[moved(9, 1)], &[moved(8, 3)], &[0], Nanos::from_ms(1));
        assert_eq!(back.reads, Reading::Absent(Absence::WentBackwards));
        assert_eq!(back.writes, Reading::Value(Rate(2)));
        let lost = [Traffic {
            writes: Reading::Absent(Absence::CountersLost),
            ..moved(9, 0)
        }];
        let lost = TrafficRates::between(&[moved(9, 1)], &lost, &[0], Nanos::from_ms(1));
        assert_eq!(
            (lost.reads, lost.writes),
            (
                Reading::Value(Rate(0)),
                Reading::Absent(Absence::CountersLost)
            )
        );
    }
}
