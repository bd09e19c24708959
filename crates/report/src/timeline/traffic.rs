//! Lines that memory moved, in equal parts of a run of unknown length.

use crate::series::SampleRow;
use cosched_core::{Counter, Nanos};

/// Maximum number of parts; in a longer run two parts become one.
const MAX_PARTS: usize = 1024;
/// First length of a part.
const FIRST_WIDTH: Nanos = Nanos(10_000_000);

/// Lines of 64 bytes that were read and written, by part of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct TrafficTimeline {
    /// Length of a part.
    pub width: Nanos,
    /// Lines read, by part; empty if no sample has reads.
    pub reads: Vec<f64>,
    /// Lines written, by part; empty if no sample has writes.
    pub writes: Vec<f64>,
}

impl TrafficTimeline {
    pub(super) fn new() -> TrafficTimeline {
        TrafficTimeline {
            width: FIRST_WIDTH,
            reads: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Add the lines of a sample that ended at `to`.
    pub(super) fn add(&mut self, to: Nanos, sample: &SampleRow) {
        let reads = sample.counts[Counter::MmReads];
        let writes = sample.counts[Counter::MmWrites];
        self.add_lines(to - sample.interval, to, [reads, writes]);
    }

    /// Add lines that were counted in an interval, evenly over it.
    fn add_lines(&mut self, from: Nanos, to: Nanos, [reads, writes]: [Option<u64>; 2]) {
        if to <= from || (reads, writes) == (None, None) {
            return;
        }
        while to.0.div_ceil(self.width.0) > MAX_PARTS as u64 {
            self.width = Nanos(self.width.0 * 2);
            for parts in [&mut self.reads, &mut self.writes] {
                *parts = parts.chunks(2).map(|two| two.iter().sum()).collect();
            }
        }
        spread(&mut self.reads, self.width, from, to, reads);
        spread(&mut self.writes, self.width, from, to, writes);
    }

    /// Return this if any sample had traffic.
    pub(super) fn known(self) -> Option<TrafficTimeline> {
        (!self.reads.is_empty() || !self.writes.is_empty()).then_some(self)
    }

    /// Convert the lines of a part to a rate in GB/s.
    pub fn gb_per_s(&self, lines: f64) -> f64 {
        64.0 * lines / self.width.0 as f64
    }
}

/// Spread lines evenly over the parts of an interval.
fn spread(parts: &mut Vec<f64>, width: Nanos, from: Nanos, to: Nanos, lines: Option<u64>) {
    let Some(lines) = lines else { return };
    let count = to.0.div_ceil(width.0) as usize;
    parts.resize(parts.len().max(count), 0.0);
    let first = (from.0 / width.0) as usize;
    for (part, sum) in parts.iter_mut().enumerate().take(count).skip(first) {
        let begin = part as u64 * width.0;
        let shared = to.0.min(begin + width.0) - from.0.max(begin);
        *sum += lines as f64 * (shared as f64 / (to.0 - from.0) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_go_to_the_parts_of_their_interval() {
        let mut traffic = TrafficTimeline::new();
        traffic.add_lines(Nanos(5_000_000), Nanos(20_000_000), [Some(30), None]);
        traffic.add_lines(Nanos(30_000_000), Nanos(30_000_000), [Some(30), None]);
        assert_eq!(
            (&traffic.reads[..], &traffic.writes[..]),
            (&[10.0, 20.0][..], &[][..])
        );
        assert_eq!(traffic.gb_per_s(1e6), 6.4);
        assert_eq!(TrafficTimeline::new().known(), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            intervals in proptest::collection::vec((0_u64..200_000_000_000, 1_u64..2_000_000_000, 0_u64..1_000_000), 1..50)
        ) {
            let mut traffic = TrafficTimeline::new();
            for &(from, length, lines) in &intervals {
                traffic.add_lines(Nanos(from), Nanos(from + length), [Some(lines), Some(lines)]);
            }
            let all: u64 = intervals.iter().map(|interval| interval.2).sum();
            prop_assert!(traffic.reads.len() <= MAX_PARTS);
            prop_assert!((traffic.reads.iter().sum::<f64>() - all as f64).abs() < 1e-6 * all as f64 + 1e-9);
            prop_assert_eq!(&traffic.reads, &traffic.writes);
        }
    }
}
