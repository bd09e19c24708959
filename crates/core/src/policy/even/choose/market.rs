//! Prices of a memory domain as jobs come and go, close to a set whose prediction is known.

use crate::model::contention::Contention;

/// A memory domain, updated by moves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Market {
    pub(super) latency: f64,
    /// Lines per ns that its jobs read.
    pub(super) reads: f64,
    /// Loss of the sum per unit of latency.
    pub(super) slowed: f64,
}

impl Default for Market {
    /// An idle memory.
    fn default() -> Market {
        Market {
            latency: 1.0,
            reads: 0.0,
            slowed: 0.0,
        }
    }
}

impl Market {
    /// Rise of the latency if these lines per ns are added.
    fn rise(&self, shared: &Contention, reads: f64) -> f64 {
        let rise = shared.memory.growth(self.reads + 0.5 * reads) * reads;
        rise.max(1.0 - self.latency)
    }

    /// Loss of the sum if these lines per ns are added.
    pub(super) fn loss(&self, shared: &Contention, reads: f64) -> f64 {
        self.slowed * self.rise(shared, reads)
    }

    /// Adds these lines per ns.
    pub(super) fn add(&mut self, shared: &Contention, reads: f64) {
        self.latency += self.rise(shared, reads);
        self.reads = (self.reads + reads).max(0.0);
    }
}
