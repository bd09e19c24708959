//! Exponential decay by basic arithmetic, so that it is the same on every machine.

/// e^-x for x >= 0, to about 1e-10.
pub(crate) fn decay(x: f64) -> f64 {
    if x <= 0.0 {
        return 1.0;
    }
    if x > 60.0 {
        return 0.0;
    }
    // e^-x = (e^-(x / 2^k))^(2^k), with x / 2^k small enough for a short series of e^+.
    let mut halvings = 0;
    let mut small = x;
    while small > 0.0625 {
        small *= 0.5;
        halvings += 1;
    }
    let series = 1.0
        + small
            * (1.0
                + small / 2.0
                    * (1.0
                        + small / 3.0
                            * (1.0
                                + small / 4.0
                                    * (1.0
                                        + small / 5.0
                                            * (1.0 + small / 6.0 * (1.0 + small / 7.0))))));
    let mut result = 1.0 / series;
    for _ in 0..halvings {
        result *= result;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_library() {
        let mut x = 0.0;
        while x < 60.0 {
            let (ours, theirs) = (decay(x), f64::exp(-x));
            assert!(
                (ours - theirs).abs() <= 1e-9 * theirs,
                "{x}: {ours} {theirs}"
            );
            x += 0.0137;
        }
        assert_eq!(decay(-1.0), 1.0);
        assert_eq!(decay(1e9), 0.0);
    }
}
