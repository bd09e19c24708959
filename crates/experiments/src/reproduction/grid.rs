//! Trials over mixes, candidates and seeds, and what is computed over them.

use crate::reproduction::error::ReproduceError;
use crate::reproduction::mixes::Mix;
use crate::reproduction::pool::Pool;
use crate::reproduction::trial::{Measured, Trial};
use crate::statistics::geometric_mean;
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// A policy with parameters of its own.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// Its name in tables.
    pub(crate) label: String,
    pub(crate) policy: &'static str,
    pub(crate) params: Vec<(&'static str, String)>,
    /// Whether its estimates are compared with the truth.
    pub(crate) truth: bool,
    /// Whether the policy is shown true progress in place of estimated progress.
    pub(crate) knows_progress: bool,
    /// Whether solo traces are of other runs.
    pub(crate) others_traces: bool,
    /// Whether it knows what another run of the same jobs took and learnt.
    pub(crate) remembers: bool,
}

impl Candidate {
    /// A policy as it is.
    pub(crate) fn new(policy: &'static str) -> Candidate {
        Candidate {
            label: policy.to_owned(),
            policy,
            params: Vec::new(),
            truth: false,
            knows_progress: false,
            others_traces: false,
            remembers: false,
        }
    }

    /// Its estimates are compared with the truth.
    pub(crate) fn compared(mut self) -> Candidate {
        self.truth = true;
        self
    }

    /// It is shown true progress in place of estimated progress.
    pub(crate) fn knowing_progress(mut self) -> Candidate {
        self.knows_progress = true;
        self
    }

    /// It knows what another run of the same jobs took and learnt.
    pub(crate) fn remembering(mut self) -> Candidate {
        self.remembers = true;
        self
    }

    /// One more value of a parameter.
    pub(crate) fn and(mut self, name: &'static str, value: impl ToString) -> Candidate {
        self.params.push((name, value.to_string()));
        self
    }

    /// The policy with this value of a parameter.
    pub(crate) fn with(
        policy: &'static str,
        name: &'static str,
        value: impl ToString,
    ) -> Candidate {
        let value = value.to_string();
        Candidate {
            label: format!("{policy}, {name} {value}"),
            params: vec![(name, value)],
            ..Candidate::new(policy)
        }
    }
}

/// Simulates lists of jobs, each with some variants and all seeds: by list, then by variant, then by seed. `variants` makes the
/// trials of a list with a seed; they have the same jobs and machine, and share their solo runs.
pub(crate) fn simulate(
    pool: &Pool<'_>,
    what: &str,
    lists: usize,
    seeds: &[u64],
    variants: impl Fn(usize, u64) -> Vec<Trial> + Sync,
) -> Result<Vec<Vec<Vec<Measured>>>, ReproduceError> {
    let cells: Vec<(usize, u64)> = (0..lists)
        .flat_map(|list| seeds.iter().map(move |&seed| (list, seed)))
        .collect();
    let found = pool.map(what, &cells, |&(list, seed)| {
        Trial::simulate_all(&variants(list, seed))
    })?;
    let mut results: Vec<Vec<Vec<Measured>>> = vec![Vec::new(); lists];
    for ((list, _), of_variants) in cells.into_iter().zip(found) {
        results[list].resize_with(of_variants.len(), Vec::new);
        for (of_seeds, run) in results[list].iter_mut().zip(of_variants) {
            of_seeds.push(run);
        }
    }
    Ok(results)
}

/// The results: for each mix and candidate one for each seed.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    results: Vec<Vec<Vec<Measured>>>,
    pub(crate) mixes: usize,
    pub(crate) seeds: usize,
}

impl Grid {
    /// Simulates all of them. The same seed means the same jobs for every candidate, so that their results are pairs.
    pub(crate) fn simulate(
        pool: &Pool<'_>,
        what: &str,
        machine: &Arc<MachineSpec>,
        mixes: &[Mix],
        candidates: &[Candidate],
        seeds: &[u64],
    ) -> Result<Grid, ReproduceError> {
        let variants = |mix: usize, seed: u64| {
            let of = |candidate: &Candidate| Trial {
                restart: mixes[mix].restart,
                params: candidate.params.clone(),
                truth: candidate.truth,
                knows_progress: candidate.knows_progress,
                others_traces: candidate.others_traces,
                remembers: candidate.remembers,
                ..Trial::new(machine, &mixes[mix].jobs, candidate.policy, seed)
            };
            candidates.iter().map(of).collect()
        };
        let results = simulate(pool, what, mixes.len(), seeds, variants)?;
        Ok(Grid::of_results(results, seeds.len()))
    }

    /// Results by mix, candidate and seed, of so many seeds.
    pub(crate) fn of_results(results: Vec<Vec<Vec<Measured>>>, seeds: usize) -> Grid {
        Grid {
            mixes: results.len(),
            seeds,
            results,
        }
    }

    /// The results of these mixes alone.
    pub(crate) fn only(&self, mixes: &[usize]) -> Grid {
        Grid::of_results(
            mixes.iter().map(|&mix| self.results[mix].clone()).collect(),
            self.seeds,
        )
    }

    /// The results of a mix under a candidate, by seed.
    pub(crate) fn of(&self, mix: usize, candidate: usize) -> &[Measured] {
        &self.results[mix][candidate]
    }

    /// A figure of a mix under a candidate, by seed.
    pub(crate) fn values(
        &self,
        mix: usize,
        candidate: usize,
        of: impl Fn(&Measured) -> Option<f64>,
    ) -> Vec<f64> {
        self.of(mix, candidate).iter().filter_map(of).collect()
    }

    /// For each seed, the base's figure over the candidate's, less 1, in per cent: how much less the candidate has.
    pub(crate) fn gains(
        &self,
        mix: usize,
        candidate: usize,
        base: &[Measured],
        of: impl Fn(&Measured) -> Option<f64>,
    ) -> Vec<f64> {
        let pairs = self.of(mix, candidate).iter().zip(base);
        pairs
            .filter_map(|(ours, base)| Some(100.0 * (of(base)? / of(ours)? - 1.0)))
            .collect()
    }

    /// For each seed, the geometric mean over the mixes of a figure that is positive.
    pub(crate) fn geometric(&self, of: impl Fn(usize, usize) -> Option<f64>) -> Vec<f64> {
        let of_seed = |seed: usize| {
            let values: Option<Vec<f64>> = (0..self.mixes).map(|mix| of(mix, seed)).collect();
            values.and_then(|values| geometric_mean(&values))
        };
        (0..self.seeds).filter_map(of_seed).collect()
    }

    /// For each seed, the geometric mean over the mixes of how much faster the candidate is than the base, in per cent:
    /// by turnaround.
    pub(crate) fn speed_up(&self, candidate: usize, base: (&Grid, usize)) -> Vec<f64> {
        let (grid, base) = base;
        let ratio = |mix: usize, seed: usize| {
            Some(
                grid.of(mix, base).get(seed)?.turnaround_s
                    / self.of(mix, candidate).get(seed)?.turnaround_s,
            )
        };
        self.geometric(ratio)
            .into_iter()
            .map(|ratio| 100.0 * (ratio - 1.0))
            .collect()
    }

    /// For each seed, the geometric mean over the mixes of the unfairness, in per cent above 1.
    pub(crate) fn unfairness(&self, candidate: usize) -> Vec<f64> {
        self.geometric(|mix, seed| self.of(mix, candidate)[seed].unfair_percent())
    }

    /// For each seed, the mean over the mixes of a figure.
    pub(crate) fn means(
        &self,
        candidate: usize,
        of: impl Fn(&Measured) -> Option<f64>,
    ) -> Vec<f64> {
        let of_seed = |seed: usize| {
            let values: Option<Vec<f64>> = (0..self.mixes)
                .map(|mix| of(&self.of(mix, candidate)[seed]))
                .collect();
            values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
        };
        (0..self.seeds).filter_map(of_seed).collect()
    }
}
