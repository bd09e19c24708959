//! Predicts a thread on the other type of core (lucky, sections 2.2 and 3): performance by regression, power, energy
//! efficiency, and the tickets that follow.
//!
//! | symbol | meaning | unit |
//! | --- | --- | --- |
//! | `MIPS_i` | performance of a thread on core type `i` | million instructions/s |
//! | `LLCMS_i` | its misses of the last-level cache there | million/s |
//! | `alpha`, `beta`, `gamma` | coefficients of the regression from type `i` to type `j` | 1; instructions per miss; MIPS |
//! | `C_i` | capacity: the highest solo performance seen on type `i` | MIPS |
//! | `B_i`, `I_i` | busy and idle power of a core of type `i` | W |
//! | `P` | power of a core with this thread on it | W |
//! | efficiency | `MIPS^2 / P`, the inverse of energy x delay for each instruction squared | MIPS^2/W |
//! | benefit | efficiency on the big core / on the small one | |
//! | tickets | `100 x benefit` | |

use super::error::{ModelError, check_non_negative, check_positive};
use serde::{Deserialize, Serialize};

/// The measurements of a thread on one type of core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreSample {
    /// `MIPS` (million instructions/s).
    pub mips: f64,
    /// `LLCMS` (million misses/s).
    pub llcms: f64,
}

/// One program, run alone on both types of core: a data point of [`fit`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CorePair {
    /// The measurements on type `i`, to predict from.
    pub from: CoreSample,
    /// `MIPS_j` on type `j`, to predict (million instructions/s).
    pub to_mips: f64,
}

/// The coefficients that predict the performance on type `j` from type `i`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regression {
    /// `alpha`, MIPS on `j` for each MIPS on `i`.
    pub alpha: f64,
    /// `beta`, MIPS on `j` for each million misses/s on `i`.
    pub beta: f64,
    /// `gamma` (MIPS).
    pub gamma: f64,
}

impl Regression {
    /// `MIPS_j = alpha MIPS_i + beta LLCMS_i + gamma` (MIPS) (lucky, section 2.2).
    ///
    /// The plane has no bounds: far from the fitted programs it can fall below 0. A negative value is not a
    /// performance, and [`benefit`] refuses it.
    ///
    /// ```
    /// use cosched_core::model::cross_core::{CoreSample, Regression};
    /// let to_big = Regression { alpha: 3.9, beta: -90.0, gamma: 100.0 };
    /// assert_eq!(to_big.predict(CoreSample { mips: 600.0, llcms: 14.0 }), 1180.0);
    /// ```
    #[must_use]
    pub fn predict(&self, from: CoreSample) -> f64 {
        self.alpha * from.mips + self.beta * from.llcms + self.gamma
    }
}

/// The result of [`fit`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RegressionFit {
    /// The coefficients.
    pub regression: Regression,
    /// `R^2`, the share of the variance explained by the regression, from 0 to 1. `None` if all `MIPS_j` are equal. The
    /// paper's correlation coefficient is its root.
    pub r2: Option<f64>,
    /// Root mean square of the residuals (MIPS).
    pub residual_mips: f64,
}

/// Fits coefficients by least squares (lucky, section 2.2) to programs run alone on both types of core.
///
/// ```
/// use cosched_core::model::cross_core::{CorePair, CoreSample, fit};
/// // MIPS_j = 4 MIPS_i - 25 LLCMS_i + 10, met exactly by four programs.
/// let pairs = [(700.0, 1.0), (500.0, 2.0), (400.0, 14.0), (300.0, 29.0)].map(|(mips, llcms)| CorePair {
///     from: CoreSample { mips, llcms },
///     to_mips: 4.0 * mips - 25.0 * llcms + 10.0,
/// });
/// let fitted = fit(&pairs)?;
/// assert!((fitted.regression.alpha - 4.0).abs() < 1e-9);
/// assert!((fitted.regression.beta + 25.0).abs() < 1e-9);
/// assert!((fitted.regression.gamma - 10.0).abs() < 1e-6);
/// assert!(fitted.r2.unwrap() > 1.0 - 1e-12);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a measurement that is negative or not finite, [`ModelError::Undetermined`] for
/// fewer than three programs, or when `LLCMS` is the same for all of them or tells nothing that `MIPS` does not.
pub fn fit(pairs: &[CorePair]) -> Result<RegressionFit, ModelError> {
    let mut sums = PairSums::default();
    for &pair in pairs {
        sums.add(pair, 1.0)?;
    }
    sums.fit()
}

/// What a regression needs of its pairs. Earlier pairs may count less than later ones.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairSums {
    count: f64,
    /// Of `MIPS_i`, `LLCMS_i` and `MIPS_j`.
    means: [f64; 3],
    /// Sums of products of the deviations from these means, by two of the same three.
    products: [[f64; 3]; 3],
}

impl PairSums {
    /// Number of pairs, each by how much it counts.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.count
    }

    /// Adds a pair. Those before count `keep` times what they did, from 0 to 1.
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a measurement that is negative or not finite.
    pub fn add(&mut self, pair: CorePair, keep: f64) -> Result<(), ModelError> {
        check_non_negative("MIPS of a program", pair.from.mips)?;
        check_non_negative("LLCMS of a program", pair.from.llcms)?;
        check_non_negative("MIPS of a program on the other type", pair.to_mips)?;
        let values = [pair.from.mips, pair.from.llcms, pair.to_mips];
        let before = keep * self.count;
        self.count = before + 1.0;
        let deviations = [0, 1, 2].map(|at| values[at] - self.means[at]);
        for (row, along) in deviations.into_iter().enumerate() {
            self.means[row] += along / self.count;
            for (column, across) in deviations.into_iter().enumerate() {
                let product = &mut self.products[row][column];
                *product = keep * *product + along * across * (before / self.count);
            }
        }
        Ok(())
    }

    /// Fits the coefficients by least squares.
    ///
    /// # Errors
    /// [`ModelError::Undetermined`], as [`fit`].
    pub fn fit(&self) -> Result<RegressionFit, ModelError> {
        let along = self.along()?;
        let [[_, xz, xy], [_, zz, zy], [_, _, yy]] = self.products;
        let beta = (zy - along * xy) / (zz - along * xz);
        let alpha = xy / self.products[0][0] - beta * along;
        let [mips, llcms, to_mips] = self.means;
        let gamma = to_mips - alpha * mips - beta * llcms;
        let unexplained = (yy - alpha * xy - beta * zy).max(0.0);
        Ok(RegressionFit {
            regression: Regression { alpha, beta, gamma },
            r2: (yy > 0.0).then(|| (1.0 - unexplained / yy).clamp(0.0, 1.0)),
            residual_mips: (unexplained / self.count).sqrt(),
        })
    }

    /// `LLCMS_i` for each `MIPS_i`, by least squares, if the two determine a plane.
    fn along(&self) -> Result<f64, ModelError> {
        /// Two columns count as parallel if all but this share of one lies along the other: far above rounding, far
        /// below noise.
        const PARALLEL: f64 = 1e-10;
        let [[xx, xz, _], [_, zz, _], _] = self.products;
        let constant = |at: usize| {
            self.products[at][at]
                <= PARALLEL * PARALLEL * self.means[at] * self.means[at] * self.count
        };
        let along = xz / xx;
        let reason = if self.count < 3.0 {
            "it has three coefficients and needs at least three programs"
        } else if constant(0) {
            "all programs have the same MIPS"
        } else if constant(1) {
            "all programs have the same LLCMS"
        } else if zz - along * xz <= PARALLEL * zz {
            "LLCMS is proportional to MIPS in all programs"
        } else {
            return Ok(along);
        };
        let what = "regression between core types";
        Err(ModelError::Undetermined { what, reason })
    }
}

/// The pairs of both regressions between two types of core.
#[derive(Debug, Default, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BothWays {
    /// From the small type to the big one.
    pub to_big: PairSums,
    /// From the big type to the small one.
    pub to_small: PairSums,
}

impl BothWays {
    /// Adds the measurements of a program on both types, as [`PairSums::add`].
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a measurement that is negative or not finite.
    pub fn add(&mut self, big: CoreSample, small: CoreSample, keep: f64) -> Result<(), ModelError> {
        let pair = |from, to: CoreSample| CorePair {
            from,
            to_mips: to.mips,
        };
        self.to_big.add(pair(small, big), keep)?;
        self.to_small.add(pair(big, small), keep)
    }
}

/// Capacity and power of one type of core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreType {
    capacity_mips: f64,
    busy_w: f64,
    idle_w: f64,
}

impl CoreType {
    /// A type with capacity `C` (MIPS), above 0, and busy and idle power `B` and `I` (W), at least 0 and `B` above 0
    /// and not below `I`.
    ///
    /// ```
    /// use cosched_core::model::cross_core::CoreType;
    /// // The small core of lucky, section 2: between 0.7 W and 2.15 W. At half of its capacity it takes the mean.
    /// let small = CoreType::new(1000.0, 2.15, 0.7)?;
    /// assert!((small.power_w(500.0)? - 1.425).abs() < 1e-12);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for values outside these ranges.
    pub fn new(capacity_mips: f64, busy_w: f64, idle_w: f64) -> Result<Self, ModelError> {
        check_positive("capacity in MIPS", capacity_mips)?;
        check_positive("busy power in watts", busy_w)?;
        check_non_negative("idle power in watts", idle_w)?;
        if idle_w > busy_w {
            return Err(ModelError::OutOfRange {
                what: "idle power in watts",
                value: idle_w,
                allowed: "at most the busy power",
            });
        }
        Ok(Self {
            capacity_mips,
            busy_w,
            idle_w,
        })
    }

    /// `C` (MIPS).
    #[must_use]
    pub fn capacity_mips(&self) -> f64 {
        self.capacity_mips
    }

    /// `B` (W).
    #[must_use]
    pub fn busy_w(&self) -> f64 {
        self.busy_w
    }

    /// `I` (W).
    #[must_use]
    pub fn idle_w(&self) -> f64 {
        self.idle_w
    }

    /// `(B - I) / C`, energy per instruction beyond the idle power (nJ).
    #[must_use]
    pub fn nj_per_instruction(&self) -> f64 {
        // W for each million instructions/s are 1,000 nJ for each instruction.
        1e3 * (self.busy_w - self.idle_w) / self.capacity_mips
    }

    /// `P = (B - I) MIPS / C + I` (W), the power of a core on which a thread runs at `mips` (lucky, section 3).
    ///
    /// A performance above the capacity, which is only the highest one seen, extends the line.
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a negative performance or one that is not finite.
    pub fn power_w(&self, mips: f64) -> Result<f64, ModelError> {
        check_non_negative("performance in MIPS", mips)?;
        Ok((self.busy_w - self.idle_w) * (mips / self.capacity_mips) + self.idle_w)
    }

    /// `MIPS^2 / P` (MIPS^2/W) (lucky, section 3); 0 for a thread that does nothing.
    ///
    /// ```
    /// use cosched_core::model::cross_core::CoreType;
    /// let small = CoreType::new(1000.0, 2.0, 1.0)?;
    /// assert_eq!(small.efficiency(1000.0)?, 500_000.0);
    /// assert_eq!(small.efficiency(0.0)?, 0.0);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a negative performance or one that is not finite.
    pub fn efficiency(&self, mips: f64) -> Result<f64, ModelError> {
        let power = self.power_w(mips)?;
        Ok(if mips == 0.0 {
            0.0
        } else {
            mips * (mips / power)
        })
    }
}

/// The thread's efficiency on the big core over that on the small one (lucky, section 3.2, step 2).
///
/// `big_mips` and `small_mips` are its performance on the two types (MIPS), one of them usually from
/// [`Regression::predict`]; both above 0, because a thread that does nothing on one of them has no ratio.
///
/// ```
/// use cosched_core::model::cross_core::{CoreType, benefit};
/// // In the proportions of lucky, section 2; the capacity of 1000 and the idle power of 5 W are made up.
/// let (big, small) = (CoreType::new(4000.0, 18.9, 5.0)?, CoreType::new(1000.0, 2.15, 0.7)?);
/// // At full capacity: 4^2 times the square of the speed for 18.9 / 2.15 times the power.
/// assert!((benefit(&big, 4000.0, &small, 1000.0)? - 16.0 / (18.9 / 2.15)).abs() < 1e-12);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a performance that is not above 0 and finite.
pub fn benefit(
    big: &CoreType,
    big_mips: f64,
    small: &CoreType,
    small_mips: f64,
) -> Result<f64, ModelError> {
    check_positive("performance on the big core in MIPS", big_mips)?;
    check_positive("performance on the small core in MIPS", small_mips)?;
    Ok(big.efficiency(big_mips)? / small.efficiency(small_mips)?)
}

/// `tickets = 100 x benefit` (lucky, section 3, step 3), rounded to the nearest whole number, and at least 1, so that
/// no thread is kept off the big cores for ever (ours). At most `u32::MAX`.
///
/// ```
/// use cosched_core::model::cross_core::tickets;
/// assert_eq!((tickets(1.416)?, tickets(0.001)?), (142, 1));
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a negative benefit or one that is not finite.
pub fn tickets(benefit: f64) -> Result<u32, ModelError> {
    check_non_negative("benefit of the big core", benefit)?;
    // A conversion to an integer saturates.
    Ok(((100.0 * benefit + 0.5) as u32).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::samples::cases;
    use proptest::prelude::*;

    fn pair(mips: f64, llcms: f64, to_mips: f64) -> CorePair {
        CorePair {
            from: CoreSample { mips, llcms },
            to_mips,
        }
    }

    #[test]
    fn least_squares_by_hand() {
        // Centred: x = -1, 1, -1, 1; z = -1, -1, 1, 1; y = -3, 3, -1, 1: alpha = 8/4 = 2, beta = 0, residuals -1, 1, 1,
        // -1.
        let fitted = fit(&[
            pair(1.0, 0.0, 7.0),
            pair(3.0, 0.0, 13.0),
            pair(1.0, 2.0, 9.0),
            pair(3.0, 2.0, 11.0),
        ])
        .unwrap();
        assert!((fitted.regression.alpha - 2.0).abs() < 1e-12);
        assert!(fitted.regression.beta.abs() < 1e-12);
        assert!((fitted.regression.gamma - 6.0).abs() < 1e-12);
        assert!((fitted.r2.unwrap() - 0.8).abs() < 1e-12);
        assert!((fitted.residual_mips - 1.0).abs() < 1e-12);
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        // A plane, then another one.
        let points = [(1.0, 0.0), (3.0, 1.0), (2.0, 4.0), (5.0, 3.0)];
        let mut sums = PairSums::default();
        let keep = 0.966;
        for at in 0..420 {
            let (mips, llcms) = points[at % 4];
            let slope = if at < 20 { 9.0 } else { 4.0 };
            sums.add(pair(mips, llcms, slope * mips - llcms + 6.0), keep)
                .unwrap();
        }
        assert!((sums.count() - 1.0 / (1.0 - keep)).abs() < 1e-3);
        let found = sums.fit().unwrap().regression;
        assert!((found.alpha - 4.0).abs() < 1e-4, "{found:?}");
        assert!((found.beta + 1.0).abs() < 1e-4, "{found:?}");
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let undetermined = |pairs: &[CorePair], word: &str| match fit(pairs) {
            Err(ModelError::Undetermined { reason, .. }) => {
                assert!(reason.contains(word), "{reason}")
            }
            other => panic!("{other:?}"),
        };
        undetermined(&[], "three programs");
        undetermined(
            &[pair(1.0, 2.0, 3.0), pair(2.0, 2.5, 3.0)],
            "three programs",
        );
        undetermined(
            &[
                pair(1.0, 2.0, 3.0),
                pair(1.0, 3.0, 4.0),
                pair(1.0, 5.0, 4.0),
            ],
            "same MIPS",
        );
        undetermined(
            &[
                pair(1.0, 2.0, 3.0),
                pair(2.0, 2.0, 4.0),
                pair(3.0, 2.0, 4.0),
            ],
            "same LLCMS",
        );
        undetermined(
            &[
                pair(1.0, 0.1, 3.0),
                pair(2.0, 0.2, 4.0),
                pair(3.0, 0.3, 4.0),
            ],
            "proportional",
        );
        assert!(matches!(
            fit(&[pair(1.0, f64::NAN, 3.0)]),
            Err(ModelError::OutOfRange { .. })
        ));
        // Without variance there is no share to explain.
        let flat = fit(&[
            pair(1.0, 0.1, 3.0),
            pair(2.0, 0.5, 3.0),
            pair(3.0, 0.3, 3.0),
        ])
        .unwrap();
        assert_eq!(flat.r2, None);
        assert!((flat.regression.gamma - 3.0).abs() < 1e-9);
    }

    #[test]
    fn bad_cores_are_refused() {
        assert!(CoreType::new(0.0, 1.0, 0.5).is_err());
        assert!(CoreType::new(1.0, 0.0, 0.0).is_err());
        assert!(CoreType::new(1.0, 1.0, 1.5).is_err());
        let core = CoreType::new(1.0, 1.0, 0.0).unwrap();
        assert!(core.power_w(-1.0).is_err());
        assert_eq!(core.efficiency(0.0).unwrap(), 0.0);
        assert!(benefit(&core, 1.0, &core, 0.0).is_err());
        assert!(benefit(&core, -1.0, &core, 1.0).is_err());
        assert!(tickets(f64::NAN).is_err());
        assert_eq!(tickets(1e30).unwrap(), u32::MAX);
    }

    #[test]
    fn equal_cores_give_a_hundred_tickets() {
        let core = CoreType::new(1000.0, 10.0, 2.0).unwrap();
        assert_eq!(
            tickets(benefit(&core, 700.0, &core, 700.0).unwrap()).unwrap(),
            100
        );
    }

    proptest! {
        #![proptest_config(cases(200))]

        #[test]
        fn no_other_plane_fits_better(
            points in prop::collection::vec((100.0..1000.0, 0.0..30.0, 300.0..4000.0), 4..40),
            da in -0.1..0.1, db in -1.0..1.0, dg in -10.0..10.0,
        ) {
            let pairs: Vec<CorePair> = points.iter().map(|&(mips, llcms, to)| pair(mips, llcms, to)).collect();
            let squares = |r: &Regression| pairs.iter().map(|p| (p.to_mips - r.predict(p.from)).powi(2)).sum::<f64>();
            let best = fit(&pairs).unwrap().regression;
            let other = Regression { alpha: best.alpha + da, beta: best.beta + db, gamma: best.gamma + dg };
            prop_assert!(squares(&best) <= squares(&other) * (1.0 + 1e-9));
        }
    }
}
