//! Lines that memory moved, in equal parts of a run whose length is not known beforehand.

use cosched_core::Nanos;

/// So many parts there are at most; when a run lasts longer, two become one.
const MOST: usize = 1024;
/// The first length of a part.
const FIRST: Nanos = Nanos(10_000_000);

/// Lines of 64 bytes that were read and written, by part of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The length of a part.
    pub width: Nanos,
    /// Lines read, by part.
    pub reads: Vec<f64>,
    /// Lines written, by part.
    pub writes: Vec<f64>,
    /// Whether any sample told reads, or writes.
    has: [bool; 2],
}

impl Traffic {
    pub(super) fn new() -> Traffic {
        Traffic {
            width: FIRST,
            reads: Vec::new(),
            writes: Vec::new(),
            has: [false; 2],
        }
    }

    /// Adds lines that were counted in an interval, evenly over it.
    pub(super) fn add(&mut self, from: Nanos, to: Nanos, lines: [Option<u64>; 2]) {
        if to <= from || lines.iter().all(Option::is_none) {
            return;
        }
        while to.0.div_ceil(self.width.0) > MOST as u64 {
            self.width = Nanos(self.width.0 * 2);
            for parts in [&mut self.reads, &mut self.writes] {
                *parts = parts.chunks(2).map(|two| two.iter().sum()).collect();
            }
        }
        let count = to.0.div_ceil(self.width.0) as usize;
        for (which, (parts, lines)) in [&mut self.reads, &mut self.writes]
            .into_iter()
            .zip(lines)
            .enumerate()
        {
            let Some(lines) = lines else { continue };
            self.has[which] = true;
            parts.resize(parts.len().max(count), 0.0);
            let first = (from.0 / self.width.0) as usize;
            for (part, sum) in parts.iter_mut().enumerate().take(count).skip(first) {
                let begins = part as u64 * self.width.0;
                let shared = to.0.min(begins + self.width.0) - from.0.max(begins);
                *sum += lines as f64 * (shared as f64 / (to.0 - from.0) as f64);
            }
        }
    }

    /// This, if anything was told. What was never told has no parts.
    pub(super) fn known(self) -> Option<Traffic> {
        self.has.iter().any(|&has| has).then_some(self)
    }

    /// The lines of a part as a rate in GB/s.
    pub fn gb_per_s(&self, lines: f64) -> f64 {
        64.0 * lines / self.width.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_go_to_the_parts_of_their_interval() {
        let mut traffic = Traffic::new();
        traffic.add(Nanos(5_000_000), Nanos(20_000_000), [Some(30), None]);
        traffic.add(Nanos(30_000_000), Nanos(30_000_000), [Some(30), None]);
        assert_eq!(
            (&traffic.reads[..], &traffic.writes[..]),
            (&[10.0, 20.0][..], &[][..])
        );
        assert_eq!(traffic.gb_per_s(1e6), 6.4);
        assert_eq!(Traffic::new().known(), None);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(
            intervals in proptest::collection::vec((0_u64..200_000_000_000, 1_u64..2_000_000_000, 0_u64..1_000_000), 1..50)
        ) {
            let mut traffic = Traffic::new();
            for &(from, length, lines) in &intervals {
                traffic.add(Nanos(from), Nanos(from + length), [Some(lines), Some(lines)]);
            }
            let all: u64 = intervals.iter().map(|interval| interval.2).sum();
            prop_assert!(traffic.reads.len() <= MOST);
            prop_assert!((traffic.reads.iter().sum::<f64>() - all as f64).abs() < 1e-6 * all as f64 + 1e-9);
            prop_assert_eq!(&traffic.reads, &traffic.writes);
        }
    }
}
