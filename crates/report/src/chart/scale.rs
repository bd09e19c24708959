//! Axes as numbers: ranges, ticks, and where a value lies.
//!
//! A tick is a whole number times a power of ten, so its label is exact decimal text, and its place is the nearest
//! float to it.

use super::model::Axis;
use super::number::{decimal, power};

/// Greater values are drawn as this, so that differences stay finite.
const GREATEST: f64 = 1e300;
/// Smaller values are drawn as 0, so that quotients stay finite.
const SMALLEST: f64 = 1e-300;
/// A range that is narrower, by its greatest end, is drawn from 0: labels would have too many digits.
const NARROWEST: f64 = 1e-6;
/// How far, in steps, a value may lie beyond a tick and still count as on it.
const TOLERANCE: f64 = 1e-6;
/// Steps as hundredths of a power of ten.
const STEPS: [i64; 4] = [100, 200, 250, 500];

/// The least and the greatest of some values.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Range {
    ends: Option<(f64, f64)>,
}

impl Range {
    /// Of these values, as far as they are finite.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Range {
        let mut range = Range::default();
        values.into_iter().for_each(|v| range.include(v));
        range
    }

    /// Includes a value if it is finite.
    pub(super) fn include(&mut self, v: f64) {
        if v.is_finite() {
            let (from, to) = self.ends.unwrap_or((v, v));
            self.ends = Some((from.min(v), to.max(v)));
        }
    }

    /// Includes 0 where the values still have half of the axis then.
    pub(super) fn include_near_zero(&mut self) {
        if let Some((from, to)) = self.ends
            && ((from > 0.0 && from <= to / 2.0) || (to < 0.0 && to >= from / 2.0))
        {
            self.include(0.0);
        }
    }

    /// Its ends, unless there was no value.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        self.ends
    }

    /// The ends of an axis over these values.
    pub(super) fn on(&self, axis: &Axis) -> (f64, f64) {
        let (from, to) = self.ends.unwrap_or((0.0, 1.0));
        match axis.from.filter(|from| from.is_finite()) {
            Some(from) => (from, to.max(from)),
            None => (from, to),
        }
    }
}

/// A tick of an axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    /// Its value.
    pub(super) at: f64,
    /// Its value as text, divided by the scale's power of ten.
    pub(super) label: String,
}

/// A linear axis from its first tick to its last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Scale {
    /// The ticks, ascending; two at least.
    pub(super) ticks: Vec<Tick>,
    /// The labels are to be multiplied by ten to this power, a multiple of 3.
    pub(super) exponent: i32,
    from: f64,
    to: f64,
}

impl Scale {
    /// The scale over a range with the least step of 1, 2, 2.5 or 5 times a power of ten that needs at most `most`
    /// ticks, which must be at least 3, since a range around 0 has a tick there.
    pub(super) fn of(ends: (f64, f64), most: usize) -> Scale {
        let (from, to) = drawable(ends);
        let most = most.max(3) as f64;
        let mut exponent = exponent_of((to - from) / most) - 1;
        loop {
            for hundredths in STEPS {
                let step = float(hundredths, exponent - 2);
                let first = (from / step + TOLERANCE).floor();
                let last = (to / step - TOLERANCE).ceil();
                if last - first < most {
                    return Scale::with(first as i64, last as i64, hundredths, exponent - 2);
                }
            }
            exponent += 1;
        }
    }

    /// The scale with the ticks from `first` to `last` times `step` times ten to the power of `exponent`.
    fn with(first: i64, last: i64, step: i64, exponent: i32) -> Scale {
        let far = float(first.abs().max(last.abs()) * step, exponent);
        let of_labels = match exponent_of(far) {
            -2..=5 => 0,
            far => far.div_euclid(3) * 3,
        };
        let mut ticks = Vec::new();
        for n in first..=last {
            ticks.push(Tick {
                at: float(n * step, exponent),
                label: decimal(&decimal_text(n * step, exponent - of_labels)),
            });
        }
        let (from, to) = (float(first * step, exponent), float(last * step, exponent));
        Scale {
            ticks,
            exponent: of_labels,
            from,
            to,
        }
    }

    /// Where a value lies: 0 at the first tick, 1 at the last, and beyond them outside. A value that is not finite has
    /// no place.
    pub(super) fn fraction(&self, v: f64) -> Option<f64> {
        let drawn = v.clamp(-GREATEST, GREATEST);
        v.is_finite()
            .then(|| ((drawn - self.from) / (self.to - self.from)).clamp(-1e6, 1e6))
    }

    /// The value of the axis that is nearest to 0.
    pub(super) fn base(&self) -> f64 {
        0.0_f64.clamp(self.from, self.to)
    }

    /// The axis's label with the power of ten of its ticks and its unit.
    pub(super) fn label(&self, axis: &Axis) -> String {
        let unit = axis.unit.as_deref().filter(|unit| !unit.is_empty());
        let unit = match (self.exponent, unit) {
            (0, None) => return axis.label.clone(),
            (0, Some(unit)) => unit.to_owned(),
            (exponent, None) => power(exponent),
            (exponent, Some(unit)) => format!("{} {unit}", power(exponent)),
        };
        if axis.label.is_empty() {
            format!("({unit})")
        } else {
            format!("{} ({unit})", axis.label)
        }
    }
}

/// A range that can be divided into steps.
fn drawable(ends: (f64, f64)) -> (f64, f64) {
    let (from, to) = (bounded(ends.0), bounded(ends.1));
    match from.abs().max(to.abs()) {
        far if to - from > far * NARROWEST => (from, to),
        far if far > 0.0 => (from.min(0.0), to.max(0.0)),
        _ => (0.0, 1.0),
    }
}

fn bounded(v: f64) -> f64 {
    if v.abs() < SMALLEST {
        0.0
    } else {
        v.clamp(-GREATEST, GREATEST)
    }
}

/// The power of ten of a number's first digit.
fn exponent_of(v: f64) -> i32 {
    format!("{v:e}")
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or(0)
}

/// The float nearest to `n` times ten to the power of `exponent`.
fn float(n: i64, exponent: i32) -> f64 {
    format!("{n}e{exponent}").parse().unwrap_or(0.0)
}

/// `n` times ten to the power of `exponent` as decimal text.
fn decimal_text(n: i64, exponent: i32) -> String {
    let sign = if n < 0 { "-" } else { "" };
    let digits = n.unsigned_abs().to_string();
    match usize::try_from(exponent) {
        Ok(zeros) if n != 0 => format!("{sign}{digits}{}", "0".repeat(zeros)),
        Ok(_) => digits,
        Err(_) => {
            let decimals = exponent.unsigned_abs() as usize;
            let digits = format!("{digits:0>width$}", width = decimals + 1);
            let (whole, decimals) = digits.split_at(digits.len() - decimals);
            format!("{sign}{whole}.{decimals}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(from: f64, to: f64, most: usize) -> (String, i32) {
        let scale = Scale::of((from, to), most);
        (
            scale
                .ticks
                .iter()
                .map(|tick| tick.label.as_str())
                .collect::<Vec<_>>()
                .join(" "),
            scale.exponent,
        )
    }

    #[test]
    fn ticks_are_nice() {
        let check = |from, to, expected: &str, exponent| {
            assert_eq!(
                labels(from, to, 6),
                (expected.to_owned(), exponent),
                "{from} to {to}"
            )
        };
        check(0.0, 1.0, "0 0.2 0.4 0.6 0.8 1", 0);
        check(0.0, 0.3, "0 0.1 0.2 0.3", 0);
        check(0.1, 0.3, "0.1 0.15 0.2 0.25 0.3", 0);
        check(-1.0, 1.0, "−1 −0.5 0 0.5 1", 0);
        check(0.0, 10.1, "0 2.5 5 7.5 10 12.5", 0);
        check(0.0, 12_345.0, "0 2,500 5,000 7,500 10,000 12,500", 0);
        check(0.0, 3.2e9, "0 1 2 3 4", 9);
        check(0.0, 3.2e-5, "0 10 20 30 40", -6);
        check(0.0, 0.0, "0 0.2 0.4 0.6 0.8 1", 0);
        check(7.0, 7.0, "0 2 4 6 8", 0);
        check(-7.0, -7.0, "−8 −6 −4 −2 0", 0);
        check(1e9, 1e9 + 1.0, "0 0.2 0.4 0.6 0.8 1", 9);
        check(f64::MIN, f64::MAX, "−1 −0.5 0 0.5 1", 300);
        check(0.0, f64::MIN_POSITIVE, "0 0.2 0.4 0.6 0.8 1", 0);
    }

    #[test]
    fn a_given_begin_wins_over_the_data() {
        let on = |from| {
            Range::of([2.0, f64::NAN, 5.0]).on(&Axis {
                from,
                ..Axis::default()
            })
        };
        assert_eq!(on(None), (2.0, 5.0));
        assert_eq!(on(Some(0.0)), (0.0, 5.0));
        assert_eq!(on(Some(9.0)), (9.0, 9.0));
        assert_eq!(on(Some(f64::INFINITY)), (2.0, 5.0));
        assert_eq!(Range::default().on(&Axis::default()), (0.0, 1.0));
    }

    /// The least step by trying all, in whole numbers: the ends are in thousandths, the steps in 10^-9.
    fn slow(from: i128, to: i128, most: i128) -> (i128, i128) {
        let steps =
            (0..16).flat_map(|exponent| STEPS.map(|step| i128::from(step) * 10_i128.pow(exponent)));
        for step in steps {
            let (first, last) = (
                (from * 1_000_000).div_euclid(step),
                -(-to * 1_000_000).div_euclid(step),
            );
            if last - first < most {
                return (first * step, last * step);
            }
        }
        unreachable!("a great step has three ticks at most")
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ticks_are_as_by_trying_all(a in -20_000_i64..20_000, b in -20_000_i64..20_000, most in 3_usize..12,
            shift in -250_i32..250) {
            prop_assume!(a != b);
            let (from, to) = (a.min(b), a.max(b));
            let scale = Scale::of((float(from, shift), float(to, shift)), most);
            let (first, last) = slow(from.into(), to.into(), most as i128);
            let expected = [first, last].map(|end| float(end as i64, shift - 6));
            prop_assert_eq!([scale.from, scale.to], expected);
            for (tick, n) in scale.ticks.iter().zip(0..) {
                let even = first + (last - first) * n / (scale.ticks.len() as i128 - 1);
                prop_assert_eq!(tick.at, float(even as i64, shift - 6));
                let text = tick.label.replace(',', "").replace('−', "-");
                prop_assert_eq!(format!("{text}e{}", scale.exponent).parse::<f64>().unwrap(), tick.at);
                prop_assert!(tick.label.len() <= 12, "{}", tick.label);
            }
        }

        #[test]
        fn any_range_has_ticks(a in any::<f64>(), b in any::<f64>(), v in any::<f64>(), most in 0_usize..12) {
            let ends = Range::of([a, b]).on(&Axis { from: Some(a), ..Axis::default() });
            let scale = Scale::of(ends, most);
            prop_assert!((2..=most.max(3)).contains(&scale.ticks.len()));
            prop_assert!(scale.ticks.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].label != pair[1].label));
            prop_assert_eq!(scale.fraction(v).is_some(), v.is_finite());
            prop_assert!(scale.fraction(v).is_none_or(f64::is_finite));
            prop_assert_eq!(scale.fraction(scale.to), Some(1.0));
        }
    }
}
