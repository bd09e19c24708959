//! The time of each simulated task by state: alone on a CPU, beside others, or waiting.

use crate::world::{SimWorld, ThreadState};
use cosched_core::{Nanos, Residency, TaskId};

/// The residencies of all tasks.
pub(crate) struct Residencies {
    tasks: Vec<Residency>,
    /// Time in which each pair of tasks ran together, in ns: row and column by task.
    together: Vec<Vec<u64>>,
    /// Buffers kept between calls: the tasks on CPUs, and the tasks on each core.
    running: Vec<usize>,
    on_core: Vec<Vec<usize>>,
}

impl Residencies {
    pub(crate) fn new(tasks: usize) -> Residencies {
        Residencies {
            tasks: vec![Residency::default(); tasks],
            together: vec![vec![0; tasks]; tasks],
            running: Vec::new(),
            on_core: Vec::new(),
        }
    }

    /// Counts the time until `to`, in which nothing changes in the world. `takes_part` is true for tasks that have
    /// started and not ended.
    pub(crate) fn pass(&mut self, world: &SimWorld, to: u64, takes_part: impl Fn(usize) -> bool) {
        let span = to - world.now;
        if span == 0 {
            return;
        }
        self.on_core.resize(world.machine.cores.len(), Vec::new());
        self.on_core.iter_mut().for_each(Vec::clear);
        self.running.clear();
        for cpu in &world.cpus {
            let Some(thread) = cpu.current else { continue };
            let task = world.threads[thread].task as usize;
            self.running.push(task);
            let on_core = &mut self.on_core[cpu.core];
            if !on_core.contains(&task) {
                on_core.push(task);
            }
        }
        self.running.sort_unstable();
        self.running.dedup();
        for &task in &self.running {
            let mut on_core = self.on_core.iter();
            let alone = on_core.all(|tasks| tasks.len() == 1 || !tasks.contains(&task));
            let residency = &mut self.tasks[task];
            residency.on_cpu += Nanos(span);
            residency.alone += Nanos(if alone { span } else { 0 });
            residency.last_on_cpu = Some(Nanos(to));
            for &other in self.running.iter().filter(|&&other| other != task) {
                self.together[task][other] += span;
            }
        }
        for (task, residency) in self.tasks.iter_mut().enumerate() {
            if takes_part(task)
                && self.running.binary_search(&task).is_err()
                && is_awake(world, task)
            {
                residency.waiting += Nanos(span);
            }
        }
    }

    /// A task's residency so far.
    pub(crate) fn of(&self, task: TaskId) -> Residency {
        let row = self.together[task.0 as usize].iter().zip(0u32..);
        let beside = row
            .filter(|(time, _)| **time > 0)
            .map(|(&time, other)| (TaskId(other), Nanos(time)));
        Residency {
            beside: beside.collect(),
            ..self.tasks[task.0 as usize].clone()
        }
    }

    /// Clears the residency of a task that restarts.
    pub(crate) fn forget(&mut self, task: TaskId) {
        let ix = task.0 as usize;
        self.tasks[ix] = Residency::default();
        self.together[ix].iter_mut().for_each(|time| *time = 0);
    }
}

/// Whether a thread of a task is neither asleep nor done.
pub(crate) fn is_awake(world: &SimWorld, task: usize) -> bool {
    let mut threads = world.tasks[task].clone();
    threads.any(|thread| {
        !matches!(
            world.threads[thread].state,
            ThreadState::Asleep | ThreadState::Waiting | ThreadState::Done
        )
    })
}
