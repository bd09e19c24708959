//! A last-level cache, shared by its cores, and the replacement of its lines.
//!
//! Unused lines go first: lines of threads that do not run, and empty ones. A real policy protects lines in use, as the
//! pseudo-LRU of these caches does. Only when no unused line is left is a random line replaced. So a thread that starts
//! to run fills its part without taking lines from its co-runners, as long as unused lines are left. With
//! [`Replacement::Random`] all lines are alike.
//!
//! Let a thread hold `o` of `S` lines and read `r` lines per ns, and all together `R`. Its lines change by `r` while
//! the cache fills, and by `r - R o / S` once it is full. It counts as full while only a few lines are unused. Lines of
//! running threads and unused lines are always all lines: a thread reports its gains.

use super::decay::decay;
use crate::machine::Replacement;

/// Share of unused lines below which a cache is full.
const FULL: f64 = 1e-3;
/// Share of unused lines above which a full cache fills again. The gap keeps a few lines from switching it to and fro.
const FILLING: f64 = 1e-2;

/// Share of the survivors that counts as none. It keeps the shares from being rounded to 0.
const LEAST_SHARE: f64 = 1e-200;

pub(crate) struct Llc {
    replacement: Replacement,
    /// Its capacity in lines.
    pub size: f64,
    /// Lines per ns that each core of the machine reads into it.
    fills: Vec<f64>,
    /// The sum of `fills`.
    fill: f64,
    /// The cores that share it.
    pub cores: Vec<usize>,
    /// Number of replacements of its whole content since the start, while it was full.
    pub turnover: f64,
    /// Empty lines, and lines of threads that do not run. Below 0 if running threads count as holding slightly more
    /// than all: their rates are solved again only after a step.
    unused: f64,
    /// Whether unused lines are replaced first; otherwise all lines are alike.
    filling: bool,
    /// While it fills: lines read by the rates since all its cores were last synced. Threads have gained at most these.
    counted: f64,
    /// The surviving share of unused lines.
    mark: Mark,
    /// The instant of the present figures, in ns.
    at: u64,
}

/// A moment in the life of unused lines. The share left later follows from the moment at which they became unused.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    /// Number of times that all unused lines have been replaced.
    generation: u64,
    /// Share of the generation's first lines that is left.
    share: f64,
}

impl Llc {
    /// An empty cache.
    pub(crate) fn new(
        size: f64,
        replacement: Replacement,
        cores: Vec<usize>,
        all_cores: usize,
    ) -> Llc {
        Llc {
            replacement,
            size,
            fills: vec![0.0; all_cores],
            fill: 0.0,
            cores,
            turnover: 0.0,
            unused: size,
            filling: replacement == Replacement::UnusedFirst,
            counted: 0.0,
            mark: Mark {
                generation: 0,
                share: 1.0,
            },
            at: 0,
        }
    }

    /// Advances the figures to now.
    pub(crate) fn advance(&mut self, now: u64) {
        let lines = self.fill * (now - self.at) as f64;
        self.at = now;
        if self.filling {
            self.counted += lines;
        } else if lines > 0.0 {
            let turns = lines / self.size;
            self.turnover += turns;
            self.keep(decay(turns));
        }
    }

    /// Keeps only this share of the unused lines.
    fn keep(&mut self, share: f64) {
        self.mark.share *= share;
        if self.mark.share < LEAST_SHARE {
            self.mark = Mark {
                generation: self.mark.generation + 1,
                share: 1.0,
            };
        }
    }

    /// Whether it fills: unused lines are replaced first. While it does, the number of unused lines is exact only once
    /// all its cores are synced.
    pub(crate) fn is_filling(&self) -> bool {
        self.filling
    }

    /// Records that all its cores are synced.
    pub(crate) fn all_synced(&mut self) {
        self.counted = 0.0;
    }

    /// Present replacements of its whole content per ns; 0 while it fills.
    pub(crate) fn pace(&self) -> f64 {
        if self.filling {
            0.0
        } else {
            self.fill / self.size
        }
    }

    /// Least time in ns until it is full, if it fills: threads that fill their part read ever less.
    pub(crate) fn may_be_full_in(&self) -> f64 {
        if self.filling && self.fill > 0.0 {
            (self.unused - self.counted).max(0.0) / self.fill
        } else {
            f64::INFINITY
        }
    }

    /// Changes the number of unused lines, and whether it fills.
    fn add_unused(&mut self, lines: f64) {
        self.unused += lines;
        if self.replacement == Replacement::UnusedFirst {
            let least = if self.filling { FULL } else { FILLING };
            self.filling = self.unused > least * self.size;
        }
    }

    /// Adds lines to those of running threads.
    pub(crate) fn gained(&mut self, lines: f64) {
        if self.filling && lines > 0.0 {
            self.keep((1.0 - lines / self.unused).max(0.0));
        }
        self.add_unused(-lines);
    }

    /// Sets the lines per ns that a core reads from now on. The cache must be advanced to now.
    pub(crate) fn set_fill(&mut self, core: usize, lines: f64) {
        self.fills[core] = lines;
        self.fill = self.cores.iter().map(|&core| self.fills[core]).sum();
    }

    /// Releases the lines of a thread that stops running.
    pub(crate) fn leave(&mut self, held: f64) -> Mark {
        self.add_unused(held);
        self.mark
    }

    /// The lines left of a thread that stopped running at `mark` with `held` lines.
    pub(crate) fn left_of(&self, held: f64, mark: Mark) -> f64 {
        if mark.generation == self.mark.generation {
            held * (self.mark.share / mark.share).min(1.0)
        } else {
            0.0
        }
    }

    /// Returns its lines to a thread that runs again.
    pub(crate) fn take(&mut self, held: f64) {
        self.add_unused(-held);
    }

    /// Number of unused lines.
    #[cfg(test)]
    pub(crate) fn unused(&self) -> f64 {
        self.unused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(replacement: Replacement) -> Llc {
        let mut llc = Llc::new(1_000.0, replacement, vec![0, 1], 2);
        llc.set_fill(0, 1.0);
        llc.set_fill(1, 3.0);
        llc
    }

    #[test]
    fn unused_lines_go_first() {
        let mut llc = cache(Replacement::UnusedFirst);
        llc.advance(200);
        // By the rates it may be full at 250.
        assert_eq!(llc.may_be_full_in(), 50.0);
        llc.gained(800.0);
        llc.all_synced();
        assert_eq!(
            (llc.turnover, llc.pace(), llc.may_be_full_in()),
            (0.0, 0.0, 50.0)
        );
        llc.advance(250);
        llc.gained(200.0);
        assert_eq!((llc.turnover, llc.pace()), (0.0, 0.004));
        // A thread with 400 lines stops; half of them are left when the others, which lost nothing, have gained 200.
        let mark = llc.leave(400.0);
        llc.advance(300);
        llc.gained(200.0);
        assert_eq!((llc.left_of(400.0, mark), llc.turnover), (200.0, 0.0));
        // It comes back with them. Then no line is unused, and all lose.
        llc.take(200.0);
        llc.advance(550);
        assert_eq!(llc.turnover, 1.0);
    }

    #[test]
    fn a_few_unused_lines_do_not_change_a_full_cache_to_and_fro() {
        let mut llc = cache(Replacement::UnusedFirst);
        llc.gained(995.0);
        assert!(llc.is_filling());
        llc.gained(4.5);
        assert!(!llc.is_filling());
        llc.gained(-9.0);
        assert!(!llc.is_filling());
        llc.gained(-1.0);
        assert!(llc.is_filling());
        // All lines of an ended thread are replaced.
        let mark = llc.leave(100.0);
        llc.gained(200.0);
        assert_eq!(llc.left_of(100.0, mark), 0.0);
    }

    #[test]
    fn all_lines_are_alike_in_random_replacement() {
        let mut llc = cache(Replacement::Random);
        let mark = llc.leave(400.0);
        assert_eq!((llc.pace(), llc.may_be_full_in()), (0.004, f64::INFINITY));
        llc.advance(250);
        assert_eq!(llc.turnover, 1.0);
        let left = llc.left_of(400.0, mark);
        assert!((left - 400.0 * (-1.0f64).exp()).abs() < 1e-6, "{left}");
        llc.advance(1_000_000);
        assert_eq!(llc.left_of(400.0, mark), 0.0);
    }
}
