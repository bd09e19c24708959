//! XML, written element by element.

use crate::text::is_hidden;

/// A document, or a part of one, that is well-formed once every element is closed.
#[derive(Debug, Default)]
pub(super) struct Xml {
    out: String,
    open: Vec<&'static str>,
}

impl Xml {
    /// Opens an element.
    pub(super) fn open(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push('>');
        self.open.push(name);
    }

    /// Closes the element opened last, and ends the line unless the element stands within a text.
    pub(super) fn close(&mut self) {
        if let Some(name) = self.open.pop() {
            self.out.push_str(&format!("</{name}>"));
            if name != "title" {
                self.line_end();
            }
        }
    }

    /// An element without content.
    pub(super) fn empty(&mut self, name: &'static str, attributes: &[(&str, &str)]) {
        self.tag(name, attributes);
        self.out.push_str("/>");
        self.line_end();
    }

    /// An element with nothing but a text.
    pub(super) fn with_text(
        &mut self,
        name: &'static str,
        attributes: &[(&str, &str)],
        text: &str,
    ) {
        self.open(name, attributes);
        self.text(text);
        self.close();
    }

    /// An element that tells the title when pointed at.
    pub(super) fn with_title(
        &mut self,
        name: &'static str,
        attributes: &[(&str, &str)],
        title: &str,
    ) {
        self.open(name, attributes);
        self.with_text("title", &[], title);
        self.close();
    }

    /// Text within the open element.
    pub(super) fn text(&mut self, text: &str) {
        escape(text, &mut self.out);
    }

    /// What is XML already, or needs no escaping.
    pub(super) fn append(&mut self, other: &str) {
        self.out.push_str(other);
    }

    /// A line end between elements.
    pub(super) fn line_end(&mut self) {
        self.out.push('\n');
    }

    /// What has been written.
    pub(super) fn into_text(self) -> String {
        self.out
    }

    fn tag(&mut self, name: &str, attributes: &[(&str, &str)]) {
        self.out.push('<');
        self.out.push_str(name);
        for (key, value) in attributes {
            self.out.push_str(&format!(" {key}=\""));
            escape(value, &mut self.out);
            self.out.push('"');
        }
    }
}

/// The text in one line, without the characters that XML forbids, that control something or that hide text.
pub(super) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_whitespace() { ' ' } else { c })
        .filter(|c| !is_hidden(*c) && !matches!(*c as u32 & 0xffff, 0xfffe | 0xffff))
        .collect()
}

/// Appends the cleaned text with the characters escaped that have a meaning in XML.
fn escape(text: &str, out: &mut String) {
    for c in clean(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_cleaned() {
        let mut xml = Xml::default();
        xml.open("g", &[("class", "a\"b<c")]);
        xml.with_title("rect", &[], "x < y && \"z\"\u{1b}[31m\n\u{202e}\u{ffff}ü");
        xml.close();
        assert_eq!(
            xml.into_text(),
            "<g class=\"a&quot;b&lt;c\"><rect><title>x &lt; y &amp;&amp; &quot;z&quot;[31m ü</title></rect>\n</g>\n"
        );
    }
}
