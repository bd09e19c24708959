//! Trials over mixes, candidates and seeds, and figures over them.

use super::error::Result;
use super::lab::Lab;
use super::measured::{Figure, TrialMeasurements};
use super::mixes::ExperimentMix;
use super::trial::{TrialCandidate, simulate};
use crate::statistics::{geometric_mean, mean, over};
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The results of trials: for each mix and candidate one for each seed.
#[derive(Debug)]
pub(crate) struct Grid {
    results: Vec<Vec<Vec<TrialMeasurements>>>,
    pub(crate) mixes: usize,
    pub(crate) seeds: usize,
}

/// How a figure compares with that of the base: ours, then the base's.
type Change = fn(f64, f64) -> f64;

/// Ours as a share of the base's.
pub(crate) fn share(ours: f64, base: f64) -> f64 {
    ours / base
}

/// By how many per cent the base has more: how much faster ours is, where the figure is a time.
pub(crate) fn gain(ours: f64, base: f64) -> f64 {
    100.0 * (base / ours - 1.0)
}

/// By how many per cent ours has less.
pub(crate) fn saved(ours: f64, base: f64) -> f64 {
    100.0 * (1.0 - ours / base)
}

/// By how many per cent ours has more.
pub(crate) fn lost(ours: f64, base: f64) -> f64 {
    100.0 * (ours / base - 1.0)
}

impl Grid {
    /// Simulates all of them. The same seed means the same jobs for every candidate, so that their results are pairs.
    pub(crate) fn simulate(
        lab: &Lab<'_>,
        machine: &Arc<MachineSpec>,
        mixes: &[ExperimentMix],
        candidates: &[TrialCandidate],
        seeds: &[u64],
    ) -> Result<Grid> {
        let mut cells = Vec::new();
        for mix in 0..mixes.len() {
            for seed in seeds {
                cells.push((mix, *seed));
            }
        }
        let runs = lab.map(&cells, |&(mix, seed)| {
            simulate(machine, &mixes[mix], candidates, seed)
        })?;
        let mut results = vec![vec![Vec::new(); candidates.len()]; mixes.len()];
        for ((mix, _), by_candidate) in cells.into_iter().zip(runs) {
            for (candidate, run) in by_candidate.into_iter().enumerate() {
                results[mix][candidate].push(run);
            }
        }
        Ok(Grid {
            results,
            mixes: mixes.len(),
            seeds: seeds.len(),
        })
    }

    /// Simulates them with few seeds, for experiments on causes and others with large differences.
    pub(crate) fn few(
        lab: &Lab<'_>,
        machine: &Arc<MachineSpec>,
        mixes: &[ExperimentMix],
        candidates: &[TrialCandidate],
    ) -> Result<Grid> {
        Grid::simulate(lab, machine, mixes, candidates, lab.few_seeds())
    }

    /// The results of a mix under a candidate, by seed.
    pub(crate) fn runs(&self, mix: usize, candidate: usize) -> &[TrialMeasurements] {
        &self.results[mix][candidate]
    }

    /// A figure of a mix under a candidate, by seed.
    pub(crate) fn values(&self, mix: usize, candidate: usize, figure: Figure) -> Vec<f64> {
        self.runs(mix, candidate)
            .iter()
            .filter_map(figure)
            .collect()
    }

    /// A figure of each mix under a candidate, by seed.
    pub(crate) fn by_mix(&self, candidate: usize, figure: Figure) -> Vec<Vec<f64>> {
        (0..self.mixes)
            .map(|mix| self.values(mix, candidate, figure))
            .collect()
    }

    /// For each seed, the mean over the mixes of a figure; only of seeds in which each mix has it.
    pub(crate) fn means(&self, candidate: usize, figure: Figure) -> Vec<f64> {
        let mut means = Vec::new();
        for seed in 0..self.seeds {
            let runs = self.results.iter().map(|mix| &mix[candidate][seed]);
            let values: Option<Vec<f64>> = runs.map(figure).collect();
            means.extend(values.and_then(|values| mean(&values)));
        }
        means
    }

    /// How a figure compares with that of another candidate in the same grid: by mix, then by seed.
    pub(crate) fn compared(
        &self,
        candidate: usize,
        base: usize,
        figure: Figure,
        change: Change,
    ) -> Vec<Vec<f64>> {
        self.compared_with((self, base), candidate, figure, change)
    }

    /// How a figure compares with that of a candidate of another grid with the same mixes: by mix, then by seed.
    pub(crate) fn compared_with(
        &self,
        (grid, base): (&Grid, usize),
        candidate: usize,
        figure: Figure,
        change: Change,
    ) -> Vec<Vec<f64>> {
        let mut by_mix = Vec::new();
        for mix in 0..self.mixes {
            let mut changes = Vec::new();
            for (ours, base) in self.runs(mix, candidate).iter().zip(grid.runs(mix, base)) {
                let both = figure(ours).zip(figure(base));
                changes.extend(both.map(|(ours, base)| change(ours, base)));
            }
            by_mix.push(changes);
        }
        by_mix
    }

    /// For each seed, the geometric mean over the mixes of how much faster the candidate is than the base, in per cent.
    pub(crate) fn speed_up(&self, candidate: usize, base: (&Grid, usize)) -> Vec<f64> {
        let ratios = self.compared_with(base, candidate, TrialMeasurements::time, |ours, base| {
            base / ours
        });
        let means = over(&ratios, geometric_mean);
        means.iter().map(|mean| 100.0 * (mean - 1.0)).collect()
    }

    /// For each seed, the geometric mean over the mixes of the unfairness, in per cent above 1.
    pub(crate) fn unfairness(&self, candidate: usize) -> Vec<f64> {
        let by_mix = self.by_mix(candidate, TrialMeasurements::unfair_percent);
        over(&by_mix, geometric_mean)
    }

    /// For each seed, in how many mixes a test holds.
    pub(crate) fn count(&self, test: impl Fn(usize, usize) -> bool) -> Vec<f64> {
        let mut counts = Vec::new();
        for seed in 0..self.seeds {
            let mixes = (0..self.mixes).filter(|&mix| test(mix, seed));
            counts.push(mixes.count() as f64);
        }
        counts
    }
}
