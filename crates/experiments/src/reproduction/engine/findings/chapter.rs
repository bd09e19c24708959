//! A chapter: the experiments of one paper.

use super::table::Table;
use super::verdict::Verdict;
use cosched_report::chart::Chart;

/// The experiments of one paper.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its heading.
    pub title: String,
    /// Its content, in order.
    pub parts: Vec<Part>,
    /// The published figures, and ours.
    pub verdicts: Vec<Verdict>,
}

/// A piece of a chapter.
#[derive(Clone, Debug)]
pub enum Part {
    /// A heading.
    Heading(String),
    /// A paragraph.
    Text(String),
    /// A table.
    Table(Table),
    /// A figure, with its numbers.
    Figure(Box<Figure>),
    /// The table of the chapter's verdicts.
    Verdicts,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The numbers that it shows.
    pub table: Table,
    /// The picture.
    pub chart: Chart,
}
