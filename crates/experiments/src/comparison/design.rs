//! What is compared, and in which order it runs.

use cosched_core::Rng;
use serde::{Deserialize, Serialize};

/// How a candidate runs the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ComparisonMeans {
    /// `cosched run` with this policy and these parameters.
    Policy {
        /// Its name, or `auto`.
        policy: String,
        /// Parameters with their values, in the order in which they were given.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        params: Vec<(String, String)>,
    },
    /// A shell command that runs the same batch. Only its time is known.
    Command(String),
}

/// A way to run the batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedCandidate {
    /// Its unique name.
    pub name: String,
    /// How it runs the batch.
    #[serde(flatten)]
    pub means: ComparisonMeans,
}

impl ComparedCandidate {
    /// A policy with its default parameters.
    pub fn policy(name: &str) -> ComparedCandidate {
        ComparedCandidate {
            name: name.to_owned(),
            means: ComparisonMeans::Policy {
                policy: name.to_owned(),
                params: Vec::new(),
            },
        }
    }

    /// Whether cosched chooses the policy.
    pub(crate) fn is_auto(&self) -> bool {
        matches!(&self.means, ComparisonMeans::Policy { policy, .. } if policy == "auto")
    }

    /// One candidate for each value of a parameter; they are named after it.
    pub fn sweep(&self, param: &str, values: &[&str]) -> Vec<ComparedCandidate> {
        let ComparisonMeans::Policy { policy, params } = &self.means else {
            return vec![self.clone()];
        };
        let mut swept = Vec::new();
        for value in values {
            let mut params = params.clone();
            params.push((param.to_owned(), (*value).to_owned()));
            swept.push(ComparedCandidate {
                name: format!("{} {param}={value}", self.name),
                means: ComparisonMeans::Policy {
                    policy: policy.clone(),
                    params,
                },
            });
        }
        swept
    }
}

/// A batch that every candidate runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedMix {
    /// Its unique name: that of its file without the ending.
    pub name: String,
    /// The whole path of its file; `None` where each candidate is a command with a batch of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether the file is a list of commands, not a mix file.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_list: bool,
}

/// What is compared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonDesign {
    /// The batches.
    pub mixes: Vec<ComparedMix>,
    /// The ways to run them.
    pub candidates: Vec<ComparedCandidate>,
    /// The candidate, by its position, that the others are compared with.
    pub baseline: usize,
    /// `host`, or the simulated machine: its name, or the whole path of its file.
    pub on: String,
    /// Seed of the order of the runs, and of the runs of the first block. Each further block adds 1 to it.
    pub seed: u64,
    /// Further options of each `cosched run`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
}

/// A run of one candidate with one mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CandidateRun {
    /// The number of its block, from 1; 0 for runs that warm up.
    pub block: u32,
    /// The position of the mix.
    pub mix: usize,
    /// The position of the candidate.
    pub candidate: usize,
}

impl ComparisonDesign {
    /// The runs of a block, in their order: every candidate with every mix once. The mixes are in random order, and within
    /// each the candidates are, so that runs that are compared are near each other in time, and nobody always comes first.
    pub fn block(&self, block: u32) -> Vec<CandidateRun> {
        let mut rng = Rng::new(self.seed ^ (u64::from(block) << 32));
        let mut mixes: Vec<usize> = (0..self.mixes.len()).collect();
        shuffle(&mut mixes, &mut rng);
        let mut trials = Vec::with_capacity(mixes.len() * self.candidates.len());
        for mix in mixes {
            let mut candidates: Vec<usize> = (0..self.candidates.len()).collect();
            shuffle(&mut candidates, &mut rng);
            trials.extend(candidates.into_iter().map(|candidate| CandidateRun {
                block,
                mix,
                candidate,
            }));
        }
        trials
    }

    /// The seed of the runs of a block.
    pub fn seed_of(&self, block: u32) -> u64 {
        self.seed.wrapping_add(u64::from(block)).wrapping_sub(1)
    }

    /// The candidates but the baseline, by their positions.
    pub(crate) fn others(&self) -> impl Iterator<Item = usize> {
        (0..self.candidates.len()).filter(|&candidate| candidate != self.baseline)
    }

    /// Whether the jobs are simulated.
    pub fn is_simulated(&self) -> bool {
        self.on != "host"
    }
}

/// Puts items into random order (Fisher and Yates).
fn shuffle<T>(items: &mut [T], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        let other = rng.below(last as u64 + 1) as usize;
        items.swap(last, other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn design(mixes: usize, candidates: usize, seed: u64) -> ComparisonDesign {
        let mix = |at: usize| ComparedMix {
            name: format!("mix{at}"),
            file: Some(format!("mix{at}.toml")),
            is_list: false,
        };
        ComparisonDesign {
            mixes: (0..mixes).map(mix).collect(),
            candidates: (0..candidates)
                .map(|at| ComparedCandidate::policy(&format!("policy-{at}")))
                .collect(),
            baseline: 0,
            on: "host".to_owned(),
            seed,
            options: Vec::new(),
        }
    }

    #[test]
    fn each_block_has_every_run_once_and_runs_that_are_compared_together() {
        let design = design(3, 4, 1);
        for block in 1..=20 {
            let trials = design.block(block);
            assert_eq!(trials.iter().collect::<BTreeSet<_>>().len(), 12);
            assert!(trials.iter().all(|trial| trial.block == block));
            assert!(
                trials
                    .chunks(4)
                    .all(|some| some.iter().all(|trial| trial.mix == some[0].mix))
            );
            assert_eq!(trials, design.block(block));
        }
        assert_ne!(design.block(1), super::tests::design(3, 4, 2).block(1));
    }

    #[test]
    fn nobody_comes_first_more_often_than_others() {
        let design = design(1, 4, 3);
        let mut first = [0; 4];
        (1..=4_000).for_each(|block| first[design.block(block)[0].candidate] += 1);
        assert!(
            first.iter().all(|&times| (900..1_100).contains(&times)),
            "{first:?}"
        );
    }

    #[test]
    fn a_sweep_names_its_candidates() {
        let swept = ComparedCandidate::policy("fair").sweep("quantum_s", &["0.1", "0.2"]);
        assert_eq!(swept[1].name, "fair quantum_s=0.2");
        let params = vec![("quantum_s".to_owned(), "0.2".to_owned())];
        assert_eq!(
            swept[1].means,
            ComparisonMeans::Policy {
                policy: "fair".to_owned(),
                params
            }
        );
        let other = ComparedCandidate {
            name: "parallel".to_owned(),
            means: ComparisonMeans::Command("parallel -j2 < jobs".to_owned()),
        };
        assert_eq!(other.sweep("quantum_s", &["0.1"]), [other]);
    }
}
