//! The words of the document. They stand in text files, in which `{name}` is replaced by a value.

use std::collections::BTreeMap;

/// Values by the names of their places in a text.
pub(crate) type Values = BTreeMap<&'static str, String>;

/// The text on one line, with its values.
pub(crate) fn fill(text: &str, values: &Values) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut filled = words.join(" ");
    for (name, value) in values {
        filled = filled.replace(&format!("{{{name}}}"), value);
    }
    filled
}

/// The words of a table or figure.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Words {
    /// The heading above it.
    heading: Option<String>,
    /// The paragraph above it.
    text: Option<String>,
    /// What it shows, in a sentence.
    pub(crate) caption: String,
    /// The heads of a table's columns, with units.
    pub(crate) columns: Vec<String>,
    /// The label of a figure's horizontal axis.
    pub(crate) x: String,
    /// The label of a figure's vertical axis, with its unit.
    pub(crate) y: String,
    /// Decimals of a figure's numbers.
    pub(crate) decimals: usize,
}

impl Words {
    /// The heading, with a capital letter.
    pub(crate) fn heading(&self, values: &Values) -> Option<String> {
        let mut heading = fill(self.heading.as_ref()?, values);
        heading[..1].make_ascii_uppercase();
        Some(heading)
    }

    /// The paragraph.
    pub(crate) fn text(&self, values: &Values) -> Option<String> {
        let text = self.text.as_ref()?;
        Some(fill(text, values))
    }
}
