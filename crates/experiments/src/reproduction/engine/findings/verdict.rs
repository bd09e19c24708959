//! What came of a published result.

use super::table::{FindingCell, FindingTable};

/// Whether a published result counts. The file of its chapter says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// It counts.
    #[default]
    Counts,
    /// The simulation can show nothing else, for this reason.
    Forced(String),
    /// This was fitted to the paper, or changed after the result was seen.
    Fitted(String),
    /// The simulation can't show it, for this reason.
    NotJudged(String),
}

/// A published result and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedComparison {
    /// The key of the result, unique in its chapter.
    pub key: String,
    /// What it is, with its unit.
    pub what: String,
    /// Whether it counts.
    pub standing: Standing,
    /// How well ours agrees.
    pub agreement: Agreement,
    /// The published result.
    pub paper: FindingCell,
    /// Ours.
    pub ours: FindingCell,
    /// Whether ours has the paper's sign, where that is a result.
    pub(super) sign: &'static str,
    /// Ours / the paper's, where both have the same sign.
    pub(super) ratio: Option<f64>,
}

/// How well ours agrees with a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Same sign, and within a quarter; or within the bound; or the same order.
    Agrees,
    /// Same sign, and within a factor of two.
    Roughly,
    /// Same sign, and not within a factor of two.
    SameSign,
    /// The interval holds zero or the bound, or there is only one repetition: nothing is shown.
    NotShown,
    /// Another sign, beyond the bound, or another order.
    Differs,
    /// It was not measured.
    NotMeasured,
}

impl Agreement {
    fn text(self) -> &'static str {
        match self {
            Agreement::Agrees => "agrees",
            Agreement::Roughly => "within a factor of two",
            Agreement::SameSign => "beyond a factor of two",
            Agreement::NotShown => "not shown",
            Agreement::Differs => "differs",
            Agreement::NotMeasured => "not measured",
        }
    }
}

impl PublishedComparison {
    /// Standing and agreement in words.
    fn text(&self) -> String {
        let agreement = self.agreement.text();
        match &self.standing {
            Standing::Counts => agreement.to_owned(),
            Standing::Forced(why) => format!("forced ({why}): {agreement}"),
            Standing::Fitted(what) => format!("fitted ({what}): {agreement}"),
            Standing::NotJudged(why) => format!("not judged: {why}"),
        }
    }

    fn row(&self) -> Vec<FindingCell> {
        vec![
            FindingCell::text(&self.what),
            self.paper.clone(),
            self.ours.clone(),
            FindingCell::text(self.sign),
            FindingCell::number(self.ratio.unwrap_or(f64::NAN), 2),
            FindingCell::text(self.text()),
        ]
    }
}

/// The verdicts of a chapter as a table.
pub(super) fn table(chapter: &str, verdicts: &[PublishedComparison]) -> FindingTable {
    let columns = ["what", "paper", "here", "sign", "here / paper", "verdict"];
    FindingTable {
        id: format!("{chapter}-verdicts"),
        caption: "The published figures, and ours with 95 % intervals.".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: verdicts.iter().map(PublishedComparison::row).collect(),
    }
}
