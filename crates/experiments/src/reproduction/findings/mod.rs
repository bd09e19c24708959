//! The experiments' results: chapters of text, tables, figures and verdicts.
//!
//! [`markdown`] writes them as a document, [`csv`] one table as numbers.

pub mod csv;
pub mod markdown;
mod verdict;

pub use crate::reproduction::number::{plain, rounded, shown};
pub use verdict::{Agreement, Kind, Published, Verdict};

use crate::statistics::{Estimate, mean, quantile};
use cosched_report::chart::Chart;
use std::collections::BTreeMap;

/// What the verdicts mean.
const HOW_TO_READ: &str = "A figure *agrees* if it has the paper's sign and lies within a quarter of it. A bound (at most, at least) \
    agrees if ours keeps it. A figure of random draws agrees if it lies among eight of ten of our draws. An order agrees if some of \
    its pairs are significant and none is reversed; `~` joins names without a significant difference. Verdicts name what was fitted \
    to the paper or chosen by it; what was fitted proves nothing. Intervals cover the seeds, which vary instances of programs by \
    2 % and the noise of counters. They do not cover the choice of mixes.";

/// Name of the chapter that is of no paper.
pub(crate) const OWN: &str = "even";

/// All that was found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command that gives the same findings.
    pub command: String,
    /// The chapters.
    pub chapters: Vec<Chapter>,
}

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
    /// What explains the differences, in order.
    pub causes: Vec<Part>,
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
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name, unique among all tables and figures; the name of its file.
    pub id: String,
    /// What it shows, in a sentence.
    pub caption: String,
    /// The heads of its columns, with units.
    pub columns: Vec<String>,
    /// Its rows, each with as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// The numbers that it shows.
    pub table: Table,
    /// Whether the numbers are few enough to be read beside the figure.
    pub few: bool,
    /// The picture.
    pub chart: Chart,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A mean over repetitions.
    Estimate {
        /// The mean and its interval.
        estimate: Estimate,
        /// Number of decimals shown.
        decimals: usize,
        /// Whether a plus sign is shown.
        signed: bool,
    },
    /// A number.
    Number {
        /// The number.
        value: f64,
        /// Decimals that are shown.
        decimals: usize,
    },
    /// What was drawn many times.
    Draws {
        /// The mean.
        mean: f64,
        /// The 10th percentile.
        low: f64,
        /// The 90th percentile.
        high: f64,
        /// Decimals that are shown.
        decimals: usize,
    },
    /// There is no figure, for this reason.
    Absent(String),
}

impl Cell {
    /// Words.
    pub fn text(words: impl Into<String>) -> Cell {
        Cell::Text(words.into())
    }

    /// A number with so many decimals; absent if it is not finite.
    pub fn number(value: f64, decimals: usize) -> Cell {
        if value.is_finite() {
            Cell::Number { value, decimals }
        } else {
            Cell::Absent("not finite".to_owned())
        }
    }

    /// A mean with its interval; absent if there are no values.
    pub fn mean(values: &[f64], decimals: usize) -> Cell {
        Cell::estimate(Estimate::of(values), decimals, false)
    }

    /// What was drawn many times; absent if it was not.
    pub fn draws(values: &[f64], decimals: usize) -> Cell {
        match (mean(values), quantile(values, 0.1), quantile(values, 0.9)) {
            (Some(mean), Some(low), Some(high)) => Cell::Draws {
                mean,
                low,
                high,
                decimals,
            },
            _ => Cell::Absent("not drawn".to_owned()),
        }
    }

    /// The same with its sign: for what can be gained and lost.
    pub fn signed(values: &[f64], decimals: usize) -> Cell {
        Cell::estimate(Estimate::of(values), decimals, true)
    }

    /// An estimate; absent if there is none.
    pub fn estimate(estimate: Option<Estimate>, decimals: usize, signed: bool) -> Cell {
        match estimate {
            Some(estimate) => Cell::Estimate {
                estimate,
                decimals,
                signed,
            },
            None => Cell::Absent("not measured".to_owned()),
        }
    }

    /// How it is shown to people.
    pub fn shown(&self) -> String {
        match self {
            Cell::Text(words) => words.clone(),
            Cell::Number { value, decimals } => plain(*value, *decimals),
            Cell::Estimate {
                estimate,
                decimals,
                signed,
            } => shown(estimate.mean, estimate.half_width, *decimals, *signed),
            Cell::Draws {
                mean,
                low,
                high,
                decimals,
            } => {
                let [mean, low, high] = [*mean, *low, *high].map(|value| plain(value, *decimals));
                format!("{mean} ({low} to {high})")
            }
            Cell::Absent(_) => "-".to_owned(),
        }
    }

    /// Whether it is a number, which stands at the right of its column.
    pub fn is_number(&self) -> bool {
        !matches!(self, Cell::Text(_))
    }
}

impl Findings {
    /// Whether nothing is of a paper.
    fn is_own(&self) -> bool {
        !self.chapters.is_empty() && self.chapters.iter().all(|chapter| chapter.id == OWN)
    }

    /// The heading of the document.
    pub fn title(&self) -> &'static str {
        if self.is_own() {
            "The policy `even`, measured in the simulation"
        } else {
            "The papers, repeated in the simulation"
        }
    }

    /// What the document is, how to read it, and how it came out; a paragraph each.
    pub fn introduction(&self) -> Vec<String> {
        let what = if self.is_own() {
            "the policy `even` beside others, in the simulation of cosched"
        } else {
            "the experiments of the papers behind cosched, in its simulation, beside the published figures"
        };
        let mut words = vec![format!(
            "Written by `{}`: {what}. The same command writes the same bytes again. `docs/simulator.md` describes the simulation, \
             its sources and its assumptions.",
            self.command
        )];
        let tally = self.tally();
        if tally.results > 0 {
            words.push(HOW_TO_READ.to_owned());
            words.push(tally.in_words());
        }
        words
    }

    /// How many results agree. A result that is judged on several machines is counted once.
    fn tally(&self) -> Tally {
        let mut by_result: BTreeMap<(&str, &str), Vec<&Verdict>> = BTreeMap::new();
        for chapter in &self.chapters {
            for verdict in chapter
                .verdicts
                .iter()
                .filter(|verdict| verdict.rests_on != Some(verdict::FITTED))
            {
                by_result
                    .entry((chapter.id, &verdict.what))
                    .or_default()
                    .push(verdict);
            }
        }
        let mut tally = Tally {
            results: by_result.len(),
            ..Tally::default()
        };
        for verdicts in by_result.values() {
            let is_near = |verdict: &&Verdict| {
                matches!(verdict.agreement, Agreement::Agrees | Agreement::Roughly)
            };
            let Some(best) = verdicts.iter().min_by_key(|verdict| verdict.agreement) else {
                continue;
            };
            match best.agreement {
                Agreement::Agrees => tally.agree += 1,
                Agreement::Roughly => tally.roughly += 1,
                Agreement::SameSign => tally.beyond += 1,
                Agreement::NotShown | Agreement::NotMeasured => tally.not_shown += 1,
                Agreement::Differs => tally.differ += 1,
            }
            tally.resting += usize::from(is_near(best) && best.rests_on.is_some());
            tally.on_some += usize::from(is_near(best) && !verdicts.iter().all(is_near));
        }
        tally
    }

    /// Every table and figure of all chapters, in order.
    pub fn tables(&self) -> impl Iterator<Item = (&Table, Option<&Chart>)> {
        let parts = self
            .chapters
            .iter()
            .flat_map(|chapter| chapter.parts.iter().chain(&chapter.causes));
        parts.filter_map(|part| match part {
            Part::Table(table) => Some((table, None)),
            Part::Figure(figure) => Some((&figure.table, Some(&figure.chart))),
            Part::Heading(_) | Part::Text(_) => None,
        })
    }

    /// The verdicts as tables, one for each chapter.
    pub fn verdicts(&self) -> impl Iterator<Item = Table> {
        self.chapters
            .iter()
            .map(|chapter| verdict::table(chapter.id, &chapter.verdicts))
    }
}

impl Tally {
    fn in_words(&self) -> String {
        format!(
            "Of {} published results that are not fitted, {} agree and {} more lie within a factor of two; {} of these rest on \
             something that was fitted or chosen. {} lie beyond a factor of two, {} are not significant, and {} differ. A result \
             that is judged on several machines counts by its best machine; {} agree, or lie within a factor of two, on some and \
             not on all. Each chapter ends with the experiments that show what causes the differences.",
            self.results,
            self.agree,
            self.roughly,
            self.resting,
            self.beyond,
            self.not_shown,
            self.differ,
            self.on_some
        )
    }
}

/// Counts of published results.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    results: usize,
    agree: usize,
    roughly: usize,
    /// Of these two, those that rest on something fitted.
    resting: usize,
    /// Of these, those that do not on every machine.
    on_some: usize,
    beyond: usize,
    not_shown: usize,
    differ: usize,
}
