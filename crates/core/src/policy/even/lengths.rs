//! How soon each job may end, for the least mean turnaround.
//!
//! A job's weight is its Gittins index: the greatest chance that it ends within a time, divided by the time that this is
//! expected to take (Gittins, "Bandit Processes and Dynamic Allocation Indices", J. Royal Statistical Society B 41, 1979). On
//! one CPU this order has the least mean turnaround. If the length is known, the index is 1 / time left. Earlier runs
//! tell the lengths of a job, else its visible progress; where nothing is counted, visible progress goes first. Without both
//! a job lasts as long as those that ended in this run.
//!
//! A job that runs goes on unless another one's weight is clearly greater: jobs that are alike gain nothing by taking turns.

use crate::estimate::{KEPT, MEMORY};
use crate::expected::Expected;
use crate::policy::estimation::learnt_progress;
use crate::policy::prelude::*;
use std::collections::BTreeMap;

/// Error of progress, as a share: a job may seem so much longer than others of its length.
const ERROR: f64 = 0.5;
/// A job that runs counts so much more.
const STAYS: f64 = 1.25;

/// Least time left, in quanta.
const LEAST: f64 = 0.01;

/// The lengths of the jobs in this run, in quanta of progress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Lengths {
    /// Progress of the live jobs at the last decision.
    live: BTreeMap<TaskId, f64>,
    /// Lengths of the last jobs that ended.
    ended: Vec<f64>,
}

impl Lengths {
    /// Notes the progress of the live jobs. A job that is gone has ended.
    pub(super) fn note(&mut self, snap: &Snapshot) {
        let tasks = snap.tasks.iter();
        let live = tasks.map(|task| (task.id, learnt_progress(task))).collect();
        let before = std::mem::replace(&mut self.live, live);
        let is_gone = |id: &TaskId| !self.live.contains_key(id);
        let gone = before.into_iter().filter(|(id, _)| is_gone(id));
        self.ended.extend(gone.map(|(_, length)| length));
        let surplus = self.ended.len().saturating_sub(KEPT);
        self.ended.drain(..surplus);
    }

    /// The weight of a job.
    pub(super) fn weight(&self, task: &TaskView, quantum: Nanos) -> f64 {
        let stays = task.running.as_ref().map_or(1.0, |_| STAYS);
        task.weight * stays * index(self.left(task, quantum))
    }

    /// The times that a job may still take, in quanta. Visible progress decides alone if the length is unknown, or if nothing
    /// is counted: CPU time tells less of what is done.
    fn left(&self, task: &TaskView, quantum: Nanos) -> Vec<f64> {
        let done = learnt_progress(task);
        let is_counted = task.estimates.learnt.is_value();
        match (task.estimates.visible_left.value(), &task.expected) {
            (_, Some(expected)) if is_counted => expected_left(expected, done, quantum),
            (Some(left), _) => vec![f64::max(left.share_of(quantum), LEAST)],
            (None, Some(expected)) => expected_left(expected, done, quantum),
            (None, None) => self.left_as_others(done),
        }
    }

    /// The times left of a job that lasts as long as those that ended, in quanta, and as if nothing were known.
    fn left_as_others(&self, done: f64) -> Vec<f64> {
        let longer = self
            .ended
            .iter()
            .filter(|&&length| done < length * (1.0 + ERROR));
        let mut left: Vec<f64> = longer.map(|&length| left_of(length, done)).collect();
        let longest = self.ended.iter().copied().fold(MEMORY, f64::max);
        left.push(done.clamp(MEMORY, longest));
        left
    }
}

/// The times left of a job by earlier runs of it, in quanta. Progress is too unsure to exclude any.
fn expected_left(expected: &Expected, done: f64, quantum: Nanos) -> Vec<f64> {
    let lengths = [expected.least, expected.time, expected.greatest];
    let lengths = lengths.map(|time| f64::max(time.share_of(quantum), LEAST));
    lengths.map(|length| left_of(length, done)).to_vec()
}

/// The time left of a job of this length. One that seems to have done all may have done 1 / (1 + ERROR) of it.
fn left_of(length: f64, done: f64) -> f64 {
    f64::max(length - done, length * ERROR / (1.0 + ERROR))
}

/// The Gittins index of a job with equal chances for these times left, all greater than 0.
fn index(mut left: Vec<f64>) -> f64 {
    left.sort_unstable_by(f64::total_cmp);
    let (mut best, mut spent) = (0.0, 0.0);
    for (ended, within) in (1..).zip(&left) {
        let others = left.len() - ended;
        spent += within;
        best = f64::max(best, ended as f64 / (spent + others as f64 * within));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::ExpectedFrom;
    use crate::model::contention::PhaseDemand;
    use crate::snapshot::{Estimates, Learnt, Measured};
    use crate::task::TaskSpec;
    use crate::units::Reading;

    #[test]
    fn the_index_is_the_best_chance_per_time() {
        assert_eq!(index(vec![4.0]), 0.25, "a known length");
        assert_eq!(index(vec![4.0, 4.0]), 0.25);
        // To wait for the short one only: half a chance for 2 quanta.
        assert_eq!(index(vec![100.0, 2.0]), 0.25);
        assert_eq!(index(vec![3.0, 2.0]), 2.0 / 5.0);
    }

    #[test]
    fn visible_progress_tells_the_time_left_unless_more_is_known() {
        let quantum = Nanos::from_ms(200);
        let left = |seen: bool, expected: bool, counted: bool| {
            let mut spec = TaskSpec::new(0, "t");
            let ten_s = Expected::of(Nanos::from_s(10.0), ExpectedFrom::Same);
            spec.expected = expected.then_some(ten_s);
            let mut estimates = Estimates::default();
            if seen {
                estimates.visible_left = Reading::Value(Nanos::from_s(3.0));
            }
            if counted {
                estimates.learnt = Reading::Value(Learnt {
                    asks: PhaseDemand::default(),
                    solo_cpi: 1.0,
                    slower: Vec::new(),
                    error: 0.0,
                    measured: Measured::Phase,
                    progress: 0.0,
                    last: None,
                    phase: 0,
                });
            }
            let task = TaskView::arriving(&spec, Nanos::ZERO, estimates);
            Lengths::default().left(&task, quantum)
        };
        assert_eq!(left(true, false, true), [15.0]);
        assert_eq!(left(true, true, false), [15.0]);
        assert_eq!(left(true, true, true), [50.0; 3]);
        assert_eq!(left(false, true, false), [50.0; 3]);
        assert_eq!(left(false, false, false), [MEMORY]);
    }

    #[test]
    fn a_job_lasts_as_long_as_those_that_ended() {
        let lengths = |ended: &[f64]| Lengths {
            ended: ended.to_vec(),
            ..Lengths::default()
        };
        assert_eq!(lengths(&[]).left_as_others(5.0), [MEMORY]);
        assert_eq!(lengths(&[60.0]).left_as_others(25.0), [35.0, 25.0]);
        assert_eq!(lengths(&[60.0]).left_as_others(70.0), [20.0, 60.0]);
        assert_eq!(
            lengths(&[40.0]).left_as_others(70.0),
            [40.0],
            "an exception"
        );
    }
}
