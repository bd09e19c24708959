//! A published result held against ours.

use super::{Cell, Table, plain};
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
    /// The two.
    pub result: Published,
}

/// The published result beside ours.
#[derive(Clone, Debug, PartialEq)]
pub enum Published {
    /// A figure.
    Figure {
        /// What the published figure says.
        kind: Kind,
        /// The published figure.
        paper: f64,
        /// Decimals that are shown.
        decimals: usize,
        /// Ours; `None` if it was not measured.
        ours: Option<Estimate>,
    },
    /// A figure that depends on what was drawn, which the paper does not tell.
    Draws {
        /// The published figure.
        paper: f64,
        /// Decimals that are shown.
        decimals: usize,
        /// The mean over our draws.
        mean: f64,
        /// The 10th and the 90th percentile.
        range: (f64, f64),
    },
    /// An order, from the greatest to the least.
    Order {
        /// The published order.
        paper: Vec<String>,
        /// Ours; names whose intervals overlap stand in one string with `~` between them.
        ours: Vec<String>,
    },
}

/// What a published figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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
    /// It in a few words.
    pub fn text(self) -> &'static str {
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
    fn new(what: impl Into<String>, agreement: Agreement, result: Published) -> Verdict {
        Verdict {
            what: what.into(),
            on: None,
            agreement,
            rests_on: None,
            result,
        }
    }

    /// A figure that can only be positive.
    pub fn size(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what, Kind::Size, paper, decimals, ours)
    }

    /// A figure that can be gained or lost.
    pub fn gain(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what, Kind::Gain, paper, decimals, ours)
    }

    /// A figure of which the paper tells only what it does not exceed.
    pub fn at_most(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        Verdict::figure(what, Kind::AtMost, paper, decimals, ours)
    }

    /// A figure of which the paper tells only what it reaches.
    pub fn at_least(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
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
        Verdict::new(
            what,
            agreement,
            Published::Figure {
                kind,
                paper,
                decimals,
                ours,
            },
        )
    }

    /// A figure of something that was drawn, in the paper once, here many times: it agrees where the paper's lies among eight of
    /// ten of ours.
    pub fn draws(what: impl Into<String>, paper: f64, decimals: usize, ours: &[f64]) -> Verdict {
        let range = quantile(ours, 0.1).zip(quantile(ours, 0.9));
        let Some((mean, range)) = mean(ours).zip(range) else {
            return Verdict::figure(what, Kind::Gain, paper, decimals, &[]);
        };
        let agreement = if (range.0..=range.1).contains(&paper) {
            Agreement::Agrees
        } else {
            Agreement::Differs
        };
        Verdict::new(
            what,
            agreement,
            Published::Draws {
                paper,
                decimals,
                mean,
                range,
            },
        )
    }

    /// It was fitted to the paper itself.
    #[must_use]
    pub fn fitted(self) -> Verdict {
        self.resting_on(FITTED)
    }

    /// It rests on something that was fitted to the paper or chosen by it.
    #[must_use]
    pub fn resting_on(mut self, what: &'static str) -> Verdict {
        self.rests_on = Some(what);
        self
    }

    /// It is of one of several machines.
    #[must_use]
    pub fn on(mut self, machine: &'static str) -> Verdict {
        self.on = Some(machine);
        self
    }

    /// An order from the greatest to the least. In ours, neighbours of which it is not shown which is greater stand in one
    /// place. `values` holds each name with a value for each repetition; the repetitions of all are the same. Names that the
    /// paper does not order stand in one place as well, with ` ~ ` between them.
    pub fn order(what: impl Into<String>, paper: &[&str], values: &[(&str, Vec<f64>)]) -> Verdict {
        let mut ours: Vec<(&str, &[f64])> = values
            .iter()
            .map(|(name, values)| (*name, values.as_slice()))
            .collect();
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
        let of = |name: &str| {
            values
                .iter()
                .find(|(one, _)| *one == name)
                .map(|(_, values)| values.as_slice())
        };
        let (mut contradicted, mut shown) = (false, false);
        for (at, place) in paper.iter().enumerate() {
            let below = paper[at + 1..].iter().flat_map(|place| place.split(" ~ "));
            for (greater, less) in
                below.flat_map(|less| place.split(" ~ ").map(move |greater| (greater, less)))
            {
                let Some((greater, less)) = of(greater).zip(of(less)) else {
                    continue;
                };
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
        Verdict::new(
            what,
            agreement,
            Published::Order {
                paper,
                ours: places,
            },
        )
    }

    /// The published result, ours, whether the sign is the same, and the ratio.
    fn cells(&self) -> [Cell; 4] {
        let no_sign = || Cell::text("-");
        let ratio = |ours: f64, paper: f64| {
            if (ours > 0.0) == (paper > 0.0) && paper != 0.0 {
                Cell::number(ours / paper, 2)
            } else {
                Cell::Absent("no common sign".to_owned())
            }
        };
        match &self.result {
            Published::Figure {
                kind,
                paper,
                decimals,
                ours,
            } => {
                let bound = match kind {
                    Kind::AtMost => "at most ",
                    Kind::AtLeast => "at least ",
                    Kind::Size | Kind::Gain => "",
                };
                let sign = match ours {
                    Some(_) if *kind != Kind::Gain => "-",
                    Some(_) if self.agreement == Agreement::NotShown => "not shown",
                    Some(ours) if (ours.mean > 0.0) == (*paper > 0.0) => "same",
                    Some(_) => "other",
                    None => "-",
                };
                let absent = || Cell::Absent("not measured".to_owned());
                [
                    Cell::text(format!("{bound}{}", plain(*paper, *decimals))),
                    Cell::estimate(*ours, *decimals, false),
                    Cell::text(sign),
                    ours.map_or_else(absent, |ours| ratio(ours.mean, *paper)),
                ]
            }
            Published::Draws {
                paper,
                decimals,
                mean,
                range,
            } => {
                let [low, high] = [range.0, range.1].map(|end| plain(end, *decimals));
                let ours = Cell::text(format!("{} ({low} to {high})", plain(*mean, *decimals)));
                [
                    Cell::text(plain(*paper, *decimals)),
                    ours,
                    no_sign(),
                    ratio(*mean, *paper),
                ]
            }
            Published::Order { paper, ours } => {
                let ratio = Cell::Absent("an order".to_owned());
                [
                    Cell::text(paper.join(" > ")),
                    Cell::text(ours.join(" > ")),
                    no_sign(),
                    ratio,
                ]
            }
        }
    }
}

/// How well a figure agrees with a published one.
fn agreement(kind: Kind, paper: f64, ours: &Estimate) -> Agreement {
    let (low, high) = ours.interval();
    let same_sign = (ours.mean > 0.0) == (paper > 0.0);
    let ratio = ours.mean / paper;
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
        Kind::Gain | Kind::Size if !same_sign => Agreement::Differs,
        Kind::Gain | Kind::Size if (0.8..=1.25).contains(&ratio) => Agreement::Agrees,
        Kind::Gain | Kind::Size if (0.5..=2.0).contains(&ratio) => Agreement::Roughly,
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
    let differences: Vec<f64> = one
        .iter()
        .zip(other)
        .map(|(one, other)| one - other)
        .collect();
    let difference =
        Estimate::of(&differences).filter(|difference| difference.half_width.is_some())?;
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
    let several = verdicts.iter().any(|verdict| verdict.on.is_some());
    let row = |verdict: &Verdict| {
        let mut row = vec![Cell::text(verdict.what.clone())];
        row.extend(several.then(|| Cell::text(verdict.on.unwrap_or("-"))));
        row.extend(verdict.cells());
        let judged = verdict.agreement.text();
        row.push(Cell::text(match verdict.rests_on {
            Some(what) => format!("{judged} ({what})"),
            None => judged.to_owned(),
        }));
        row
    };
    let mut columns = vec!["what"];
    columns.extend(several.then_some("memory"));
    columns.extend(["paper", "here", "sign", "here / paper", "verdict"]);
    Table {
        id: format!("{chapter}-verdicts"),
        caption: "The published figures, and ours with 95 % intervals.".to_owned(),
        columns: columns.into_iter().map(str::to_owned).collect(),
        rows: verdicts.iter().map(row).collect(),
    }
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
        let Published::Order { ours, .. } = of(&["a", "b", "c"]).result else {
            panic!("an order")
        };
        assert_eq!(ours, ["a", "b ~ c"]);
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
