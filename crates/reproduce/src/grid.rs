//! Trials over mixes, candidates and seeds, and what is computed over them.

use crate::error::ReproduceError;
use crate::keep::Kept;
use crate::mixes::Mix;
use crate::pool::Pool;
use crate::stats::geometric_mean;
use crate::trial::{Measured, Trial};
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

/// Names that tell candidates apart: their labels, and of those that have the same one what they differ by. Tables of findings
/// tell that in columns of their own, whoever reads the kept runs has the name alone.
fn names(candidates: &[Candidate]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for one in candidates {
        let alike: Vec<&Candidate> = candidates
            .iter()
            .filter(|other| other.label == one.label)
            .collect();
        let mut name = one.label.clone();
        for (param, value) in &one.params {
            if alike.iter().any(|other| {
                other
                    .params
                    .iter()
                    .all(|(key, set)| key != param || set != value)
            }) {
                name.push_str(&format!(", {param} {value}"));
            }
        }
        let marks = |one: &Candidate| {
            [
                (one.knows_progress, "true progress"),
                (one.others_traces, "traces of other runs"),
                (one.remembers, "with a memory"),
                (one.truth, "compared with the truth"),
            ]
        };
        for (at, (has, mark)) in marks(one).into_iter().enumerate() {
            if has && alike.iter().any(|other| !marks(other)[at].0) {
                name.push_str(&format!(", {mark}"));
            }
        }
        let free = |number: u32| {
            if number == 1 {
                name.clone()
            } else {
                format!("{name}, {number}")
            }
        };
        names.extend((1..).map(free).find(|name| !names.contains(name)));
    }
    names
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
    simulate_and_keep(pool, what, lists, seeds, variants, None)
}

/// The same; records go to `kept` as soon as they are there, since all together would take much memory.
fn simulate_and_keep(
    pool: &Pool<'_>,
    what: &str,
    lists: usize,
    seeds: &[u64],
    variants: impl Fn(usize, u64) -> Vec<Trial> + Sync,
    kept: Option<&Kept<'_>>,
) -> Result<Vec<Vec<Vec<Measured>>>, ReproduceError> {
    let cells: Vec<(usize, u64)> = (0..lists)
        .flat_map(|list| seeds.iter().map(move |&seed| (list, seed)))
        .collect();
    let found = pool.map(what, &cells, |&(list, seed)| {
        let mut all = Trial::simulate_all(&variants(list, seed))?;
        for (variant, one) in all.iter_mut().enumerate() {
            let place = seeds.iter().position(|&other| other == seed).unwrap_or(0);
            if let (Some(kept), Some(record)) = (kept, one.record.take()) {
                kept.keep((list, variant, place), &record)?;
            }
        }
        Ok(all)
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
        let named = candidates
            .iter()
            .zip(names(candidates))
            .map(|(one, name)| (name, one.policy, one.params.clone()));
        let kept = pool
            .keep
            .map(|keeper| Kept::begin(keeper, what, machine, mixes, named, seeds))
            .transpose()?;
        let variants = |mix: usize, seed: u64| {
            let of = |candidate: &Candidate| Trial {
                keep: kept.is_some(),
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
        let results = simulate_and_keep(pool, what, mixes.len(), seeds, variants, kept.as_ref())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_that_are_kept_can_be_told_apart() {
        let with = |share: f64| {
            Candidate::new("perf-fair")
                .and("share", share)
                .and("margin", 1)
        };
        let all = [
            Candidate::new("linux"),
            with(0.1),
            with(0.2),
            with(0.1).knowing_progress(),
            Candidate::new("perf-fair"),
            Candidate::new("oracle"),
            Candidate {
                others_traces: true,
                ..Candidate::new("oracle")
            },
            Candidate::new("oracle"),
            Candidate::with("fair", "quantum_s", 0.1),
        ];
        assert_eq!(
            names(&all),
            [
                "linux",
                "perf-fair, share 0.1, margin 1",
                "perf-fair, share 0.2, margin 1",
                "perf-fair, share 0.1, margin 1, true progress",
                "perf-fair",
                "oracle",
                "oracle, traces of other runs",
                "oracle, 2",
                "fair, quantum_s 0.1",
            ]
        );
    }
}
