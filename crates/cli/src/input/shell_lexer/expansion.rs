//! What begins with a `$` or a backquote.

use super::{Frame, Lexer};

impl Lexer<'_> {
    /// A `$` and what belongs to it.
    pub(super) fn dollar(&mut self) -> anyhow::Result<()> {
        let in_double = self.in_double();
        let rest = &self.line[self.at + 1..];
        let skip = |lexer: &mut Self, to: usize| {
            if in_double {
                lexer.at = to
            } else {
                lexer.in_word(to - lexer.at)
            }
        };
        if rest.starts_with(b"((") {
            let end = self.closing(self.at + 1, b'(', b')');
            self.refuse_inside(
                self.at..end,
                "in arithmetic",
                "set a variable first, as in `n={}; echo $((n+1))`",
            )?;
            skip(self, end);
        } else if rest.starts_with(b"(") {
            skip(self, self.at + 2);
            self.frames
                .push(Frame::Substitution(std::mem::take(&mut self.command)));
            (self.word, self.at_word_start) = (self.at..self.at, true);
        } else if rest.starts_with(b"{") {
            // `${1}` and `${#}` are the shell's own.
            if rest.starts_with(b"{}") {
                return Err(self.refusal(
                    self.at + 1,
                    "directly after a `$`",
                    "write \\$ for a dollar sign",
                ));
            }
            let end = self.closing(self.at + 1, b'{', b'}');
            let inside = self.at + 2..end;
            self.refuse_inside(
                inside.clone(),
                "inside ${...}",
                "set a variable first, as in `v={}; echo \"${v%.txt}\"`",
            )?;
            if self.line[inside].iter().any(|byte| b"'\"`(".contains(byte)) {
                self.opaque = Some("after ${...} with quotes or commands in it");
            }
            skip(self, end);
        } else if rest.starts_with(b"'") && !in_double {
            // Some shells know this form and others do not, so they see different ends of the quoted text.
            self.opaque = Some("after $'...', which not every shell knows");
            self.in_word(1);
        } else if rest.starts_with(b"$") {
            skip(self, self.at + 2);
            self.refuse_at(
                self.at,
                "directly after a `$`",
                "put a space or quotes between them",
            )?;
        } else {
            skip(self, self.at + 1);
        }
        Ok(())
    }

    /// The bytes up to the next backquote.
    pub(super) fn backquotes(&mut self) -> anyhow::Result<()> {
        let mut end = self.at + 1;
        while end < self.line.len() && self.line[end] != b'`' {
            end += if self.line[end] == b'\\' { 2 } else { 1 };
        }
        let end = self.line.len().min(end + 1);
        self.refuse_inside(
            self.at..end,
            "between backquotes",
            "write $(...) instead of `...`",
        )?;
        if self.in_double() {
            self.at = end;
        } else {
            self.in_word(end - self.at);
        }
        Ok(())
    }

    /// The position behind the bracket that closes the one at `from`.
    pub(super) fn closing(&self, from: usize, open: u8, close: u8) -> usize {
        let mut depth = 0usize;
        let mut at = from;
        while let Some(&byte) = self.line.get(at) {
            match byte {
                b'\\' => at += 1,
                byte if byte == open => depth += 1,
                byte if byte == close => {
                    depth -= 1;
                    if depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.line.len()
    }
}
