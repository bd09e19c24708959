//! Redirections and here-documents.

use super::{Lexer, Quoting};
use std::ops::Range;

/// A here-document whose content has not come yet.
pub(super) struct Here {
    delimiter: Vec<u8>,
    quoted: bool,
    strip_tabs: bool,
}

impl Lexer<'_> {
    /// A `<` or `>` and its companions, outside of quotes.
    pub(super) fn redirection(&mut self) {
        let rest = &self.line[self.at..];
        self.command.redirects = true;
        if rest.starts_with(b"<<") && !rest.starts_with(b"<<<") {
            let strip_tabs = rest.starts_with(b"<<-");
            let mut at = self.at + if strip_tabs { 3 } else { 2 };
            while matches!(self.line.get(at), Some(b' ' | b'\t')) {
                at += 1;
            }
            let word = self.line[at..]
                .iter()
                .take_while(|byte| !b" \t\n;&|<>()".contains(byte))
                .count();
            let raw = &self.line[at..at + word];
            let quoted = raw.iter().any(|byte| b"'\"\\".contains(byte));
            let delimiter = raw
                .iter()
                .copied()
                .filter(|byte| !b"'\"\\".contains(byte))
                .collect();
            let is_odd = raw.is_empty() || raw.iter().any(|byte| b"$`{".contains(byte));
            if is_odd || self.frames.len() > 1 {
                self.opaque =
                    Some("after a here-document inside a command or with an unusual delimiter");
            }
            self.heres.push(Here {
                delimiter,
                quoted,
                strip_tabs,
            });
            self.command.redirects = false;
            self.at = at + word;
        } else {
            self.at += rest
                .iter()
                .take(3)
                .take_while(|byte| b"<>&|".contains(byte))
                .count();
        }
        self.at_word_start = true;
    }

    /// The contents of the here-documents that were announced on the line that has just ended.
    pub(super) fn read_heres(&mut self) -> anyhow::Result<()> {
        for here in std::mem::take(&mut self.heres) {
            let start = self.at;
            let mut end = start;
            loop {
                let line_end = self.find(end, b'\n');
                let line = &self.line[end..line_end];
                let tabs = if here.strip_tabs {
                    line.iter().take_while(|&&byte| byte == b'\t').count()
                } else {
                    0
                };
                if line[tabs..] == here.delimiter || line_end == self.line.len() {
                    let body = start..if line[tabs..] == here.delimiter {
                        end
                    } else {
                        line_end
                    };
                    self.here(&here, body)?;
                    self.at = self.line.len().min(line_end + 1);
                    break;
                }
                end = line_end + 1;
            }
            self.ends_with_here = true;
        }
        Ok(())
    }

    pub(super) fn here(&mut self, here: &Here, body: Range<usize>) -> anyhow::Result<()> {
        if here.quoted {
            let remedy = "write the delimiter without quotes, as in `<< END`";
            return self.refuse_inside(body, "in a here-document with a quoted delimiter", remedy);
        }
        let text = &self.line[body.clone()];
        if [&b"`"[..], b"$(", b"${"]
            .iter()
            .any(|odd| text.windows(odd.len()).any(|part| part == *odd))
        {
            let remedy = "set a variable before the here-document, as in `v={}; cat << END`";
            return self.refuse_inside(
                body,
                "in a here-document with `...`, $(...) or ${...} in it",
                remedy,
            );
        }
        while self.at < body.end {
            if self.line[self.at] == b'{'
                && self.at > body.start
                && b"\\$".contains(&self.line[self.at - 1])
            {
                self.refuse_at(
                    self.at,
                    "after a backslash or `$`",
                    "put a space between them",
                )?;
            }
            if !self.place(Quoting::Here)? {
                self.at += 1;
            }
        }
        Ok(())
    }
}
