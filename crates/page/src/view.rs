//! The content of pages and pictures: runs, and comparisons of runs.

use cosched_experiments::comparison::{CandidateRun, ComparisonResult, runs_text};
use cosched_report::{BackendKind, RunRecord, Timeline};

/// A run as a page shows it.
#[derive(Clone, Debug)]
pub struct RunView<'a> {
    /// Its name for the reader: that of its folder.
    pub label: String,
    /// Its record.
    pub record: &'a RunRecord,
    /// Who ran where, from its series; `None` without a series.
    pub timeline: Option<&'a Timeline>,
    /// Notes on its files, in sentences.
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
    /// The figures and verdicts.
    pub answer: &'a ComparisonResult,
    /// Runs of the first block that are shown with all their jobs.
    pub whole: Vec<(CandidateRun, RunRecord, Option<Timeline>)>,
}

impl ComparisonView<'_> {
    /// The median of each candidate over the blocks, in a metric; `None` if the metric was not judged.
    pub(crate) fn medians(&self, metric: &str) -> Option<Vec<Option<f64>>> {
        let mut judged = self.answer.judged.iter();
        let judged = judged.find(|judged| judged.metric.name == metric)?;
        let mut medians = Vec::new();
        for spread in &judged.spreads {
            medians.push(spread.as_ref().map(|spread| spread.median));
        }
        Some(medians)
    }

    /// The runs with a mix that are shown, with the names of their candidates.
    pub(crate) fn shown_runs(&self, mix: usize) -> Vec<(String, &RunRecord)> {
        let candidates = &self.answer.manifest.design.candidates;
        let mut runs = Vec::new();
        for (trial, record, _) in &self.whole {
            if trial.mix == mix {
                runs.push((candidates[trial.candidate].name.clone(), record));
            }
        }
        runs
    }

    /// The name of a run for a reader.
    pub(crate) fn name(&self, trial: CandidateRun) -> String {
        runs_text(self.answer, &[trial])
    }
}
