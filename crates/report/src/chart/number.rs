//! Numbers as text: coordinates and values.

use crate::text::grouped;

/// A coordinate with at most two decimals.
pub(super) fn px(v: f64) -> String {
    let v = if v.is_finite() {
        v.clamp(-1e6, 1e6)
    } else {
        0.0
    };
    let text = format!("{v:.2}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// A value with four significant digits, or all digits before the point: `0.1235`, `12,345`, `1.235×10¹²`.
pub(super) fn value(v: f64) -> String {
    if !v.is_finite() {
        return "no value".to_owned();
    }
    // Rounded first: 999.96 has the exponent of 1000.
    let text = format!("{v:.3e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    match exponent.parse::<i32>().unwrap_or(0) {
        exponent @ -3..=8 => decimal(&format!("{v:.*}", (3 - exponent).max(0) as usize)),
        exponent => format!("{}×{}", decimal(digits), power(exponent)),
    }
}

/// A value with its unit.
pub(super) fn with_unit(v: f64, unit: Option<&str>) -> String {
    let value = value(v);
    match unit.filter(|unit| !unit.is_empty()) {
        Some(unit) => format!("{value} {unit}"),
        None => value,
    }
}

/// Decimal text with commas between thousands, a true minus, and no zeros at the end of decimals.
pub(super) fn decimal(text: &str) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ("−", text),
        None => ("", text),
    };
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let decimals = decimals.trim_end_matches('0');
    let whole = whole
        .parse::<u64>()
        .map_or_else(|_| whole.to_owned(), grouped);
    match (whole.as_str(), decimals) {
        ("0", "") => "0".to_owned(),
        (whole, "") => format!("{sign}{whole}"),
        (whole, decimals) => format!("{sign}{whole}.{decimals}"),
    }
}

/// A power of ten, `10⁻³`.
pub(super) fn power(exponent: i32) -> String {
    let raised = |c: char| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        c => c
            .to_digit(10)
            .and_then(|digit| char::from_u32(0x2070 + digit))
            .unwrap_or(c),
    };
    format!(
        "10{}",
        exponent.to_string().chars().map(raised).collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short() {
        let shown = [
            0.0,
            -0.001,
            1.5,
            2.0,
            100.0,
            1.0 / 3.0,
            f64::NAN,
            f64::INFINITY,
            -1e300,
        ]
        .map(px);
        assert_eq!(
            shown,
            ["0", "0", "1.5", "2", "100", "0.33", "0", "0", "-1000000"]
        );
    }

    #[test]
    fn values_are_short() {
        let check = |v: f64, expected: &str| assert_eq!(value(v), expected, "{v}");
        check(0.0, "0");
        check(-0.0, "0");
        check(0.1 + 0.2, "0.3");
        check(1.0 / 3.0, "0.3333");
        check(-2.5, "−2.5");
        check(999.96, "1,000");
        check(12_345.6, "12,346");
        check(123_456_789.0, "123,456,789");
        check(1.2345e12, "1.234×10¹²");
        check(0.001, "0.001");
        check(-4.2e-5, "−4.2×10⁻⁵");
        check(f64::MAX, "1.798×10³⁰⁸");
        check(f64::NAN, "no value");
        assert_eq!(with_unit(1.5, Some("s")), "1.5 s");
        assert_eq!(power(-1_234_567_890), "10⁻¹²³⁴⁵⁶⁷⁸⁹⁰");
    }
}
