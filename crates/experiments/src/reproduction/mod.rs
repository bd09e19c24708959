//! The experiments of the papers behind cosched, repeated in its simulation and held against the published figures.
//!
//! Each paper is a [`findings::Chapter`]: what was done, tables, figures, a verdict for each published figure, and
//! experiments that show which assumption moves what differs. Nothing in the simulated world is fitted to these figures
//! unless a chapter says so.
//!
//! The same request gives the same findings to the last bit, whatever the number of threads.

mod bandwidth;
mod efs;
mod engine;
mod lucky;
mod perf_fair;

pub use engine::findings::Findings;
pub use engine::{Pool, ReproduceError, Result, findings};

use cosched_core::Nanos;
use engine::{Chapter, Lab};

/// The experiments of a paper: a chapter of the document.
#[derive(Debug)]
pub struct Experiment {
    /// Its name on the command line, and its chapter's.
    pub name: &'static str,
    chapter: fn(&Lab<'_>) -> Result<Chapter>,
}

/// All experiments, in the order of the document.
pub static EXPERIMENTS: [Experiment; 4] = [
    Experiment {
        name: "perf-fair",
        chapter: perf_fair::chapter,
    },
    Experiment {
        name: "bandwidth",
        chapter: bandwidth::chapter,
    },
    Experiment {
        name: "efs",
        chapter: efs::chapter,
    },
    Experiment {
        name: "lucky",
        chapter: lucky::chapter,
    },
];

/// The experiments to carry out, and their scale.
#[derive(Clone, Debug)]
pub struct ReproductionRequest {
    /// The experiments, in the order of their chapters.
    pub experiments: Vec<&'static Experiment>,
    /// Whether jobs are short (10 s instead of 100 s) and seeds few.
    pub quick: bool,
    /// Number of repetitions; `None` for the default.
    pub seeds: Option<usize>,
    /// The seed of the first repetition; each further one adds 1.
    pub first_seed: u64,
}

impl ReproductionRequest {
    /// The equivalent command line.
    fn command(&self) -> String {
        let mut words = vec!["cosched reproduce".to_owned()];
        if self.experiments.len() < EXPERIMENTS.len() {
            words.extend(self.experiments.iter().map(|one| one.name.to_owned()));
        }
        if self.quick {
            words.push("--quick".to_owned());
        }
        if let Some(seeds) = self.seeds {
            words.push(format!("--seeds {seeds}"));
        }
        if self.first_seed != 1 {
            words.push(format!("--seed {}", self.first_seed));
        }
        words.join(" ")
    }

    fn seeds(&self) -> Vec<u64> {
        let default = if self.quick { 3 } else { 20 };
        let seeds = self.seeds.unwrap_or(default).max(1) as u64;
        (0..seeds)
            .map(|n| self.first_seed.wrapping_add(n))
            .collect()
    }
}

/// Carries out the experiments.
///
/// # Errors
/// See [`ReproduceError`]. The same request always fails in the same way.
pub fn reproduce(request: &ReproductionRequest, pool: Pool<'_>) -> Result<Findings> {
    let all = request.experiments.len();
    let solo_ms = if request.quick { 10_000 } else { 100_000 };
    let mut chapters = Vec::with_capacity(all);
    for (number, experiment) in request.experiments.iter().enumerate() {
        let lab = Lab {
            chapter: format!("part {} of {all}, {}", number + 1, experiment.name),
            pool,
            seeds: request.seeds(),
            solo: Nanos::from_ms(solo_ms),
            quick: request.quick,
        };
        chapters.push((experiment.chapter)(&lab)?);
    }
    Ok(Findings {
        command: request.command(),
        chapters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(experiments: &[&'static Experiment]) -> String {
        ReproductionRequest {
            experiments: experiments.to_vec(),
            quick: true,
            seeds: Some(2),
            first_seed: 1,
        }
        .command()
    }

    #[test]
    fn the_command_asks_for_the_same_experiments() {
        let all: Vec<&Experiment> = EXPERIMENTS.iter().collect();
        assert_eq!(command(&all), "cosched reproduce --quick --seeds 2");
        assert_eq!(
            command(&all[2..]),
            "cosched reproduce efs lucky --quick --seeds 2"
        );
    }
}
