//! Signal handling for a backend without processes of its own, such as the simulation.

use cosched_core::{
    Backend, Capabilities, Change, Event, Kill, Machine, MayStart, Nanos, Planner, Reading,
    Resources, TaskId, TaskSpec, Traffic, Usage,
};
use cosched_linux::{Interrupt, Interrupts};
use std::sync::Arc;

/// A backend with the signals that end the run, if it takes any.
pub(crate) struct Interruptible<B> {
    backend: B,
    interrupts: Option<Interrupts>,
}

impl<B: Backend> Interruptible<B> {
    /// A run on this backend ends in good order when a signal of `interrupts` comes.
    pub(crate) fn new(backend: B, interrupts: Option<Interrupts>) -> Interruptible<B> {
        Interruptible {
            backend,
            interrupts,
        }
    }
}

impl<B: Backend> Backend for Interruptible<B> {
    type Error = B::Error;

    fn machine(&self) -> Arc<Machine> {
        self.backend.machine()
    }

    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn now(&mut self) -> Nanos {
        self.backend.now()
    }

    fn stopwatch(&self) -> Option<Nanos> {
        self.backend.stopwatch()
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), B::Error> {
        let before = events.len();
        while let Some(signal) = self.interrupts.as_ref().and_then(Interrupts::next_signal) {
            events.push(match signal {
                Interrupt::End(signal) => Event::Interrupt { signal },
                // It is not held back, and does what it always does.
                Interrupt::Suspend => continue,
            });
        }
        // A signal is reported before simulated time moves on.
        if events.len() > before {
            Ok(())
        } else {
            self.backend.wait(until, events)
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        self.backend.read(tasks, out);
    }

    fn wanting(&mut self, task: TaskId) -> Reading<u32> {
        self.backend.wanting(task)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), B::Error> {
        self.backend.apply(changes)
    }

    fn began(&self, task: TaskId) -> Option<Nanos> {
        self.backend.began(task)
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<B::Error>> {
        self.backend.planner()
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        self.backend.kill(task, how);
    }

    fn restart(&mut self, task: TaskId) -> bool {
        self.backend.restart(task)
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.backend.resources(task)
    }

    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        self.backend.may_start(task)
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        self.backend.traffic(out);
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.backend.energy_j()
    }
}
