//! Power and energy by the number of active cores (EFS, Eqs. 13-15).
//!
//! | symbol | meaning | unit |
//! | --- | --- | --- |
//! | `k` | number of active cores: cores, not SMT siblings (ours; the paper's machine has none) | cores |
//! | `P_0` | power with no core active: supply, disks, idle chip | W |
//! | `P_k` | power added by the `k`-th active core | W |
//! | `Power(k)` | `P_0 + ... + P_k` (Eq. 13) | W |
//! | `T` | throughput of [`bus`](super::bus) (Eq. 12) | tasks' worth of solo progress |
//! | energy per work | `Power / T` (Eq. 14) | W, that is J for each second of solo progress |

use super::error::{ModelError, check_non_negative, check_positive};

/// Power as a sum of steps, one for each active core (EFS, Eq. 13).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PowerModel {
    /// `P_0`, `P_1`, `P_2`, and the step of each further core, in watts.
    pub steps_w: [f64; 4],
}

impl PowerModel {
    /// A model with the steps `P_0`, `P_1`, `P_2` and that of each further core (ours), in watts. Each is finite and at
    /// least 0, and `P_0 + P_1` is above 0.
    ///
    /// ```
    /// use cosched_core::model::power::PowerModel;
    /// // The machine of EFS, Eq. 25 (Core i5-2500, whole system).
    /// let i5 = PowerModel::new([26.6, 22.6, 12.0, 12.3])?;
    /// assert!((i5.watts(2) - 61.2).abs() < 1e-12);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for steps outside this range.
    pub fn new(steps_w: [f64; 4]) -> Result<Self, ModelError> {
        for step in steps_w {
            check_non_negative("power step", step)?;
        }
        let model = Self { steps_w };
        check_positive("power with one active core", model.watts(1))?;
        check_positive("power with three active cores", model.watts(3))?;
        Ok(model)
    }

    /// `Power(k)` in watts with `active` cores active (EFS, Eq. 13).
    ///
    /// ```
    /// # use cosched_core::model::power::PowerModel;
    /// let model = PowerModel::new([10.0, 5.0, 3.0, 3.0])?;
    /// assert_eq!([0, 1, 2, 4].map(|k| model.watts(k)), [10.0, 15.0, 18.0, 24.0]);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    #[must_use]
    pub fn watts(&self, active: usize) -> f64 {
        let known = self.steps_w.len().min(active + 1);
        let watts: f64 = self.steps_w[..known].iter().sum();
        watts + (active + 1 - known) as f64 * self.steps_w[3]
    }
}

/// Energy per work, `Power / T`, in joules per second of solo progress (EFS, Eq. 14).
///
/// `watts` is the power of the whole system (W), `throughput` is `T` (tasks' worth of solo progress). With no
/// throughput it is infinite.
///
/// ```
/// use cosched_core::model::power::energy_per_work;
/// // Four undisturbed tasks on the machine of EFS, Eq. 25 cost less each than one alone, because they share the 26.6 W.
/// assert!(energy_per_work(85.8, 4.0)? < energy_per_work(49.2, 1.0)?);
/// # Ok::<(), cosched_core::model::ModelError>(())
/// ```
///
/// # Errors
/// [`ModelError::OutOfRange`] for a negative value or one that is not finite.
pub fn energy_per_work(watts: f64, throughput: f64) -> Result<f64, ModelError> {
    check_non_negative("power in watts", watts)?;
    check_non_negative("throughput", throughput)?;
    Ok(if throughput == 0.0 {
        f64::INFINITY
    } else {
        watts / throughput
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_further_core_adds_as_much() {
        let model = PowerModel::new([26.6, 22.6, 12.0, 12.3]).unwrap();
        assert!((model.watts(3) - 73.5).abs() < 1e-12);
        assert!((model.watts(6) - (73.5 + 3.0 * 12.3)).abs() < 1e-12);
    }

    #[test]
    fn bad_steps_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, f64::MAX] {
            let refused = PowerModel::new([f64::MAX, 1.0, bad, 1.0]);
            assert!(
                matches!(refused, Err(ModelError::OutOfRange { .. })),
                "{bad}"
            );
        }
        assert!(PowerModel::new([0.0, 0.0, 1.0, 1.0]).is_err());
        assert!(PowerModel::new([0.0, 1.0, 0.0, 0.0]).is_ok());
        assert_eq!(energy_per_work(10.0, 0.0).unwrap(), f64::INFINITY);
        assert!(energy_per_work(f64::NAN, 1.0).is_err());
    }
}
