//! Measurements of a task over one interval in which it was placed.

use crate::counter::{Counter, PerCounter};
use crate::device::DeviceTime;
use crate::placement::Purpose;
use crate::residency::Residency;
use crate::task::TaskId;
use crate::topology::CpuSet;
use crate::traffic::TrafficRates;
use crate::units::{Absence, Nanos, Rate, Reading};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Event counts, cumulative or of an interval.
pub type Counts = PerCounter<Reading<u64>>;

impl Counts {
    /// All counters absent, for one reason.
    pub fn absent(why: Absence) -> Counts {
        Counts::from_fn(|_| Reading::Absent(why))
    }

    /// The counts since `earlier`. A counter that went backwards is absent.
    pub fn since(&self, earlier: &Counts) -> Counts {
        Counts::from_fn(|counter| {
            self[counter].and_then(|now| match earlier[counter] {
                Reading::Value(before) => {
                    Reading::from_option(now.checked_sub(before), Absence::WentBackwards)
                }
                // An event that has just become readable says nothing about the interval before.
                Reading::Absent(why) => Reading::Absent(why),
            })
        })
    }

    /// Instructions per cycle; absent when either count is absent, or when no cycle was counted.
    pub fn ipc(&self) -> Reading<f64> {
        self[Counter::Cycles].and_then(|cycles| {
            self[Counter::Instructions].and_then(|instructions| {
                if cycles == 0 {
                    Reading::Absent(Absence::NotYetMeasured)
                } else {
                    Reading::Value(instructions as f64 / cycles as f64)
                }
            })
        })
    }
}

/// A backend's reading of a task: cumulative since the task's start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// The measured task.
    pub task: TaskId,
    /// CPU time of the task and its descendants.
    pub cpu_time: Reading<Nanos>,
    /// Events counted in the task and its descendants.
    pub counts: Counts,
    /// Whether the kernel multiplexed the counters, so that the counts are scaled estimates.
    pub multiplexed: bool,
    /// How the task's time was really spent; absent if the backend does not observe it.
    pub residency: Reading<Residency>,
    /// Time that devices worked for it; left to [`Backend::device_time`](crate::Backend::device_time).
    pub device_time: DeviceTime,
}

impl Usage {
    /// How the task's time was spent since an earlier reading; `None` if the backend does not observe it.
    pub(crate) fn residency_since(&self, before: &Usage) -> Option<Residency> {
        match (&self.residency, &before.residency) {
            (Reading::Value(now), Reading::Value(before)) => Some(now.since(before)),
            (Reading::Value(now), Reading::Absent(_)) => Some(now.clone()),
            (Reading::Absent(_), _) => None,
        }
    }

    /// The usage of a task at its start: zero everywhere.
    pub fn zero(task: TaskId) -> Usage {
        Usage {
            task,
            cpu_time: Reading::Value(Nanos::ZERO),
            counts: Counts::from_fn(|_| Reading::Value(0)),
            multiplexed: false,
            residency: Reading::Absent(Absence::NotRequested),
            device_time: DeviceTime::from_fn(|_| Reading::Value(Nanos::ZERO)),
        }
    }
}

/// One interval of one task: from its placement or last sample until now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The measured task.
    pub task: TaskId,
    /// End of the interval.
    pub at: Nanos,
    /// Length of the interval.
    pub interval: Nanos,
    /// Planned length of the interval.
    pub planned: Nanos,
    /// Purpose of the placement.
    pub purpose: Purpose,
    /// The CPUs on which the task was placed.
    pub cpus: CpuSet,
    /// Whether no other task of the run was on the same cores.
    pub whole_core: bool,
    /// The tasks that ran at the start of the interval, this one included.
    pub co_runners: Arc<[TaskId]>,
    /// Whether an ordinary task joined within the interval, which spoils a measurement in low contention.
    pub disturbed: bool,
    /// CPU time used in the interval.
    pub cpu_time: Reading<Nanos>,
    /// Events counted in the interval.
    pub counts: Counts,
    /// Whether the kernel multiplexed the counters, so that the counts are scaled estimates.
    pub multiplexed: bool,
    /// The traffic of the memory domains of its CPUs, from all sources.
    #[serde(
        default = "TrafficRates::not_requested",
        skip_serializing_if = "TrafficRates::is_not_requested"
    )]
    pub traffic: TrafficRates,
    /// Time that devices worked for it in the interval.
    #[serde(
        default = "DeviceTime::not_requested",
        skip_serializing_if = "DeviceTime::is_not_requested"
    )]
    pub device_time: DeviceTime,
    /// Whether length, co-runners and `whole_core` were observed by the backend (see [`Residency`]). If not, they are
    /// the planned ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub observed: bool,
}

/// Threads of a task that want a CPU at an instant: they run or wait for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanting {
    /// Of all its processes.
    pub all: u32,
    /// Of the process with the most.
    pub of_one_process: Reading<u32>,
}

impl Sample {
    /// Whether the interval ended before 95 % of its planned length.
    pub fn cut_short(&self) -> bool {
        self.interval.0 < self.planned.0 - self.planned.0 / 20
    }

    /// The rate of a count over the interval.
    pub fn rate(&self, count: Reading<u64>) -> Reading<Rate> {
        count.and_then(|count| rate(count, self.interval))
    }

    /// The rate of a count over the CPU time of the interval.
    pub fn rate_on_cpu(&self, count: Reading<u64>) -> Reading<Rate> {
        self.cpu_time
            .and_then(|time| count.and_then(|count| rate(count, time)))
    }
}

fn rate(count: u64, time: Nanos) -> Reading<Rate> {
    Reading::from_option(Rate::from_count(count, time), Absence::NotYetMeasured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_goes_back_is_absent_not_zero() {
        let mut earlier = Usage::zero(TaskId(0)).counts;
        earlier[Counter::Cycles] = Reading::Value(10);
        let mut now = earlier;
        now[Counter::Cycles] = Reading::Value(7);
        now[Counter::Instructions] = Reading::Value(5);
        now[Counter::MmReads] = Reading::Absent(Absence::CountersLost);
        let delta = now.since(&earlier);
        assert_eq!(
            delta[Counter::Cycles],
            Reading::Absent(Absence::WentBackwards)
        );
        assert_eq!(delta[Counter::Instructions], Reading::Value(5));
        assert_eq!(
            delta[Counter::MmReads],
            Reading::Absent(Absence::CountersLost)
        );
        assert_eq!(delta.ipc(), Reading::Absent(Absence::WentBackwards));
        assert_eq!(
            Counts::absent(Absence::NoCounters).ipc(),
            Reading::Absent(Absence::NoCounters)
        );
    }
}
