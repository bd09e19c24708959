//! What pages and pictures are made of: runs and comparisons with all that is shown of them.

use crate::facts::RunFacts;
use cosched_experiments::comparison::{Answer, Trial, runs_text};
use cosched_report::{BackendKind, Record, Timeline};
use std::collections::BTreeMap;

/// A run as a page shows it.
#[derive(Clone, Debug)]
pub struct RunView<'a> {
    /// What the reader calls it, as in the name of its folder.
    pub label: String,
    /// Its record.
    pub record: &'a Record,
    /// What its series tells; `None` if there is none.
    pub timeline: Option<&'a Timeline>,
    /// What is to be known of its files, in sentences.
    pub notes: Vec<String>,
}

impl RunView<'_> {
    /// Whether its jobs were simulated.
    pub(crate) fn is_simulated(&self) -> bool {
        self.record.backend == BackendKind::Sim
    }
}

/// A comparison as a page shows it.
#[derive(Debug)]
pub struct ComparisonView<'a> {
    /// What was found.
    pub answer: &'a Answer,
    /// What is needed of each run that has a record.
    pub runs: BTreeMap<Trial, RunFacts>,
    /// Of some runs the whole: those whose timelines are shown.
    pub whole: Vec<(Trial, Record, Option<Timeline>)>,
}

impl<'a> ComparisonView<'a> {
    /// Of each candidate the median over the blocks, of a metric that was judged; `None` if it was not.
    pub(crate) fn spreads(&self, metric: &str) -> Option<Vec<Option<f64>>> {
        let judged = self
            .answer
            .judged
            .iter()
            .find(|judged| judged.metric.name == metric)?;
        Some(
            judged
                .spreads
                .iter()
                .map(|spread| spread.map(|spread| spread.median))
                .collect(),
        )
    }

    /// Of a candidate with a mix, the run whose turnaround is the median one (the lower of two).
    pub fn median_run(answer: &Answer, candidate: usize, mix: usize) -> Option<Trial> {
        let of = answer.outcomes.iter().filter(|one| {
            (one.trial.candidate, one.trial.mix) == (candidate, mix) && !one.is_command()
        });
        let mut all: Vec<(f64, Trial)> = of
            .filter_map(|one| Some((one.figure("turnaround_s")?, one.trial)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        all.get(all.len().saturating_sub(1) / 2)
            .map(|(_, trial)| *trial)
    }

    /// Of a candidate with a mix, the run whose timeline is shown: the median one, or that of the first block in a simulation,
    /// which keeps no other series.
    pub fn whole_run(answer: &Answer, candidate: usize, mix: usize) -> Option<Trial> {
        if !answer.manifest.design.is_simulated() {
            return ComparisonView::median_run(answer, candidate, mix);
        }
        let of = answer.outcomes.iter().map(|one| one.trial);
        of.filter(|trial| (trial.candidate, trial.mix) == (candidate, mix))
            .min_by_key(|trial| trial.block)
    }

    /// Of each candidate its median run with a mix.
    pub(crate) fn shown_runs(&self, mix: usize) -> Vec<(String, &RunFacts)> {
        let mut shown = Vec::new();
        for (at, candidate) in self.answer.manifest.design.candidates.iter().enumerate() {
            let trial = ComparisonView::median_run(self.answer, at, mix);
            if let Some(run) = trial.and_then(|trial| self.runs.get(&trial)) {
                shown.push((candidate.name.clone(), run));
            }
        }
        shown
    }

    /// The name of a run for a reader.
    pub(crate) fn name(&self, trial: Trial) -> String {
        runs_text(self.answer, &[trial])
    }
}
