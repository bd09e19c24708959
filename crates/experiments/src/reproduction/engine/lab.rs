//! The scale of the experiments: seeds, the length of jobs, and threads.

use super::error::Result;
use super::pool::Pool;
use cosched_core::Nanos;
use cosched_sim::JobWork;

/// The scale of the experiments, and the threads that run them.
pub(crate) struct Lab<'a> {
    /// The chapter that is written, for the progress line.
    pub(crate) chapter: String,
    pub(crate) pool: Pool<'a>,
    /// The seeds of the repetitions.
    pub(crate) seeds: Vec<u64>,
    /// The solo time of jobs without a length of their own.
    pub(crate) solo: Nanos,
    /// Whether this is the short form.
    pub(crate) quick: bool,
}

impl Lab<'_> {
    /// The work of jobs without a length of their own.
    pub(crate) fn work(&self) -> JobWork {
        JobWork::SoloTime(self.solo)
    }

    /// The results of `trial` for each of `inputs`, in their order.
    pub(crate) fn map<I: Sync, O: Send>(
        &self,
        inputs: &[I],
        trial: impl Fn(&I) -> Result<O> + Sync,
    ) -> Result<Vec<O>> {
        self.pool.map(&self.chapter, inputs, trial)
    }

    /// The first seeds, for experiments on causes.
    pub(crate) fn few_seeds(&self) -> &[u64] {
        self.first_seeds(if self.quick { 2 } else { 4 })
    }

    /// The first two fifths of the seeds, and two at least: for experiments whose differences are large.
    pub(crate) fn fewer_seeds(&self) -> &[u64] {
        self.first_seeds((2 * self.seeds.len()).div_ceil(5).max(2))
    }

    fn first_seeds(&self, most: usize) -> &[u64] {
        &self.seeds[..most.min(self.seeds.len())]
    }
}

/// The number of seeds.
pub(crate) fn in_words(seeds: &[u64]) -> String {
    match seeds.len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds"),
    }
}
