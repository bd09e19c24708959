//! Tasks come to the run, and their records go when they have ended.

use super::backend::Backend;
use super::error::RunError;
use super::fact::Fact;
use super::state::RunLoop;
use super::task_record::TaskRecord;
use crate::task::{TaskId, TaskSpec, Width};
use crate::topology::Machine;
use crate::units::Nanos;

/// Number of queued tasks below which the loop asks for more.
const FEW: usize = 5_000;
/// Maximum number of tasks to take at once: taking them in costs time.
const ROOM: usize = 500;

impl<B: Backend> RunLoop<'_, B> {
    /// Whether tasks may still come.
    pub(super) fn is_open(&self) -> bool {
        self.early_end.is_none() && !self.intake.has_ended()
    }

    /// Whether tasks can be taken at once.
    pub(super) fn can_take(&self) -> bool {
        self.is_open() && self.admission.queue().len() < FEW && self.intake.is_ready()
    }

    /// Takes tasks that have come; returns whether there were any.
    ///
    /// # Errors
    /// A task is misnumbered, or does not fit the machine.
    pub(super) fn take_in(&mut self, now: Nanos) -> Result<bool, RunError<B::Error>> {
        if !self.is_open() || self.admission.queue().len() >= FEW {
            return Ok(false);
        }
        let mut tasks = Vec::new();
        self.intake.take(self.backend, ROOM, &mut tasks);
        check_numbers(self.taken, &tasks)?;
        if self.taken == 0 {
            // Later the machine may have fewer CPUs for a while.
            check_sizes(&tasks, &self.backend.machine())?;
        }
        let has_some = !tasks.is_empty();
        if has_some {
            self.recorder.emit(now, Fact::Came(&tasks));
        }
        for task in tasks {
            self.enlist(task, now);
        }
        if self.intake.has_ended() {
            // Percentages of all tasks are known now.
            self.apply_halt_rule(now);
        }
        Ok(has_some)
    }

    /// Makes the record of a new task, and queues it.
    fn enlist(&mut self, task: TaskSpec, now: Nanos) {
        self.taken += 1;
        self.ideal.add(&task);
        self.snap.ideal_bandwidth = self.ideal.mean();
        self.measures_widths |= task.width == Width::Measured;
        self.admission.came(&task, now);
        let record = TaskRecord::new(task, self.config.quantum);
        self.records.insert(record.spec.id, record);
    }

    /// Forgets a task that will not run again. Its result is kept, unless there are too many.
    pub(super) fn forget(&mut self, id: TaskId) {
        let Some(record) = self.records.remove(id) else {
            return;
        };
        self.backend.forget(id);
        self.admission.forget(id);
        let result = record.result();
        let max = self.config.results_max;
        let has_room = self.results.len() < max;
        // Failures matter more.
        let may_stay = !result.succeeded() && self.results.len() / 2 < max;
        self.left_out.note(&result, !has_room && !may_stay);
        if has_room || may_stay {
            self.results.push(result);
        } else {
            self.recorder.emit(self.snap.now, Fact::Forgotten(id));
        }
    }
}

/// Checks that the tasks are numbered in order from `first`.
fn check_numbers<E: std::error::Error>(
    first: usize,
    tasks: &[TaskSpec],
) -> Result<(), RunError<E>> {
    for (task, should) in tasks.iter().zip(first..) {
        if task.id.0 as usize != should {
            return Err(RunError::Numbering {
                name: task.name.clone(),
                is: task.id.0,
                should,
            });
        }
    }
    Ok(())
}

/// Checks that each task fits the machine.
fn check_sizes<E: std::error::Error>(
    tasks: &[TaskSpec],
    machine: &Machine,
) -> Result<(), RunError<E>> {
    let all = machine.all_cpus();
    for task in tasks {
        let have = match &task.allowed {
            Some(mask) => machine.widest(&mask.intersection(&all)),
            None => machine.widest(&all),
        };
        if task.cpus as usize > have || task.cpus == 0 {
            return Err(RunError::TooLarge {
                name: task.name.clone(),
                needs: task.cpus,
                have,
            });
        }
    }
    Ok(())
}
