//! A chapter: the experiments of one paper.

use super::table::{Cell, Table};
use super::verdict::Verdict;
use cosched_report::chart::Chart;

/// The experiments of one paper.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its heading.
    pub title: &'static str,
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

impl Chapter {
    /// A chapter without content.
    pub(crate) fn new(id: &'static str, title: &'static str) -> Chapter {
        Chapter {
            id,
            title,
            parts: Vec::new(),
            verdicts: Vec::new(),
        }
    }

    /// Adds a heading.
    pub(crate) fn heading(&mut self, words: impl Into<String>) {
        self.parts.push(Part::Heading(words.into()));
    }

    /// Adds a paragraph.
    pub(crate) fn text(&mut self, words: impl Into<String>) {
        self.parts.push(Part::Text(words.into()));
    }

    /// Adds a table.
    pub(crate) fn table<C: ToString>(
        &mut self,
        id: impl Into<String>,
        caption: impl Into<String>,
        columns: impl IntoIterator<Item = C>,
        rows: Vec<Vec<Cell>>,
    ) {
        self.parts.push(Part::Table(Table {
            id: id.into(),
            caption: caption.into(),
            columns: columns.into_iter().map(|head| head.to_string()).collect(),
            rows,
        }));
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, figure: Figure) {
        self.parts.push(Part::Figure(Box::new(figure)));
    }

    /// Adds a verdict.
    pub(crate) fn judge(&mut self, verdict: Verdict) {
        self.verdicts.push(verdict);
    }

    /// Ends the experiments of the paper: the verdicts follow, and then experiments on causes.
    pub(crate) fn causes(&mut self, introduction: impl Into<String>) {
        self.parts.push(Part::Verdicts);
        self.heading("What makes the difference");
        self.text(introduction);
    }
}
