//! Why jobs have waited, as far as was seen: a state tells only the present reason.

use cosched_report::Status;
use std::collections::{BTreeMap, VecDeque};

/// As many reasons of each job are kept.
const MOST: usize = 8;

/// The last reasons of each job.
#[derive(Clone, Debug, Default)]
pub struct Reasons {
    jobs: BTreeMap<u32, VecDeque<(f64, String)>>,
}

impl Reasons {
    /// Notes the reasons in a state. Those of jobs that have ended are forgotten.
    pub fn note(&mut self, status: &Status) {
        let mut before = std::mem::take(&mut self.jobs);
        for job in &status.jobs {
            let mut reasons = before.remove(&job.job).unwrap_or_default();
            if let Some(reason) = &job.reason
                && reasons.back().is_none_or(|(_, last)| *last != reason.text)
            {
                if reasons.len() == MOST {
                    reasons.pop_front();
                }
                reasons.push_back((status.elapsed_s, reason.text.clone()));
            }
            if !reasons.is_empty() {
                self.jobs.insert(job.job, reasons);
            }
        }
    }

    /// The reasons of a job and when they were seen, in seconds since the start of the run, the last first.
    pub fn of(&self, job: u32) -> impl Iterator<Item = (f64, &str)> {
        self.jobs
            .get(&job)
            .into_iter()
            .flatten()
            .rev()
            .map(|(at, text)| (*at, text.as_str()))
    }
}
