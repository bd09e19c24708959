//! What was measured of a task over one interval in which it was placed.

use crate::placement::Purpose;
use crate::residency::Residency;
use crate::task::TaskId;
use crate::topology::CpuSet;
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Event counts, cumulative or of an interval. Reads and writes of memory are kept apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Core clock cycles in user mode.
    pub cycles: Reading<u64>,
    /// Instructions retired in user mode.
    pub instructions: Reading<u64>,
    /// Accesses to the first-level data cache.
    pub l1_accesses: Reading<u64>,
    /// Accesses to the last-level cache.
    pub llc_accesses: Reading<u64>,
    /// Lines of 64 bytes read from main memory.
    pub mm_reads: Reading<u64>,
    /// Lines of 64 bytes written to main memory.
    pub mm_writes: Reading<u64>,
}

impl Counts {
    /// Nothing was counted, all for the same reason.
    pub fn absent(why: Absence) -> Counts {
        let no = Reading::Absent(why);
        Counts { cycles: no, instructions: no, l1_accesses: no, llc_accesses: no, mm_reads: no, mm_writes: no }
    }

    /// Every event's count with its name, in a fixed order.
    pub fn named(&self) -> [(&'static str, Reading<u64>); 6] {
        [
            ("cycles", self.cycles),
            ("instructions", self.instructions),
            ("l1_accesses", self.l1_accesses),
            ("llc_accesses", self.llc_accesses),
            ("mm_reads", self.mm_reads),
            ("mm_writes", self.mm_writes),
        ]
    }

    /// What was counted since `earlier`.
    pub fn since(&self, earlier: &Counts) -> Counts {
        fn delta(now: Reading<u64>, before: Reading<u64>) -> Reading<u64> {
            now.and_then(|now| match before {
                Reading::Value(before) => Reading::from_option(now.checked_sub(before), Absence::WentBackwards),
                // An event that has just become readable says nothing of the interval before.
                Reading::Absent(why) => Reading::Absent(why),
            })
        }
        Counts {
            cycles: delta(self.cycles, earlier.cycles),
            instructions: delta(self.instructions, earlier.instructions),
            l1_accesses: delta(self.l1_accesses, earlier.l1_accesses),
            llc_accesses: delta(self.llc_accesses, earlier.llc_accesses),
            mm_reads: delta(self.mm_reads, earlier.mm_reads),
            mm_writes: delta(self.mm_writes, earlier.mm_writes),
        }
    }

    /// Instructions per cycle; absent when either is, or when no cycle was counted.
    pub fn ipc(&self) -> Reading<f64> {
        self.cycles.and_then(|cycles| {
            self.instructions.and_then(|instructions| {
                if cycles == 0 {
                    Reading::Absent(Absence::NotYetMeasured)
                } else {
                    Reading::Value(instructions as f64 / cycles as f64)
                }
            })
        })
    }
}

/// What a backend reads of a task: cumulative since the task's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The task.
    pub task: TaskId,
    /// CPU time of the task and its descendants.
    pub cpu_time: Reading<Nanos>,
    /// Event counts.
    pub counts: Counts,
    /// The kernel shared the counters out in time, and the counts are scaled estimates.
    pub multiplexed: bool,
    /// Where its time really went, where the backend observes that.
    pub residency: Reading<Residency>,
}

impl Usage {
    /// Nothing used yet: where every task starts.
    pub fn zero(task: TaskId) -> Usage {
        let zero = Reading::Value(0);
        Usage {
            task,
            cpu_time: Reading::Value(Nanos::ZERO),
            counts: Counts {
                cycles: zero,
                instructions: zero,
                l1_accesses: zero,
                llc_accesses: zero,
                mm_reads: zero,
                mm_writes: zero,
            },
            multiplexed: false,
            residency: Reading::Absent(Absence::NotRequested),
        }
    }
}

/// One interval of one task, from its placement, or the last sample, to now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The task.
    pub task: TaskId,
    /// When the interval ended.
    pub at: Nanos,
    /// Its length.
    pub interval: Nanos,
    /// What it was meant to last.
    pub planned: Nanos,
    /// What the placement was for.
    pub purpose: Purpose,
    /// Where the task ran, or was allowed to.
    pub cpus: CpuSet,
    /// No other task of the run was on the same cores.
    pub whole_core: bool,
    /// The tasks that ran when the interval began, this one included.
    pub co_runners: Arc<[TaskId]>,
    /// An ordinary task joined within the interval, so that a measurement in low contention is spoiled.
    pub disturbed: bool,
    /// CPU time used in the interval.
    pub cpu_time: Reading<Nanos>,
    /// Events counted in the interval.
    pub counts: Counts,
    /// The counts are scaled estimates.
    pub multiplexed: bool,
    /// Length, co-runners and `whole_core` are what the backend observed, and not what was planned: see
    /// [`Residency`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
}

impl Sample {
    /// Ended clearly before it was meant to.
    pub fn cut_short(&self) -> bool {
        self.interval.0 < self.planned.0 - self.planned.0 / 20
    }

    /// The rate of a count over the interval.
    pub fn rate(&self, count: Reading<u64>) -> Reading<Rate> {
        count.and_then(|count| Reading::from_option(Rate::from_count(count, self.interval), Absence::NotYetMeasured))
    }

    /// The rate of a count over the CPU time of the interval.
    pub fn rate_on_cpu(&self, count: Reading<u64>) -> Reading<Rate> {
        let rate = |count, time| Reading::from_option(Rate::from_count(count, time), Absence::NotYetMeasured);
        self.cpu_time.and_then(|time| count.and_then(|count| rate(count, time)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_goes_back_is_absent_not_zero() {
        let mut earlier = Usage::zero(TaskId(0)).counts;
        earlier.cycles = Reading::Value(10);
        let mut now = earlier;
        now.cycles = Reading::Value(7);
        now.instructions = Reading::Value(5);
        now.mm_reads = Reading::Absent(Absence::CountersLost);
        let delta = now.since(&earlier);
        assert_eq!(delta.cycles, Reading::Absent(Absence::WentBackwards));
        assert_eq!(delta.instructions, Reading::Value(5));
        assert_eq!(delta.mm_reads, Reading::Absent(Absence::CountersLost));
        assert_eq!(delta.ipc(), Reading::Absent(Absence::WentBackwards));
        assert_eq!(Counts::absent(Absence::NoCounters).ipc(), Reading::Absent(Absence::NoCounters));
    }
}
