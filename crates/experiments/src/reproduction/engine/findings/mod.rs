//! The experiments' results: chapters of text, tables, figures and verdicts. [`markdown`] writes them as a document.

mod chapter;
pub mod markdown;
mod table;
mod tally;
mod verdict;

pub use chapter::{Chapter, Figure, Part};
pub use table::{Cell, Table};
pub use verdict::{Agreement, Verdict};

use cosched_report::chart::Chart;

/// What the verdicts mean.
const HOW_TO_READ: &str = "A figure *agrees* if it has the paper's sign and lies within a quarter of it. A bound (at most, at least) \
    agrees if ours keeps it. A figure of random draws agrees if it lies among eight of ten of our draws. An order agrees if some of \
    its pairs are significant and none is reversed; `~` joins names without a significant difference. Verdicts name what was fitted \
    to the paper or chosen by it; what was fitted proves nothing. Intervals cover the seeds, which vary instances of programs by \
    2 % and the noise of counters. They do not cover the choice of mixes.";

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
    pub fn introduction(&self) -> [String; 3] {
        let what = format!(
            "Written by `{}`: the experiments of the papers behind cosched, in its simulation, beside the published figures. The \
             same command writes the same bytes again. `docs/simulator.md` describes the simulation, its sources and its \
             assumptions.",
            self.command
        );
        [what, HOW_TO_READ.to_owned(), tally::in_words(self)]
    }

    /// Every table of all chapters, with its chart if it has one, in order.
    pub fn tables(&self) -> impl Iterator<Item = (&Table, Option<&Chart>)> {
        let parts = self.chapters.iter().flat_map(|chapter| &chapter.parts);
        parts.filter_map(|part| match part {
            Part::Table(table) => Some((table, None)),
            Part::Figure(figure) => Some((&figure.table, Some(&figure.chart))),
            Part::Heading(_) | Part::Text(_) | Part::Verdicts => None,
        })
    }
}
