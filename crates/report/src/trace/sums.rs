//! Sums over all jobs, from the intervals of each.
//!
//! An interval is known only at its end, and intervals of jobs overlap. So the sums are ready at the end of the series.

use super::event::{Meter, Trace};
use cosched_core::Nanos;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The summed counters, and how many of their parts make a unit.
const METERS: [(Meter, u64); 3] = [
    (Meter::Busy, 1_000_000),
    (Meter::Read, 1),
    (Meter::Written, 1),
];

/// The rates of a job in an interval: millionths of a CPU, bytes read and bytes written per second; `None` is absent.
pub(super) type Rates = [Option<u64>; METERS.len()];

/// A sum at one time, or its change at a time.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    // Whole numbers, so that an interval that has ended leaves nothing.
    value: i128,
    /// Number of jobs whose rate is absent.
    absent: i64,
}

/// The changes of the sums, by time.
#[derive(Default)]
pub(super) struct Sums {
    changes: BTreeMap<Nanos, [Sum; METERS.len()]>,
    /// Whether any job ever had this rate; else there is no sum.
    counted: [bool; METERS.len()],
}

impl Sums {
    /// Add the rates of a job over an interval.
    pub(super) fn add(&mut self, from: Nanos, to: Nanos, rates: Rates) {
        for (ix, rate) in rates.into_iter().enumerate() {
            self.counted[ix] |= rate.is_some();
            for (at, sign) in [(from, 1), (to, -1)] {
                let change = &mut self.changes.entry(at).or_default()[ix];
                match rate {
                    Some(rate) => change.value += sign * i128::from(rate),
                    None => change.absent += sign as i64,
                }
            }
        }
    }

    /// Write the sums; there is no value while a job's rate is absent.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn write<W: Write>(self, trace: &mut Trace<W>) -> io::Result<()> {
        for (ix, (meter, unit)) in METERS.into_iter().enumerate() {
            let mut sum = Sum::default();
            let mut shown = None;
            for (at, changes) in &self.changes {
                sum.value += changes[ix].value;
                sum.absent += changes[ix].absent;
                let value = (sum.absent == 0).then_some(sum.value);
                if let Some(value) = value
                    && self.counted[ix]
                    && shown != Some(value)
                {
                    trace.count(meter, *at, value as f64 / unit as f64)?;
                }
                shown = value;
            }
        }
        Ok(())
    }
}
