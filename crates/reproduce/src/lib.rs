//! The experiments of the papers behind cosched, repeated in its simulation and held against the published figures; and our
//! own policy `even` beside the papers' policies.
//!
//! Each paper is a [`Chapter`](findings::Chapter): what was done, tables, figures, a verdict for each published figure (the
//! paper's, ours with its 95 % interval, whether sign and order are the same, and the ratio), and experiments that show which
//! assumption moves what differs. Nothing in the simulated world is fitted to these figures unless a chapter says so.
//!
//! The same request gives the same findings to the last bit, whatever the number of threads.

mod bandwidth;
mod efs;
mod error;
mod even;
mod figure;
pub mod findings;
mod grid;
mod keep;
mod knowing;
mod lab;
mod lucky;
mod mixes;
mod number;
mod paper;
mod perf_fair;
mod pool;
mod sensitivity;
mod stats;
mod trial;

pub use error::ReproduceError;
pub use findings::Findings;
pub use keep::Keeper;
pub use pool::Pool;
pub use stats::{Estimate, deviation, geometric_mean, mean, quantile};

use cosched_core::Nanos;
use cosched_sim::Work;
use findings::SCHEMA;
use lab::Lab;

/// The experiments of a paper, or on a policy of our own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// Perf&Fair.
    PerfFair,
    /// The bandwidth-aware SMT scheduler.
    Bandwidth,
    /// EFS.
    Efs,
    /// Lucky scheduling.
    Lucky,
    /// Our own policy `even`, which is of no paper.
    Even,
}

impl Experiment {
    /// Those of the papers, in the order of the document.
    pub const PAPERS: [Experiment; 4] = [
        Experiment::PerfFair,
        Experiment::Bandwidth,
        Experiment::Efs,
        Experiment::Lucky,
    ];
    /// All of them, in the order of the document.
    pub const ALL: [Experiment; 5] = [
        Experiment::PerfFair,
        Experiment::Bandwidth,
        Experiment::Efs,
        Experiment::Lucky,
        Experiment::Even,
    ];

    /// Its name on the command line, and of its chapter.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::PerfFair => "perf-fair",
            Experiment::Bandwidth => "bandwidth",
            Experiment::Efs => "efs",
            Experiment::Lucky => "lucky",
            Experiment::Even => "even",
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiments, in the order of their chapters.
    pub experiments: Vec<Experiment>,
    /// The short form: jobs of 10 s instead of 100 s, and fewer seeds.
    pub quick: bool,
    /// Whether to show how headline figures move with the assumed numbers of the world.
    pub sensitivity: bool,
    /// Repetitions; `None` for as many as the form has.
    pub seeds: Option<usize>,
    /// The seed of the first repetition; the others follow.
    pub first_seed: u64,
    /// Further policies for the tables of Perf&Fair.
    pub policies: Vec<String>,
}

impl Request {
    /// The command line that asks for the same.
    fn command(&self) -> String {
        let mut words = vec!["cosched reproduce".to_owned()];
        let all_papers = Experiment::PAPERS
            .iter()
            .all(|experiment| self.experiments.contains(experiment));
        words.extend(all_papers.then(|| "all".to_owned()));
        let named = self
            .experiments
            .iter()
            .filter(|one| !all_papers || !Experiment::PAPERS.contains(one));
        words.extend(named.map(|experiment| experiment.name().to_owned()));
        words.extend(self.quick.then(|| "--quick".to_owned()));
        words.extend(self.sensitivity.then(|| "--sensitivity".to_owned()));
        words.extend(self.seeds.map(|seeds| format!("--seeds {seeds}")));
        words.extend((self.first_seed != 1).then(|| format!("--seed {}", self.first_seed)));
        words.extend(
            (!self.policies.is_empty()).then(|| format!("--policies {}", self.policies.join(","))),
        );
        words.join(" ")
    }
}

/// Repetitions of the long form.
const SEEDS: usize = 20;
/// Repetitions of the short form.
const QUICK_SEEDS: usize = 3;
/// Repetitions of experiments on causes, at most.
const FEW: usize = 4;
/// The same in the short form.
const QUICK_FEW: usize = 2;

/// Carries out the experiments.
///
/// # Errors
/// As [`ReproduceError`] lists them; none of them is due to chance.
pub fn reproduce(request: &Request, pool: Pool<'_>) -> Result<Findings, ReproduceError> {
    let seeds = request
        .seeds
        .unwrap_or(if request.quick { QUICK_SEEDS } else { SEEDS })
        .max(1);
    let lab = Lab {
        pool,
        seeds: (0..seeds as u64)
            .map(|n| request.first_seed.wrapping_add(n))
            .collect(),
        work: Work::SoloTime(Nanos::from_ms(if request.quick { 10_000 } else { 100_000 })),
        quick: request.quick,
        policies: request.policies.clone(),
        few: if request.quick { QUICK_FEW } else { FEW },
    };
    // Wrong names are told before hours of work, not after.
    for name in &lab.policies {
        trial::policy(name)?;
    }
    let all = request.experiments.len() + usize::from(request.sensitivity);
    let mut chapters = Vec::with_capacity(all);
    for number in 1..=all {
        let progress = |what: &str, done: usize, of: usize| {
            (lab.pool.progress)(&format!("part {number} of {all}, {what}"), done, of)
        };
        let pool = Pool {
            progress: &progress,
            ..lab.pool
        };
        let lab = Lab {
            pool,
            seeds: lab.seeds.clone(),
            policies: lab.policies.clone(),
            ..lab
        };
        chapters.push(match request.experiments.get(number - 1) {
            Some(Experiment::PerfFair) => perf_fair::chapter(&lab),
            Some(Experiment::Bandwidth) => bandwidth::chapter(&lab),
            Some(Experiment::Efs) => efs::chapter(&lab),
            Some(Experiment::Lucky) => lucky::chapter(&lab),
            Some(Experiment::Even) => even::chapter(&lab),
            None => sensitivity::chapter(&lab),
        }?);
    }
    Ok(Findings {
        schema: SCHEMA,
        command: request.command(),
        quick: request.quick,
        first_seed: request.first_seed,
        chapters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_asks_for_the_same_experiments() {
        let command = |experiments: &[Experiment]| {
            let experiments = experiments.to_vec();
            let (quick, sensitivity, seeds, first_seed, policies) =
                (false, false, None, 1, Vec::new());
            Request {
                experiments,
                quick,
                sensitivity,
                seeds,
                first_seed,
                policies,
            }
            .command()
        };
        assert_eq!(command(&Experiment::PAPERS), "cosched reproduce all");
        assert_eq!(command(&Experiment::ALL), "cosched reproduce all even");
        assert_eq!(
            command(&[Experiment::Efs, Experiment::Even]),
            "cosched reproduce efs even"
        );
    }
}
