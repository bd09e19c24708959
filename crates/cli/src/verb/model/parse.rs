//! Reads the values of flags.

use cosched_core::model::cross_core::{CoreType, Regression};
use cosched_core::model::power::PowerPoint;

fn number(text: &str, allowed: &str, in_range: impl Fn(f64) -> bool) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(value) if in_range(value) => Ok(value),
        _ => Err(format!("expected {allowed}")),
    }
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    number(text, "a number from 0 to 1", |value| {
        (0.0..=1.0).contains(&value)
    })
}

pub(super) fn non_negative(text: &str) -> Result<f64, String> {
    number(text, "a number of at least 0", |value| {
        value >= 0.0 && value.is_finite()
    })
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    number(text, "a number above 0", |value| {
        value > 0.0 && value.is_finite()
    })
}

pub(super) fn point(text: &str) -> Result<PowerPoint, String> {
    let expected =
        "expected a number of active cores, a colon and watts of at least 0, as in 2:61.2";
    let (active, watts) = text.split_once(':').ok_or(expected)?;
    let active = active
        .trim()
        .parse()
        .ok()
        .filter(|&active| active <= MOST_CORES)
        .ok_or(expected)?;
    Ok(PowerPoint {
        active,
        watts: non_negative(watts).map_err(|_| expected)?,
    })
}

/// The fitted model has an entry for each core: a mistyped number must not ask for billions of them.
const MOST_CORES: usize = 65_536;

fn three(text: &str, expected: &str) -> Result<[f64; 3], String> {
    let values: Option<Vec<f64>> = text
        .split(',')
        .map(|part| {
            part.trim()
                .parse()
                .ok()
                .filter(|value: &f64| value.is_finite())
        })
        .collect();
    values
        .and_then(|values| values.try_into().ok())
        .ok_or_else(|| format!("expected {expected}"))
}

pub(super) fn coefficients(text: &str) -> Result<Regression, String> {
    let [alpha, beta, gamma] = three(
        text,
        "three numbers: alpha, beta and gamma, as in 3.9,-90,100",
    )?;
    Ok(Regression { alpha, beta, gamma })
}

pub(super) fn core_type(text: &str) -> Result<CoreType, String> {
    let expected = "capacity in MIPS, busy power and idle power in watts, as in 1000,2.15,0.7";
    let [capacity, busy, idle] = three(text, expected)?;
    CoreType::new(capacity, busy, idle).map_err(|error| error.to_string())
}
