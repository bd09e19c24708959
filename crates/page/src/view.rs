//! What pages and pictures are made of: runs and comparisons with all that is shown of them.

use cosched_experiments::comparison::{Answer, Trial, runs_text};
use cosched_report::{BackendKind, Record, Timeline};

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
    /// The runs that are shown as wholes: some of the first block.
    pub whole: Vec<(Trial, Record, Option<Timeline>)>,
}

impl ComparisonView<'_> {
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

    /// The runs with a mix that are shown, with the names of their candidates.
    pub(crate) fn shown_runs(&self, mix: usize) -> Vec<(String, &Record)> {
        let candidates = &self.answer.manifest.design.candidates;
        self.whole
            .iter()
            .filter(|(trial, _, _)| trial.mix == mix)
            .map(|(trial, record, _)| (candidates[trial.candidate].name.clone(), record))
            .collect()
    }

    /// The name of a run for a reader.
    pub(crate) fn name(&self, trial: Trial) -> String {
        runs_text(self.answer, &[trial])
    }
}
