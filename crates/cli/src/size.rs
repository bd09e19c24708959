//! Sizes and counts as people type them: `8M` of memory is 8 x 1,024 x 1,024 bytes, `8M` of loads is 8,000,000 loads.
//!
//! The two differ because caches and pages come in powers of two while amounts of work do not. `8MiB` says the same as
//! `8M` for a size; `8MB` is refused, since some read it as 8,000,000 and others as 8,388,608.

use std::ops::RangeInclusive;

const BINARY: &[(&str, u64)] = &[
    ("", 1),
    ("B", 1),
    ("K", 1 << 10),
    ("M", 1 << 20),
    ("G", 1 << 30),
    ("T", 1 << 40),
];
const DECIMAL: &[(&str, u64)] = &[
    ("", 1),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Bytes from a text such as `4096`, `64K`, `1.5G` or `8MiB`. A fraction of a byte is dropped.
///
/// # Errors
/// What is expected, worded to follow "invalid value '...': ".
pub fn parse_size(text: &str) -> Result<u64, String> {
    let short = text
        .strip_suffix("iB")
        .filter(|rest| rest.ends_with(|c: char| c.is_ascii_alphabetic()));
    parse_scaled(short.unwrap_or(text), BINARY).ok_or_else(|| {
        "expected a size such as 4096, 64K, 8M or 1.5G (K, M, G and T are powers of 1024)".into()
    })
}

/// A count from a text such as `150000000`, `150M` or `1.5G`. A fraction of one is dropped.
///
/// # Errors
/// What is expected, worded to follow "invalid value '...': ".
pub fn parse_count(text: &str) -> Result<u64, String> {
    parse_scaled(text, DECIMAL).ok_or_else(|| {
        "expected a count such as 2000, 64K, 8M or 1.5G (K, M, G and T are powers of 1000)".into()
    })
}

/// A parser of sizes for the command line that also checks the range, both ends included.
pub fn size_within(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| within(&range, parse_size(text)?, format_size)
}

/// A parser of counts for the command line that also checks the range, both ends included.
pub fn count_within(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone {
    move |text| within(&range, parse_count(text)?, format_count)
}

fn within(
    range: &RangeInclusive<u64>,
    value: u64,
    format: fn(u64) -> String,
) -> Result<u64, String> {
    if range.contains(&value) {
        return Ok(value);
    }
    let least = format(*range.start());
    let most = format(*range.end());
    Err(format!("must be from {least} to {most}"))
}

/// The size in the largest unit that gives at least 1, with at most two decimals, in a form that [`parse_size`] reads:
/// `64B`, `8M`, `1.5G`. Rounded down, so that a limit printed this way is accepted when typed.
pub fn format_size(bytes: u64) -> String {
    let mut units = BINARY.iter().rev();
    let found = units.find(|(_, unit)| bytes >= *unit);
    let (suffix, unit) = found.unwrap_or(&BINARY[0]);
    let hundredths = u128::from(bytes) * 100 / u128::from(*unit);
    let text = format!("{}.{:02}", hundredths / 100, hundredths % 100);
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text}{suffix}")
}

/// The count in a form that [`parse_count`] reads, in a larger unit only if that is exact: `64`, `8M`, `1234567`.
pub fn format_count(count: u64) -> String {
    for (suffix, unit) in DECIMAL.iter().rev() {
        if count != 0 && count.is_multiple_of(*unit) {
            return format!("{}{suffix}", count / unit);
        }
    }
    count.to_string()
}

/// Uses integer arithmetic only: `1.1G` computed with floating point could be off by a byte.
fn parse_scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let letters = text.find(|c: char| c.is_ascii_alphabetic());
    let (number, suffix) = text.split_at(letters.unwrap_or(text.len()));
    let mut units = units.iter();
    let (_, unit) = units.find(|(name, _)| name.eq_ignore_ascii_case(suffix))?;
    let unit = u128::from(*unit);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if fraction.len() > 18 {
        return None;
    }
    let parts = 10u128.pow(fraction.len() as u32);
    let amount = digits(whole)? * unit + digits(fraction)? * unit / parts;
    u64::try_from(amount).ok()
}

/// A number of digits alone, without a sign.
fn digits(text: &str) -> Option<u128> {
    if text.starts_with('+') {
        return None;
    }
    text.parse::<u64>().ok().map(u128::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_and_counts_powers_of_1000() {
        for (text, size) in [
            ("0", 0),
            ("64", 64),
            ("64B", 64),
            ("4k", 4096),
            ("8M", 8 << 20),
            ("8MiB", 8 << 20),
            ("1.5G", 3 << 29),
            ("0.001K", 1),
            ("2T", 2 << 40),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
        for (text, count) in [
            ("7", 7),
            ("2K", 2000),
            ("1.25m", 1_250_000),
            ("3G", 3_000_000_000),
        ] {
            assert_eq!(parse_count(text), Ok(count), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused_with_an_example() {
        for text in [
            "",
            "M",
            "8MB",
            "iB",
            "8iB",
            "-1",
            "+1",
            "1e6",
            "1.",
            ".5K",
            "1 M",
            "0x10",
            "16777216T",
            "8Mi",
            "1.2.3",
            "∞",
        ] {
            assert!(
                parse_size(text).is_err_and(|why| why.contains("64K")),
                "{text}"
            );
        }
        assert!(parse_count("8B").is_err(), "a count has no bytes");
        assert!(parse_count("8MiB").is_err(), "a count has no binary units");
    }

    #[test]
    fn what_is_printed_can_be_typed() {
        for (bytes, text) in [
            (0, "0"),
            (64, "64B"),
            (1 << 20, "1M"),
            (3 << 29, "1.5G"),
            (1025, "1K"),
            (1126, "1.09K"),
            (1 << 50, "1024T"),
        ] {
            assert_eq!(format_size(bytes), text);
            assert!(parse_size(text).is_ok_and(|read| read <= bytes && bytes - read <= bytes / 90));
        }
        for count in [0, 1, 999, 1000, 2_500_000, 1_234_567, 1_000_000_000_000] {
            assert_eq!(parse_count(&format_count(count)), Ok(count));
        }
        assert_eq!(format_count(2_000_000), "2M");
    }

    #[test]
    fn ranges_include_both_ends_and_are_named_in_the_error() {
        let size = size_within(64..=1 << 40);
        assert_eq!(size("64"), Ok(64));
        assert_eq!(size("1T"), Ok(1 << 40));
        assert_eq!(size("63"), Err("must be from 64B to 1T".into()));
        let count = count_within(1..=1_000_000);
        assert_eq!(count("1M"), Ok(1_000_000));
        assert_eq!(count("0"), Err("must be from 1 to 1M".into()));
    }
}
