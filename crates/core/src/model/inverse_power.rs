//! The power of a share, by basic arithmetic. The choice of sets calls it millions of times, and spent a sixth of its
//! time in the library's functions, which are correct to the last digit.

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// Greatest exponent of two of a result.
const GREATEST: f64 = 1_000.0;

/// `x^-by` for `x` in [1e-300, 1], with a relative error below 1e-12; exactly 1 for `x = 1`. The same on every machine.
///
/// With `x = m 2^e` and m between √½ and √2, ln m is twice the inverse hyperbolic tangent of z = (m - 1) / (m + 1), and
/// 2^t is an integer power of two times e^y with y between ±½ ln 2. Both are computed by their series.
pub(crate) fn inverse_power(x: f64, by: f64) -> f64 {
    const FRACTION: u64 = (1 << 52) - 1;
    let bits = x.to_bits();
    let (mut e, mut m) = (
        (bits >> 52) as f64 - 1_023.0,
        f64::from_bits(bits & FRACTION | 1.0f64.to_bits()),
    );
    if m > SQRT_2 {
        (e, m) = (e + 1.0, 0.5 * m);
    }
    let z = (m - 1.0) / (m + 1.0);
    let s = z * z;
    const ODD: [f64; 7] = [
        1.0 / 3.0,
        1.0 / 5.0,
        1.0 / 7.0,
        1.0 / 9.0,
        1.0 / 11.0,
        1.0 / 13.0,
        1.0 / 15.0,
    ];
    let [c3, c5, c7, c9, c11, c13, c15] = ODD;
    let s2 = s * s;
    let tangent =
        1.0 + s * ((c3 + s * c5) + s2 * ((c7 + s * c9) + s2 * ((c11 + s * c13) + s2 * c15)));
    let log2 = e + (2.0 * LOG2_E) * z * tangent;
    let t = (-by * log2).clamp(-GREATEST, GREATEST);
    let whole = (t + (GREATEST + 0.5)) as i64 - GREATEST as i64;
    let y = (t - whole as f64) * LN_2;
    let y2 = y * y;
    let even = 1.0
        + y2 * (1.0 / 2.0
            + y2 * (1.0 / 24.0
                + y2 * (1.0 / 720.0 + y2 * (1.0 / 40_320.0 + y2 * (1.0 / 3_628_800.0)))));
    let odd = 1.0
        + y2 * (1.0 / 6.0
            + y2 * (1.0 / 120.0
                + y2 * (1.0 / 5_040.0 + y2 * (1.0 / 362_880.0 + y2 * (1.0 / 39_916_800.0)))));
    (even + y * odd) * f64::from_bits(((1_023 + whole) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn agrees_with_the_library() {
        let mut rng = Rng::new(1);
        let mut draw = || rng.below(1 << 32) as f64 / 4_294_967_296.0;
        for _ in 0..200_000 {
            let (x, by) = (libm::exp(-7.0 * draw()), 4.0 * draw() - 1.0);
            let (ours, theirs) = (inverse_power(x, by), libm::exp(-by * libm::log(x)));
            assert!(
                (ours / theirs - 1.0).abs() < 1e-12,
                "{x} {by}: {ours} {theirs}"
            );
        }
    }

    #[test]
    fn the_whole_costs_nothing_and_the_ends_are_finite() {
        for by in [0.0, 0.3, 1.0, 7.5, -2.0] {
            assert_eq!(inverse_power(1.0, by), 1.0);
        }
        for x in [0.002, 0.3, 0.999] {
            assert_eq!(inverse_power(x, 0.0), 1.0);
        }
        assert_eq!(inverse_power(0.25, 1.0), 4.0);
        assert!((inverse_power(0.25, 0.5) - 2.0).abs() < 1e-12);
        assert!(inverse_power(1e-300, 1e9).is_finite() && inverse_power(1e-300, -1e9) > 0.0);
    }
}
