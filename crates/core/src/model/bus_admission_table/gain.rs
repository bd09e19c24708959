//! The throughput that a further task must bring.

use crate::model::error::{ModelError, check_non_negative};
use crate::model::objective::Objective;
use crate::model::power::PowerModel;

/// The factor by which throughput must grow, in units of 2^-20; see [`Objective::gain`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gain(u32);

impl Gain {
    pub(super) const DIGITS: u32 = 20;
    /// No loss of throughput: for the throughput objective, and for a task that wakes no further core.
    pub const NONE: Self = Self(1 << Self::DIGITS);

    /// The nearest gain. All gains of 4,096 and more are equal: no task is ever worth them.
    ///
    /// # Errors
    /// [`ModelError::OutOfRange`] for a negative gain or one that is not finite.
    pub fn of(gain: f64) -> Result<Self, ModelError> {
        check_non_negative("gain of throughput", gain)?;
        // A conversion to an integer saturates.
        Ok(Self((gain * f64::from(1_u32 << Self::DIGITS) + 0.5) as u32))
    }

    /// The number in units of 2^-20, as a kernel stores it.
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The gain with this number.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// The gains required of a task that wakes core number 2, 3, ..., `cores`, in this order.
    ///
    /// # Errors
    /// None in practice, because a [`PowerModel`] is valid by construction. The result is a `Result` because gains are
    /// checked.
    pub fn for_cores(
        power: &PowerModel,
        objective: Objective,
        cores: usize,
    ) -> Result<Vec<Self>, ModelError> {
        (1..cores)
            .map(|active| Self::of(objective.gain(power.watts(active), power.watts(active + 1))?))
            .collect()
    }
}
