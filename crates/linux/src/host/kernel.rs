//! A scheduler in the kernel that carries out plans, as a [`Host`](super::Host) sees it.

use super::clock::Clock;
use crate::counters::Counted;
use cosched_core::{Demand, Occupation, PerCounter, Reading, Residency, Schedule, Switch, TaskId};
use std::io;
use std::os::fd::BorrowedFd;

/// A scheduler in the kernel. It has the processes of the tasks that it was given, with all that these start, and lets them run
/// as the plan in force says. While no plan is in force they run as they come.
///
/// Instants are those of the run; `Clock` relates them to the kernel's.
pub trait KernelScheduler {
    /// All ordinary processes of the machine are scheduled by it, not only those that were given to it.
    fn takes_all(&self) -> bool;

    /// It carries out shared seats too, by admitting tasks to the memory bus at each event; otherwise they are the ordinary
    /// scheduler's.
    fn admits(&self) -> bool;

    /// The demands on the memory bus that it has measured, in ascending order of the tasks.
    fn demands(&mut self) -> Vec<Demand>;

    /// Takes charge of a process, which is about to become the program of a task, and of all that it will start. `handle`
    /// is a descriptor of that process. It is free until [`set_free`](KernelScheduler::set_free) says otherwise.
    ///
    /// # Errors
    /// The kernel refuses it, or there are too many tasks at once.
    fn take(&mut self, task: TaskId, handle: BorrowedFd<'_>) -> io::Result<()>;

    /// Whether a task is free: it runs as it comes, whatever plans say.
    fn set_free(&mut self, task: TaskId, free: bool);

    /// A task has no process left.
    fn ended(&mut self, task: TaskId);

    /// Puts a plan into force. Unless it [admits](KernelScheduler::admits), shared seats are the caller's to carry out.
    ///
    /// # Errors
    /// Why it can't be carried out; the plan before it stays in force.
    fn adopt(&mut self, generation: u64, schedule: &Schedule, clock: &Clock) -> Result<(), String>;

    /// Ends the plan in force.
    fn withdraw(&mut self);

    /// Where the time of a task went since it was taken charge of.
    fn residency(&mut self, task: TaskId, clock: &Clock) -> Reading<Residency>;

    /// Whether it counts what tasks do, each from the moment in which it becomes its program. It goes on with that for those that
    /// it has after it was removed.
    fn counts(&self) -> bool;

    /// The counts of a task up to now; `None` for counters that are not in use.
    fn counted(&mut self, task: TaskId) -> PerCounter<Option<Counted>>;

    /// CPU use of the tasks so far.
    fn occupation(&mut self) -> Option<Occupation>;

    /// Appends which CPUs went to which tasks since this was last asked, in the order of time.
    fn switches(&mut self, clock: &Clock, out: &mut Vec<Switch>);

    /// Does what has to be done now and then. Called at least once a second.
    fn tend(&mut self);

    /// Can be read when the scheduler was removed.
    fn line(&self) -> BorrowedFd<'_>;

    /// Removes it from the kernel. What it counts goes on.
    fn unload(&mut self);

    /// Why the scheduler was removed or must be, if so.
    fn removed(&mut self) -> Option<String>;

    /// The task and the number of its processes that have left the scheduler since this was last asked, by choosing a
    /// scheduling policy of their own.
    fn escaped(&mut self) -> Vec<(TaskId, u32)>;
}
