//! Spare CPUs for tasks of measured width. A policy gives such a task its own CPU, and the loop adds the spare CPUs. So
//! policies need not know about it, and their view and decisions do not change.

use super::backend::Backend;
use super::state::RunLoop;
use crate::decision::{Change, Decision, Wait};
use crate::placement::Placement;
use crate::plan::{Filler, Spare};
use crate::sample::Usage;
use crate::spare::spare_cpus;
use crate::task::{TaskId, Width};
use crate::topology::CpuSet;
use std::borrow::Cow;

/// Maximum number of width observations at one instant, so that a quantum of many tasks costs no more than one of a
/// few.
const MOST_LOOKS: usize = 4;

impl<B: Backend> RunLoop<'_, B> {
    fn is_loose(&self, id: TaskId) -> bool {
        self.records[id].spec.width == Width::Measured
    }

    /// The changes that carry out a decision: its own changes, with the spare CPUs for tasks of measured width, and
    /// changes for unnamed tasks whose spare CPUs differ now.
    pub(super) fn loosened<'d>(&mut self, decision: &'d Decision) -> Cow<'d, [Change]> {
        if !self.measures_widths {
            return Cow::Borrowed(&decision.changes);
        }
        let spare = spare_cpus(&self.snap, decision);
        let mut changes = decision.changes.clone();
        let mut named = vec![false; self.snap.tasks.len()];
        for change in &mut changes {
            let Some(ix) = self.snap.position(change.task()) else {
                continue;
            };
            named[ix] = true;
            if let Change::Place {
                task, placement, ..
            } = change
            {
                *placement = self.with_spare(*task, placement, &spare);
                self.records[*task].bound = placement.cpus().clone();
            }
        }
        for (ix, task) in self.snap.tasks.iter().enumerate() {
            let Some(running) = task.running.as_ref().filter(|_| !named[ix]) else {
                continue;
            };
            let placement = self.with_spare(task.id, &running.placement, &spare);
            let record = &mut self.records[task.id];
            if record.bound != *placement.cpus() {
                record.bound = placement.cpus().clone();
                let (lease_end, purpose) = (running.lease_end, running.purpose);
                changes.push(Change::Place {
                    task: task.id,
                    placement,
                    lease_end,
                    purpose,
                });
            }
        }
        Cow::Owned(changes)
    }

    /// The CPUs that are unallocated in the snapshot, for running tasks of measured width.
    pub(super) fn spare(&self, waits: &[Wait]) -> Option<Spare> {
        if !self.measures_widths {
            return None;
        }
        let as_decided = Decision {
            waits: waits.to_vec(),
            ..Decision::default()
        };
        let cpus = spare_cpus(&self.snap, &as_decided);
        let mut tasks = Vec::new();
        for task in &self.snap.tasks {
            let has_own = task.exclusive_cpus().is_some();
            if has_own && task.control.place && self.is_loose(task.id) {
                tasks.push(Filler {
                    task: task.id,
                    allowed: task.allowed.clone(),
                });
            }
        }
        (!cpus.is_empty() && !tasks.is_empty()).then_some(Spare { cpus, tasks })
    }

    /// The placement, extended by the spare CPUs that the task may use.
    fn with_spare(&self, id: TaskId, placement: &Placement, spare: &CpuSet) -> Placement {
        let Placement::Exclusive { cpus, .. } = placement else {
            return placement.clone();
        };
        let task = self
            .snap
            .task(id)
            .filter(|task| task.control.place && self.is_loose(id));
        match task.map(|task| task.usable(spare)) {
            Some(more) if !more.is_empty() => Placement::Shared {
                mask: cpus.iter().chain(more.iter()).collect(),
            },
            _ => placement.clone(),
        }
    }

    /// Updates the CPUs of open intervals: an interval that starts now has exactly these CPUs, an older one has them in
    /// addition.
    pub(super) fn note_bounds(&mut self) {
        if !self.measures_widths {
            return;
        }
        let now = self.snap.now;
        for task in self.snap.tasks.iter().filter(|task| task.running.is_some()) {
            let record = &mut self.records[task.id];
            let Some(interval) = record
                .interval
                .as_mut()
                .filter(|_| record.spec.width == Width::Measured)
            else {
                continue;
            };
            if interval.since == now {
                interval.cpus.clone_from(&record.bound);
            } else {
                interval.cpus.extend(record.bound.iter());
            }
        }
    }

    /// Observes how many threads of these tasks want a CPU, where an observation is due. Tasks with the fewest
    /// observations come first. `usages` are the usages of the tasks.
    pub(super) fn look_at_widths(&mut self, tasks: &[TaskId], usages: &[Usage]) {
        let mut due: Vec<TaskId> = Vec::new();
        for &id in tasks {
            let runs = self
                .snap
                .task(id)
                .is_some_and(|task| task.running.is_some());
            if runs && self.records[id].width.is_due() {
                due.push(id);
            }
        }
        due.sort_by_key(|id| (self.records[*id].width.looks(), *id));
        for id in due.into_iter().take(MOST_LOOKS) {
            let wanting = self.backend.wanting(id);
            let width = &mut self.records[id].width;
            width.add(wanting.map(|wanting| wanting.all));
            let found = width.found();
            if self.is_loose(id)
                && let Some(ix) = self.snap.position(id)
            {
                self.snap.tasks[ix].estimates.wanting = found;
            }
            let usage = usages.iter().find(|usage| usage.task == id);
            if let (Some(wanting), Some(usage)) = (wanting.value(), usage) {
                self.note_crowd(id, wanting, usage);
            }
        }
    }
}

/// The CPUs that a task may use: its own and spare ones.
pub(super) fn cpus_of<'t>(width: Width, bound: &'t CpuSet, own: &'t CpuSet) -> &'t CpuSet {
    if width == Width::Measured && !bound.is_empty() {
        bound
    } else {
        own
    }
}
