//! Common part of the models' tests: a fixed configuration, and demands of every size.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A configuration with this number of cases, the same in every run.
pub(super) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(20_160_101),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

/// Demands whose odds `b / (1 - b)` are spread evenly over their logarithm, from `2^-low` to `2^high`.
pub(super) fn demand(low: i32, high: i32) -> impl Strategy<Value = f64> {
    (-low..high, 1.0..2.0).prop_map(|(exponent, mantissa)| {
        let odds = mantissa * f64::from(exponent).exp2();
        odds / (1.0 + odds)
    })
}
