//! Small texts for people: counts, times, names that fit.

/// "1 job", "2 jobs", "1,000 jobs".
pub fn count(n: u64, one: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{} {one}{plural}", grouped(n))
}

/// A whole number with commas between thousands.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (ix, digit) in digits.chars().enumerate() {
        if ix > 0 && (digits.len() - ix).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number from here on is shown with its power of ten.
const MOST_SIZE: f64 = 1e15;

/// A number with this many decimals; a huge one with its power of ten.
pub fn decimal(value: f64, decimals: usize) -> String {
    if value.abs() < MOST_SIZE {
        format!("{value:.decimals$}")
    } else {
        format!("{value:.2e}")
    }
}

/// A time with three or so significant digits and its unit: `0.42 ms`, `12.3 s`, `5 min 07 s`, `2 h 05 min`.
pub fn seconds(s: f64) -> String {
    match s {
        s if s < 0.000_000_5 => "0 s".to_owned(),
        s if s < 0.000_999_5 => format!("{:.0} us", s * 1e6),
        s if s < 0.009_995 => format!("{:.2} ms", s * 1e3),
        s if s < 0.999_5 => format!("{:.0} ms", s * 1e3),
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        s if s < 299.5 => format!("{s:.0} s"),
        s if s >= MOST_SIZE => format!("{s:.2e} s"),
        s => {
            let whole = (s + 0.5) as u64;
            match (whole / 3600, whole / 60 % 60, whole % 60) {
                (0, min, s) => format!("{min} min {s:02} s"),
                (h, min, _) => format!("{} h {min:02} min", grouped(h)),
            }
        }
    }
}

/// A number of bytes with three digits or so and its unit, in powers of 1,024: `512 B`, `1.50 MiB`, `23.4 GiB`.
pub fn bytes(bytes: f64) -> String {
    let mut scaled = bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if scaled < 999.5 {
            break;
        }
        scaled /= 1024.0;
        unit = larger;
    }
    let decimals = match scaled {
        _ if unit == "B" => 0,
        scaled if scaled < 9.995 => 2,
        scaled if scaled < 99.95 => 1,
        _ => 0,
    };
    format!("{} {unit}", decimal(scaled, decimals))
}

/// A time as on a clock, `7:05` or `1:02:03`.
pub fn clock(s: f64) -> String {
    let s = s as u64;
    match s / 3600 {
        0 => format!("{}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// Whether a character controls a terminal or hides text. Line ends and tabs do neither.
pub fn is_hidden(c: char) -> bool {
    (c.is_control() || is_direction(c)) && c != '\n' && c != '\t'
}

/// The text with its control characters made visible, as in `\x1b`: an escape sequence in a name must not control the
/// terminal, and a change of the writing direction must not hide text.
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => shown.push_str("\\n"),
            '\t' => shown.push_str("\\t"),
            '\r' => shown.push_str("\\r"),
            c if c.is_ascii_control() => shown += &format!("\\x{:02x}", c as u32),
            c if is_hidden(c) => shown += &format!("\\u{{{:x}}}", c as u32),
            c => shown.push(c),
        }
    }
    shown
}

/// Bytes as text: as [`visible`], and bytes that are no UTF-8 as in `\xff`.
pub fn visible_bytes(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        shown += &visible(chunk.valid());
        for byte in chunk.invalid() {
            shown += &format!("\\x{byte:02x}");
        }
    }
    shown
}

/// JSON in which characters that control a terminal or hide text are escaped. It stays the same JSON.
pub fn visible_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // All of them are below U+10000.
        if is_hidden(c) {
            shown += &format!("\\u{:04x}", c as u32);
        } else {
            shown.push(c);
        }
    }
    shown
}

/// Text of several lines: as [`visible`], but its line ends and tabs stay.
pub fn visible_lines(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            shown += &visible(&c.to_string());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The text, [`visible`], for tags and attributes of HTML and XML.
pub fn escaped(text: &str) -> String {
    escape(&visible(text))
}

/// Several lines of text, as [`visible_lines`], for tags of HTML and XML.
pub fn escaped_lines(text: &str) -> String {
    escape(&visible_lines(text))
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Whether the character changes the direction in which the text is shown, or hides itself.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// The text in at most `width` characters; if it was cut off, the last one is an ellipsis.
pub fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    if width == 0 {
        return String::new();
    }
    let begin: String = text.chars().take(width - 1).collect();
    begin + "…"
}

/// The text in at most `width` characters; if it was too long, an ellipsis stands for its middle.
pub(crate) fn clip_middle(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let tail: String = text.chars().skip(length - width / 2).collect();
    clip(text, width - width / 2) + &tail
}

/// Breaks a text at its spaces into lines of at most `width` characters; a longer word stays whole, and so does a text
/// with non-breaking spaces.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_ascii_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
        .iter()
        .map(|line| line.replace('\u{a0}', " "))
        .collect()
}

/// A text that [`wrap`] does not break.
pub(crate) fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_figures_stay_short() {
        assert_eq!(
            (decimal(1.2345, 2), decimal(123_456_789.0, 1)),
            ("1.23".to_owned(), "123456789.0".to_owned())
        );
        assert_eq!(
            (decimal(1e300, 2), decimal(-2e15, 0)),
            ("1.00e300".to_owned(), "-2.00e15".to_owned())
        );
        assert_eq!(
            (seconds(1e300), bytes(1e300)),
            ("1.00e300 s".to_owned(), "9.09e287 TiB".to_owned())
        );
    }

    #[test]
    fn json_stays_the_same_json_without_characters_that_control() {
        let name = "a\u{1b}[2J\u{9b}31m\u{202e}\u{2028}é\n";
        let json = visible_json(&serde_json::to_string(name).unwrap());
        assert!(!json.chars().any(is_hidden), "{json:?}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name);
    }

    #[test]
    fn texts() {
        assert_eq!(
            (count(1, "job").as_str(), count(1_234_567, "job").as_str()),
            ("1 job", "1,234,567 jobs")
        );
        let check = |s: f64, expected: &str| assert_eq!(seconds(s), expected, "{s}");
        check(0.0, "0 s");
        check(3e-6, "3 us");
        check(0.000_999_9, "1.00 ms");
        check(0.25, "250 ms");
        check(1.0, "1.00 s");
        check(12.34, "12.3 s");
        check(120.4, "120 s");
        check(307.2, "5 min 07 s");
        check(7_500.0, "2 h 05 min");
        let mib = 1_048_576.0;
        let sizes = [0.0, 999.4, 1_536.0, 23.44 * mib, 1023.9 * mib, 5e9 * mib].map(bytes);
        assert_eq!(
            sizes,
            [
                "0 B", "999 B", "1.50 KiB", "23.4 MiB", "1.00 GiB", "4768 TiB"
            ]
        );
        assert_eq!(
            (clock(425.9).as_str(), clock(3_723.0).as_str()),
            ("7:05", "1:02:03")
        );
        assert_eq!(
            visible("a\u{1b}[31mb\n\u{9b}2J\u{202e}ü"),
            r"a\x1b[31mb\n\u{9b}2J\u{202e}ü"
        );
        assert_eq!(visible_bytes(b"a\xff\x07\xc3\xbc"), "a\\xff\\x07ü");
        assert_eq!(visible_lines("a\n\tb\u{1b}c\r"), "a\n\tb\\x1bc\\r");
        assert_eq!(
            (
                clip("abcdef", 4).as_str(),
                clip("abcd", 4).as_str(),
                clip("ab", 0).as_str()
            ),
            ("abc…", "abcd", "")
        );
        assert_eq!(
            ["abcdef#1", "ab#2", ""].map(|name| clip_middle(name, 5)),
            ["ab…#1", "ab#2", ""]
        );
        assert_eq!(wrap("one two  three", 7), ["one two", "three"]);
        assert_eq!(
            wrap(&format!("one {} three", unbroken("2 us")), 7),
            ["one", "2 us", "three"]
        );
    }
}
