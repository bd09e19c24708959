//! Mean bandwidths, weighted by time: of a task since its start, and of all solo runs.

use crate::task::TaskSpec;
use crate::units::{Absence, Nanos, Rate, Reading};

/// A mean rate over all intervals with a known count.
#[derive(Clone, Debug, Default)]
pub(super) struct MeanRate {
    count: u64,
    time: Nanos,
    last_absence: Option<Absence>,
}

impl MeanRate {
    /// Adds an interval; without a count it is left out of the mean.
    pub(super) fn add(&mut self, count: Reading<u64>, interval: Nanos) {
        match count {
            Reading::Value(count) => {
                self.count = self.count.saturating_add(count);
                self.time += interval;
            }
            Reading::Absent(why) => self.last_absence = Some(why),
        }
    }

    /// The mean, or why there is none.
    pub(super) fn mean(&self) -> Reading<Rate> {
        let why = self.last_absence.unwrap_or(Absence::NotYetMeasured);
        Reading::from_option(Rate::from_count(self.count, self.time), why)
    }
}

/// The ideal average bandwidth of a workload (IABW of Xu et al.; Perf&Fair, sections 2 and 7): the mean over the solo
/// runs of all its tasks. A sum is enough, so tasks may come one by one.
#[derive(Clone, Debug, Default)]
pub struct IdealBandwidth(MeanRate);

impl IdealBandwidth {
    /// Adds a task. Without a solo profile it is left out of the mean.
    pub fn add(&mut self, spec: &TaskSpec) {
        let time = spec.solo.time.unwrap_or_default();
        let lines = spec.solo.mm_reads.map(|rate| rate.count_in(time));
        let cpu_time = Nanos(time.0.saturating_mul(u64::from(spec.cpus)));
        self.0.add(
            Reading::from_option(lines, Absence::NoSoloEstimate),
            cpu_time,
        );
    }

    /// Lines read from memory, per millisecond and per CPU: a task counts for its solo time, and a gang once for each of
    /// its CPUs.
    pub fn mean(&self) -> Reading<Rate> {
        self.0.mean()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weighs_by_time_and_leaves_gaps_out() {
        let mut mean = MeanRate::default();
        assert_eq!(mean.mean(), Reading::Absent(Absence::NotYetMeasured));
        mean.add(Reading::Absent(Absence::CountersLost), Nanos::from_ms(500));
        assert_eq!(mean.mean(), Reading::Absent(Absence::CountersLost));
        mean.add(Reading::Value(100), Nanos::from_ms(1));
        mean.add(Reading::Value(0), Nanos::from_ms(3));
        assert_eq!(mean.mean(), Reading::Value(Rate(25)));
    }
}
