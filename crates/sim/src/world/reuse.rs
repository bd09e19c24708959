//! The age of a program's oldest line in a cache.
//!
//! A cache that replaces the oldest line keeps a program's last accesses. With `h` lines of them, the program touches
//! lines it does not hold `m(h)` times per instruction: the curve of misses. So it takes `1 / m(h)` instructions until it
//! touches one line more, and the line that was touched longest ago is older by these. Added up, a program that holds `h`
//! lines has touched the oldest `integral from 0 to h of dh' / m(h')` instructions ago (Denning, "The working set model
//! for program behavior", CACM 1968; Che et al., "Hierarchical web caching systems", JSAC 2002).
//!
//! A stream of one line in 16 instructions that holds 1,000 lines read the oldest 16,000 instructions ago. A loop over
//! 1,000 lines that reads one in 16 instructions comes back to each of its lines as late, but never lets them grow older.

/// Parts of each linear piece of a curve of misses, in which the integral is straight.
const PARTS: usize = 16;

/// Least misses, as a share of a program's accesses, by which lines are told apart. Where the curve ends at 0, the oldest
/// line is as old as the lines before it make it.
const LEAST_MISSES: f64 = 0.01;

/// Misses per instruction of a program that has none: its lines are so old that any other goes later.
const RAREST_MISS: f64 = 1e-9;

/// The age of a program's oldest line, by the lines that it holds.
pub(crate) struct ReuseAges {
    /// (lines held, instructions since the oldest was touched), linear in between.
    points: Vec<(f64, f64)>,
    /// Instructions per line beyond the last point.
    beyond: f64,
}

impl ReuseAges {
    /// The ages for a curve of (lines held, lines read per instruction).
    pub(crate) fn of(reads: &[(f64, f64)]) -> ReuseAges {
        let Some(&(first, accesses)) = reads.first() else {
            return ReuseAges {
                points: Vec::new(),
                beyond: f64::INFINITY,
            };
        };
        let least = (LEAST_MISSES * accesses).max(RAREST_MISS);
        let mut age = first / accesses.max(least);
        let mut points = vec![(0.0, 0.0), (first, age)];
        for two in reads.windows(2) {
            let ((from, above), (to, below)) = (two[0], two[1]);
            let width = (to - from) / PARTS as f64;
            for part in 0..PARTS {
                let middle = (part as f64 + 0.5) / PARTS as f64;
                age += width * (1.0 / (above + (below - above) * middle).max(least));
                points.push((from + width * (part + 1) as f64, age));
            }
        }
        let last = reads.last().map_or(0.0, |&(_, misses)| misses);
        ReuseAges {
            points,
            beyond: 1.0 / last.max(least),
        }
    }

    /// The age in instructions with `held` lines, and its growth per line.
    pub(crate) fn at(&self, held: f64) -> (f64, f64) {
        let above = self.points.partition_point(|&(lines, _)| lines <= held);
        match (
            above.checked_sub(1).map(|below| self.points[below]),
            self.points.get(above),
        ) {
            (Some((x0, y0)), Some(&(x1, y1))) => {
                let growth = (y1 - y0) / (x1 - x0);
                (y0 + growth * (held - x0), growth)
            }
            (Some((x, y)), None) => (y + self.beyond * (held - x), self.beyond),
            (None, _) => (0.0, self.beyond),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_as_old_as_it_is_long() {
        let stream = ReuseAges::of(&[(512.0, 0.0625)]);
        assert_eq!(stream.at(1_000.0), (16_000.0, 16.0));
        assert_eq!(stream.at(0.0), (0.0, 16.0));
    }

    #[test]
    fn a_loop_comes_back_to_its_last_line_after_one_turn() {
        // All accesses miss until nearly all of its 1,000 lines fit.
        let turn = ReuseAges::of(&[(100.0, 0.05), (990.0, 0.05), (1_000.0, 0.0)]);
        assert!((turn.at(990.0).0 - 19_800.0).abs() < 1e-6);
        let whole = turn.at(1_000.0).0;
        assert!((20_000.0..=21_500.0).contains(&whole), "{whole}");
    }

    #[test]
    fn lines_that_are_seldom_touched_are_old() {
        // Half of the accesses go to the first 100 lines, the rest to 900 more: misses fall with what is held.
        let ages = ReuseAges::of(&[(0.0, 0.1), (100.0, 0.05), (1_000.0, 0.0)]);
        let (hot, all) = (ages.at(100.0).0, ages.at(900.0).0);
        // 100 x ln 2 / 0.05, and 900 / 0.05 x ln 9 more.
        assert!((hot / 1_386.0 - 1.0).abs() < 0.01, "{hot}");
        assert!(((all - hot) / 39_550.0 - 1.0).abs() < 0.03, "{all}");
    }
}
