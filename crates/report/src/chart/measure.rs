//! How wide texts are, and texts that fit.
//!
//! The font is the reader's, so widths are estimates, on the side of wide fonts.

use super::xml::clean;

/// The estimated width of a text, in the unit of the font size.
pub(super) fn width(text: &str, size: f64) -> f64 {
    clean(text).chars().map(em).sum::<f64>() * size
}

/// The text cut to a width, with an ellipsis if something is missing.
pub(super) fn cut(text: &str, most: f64, size: f64) -> String {
    let text = clean(text);
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

/// The text in lines of at most that width, broken at spaces. What does not fit is cut with an ellipsis.
pub(super) fn lines(text: &str, most: f64, size: f64, most_lines: usize) -> Vec<String> {
    let text = clean(text);
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if lines_up(line, word, most, size) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.len() > most_lines {
        let rest = lines
            .drain(most_lines.saturating_sub(1)..)
            .collect::<Vec<_>>()
            .join(" ");
        lines.push(rest);
    }
    lines.iter().map(|line| cut(line, most, size)).collect()
}

/// Whether a word can follow in the line.
fn lines_up(line: &str, word: &str, most: f64, size: f64) -> bool {
    width(line, size) + (em(' ') * size) + width(word, size) <= most
}

/// The width of a character by the font size: that of DejaVu Sans, which is wide, rounded up.
fn em(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | '.' | ',' | ':' | ';' | '\'' | '!' | '|' | ' ' => 0.36,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' | '"' => 0.46,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => 1.0,
        'A'..='Z' | '&' => 0.76,
        '+' | '=' | '<' | '>' | '~' | '#' | '^' | '−' | '×' => 0.84,
        c if c.is_ascii() => 0.64,
        '⁰'..='⁻' | '¹' | '²' | '³' => 0.46,
        '\u{1f000}'.. => 1.4,
        '\u{1100}'.. => 1.05,
        _ => 0.9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_fit() {
        assert_eq!(cut("short", 100.0, 10.0), "short");
        assert_eq!(cut("a longer text", 50.0, 10.0), "a longe…");
        assert_eq!(cut("wide", 1.0, 10.0), "…");
        assert_eq!(lines("one two  three", 50.0, 10.0, 9), ["one two", "three"]);
        assert_eq!(
            lines("one two three four", 50.0, 10.0, 2),
            ["one two", "three f…"]
        );
        assert_eq!(lines(" \u{7} ", 50.0, 10.0, 2), Vec::<String>::new());
        assert!(width("WWW", 10.0) > width("iii", 10.0) && width("漢字", 10.0) > width("ab", 10.0));
    }
}
