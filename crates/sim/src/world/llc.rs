//! A last-level cache, shared by its cores, and the replacement of its lines.
//!
//! Old lines go first. The oldest are unused: lines of threads that do not run, and empty ones. So a thread that starts
//! to run fills its part without taking lines from its co-runners, as long as unused lines are left. After that, of two
//! running threads the one whose oldest line is older loses more: a thread with `h` lines loses them in proportion to
//! `h a^p`, with `a` the age of its oldest line ([`reuse`](super::reuse)). With a large `p` only the oldest line of all
//! goes, as in an LRU cache. With [`CacheReplacement::Random`] all lines are alike, paused or not.
//!
//! Let a thread hold `o` of `S` lines and read `r` lines per ns, and all together `R`. Its lines change by `r` while
//! the cache fills, and by `r - R o w / sum(o w)` once it is full, with its weight `w = a^p`. Weights and the sum change
//! only when a core is solved, so the losses are also multiplied by the share of lines in use, which brings the sum of
//! all lines back to `S`. The cache counts as full while only a few lines are unused. Lines of running threads and unused
//! lines are always all lines: a thread reports its gains.

use super::decay::decay;
use crate::machine::{CacheReplacement, LlcSpec};

/// Share of unused lines below which a cache is full.
const FULL: f64 = 1e-3;
/// Share of unused lines above which a full cache fills again. The gap keeps a few lines from switching it to and fro.
const FILLING: f64 = 1e-2;

/// How often the age of a thread's oldest line is squared: its losses grow with the fourth power.
const SQUARINGS: u32 = 2;

/// Share of the survivors that counts as none. It keeps the shares from being rounded to 0.
const LEAST_SHARE: f64 = 1e-200;

pub(crate) struct Llc {
    replacement: CacheReplacement,
    inclusive: bool,
    /// Its capacity in lines.
    pub size: f64,
    /// What each core of the machine does to it.
    uses: Vec<CoreUse>,
    /// The sum over its cores.
    all: CoreUse,
    /// Lines that each core of the machine lost since it was last synced, per line held of weight 1.
    losses: Vec<f64>,
    /// The cores that share it.
    pub cores: Vec<usize>,
    /// Empty lines, and lines of threads that do not run. Below 0 if running threads count as holding slightly more
    /// than all: their rates are solved again only after a step.
    unused: f64,
    /// Whether unused lines are replaced first; otherwise all lines are alike.
    filling: bool,
    /// Whether it became full since this was last asked.
    became_full: bool,
    /// While it fills: lines read by the rates since all its cores were last synced. Threads have gained at most these.
    counted: f64,
    /// The surviving share of unused lines.
    mark: Mark,
    /// The instant of the present figures, in ns.
    at: u64,
}

/// What a core does to a cache.
#[derive(Clone, Copy, Default)]
struct CoreUse {
    /// Lines per ns that it reads into the cache, but for those that it reads again as they left its private caches.
    fill: f64,
    /// The latter lines.
    refetched: f64,
    /// Sum over its threads of lines held times weight.
    mass: f64,
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
    pub(crate) fn new(size: f64, spec: &LlcSpec, cores: Vec<usize>, all_cores: usize) -> Llc {
        Llc {
            replacement: spec.replacement,
            inclusive: spec.inclusive,
            size,
            uses: vec![CoreUse::default(); all_cores],
            all: CoreUse::default(),
            losses: vec![0.0; all_cores],
            cores,
            unused: size,
            filling: spec.replacement == CacheReplacement::ByAge,
            became_full: false,
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
        let span = (now - self.at) as f64;
        self.at = now;
        let lines = self.all.fill * span;
        if self.filling {
            self.counted += lines;
        } else if lines > 0.0 {
            self.keep(decay(lines / self.size));
            let losses = self.pace() * span;
            for &core in &self.cores {
                self.losses[core] += losses;
            }
        }
    }

    /// Lines that a core lost since this was last asked, per line held of weight 1.
    pub(crate) fn take_losses(&mut self, core: usize) -> f64 {
        std::mem::take(&mut self.losses[core])
    }

    /// The power of the age of a thread's oldest line by which its losses grow.
    pub(crate) fn age_power(&self) -> f64 {
        match self.replacement {
            CacheReplacement::Random => 0.0,
            CacheReplacement::ByAge => f64::from(1 << SQUARINGS),
        }
    }

    /// The weight of a thread's lines whose oldest has this age in ns: how much more they are replaced than others.
    pub(crate) fn weight(&self, age: f64) -> f64 {
        match self.replacement {
            CacheReplacement::Random => 1.0,
            CacheReplacement::ByAge => (0..SQUARINGS).fold(age, |power, _| power * power),
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

    /// Whether it became full since this was last asked.
    pub(crate) fn take_became_full(&mut self) -> bool {
        std::mem::take(&mut self.became_full)
    }

    /// Records that all its cores are synced.
    pub(crate) fn all_synced(&mut self) {
        self.counted = 0.0;
    }

    /// Lines lost per ns, per line held of weight 1; 0 while it fills.
    pub(crate) fn pace(&self) -> f64 {
        if self.filling || self.all.mass <= 0.0 {
            0.0
        } else if self.replacement == CacheReplacement::Random {
            self.all.fill / self.size
        } else {
            let in_use = 1.0 - self.unused / self.size;
            in_use * in_use * self.all.fill / self.all.mass
        }
    }

    /// Least time in ns until it is full, if it fills: threads that fill their part read ever less.
    pub(crate) fn may_be_full_in(&self) -> f64 {
        if self.filling && self.all.fill > 0.0 {
            (self.unused - self.counted).max(0.0) / self.all.fill
        } else {
            f64::INFINITY
        }
    }

    /// Changes the number of unused lines, and whether it fills.
    fn add_unused(&mut self, lines: f64) {
        self.unused += lines;
        if self.replacement == CacheReplacement::ByAge {
            let least = if self.filling { FULL } else { FILLING };
            let was_filling = self.filling;
            self.filling = self.unused > least * self.size;
            self.became_full |= was_filling && !self.filling;
        }
    }

    /// Adds lines to those of running threads.
    pub(crate) fn gained(&mut self, lines: f64) {
        if self.filling && lines > 0.0 {
            self.keep((1.0 - lines / self.unused).max(0.0));
        }
        self.add_unused(-lines);
    }

    /// Sets the lines per ns that a core reads from now on, those that it reads again as they left its private caches, and
    /// the sum over its threads of lines held times weight. The cache must be advanced to now.
    pub(crate) fn set_use(&mut self, core: usize, fill: f64, refetched: f64, mass: f64) {
        self.uses[core] = CoreUse {
            fill,
            refetched,
            mass,
        };
        self.all = CoreUse::default();
        for &core in &self.cores {
            self.all.fill += self.uses[core].fill;
            self.all.refetched += self.uses[core].refetched;
            self.all.mass += self.uses[core].mass;
        }
    }

    /// How often per ns each line of a private cache leaves it, since the last level replaces it. That cache does not see
    /// hits in private caches, so each line there is replaced once while the whole content is.
    pub(crate) fn evictions_from_private(&self) -> f64 {
        if self.filling || !self.inclusive {
            0.0
        } else {
            (self.all.fill + self.all.refetched) / self.size
        }
    }

    /// Maximum number of lines that a core's private caches keep: half of its part of an inclusive cache.
    pub(crate) fn most_private(&self) -> f64 {
        0.5 * self.size / self.cores.len() as f64
    }

    /// The sum over all running threads of lines held times weight.
    pub(crate) fn mass(&self) -> f64 {
        self.all.mass
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

    /// A cache of 1,000 lines whose first core reads one line per ns and the second three.
    fn cache(replacement: CacheReplacement) -> Llc {
        let spec = LlcSpec {
            mb: 1_000.0 / 16_384.0,
            hit_ns: 10.0,
            replacement,
            inclusive: true,
        };
        let mut llc = Llc::new(1_000.0, &spec, vec![0, 1], 2);
        llc.set_use(0, 1.0, 0.0, 500.0);
        llc.set_use(1, 3.0, 0.0, 500.0);
        llc
    }

    #[test]
    fn lines_of_private_caches_leave_once_a_turnover() {
        let mut llc = cache(CacheReplacement::ByAge);
        assert_eq!(llc.evictions_from_private(), 0.0);
        llc.gained(1_000.0);
        llc.set_use(0, 1.0, 1.0, 500.0);
        assert_eq!(llc.evictions_from_private(), 0.005);
    }

    #[test]
    fn unused_lines_go_first() {
        let mut llc = cache(CacheReplacement::ByAge);
        llc.advance(200);
        // By the rates it may be full at 250.
        assert_eq!(llc.may_be_full_in(), 50.0);
        llc.gained(800.0);
        llc.all_synced();
        assert_eq!(
            (llc.take_losses(0), llc.pace(), llc.may_be_full_in()),
            (0.0, 0.0, 50.0)
        );
        llc.advance(250);
        llc.gained(200.0);
        assert_eq!((llc.take_losses(0), llc.pace()), (0.0, 0.004));
        // A thread with 400 lines stops; half of them are left when the others, which lost nothing, have gained 200.
        let mark = llc.leave(400.0);
        llc.advance(300);
        llc.gained(200.0);
        assert_eq!((llc.left_of(400.0, mark), llc.take_losses(0)), (200.0, 0.0));
        // It comes back with them. Then no line is unused, and all lose.
        llc.take(200.0);
        llc.advance(550);
        assert_eq!((llc.take_losses(0), llc.take_losses(1)), (1.0, 1.0));
    }

    #[test]
    fn the_thread_with_older_lines_loses_more() {
        let mut llc = cache(CacheReplacement::ByAge);
        llc.gained(1_000.0);
        let [young, old] = [100.0, 300.0].map(|age| llc.weight(age));
        assert!((old / young - 81.0).abs() < 1e-9);
        llc.set_use(0, 2.0, 0.0, 600.0 * young);
        llc.set_use(1, 2.0, 0.0, 400.0 * old);
        llc.advance(10);
        let losses = llc.take_losses(0);
        // 40 lines are read, so 40 are lost: 600 parts of 33,000 by the one, 32,400 by the other.
        assert!((600.0 * young * losses - 40.0 * 600.0 / 33_000.0).abs() < 1e-9);
        assert!((400.0 * old * losses - 40.0 * 32_400.0 / 33_000.0).abs() < 1e-9);
    }

    #[test]
    fn a_few_unused_lines_do_not_change_a_full_cache_to_and_fro() {
        let mut llc = cache(CacheReplacement::ByAge);
        llc.gained(995.0);
        assert!(llc.is_filling() && !llc.take_became_full());
        llc.gained(4.5);
        assert!(!llc.is_filling() && llc.take_became_full());
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
        let mut llc = cache(CacheReplacement::Random);
        let mark = llc.leave(400.0);
        assert_eq!((llc.pace(), llc.may_be_full_in()), (0.004, f64::INFINITY));
        llc.advance(250);
        assert_eq!((llc.weight(7.0), llc.take_losses(1)), (1.0, 1.0));
        let left = llc.left_of(400.0, mark);
        assert!((left - 400.0 * (-1.0f64).exp()).abs() < 1e-6, "{left}");
        llc.advance(1_000_000);
        assert_eq!(llc.left_of(400.0, mark), 0.0);
    }
}
