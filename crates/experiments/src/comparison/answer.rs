//! What a comparison found, as data: the figures of the candidates, and how they compare with the baseline.

use crate::comparison::design::{Design, Means, Trial};
use crate::comparison::figures::{ELAPSED, Outcome};
use crate::comparison::frequency::{LEAST_RUNS, MEAN_GHZ, doubt};
use crate::comparison::store::Manifest;
use crate::comparison::verdict::{Comparison, compare};
use crate::statistics::median;
use cosched_core::metric::{Better, METRICS, Metric, Needs, metric};
use cosched_report::{MachineLoad, doubt_of_short_runs, origin_doubts};
use serde::Serialize;
use serde::ser::SerializeStruct as _;
use std::collections::{BTreeMap, BTreeSet};

/// Metrics that are judged unless others are asked for, where they have values.
const USUAL: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// Figures of a candidate in one metric over the whole blocks: of each block the geometric mean over the mixes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

/// A metric by which candidates are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judge {
    /// Its name in files.
    pub name: &'static str,
    /// What it is, in one line.
    pub meaning: &'static str,
    /// Which direction is better.
    pub better: Better,
}

impl Judge {
    fn of(metric: &'static Metric) -> Judge {
        Judge {
            name: metric.name,
            meaning: metric.meaning,
            better: metric.better,
        }
    }

    /// The time of the whole program.
    const ELAPSED: Judge = Judge {
        name: ELAPSED,
        meaning: "time from the start of the program that runs the batch to its end",
        better: Better::Lower,
    };

    /// The metric of that name.
    pub fn named(name: &str) -> Option<Judge> {
        if name == ELAPSED {
            Some(Judge::ELAPSED)
        } else {
            metric(name).map(Judge::of)
        }
    }
}

/// What is known of one metric.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The metric.
    pub metric: Judge,
    /// Of each candidate its figures; `None` where it has none.
    pub spreads: Vec<Option<Spread>>,
    /// Of each candidate but the baseline, how it compares over all mixes.
    pub over_all: Vec<Comparison>,
    /// The same of each mix, if there are several.
    pub by_mix: Vec<Comparison>,
}

/// What a comparison found.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was compared.
    pub manifest: Manifest,
    /// The runs, also those of blocks that are not whole, by which nothing is judged.
    pub outcomes: Vec<Outcome>,
    /// The metrics that were judged.
    pub judged: Vec<Judged>,
    /// What else is to be known of it, in sentences.
    pub notes: Vec<String>,
}

/// The metrics to judge: those that were asked for, or the usual ones of which some run has a value. Beside other programs the
/// time of whole programs comes first.
fn metrics(manifest: &Manifest, outcomes: &[Outcome]) -> Vec<Judge> {
    if !manifest.metrics.is_empty() {
        let mut known = BTreeSet::new();
        let wanted = manifest.metrics.iter().filter(|name| known.insert(*name));
        return wanted.filter_map(|name| Judge::named(name)).collect();
    }
    let has_others = manifest
        .design
        .candidates
        .iter()
        .any(|one| matches!(one.means, Means::Command(_)));
    let has_values = |metric: &&Metric| {
        metric.needs == Needs::Nothing
            || outcomes
                .iter()
                .any(|outcome| outcome.figure(metric.name).is_some())
    };
    let usual = METRICS
        .iter()
        .filter(|metric| USUAL.contains(&metric.name))
        .filter(has_values)
        .map(Judge::of);
    has_others
        .then_some(Judge::ELAPSED)
        .into_iter()
        .chain(usual)
        .collect()
}

/// The figures of a candidate with these mixes over the blocks in which it ran with all of them.
fn spread(outcomes: &[Outcome], mixes: usize, candidate: usize, name: &str) -> Option<Spread> {
    let mut blocks: BTreeMap<u32, (usize, f64)> = BTreeMap::new();
    for outcome in outcomes
        .iter()
        .filter(|outcome| outcome.trial.candidate == candidate)
    {
        if let Some(figure) = outcome.figure(name) {
            let block = blocks.entry(outcome.trial.block).or_default();
            block.0 += 1;
            // With several mixes a figure of zero makes the mean zero, as it should.
            block.1 += if mixes == 1 {
                figure
            } else {
                libm::log(figure.max(0.0))
            };
        }
    }
    let whole = blocks.into_values().filter(|(count, _)| *count == mixes);
    let mut figures: Vec<f64> = whole
        .map(|(count, sum)| {
            if mixes == 1 {
                sum
            } else {
                libm::exp(sum / count as f64)
            }
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let n = figures.len();
    let (&least, &greatest) = (figures.first()?, figures.last()?);
    Some(Spread {
        least,
        median: 0.5 * (figures[(n - 1) / 2] + figures[n / 2]),
        greatest,
    })
}

/// The blocks in which every candidate ran with every mix.
fn whole_blocks(design: &Design, outcomes: &[Outcome]) -> BTreeSet<u32> {
    let runs = design.mixes.len() * design.candidates.len();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    outcomes
        .iter()
        .for_each(|outcome| *counts.entry(outcome.trial.block).or_default() += 1);
    counts
        .into_iter()
        .filter(|&(_, count)| count == runs)
        .map(|(block, _)| block)
        .collect()
}

/// The runs of those blocks: figures and changes are of the same runs.
fn of_whole_blocks(design: &Design, outcomes: &[Outcome]) -> Vec<Outcome> {
    let whole = whole_blocks(design, outcomes);
    outcomes
        .iter()
        .filter(|outcome| whole.contains(&outcome.trial.block))
        .cloned()
        .collect()
}

/// Doubts runs whose CPUs ran at another frequency than in the other runs of the same candidate with the same mix.
fn doubt_frequencies(outcomes: &mut [Outcome]) {
    let mut alike: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    let key = |outcome: &Outcome| (outcome.trial.mix, outcome.trial.candidate);
    for outcome in outcomes.iter() {
        alike
            .entry(key(outcome))
            .or_default()
            .extend(outcome.figure(MEAN_GHZ));
    }
    for outcome in outcomes {
        let known = alike
            .get(&key(outcome))
            .filter(|known| known.len() >= LEAST_RUNS);
        if let Some((ghz, known)) = outcome.figure(MEAN_GHZ).zip(known) {
            outcome.doubts.extend(doubt(ghz, median(known)));
        }
    }
}

/// What makes runs doubtful that are too short to be judged one by one: those of a candidate with a mix together.
fn short_runs_doubts(design: &Design, outcomes: &[Outcome]) -> Vec<String> {
    let mut alike: BTreeMap<(usize, usize), Vec<&MachineLoad>> = BTreeMap::new();
    for outcome in outcomes {
        alike
            .entry((outcome.trial.mix, outcome.trial.candidate))
            .or_default()
            .extend(&outcome.load);
    }
    let told = |((mix, candidate), loads): ((usize, usize), Vec<&MachineLoad>)| {
        let doubt = doubt_of_short_runs(loads)?;
        Some(format!(
            "{} with {}: {doubt}",
            design.candidates[candidate].name, design.mixes[mix].name
        ))
    };
    alike.into_iter().filter_map(told).collect()
}

impl Answer {
    /// Judges runs, in whatever order they were made.
    pub fn new(manifest: Manifest, mut outcomes: Vec<Outcome>) -> Answer {
        outcomes.sort_by_key(|outcome| outcome.trial);
        doubt_frequencies(&mut outcomes);
        let least = manifest.wish.worth;
        let design = &manifest.design;
        let mixes = design.mixes.len();
        let whole = of_whole_blocks(design, &outcomes);
        let others: Vec<usize> = (0..design.candidates.len())
            .filter(|&at| at != design.baseline)
            .collect();
        let judge = |metric: Judge| {
            let against = |mix: Option<usize>| {
                let outcomes = &whole;
                others.iter().map(move |&candidate| {
                    compare(design, outcomes, candidate, metric.name, mix, least)
                })
            };
            Judged {
                metric,
                spreads: (0..design.candidates.len())
                    .map(|at| spread(&whole, mixes, at, metric.name))
                    .collect(),
                over_all: against(None).collect(),
                by_mix: if mixes > 1 {
                    (0..mixes).flat_map(|mix| against(Some(mix))).collect()
                } else {
                    Vec::new()
                },
            }
        };
        let judged = metrics(&manifest, &outcomes)
            .into_iter()
            .map(judge)
            .collect();
        let mut notes = origin_doubts(
            outcomes
                .iter()
                .filter_map(|outcome| outcome.origin.as_ref()),
        );
        notes.extend(short_runs_doubts(design, &outcomes));
        Answer {
            manifest,
            outcomes,
            judged,
            notes,
        }
    }

    /// Whether jobs of some run did not end well, or a command failed.
    pub fn failed(&self) -> bool {
        self.outcomes.iter().any(Outcome::has_failed)
    }

    /// Blocks in which every candidate ran with every mix.
    pub fn whole_blocks(&self) -> usize {
        whole_blocks(&self.manifest.design, &self.outcomes).len()
    }

    /// The number of runs of blocks that are not whole.
    pub fn left_out(&self) -> usize {
        let whole = whole_blocks(&self.manifest.design, &self.outcomes);
        self.outcomes
            .iter()
            .filter(|outcome| !whole.contains(&outcome.trial.block))
            .count()
    }

    /// What makes figures doubtful, each with the runs that it is of; runs with failed jobs first.
    pub fn doubts(&self) -> Vec<(String, Vec<Trial>)> {
        let mut all: Vec<(String, Vec<Trial>)> = Vec::new();
        let mut add =
            |what: String, trial: Trial| match all.iter_mut().find(|(known, _)| *known == what) {
                Some((_, trials)) => trials.push(trial),
                None => all.push((what, vec![trial])),
            };
        for outcome in &self.outcomes {
            if outcome.failed.is_some_and(|failed| failed > 0) {
                add(
                    "jobs did not end well; it is compared only with a run in which as many did not".to_owned(),
                    outcome.trial,
                );
            }
        }
        let odd: BTreeSet<Trial> = self
            .judged
            .iter()
            .filter(|judged| judged.metric.name == "turnaround_s")
            .flat_map(|judged| {
                if judged.by_mix.is_empty() {
                    &judged.over_all
                } else {
                    &judged.by_mix
                }
            })
            .flat_map(|one| {
                let trial = |&block| Trial {
                    block,
                    mix: one.mix.unwrap_or(0),
                    candidate: one.candidate,
                };
                one.odd_blocks.iter().map(trial)
            })
            .collect();
        for trial in odd {
            add(
                "its turnaround is far from that of the other blocks".to_owned(),
                trial,
            );
        }
        for outcome in &self.outcomes {
            for doubt in &outcome.doubts {
                add(doubt.clone(), outcome.trial);
            }
        }
        all
    }
}

impl Serialize for Comparison {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Comparison", 10)?;
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
        object.serialize_field("verdict", &self.verdict.map(|verdict| verdict.code()))?;
        object.serialize_field("more_blocks", &self.more_blocks)?;
        object.end()
    }
}
