//! The experiments of the papers behind cosched, repeated in its simulation and held against the published figures; and our
//! own policy `even` beside the papers' policies.
//!
//! Each paper is a [`Chapter`]: what was done, tables, figures, a verdict for each published figure (the
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
mod knowing;
mod lab;
mod lucky;
mod mixes;
mod number;
mod paper;
mod perf_fair;
mod pool;
mod trial;

pub use error::ReproduceError;
pub use findings::Findings;
pub use pool::Pool;

use self::findings::Chapter;
use self::lab::Lab;
use cosched_core::Nanos;
use cosched_sim::Work;

/// A chapter of experiments.
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
    /// The project's own policy `even`.
    Even,
}

impl Experiment {
    /// The papers' experiments, in the order of the document.
    pub const PAPERS: [Experiment; 4] = [
        Experiment::PerfFair,
        Experiment::Bandwidth,
        Experiment::Efs,
        Experiment::Lucky,
    ];
    /// All experiments, in the order of the document.
    pub const ALL: [Experiment; 5] = [
        Experiment::PerfFair,
        Experiment::Bandwidth,
        Experiment::Efs,
        Experiment::Lucky,
        Experiment::Even,
    ];

    /// Its name on the command line, and its chapter's.
    pub fn name(self) -> &'static str {
        match self {
            Experiment::PerfFair => "perf-fair",
            Experiment::Bandwidth => "bandwidth",
            Experiment::Efs => "efs",
            Experiment::Lucky => "lucky",
            Experiment::Even => "even",
        }
    }

    fn chapter(self, lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
        match self {
            Experiment::PerfFair => perf_fair::chapter(lab),
            Experiment::Bandwidth => bandwidth::chapter(lab),
            Experiment::Efs => efs::chapter(lab),
            Experiment::Lucky => lucky::chapter(lab),
            Experiment::Even => even::chapter(lab),
        }
    }
}

/// The experiments to carry out, and their scale.
#[derive(Clone, Debug)]
pub struct Request {
    /// The experiments, in the order of their chapters.
    pub experiments: Vec<Experiment>,
    /// Whether jobs are short (10 s instead of 100 s) and seeds few.
    pub quick: bool,
    /// Number of repetitions; `None` for the default.
    pub seeds: Option<usize>,
    /// The seed of the first repetition; each further one adds 1.
    pub first_seed: u64,
}

impl Request {
    /// The equivalent command line.
    fn command(&self) -> String {
        let mut words = vec!["cosched reproduce".to_owned()];
        if self.experiments != Experiment::PAPERS {
            words.extend(self.experiments.iter().map(|one| one.name().to_owned()));
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
/// See [`ReproduceError`]. The same request always fails in the same way.
pub fn reproduce(request: &Request, pool: Pool<'_>) -> Result<Findings, ReproduceError> {
    let (seeds, few, solo_ms) = if request.quick {
        (QUICK_SEEDS, QUICK_FEW, 10_000)
    } else {
        (SEEDS, FEW, 100_000)
    };
    let seeds = request.seeds.unwrap_or(seeds).max(1);
    let seeds: Vec<u64> = (0..seeds as u64)
        .map(|n| request.first_seed.wrapping_add(n))
        .collect();
    let all = request.experiments.len();
    let mut chapters = Vec::with_capacity(all);
    for (number, experiment) in request.experiments.iter().enumerate() {
        let progress = |what: &str, done: usize, of: usize| {
            (pool.progress)(&format!("part {} of {all}, {what}", number + 1), done, of)
        };
        chapters.push(experiment.chapter(&Lab {
            pool: Pool {
                threads: pool.threads,
                progress: &progress,
                stop: pool.stop,
            },
            seeds: seeds.clone(),
            work: Work::SoloTime(Nanos::from_ms(solo_ms)),
            quick: request.quick,
            few,
        })?);
    }
    Ok(Findings {
        command: request.command(),
        chapters,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(experiments: &[Experiment]) -> String {
        Request {
            experiments: experiments.to_vec(),
            quick: true,
            seeds: Some(2),
            first_seed: 1,
        }
        .command()
    }

    #[test]
    fn the_command_asks_for_the_same_experiments() {
        assert_eq!(
            command(&Experiment::PAPERS),
            "cosched reproduce --quick --seeds 2"
        );
        assert_eq!(
            command(&[Experiment::Efs, Experiment::Even]),
            "cosched reproduce efs even --quick --seeds 2"
        );
    }
}
