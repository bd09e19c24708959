//! How the running tasks would be at some free share of the bus.

use crate::model::fixed::{FRACTION_DIGITS, ONE, SHARE_DIGITS};

/// How the running tasks would be at some `D`, and what they leave, in shares.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// `D`.
    pub(super) free: u64,
    /// What is left of the bus: `1 - D - sum u`.
    pub(super) rest: u64,
    /// Throughput of the running tasks and the use of the bus by the one that takes the rest: `1 - D + sum h`.
    pub(super) others: u64,
}

impl State {
    /// How far the throughput falls short of `needed` if another task takes the rest; negative if it does not fall
    /// short.
    ///
    /// With `v = u + D` that task adds `D / v`, and `a` is what it must add: `a v - D` has the sign of `a - D / v`,
    /// needs no division, and is smooth where `D / v` is steep.
    #[inline]
    pub(super) fn short_of(&self, needed: u64) -> i64 {
        // D / v is at most 1, so any greater need can never be met.
        let a = needed.saturating_sub(self.others).min(ONE);
        // (a v) >> 40 in two parts, each below 2^62: a kernel has no product of 128 digits.
        const HALF: u32 = SHARE_DIGITS / 2;
        let v = self.rest + self.free;
        let product = ((a >> HALF) * v + (((a & ((1 << HALF) - 1)) * v) >> HALF)) >> HALF;
        product as i64 - self.free as i64
    }

    /// The state that lies `part`, in units of 2^-12, of the way to `to`.
    #[inline]
    pub(super) fn towards(&self, to: &Self, part: u64) -> Self {
        self.between(to, |distance| (distance * part as i64) >> FRACTION_DIGITS)
    }

    /// The state that lies 2^-halvings of the way to `to`.
    #[inline]
    pub(super) fn halved_towards(&self, to: &Self, halvings: usize) -> Self {
        self.between(to, |distance| distance >> halvings)
    }

    #[inline]
    fn between(&self, to: &Self, way: impl Fn(i64) -> i64) -> Self {
        let between =
            |from: u64, to: u64| from.wrapping_add_signed(way(to.wrapping_sub(from) as i64));
        Self {
            free: between(self.free, to.free),
            rest: between(self.rest, to.rest),
            others: between(self.others, to.others),
        }
    }
}
