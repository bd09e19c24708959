//! A last-level cache, which its cores share: whose lines are replaced when a line is read.
//!
//! Lines that nobody uses any more go first: lines of threads that do not run, and empty ones. A real policy protects
//! what is used; the pseudo-LRU of these caches does. Only when there are none left is a random line replaced. So a
//! thread that begins to run fills its part without taking lines from those beside it, as long as the one before it has
//! left some. With [`Replacement::Random`] all lines are alike.
//!
//! A thread that holds `o` of `S` lines and reads `r` lines per ns, while all together read `R`, changes what it holds by
//! `r` as long as there are unused lines, and by `r - R o / S` from then on.

use super::decay::decay;
use crate::machine::Replacement;

/// Below this a survivor's share is as good as nothing. It keeps the shares from being rounded to 0.
const LEAST_SHARE: f64 = 1e-200;

#[derive(Clone, Debug)]
pub(crate) struct Llc {
    replacement: Replacement,
    /// Its capacity in lines.
    pub(crate) size: f64,
    /// Lines per ns that each core of the machine reads into it.
    fills: Vec<f64>,
    /// The sum of `fills`.
    fill: f64,
    /// The cores that share it.
    pub(crate) cores: Vec<usize>,
    /// How many times its content has been replaced since the start, as far as lines of running threads were replaced.
    pub(crate) turnover: f64,
    /// Empty lines, and lines of threads that do not run.
    unused: f64,
    /// What is left of unused lines.
    mark: Mark,
    /// The instant up to which the figures are right, in ns.
    at: u64,
}

/// A moment in the life of unused lines: what is left of them later follows from the moment at which they became unused.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Mark {
    /// How often all unused lines have been replaced.
    generation: u64,
    /// Share of the generation's first lines that is left.
    share: f64,
}

impl Llc {
    /// An empty cache.
    pub(crate) fn new(size: f64, replacement: Replacement, cores: Vec<usize>, all_cores: usize) -> Llc {
        Llc {
            replacement,
            size,
            fills: vec![0.0; all_cores],
            fill: 0.0,
            cores,
            turnover: 0.0,
            unused: size,
            mark: Mark { generation: 0, share: 1.0 },
            at: 0,
        }
    }

    /// Brings the figures up to now.
    pub(crate) fn advance(&mut self, now: u64) {
        let lines = self.fill * (now - self.at) as f64;
        self.at = now;
        if lines <= 0.0 {
            return;
        }
        match self.replacement {
            Replacement::Random => {
                self.turnover += lines / self.size;
                self.mark.share *= decay(lines / self.size);
            }
            Replacement::UnusedFirst if lines < self.unused => {
                let left = self.unused - lines;
                self.mark.share *= left / self.unused;
                self.unused = left;
            }
            Replacement::UnusedFirst => {
                self.turnover += (lines - self.unused) / self.size;
                self.unused = 0.0;
                self.mark.share = 0.0;
            }
        }
        if self.mark.share < LEAST_SHARE {
            self.mark = Mark { generation: self.mark.generation + 1, share: 1.0 };
        }
    }

    /// Replacements of its whole content per ns at present, as far as lines of running threads are replaced.
    pub(crate) fn pace(&self) -> f64 {
        match self.replacement {
            Replacement::UnusedFirst if self.unused > 0.0 => 0.0,
            _ => self.fill / self.size,
        }
    }

    /// How long the pace stays if nothing else changes, in ns.
    pub(crate) fn pace_lasts(&self) -> f64 {
        match self.replacement {
            Replacement::UnusedFirst if self.unused > 0.0 && self.fill > 0.0 => self.unused / self.fill,
            _ => f64::INFINITY,
        }
    }

    /// From now on a core reads so many lines per ns. The cache must be up to now.
    pub(crate) fn set_fill(&mut self, core: usize, lines: f64) {
        self.fills[core] = lines;
        self.fill = self.cores.iter().map(|&core| self.fills[core]).sum();
    }

    /// A thread that holds so many lines stops running: from now on nobody uses them.
    pub(crate) fn leave(&mut self, held: f64) -> Mark {
        self.unused = (self.unused + held).min(self.size);
        self.mark
    }

    /// What a thread still holds that stopped running at `mark` with so many lines.
    pub(crate) fn left_of(&self, held: f64, mark: Mark) -> f64 {
        if mark.generation == self.mark.generation { held * (self.mark.share / mark.share).min(1.0) } else { 0.0 }
    }

    /// A thread runs again with so many lines.
    pub(crate) fn take(&mut self, held: f64) {
        self.unused = (self.unused - held).max(0.0);
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
        assert_eq!((llc.turnover, llc.pace(), llc.pace_lasts()), (0.0, 0.0, 50.0));
        llc.advance(250);
        assert_eq!((llc.turnover, llc.pace()), (0.0, 0.004));
        // One with 400 lines stops; half of them are left after 50 ns, and those beside it have lost nothing.
        let mark = llc.leave(400.0);
        llc.advance(300);
        assert_eq!((llc.left_of(400.0, mark), llc.turnover), (200.0, 0.0));
        // It comes back with them. Then nothing is unused, and all lose.
        llc.take(200.0);
        llc.advance(550);
        assert_eq!(llc.turnover, 1.0);
        assert_eq!(llc.left_of(400.0, mark), 0.0);
    }

    #[test]
    fn all_lines_are_alike_in_random_replacement() {
        let mut llc = cache(Replacement::Random);
        let mark = llc.leave(400.0);
        assert_eq!((llc.pace(), llc.pace_lasts()), (0.004, f64::INFINITY));
        llc.advance(250);
        assert_eq!(llc.turnover, 1.0);
        let left = llc.left_of(400.0, mark);
        assert!((left - 400.0 * (-1.0f64).exp()).abs() < 1e-6, "{left}");
        llc.advance(1_000_000);
        assert_eq!(llc.left_of(400.0, mark), 0.0);
    }
}
