//! The cost of active cores: power is part of the sum, at a price.

use super::jobs::CoreThroughput;
use super::{CpuPlace, Search};
use crate::model::power::PowerModel;

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
        let active = &mut self.active;
        active.clear();
        active.extend(self.power.elsewhere);
        for core in &self.cores {
            let CpuPlace { domain, awake, .. } = self.places[core[0]];
            if !awake && core.iter().any(|&place| self.who[place].is_some()) {
                active[domain] += 1;
            }
        }
        self.power.watts(&self.active)
    }

    /// Change of the cost of a core's power from `before` to `after`. `place` is any place of the core.
    pub(super) fn cost(&self, place: usize, before: CoreThroughput, after: CoreThroughput) -> f64 {
        let CpuPlace {
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
            (false, true) => self.power.of_one_more(self.active[domain]),
            (true, false) => -self
                .power
                .of_one_more(self.active[domain].saturating_sub(1)),
            _ => 0.0,
        };
        more + of_core
    }

    /// Records that a core fell idle or woke.
    pub(super) fn turn(&mut self, place: usize, before: CoreThroughput, after: CoreThroughput) {
        let CpuPlace { domain, awake, .. } = self.places[place];
        let active = &mut self.active[domain];
        match (before.is_busy, after.is_busy) {
            _ if awake => {}
            (false, true) => *active += 1,
            (true, false) => *active = active.saturating_sub(1),
            _ => {}
        }
    }
}
