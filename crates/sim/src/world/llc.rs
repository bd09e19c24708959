//! A last-level cache, which its cores share: whose lines are replaced when a line is read.
//!
//! Lines that nobody uses any more go first: lines of threads that do not run, and empty ones. A real policy protects
//! what is used; the pseudo-LRU of these caches does. Only when there are none left is a random line replaced. So a
//! thread that begins to run fills its part without taking lines from those beside it, as long as the one before it has
//! left some. With [`Replacement::Random`] all lines are alike.
//!
//! A thread that holds `o` of `S` lines and reads `r` lines per ns, while all together read `R`, changes what it holds by
//! `r` while the cache is being filled, and by `r - R o / S` once it is full. It counts as full as long as only a few lines
//! are unused. What running threads hold and what is unused are always all lines: a thread reports what it has gained.

use super::decay::decay;
use crate::machine::Replacement;

/// A cache is full when fewer than this share of its lines is unused.
const FULL: f64 = 1e-3;
/// A full cache is being filled again when more than this share of its lines is unused. Between the two it stays what it
/// is, so that a few lines do not change it to and fro.
const FILLING: f64 = 1e-2;

/// Below this a survivor's share is as good as nothing. It keeps the shares from being rounded to 0.
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
    /// How many times its content has been replaced since the start, while it was full.
    pub turnover: f64,
    /// Empty lines, and lines of threads that do not run. Below 0 when running threads count as having slightly more than
    /// all: their rates are solved again only after a step.
    unused: f64,
    /// Whether unused lines are replaced first; otherwise all lines are alike.
    filling: bool,
    /// While it is being filled: lines that were read, by the rates, since all its cores were up to now. Threads have
    /// gained at most these.
    counted: f64,
    /// What is left of unused lines.
    mark: Mark,
    /// The instant up to which the figures are right, in ns.
    at: u64,
}

/// A moment in the life of unused lines: what is left of them later follows from the moment at which they became unused.
#[derive(Clone, Copy, Default)]
pub(crate) struct Mark {
    /// How often all unused lines have been replaced.
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

    /// Brings the figures up to now.
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

    /// Only such a share of the unused lines keeps its content.
    fn keep(&mut self, share: f64) {
        self.mark.share *= share;
        if self.mark.share < LEAST_SHARE {
            self.mark = Mark {
                generation: self.mark.generation + 1,
                share: 1.0,
            };
        }
    }

    /// Whether it is being filled: unused lines are replaced first. While it is, what is unused is right only after all
    /// its cores are up to now.
    pub(crate) fn is_filling(&self) -> bool {
        self.filling
    }

    /// All its cores are up to now.
    pub(crate) fn all_synced(&mut self) {
        self.counted = 0.0;
    }

    /// Replacements of its whole content per ns at present; none while it is being filled.
    pub(crate) fn pace(&self) -> f64 {
        if self.filling {
            0.0
        } else {
            self.fill / self.size
        }
    }

    /// In how many ns it may be full, if it is being filled. Threads that fill their part read ever less, so it takes at
    /// least this.
    pub(crate) fn may_be_full_in(&self) -> f64 {
        if self.filling && self.fill > 0.0 {
            (self.unused - self.counted).max(0.0) / self.fill
        } else {
            f64::INFINITY
        }
    }

    /// Changes the number of unused lines, and whether it is being filled.
    fn add_unused(&mut self, lines: f64) {
        self.unused += lines;
        if self.replacement == Replacement::UnusedFirst {
            let least = if self.filling { FULL } else { FILLING };
            self.filling = self.unused > least * self.size;
        }
    }

    /// Running threads hold so many lines more.
    pub(crate) fn gained(&mut self, lines: f64) {
        if self.filling && lines > 0.0 {
            self.keep((1.0 - lines / self.unused).max(0.0));
        }
        self.add_unused(-lines);
    }

    /// From now on a core reads so many lines per ns. The cache must be up to now.
    pub(crate) fn set_fill(&mut self, core: usize, lines: f64) {
        self.fills[core] = lines;
        self.fill = self.cores.iter().map(|&core| self.fills[core]).sum();
    }

    /// A thread that holds so many lines stops running: from now on nobody uses them.
    pub(crate) fn leave(&mut self, held: f64) -> Mark {
        self.add_unused(held);
        self.mark
    }

    /// What a thread still holds that stopped running at `mark` with so many lines.
    pub(crate) fn left_of(&self, held: f64, mark: Mark) -> f64 {
        if mark.generation == self.mark.generation {
            held * (self.mark.share / mark.share).min(1.0)
        } else {
            0.0
        }
    }

    /// A thread runs again with so many lines.
    pub(crate) fn take(&mut self, held: f64) {
        self.add_unused(-held);
    }

    /// Lines that nobody uses.
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
        // One with 400 lines stops; half of them are left when others have gained 200, who have lost nothing.
        let mark = llc.leave(400.0);
        llc.advance(300);
        llc.gained(200.0);
        assert_eq!((llc.left_of(400.0, mark), llc.turnover), (200.0, 0.0));
        // It comes back with them. Then nothing is unused, and all lose.
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
        // All lines of one that is gone are replaced.
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
