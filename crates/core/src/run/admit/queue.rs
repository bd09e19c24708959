//! The queue of the tasks that wait for admission.

use super::order::sort;
use crate::by_task::ByTask;
use crate::task::{Origin, TaskId, TaskSpec};
use crate::units::Nanos;
use std::collections::VecDeque;
use std::ops::Index;

/// The tasks that wait for admission. Those that have arrived come first, in the order of admission.
#[derive(Default)]
pub(super) struct AdmissionQueue {
    waiting: VecDeque<TaskId>,
    /// Number of tasks at the front that are in the order of admission.
    arrived: usize,
    /// The class of tasks of unknown length.
    median_class: u32,
    /// Each task of the run that may wait, or wait again.
    tasks: ByTask<QueuedTask>,
}

/// What the queue knows of a task.
pub(super) struct QueuedTask {
    pub(super) arrives: Nanos,
    /// Whether it was found running. It holds its memory.
    is_adopted: bool,
    /// Its [class](super::order::class) in the order of admission, if that is known.
    class: Option<u32>,
    /// Whether it was queued again. It then keeps its place in the queue, unless more tasks may come.
    pub(super) is_again: bool,
    /// Since when it waits: its arrival, or the end of its last run.
    pub(super) since: Nanos,
    /// The position in the order of admission that it keeps, because it was lost.
    pub(super) turn: Option<u32>,
}

impl QueuedTask {
    /// Whether it keeps its place at the front, whatever its length.
    pub(super) fn is_bound(&self) -> bool {
        self.is_adopted || self.turn.is_some()
    }
}

impl Index<TaskId> for AdmissionQueue {
    type Output = QueuedTask;

    fn index(&self, id: TaskId) -> &QueuedTask {
        &self.tasks[id]
    }
}

impl AdmissionQueue {
    /// All waiting tasks, in their order.
    pub(super) fn ids(&self) -> &VecDeque<TaskId> {
        &self.waiting
    }

    /// Number of waiting tasks that have arrived.
    pub(super) fn arrived(&self) -> usize {
        self.arrived
    }

    /// The waiting tasks that have arrived, in the order of admission.
    pub(super) fn in_order(&self) -> impl Iterator<Item = TaskId> {
        self.waiting.iter().take(self.arrived).copied()
    }

    pub(super) fn at(&self, place: usize) -> TaskId {
        self.waiting[place]
    }

    pub(super) fn first(&self) -> Option<TaskId> {
        self.waiting.front().copied()
    }

    /// The class by which a task is compared.
    pub(super) fn class_of(&self, id: TaskId) -> u32 {
        self.tasks[id].class.unwrap_or(self.median_class)
    }

    /// Number of tasks in order from `place` on that are of this class or a higher one. They are sorted by class.
    pub(super) fn run_of_class(&mut self, place: usize, class: u32) -> usize {
        self.waiting.make_contiguous();
        let (waiting, _) = self.waiting.as_slices();
        waiting[place..self.arrived].partition_point(|&id| self.class_of(id) >= class)
    }

    /// Sorts the tasks that have arrived, if there are more than before. In a batch a restarted task keeps its place: tasks
    /// that arrived before it stay before it, and later ones come after it.
    pub(super) fn put_in_order(&mut self, now: Nanos, by_response: bool, by_class: bool) {
        let arrived = self.place_after(now);
        let before = std::mem::replace(&mut self.arrived, arrived);
        if arrived <= before {
            return;
        }
        let tasks = &self.tasks;
        let mut waiting = &mut self.waiting.make_contiguous()[..arrived];
        let again = waiting.iter().rposition(|&id| tasks[id].is_again);
        if let Some(again) = again.filter(|_| !by_response) {
            waiting = &mut waiting[again + 1..];
        }
        if by_class {
            self.median_class = sort(waiting, |id| tasks[id].class);
        }
        // What waits frozen holds its memory.
        waiting.sort_by_key(|&id| !tasks[id].is_adopted);
    }

    /// The place behind the tasks that have arrived until then.
    fn place_after(&self, instant: Nanos) -> usize {
        let tasks = &self.tasks;
        self.waiting
            .partition_point(|&id| tasks[id].arrives <= instant)
    }

    /// Queues a new task by its arrival.
    pub(super) fn came(&mut self, task: &TaskSpec, class: Option<u32>) {
        let place = self.place_after(task.arrives);
        self.waiting.insert(place, task.id);
        let queued = QueuedTask {
            arrives: task.arrives,
            is_adopted: task.origin == Origin::Adopted,
            class,
            is_again: false,
            since: task.arrives,
            turn: None,
        };
        self.tasks.insert(task.id, queued);
    }

    /// Queues a task for another run, behind the tasks that have arrived and before those that have not.
    pub(super) fn comes_again(&mut self, id: TaskId, now: Nanos, by_response: bool) {
        let queued = &mut self.tasks[id];
        queued.is_again = true;
        queued.since = now;
        queued.turn = None;
        let place = self.place_after(now);
        self.waiting.insert(place, id);
        if !by_response && place == self.arrived {
            // It is already in its sorted position.
            self.arrived += 1;
        }
    }

    /// Queues a lost task before all others, with its old turn.
    pub(super) fn lost(&mut self, id: TaskId, turn: Option<u32>) {
        let queued = &mut self.tasks[id];
        queued.is_again = true;
        queued.turn = turn;
        self.put_first(id);
    }

    /// Queues a task before all others.
    pub(super) fn put_first(&mut self, id: TaskId) {
        self.waiting.push_front(id);
        self.arrived += 1;
    }

    /// Moves a task to another place.
    pub(super) fn shift(&mut self, from: usize, to: usize) {
        if let Some(id) = self.waiting.remove(from) {
            self.waiting.insert(to, id);
        }
    }

    /// Takes the task at this place.
    pub(super) fn take(&mut self, place: usize) -> Option<TaskId> {
        let id = self.waiting.remove(place)?;
        self.arrived -= usize::from(place < self.arrived);
        Some(id)
    }

    /// Removes a task, if it waits.
    pub(super) fn remove(&mut self, id: TaskId) {
        if let Some(place) = self.waiting.iter().position(|&other| other == id) {
            self.take(place);
        }
    }

    /// Removes all tasks but those that were found running.
    pub(super) fn drop_new(&mut self) {
        let tasks = &self.tasks;
        self.waiting.retain(|&id| tasks[id].is_adopted);
        self.arrived = 0;
    }

    /// Removes all tasks.
    pub(super) fn take_all(&mut self) -> VecDeque<TaskId> {
        self.arrived = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Forgets a task that will not wait again.
    pub(super) fn forget(&mut self, id: TaskId) {
        self.tasks.remove(id);
    }
}
