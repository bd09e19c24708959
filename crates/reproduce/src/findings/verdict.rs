//! A published figure held against ours.

use super::{Cell, Table, plain};
use crate::stats::Estimate;
use serde::Serialize;

/// What a published figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A figure that can only be positive.
    Size,
    /// A figure that can be gained or lost, so that its sign is a result.
    Gain,
    /// The most that a figure may be.
    AtMost,
}

/// A published result and ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// A figure.
    Figure {
        /// What it is, with its unit.
        what: String,
        /// The published figure.
        paper: f64,
        /// Decimals that are shown.
        decimals: usize,
        /// Ours; `None` if it was not measured.
        ours: Option<Estimate>,
        /// What the published figure says.
        kind: Kind,
        /// How well ours agrees.
        agreement: Agreement,
        /// What it rests on that was fitted to the paper; a figure that is `fitted` itself proves nothing.
        rests_on: Option<&'static str>,
    },
    /// An order, from the greatest to the least.
    Order {
        /// Of what.
        what: String,
        /// The published order.
        paper: Vec<String>,
        /// Ours; names whose intervals overlap stand in one string with `~` between them.
        ours: Vec<String>,
        /// How well ours agrees: it differs when a pair is shown to stand the other way round, and agrees when none is and any
        /// pair is shown to stand as in the paper.
        agreement: Agreement,
    },
}

/// How well ours agrees with a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Same sign, and within a factor of two; or within the bound; or the same order.
    Agrees,
    /// Same sign, and not within a factor of two.
    SameSign,
    /// The interval holds zero or the bound, or there is only one repetition, so that nothing is shown.
    NotShown,
    /// Another sign, beyond the bound, or another order.
    Differs,
    /// It was not measured.
    NotMeasured,
}

impl Agreement {
    /// It in a few words.
    pub fn text(self) -> &'static str {
        match self {
            Agreement::Agrees => "agrees",
            Agreement::SameSign => "beyond a factor of two",
            Agreement::NotShown => "not shown",
            Agreement::Differs => "differs",
            Agreement::NotMeasured => "not measured",
        }
    }
}

impl Verdict {
    /// A figure that can only be positive.
    pub fn size(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what.into(), Kind::Size, paper, decimals, ours)
    }

    /// A figure that can be gained or lost.
    pub fn gain(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what.into(), Kind::Gain, paper, decimals, ours)
    }

    /// A figure of which the paper tells only what it does not exceed.
    pub fn at_most(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what.into(), Kind::AtMost, paper, decimals, ours)
    }

    fn figure(what: String, kind: Kind, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        let ours = Estimate::of(ours);
        let agreement = ours.map_or(Agreement::NotMeasured, |ours| agreement(kind, paper, &ours));
        Verdict::Figure { what, paper, decimals, ours, kind, agreement, rests_on: None }
    }

    /// It was fitted to the paper itself.
    #[must_use]
    pub fn fitted(self) -> Verdict {
        self.resting_on("fitted")
    }

    /// It rests on something that was fitted to the paper.
    #[must_use]
    pub fn resting_on(mut self, what: &'static str) -> Verdict {
        if let Verdict::Figure { rests_on, .. } = &mut self {
            *rests_on = Some(what);
        }
        self
    }

    /// Whether it was fitted to the paper itself, and so proves nothing.
    pub fn is_fitted(&self) -> bool {
        matches!(self, Verdict::Figure { rests_on: Some("fitted"), .. })
    }

    /// An order from the greatest to the least. In ours, neighbours of which it is not shown which is greater stand in one
    /// place. `values` holds each name with a value for each repetition; the repetitions of all are the same. Names that the
    /// paper does not order stand in one place as well, with ` ~ ` between them.
    pub fn order(what: impl Into<String>, paper: &[&str], values: &[(&str, Vec<f64>)]) -> Verdict {
        let mut ours: Vec<(&str, &[f64])> = values.iter().map(|(name, values)| (*name, values.as_slice())).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        ours.sort_by(|a, b| mean(b.1).total_cmp(&mean(a.1)));
        let mut places: Vec<String> = Vec::new();
        for (at, (name, these)) in ours.iter().enumerate() {
            let is_less = at == 0 || sign(ours[at - 1].1, these) == Some(Sign::Greater);
            match places.last_mut() {
                Some(place) if !is_less => {
                    place.push_str(" ~ ");
                    place.push_str(name);
                }
                _ => places.push((*name).to_owned()),
            }
        }
        let of = |name: &str| values.iter().find(|(one, _)| *one == name).map(|(_, values)| values.as_slice());
        let (mut contradicted, mut shown) = (false, false);
        for (at, place) in paper.iter().enumerate() {
            let below = paper[at + 1..].iter().flat_map(|place| place.split(" ~ "));
            for (greater, less) in below.flat_map(|less| place.split(" ~ ").map(move |greater| (greater, less))) {
                let Some((greater, less)) = of(greater).zip(of(less)) else { continue };
                let sign = sign(greater, less);
                shown |= sign == Some(Sign::Greater);
                contradicted |= sign == Some(Sign::Less);
            }
        }
        let paper = paper.iter().map(|name| (*name).to_owned()).collect();
        let agreement = match (contradicted, shown) {
            (true, _) => Agreement::Differs,
            (false, true) => Agreement::Agrees,
            (false, false) => Agreement::NotShown,
        };
        Verdict::Order { what: what.into(), paper, ours: places, agreement }
    }

    /// How well ours agrees.
    pub fn agreement(&self) -> Agreement {
        match self {
            Verdict::Figure { agreement, .. } | Verdict::Order { agreement, .. } => *agreement,
        }
    }

    fn row(&self) -> Vec<Cell> {
        let agreement = self.agreement().text();
        match self {
            Verdict::Figure { what, paper, decimals, ours, kind, agreement: judged, rests_on } => {
                let sign = match ours {
                    Some(_) if *kind != Kind::Gain => "-",
                    Some(_) if *judged == Agreement::NotShown => "not shown",
                    Some(ours) if (ours.mean > 0.0) == (*paper > 0.0) => "same",
                    Some(_) => "other",
                    None => "-",
                };
                let has_ratio = ours.filter(|ours| (ours.mean > 0.0) == (*paper > 0.0) && *paper != 0.0);
                let ratio = has_ratio
                    .map_or(Cell::Absent("no common sign".to_owned()), |ours| Cell::number(ours.mean / paper, 2));
                let judged = rests_on.map_or_else(|| agreement.to_owned(), |what| format!("{agreement} ({what})"));
                let bound = if *kind == Kind::AtMost { "at most " } else { "" };
                vec![
                    Cell::text(what.clone()),
                    Cell::text(format!("{bound}{}", plain(*paper, *decimals))),
                    Cell::estimate(*ours, *decimals, false),
                    Cell::text(sign),
                    ratio,
                    Cell::text(judged),
                ]
            }
            Verdict::Order { what, paper, ours, .. } => vec![
                Cell::text(what.clone()),
                Cell::text(paper.join(" > ")),
                Cell::text(ours.join(" > ")),
                Cell::text("-"),
                Cell::Absent("an order".to_owned()),
                Cell::text(agreement),
            ],
        }
    }
}

/// How well a figure agrees with a published one.
fn agreement(kind: Kind, paper: f64, ours: &Estimate) -> Agreement {
    let (low, high) = ours.interval();
    let same_sign = (ours.mean > 0.0) == (paper > 0.0);
    match kind {
        // One repetition shows no sign.
        Kind::Gain if ours.half_width.is_none() || (low <= 0.0 && high >= 0.0) => Agreement::NotShown,
        Kind::AtMost if high <= paper => Agreement::Agrees,
        Kind::AtMost if low > paper => Agreement::Differs,
        Kind::AtMost => Agreement::NotShown,
        Kind::Gain | Kind::Size if !same_sign => Agreement::Differs,
        Kind::Gain | Kind::Size if (0.5..=2.0).contains(&(ours.mean / paper)) => Agreement::Agrees,
        Kind::Gain | Kind::Size => Agreement::SameSign,
    }
}

/// Which of two is shown to be greater.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Greater,
    Less,
}

/// Whether the one is shown to be greater or less than the other, repetition by repetition. One repetition shows nothing.
fn sign(one: &[f64], other: &[f64]) -> Option<Sign> {
    let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
    let difference = Estimate::of(&differences).filter(|difference| difference.half_width.is_some())?;
    let (low, high) = difference.interval();
    if low > 0.0 {
        Some(Sign::Greater)
    } else if high < 0.0 {
        Some(Sign::Less)
    } else {
        None
    }
}

/// The verdicts of a chapter as a table.
pub(super) fn table(chapter: &str, verdicts: &[Verdict]) -> Table {
    Table {
        id: format!("{chapter}-verdicts"),
        caption: "The published figures, and ours with 95 % intervals.".to_owned(),
        columns: ["what", "paper", "here", "sign", "here / paper", "verdict"].map(str::to_owned).to_vec(),
        rows: verdicts.iter().map(Verdict::row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_agrees_within_a_factor_of_two_and_with_the_same_sign() {
        let agreement = |paper, ours: &[f64]| Verdict::gain("speed-up", paper, 1, ours).agreement();
        assert_eq!(agreement(5.0, &[4.0, 4.2, 4.1]), Agreement::Agrees);
        assert_eq!(agreement(5.0, &[1.0, 1.2, 1.1]), Agreement::SameSign);
        assert_eq!(agreement(5.0, &[-4.0, -4.2, -4.1]), Agreement::Differs);
        assert_eq!(agreement(5.0, &[-4.0, 4.2, 0.1]), Agreement::NotShown);
        assert_eq!(agreement(5.0, &[]), Agreement::NotMeasured);
        assert_eq!(agreement(-5.0, &[-4.0, -4.2]), Agreement::Agrees);
        // One repetition has no interval.
        assert_eq!(agreement(5.0, &[4.0]), Agreement::NotShown);
        assert_eq!(Verdict::size("time", 5.0, 1, &[4.0]).agreement(), Agreement::Agrees);
        assert_eq!(Verdict::size("time", 5.0, 1, &[11.0]).agreement(), Agreement::SameSign);
    }

    #[test]
    fn a_bound_is_held_or_passed() {
        let agreement = |ours: &[f64]| Verdict::at_most("error", 10.0, 1, ours).agreement();
        assert_eq!(agreement(&[2.0, 2.1, 1.9]), Agreement::Agrees);
        assert_eq!(agreement(&[15.0, 15.1, 14.9]), Agreement::Differs);
        assert_eq!(agreement(&[10.0, 10.1, 9.9]), Agreement::NotShown);
        assert_eq!(agreement(&[]), Agreement::NotMeasured);
    }

    #[test]
    fn an_order_is_the_same_when_what_is_shown_does_not_contradict_it() {
        let values = [("a", vec![3.0, 3.1, 2.9]), ("b", vec![2.0, 2.1, 1.9]), ("c", vec![2.01, 2.0, 1.99])];
        let of = |paper: &[&str]| Verdict::order("speed", paper, &values);
        let Verdict::Order { ours, .. } = of(&["a", "b", "c"]) else { panic!("an order") };
        assert_eq!(ours, ["a", "b ~ c"]);
        assert_eq!(of(&["a", "b", "c"]).agreement(), Agreement::Agrees);
        assert_eq!(of(&["a", "c", "b"]).agreement(), Agreement::Agrees);
        assert_eq!(of(&["b", "a", "c"]).agreement(), Agreement::Differs);
        let same = [("a", vec![1.0, 2.0]), ("b", vec![2.0, 1.0])];
        assert_eq!(Verdict::order("speed", &["a", "b"], &same).agreement(), Agreement::NotShown);
        let once = [("a", vec![2.0]), ("b", vec![1.0])];
        assert_eq!(Verdict::order("speed", &["b", "a"], &once).agreement(), Agreement::NotShown);
        // Each neighbour may tie with the next, and the first be greater than the last all the same.
        let chain = [("a", vec![3.0, 3.2, 3.1]), ("b", vec![2.0, 4.0, 3.0]), ("c", vec![2.9, 3.1, 3.0])];
        assert_eq!(Verdict::order("speed", &["c", "b", "a"], &chain).agreement(), Agreement::Differs);
        assert_eq!(Verdict::order("speed", &["b", "a ~ c"], &chain).agreement(), Agreement::NotShown);
    }
}
