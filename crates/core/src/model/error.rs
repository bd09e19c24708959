//! Errors in the input of a model.

use thiserror::Error;

/// An input that a model refuses, with its value and the expected range.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ModelError {
    /// A number lies outside the range in which the equation is defined, or is not a number.
    #[error("{what} is {value}, expected {allowed}")]
    OutOfRange {
        /// The quantity, in words.
        what: &'static str,
        /// The refused value.
        value: f64,
        /// The allowed range, in words.
        allowed: &'static str,
    },
    /// There are too few different measurements for a fit.
    #[error("{what} cannot be fitted: {reason}")]
    Undetermined {
        /// The quantity to fit, in words.
        what: &'static str,
        /// The missing measurement, in words.
        reason: &'static str,
    },
}

/// Refuses a number outside `[0, 1]`, and NaN.
pub(crate) fn check_share(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(ModelError::OutOfRange {
            what,
            value,
            allowed: "a number from 0 to 1",
        })
    }
}

/// Refuses a negative or infinite number, and NaN.
pub(crate) fn check_non_negative(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value >= 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(ModelError::OutOfRange {
            what,
            value,
            allowed: "a finite number of at least 0",
        })
    }
}

/// Refuses zero, a negative or infinite number, and NaN.
pub(crate) fn check_positive(what: &'static str, value: f64) -> Result<f64, ModelError> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(ModelError::OutOfRange {
            what,
            value,
            allowed: "a finite number above 0",
        })
    }
}
