//! A chapter: the experiments of one paper.

use super::table::FindingTable;
use super::verdict::PublishedComparison;
use cosched_report::chart::Chart;

/// The experiments of one paper.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Its content, in order.
    pub parts: Vec<ChapterPart>,
    /// The published figures, and ours.
    pub verdicts: Vec<PublishedComparison>,
}

/// A piece of a chapter.
#[derive(Clone, Debug)]
pub enum ChapterPart {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(FindingTable),
    /// A figure, with its numbers.
    Figure(Box<ChapterFigure>),
    /// The table of the chapter's verdicts.
    Verdicts,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct ChapterFigure {
    /// The numbers that it shows.
    pub table: FindingTable,
    /// The picture.
    pub chart: Chart,
}
