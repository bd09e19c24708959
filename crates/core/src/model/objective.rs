//! The figure that one more task must not make worse (EFS, Eqs. 15 and 16).
//!
//! [`bus_admission_table`](super::bus_admission_table) finds the greatest demand of a task that may join the running ones.

use super::error::{ModelError, check_non_negative, check_positive};

/// The figure that one more task must not make worse (EFS, Eq. 15 and the remark below it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Objective {
    /// Energy per work, `Power / T`, as in the paper.
    Energy,
    /// Energy-delay product per work, `Power / T^2`.
    EnergyDelay,
    /// Throughput, `T`.
    Throughput,
}

impl Objective {
    /// The factor by which the throughput must grow to keep the objective when power grows from `before_w` to `after_w`
    /// (W): their ratio for energy, its root for energy-delay product, 1 for throughput.
    ///
    /// ```
    /// use cosched_core::model::objective::Objective;
    /// // Power doubles: twice the work is needed for the same energy, 1.41 times for the same energy-delay product.
    /// assert_eq!(Objective::Energy.gain(30.0, 60.0)?, 2.0);
    /// assert_eq!(Objective::EnergyDelay.gain(30.0, 60.0)?, f64::sqrt(2.0));
    /// assert_eq!(Objective::Throughput.gain(30.0, 60.0)?, 1.0);
    /// # Ok::<(), cosched_core::model::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a power that is not finite, a negative one, or a `before_w` of 0.
    pub fn gain(self, before_w: f64, after_w: f64) -> Result<f64, ModelError> {
        check_positive("power before in watts", before_w)?;
        check_non_negative("power after in watts", after_w)?;
        let ratio = after_w / before_w;
        Ok(match self {
            Self::Energy => ratio,
            Self::EnergyDelay => ratio.sqrt(),
            Self::Throughput => 1.0,
        })
    }
}
