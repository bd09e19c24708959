//! Predicts the demand of the next interval from past ones (EFS, Eq. 20).
//!
//! | symbol | meaning | unit |
//! | --- | --- | --- |
//! | `t0` | window: how much of the past counts | ns |
//! | `dt` | length of the interval that has just ended | ns |
//! | `b` | solo utilisation in that interval ([`solo_utilisation`](super::bus::solo_utilisation)) | 0 to 1 |
//! | `B`, `B'` | predicted solo utilisation, before and after | 0 to 1 |
//!
//! A short window follows changes quickly; a long one smooths out short changes. The paper uses 1 ms in the kernel.

use super::error::{ModelError, check_share};
use std::num::NonZeroU64;

/// A demand and its weight as evidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Solo utilisation, from 0 to 1.
    pub demand: f64,
    /// Weight from 0 to 1, meaningful only relative to another.
    pub weight: f64,
}

impl Evidence {
    /// A demand measured at a total utilisation `U` of the bus with the free share `D`: weight `(D / U)^2`, at most 1
    /// (ours). Eq. 9 divides by `D`, so the same counting error moves the odds of the demand `U / D` times as far: a
    /// measurement alone is better evidence than one beside co-runners.
    ///
    /// ```
    /// use cosched_core::model::window::Evidence;
    /// assert_eq!(Evidence::measured(0.4, 0.5, 0.5).weight, 1.0);
    /// assert_eq!(Evidence::measured(0.4, 0.8, 0.2).weight, 0.0625);
    /// ```
    #[must_use]
    pub fn measured(demand: f64, total: f64, free: f64) -> Self {
        let weight = if total > 0.0 {
            (free / total) * (free / total)
        } else {
            1.0
        };
        Self {
            demand,
            weight: weight.clamp(0.0, 1.0),
        }
    }
}

/// The predictor of EFS, Eq. 20. It has no history: the caller keeps `B` with each task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    t0_ns: NonZeroU64,
}

impl Window {
    /// The window of the paper: 1 ms.
    pub const KERNEL: Self = Self::new(NonZeroU64::new(1_000_000).unwrap());

    /// A window of `t0` nanoseconds.
    #[must_use]
    pub const fn new(t0_ns: NonZeroU64) -> Self {
        Self { t0_ns }
    }

    /// `B` of a task that has not run yet: the inverse of the number of cores, from 0 to 1 (EFS, section 4.1). 0 cores
    /// count as 1.
    ///
    /// ```
    /// assert_eq!(cosched_core::model::window::Window::initial(4), 0.25);
    /// ```
    #[must_use]
    pub fn initial(cores: usize) -> f64 {
        1.0 / cores.max(1) as f64
    }

    /// The prediction from demands of unequal weight (ours): `B' = (b w dt + B W (t0 - dt)) / (w dt + W (t0 - dt))`.
    /// The weight of `B'` is the mean of both over the window, so good evidence fades within some windows. With equal
    /// weights this is Eq. 20: `(b dt + B (t0 - dt)) / t0` for `dt < t0`, else `b`.
    ///
    /// ```
    /// use cosched_core::model::window::{Evidence, Window};
    /// let alone = Evidence { demand: 0.9, weight: 1.0 };
    /// let crowded = Evidence { demand: 0.3, weight: 0.01 };
    /// // Half a window beside co-runners hardly moves a measurement alone.
    /// let next = Window::KERNEL.next_weighted(alone, crowded, 500_000)?;
    /// assert!((next.demand - 0.894).abs() < 0.001 && (next.weight - 0.505).abs() < 1e-9);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a demand that is negative, above 1 or not a number.
    pub fn next_weighted(
        &self,
        previous: Evidence,
        measured: Evidence,
        dt_ns: u64,
    ) -> Result<Evidence, ModelError> {
        check_share("predicted solo utilisation", previous.demand)?;
        check_share("solo utilisation", measured.demand)?;
        let t0_ns = self.t0_ns.get();
        let share = dt_ns.min(t0_ns) as f64 / t0_ns as f64;
        let (new, old) = (measured.weight * share, previous.weight * (1.0 - share));
        if new + old == 0.0 {
            return Ok(measured);
        }
        let (least, most) = (
            previous.demand.min(measured.demand),
            previous.demand.max(measured.demand),
        );
        // Rounding must not move the mean outside the range of its two terms.
        let demand =
            ((measured.demand * new + previous.demand * old) / (new + old)).clamp(least, most);
        Ok(Evidence {
            demand,
            weight: new + old,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn next(before: f64, measured: f64, dt_ns: u64) -> Result<f64, ModelError> {
        let [before, measured] = [before, measured].map(|demand| Evidence {
            demand,
            weight: 1.0,
        });
        let next = Window::KERNEL.next_weighted(before, measured, dt_ns)?;
        Ok(next.demand)
    }

    #[test]
    fn edges() {
        assert_eq!(next(0.3, 0.9, 0).unwrap(), 0.3);
        assert_eq!(next(0.3, 0.9, u64::MAX).unwrap(), 0.9);
        assert_eq!(Window::initial(0), 1.0);
        assert!(next(-0.1, 0.5, 1).is_err());
        assert!(next(0.1, f64::NAN, 1).is_err());
    }

    proptest! {
        #![proptest_config(crate::model::samples::cases(256))]

        #[test]
        fn stays_between_the_past_and_the_present(b in 0.0..=1.0, before in 0.0..=1.0, dt in 0u64..2_000_000) {
            let after = next(before, b, dt).unwrap();
            prop_assert!(after >= f64::min(b, before) && after <= f64::max(b, before));
        }

        #[test]
        fn agrees_with_equation_20(b in 0.0..=1.0, before in 0.0..=1.0, dt in 0u64..2_000_000) {
            let (t0, dt_ns) = (1e6, dt as f64);
            let expected = if dt_ns < t0 { (b * dt_ns + before * (t0 - dt_ns)) / t0 } else { b };
            prop_assert!((next(before, b, dt).unwrap() - expected).abs() < 1e-12);
        }

        #[test]
        fn evidence_counts_by_its_weight_and_time(
            (b, w) in (0.0..=1.0, 0.01..=1.0), (before, old) in (0.0..=1.0, 0.01..=1.0), dt in 1u64..1_000_000,
        ) {
            let previous = Evidence { demand: before, weight: old };
            let next = Window::KERNEL.next_weighted(previous, Evidence { demand: b, weight: w }, dt).unwrap();
            let (new, old) = (w * dt as f64, old * (1e6 - dt as f64));
            prop_assert!((next.demand - (b * new + before * old) / (new + old)).abs() < 1e-12);
            prop_assert!((next.weight - (new + old) / 1e6).abs() < 1e-12);
        }
    }
}
