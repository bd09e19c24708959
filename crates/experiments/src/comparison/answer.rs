//! What a comparison found, as data: the figures of the candidates, and how they compare with the baseline.

use crate::comparison::design::{CandidateRun, ComparisonDesign};
use crate::comparison::figures::RunFigures;
use crate::comparison::store::Manifest;
use crate::comparison::verdict::{Comparison, compare};
use crate::statistics::{median, quantile};
use cosched_core::metric::{METRICS, Metric, Needs, metric};
use std::collections::{BTreeMap, BTreeSet};

/// Metrics judged by default, where they have values.
const USUAL: [&str; 4] = ["turnaround_s", "unfairness", "antt", "energy_j"];

/// The spread of a candidate's figures in one metric over the whole blocks. The figure of a block is the geometric mean over
/// the mixes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FigureSpread {
    /// The least.
    pub least: f64,
    /// The median.
    pub median: f64,
    /// The greatest.
    pub greatest: f64,
}

/// The verdicts in one metric.
#[derive(Clone, Debug)]
pub struct MetricVerdicts {
    /// The metric.
    pub metric: &'static Metric,
    /// The figures of each candidate; `None` if it has none.
    pub spreads: Vec<Option<FigureSpread>>,
    /// The comparison of each other candidate with the baseline, over all mixes.
    pub over_all: Vec<Comparison>,
    /// The same for each mix, if there are several.
    pub by_mix: Vec<Comparison>,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonResult {
    /// What was compared.
    pub manifest: Manifest,
    /// The machine; empty if no run was made.
    pub machine: String,
    /// All runs. Blocks that are not whole are not judged.
    pub outcomes: Vec<RunFigures>,
    /// The metrics that were judged.
    pub judged: Vec<MetricVerdicts>,
    /// Notes for the reader, in sentences.
    pub notes: Vec<String>,
}

/// The metrics to judge: those that were asked for, or the usual ones of which some run has a value.
fn metrics(manifest: &Manifest, outcomes: &[RunFigures]) -> Vec<&'static Metric> {
    if !manifest.metrics.is_empty() {
        let mut known = BTreeSet::new();
        let wanted = manifest.metrics.iter().filter(|name| known.insert(*name));
        return wanted.filter_map(|name| metric(name)).collect();
    }
    METRICS
        .iter()
        .filter(|metric| USUAL.contains(&metric.name))
        .filter(|metric| {
            matches!(metric.needs, Needs::Nothing | Needs::Waits) || has_values(metric, outcomes)
        })
        .collect()
}

fn has_values(metric: &Metric, outcomes: &[RunFigures]) -> bool {
    outcomes
        .iter()
        .any(|outcome| outcome.figure(metric.name).is_some())
}

/// The figures of a candidate with these mixes over the blocks in which it ran with all of them.
fn spread(
    outcomes: &[RunFigures],
    mixes: usize,
    candidate: usize,
    name: &str,
) -> Option<FigureSpread> {
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
    let mut figures: Vec<f64> = Vec::new();
    for (count, sum) in blocks.into_values() {
        if count == mixes {
            figures.push(if mixes == 1 {
                sum
            } else {
                libm::exp(sum / count as f64)
            });
        }
    }
    Some(FigureSpread {
        least: quantile(&figures, 0.0)?,
        median: median(&figures),
        greatest: quantile(&figures, 1.0)?,
    })
}

/// The blocks in which every candidate ran with every mix.
fn whole_blocks(design: &ComparisonDesign, outcomes: &[RunFigures]) -> BTreeSet<u32> {
    let runs = design.mixes.len() * design.candidates.len();
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for outcome in outcomes {
        let count = counts.entry(outcome.trial.block).or_default();
        *count += 1;
    }
    counts.retain(|_, count| *count == runs);
    counts.into_keys().collect()
}

/// The runs of those blocks: figures and changes are of the same runs.
fn of_whole_blocks(design: &ComparisonDesign, outcomes: &[RunFigures]) -> Vec<RunFigures> {
    let whole = whole_blocks(design, outcomes);
    outcomes
        .iter()
        .filter(|outcome| whole.contains(&outcome.trial.block))
        .cloned()
        .collect()
}

impl ComparisonResult {
    /// Judges runs, in whatever order they were made.
    pub fn new(manifest: Manifest, mut outcomes: Vec<RunFigures>) -> ComparisonResult {
        outcomes.sort_by_key(|outcome| outcome.trial);
        let whole = of_whole_blocks(&manifest.design, &outcomes);
        let judged = metrics(&manifest, &outcomes)
            .into_iter()
            .map(|metric| judge(&manifest.design, &whole, metric))
            .collect();
        let machine = outcomes.first().map(|outcome| outcome.machine.clone());
        ComparisonResult {
            notes: Vec::new(),
            machine: machine.unwrap_or_default(),
            manifest,
            outcomes,
            judged,
        }
    }

    /// Whether a job or a command failed in some run.
    pub fn failed(&self) -> bool {
        self.outcomes.iter().any(|outcome| outcome.failed > 0)
    }

    /// Blocks in which every candidate ran with every mix.
    pub fn whole_blocks(&self) -> usize {
        whole_blocks(&self.manifest.design, &self.outcomes).len()
    }

    /// Half the width of the widest interval in the first metric over all mixes, in per cent of the baseline; `None` if one is
    /// not known.
    pub fn widest_half_percent(&self) -> Option<f64> {
        let mut widest: f64 = 0.0;
        for comparison in &self.judged.first()?.over_all {
            let (low, high) = comparison.change.as_ref().ok()?.interval?;
            widest = widest.max(100.0 * (high - low) / 2.0);
        }
        Some(widest)
    }

    /// The number of runs of blocks that are not whole.
    pub fn left_out(&self) -> usize {
        let whole = whole_blocks(&self.manifest.design, &self.outcomes);
        self.outcomes
            .iter()
            .filter(|outcome| !whole.contains(&outcome.trial.block))
            .count()
    }

    /// Reasons to doubt figures, each with its runs.
    pub fn doubts(&self) -> Vec<(String, Vec<CandidateRun>)> {
        let mut all = Vec::new();
        for outcome in &self.outcomes {
            for doubt in &outcome.doubts {
                add(&mut all, doubt, outcome.trial);
            }
        }
        for trial in self.odd_runs() {
            let what = "its turnaround is far from that of the other blocks";
            add(&mut all, what, trial);
        }
        all
    }

    /// The runs whose turnaround is far from that of the other blocks.
    fn odd_runs(&self) -> BTreeSet<CandidateRun> {
        let mut odd = BTreeSet::new();
        for judged in &self.judged {
            if judged.metric.name != "turnaround_s" {
                continue;
            }
            let each = if judged.by_mix.is_empty() {
                &judged.over_all
            } else {
                &judged.by_mix
            };
            for one in each {
                odd.extend(one.odd_blocks.iter().map(|&block| CandidateRun {
                    block,
                    mix: one.mix.unwrap_or(0),
                    candidate: one.candidate,
                }));
            }
        }
        odd
    }
}

/// Adds a run to those with the same doubt.
fn add(all: &mut Vec<(String, Vec<CandidateRun>)>, doubt: &str, trial: CandidateRun) {
    match all.iter_mut().find(|(known, _)| known == doubt) {
        Some((_, trials)) => trials.push(trial),
        None => all.push((doubt.to_owned(), vec![trial])),
    }
}

/// Judges the candidates by one metric.
fn judge(
    design: &ComparisonDesign,
    whole: &[RunFigures],
    metric: &'static Metric,
) -> MetricVerdicts {
    let mixes = design.mixes.len();
    let mut judged = MetricVerdicts {
        metric,
        spreads: (0..design.candidates.len())
            .map(|at| spread(whole, mixes, at, metric.name))
            .collect(),
        over_all: against_baseline(design, whole, metric, None),
        by_mix: Vec::new(),
    };
    if mixes > 1 {
        for mix in 0..mixes {
            judged
                .by_mix
                .extend(against_baseline(design, whole, metric, Some(mix)));
        }
    }
    judged
}

/// Compares each candidate with the baseline, with one mix or over all.
fn against_baseline(
    design: &ComparisonDesign,
    whole: &[RunFigures],
    metric: &Metric,
    mix: Option<usize>,
) -> Vec<Comparison> {
    design
        .others()
        .map(|candidate| compare(design, whole, candidate, metric.name, mix))
        .collect()
}
