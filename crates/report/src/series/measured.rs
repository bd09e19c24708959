//! Sums of a job's measurements.

use super::SampleRow;
use cosched_core::{Counter, Nanos, PerCounter};
use std::collections::BTreeMap;

/// The measurements of a job over several intervals. A value is absent if any interval lacks it.
pub(crate) struct Measured {
    /// Length of the intervals together.
    pub interval: Nanos,
    /// CPU time in nanoseconds.
    cpu_ns: Option<u64>,
    counts: PerCounter<Option<u64>>,
    pub multiplexed: bool,
    /// Progress in the end, in thousandths of a quantum.
    pub progress_milli: Option<u64>,
}

impl Default for Measured {
    fn default() -> Measured {
        Measured {
            interval: Nanos::ZERO,
            cpu_ns: Some(0),
            counts: PerCounter::from_fn(|_| Some(0)),
            multiplexed: false,
            progress_milli: None,
        }
    }
}

impl Measured {
    pub(crate) fn add(&mut self, sample: &SampleRow) {
        self.interval += sample.interval;
        self.cpu_ns = sum(self.cpu_ns, sample.cpu_time.map(|time| time.0));
        for counter in Counter::ALL {
            self.counts[counter] = sum(self.counts[counter], sample.counts[counter]);
        }
        self.multiplexed |= sample.multiplexed;
        self.progress_milli = sample.progress_milli.or(self.progress_milli);
    }

    /// Return the CPU time, if there was an interval.
    pub(crate) fn cpu_time(&self) -> Option<Nanos> {
        self.cpu_ns.filter(|_| self.is_measured()).map(Nanos)
    }

    /// Return a count, if there was an interval.
    pub(crate) fn count(&self, counter: Counter) -> Option<u64> {
        self.counts[counter].filter(|_| self.is_measured())
    }

    /// Return the counts that are known.
    pub(crate) fn counts(&self) -> BTreeMap<Counter, u64> {
        let mut counts = BTreeMap::new();
        for counter in Counter::ALL {
            counts.extend(self.count(counter).map(|count| (counter, count)));
        }
        counts
    }

    fn is_measured(&self) -> bool {
        self.interval > Nanos::ZERO
    }
}

fn sum(before: Option<u64>, more: Option<u64>) -> Option<u64> {
    before?.checked_add(more?)
}
