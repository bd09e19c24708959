//! Numbers as people read them, and as files hold them.

/// The number with six significant digits: beyond them lies the last digit of a sum, and nothing that anybody measured.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0 + value;
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

/// A number with so many decimals, and no minus before a zero.
pub fn plain(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        _ => text,
    }
}

/// A mean and half of its interval, as in `+4.2 ±0.3`.
pub fn shown(mean: f64, half_width: Option<f64>, decimals: usize, signed: bool) -> String {
    let mut text = plain(mean, decimals);
    if signed && !text.starts_with('-') && text.bytes().any(|byte| matches!(byte, b'1'..=b'9')) {
        text.insert(0, '+');
    }
    if let Some(half) = half_width {
        text.push_str(" ±");
        text.push_str(&plain(half, decimals));
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
        assert_eq!(shown(4.25, Some(0.04), 1, true), "+4.2 ±0.0");
        assert_eq!(shown(0.01, None, 1, true), "0.0");
        assert_eq!(shown(-1.0, None, 0, true), "-1");
        assert_eq!(rounded(0.1 + 0.2), 0.3);
        assert_eq!(rounded(1_234_567.8), 1_234_570.0);
        assert_eq!(rounded(0.0), 0.0);
    }
}
