//! Prices of a memory domain as jobs come and go, close to a set whose prediction is known.

use crate::model::contention::Contention;

/// A memory domain, updated by moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Market {
    pub(super) latency: f64,
    pub(super) reads: f64,
    /// Lines per ns that its jobs read less, per unit of latency.
    pub(super) yields: f64,
    /// Loss of the sum per unit of latency, and how fast that falls.
    pub(super) slowed: f64,
    pub(super) bends: f64,
}

impl Default for Market {
    /// An idle memory.
    fn default() -> Market {
        Market {
            latency: 1.0,
            reads: 0.0,
            yields: 0.0,
            slowed: 0.0,
            bends: 0.0,
        }
    }
}

impl Market {
    /// Rise of the latency if these lines per ns are added.
    pub(super) fn rise(&self, shared: &Contention, reads: f64) -> f64 {
        let rise = shared.memory.growth(self.reads + 0.5 * reads, self.yields) * reads;
        rise.max(1.0 - self.latency)
    }

    /// Loss of the sum by this rise of the latency.
    pub(super) fn loss(&self, rise: f64) -> f64 {
        let bent = if rise * self.bends > self.slowed {
            self.slowed / self.bends
        } else {
            rise
        };
        self.slowed * bent - 0.5 * self.bends * bent * bent
    }

    pub(super) fn move_by(&mut self, reads: f64, rise: f64) {
        self.reads = (self.reads + reads - self.yields * rise).max(0.0);
        self.latency += rise;
        self.slowed = (self.slowed - self.bends * rise).max(0.0);
    }
}

/// Demand of a job on memory, per instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    /// Weight x solo cycles per instruction.
    pub(super) worth: f64,
    /// Cycles without waiting for memory.
    pub(super) fixed: f64,
    /// Cycles of waiting for an idle memory.
    pub(super) waits: f64,
    /// Lines read x cycles per ns.
    pub(super) lines: f64,
    /// The part of `fixed` due to siblings: a job slows them by as much.
    pub(super) by_siblings: f64,
}

impl Market {
    /// Rise of the latency by one more job, and its cycles per instruction then.
    fn with(&self, shared: &Contention, ask: &Ask) -> (f64, f64) {
        let rise = self.rise(shared, ask.lines / (ask.fixed + ask.waits * self.latency));
        (rise, ask.fixed + ask.waits * (self.latency + rise))
    }

    /// Gain of the sum by one more job.
    pub(super) fn gain(&self, shared: &Contention, ask: &Ask) -> f64 {
        let (rise, cpi) = self.with(shared, ask);
        ask.worth / cpi - self.loss(rise) - ask.worth * ask.by_siblings / (cpi * cpi)
    }

    /// Adds one more job.
    pub(super) fn add(&mut self, shared: &Contention, ask: &Ask) {
        let (rise, cpi) = self.with(shared, ask);
        self.move_by(0.0, rise);
        let slope = ask.worth * ask.waits / (cpi * cpi);
        self.reads += ask.lines / cpi;
        self.yields += ask.lines * ask.waits / (cpi * cpi);
        self.slowed += slope;
        self.bends += 2.0 * slope * ask.waits / cpi;
    }
}
