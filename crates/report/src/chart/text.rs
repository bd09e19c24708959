//! Texts that fit, and values as text.
//!
//! The font is the reader's, so widths are estimates, on the side of wide fonts.

use crate::text::visible;

/// Font size of all but the title.
pub(super) const TEXT: f64 = 14.0;
/// Font size of the title.
pub(super) const TITLE: f64 = 17.0;

/// Return a value with four significant digits.
pub(super) fn value(v: f64) -> String {
    let rounded: f64 = format!("{v:.3e}").parse().unwrap_or(v);
    plain_or_power(rounded)
}

/// Return all digits of a number, with a power of ten if there were too many zeros.
pub(super) fn plain_or_power(v: f64) -> String {
    match v.abs() {
        0.0 => "0".to_owned(),
        size if (1e-4..1e7).contains(&size) => v.to_string(),
        _ => format!("{v:e}"),
    }
}

/// Return a title of a mark: the names that are not empty, and what it shows.
pub(super) fn mark_title(names: [&str; 2], shown: &str) -> String {
    match names {
        ["", ""] => shown.to_owned(),
        ["", name] | [name, ""] => format!("{name}: {shown}"),
        [series, place] => format!("{series}, {place}: {shown}"),
    }
}

/// Return the estimated width of a text, in the unit of the font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let ems: f64 = text.chars().map(em).sum();
    ems * size
}

/// Return the text cut to a width, with an ellipsis if something is missing.
pub(super) fn cut(text: &str, most: f64, size: f64) -> String {
    let text = visible(text.trim());
    if width(&text, size) <= most {
        return text;
    }
    let mut used = em('…') * size;
    let mut out = String::new();
    for c in text.chars() {
        used += em(c) * size;
        if used > most {
            break;
        }
        out.push(c);
    }
    format!("{}…", out.trim_end())
}

/// Return the text in lines of at most that width, broken at spaces. A longer text is cut.
pub(super) fn lines(text: &str, most: f64, size: f64, most_lines: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let may_break = lines.len() < most_lines;
        match lines.last_mut() {
            Some(line) if !may_break || width(&format!("{line} {word}"), size) <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.iter().map(|line| cut(line, most, size)).collect()
}

/// Return the width of a character by the font size: that of DejaVu Sans, which is wide, rounded up.
fn em(c: char) -> f64 {
    match c {
        c if "fijlrtI .,:()-/".contains(c) => 0.46,
        c if "mwMW@%…".contains(c) => 1.0,
        'a'..='z' | '0'..='9' => 0.64,
        c if c.is_ascii() => 0.84,
        '\u{1100}'.. => 1.4,
        _ => 0.9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        assert_eq!(cut("short", 100.0, 10.0), "short");
        assert_eq!(cut("a longer text", 50.0, 10.0), "a long…");
        assert_eq!(cut("wide", 1.0, 10.0), "…");
        assert_eq!(lines("one two  three", 50.0, 10.0, 9), ["one two", "three"]);
        assert_eq!(
            lines("one two three four", 50.0, 10.0, 2),
            ["one two", "three f…"]
        );
        assert_eq!(lines(" \n ", 50.0, 10.0, 2), Vec::<String>::new());
        assert!(width("WWW", 10.0) > width("iii", 10.0) && width("漢字", 10.0) > width("ab", 10.0));
    }

    #[test]
    fn values_are_short() {
        let check = |v: f64, expected: &str| assert_eq!(value(v), expected, "{v}");
        check(0.0, "0");
        check(-0.0, "0");
        check(0.1 + 0.2, "0.3");
        check(1.0 / 3.0, "0.3333");
        check(-2.5, "-2.5");
        check(999.96, "1000");
        check(1.2345e12, "1.234e12");
        check(-4.2e-5, "-4.2e-5");
    }
}
