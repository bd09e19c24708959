//! The cost of active cores: power is part of the sum, at a price.

use super::jobs::Done;
use super::{Place, Search};
use crate::model::power::PowerModel;

/// Number of core counts to try for the first set.
const PARTS: usize = 8;

/// Model of the machine's power.
#[derive(Clone, Copy, Debug)]
pub(in super::super) enum Model<'a> {
    /// By the number of active cores (EFS, Eq. 13).
    Cores(&'a PowerModel),
    /// For several types of core: between idle and busy in proportion to the instructions (lucky, section 3).
    Types {
        /// Power of all cores when idle, in W.
        idle_w: f64,
        /// Energy of an instruction on a core of the fastest type, and on all others, in nJ.
        nj: [f64; 2],
    },
}

/// The power of the machine, and its price.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Power<'a> {
    pub(in super::super) model: Model<'a>,
    /// Price of a watt, in units of the sum; 0 where power does not count.
    pub(in super::super) price: f64,
    /// Number of cores, per memory domain, that run tasks that are no candidates.
    pub(in super::super) elsewhere: &'a [usize],
}

impl Power<'_> {
    /// Power of the machine in W with these numbers of active cores, without that of instructions: the idle machine
    /// once, plus the active cores of each domain, as in `efs`.
    fn watts(&self, active: &[usize]) -> f64 {
        match self.model {
            Model::Cores(model) => {
                let idle = model.watts(0);
                idle + active
                    .iter()
                    .map(|&active| model.watts(active) - idle)
                    .sum::<f64>()
            }
            Model::Types { idle_w, .. } => idle_w,
        }
    }

    /// Price of the power of one more core.
    fn of_one_more(&self, active: usize) -> f64 {
        match self.model {
            Model::Cores(model) => self.price * (model.watts(active + 1) - model.watts(active)),
            Model::Types { .. } => 0.0,
        }
    }

    /// Energy of an instruction on a type of core, in nJ.
    pub(super) fn of_instruction(&self, kind: usize) -> f64 {
        match self.model {
            Model::Cores(_) => 0.0,
            Model::Types { nj, .. } => nj[kind.min(1)],
        }
    }
}

impl Search<'_> {
    /// Counts the active cores anew. Returns the power in W, without that of instructions.
    pub(super) fn count_active(&mut self) -> f64 {
        let active = &mut self.now.active;
        active.clear();
        active.extend(self.power.elsewhere);
        for core in &self.cores {
            let Place { domain, awake, .. } = self.places[core[0]];
            if !awake && core.iter().any(|&place| self.who[place].is_some()) {
                active[domain] += 1;
            }
        }
        self.power.watts(&self.now.active)
    }

    /// Change of the cost of a core's power from `before` to `after`. `place` is any place of the core.
    pub(super) fn cost(&self, place: usize, before: Done, after: Done) -> f64 {
        let Place {
            domain,
            kind,
            awake,
            ..
        } = self.places[place];
        let more = self.power.price
            * self.power.of_instruction(kind)
            * (after.instructions - before.instructions);
        let of_core = match (before.is_busy, after.is_busy) {
            _ if awake => 0.0,
            (false, true) => self.power.of_one_more(self.now.active[domain]),
            (true, false) => -self
                .power
                .of_one_more(self.now.active[domain].saturating_sub(1)),
            _ => 0.0,
        };
        more + of_core
    }

    /// Records that a core fell idle or woke.
    pub(super) fn turn(&mut self, place: usize, before: Done, after: Done) {
        let Place { domain, awake, .. } = self.places[place];
        let active = &mut self.now.active[domain];
        match (before.is_busy, after.is_busy) {
            _ if awake => {}
            (false, true) => *active += 1,
            (true, false) => *active = active.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether a core is active in any case.
    fn is_needed(&self, core: usize) -> bool {
        let places = &self.cores[core];
        self.places[places[0]].awake || places.iter().any(|&place| self.is_fixed(place))
    }

    /// Makes the first set again on fewer cores, and keeps the best. Single moves do not lead from a set on all cores
    /// to one on a few full cores.
    pub(super) fn start_on_fewer_cores(&mut self) {
        let (needed, spare): (Vec<usize>, Vec<usize>) =
            (0..self.cores.len()).partition(|&core| self.is_needed(core));
        let mut best = (self.settle(), self.who.clone());
        for part in (0..PARTS).rev() {
            let open = needed.len() + spare.len() * part / PARTS;
            // The first core to wake costs most, so one alone may pay where several do not.
            let open = open.max(1);
            let last = needed.iter().chain(&spare).enumerate();
            for (nth, &core) in last {
                self.closed[core] = nth >= open;
            }
            self.clear();
            self.start();
            let sum = self.settle();
            if sum > best.0 {
                best = (sum, self.who.clone());
            }
        }
        self.closed.fill(false);
        self.who = best.1;
        self.settle();
    }

    /// Clears whole cores, each time the one that raises the predicted sum most, while it rises. Single moves do not
    /// find this: removing one of several jobs of a core saves no power.
    pub(super) fn clear_cores(&mut self, mut sum: f64) -> f64 {
        if self.power.price == 0.0 {
            return sum;
        }
        loop {
            let kept = self.who.clone();
            let mut best: Option<(f64, usize)> = None;
            for core in 0..self.cores.len() {
                let has_jobs = self.cores[core].iter().any(|&place| kept[place].is_some());
                if self.is_needed(core) || !has_jobs {
                    continue;
                }
                self.clear_core(core);
                let now = self.settle();
                if now > best.map_or(sum, |best| best.0) {
                    best = Some((now, core));
                }
                self.who.clone_from(&kept);
            }
            let Some((now, core)) = best else { break };
            self.clear_core(core);
            sum = now;
        }
        self.settle();
        sum
    }

    pub(super) fn clear_core(&mut self, core: usize) {
        for &place in &self.cores[core] {
            self.who[place] = None;
        }
    }
}
