//! The experiments' results: chapters of text, tables, figures and verdicts. [`markdown`] writes them as a document.

mod chapter;
pub mod markdown;
mod published;
mod table;
mod tally;
mod verdict;

pub use chapter::{Chapter, ChapterFigure, ChapterPart};
pub(crate) use published::{ByName, Published};
pub use table::{FindingCell, FindingTable};
pub use verdict::{Agreement, PublishedComparison, Standing};

use super::words::fill;
use cosched_report::chart::Chart;

/// All that was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command that gives the same findings.
    pub command: String,
    /// The chapters.
    pub chapters: Vec<Chapter>,
}

impl Findings {
    /// What the document is, how to read it, and how it came out; a paragraph each.
    pub fn introduction(&self) -> Vec<String> {
        let mut values = tally::values(self);
        values.insert("command", self.command.clone());
        let paragraphs = include_str!("introduction.txt").split("\n\n");
        paragraphs.map(|text| fill(text, &values)).collect()
    }

    /// Every table of all chapters, with its chart if it has one, in order.
    pub fn tables(&self) -> impl Iterator<Item = (&FindingTable, Option<&Chart>)> {
        let parts = self.chapters.iter().flat_map(|chapter| &chapter.parts);
        parts.filter_map(|part| match part {
            ChapterPart::Table(table) => Some((table, None)),
            ChapterPart::Figure(figure) => Some((&figure.table, Some(&figure.chart))),
            ChapterPart::Heading(_) | ChapterPart::Text(_) | ChapterPart::Verdicts => None,
        })
    }
}
