//! Rectangles, and values as places in them.

use super::scale::Scale;

/// A rectangle, in the units of the drawing; y grows downwards.
#[derive(Clone, Copy)]
pub(super) struct Area {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(super) fn middle(&self) -> f64 {
        self.left + self.width / 2.0
    }

    /// The x of a value on a horizontal axis.
    pub(super) fn x(&self, scale: &Scale, v: f64) -> f64 {
        self.left + scale.fraction(v) * self.width
    }

    /// The y of a value on a vertical axis.
    pub(super) fn y(&self, scale: &Scale, v: f64) -> f64 {
        self.bottom() - scale.fraction(v) * self.height
    }
}

/// Round a coordinate to two decimals.
pub(super) fn px(v: f64) -> f64 {
    // A negative zero becomes a positive one.
    (v * 100.0).round() / 100.0 + 0.0
}
