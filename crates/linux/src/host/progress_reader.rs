//! The visible progress of the jobs: what they tell by their descriptor, else what they print by the user's pattern, else the
//! share of their input.

use super::clock::own_cpu_time;
use super::descriptor;
use super::input::Input;
use super::lifecycle::Lifecycle;
use super::printed::ProgressPattern;
use cosched_core::{Absence, Nanos, Reading, TaskId, Visible, VisibleFrom};
use std::collections::BTreeMap;

/// Least time between two looks, as a multiple of the CPU time of one. So they cost at most 0.1 % of a CPU.
const SHARE: u64 = 1_000;

/// Looks at the progress of the jobs from outside.
pub(super) struct ProgressReader {
    pattern: Option<ProgressPattern>,
    inputs: BTreeMap<TaskId, Input>,
    /// Time of the next look.
    next: Nanos,
}

impl ProgressReader {
    pub(super) fn new(pattern: Option<ProgressPattern>) -> ProgressReader {
        ProgressReader {
            pattern,
            inputs: BTreeMap::new(),
            next: Nanos::ZERO,
        }
    }

    /// Looks at these jobs, if that is due.
    pub(super) fn look(
        &mut self,
        now: Nanos,
        jobs: &Lifecycle,
        tasks: &[TaskId],
    ) -> Vec<(TaskId, Reading<Visible>)> {
        if now < self.next {
            return Vec::new();
        }
        let before = own_cpu_time();
        let mut seen = Vec::new();
        for &task in tasks {
            let said = written(jobs, task).or_else(|| self.printed(jobs, task));
            let share = said.map_or_else(|| self.read(jobs, task), Reading::Value);
            seen.push((task, share));
        }
        let took = own_cpu_time() - before;
        self.next = now + Nanos(took.0.saturating_mul(SHARE));
        seen
    }

    fn printed(&self, jobs: &Lifecycle, task: TaskId) -> Option<Visible> {
        let share = self.pattern.as_ref()?.share(&jobs.output_files(task)?)?;
        let from = VisibleFrom::Output;
        Some(Visible { share, from })
    }

    fn read(&mut self, jobs: &Lifecycle, task: TaskId) -> Reading<Visible> {
        let Some(tree) = jobs.tree(task) else {
            return Reading::Absent(Absence::NotStarted);
        };
        let from = VisibleFrom::Input;
        let share = self.inputs.entry(task).or_default().look(tree);
        share.map(|share| Visible { share, from })
    }

    /// Forgets a job that has ended, or starts again.
    pub(super) fn forget(&mut self, task: TaskId) {
        self.inputs.remove(&task);
    }
}

fn written(jobs: &Lifecycle, task: TaskId) -> Option<Visible> {
    let share = descriptor::share(jobs.tree(task)?, jobs.progress_at?)?;
    let from = VisibleFrom::Descriptor;
    Some(Visible { share, from })
}
