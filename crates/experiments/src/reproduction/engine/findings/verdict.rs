//! A published result held against ours.

use super::super::number::plain;
use super::table::{Cell, Table};
use crate::statistics::{Estimate, mean, quantile};

/// A figure that was fitted to the paper itself proves nothing.
pub(super) const FITTED: &str = "fitted";

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
    pub rests_on: Option<&'static str>,
    /// The published result.
    pub paper: Cell,
    /// Ours.
    pub ours: Cell,
    /// Whether ours has the paper's sign, where that is a result.
    sign: &'static str,
    /// Ours / the paper's, where both have the same sign.
    ratio: Option<f64>,
}

/// What a published figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A figure that can only be positive.
    Size,
    /// A figure that can be gained or lost, so that its sign is a result.
    Gain,
    /// The most that a figure may be.
    AtMost,
    /// The least that a figure may be.
    AtLeast,
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

impl Verdict {
    /// A figure that can only be positive.
    pub(crate) fn size(
        what: impl Into<String>,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        Verdict::figure(what, Kind::Size, paper, decimals, ours)
    }

    /// A figure that can be gained or lost.
    pub(crate) fn gain(
        what: impl Into<String>,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        Verdict::figure(what, Kind::Gain, paper, decimals, ours)
    }

    /// A figure of which the paper states only an upper bound.
    pub(crate) fn at_most(
        what: impl Into<String>,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        Verdict::figure(what, Kind::AtMost, paper, decimals, ours)
    }

    /// A figure of which the paper states only a lower bound.
    pub(crate) fn at_least(
        what: impl Into<String>,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        Verdict::figure(what, Kind::AtLeast, paper, decimals, ours)
    }

    fn figure(
        what: impl Into<String>,
        kind: Kind,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        let ours = Estimate::of(ours);
        let agreement = ours.map_or(Agreement::NotMeasured, |ours| agreement(kind, paper, &ours));
        let bound = match kind {
            Kind::AtMost => "at most ",
            Kind::AtLeast => "at least ",
            Kind::Size | Kind::Gain => "",
        };
        let sign = match ours {
            Some(_) if kind == Kind::Gain && agreement == Agreement::NotShown => "not shown",
            Some(ours) if kind == Kind::Gain && have_same_sign(ours.mean, paper) => "same",
            Some(_) if kind == Kind::Gain => "other",
            _ => "-",
        };
        Verdict {
            what: what.into(),
            on: None,
            agreement,
            rests_on: None,
            paper: Cell::text(format!("{bound}{}", plain(paper, decimals))),
            ours: Cell::estimate(ours, decimals),
            sign,
            ratio: ours.and_then(|ours| ratio(ours.mean, paper)),
        }
    }

    /// A figure of something that was drawn, in the paper once, here many times: it agrees if the paper's lies among eight of
    /// ten of ours.
    pub(crate) fn draws(
        what: impl Into<String>,
        paper: f64,
        decimals: usize,
        ours: &[f64],
    ) -> Verdict {
        let agreement = match quantile(ours, 0.1).zip(quantile(ours, 0.9)) {
            None => Agreement::NotMeasured,
            Some((low, high)) if (low..=high).contains(&paper) => Agreement::Agrees,
            Some(_) => Agreement::Differs,
        };
        Verdict {
            what: what.into(),
            on: None,
            agreement,
            rests_on: None,
            paper: Cell::text(plain(paper, decimals)),
            ours: Cell::text(Cell::draws(ours, decimals).text),
            sign: "-",
            ratio: mean(ours).and_then(|ours| ratio(ours, paper)),
        }
    }

    /// An order from the greatest to the least. `values` holds each name with a value for each repetition, the same for all.
    /// Names without a significant difference stand in one place, with ` ~ ` between them; in the paper's order likewise.
    pub(crate) fn order(
        what: impl Into<String>,
        paper: &[&str],
        values: &[(&str, Vec<f64>)],
    ) -> Verdict {
        Verdict {
            what: what.into(),
            on: None,
            agreement: order_agreement(paper, values),
            rests_on: None,
            paper: Cell::text(paper.join(" > ")),
            ours: Cell::text(order(values)),
            sign: "-",
            ratio: None,
        }
    }

    /// It was fitted to the paper itself.
    #[must_use]
    pub(crate) fn fitted(self) -> Verdict {
        self.resting_on(FITTED)
    }

    /// It rests on something that was fitted to the paper or chosen by it.
    #[must_use]
    pub(crate) fn resting_on(mut self, what: &'static str) -> Verdict {
        self.rests_on = Some(what);
        self
    }

    /// It is of one of several machines.
    #[must_use]
    pub(crate) fn on(mut self, machine: &'static str) -> Verdict {
        self.on = Some(machine);
        self
    }
}

fn have_same_sign(ours: f64, paper: f64) -> bool {
    (ours > 0.0) == (paper > 0.0)
}

fn ratio(ours: f64, paper: f64) -> Option<f64> {
    (have_same_sign(ours, paper) && paper != 0.0).then_some(ours / paper)
}

/// How well a figure agrees with a published one.
fn agreement(kind: Kind, paper: f64, ours: &Estimate) -> Agreement {
    let (low, high) = ours.interval();
    match kind {
        // One repetition shows no sign.
        Kind::Gain if ours.half_width.is_none() || (low <= 0.0 && high >= 0.0) => {
            Agreement::NotShown
        }
        Kind::AtMost if high <= paper => Agreement::Agrees,
        Kind::AtMost if low > paper => Agreement::Differs,
        Kind::AtLeast if low >= paper => Agreement::Agrees,
        Kind::AtLeast if high < paper => Agreement::Differs,
        Kind::AtMost | Kind::AtLeast => Agreement::NotShown,
        Kind::Gain | Kind::Size => match ours.mean / paper {
            _ if !have_same_sign(ours.mean, paper) => Agreement::Differs,
            0.8..=1.25 => Agreement::Agrees,
            0.5..=2.0 => Agreement::Roughly,
            _ => Agreement::SameSign,
        },
    }
}

/// The names in the order of their means. Neighbours without a significant difference share a place.
fn order(values: &[(&str, Vec<f64>)]) -> String {
    let mut sorted: Vec<&(&str, Vec<f64>)> = values.iter().collect();
    sorted.sort_by(|a, b| {
        mean(&b.1)
            .unwrap_or(0.0)
            .total_cmp(&mean(&a.1).unwrap_or(0.0))
    });
    let mut text = String::new();
    for (at, (name, these)) in sorted.iter().enumerate() {
        if at > 0 {
            let is_less = difference(&sorted[at - 1].1, these) == Some(Sign::Greater);
            text.push_str(if is_less { " > " } else { " ~ " });
        }
        text.push_str(name);
    }
    text
}

/// Whether some pairs of the paper's order are significant here, and none is reversed.
fn order_agreement(paper: &[&str], values: &[(&str, Vec<f64>)]) -> Agreement {
    let mut is_shown = false;
    for (at, place) in paper.iter().enumerate() {
        for greater in place.split(" ~ ") {
            for less in paper[at + 1..].iter().flat_map(|place| place.split(" ~ ")) {
                match difference(values_of(greater, values), values_of(less, values)) {
                    Some(Sign::Greater) => is_shown = true,
                    Some(Sign::Less) => return Agreement::Differs,
                    None => {}
                }
            }
        }
    }
    if is_shown {
        Agreement::Agrees
    } else {
        Agreement::NotShown
    }
}

fn values_of<'a>(name: &str, values: &'a [(&str, Vec<f64>)]) -> &'a [f64] {
    let found = values.iter().find(|(one, _)| *one == name);
    found.map_or(&[], |(_, values)| values)
}

/// Which of two is shown to be greater.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Greater,
    Less,
}

/// Whether the one is shown to be greater or less than the other, repetition by repetition. One repetition shows nothing.
fn difference(one: &[f64], other: &[f64]) -> Option<Sign> {
    let differences: Vec<f64> = one
        .iter()
        .zip(other)
        .map(|(one, other)| one - other)
        .collect();
    let estimate = Estimate::of(&differences).filter(|found| found.half_width.is_some())?;
    match estimate.interval() {
        (low, _) if low > 0.0 => Some(Sign::Greater),
        (_, high) if high < 0.0 => Some(Sign::Less),
        _ => None,
    }
}

/// The verdicts of a chapter as a table.
pub(super) fn table(chapter: &str, verdicts: &[Verdict]) -> Table {
    let several = verdicts.iter().any(|verdict| verdict.on.is_some());
    let mut columns = vec!["what"];
    columns.extend(several.then_some("memory"));
    columns.extend(["paper", "here", "sign", "here / paper", "verdict"]);
    Table {
        id: format!("{chapter}-verdicts"),
        caption: "The published figures, and ours with 95 % intervals.".to_owned(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows: verdicts
            .iter()
            .map(|verdict| row(verdict, several))
            .collect(),
    }
}

fn row(verdict: &Verdict, several_machines: bool) -> Vec<Cell> {
    let mut row = vec![Cell::text(verdict.what.clone())];
    row.extend(several_machines.then(|| Cell::text(verdict.on.unwrap_or("-"))));
    let judged = verdict.agreement.text();
    row.extend([
        verdict.paper.clone(),
        verdict.ours.clone(),
        Cell::text(verdict.sign),
        verdict
            .ratio
            .map_or_else(Cell::absent, |ratio| Cell::number(ratio, 2)),
        Cell::text(match verdict.rests_on {
            Some(what) => format!("{judged} ({what})"),
            None => judged.to_owned(),
        }),
    ]);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_agrees_within_a_quarter_and_with_the_same_sign() {
        let agreement = |paper, ours: &[f64]| Verdict::gain("speed-up", paper, 1, ours).agreement;
        assert_eq!(agreement(5.0, &[4.0, 4.2, 4.1]), Agreement::Agrees);
        assert_eq!(agreement(5.0, &[3.0, 3.2, 3.1]), Agreement::Roughly);
        assert_eq!(agreement(5.0, &[1.0, 1.2, 1.1]), Agreement::SameSign);
        assert_eq!(agreement(5.0, &[-4.0, -4.2, -4.1]), Agreement::Differs);
        assert_eq!(agreement(5.0, &[-4.0, 4.2, 0.1]), Agreement::NotShown);
        assert_eq!(agreement(5.0, &[]), Agreement::NotMeasured);
        assert_eq!(agreement(-5.0, &[-4.0, -4.2]), Agreement::Agrees);
        // One repetition has no interval.
        assert_eq!(agreement(5.0, &[4.0]), Agreement::NotShown);
        assert_eq!(
            Verdict::size("time", 5.0, 1, &[4.0]).agreement,
            Agreement::Agrees
        );
        assert_eq!(
            Verdict::size("time", 5.0, 1, &[11.0]).agreement,
            Agreement::SameSign
        );
    }

    #[test]
    fn a_bound_is_held_or_passed() {
        let most = |ours: &[f64]| Verdict::at_most("error", 10.0, 1, ours).agreement;
        assert_eq!(most(&[2.0, 2.1, 1.9]), Agreement::Agrees);
        assert_eq!(most(&[15.0, 15.1, 14.9]), Agreement::Differs);
        assert_eq!(most(&[10.0, 10.1, 9.9]), Agreement::NotShown);
        assert_eq!(most(&[]), Agreement::NotMeasured);
        let least = |ours: &[f64]| Verdict::at_least("mixes", 13.0, 0, ours).agreement;
        assert_eq!(least(&[13.0, 13.0]), Agreement::Agrees);
        assert_eq!(least(&[9.0, 9.0, 8.0]), Agreement::Differs);
    }

    #[test]
    fn a_drawn_figure_lies_among_eight_of_ten_draws_or_not() {
        let draws: Vec<f64> = (0..=100).map(f64::from).collect();
        let agreement = |paper| Verdict::draws("saved", paper, 0, &draws).agreement;
        assert_eq!(
            (agreement(10.0), agreement(50.0), agreement(90.0)),
            (Agreement::Agrees, Agreement::Agrees, Agreement::Agrees)
        );
        assert_eq!(
            (agreement(9.0), agreement(91.0)),
            (Agreement::Differs, Agreement::Differs)
        );
        assert_eq!(
            Verdict::draws("saved", 1.0, 0, &[]).agreement,
            Agreement::NotMeasured
        );
    }

    #[test]
    fn an_order_is_the_same_when_what_is_shown_does_not_contradict_it() {
        let values = [
            ("a", vec![3.0, 3.1, 2.9]),
            ("b", vec![2.0, 2.1, 1.9]),
            ("c", vec![2.01, 2.0, 1.99]),
        ];
        let of = |paper: &[&str]| Verdict::order("speed", paper, &values);
        assert_eq!(of(&["a", "b", "c"]).ours, Cell::text("a > b ~ c"));
        assert_eq!(of(&["a", "b", "c"]).agreement, Agreement::Agrees);
        assert_eq!(of(&["a", "c", "b"]).agreement, Agreement::Agrees);
        assert_eq!(of(&["b", "a", "c"]).agreement, Agreement::Differs);
        let same = [("a", vec![1.0, 2.0]), ("b", vec![2.0, 1.0])];
        assert_eq!(
            Verdict::order("speed", &["a", "b"], &same).agreement,
            Agreement::NotShown
        );
        let once = [("a", vec![2.0]), ("b", vec![1.0])];
        assert_eq!(
            Verdict::order("speed", &["b", "a"], &once).agreement,
            Agreement::NotShown
        );
        // Each neighbour may tie with the next, and the first be greater than the last all the same.
        let chain = [
            ("a", vec![3.0, 3.2, 3.1]),
            ("b", vec![2.0, 4.0, 3.0]),
            ("c", vec![2.9, 3.1, 3.0]),
        ];
        assert_eq!(
            Verdict::order("speed", &["c", "b", "a"], &chain).agreement,
            Agreement::Differs
        );
        assert_eq!(
            Verdict::order("speed", &["b", "a ~ c"], &chain).agreement,
            Agreement::NotShown
        );
    }
}
