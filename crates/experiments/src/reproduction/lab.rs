//! How much is simulated: seeds, the length of jobs, and who carries it out.

use crate::reproduction::pool::Pool;
use cosched_core::Nanos;
use cosched_sim::Work;

/// The scale of the experiments, and the pool that carries them out.
pub(crate) struct Lab<'a> {
    pub(crate) pool: Pool<'a>,
    /// The seeds of the repetitions.
    pub(crate) seeds: Vec<u64>,
    /// The work of jobs that have no length of their own.
    pub(crate) work: Work,
    /// Whether this is the short form.
    pub(crate) quick: bool,
    /// Seeds of the experiments on causes.
    pub(crate) few: usize,
}

impl Lab<'_> {
    /// The first seeds, for experiments that need fewer repetitions.
    pub(crate) fn few_seeds(&self) -> &[u64] {
        &self.seeds[..self.few.clamp(1, self.seeds.len())]
    }

    /// The first two fifths of the seeds, and two at least: for experiments whose differences are large.
    pub(crate) fn fewer_seeds(&self) -> &[u64] {
        &self.seeds[..(2 * self.seeds.len())
            .div_ceil(5)
            .max(2)
            .min(self.seeds.len())]
    }

    /// How many repetitions experiments on causes have.
    pub(crate) fn of_causes(&self) -> String {
        format!(
            "Each experiment changes one thing, with {}.",
            in_words(self.few_seeds())
        )
    }

    /// What each job takes alone in s, if jobs have no length of their own.
    pub(crate) fn solo_s(&self) -> Option<f64> {
        match self.work {
            Work::SoloTime(time) => Some(time.as_s()),
            Work::Instructions(_) => None,
        }
    }

    pub(crate) fn seeds_in_words(&self) -> String {
        in_words(&self.seeds)
    }

    pub(crate) fn work_in_words(&self) -> String {
        match self.work {
            Work::SoloTime(time) => format!("each job as much as it does in {} s alone", s(time)),
            Work::Instructions(instructions) => format!("each job of {instructions} instructions"),
        }
    }
}

/// How many seeds these are.
pub(crate) fn in_words(seeds: &[u64]) -> String {
    match seeds.len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    }
}

/// Seconds without decimals that say nothing.
pub(crate) fn s(time: Nanos) -> String {
    format!("{}", time.as_s())
}
