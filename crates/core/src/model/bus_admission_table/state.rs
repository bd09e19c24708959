//! The running tasks at some free share of the bus.

use crate::model::fixed::{FRACTION_DIGITS, ONE, SHARE_DIGITS};

/// The running tasks at some `D`, and the rest of the bus, in shares.
#[derive(Clone, Copy)]
pub(super) struct BusState {
    /// `D`.
    pub(super) free: u64,
    /// The rest of the bus: `1 - D - sum u`.
    pub(super) rest: u64,
    /// Throughput of the running tasks, plus the bus use of a task that takes the rest: `1 - D + sum h`.
    pub(super) others: u64,
}

impl BusState {
    /// How far the throughput falls short of `needed` if another task takes the rest; negative if it exceeds it.
    ///
    /// With `v = u + D` that task adds `D / v`, and `a` is the required addition: `a v - D` has the sign of
    /// `a - D / v`, needs no division, and is smooth where `D / v` is steep.
    #[inline]
    pub(super) fn short_of(&self, needed: u64) -> i64 {
        // D / v is at most 1, so no greater need can be met.
        let a = needed.saturating_sub(self.others).min(ONE);
        // (a v) >> 40 in two parts, each below 2^62: a kernel has no 128-bit product.
        const HALF: u32 = SHARE_DIGITS / 2;
        let v = self.rest + self.free;
        let product = ((a >> HALF) * v + (((a & ((1 << HALF) - 1)) * v) >> HALF)) >> HALF;
        product as i64 - self.free as i64
    }

    /// The state at `part` of the way to `to`, in units of 2^-12.
    #[inline]
    pub(super) fn towards(&self, to: &Self, part: u64) -> Self {
        self.between(to, |distance| (distance * part as i64) >> FRACTION_DIGITS)
    }

    /// The state at 2^-halvings of the way to `to`.
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
