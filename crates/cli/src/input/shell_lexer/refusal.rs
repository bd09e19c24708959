//! Replacement strings where no value can be put safely.

use super::Lexer;
use crate::exit::usage;
use crate::input::replacement::Replacement;
use std::ops::Range;

impl Lexer<'_> {
    pub(super) fn refuse_inside(
        &self,
        range: Range<usize>,
        why: &str,
        remedy: &str,
    ) -> anyhow::Result<()> {
        range
            .into_iter()
            .try_for_each(|at| self.refuse_at(at, why, remedy))
    }

    /// Refuses a replacement string at this position, if there is one.
    pub(super) fn refuse_at(&self, at: usize, why: &str, remedy: &str) -> anyhow::Result<()> {
        match Replacement::at(self.line.get(at..).unwrap_or_default()) {
            Ok(None) => Ok(()),
            Ok(Some(_)) | Err(_) => Err(self.refusal(at, why, remedy)),
        }
    }

    pub(super) fn refusal(&self, at: usize, why: &str, remedy: &str) -> anyhow::Error {
        let column = String::from_utf8_lossy(&self.line[..at]).chars().count() + 1;
        let length = self.line[at..]
            .iter()
            .position(|&byte| byte == b'}')
            .map_or(1, |end| end + 1);
        let found = cosched_report::visible_bytes(&self.line[at..at + length]);
        usage(format!(
            "column {column} of the line for the shell: {found} stands {why}, where a value could not be kept in one \
             piece: {}; {remedy}",
            self.shown()
        ))
    }

    pub(super) fn shown(&self) -> String {
        cosched_report::visible_bytes(self.line)
    }
}
