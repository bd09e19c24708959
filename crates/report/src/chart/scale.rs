//! Axes as numbers: ranges, ticks, and where a value lies.
//!
//! A tick is a whole number times a power of ten: the nearest float to it, so that its shortest text is exact.

/// Greater values are drawn as this, so that differences stay exact enough.
const GREATEST: f64 = 1e12;
/// A narrower range is drawn from 0: labels would have too many digits.
const NARROWEST: f64 = 1e-9;
/// The same, as a share of the greatest end.
const NARROWEST_SHARE: f64 = 1e-3;
/// How far, in steps, a value may lie beyond a tick and still count as on it.
const TOLERANCE: f64 = 1e-6;

/// Return the least and the greatest of some values, as far as they are finite; with 0 where the values still have half
/// of the axis then. Without a value it is from 0 to 1.
pub(super) fn range(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    for v in values {
        if v.is_finite() {
            let drawn = v.clamp(-GREATEST, GREATEST);
            from = from.min(drawn);
            to = to.max(drawn);
        }
    }
    if from > to {
        return (0.0, 1.0);
    }
    let far = from.abs().max(to.abs());
    let is_narrow = to - from < NARROWEST.max(far * NARROWEST_SHARE);
    if is_narrow || (from > 0.0 && from <= to / 2.0) {
        from = from.min(0.0);
    }
    if is_narrow || (to < 0.0 && to >= from / 2.0) {
        to = to.max(0.0);
    }
    if to - from < NARROWEST {
        (0.0, 1.0)
    } else {
        (from, to)
    }
}

/// A linear axis from its first tick to its last.
pub(super) struct Scale {
    /// The ticks, ascending; two at least.
    pub ticks: Vec<f64>,
}

impl Scale {
    /// The scale over a range with the least step of 1, 2 or 5 times a power of ten that needs at most `most` ticks,
    /// which must be at least 3, since a range around 0 has a tick there.
    pub(super) fn of((from, to): (f64, f64), most: usize) -> Scale {
        for exponent in -12..=13 {
            for digit in [1, 2, 5] {
                let step = float(digit, exponent);
                let first = (from / step + TOLERANCE).floor();
                let last = (to / step - TOLERANCE).ceil();
                if last - first < most as f64 {
                    let steps = first as i64..=last as i64;
                    let ticks = steps.map(|n| float(n * digit, exponent)).collect();
                    return Scale { ticks };
                }
            }
        }
        Scale {
            ticks: vec![from, to],
        }
    }

    /// The first and the last tick.
    fn ends(&self) -> (f64, f64) {
        (self.ticks[0], self.ticks[self.ticks.len() - 1])
    }

    /// Return where a value lies: 0 at the first tick, 1 at the last.
    pub(super) fn fraction(&self, v: f64) -> f64 {
        let (from, to) = self.ends();
        ((v - from) / (to - from)).clamp(0.0, 1.0)
    }

    /// Return the value of the axis that is nearest to 0.
    pub(super) fn base(&self) -> f64 {
        let (from, to) = self.ends();
        0.0_f64.clamp(from, to)
    }
}

/// Return the float nearest to `n` times ten to the power of `exponent`.
fn float(n: i64, exponent: i32) -> f64 {
    format!("{n}e{exponent}").parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers() {
        let check = |values: &[f64], most, expected: &[f64]| {
            let scale = Scale::of(range(values.iter().copied()), most);
            assert_eq!(scale.ticks, expected, "{values:?}");
        };
        check(&[0.0, 9.3], 6, &[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        check(&[1.0, 1.3], 6, &[1.0, 1.1, 1.2, 1.3]);
        check(&[3.0, 9.0], 4, &[0.0, 5.0, 10.0]);
        check(&[-2.0, 8.0], 6, &[-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]);
        check(&[7.0], 3, &[0.0, 5.0, 10.0]);
        check(&[], 3, &[0.0, 0.5, 1.0]);
        check(&[f64::NAN, 0.0], 3, &[0.0, 0.5, 1.0]);
    }

    #[test]
    fn a_value_has_a_place() {
        let scale = Scale::of((-5.0, 5.0), 3);
        assert_eq!((scale.fraction(0.0), scale.base()), (0.5, 0.0));
        assert_eq!((scale.fraction(-5.0), scale.fraction(1e300)), (0.0, 1.0));
        assert_eq!(Scale::of((2.0, 3.0), 3).base(), 2.0);
    }
}
