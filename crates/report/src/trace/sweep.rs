//! Counters over time, from intervals that are told when they end.
//!
//! A counter of a trace has a value from a moment on. An interval is known at its end only, so its values wait here until
//! no later row can tell of anything earlier. They then come out in the order of their times, and the sums over all jobs
//! with them.

use super::packet::Count;
use super::tracks::{Meter, Tracks};
use cosched_core::Nanos;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Values that wait at most; then the oldest come out although something earlier may follow, which then counts from
/// where the counters are.
const WAITING: usize = 1 << 18;

/// What is summed over jobs, and the units of its parts in one of the sum.
const SUMS: [(Meter, f64); 3] = [
    (Meter::Busy, 1e6),
    (Meter::Read, 1.0),
    (Meter::Written, 1.0),
];

/// A part of a sum; `None` is absent.
#[derive(Clone, Copy, Debug)]
struct Part {
    sum: usize,
    value: Option<u64>,
    leaves: bool,
}

#[derive(Clone, Copy, Debug)]
enum Change {
    Set(Meter, Count),
    Part(Part),
}

#[derive(Debug)]
struct Waiting {
    at: Nanos,
    order: u64,
    change: Change,
}

impl Waiting {
    fn key(&self) -> (Nanos, u64) {
        (self.at, self.order)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A sum over the jobs that are in an interval at the time. Whole numbers, so that what comes and goes leaves nothing.
#[derive(Clone, Copy, Debug, Default)]
struct Total {
    value: i128,
    /// Jobs of which the part is absent.
    absent: i64,
    /// Whether any part ever had a value: else nothing counts it, and the sum is not 0.
    counted: bool,
    shown: Option<i128>,
}

/// What was used in an interval: in the order of [`SUMS`], CPU time in millionths of a CPU, and bytes a second.
pub(super) type Parts = [Option<u64>; SUMS.len()];

/// Values that wait for their time.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    waiting: BinaryHeap<Reverse<Waiting>>,
    totals: [Total; SUMS.len()],
    order: u64,
}

impl Sweep {
    /// A counter has this value from then on.
    pub(super) fn set(&mut self, at: Nanos, meter: Meter, value: Count) {
        self.push(at, Change::Set(meter, value));
    }

    /// A job used this over an interval.
    pub(super) fn interval(&mut self, from: Nanos, to: Nanos, parts: Parts) {
        for (sum, value) in parts.into_iter().enumerate() {
            self.push(
                from,
                Change::Part(Part {
                    sum,
                    value,
                    leaves: false,
                }),
            );
            self.push(
                to,
                Change::Part(Part {
                    sum,
                    value,
                    leaves: true,
                }),
            );
        }
    }

    fn push(&mut self, at: Nanos, change: Change) {
        self.order += 1;
        self.waiting.push(Reverse(Waiting {
            at,
            order: self.order,
            change,
        }));
    }

    /// Writes all values before `until`, or all that fit no more.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn write<W: Write>(
        &mut self,
        until: Nanos,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        while let Some(Reverse(first)) = self.waiting.peek() {
            let at = first.at;
            if at >= until && self.waiting.len() <= WAITING {
                break;
            }
            self.write_moment(at, tracks)?;
        }
        Ok(())
    }

    /// Writes all that is left.
    ///
    /// # Errors
    /// An error of the system.
    pub(super) fn finish<W: Write>(&mut self, tracks: &mut Tracks<W>) -> io::Result<()> {
        while let Some(Reverse(first)) = self.waiting.peek() {
            let at = first.at;
            self.write_moment(at, tracks)?;
        }
        Ok(())
    }

    /// Writes what counts from `at` on: of a sum only what it comes to when all parts have come and gone.
    fn write_moment<W: Write>(&mut self, at: Nanos, tracks: &mut Tracks<W>) -> io::Result<()> {
        while self
            .waiting
            .peek()
            .is_some_and(|Reverse(next)| next.at == at)
        {
            let Some(Reverse(next)) = self.waiting.pop() else {
                break;
            };
            match next.change {
                Change::Set(meter, value) => tracks.count(at, meter, value)?,
                Change::Part(part) => self.totals[part.sum].add(part),
            }
        }
        for (total, (meter, units)) in self.totals.iter_mut().zip(SUMS) {
            if !total.counted {
                continue;
            }
            let value = (total.absent == 0).then_some(total.value);
            if total.shown == value {
                continue;
            }
            total.shown = value;
            // Absent is no value: nothing is written.
            let Some(value) = value else { continue };
            let whole = Count::Whole(u64::try_from(value).unwrap_or_default());
            let value = if units == 1.0 {
                whole
            } else {
                Count::Number(value as f64 / units)
            };
            tracks.count(at, meter, value)?;
        }
        Ok(())
    }
}

impl Total {
    fn add(&mut self, part: Part) {
        let sign = if part.leaves { -1 } else { 1 };
        match part.value {
            Some(value) => {
                self.value += sign * i128::from(value);
                self.counted = true;
            }
            None => self.absent += sign as i64,
        }
    }
}
