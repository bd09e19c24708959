//! Prices of a memory domain as jobs come and go, close to a set whose prediction is known.

use crate::model::contention::Contention;

/// A memory domain, updated by moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Market {
    pub(super) latency: f64,
    /// Lines per ns that its jobs read.
    pub(super) reads: f64,
    /// Lines per ns that they read less, per unit of latency.
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
    fn rise(&self, shared: &Contention, reads: f64) -> f64 {
        let (growth, per) = shared.memory.growth(self.reads + 0.5 * reads);
        let rise = growth * reads / (per + growth * self.yields);
        rise.max(1.0 - self.latency)
    }

    /// Loss of the sum if these lines per ns are added.
    pub(super) fn loss(&self, shared: &Contention, reads: f64) -> f64 {
        let rise = self.rise(shared, reads);
        let bent = if rise * self.bends > self.slowed {
            self.slowed / self.bends
        } else {
            rise
        };
        (self.slowed - 0.5 * self.bends * bent) * bent
    }

    /// Adds these lines per ns.
    pub(super) fn add(&mut self, shared: &Contention, reads: f64) {
        let rise = self.rise(shared, reads);
        self.latency += rise;
        self.reads = (self.reads + reads - self.yields * rise).max(0.0);
        self.slowed = (self.slowed - self.bends * rise).max(0.0);
    }
}
