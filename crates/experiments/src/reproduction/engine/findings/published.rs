//! A published result, and how ours is held against it.

use super::super::number::plain;
use super::table::FindingCell;
use super::verdict::{Agreement, PublishedComparison, Standing};
use crate::statistics::{MeanEstimate, mean, quantile};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A published result, as the file of its chapter has it.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Published {
    /// Its key, unique in its chapter.
    #[serde(skip)]
    pub(crate) key: String,
    /// What it is, with its unit.
    what: String,
    #[serde(flatten)]
    claim: Claim,
    /// Why it does not count; `None` if it does.
    #[serde(flatten)]
    standing: Option<Standing>,
    /// Decimals of the figures.
    #[serde(default = "one")]
    decimals: usize,
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
    /// A figure of something that was drawn once.
    Draw(f64),
    /// Names from the greatest figure to the least. Those that tie stand in one place, with ` ~ ` between them.
    Order(Vec<String>),
    /// An order of something that was drawn once.
    DrawnOrder(Vec<String>),
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
            Claim::Order(_) | Claim::DrawnOrder(_) => f64::NAN,
        }
    }

    fn order(&self) -> &[String] {
        match &self.claim {
            Claim::Order(order) | Claim::DrawnOrder(order) => order,
            _ => &[],
        }
    }

    /// The names of an order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let places = self.order().iter();
        places.flat_map(|place| place.split(TIE))
    }

    /// The published result in words.
    fn text(&self) -> String {
        let figure = plain(self.figure(), self.decimals);
        match &self.claim {
            Claim::AtMost(_) => format!("at most {figure}"),
            Claim::AtLeast(_) => format!("at least {figure}"),
            Claim::Order(order) | Claim::DrawnOrder(order) => order.join(" > "),
            _ => figure,
        }
    }

    /// Holds a figure against ours, by repetition or draw.
    pub(crate) fn judge(&self, ours: &[f64]) -> PublishedComparison {
        let (mut verdict, middle) = match self.claim {
            Claim::Draw(_) => (self.judge_draws(ours), quantile(ours, 0.5)),
            _ => (self.judge_estimate(MeanEstimate::of(ours)), mean(ours)),
        };
        verdict.ratio = middle.and_then(|ours| ratio(ours, self.figure()));
        verdict
    }

    fn judge_estimate(&self, ours: Option<MeanEstimate>) -> PublishedComparison {
        let Some(ours) = ours else {
            return self.not_measured();
        };
        let cell = FindingCell::estimate(Some(ours), self.decimals);
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

    fn judge_draws(&self, ours: &[f64]) -> PublishedComparison {
        if ours.is_empty() {
            return self.not_measured();
        }
        let paper = self.figure();
        let verdicts = ours.iter().map(|ours| agreement_in_size(*ours, paper));
        let verdicts = DrawVerdicts::of(verdicts);
        let draws = FindingCell::draws(ours, self.decimals).text;
        let cell = format!("{draws}, {}", verdicts.text());
        self.verdict(verdicts.middle(), FindingCell::text(cell))
    }

    /// Holds an order against ours.
    pub(crate) fn judge_order(&self, ours: &ByName<'_>) -> PublishedComparison {
        let agreement = order_agreement(self.order(), ours);
        self.verdict(agreement, FindingCell::text(order(ours)))
    }

    /// Holds an order of something that was drawn once against those of our draws.
    pub(crate) fn judge_drawn_order(&self, draws: &[ByName<'_>]) -> PublishedComparison {
        let orders = draws.iter().map(|ours| order_agreement(self.order(), ours));
        let verdicts = DrawVerdicts::of(orders);
        self.verdict(verdicts.middle(), FindingCell::text(verdicts.text()))
    }

    /// The verdict where nothing was measured.
    pub(crate) fn not_measured(&self) -> PublishedComparison {
        self.verdict(Agreement::NotMeasured, FindingCell::absent())
    }

    fn verdict(&self, agreement: Agreement, ours: FindingCell) -> PublishedComparison {
        PublishedComparison {
            key: self.key.clone(),
            what: self.what.clone(),
            standing: self.standing.clone().unwrap_or_default(),
            agreement,
            paper: FindingCell::text(self.text()),
            ours,
            sign: "-",
            ratio: None,
        }
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
    fn agreement(&self, ours: &MeanEstimate) -> Agreement {
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
    if ours == paper {
        return Agreement::Agrees;
    }
    if !have_same_sign(ours, paper) {
        return Agreement::Differs;
    }
    match ours / paper {
        0.8..=1.25 => Agreement::Agrees,
        0.5..=2.0 => Agreement::Roughly,
        _ => Agreement::SameSign,
    }
}

/// The verdicts of single draws on something that the paper drew once, the best first.
struct DrawVerdicts(Vec<Agreement>);

impl DrawVerdicts {
    fn of(verdicts: impl Iterator<Item = Agreement>) -> DrawVerdicts {
        let mut verdicts: Vec<Agreement> = verdicts.collect();
        verdicts.sort();
        DrawVerdicts(verdicts)
    }

    /// The verdict that at least half of the draws have, or a better one.
    fn middle(&self) -> Agreement {
        match self.0.len() {
            0 => Agreement::NotMeasured,
            draws => self.0[(draws - 1) / 2],
        }
    }

    fn text(&self) -> String {
        let agree = self.0.iter().filter(|one| **one == Agreement::Agrees);
        format!("{} of {} draws agree", agree.count(), self.0.len())
    }
}

/// What stands between names that tie.
const TIE: &str = " ~ ";

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
                _ => TIE,
            });
        }
        text.push_str(name);
        before = Some(figures);
    }
    text
}

/// An order agrees if each of its pairs is shown here, and differs if one is reversed or a tie is none.
fn order_agreement(paper: &[String], ours: &ByName<'_>) -> Agreement {
    let mut agreement = Agreement::Agrees;
    for (at, place) in paper.iter().enumerate() {
        let tied: Vec<&str> = place.split(TIE).collect();
        if !all_tie(&tied, ours) {
            return Agreement::Differs;
        }
        let later = paper[at + 1..].iter();
        for less in later.flat_map(|place| place.split(TIE)) {
            for greater in &tied {
                match difference(&ours[greater], &ours[less]) {
                    Ordering::Greater => {}
                    Ordering::Equal => agreement = Agreement::NotShown,
                    Ordering::Less => return Agreement::Differs,
                }
            }
        }
    }
    agreement
}

/// Whether no two of these names are shown to differ.
fn all_tie(names: &[&str], ours: &ByName<'_>) -> bool {
    names.iter().all(|one| {
        let mut others = names.iter();
        others.all(|other| difference(&ours[one], &ours[other]) == Ordering::Equal)
    })
}

/// Whether the one is shown to be greater or less than the other, repetition by repetition. One repetition shows nothing.
fn difference(one: &[f64], other: &[f64]) -> Ordering {
    let mut differences = Vec::new();
    for (one, other) in one.iter().zip(other) {
        differences.push(one - other);
    }
    let Some(estimate) = MeanEstimate::of(&differences) else {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn published(claim: Claim) -> Published {
        Published {
            key: "key".to_owned(),
            what: "figure".to_owned(),
            claim,
            standing: None,
            decimals: 1,
        }
    }

    fn judge(claim: Claim, ours: &[f64]) -> Agreement {
        published(claim).judge(ours).agreement
    }

    fn places(paper: &[&str]) -> Vec<String> {
        paper.iter().map(|place| (*place).to_owned()).collect()
    }

    fn judge_order<const N: usize>(
        paper: &[&str],
        ours: &[(&str, Vec<f64>); N],
    ) -> PublishedComparison {
        let claim = Claim::Order(places(paper));
        published(claim).judge_order(&ByName::from(ours.clone()))
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
    fn a_drawn_figure_has_the_verdict_of_half_of_the_draws() {
        let around = |middle: f64, width: f64| -> Vec<f64> {
            let steps = (-50..=50).map(f64::from);
            steps.map(|step| middle + width * step / 50.0).collect()
        };
        // 40 to 60: all lie within a quarter of 50, and 70 of 101 within a quarter of 58.
        let narrow = around(50.0, 10.0);
        assert_eq!(judge(Claim::Draw(50.0), &narrow), Agreement::Agrees);
        assert_eq!(judge(Claim::Draw(58.0), &narrow), Agreement::Agrees);
        // 20 to 100: 42 of 101 lie within a quarter of 60, and 88 within a factor of two.
        let wide = around(60.0, 40.0);
        assert_eq!(judge(Claim::Draw(60.0), &wide), Agreement::Roughly);
        let verdict = published(Claim::Draw(60.0)).judge(&wide);
        let within = |near: &dyn Fn(&f64) -> bool| wide.iter().filter(|draw| near(draw)).count();
        let agree = within(&|draw| (48.0..=75.0).contains(draw));
        let text = format!("60.0 (28.0 to 92.0), {agree} of 101 draws agree");
        assert_eq!(verdict.ours, FindingCell::text(text));
        // Their middle is near the paper's, and none is: a verdict is that of draws.
        let apart = [10.0, 20.0, 90.0, 70.0];
        assert_eq!(judge(Claim::Draw(45.0), &apart), Agreement::Roughly);
        // -100 to 100: half have the other sign.
        let scattered = around(0.0, 100.0);
        assert_eq!(judge(Claim::Draw(40.0), &scattered), Agreement::Differs);
        assert_eq!(judge(Claim::Draw(1.0), &[]), Agreement::NotMeasured);
        // Counts: none is none.
        let none = [0.0, 0.0, 0.0, 1.0];
        assert_eq!(judge(Claim::Draw(0.0), &none), Agreement::Agrees);
    }

    #[test]
    fn a_drawn_order_has_the_verdict_of_half_of_the_draws() {
        let yes = ByName::from([("a", vec![3.0, 3.1]), ("b", vec![1.0, 1.1])]);
        let no = ByName::from([("a", vec![1.0, 1.1]), ("b", vec![3.0, 3.1])]);
        let of = |share: usize| {
            let draws: Vec<ByName<'_>> = (0..20)
                .map(|draw| if draw < share { &yes } else { &no }.clone())
                .collect();
            let claim = Claim::DrawnOrder(places(&["a", "b"]));
            published(claim).judge_drawn_order(&draws)
        };
        assert_eq!(of(10).agreement, Agreement::Agrees);
        assert_eq!(of(9).agreement, Agreement::Differs);
        assert_eq!(of(1).ours, FindingCell::text("1 of 20 draws agree"));
    }

    #[test]
    fn an_order_agrees_when_each_pair_is_shown_and_ties_are_ties() {
        let values = [
            ("a", vec![3.0, 3.1, 2.9]),
            ("b", vec![2.0, 2.1, 1.9]),
            ("c", vec![2.01, 2.0, 1.99]),
        ];
        let of = |paper: &[&str]| judge_order(paper, &values);
        assert_eq!(of(&["a", "b", "c"]).ours, FindingCell::text("a > b ~ c"));
        assert_eq!(of(&["a", "b ~ c"]).agreement, Agreement::Agrees);
        assert_eq!(of(&["a", "b"]).agreement, Agreement::Agrees);
        // What ties here does not show the order of the paper.
        assert_eq!(of(&["a", "b", "c"]).agreement, Agreement::NotShown);
        assert_eq!(of(&["b", "a", "c"]).agreement, Agreement::Differs);
        // What ties in the paper differs here.
        assert_eq!(of(&["a ~ b", "c"]).agreement, Agreement::Differs);
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
    }

    #[test]
    fn the_file_of_a_chapter_says_what_does_not_count() {
        let standing = |entry: &str| {
            let text = format!("what = \"w\"\nsize = 1.0\n{entry}");
            let published: Published = toml::from_str(&text).unwrap();
            published.judge(&[1.0]).standing
        };
        assert_eq!(standing(""), Standing::Counts);
        assert_eq!(standing("forced = \"a\""), Standing::Forced("a".into()));
        assert_eq!(standing("fitted = \"b\""), Standing::Fitted("b".into()));
        assert_eq!(
            standing("not-judged = \"c\""),
            Standing::NotJudged("c".into())
        );
    }
}
