//! Patterns in which `*` stands for any text.

/// A pattern; `*` stands for any text, also none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    parts: Vec<String>,
}

impl Pattern {
    /// A pattern for a whole text.
    pub(super) fn whole(text: &str) -> Pattern {
        Pattern {
            parts: text.split('*').map(str::to_owned).collect(),
        }
    }

    /// A pattern for any part of a text.
    pub(super) fn within(text: &str) -> Pattern {
        Pattern::whole(&format!("*{text}*"))
    }

    /// Whether the whole text fits.
    pub(super) fn fits(&self, text: &str) -> bool {
        let [first, middle @ .., last] = &self.parts[..] else {
            return self.parts.iter().all(|part| part == text);
        };
        let Some(mut rest) = text.strip_prefix(first.as_str()) else {
            return false;
        };
        for part in middle {
            let Some(at) = rest.find(part.as_str()) else {
                return false;
            };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, fits) in [
            ("a.service", "a.service", true),
            ("a.service", "aa.service", false),
            ("a*.service", "a.service", true),
            ("a*.service", "a@1.service", true),
            ("a*.service", "ba.service", false),
            ("*a*b*", "xaybz", true),
            ("*a*b*", "xbya", false),
            ("ab*ba", "aba", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(Pattern::whole(pattern).fits(text), fits, "{pattern} {text}");
        }
        assert!(Pattern::within("train").fits("python3 train.py"));
        assert!(Pattern::within("python*train").fits("/bin/python3 train.py"));
    }
}
