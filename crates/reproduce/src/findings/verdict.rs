//! A published figure held against ours.

use super::{Cell, Table, plain};
use crate::stats::Estimate;
use serde::Serialize;

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
        /// Whether it may be gained or lost, so that its sign is a result.
        signed: bool,
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
        /// Whether a pair is shown to stand the other way round.
        contradicted: bool,
        /// Whether any pair is shown to stand as in the paper.
        shown: bool,
    },
}

/// How well ours agrees with a published result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agreement {
    /// Same sign, and within a factor of two; or the same order.
    Agrees,
    /// Same sign, and not within a factor of two.
    SameSign,
    /// The interval holds zero, so that no sign is shown.
    NotShown,
    /// Another sign, or another order.
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
            Agreement::NotShown => "no sign shown",
            Agreement::Differs => "differs",
            Agreement::NotMeasured => "not measured",
        }
    }
}

impl Verdict {
    /// A figure that can only be positive.
    pub fn size(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        let ours = Estimate::of(ours);
        Verdict::Figure { what: what.into(), paper, decimals, ours, signed: false, rests_on: None }
    }

    /// A figure that can be gained or lost.
    pub fn gain(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        let ours = Estimate::of(ours);
        Verdict::Figure { what: what.into(), paper, decimals, ours, signed: true, rests_on: None }
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
            let is_less = at == 0 || {
                let differences: Vec<f64> = ours[at - 1].1.iter().zip(*these).map(|(a, b)| a - b).collect();
                Estimate::of(&differences).is_some_and(|difference| difference.interval().0 > 0.0)
            };
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
                let differences: Vec<f64> = greater.iter().zip(less).map(|(a, b)| a - b).collect();
                if let Some(estimate) = Estimate::of(&differences) {
                    shown |= estimate.interval().0 > 0.0;
                    contradicted |= estimate.interval().1 < 0.0;
                }
            }
        }
        let paper = paper.iter().map(|name| (*name).to_owned()).collect();
        Verdict::Order { what: what.into(), paper, ours: places, contradicted, shown }
    }

    /// How well ours agrees.
    pub fn agreement(&self) -> Agreement {
        match self {
            Verdict::Figure { ours: None, .. } => Agreement::NotMeasured,
            Verdict::Figure { paper, ours: Some(ours), signed, .. } => {
                let (low, high) = ours.interval();
                if *signed && low <= 0.0 && high >= 0.0 {
                    Agreement::NotShown
                } else if (ours.mean > 0.0) != (*paper > 0.0) {
                    Agreement::Differs
                } else if (0.5..=2.0).contains(&(ours.mean / paper)) {
                    Agreement::Agrees
                } else {
                    Agreement::SameSign
                }
            }
            Verdict::Order { contradicted: true, .. } => Agreement::Differs,
            Verdict::Order { shown: true, .. } => Agreement::Agrees,
            Verdict::Order { .. } => Agreement::NotShown,
        }
    }

    fn row(&self) -> Vec<Cell> {
        let agreement = self.agreement().text();
        match self {
            Verdict::Figure { what, paper, decimals, ours, signed, rests_on } => {
                let sign = match ours {
                    Some(_) if !signed => "-",
                    Some(_) if self.agreement() == Agreement::NotShown => "not shown",
                    Some(ours) if (ours.mean > 0.0) == (*paper > 0.0) => "same",
                    Some(_) => "other",
                    None => "-",
                };
                let has_ratio = ours.filter(|ours| (ours.mean > 0.0) == (*paper > 0.0) && *paper != 0.0);
                let ratio = has_ratio
                    .map_or(Cell::Absent("no common sign".to_owned()), |ours| Cell::number(ours.mean / paper, 2));
                let judged = rests_on.map_or_else(|| agreement.to_owned(), |what| format!("{agreement} ({what})"));
                vec![
                    Cell::text(what.clone()),
                    Cell::text(plain(*paper, *decimals)),
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
        // Without repetitions there is no interval.
        assert_eq!(agreement(5.0, &[4.0]), Agreement::Agrees);
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
        // Each neighbour may tie with the next, and the first be greater than the last all the same.
        let chain = [("a", vec![3.0, 3.2, 3.1]), ("b", vec![2.0, 4.0, 3.0]), ("c", vec![2.9, 3.1, 3.0])];
        assert_eq!(Verdict::order("speed", &["c", "b", "a"], &chain).agreement(), Agreement::Differs);
        assert_eq!(Verdict::order("speed", &["b", "a ~ c"], &chain).agreement(), Agreement::NotShown);
    }
}
