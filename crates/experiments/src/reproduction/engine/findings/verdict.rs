//! A published result held against ours.

use super::super::number::plain;
use super::table::{Cell, Table};
use crate::statistics::{Estimate, mean, quantile};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A published result, as the file of its chapter has it.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Published {
    /// What it is, with its unit.
    what: String,
    #[serde(flatten)]
    claim: Claim,
    /// Decimals of the figures.
    #[serde(default = "one")]
    decimals: usize,
    /// What ours rests on that was fitted to the paper or chosen by it.
    rests_on: Option<String>,
}

fn one() -> usize {
    1
}

/// What a paper says.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Claim {
    /// A figure that can only be positive.
    Size(f64),
    /// A figure that can be gained or lost, so that its sign is a result.
    Gain(f64),
    /// The most that a figure may be.
    AtMost(f64),
    /// The least that a figure may be.
    AtLeast(f64),
    /// A figure of something that was drawn once. It agrees if it lies among eight of ten of our draws.
    Draw(f64),
    /// Names from the greatest figure to the least. Names without a significant difference stand in one place, with ` ~ `
    /// between them; in ours likewise.
    Order(Vec<String>),
}

/// A published result and ours.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What it is, with its unit.
    pub what: String,
    /// On which of several machines; `None` if there is one.
    pub on: Option<&'static str>,
    /// How well ours agrees.
    pub agreement: Agreement,
    /// What ours rests on that was fitted to the paper or chosen by it.
    pub rests_on: Option<String>,
    /// The published result.
    pub paper: Cell,
    /// Ours.
    pub ours: Cell,
    /// Whether ours has the paper's sign, where that is a result.
    sign: &'static str,
    /// Ours / the paper's, where both have the same sign.
    ratio: Option<f64>,
}

/// How well ours agrees with a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Same sign, and within a quarter; or within the bound; or among the draws; or the same order.
    Agrees,
    /// Same sign, and within a factor of two.
    Roughly,
    /// Same sign, and not within a factor of two.
    SameSign,
    /// The interval holds zero or the bound, or there is only one repetition, so that nothing is shown.
    NotShown,
    /// Another sign, beyond the bound, not among the draws, or another order.
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

impl Published {
    /// The published figure; none of an order.
    pub(crate) fn figure(&self) -> f64 {
        match self.claim {
            Claim::Size(figure)
            | Claim::Gain(figure)
            | Claim::AtMost(figure)
            | Claim::AtLeast(figure)
            | Claim::Draw(figure) => figure,
            Claim::Order(_) => f64::NAN,
        }
    }

    fn order(&self) -> &[String] {
        match &self.claim {
            Claim::Order(order) => order,
            _ => &[],
        }
    }

    /// The names of an order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let places = self.order().iter();
        places.flat_map(|place| place.split(" ~ "))
    }

    /// Holds a figure against ours, by repetition or draw.
    pub(crate) fn judge(&self, ours: &[f64]) -> Verdict {
        let paper = self.figure();
        let text = plain(paper, self.decimals);
        let mut verdict = match self.claim {
            Claim::Draw(_) => self.judge_draws(ours),
            _ => self.judge_estimate(Estimate::of(ours)),
        };
        verdict.ratio = mean(ours).and_then(|ours| ratio(ours, paper));
        verdict.paper = Cell::text(match self.claim {
            Claim::AtMost(_) => format!("at most {text}"),
            Claim::AtLeast(_) => format!("at least {text}"),
            _ => text,
        });
        verdict
    }

    fn judge_estimate(&self, ours: Option<Estimate>) -> Verdict {
        let cell = Cell::estimate(ours, self.decimals);
        let Some(ours) = ours else {
            return self.verdict(Agreement::NotMeasured, cell);
        };
        let mut verdict = self.verdict(self.claim.agreement(&ours), cell);
        if let Claim::Gain(paper) = self.claim {
            verdict.sign = match verdict.agreement {
                Agreement::NotShown => "not shown",
                _ if have_same_sign(ours.mean, paper) => "same",
                _ => "other",
            };
        }
        verdict
    }

    fn judge_draws(&self, ours: &[f64]) -> Verdict {
        let agreement = match quantile(ours, 0.1).zip(quantile(ours, 0.9)) {
            None => Agreement::NotMeasured,
            Some((low, _)) if self.figure() < low => Agreement::Differs,
            Some((_, high)) if self.figure() > high => Agreement::Differs,
            Some(_) => Agreement::Agrees,
        };
        let cell = Cell::draws(ours, self.decimals);
        self.verdict(agreement, Cell::text(cell.text))
    }

    /// Holds an order against ours.
    pub(crate) fn judge_order(&self, ours: &ByName<'_>) -> Verdict {
        let agreement = order_agreement(self.order(), ours);
        let mut verdict = self.verdict(agreement, Cell::text(order(ours)));
        verdict.paper = Cell::text(self.order().join(" > "));
        verdict
    }

    fn verdict(&self, agreement: Agreement, ours: Cell) -> Verdict {
        Verdict {
            what: self.what.clone(),
            on: None,
            agreement,
            rests_on: self.rests_on.clone(),
            paper: Cell::absent(),
            ours,
            sign: "-",
            ratio: None,
        }
    }
}

impl Verdict {
    /// Whether it was fitted to the paper itself, and so proves nothing.
    pub(super) fn is_fitted(&self) -> bool {
        self.rests_on.as_deref() == Some("fitted")
    }
}

fn have_same_sign(ours: f64, paper: f64) -> bool {
    (ours > 0.0) == (paper > 0.0)
}

fn ratio(ours: f64, paper: f64) -> Option<f64> {
    (have_same_sign(ours, paper) && paper != 0.0).then_some(ours / paper)
}

impl Claim {
    /// How well our figure agrees.
    fn agreement(&self, ours: &Estimate) -> Agreement {
        let (low, high) = ours.interval();
        match *self {
            // One repetition shows no sign.
            Claim::Gain(_) if ours.half_width.is_none() => Agreement::NotShown,
            Claim::Gain(_) if low <= 0.0 && high >= 0.0 => Agreement::NotShown,
            Claim::AtMost(most) if high <= most => Agreement::Agrees,
            Claim::AtMost(most) if low > most => Agreement::Differs,
            Claim::AtLeast(least) if low >= least => Agreement::Agrees,
            Claim::AtLeast(least) if high < least => Agreement::Differs,
            Claim::Gain(paper) | Claim::Size(paper) => agreement_in_size(ours.mean, paper),
            _ => Agreement::NotShown,
        }
    }
}

fn agreement_in_size(ours: f64, paper: f64) -> Agreement {
    if !have_same_sign(ours, paper) {
        return Agreement::Differs;
    }
    match ours / paper {
        0.8..=1.25 => Agreement::Agrees,
        0.5..=2.0 => Agreement::Roughly,
        _ => Agreement::SameSign,
    }
}

/// Our figures of each name, by repetition, the same for all.
pub(crate) type ByName<'a> = BTreeMap<&'a str, Vec<f64>>;

/// The names in the order of their means. Neighbours without a significant difference share a place.
fn order(ours: &ByName<'_>) -> String {
    let mut sorted: Vec<(&str, &[f64])> = Vec::new();
    for (name, figures) in ours {
        sorted.push((name, figures));
    }
    sorted.sort_by(|(_, a), (_, b)| {
        let a = mean(a).unwrap_or(0.0);
        let b = mean(b).unwrap_or(0.0);
        b.total_cmp(&a)
    });
    let mut text = String::new();
    let mut before: Option<&[f64]> = None;
    for (name, figures) in sorted {
        if let Some(before) = before {
            text.push_str(match difference(before, figures) {
                Ordering::Greater => " > ",
                _ => " ~ ",
            });
        }
        text.push_str(name);
        before = Some(figures);
    }
    text
}

/// Whether some pairs of the paper's order are significant here, and none is reversed.
fn order_agreement(paper: &[String], ours: &ByName<'_>) -> Agreement {
    let mut agreement = Agreement::NotShown;
    for (at, place) in paper.iter().enumerate() {
        let later = &paper[at + 1..];
        for greater in place.split(" ~ ") {
            for less in later.iter().flat_map(|place| place.split(" ~ ")) {
                match difference(&ours[greater], &ours[less]) {
                    Ordering::Greater => agreement = Agreement::Agrees,
                    Ordering::Less => return Agreement::Differs,
                    Ordering::Equal => {}
                }
            }
        }
    }
    agreement
}

/// Whether the one is shown to be greater or less than the other, repetition by repetition. One repetition shows nothing.
fn difference(one: &[f64], other: &[f64]) -> Ordering {
    let mut differences = Vec::new();
    for (one, other) in one.iter().zip(other) {
        differences.push(one - other);
    }
    let Some(estimate) = Estimate::of(&differences) else {
        return Ordering::Equal;
    };
    let (low, high) = estimate.interval();
    if estimate.half_width.is_none() {
        Ordering::Equal
    } else if low > 0.0 {
        Ordering::Greater
    } else if high < 0.0 {
        Ordering::Less
    } else {
        Ordering::Equal
    }
}

/// The verdicts of a chapter as a table.
pub(super) fn table(chapter: &str, verdicts: &[Verdict]) -> Table {
    let several = verdicts.iter().any(|verdict| verdict.on.is_some());
    let mut columns = vec!["what", "paper", "here", "sign", "here / paper", "verdict"];
    if several {
        columns.insert(1, "memory");
    }
    let rows = verdicts.iter().map(|verdict| row(verdict, several));
    Table {
        id: format!("{chapter}-verdicts"),
        caption: "The published figures, and ours with 95 % intervals.".to_owned(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows: rows.collect(),
    }
}

fn row(verdict: &Verdict, several_machines: bool) -> Vec<Cell> {
    let mut row = vec![Cell::text(&verdict.what)];
    if several_machines {
        row.push(Cell::text(verdict.on.unwrap_or("-")));
    }
    let judged = verdict.agreement.text();
    let judged = match &verdict.rests_on {
        Some(what) => format!("{judged} ({what})"),
        None => judged.to_owned(),
    };
    row.push(verdict.paper.clone());
    row.push(verdict.ours.clone());
    row.push(Cell::text(verdict.sign));
    row.push(Cell::number(verdict.ratio.unwrap_or(f64::NAN), 2));
    row.push(Cell::text(judged));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(claim: Claim, ours: &[f64]) -> Agreement {
        let published = Published {
            what: "figure".to_owned(),
            claim,
            decimals: 1,
            rests_on: None,
        };
        published.judge(ours).agreement
    }

    fn judge_order<const N: usize>(paper: &[&str], ours: &[(&str, Vec<f64>); N]) -> Verdict {
        let order = paper.iter().map(|place| (*place).to_owned());
        let published = Published {
            what: "speed".to_owned(),
            claim: Claim::Order(order.collect()),
            decimals: 1,
            rests_on: None,
        };
        published.judge_order(&ByName::from(ours.clone()))
    }

    #[test]
    fn a_figure_agrees_within_a_quarter_and_with_the_same_sign() {
        let agreement = |paper, ours: &[f64]| judge(Claim::Gain(paper), ours);
        assert_eq!(agreement(5.0, &[4.0, 4.2, 4.1]), Agreement::Agrees);
        assert_eq!(agreement(5.0, &[3.0, 3.2, 3.1]), Agreement::Roughly);
        assert_eq!(agreement(5.0, &[1.0, 1.2, 1.1]), Agreement::SameSign);
        assert_eq!(agreement(5.0, &[-4.0, -4.2, -4.1]), Agreement::Differs);
        assert_eq!(agreement(5.0, &[-4.0, 4.2, 0.1]), Agreement::NotShown);
        assert_eq!(agreement(5.0, &[]), Agreement::NotMeasured);
        assert_eq!(agreement(-5.0, &[-4.0, -4.2]), Agreement::Agrees);
        // One repetition has no interval.
        assert_eq!(agreement(5.0, &[4.0]), Agreement::NotShown);
        assert_eq!(judge(Claim::Size(5.0), &[4.0]), Agreement::Agrees);
        assert_eq!(judge(Claim::Size(5.0), &[11.0]), Agreement::SameSign);
    }

    #[test]
    fn a_bound_is_held_or_passed() {
        let most = |ours: &[f64]| judge(Claim::AtMost(10.0), ours);
        assert_eq!(most(&[2.0, 2.1, 1.9]), Agreement::Agrees);
        assert_eq!(most(&[15.0, 15.1, 14.9]), Agreement::Differs);
        assert_eq!(most(&[10.0, 10.1, 9.9]), Agreement::NotShown);
        assert_eq!(most(&[]), Agreement::NotMeasured);
        let least = |ours: &[f64]| judge(Claim::AtLeast(13.0), ours);
        assert_eq!(least(&[13.0, 13.0]), Agreement::Agrees);
        assert_eq!(least(&[9.0, 9.0, 8.0]), Agreement::Differs);
    }

    #[test]
    fn a_drawn_figure_lies_among_eight_of_ten_draws_or_not() {
        let draws: Vec<f64> = (0..=100).map(f64::from).collect();
        let agreement = |paper| judge(Claim::Draw(paper), &draws);
        assert_eq!(
            (agreement(10.0), agreement(50.0), agreement(90.0)),
            (Agreement::Agrees, Agreement::Agrees, Agreement::Agrees)
        );
        assert_eq!(
            (agreement(9.0), agreement(91.0)),
            (Agreement::Differs, Agreement::Differs)
        );
        assert_eq!(judge(Claim::Draw(1.0), &[]), Agreement::NotMeasured);
    }

    #[test]
    fn an_order_is_the_same_when_what_is_shown_does_not_contradict_it() {
        let values = [
            ("a", vec![3.0, 3.1, 2.9]),
            ("b", vec![2.0, 2.1, 1.9]),
            ("c", vec![2.01, 2.0, 1.99]),
        ];
        let of = |paper: &[&str]| judge_order(paper, &values);
        assert_eq!(of(&["a", "b", "c"]).ours, Cell::text("a > b ~ c"));
        assert_eq!(of(&["a", "b", "c"]).agreement, Agreement::Agrees);
        assert_eq!(of(&["a", "c", "b"]).agreement, Agreement::Agrees);
        assert_eq!(of(&["b", "a", "c"]).agreement, Agreement::Differs);
        let same = [("a", vec![1.0, 2.0]), ("b", vec![2.0, 1.0])];
        assert_eq!(
            judge_order(&["a", "b"], &same).agreement,
            Agreement::NotShown
        );
        let once = [("a", vec![2.0]), ("b", vec![1.0])];
        assert_eq!(
            judge_order(&["b", "a"], &once).agreement,
            Agreement::NotShown
        );
        // Each neighbour may tie with the next, and the first be greater than the last all the same.
        let chain = [
            ("a", vec![3.0, 3.2, 3.1]),
            ("b", vec![2.0, 4.0, 3.0]),
            ("c", vec![2.9, 3.1, 3.0]),
        ];
        assert_eq!(
            judge_order(&["c", "b", "a"], &chain).agreement,
            Agreement::Differs
        );
        assert_eq!(
            judge_order(&["b", "a ~ c"], &chain).agreement,
            Agreement::NotShown
        );
    }
}
