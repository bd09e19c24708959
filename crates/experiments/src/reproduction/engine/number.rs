//! Numbers as people read them, and as files hold them.

use crate::statistics::MeanEstimate;

/// A number with so many decimals, and no minus before a zero.
pub(crate) fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    if is_zero(&text) {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

fn is_zero(text: &str) -> bool {
    text.parse() == Ok(0.0)
}

/// A mean and half of its interval, as in `+4.2 ±0.3`.
pub(crate) fn shown(estimate: &MeanEstimate, decimals: usize, signed: bool) -> String {
    let mut text = plain(estimate.mean, decimals);
    if signed && estimate.mean > 0.0 && !is_zero(&text) {
        text.insert(0, '+');
    }
    if let Some(half) = estimate.half_width {
        let half = plain(half, decimals);
        text.push_str(" ±");
        text.push_str(&half);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_one_sign() {
        assert_eq!(plain(-0.04, 1), "0.0");
        assert_eq!(plain(-0.06, 1), "-0.1");
        let of = |mean, half_width| MeanEstimate { mean, half_width };
        assert_eq!(shown(&of(4.25, Some(0.04)), 1, true), "+4.2 ±0.0");
        assert_eq!(shown(&of(0.01, None), 1, true), "0.0");
        assert_eq!(shown(&of(-1.0, None), 0, true), "-1");
    }
}
