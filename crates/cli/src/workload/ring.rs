//! Cache lines linked into one ring in random order: the memory that the dependent loads of `chase`, `bus` and `phases`
//! walk over.
//!
//! Each line holds the index of the next one, so a load can't start before the one before it has ended. As the lines
//! form a single cycle, a walk comes back to a line only after it has visited all others. So a working set larger than
//! a cache with least-recently-used replacement misses it every time, and no line is left out, as on a permutation of
//! many short cycles. As the order is random, prefetchers can't predict the next line.

use super::arithmetic::{Generator, fold};
use super::memory::{MemoryError, check, filled, reserved};
use cosched_linux::prefer_huge_pages;

/// Bytes of a cache line, as on current x86 and most Arm processors.
pub const LINE_BYTES: u64 = size_of::<Line>() as u64;

/// One cache line: only its first word is used, the rest keeps neighbours out of the line.
#[derive(Clone)]
#[repr(C, align(64))]
pub struct Line {
    next: u64,
}

impl Line {
    /// The index of the line that follows this one in its ring.
    #[inline(always)]
    pub fn next(&self) -> usize {
        // The crate is for 64-bit Linux, where this conversion is exact.
        self.next as usize
    }
}

/// `rings` rings of equal length side by side, together at most `bytes` large and at least one line each. Ring r starts
/// at index r x (lines / rings), and no ring leaves its part.
///
/// # Errors
/// The memory is not available.
pub fn rings(
    bytes: u64,
    rings: usize,
    generator: &mut Generator,
) -> Result<Vec<Line>, MemoryError> {
    check(bytes)?;
    let length = usize::try_from(bytes / LINE_BYTES)
        .unwrap_or(usize::MAX)
        .checked_div(rings)
        .unwrap_or(0)
        .max(1);
    let mut lines = filled(length * rings, |i| Line { next: i as u64 })?;
    for ring in lines.chunks_exact_mut(length) {
        link(ring, generator);
    }
    Ok(lines)
}

/// At most `bytes` of lines on huge pages, where the system gives some: then loads seldom wait for address translation.
/// Each line points to itself.
///
/// # Errors
/// The memory is not available.
pub fn huge_lines(bytes: u64) -> Result<Vec<Line>, MemoryError> {
    check(bytes)?;
    let count = bytes / LINE_BYTES;
    let mut lines: Vec<Line> = reserved(count as usize)?;
    prefer_huge_pages(lines.spare_capacity_mut());
    lines.extend((0..count).map(|next| Line { next }));
    Ok(lines)
}

/// Permutes lines that point to themselves into one cycle, each cycle being equally likely (Sattolo, "An algorithm to
/// generate a random cyclic permutation", 1986). It is the usual shuffle except that no element may stay in place.
pub fn link(ring: &mut [Line], generator: &mut Generator) {
    for i in (1..ring.len()).rev() {
        let j = generator.below(i as u64) as usize;
        let (low, high) = ring.split_at_mut(i);
        std::mem::swap(&mut low[j].next, &mut high[0].next);
    }
}

/// Follows `loads` links from line `at`. Returns where that ends, and a checksum of the lines visited.
#[inline(never)]
pub fn walk(lines: &[Line], mut at: usize, loads: u64, mut checksum: u64) -> (usize, u64) {
    for _ in 0..loads {
        // The bounds check is off the critical path: the branch is predicted while the load is under way.
        at = lines[at].next();
        checksum = fold(checksum, at as u64);
    }
    (at, checksum)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asserts that each ring is one cycle through all its lines: the definition, followed step by step.
    fn check_single_cycles(lines: &[Line], count: usize) {
        let length = lines.len() / count;
        for ring in 0..count {
            let start = ring * length;
            let mut visited = vec![false; length];
            let mut at = start;
            for _ in 0..length {
                assert!(
                    (start..start + length).contains(&at),
                    "line {at} is outside ring {ring}"
                );
                assert!(
                    !std::mem::replace(&mut visited[at - start], true),
                    "line {at} twice within one round"
                );
                at = lines[at].next();
            }
            assert_eq!(at, start, "a round ends where it started");
        }
    }

    #[test]
    fn every_line_is_on_one_cycle_for_any_length_and_seed() {
        for length in (1..130).chain([1000, 4096]) {
            for seed in [0, 1, 42, u64::MAX] {
                let lines = rings(length * LINE_BYTES, 1, &mut Generator::new(seed)).unwrap();
                assert_eq!(lines.len() as u64, length);
                check_single_cycles(&lines, 1);
            }
        }
    }

    #[test]
    fn lines_on_huge_pages_become_a_ring() {
        let mut lines = huge_lines(300 * LINE_BYTES).unwrap();
        assert_eq!(lines.len(), 300);
        link(&mut lines, &mut Generator::new(2));
        check_single_cycles(&lines, 1);
    }

    #[test]
    fn rings_side_by_side_share_no_line() {
        for count in [2, 3, 8, 16] {
            let lines = rings(1000 * LINE_BYTES, count, &mut Generator::new(7)).unwrap();
            assert_eq!(lines.len(), 1000 / count * count);
            check_single_cycles(&lines, count);
        }
    }

    #[test]
    fn fewer_bytes_than_a_line_still_give_a_line_for_each_ring() {
        assert_eq!(rings(1, 1, &mut Generator::new(0)).unwrap().len(), 1);
        assert_eq!(rings(64, 4, &mut Generator::new(0)).unwrap().len(), 4);
    }

    #[test]
    fn all_cycles_are_equally_likely() {
        // Four lines have 3! = 6 cycles. 6,000 draws put 1,000 in each, with a standard deviation of 29.
        let mut seen = std::collections::BTreeMap::new();
        let mut generator = Generator::new(11);
        for _ in 0..6000 {
            let lines = rings(4 * LINE_BYTES, 1, &mut generator).unwrap();
            *seen
                .entry(lines.iter().map(Line::next).collect::<Vec<_>>())
                .or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 6);
        assert!(seen.values().all(|n| (850..1150).contains(n)), "{seen:?}");
    }

    #[test]
    fn lines_are_whole_and_aligned() {
        let lines = rings(10 * LINE_BYTES, 1, &mut Generator::new(0)).unwrap();
        assert_eq!(LINE_BYTES, 64);
        assert_eq!(lines.as_ptr().align_offset(64), 0);
    }

    #[test]
    fn a_walk_may_be_cut_anywhere() {
        let lines = rings(100 * LINE_BYTES, 1, &mut Generator::new(5)).unwrap();
        let whole = walk(&lines, 0, 250, 1);
        let (at, checksum) = walk(&lines, 0, 99, 1);
        assert_eq!(walk(&lines, at, 151, checksum), whole);
        assert_eq!(walk(&lines, 0, 100, 1).0, 0, "one round");
        assert_eq!(walk(&lines, 42, 0, 9), (42, 9), "no load");
    }
}
