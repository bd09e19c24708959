//! The interface of a [`Host`](super::Host) to a scheduler in the kernel that carries out plans.

use super::clock::Clock;
use crate::counters::EventReading;
use cosched_core::{
    Demand, Nanos, Occupation, PerCounter, Reading, Residency, Schedule, Switch, TaskId, Traffic,
};
use std::io;
use std::os::fd::BorrowedFd;

/// A scheduler in the kernel. It schedules the processes of its tasks, with their descendants, by the plan in force.
/// Without a plan they run freely.
///
/// Instants are those of the run; `Clock` relates them to the kernel's.
pub trait KernelScheduler {
    /// Whether it schedules all ordinary processes of the machine, not only its tasks.
    fn takes_all(&self) -> bool;

    /// Whether it also carries out shared seats, by admitting tasks to the memory bus at each event; otherwise the
    /// ordinary scheduler runs them.
    fn admits(&self) -> bool;

    /// The demands on the memory bus that it has measured, in ascending order of the tasks.
    fn demands(&mut self) -> Vec<Demand>;

    /// Takes charge of a process that is about to execute the program of a task, and of its descendants. `handle` is a
    /// descriptor of that process. It is free until [`set_free`](KernelScheduler::set_free) changes that.
    ///
    /// # Errors
    /// The kernel's error, or too many tasks at once.
    fn take(&mut self, task: TaskId, handle: BorrowedFd<'_>) -> io::Result<()>;

    /// Sets whether a task is free: it then runs regardless of plans.
    fn set_free(&mut self, task: TaskId, free: bool);

    /// A task has no process left.
    fn ended(&mut self, task: TaskId);

    /// Puts a plan into force. Unless it [admits](KernelScheduler::admits), the caller carries out shared seats.
    ///
    /// # Errors
    /// Why it cannot be carried out; the previous plan stays in force.
    fn adopt(&mut self, generation: u64, schedule: &Schedule, clock: &Clock) -> Result<(), String>;

    /// Ends the plan in force.
    fn withdraw(&mut self);

    /// How a task's time was spent since it was taken charge of.
    fn residency(&mut self, task: TaskId, clock: &Clock) -> Reading<Residency>;

    /// Whether it counts events of tasks, from the moment when each executes its program. After its removal it
    /// continues to count its existing tasks.
    fn counts(&self) -> bool;

    /// The counts of a task up to now; `None` for counters that are not in use.
    fn counted(&mut self, task: TaskId) -> PerCounter<Option<EventReading>>;

    /// Takes the traffic of each memory domain since the start of the run, as it was read at this instant.
    fn moved(&mut self, at: Nanos, traffic: &[Traffic]);

    /// CPU use of the tasks so far.
    fn occupation(&mut self) -> Option<Occupation>;

    /// Appends the switches since the last call, in order of time.
    fn switches(&mut self, clock: &Clock, out: &mut Vec<Switch>);

    /// Does periodic work. Called at least once a second.
    fn tend(&mut self);

    /// Becomes readable when the scheduler is removed.
    fn line(&self) -> BorrowedFd<'_>;

    /// Removes it from the kernel. Its counting continues.
    fn unload(&mut self);

    /// Why the scheduler was removed or must be removed, if so.
    fn removed(&mut self) -> Option<String>;

    /// The tasks whose processes have left the scheduler since the last call by choosing their own scheduling policy,
    /// with the number of these processes.
    fn escaped(&mut self) -> Vec<(TaskId, u32)>;
}
