//! Mean bandwidth of a task since its start, weighted by time.

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
