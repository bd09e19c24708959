//! What a managed subject has used since it was entered: the sum over the intervals.

use cosched_core::{
    Absence, Counts, DeviceTime, Nanos, PerCounter, Reading, SubjectSample, TaskId, Usage,
};

/// Sums over intervals.
#[derive(Clone, Debug)]
pub(super) struct IntervalSums {
    cpu_time: Nanos,
    sums: PerCounter<u64>,
    /// Counts of the last interval: a counter that was absent in it is absent in the usage as well.
    last: Counts,
}

impl Default for IntervalSums {
    fn default() -> IntervalSums {
        IntervalSums {
            cpu_time: Nanos::ZERO,
            sums: PerCounter::from_fn(|_| 0),
            last: Counts::absent(Absence::NotYetMeasured),
        }
    }
}

impl IntervalSums {
    /// Adds an interval.
    pub(super) fn add(&mut self, sample: &SubjectSample) {
        self.cpu_time += sample.cpu_time;
        self.sums = PerCounter::from_fn(|counter| {
            let more = sample.counts[counter].value().unwrap_or(0);
            self.sums[counter].saturating_add(more)
        });
        self.last = sample.counts;
    }

    /// The usage so far.
    pub(super) fn usage(&self, task: TaskId) -> Usage {
        Usage {
            task,
            cpu_time: Reading::Value(self.cpu_time),
            counts: Counts::from_fn(|counter| self.last[counter].map(|_| self.sums[counter])),
            multiplexed: false,
            residency: Reading::Absent(Absence::NotRequested),
            device_time: DeviceTime::from_fn(|_| Reading::Absent(Absence::NotOffered)),
        }
    }
}
