//! How far the model is trusted.

use super::*;

/// A forecast after intervals in which the counted cycles and the model's follow these functions of two random numbers
/// from -1 to 1; logarithms.
fn forecast(
    counted: fn(f64, [f64; 2]) -> f64,
    modelled: fn(f64, [f64; 2]) -> f64,
) -> (ModelTrust, Contention) {
    let mut rng = Rng::new(4);
    let (mut forecast, mut shared) = (ModelTrust::default(), Contention::default());
    let mut last: Option<LastInterval> = None;
    for _ in 0..2_000 {
        let random = [0, 1].map(|_| between(&mut rng, -1.0, 1.0));
        let now = counted(last.map_or(0.0, |last| last.counted), random);
        let look = LastInterval {
            counted: now,
            modelled: modelled(now, random),
            phase: 0,
            core_type: 0,
        };
        if let Some(last) = last.replace(look) {
            forecast.learn(&mut shared, &last, &look);
        }
    }
    (forecast, shared)
}

#[test]
fn a_model_is_trusted_as_far_as_it_tells_the_next_interval() {
    // The counted cycles are a random walk, and the model says something else.
    let (useless, shared) = forecast(
        |last, [step, _]| last + 0.1 * step,
        |_, [_, other]| 0.1 * other,
    );
    let errors = useless.errors().unwrap();
    let (error, of_last) = (errors.median, errors.median_as_last);
    assert!(shared.trust < 0.2, "{}; 0 was found", shared.trust);
    assert!(
        error <= 1.05 * of_last,
        "{error} {of_last}; 0.0515 and 0.0505 were found"
    );
    // The model knows all of it.
    let (_, shared) = forecast(|_, [level, _]| 0.2 * level, |counted, _| counted);
    assert!(shared.trust > 0.9, "{}; 1 was found", shared.trust);
}
