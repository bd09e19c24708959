//! What the runs say: is a candidate better than the baseline, by how much, and is that sure?
//!
//! The runs of a block are compared with each other, because they are near each other in time. The figure of a block is the
//! mean over the mixes of the logarithm of candidate / baseline: a ratio of 2 and one of 1/2 cancel, and long mixes count
//! no more than short ones. Blocks are independent, so the interval is that of the mean of the blocks' figures.
//!
//! The interval that is shown contains the true ratio in 95 of 100 cases. A verdict needs the 99 % interval: several metrics
//! are judged at once, and with 95 % one of them would often be wrong by chance.

use crate::comparison::design::{CandidateRun, ComparisonDesign};
use crate::comparison::figures::RunFigures;
use crate::statistics::{MeanEstimate, is_sure, median, sample_deviation};
use cosched_core::metric::{Better, metric};
use serde::Serialize;
use serde::ser::SerializeStruct as _;
use std::collections::BTreeMap;

/// How a candidate compares with the baseline in one metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CandidateVerdict {
    /// It is better.
    Better,
    /// It is worse.
    Worse,
    /// No difference is shown. There may be one that is too small to be seen.
    NoDifference,
    /// There are too few figures, or they differ too much.
    CantSay,
}

/// A ratio of a candidate's figure to the baseline's, less 1: -0.1 is a tenth less.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RelativeChange {
    /// The geometric mean over the blocks and mixes.
    pub mean: f64,
    /// The ends of the 95 % interval; `None` with fewer than two blocks.
    pub interval: Option<(f64, f64)>,
}

/// What more blocks would show.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerdictMore {
    /// The number of further blocks; 0 if these blocks would have shown it.
    pub blocks: u32,
    /// The difference that they would probably show, as a share of the baseline.
    pub share: f64,
}

/// How a candidate compares with the baseline in one metric, over all mixes or with one.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The metric's name.
    pub metric: String,
    /// The candidate's position.
    pub candidate: usize,
    /// The mix; `None` for all together.
    pub mix: Option<usize>,
    /// Blocks in which both have figures for all mixes.
    pub blocks: usize,
    /// The change from the baseline, or why there is none.
    pub change: Result<RelativeChange, String>,
    /// The only verdict.
    pub verdict: CandidateVerdict,
    /// Without a difference: what a few more blocks would show; `None` if they would show none of interest.
    pub more: Option<VerdictMore>,
    /// Blocks whose ratio is far from that of the others.
    pub odd_blocks: Vec<u32>,
}

impl Serialize for Comparison {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Comparison", 11)?;
        object.serialize_field("metric", &self.metric)?;
        object.serialize_field("candidate", &self.candidate)?;
        object.serialize_field("mix", &self.mix)?;
        object.serialize_field("blocks", &self.blocks)?;
        let change = self.change.as_ref();
        object.serialize_field("change", &change.ok().map(|change| change.mean))?;
        object.serialize_field("change_absent", &change.err())?;
        let ends = change.ok().and_then(|change| change.interval);
        object.serialize_field("low", &ends.map(|ends| ends.0))?;
        object.serialize_field("high", &ends.map(|ends| ends.1))?;
        object.serialize_field("verdict", &self.verdict)?;
        object.serialize_field("more_blocks", &self.more.map(|more| more.blocks))?;
        object.serialize_field("more_share", &self.more.map(|more| more.share))?;
        object.end()
    }
}

/// Distance of an odd block's logarithm from the median, in standard deviations as estimated from the median deviation.
const ODD: f64 = 5.0;
/// Minimum distance of an odd block's logarithm from the median.
const LEAST_ODD: f64 = 0.02;
/// The normal quantiles of a 99 % interval, and of the chance of 80 % that a difference is seen.
const SEEN: f64 = 2.576 + 0.842;
/// Differences of interest, as shares of the baseline.
const WORTH: [f64; 4] = [0.02, 0.05, 0.1, 0.2];
/// Maximum number of further blocks that is suggested.
const MOST_MORE: f64 = 50.0;
/// The greatest ratio of the ends of an interval that says something.
const MOST_WIDE: f64 = 1.5;

/// The figure of each block: the mean over these mixes of the logarithm of candidate / baseline. Only blocks count in which
/// both have positive figures for all mixes, and did the same.
fn logarithms(
    outcomes: &[RunFigures],
    mixes: &[usize],
    (candidate, baseline): (usize, usize),
    metric: &str,
) -> BTreeMap<u32, f64> {
    let mut sums: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for ((block, _), both) in pairs(outcomes, mixes, [candidate, baseline]) {
        let [Some(of_candidate), Some(of_baseline)] = both else {
            continue;
        };
        let figures = positive(of_candidate, metric).zip(positive(of_baseline, metric));
        if let Some((here, there)) = figures
            && of_candidate.did_as_much_as(of_baseline)
        {
            let sum = sums.entry(block).or_default();
            sum.0 += 1;
            sum.1 += libm::log(here / there);
        }
    }
    sums.retain(|_, (count, _)| *count == mixes.len());
    sums.into_iter()
        .map(|(block, (count, sum))| (block, sum / count as f64))
        .collect()
}

fn positive(outcome: &RunFigures, metric: &str) -> Option<f64> {
    let figure = outcome.figure(metric)?;
    (figure > 0.0 && figure.is_finite()).then_some(figure)
}

/// The runs of two candidates with these mixes, by block and mix. One that is compared with itself has one run in each block.
fn pairs<'a>(
    outcomes: &'a [RunFigures],
    mixes: &[usize],
    who: [usize; 2],
) -> BTreeMap<(u32, usize), [Option<&'a RunFigures>; 2]> {
    let mut pairs: BTreeMap<(u32, usize), [Option<&RunFigures>; 2]> = BTreeMap::new();
    for outcome in outcomes {
        let CandidateRun {
            block,
            mix,
            candidate,
        } = outcome.trial;
        for (side, one) in who.into_iter().enumerate() {
            if one == candidate && mixes.contains(&mix) {
                pairs.entry((block, mix)).or_default()[side] = Some(outcome);
            }
        }
    }
    pairs
}

/// Blocks whose logarithm is far from the median.
fn odd_blocks(logs: &BTreeMap<u32, f64>) -> Vec<u32> {
    if logs.len() < 4 {
        return Vec::new();
    }
    let mut values: Vec<f64> = logs.values().copied().collect();
    let middle = median(&values);
    for value in &mut values {
        *value = (*value - middle).abs();
    }
    let most = (ODD * 1.4826 * median(&values)).max(LEAST_ODD);
    let mut odd: Vec<u32> = logs.keys().copied().collect();
    odd.retain(|block| (logs[block] - middle).abs() > most);
    odd
}

/// Why there is nothing to compare.
fn why_none(outcomes: &[RunFigures], mixes: &[usize], who: [usize; 2], metric: &str) -> String {
    for outcome in outcomes {
        let CandidateRun { mix, candidate, .. } = outcome.trial;
        if !who.contains(&candidate) || !mixes.contains(&mix) {
            continue;
        }
        match (outcome.figure(metric), outcome.absent.get(metric)) {
            (None, Some(why)) => return why.clone(),
            (None, None) if outcome.is_command() => {
                return "of another program only the time of the whole is known".to_owned();
            }
            (Some(figure), _) if figure <= 0.0 => return "a value of zero has no ratio".to_owned(),
            _ => {}
        }
    }
    for both in pairs(outcomes, mixes, who).into_values() {
        let [Some(a), Some(b)] = both else { continue };
        if !a.did_as_much_as(b) {
            return if a.is_command() || b.is_command() {
                "the command or jobs failed, so it is not known that both did the same".to_owned()
            } else {
                "more jobs failed in one than in the other".to_owned()
            };
        }
    }
    "no block is whole".to_owned()
}

/// Compares a candidate with the baseline.
pub fn compare(
    design: &ComparisonDesign,
    outcomes: &[RunFigures],
    candidate: usize,
    name: &str,
    mix: Option<usize>,
) -> Comparison {
    let mixes: Vec<usize> = match mix {
        Some(mix) => vec![mix],
        None => (0..design.mixes.len()).collect(),
    };
    let logs = logarithms(outcomes, &mixes, (candidate, design.baseline), name);
    let values: Vec<f64> = logs.values().copied().collect();
    let mut comparison = Comparison {
        metric: name.to_owned(),
        candidate,
        mix,
        blocks: values.len(),
        change: Err(String::new()),
        verdict: CandidateVerdict::CantSay,
        more: None,
        odd_blocks: odd_blocks(&logs),
    };
    let Some(estimate) = MeanEstimate::of(&values) else {
        let who = [candidate, design.baseline];
        comparison.change = Err(why_none(outcomes, &mixes, who, name));
        return comparison;
    };
    let (low, high) = estimate.interval();
    comparison.change = Ok(RelativeChange {
        mean: libm::expm1(estimate.mean),
        interval: estimate
            .half_width
            .map(|_| (libm::expm1(low), libm::expm1(high))),
    });
    comparison.verdict = verdict(&values, &estimate, name);
    if comparison.verdict == CandidateVerdict::NoDifference {
        comparison.more = more(&values);
    }
    comparison
}

/// The verdict on logarithms of candidate / baseline.
fn verdict(logs: &[f64], estimate: &MeanEstimate, name: &str) -> CandidateVerdict {
    let lower_is_better = metric(name).is_none_or(|metric| metric.better == Better::Lower);
    match is_sure(logs) {
        None => CandidateVerdict::CantSay,
        Some(true) if (estimate.mean < 0.0) == lower_is_better => CandidateVerdict::Better,
        Some(true) => CandidateVerdict::Worse,
        Some(false) if is_wide(estimate) || is_likely(estimate) => CandidateVerdict::CantSay,
        Some(false) => CandidateVerdict::NoDifference,
    }
}

/// Whether the interval of a logarithm is too wide to say anything.
fn is_wide(estimate: &MeanEstimate) -> bool {
    let (low, high) = estimate.interval();
    high - low > libm::log(MOST_WIDE)
}

/// Whether a difference is likely, though not significant: the interval excludes 0.
fn is_likely(estimate: &MeanEstimate) -> bool {
    let (low, high) = estimate.interval();
    low > 0.0 || high < 0.0
}

/// The smallest difference that a few more blocks would show.
fn more(logs: &[f64]) -> Option<VerdictMore> {
    let deviation = sample_deviation(logs)?;
    for share in WORTH {
        let wanted = SEEN * deviation / libm::log1p(share);
        let more = (wanted * wanted).ceil() - logs.len() as f64;
        if more <= MOST_MORE {
            let blocks = more.max(0.0) as u32;
            return Some(VerdictMore { blocks, share });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::design::{ComparedCandidate, ComparedMix};
    use cosched_core::Rng;

    fn design(mixes: usize) -> ComparisonDesign {
        let mix = |at: usize| ComparedMix {
            name: format!("mix{at}"),
            file: Some(format!("mix{at}.toml")),
            is_list: false,
        };
        ComparisonDesign {
            mixes: (0..mixes).map(mix).collect(),
            candidates: vec![
                ComparedCandidate::policy("linux"),
                ComparedCandidate::policy("even"),
            ],
            baseline: 0,
            on: "host".to_owned(),
            seed: 1,
            options: Vec::new(),
        }
    }

    fn outcome(block: u32, mix: usize, candidate: usize, name: &str, value: f64) -> RunFigures {
        let figures = [(name.to_owned(), value)].into();
        RunFigures {
            trial: CandidateRun {
                block,
                mix,
                candidate,
            },
            figures,
            policy: Some("p".to_owned()),
            ..RunFigures::default()
        }
    }

    /// Nearly normal with deviation 1.
    fn normal(rng: &mut Rng) -> f64 {
        (0..12)
            .map(|_| rng.below(1 << 32) as f64 / 4_294_967_296.0)
            .sum::<f64>()
            - 6.0
    }

    /// Times of both in blocks that differ by a third among each other, with this noise of each run; `ratio` is what the
    /// candidate takes in truth.
    fn times(rng: &mut Rng, blocks: u32, mixes: usize, ratio: f64, noise: f64) -> Vec<RunFigures> {
        let mut all = Vec::new();
        for block in 1..=blocks {
            for mix in 0..mixes {
                let slow = 10.0 * (mix + 1) as f64 * libm::exp(0.3 * normal(rng));
                all.push(outcome(
                    block,
                    mix,
                    0,
                    "turnaround_s",
                    slow * libm::exp(noise * normal(rng)),
                ));
                all.push(outcome(
                    block,
                    mix,
                    1,
                    "turnaround_s",
                    slow * ratio * libm::exp(noise * normal(rng)),
                ));
            }
        }
        all
    }

    #[test]
    fn a_difference_is_seen_through_what_blocks_differ_by() {
        let mut rng = Rng::new(1);
        let all = times(&mut rng, 7, 2, 0.9, 0.01);
        let seen = compare(&design(2), &all, 1, "turnaround_s", None);
        let change = seen.change.unwrap();
        let (low, high) = change.interval.unwrap();
        assert!(low < -0.1 && -0.1 < high && high - low < 0.04, "{change:?}");
        assert_eq!(
            (seen.verdict, seen.blocks, seen.more),
            (CandidateVerdict::Better, 7, None)
        );
        let of_one = compare(&design(2), &all, 1, "turnaround_s", Some(1));
        assert_eq!(
            (of_one.verdict, of_one.blocks),
            (CandidateVerdict::Better, 7)
        );
        // The same ratio of a metric of which more is better.
        let mut other = all.clone();
        for outcome in &mut other {
            outcome.figures = [("stp".to_owned(), outcome.figures["turnaround_s"])].into();
        }
        assert_eq!(
            compare(&design(2), &other, 1, "stp", None).verdict,
            CandidateVerdict::Worse
        );
    }

    #[test]
    fn one_that_is_compared_with_its_equal_shows_no_difference() {
        let mut rng = Rng::new(2);
        for blocks in [3, 7, 12] {
            let shown = (0..400).filter(|_| {
                let all = times(&mut rng, blocks, 1, 1.0, 0.05);
                let found = compare(&design(1), &all, 1, "turnaround_s", None);
                matches!(
                    found.verdict,
                    CandidateVerdict::Better | CandidateVerdict::Worse
                )
            });
            let shown = shown.count();
            assert!(shown <= 20, "{blocks} blocks: {shown} of 400");
        }
        // It is not blind: a difference of as much as the noise is seen in most of twelve blocks.
        let seen = (0..200).filter(|_| {
            let all = times(&mut rng, 12, 1, 0.93, 0.05);
            compare(&design(1), &all, 1, "turnaround_s", None).verdict == CandidateVerdict::Better
        });
        assert!(seen.count() > 120);
    }

    /// The share of comparisons of a candidate with its equal in which one of these metrics, whose noise is independent, has a verdict
    /// for or against it, and in which one has at least an interval without zero ("likely, but not sure").
    fn false_alarms(metrics: &[&str], comparisons: u32) -> (f64, f64) {
        let mut rng = Rng::new(11);
        let (mut sure, mut likely) = (0, 0);
        for _ in 0..comparisons {
            let mut all = Vec::new();
            for (block, candidate) in (1..=7).flat_map(|block| [(block, 0), (block, 1)]) {
                let figures = metrics
                    .iter()
                    .map(|name| ((*name).to_owned(), libm::exp(0.05 * normal(&mut rng))));
                let trial = CandidateRun {
                    block,
                    mix: 0,
                    candidate,
                };
                all.push(RunFigures {
                    trial,
                    figures: figures.collect(),
                    ..RunFigures::default()
                });
            }
            let found: Vec<Comparison> = metrics
                .iter()
                .map(|name| compare(&design(1), &all, 1, name, None))
                .collect();
            let is_shown = |one: &Comparison| {
                matches!(
                    one.verdict,
                    CandidateVerdict::Better | CandidateVerdict::Worse
                )
            };
            let is_off = |one: &Comparison| {
                let (low, high) = one.change.as_ref().unwrap().interval.unwrap();
                low > 0.0 || high < 0.0
            };
            sure += u32::from(found.iter().any(is_shown));
            likely += u32::from(found.iter().any(is_off));
        }
        (
            f64::from(sure) / f64::from(comparisons),
            f64::from(likely) / f64::from(comparisons),
        )
    }

    #[test]
    fn false_alarms_are_as_rare_as_the_intervals_say() {
        let (sure, likely) = false_alarms(&["turnaround_s"], 2_000);
        // One in a hundred, and one in twenty: chance moves each of 2,000 by no more than a third of that.
        assert!(sure <= 0.015 && likely <= 0.065, "{sure} {likely}");
        // Of 100 such comparisons, 95 show no difference at all.
        let (_, likely) = false_alarms(&["turnaround_s"], 100);
        assert!(likely <= 0.05, "{likely}");
        let (sure, likely) =
            false_alarms(&["turnaround_s", "unfairness", "antt", "energy_j"], 2_000);
        // Of four that are judged at once, one is likelier to be wrong: 1 - 0.99^4 and 1 - 0.95^4.
        assert!(
            (0.02..=0.055).contains(&sure) && (0.15..=0.22).contains(&likely),
            "{sure} {likely}"
        );
    }

    #[test]
    fn the_blocks_that_it_takes_are_about_right() {
        let mut rng = Rng::new(3);
        let all = times(&mut rng, 200, 1, 1.0, 0.05);
        let more = |all| compare(&design(1), all, 1, "turnaround_s", None).more;
        // The logarithm of a pair deviates by 0.05 sqrt 2: (3.418 x 0.0707 / 0.0198)^2 = 149 blocks in all would show 2 %.
        let few = more(&all[..2 * 120]).unwrap();
        assert!(few.share == 0.02 && few.blocks <= 50, "{few:?}");
        let noisy = times(&mut rng, 30, 1, 1.0, 0.1);
        let noisy = more(&noisy).unwrap();
        assert!(noisy.share == 0.05 && noisy.blocks <= 90, "{noisy:?}");
        let many = more(&all).unwrap();
        assert_eq!((many.blocks, many.share), (0, 0.02));
        // Nobody makes thousands of blocks.
        let wild = times(&mut rng, 5, 1, 1.0, 0.4);
        assert_eq!(more(&wild), None);
    }

    #[test]
    fn what_can_not_be_compared_says_why() {
        let mut all = vec![
            outcome(1, 0, 0, "antt", 2.0),
            outcome(1, 0, 1, "turnaround_s", 2.0),
        ];
        all[1]
            .absent
            .insert("antt".to_owned(), "no solo time".to_owned());
        let none = compare(&design(1), &all, 1, "antt", None);
        assert_eq!(
            (none.change, none.verdict, none.blocks),
            (Err("no solo time".to_owned()), CandidateVerdict::CantSay, 0)
        );
        all[1].policy = None;
        all[1].absent.clear();
        let none = compare(&design(1), &all, 1, "antt", None);
        assert_eq!(
            none.change,
            Err("of another program only the time of the whole is known".to_owned())
        );
        let zero = [
            outcome(1, 0, 0, "max_wait_s", 0.0),
            outcome(1, 0, 1, "max_wait_s", 2.0),
        ];
        let none = compare(&design(1), &zero, 1, "max_wait_s", None);
        assert_eq!(none.change, Err("a value of zero has no ratio".to_owned()));
        // Whoever fails early is not fast.
        let mut failing = vec![
            outcome(1, 0, 0, "turnaround_s", 9.0),
            outcome(1, 0, 1, "turnaround_s", 0.1),
        ];
        (failing[0].failed, failing[1].failed) = (0, 3);
        let told =
            |failing: &[RunFigures]| compare(&design(1), failing, 1, "turnaround_s", None).change;
        assert_eq!(
            told(&failing),
            Err("more jobs failed in one than in the other".to_owned())
        );
        failing[1].failed = 0;
        assert!(told(&failing).is_ok());
        // How much of the batch a command did that failed, nobody knows.
        (failing[1].failed, failing[1].policy) = (1, None);
        for failed in [0, 1] {
            failing[0].failed = failed;
            assert!(
                told(&failing)
                    .unwrap_err()
                    .contains("it is not known that both did the same")
            );
        }
        failing[1].failed = 0;
        assert!(
            told(&failing).is_err(),
            "a job failed, and it did not in the other program"
        );
        // A block that lacks a mix is left out, and one block has no interval.
        let part = [outcome(1, 0, 0, "antt", 2.0), outcome(1, 0, 1, "antt", 3.0)];
        assert_eq!(
            compare(&design(2), &part, 1, "antt", None).change,
            Err("no block is whole".to_owned())
        );
        let one = compare(&design(1), &part, 1, "antt", None);
        assert_eq!(
            (one.change, one.verdict),
            (
                Ok(RelativeChange {
                    mean: 0.5,
                    interval: None
                }),
                CandidateVerdict::CantSay
            )
        );
    }

    #[test]
    fn an_odd_block_is_named() {
        let mut rng = Rng::new(4);
        let mut all = times(&mut rng, 9, 1, 1.0, 0.003);
        assert_eq!(
            compare(&design(1), &all, 1, "turnaround_s", None).odd_blocks,
            [0u32; 0]
        );
        let value = all[9].figures.get_mut("turnaround_s").unwrap();
        *value *= 1.3;
        assert_eq!(
            all[9].trial,
            CandidateRun {
                block: 5,
                mix: 0,
                candidate: 1
            }
        );
        assert_eq!(
            compare(&design(1), &all, 1, "turnaround_s", None).odd_blocks,
            [5]
        );
    }
}
