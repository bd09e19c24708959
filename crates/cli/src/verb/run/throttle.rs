//! Starts no further job while the machine's load average is too high (`--load`).

use cosched_core::{Backend, Capabilities, Change, Event, Kill, Machine, Nanos, Plan, Reading, TaskId, Traffic, Usage};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A backend that looks at the load average before it lets a further job start.
pub(crate) struct Throttled<B> {
    inner: B,
    /// The load average that is too high from here on; `None` for no limit.
    most: Option<f64>,
    /// `/proc/loadavg`.
    file: PathBuf,
}

impl<B> Throttled<B> {
    /// The same backend with this limit.
    pub(crate) fn new(inner: B, most: Option<f64>) -> Throttled<B> {
        Throttled { inner, most, file: PathBuf::from("/proc/loadavg") }
    }
}

/// The load average of the last minute; `None` if it can't be read.
fn load(file: &Path) -> Option<f64> {
    std::fs::read_to_string(file).ok()?.split(' ').next()?.parse().ok()
}

impl<B: Backend> Backend for Throttled<B> {
    type Error = B::Error;

    fn machine(&self) -> Arc<Machine> {
        self.inner.machine()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn now(&mut self) -> Nanos {
        self.inner.now()
    }

    fn stopwatch(&self) -> Option<Nanos> {
        self.inner.stopwatch()
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), B::Error> {
        self.inner.wait(until, events)
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        self.inner.read(tasks, out);
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), B::Error> {
        self.inner.apply(changes)
    }

    fn install(&mut self, plan: &Plan) -> Result<(), B::Error> {
        self.inner.install(plan)
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        self.inner.kill(task, how);
    }

    fn restart(&mut self, task: TaskId) -> bool {
        self.inner.restart(task)
    }

    fn may_start(&mut self) -> bool {
        // A machine that does not tell its load has not said that it is too high.
        let is_too_high = self.most.is_some_and(|most| load(&self.file).is_some_and(|load| load > most));
        !is_too_high && self.inner.may_start()
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        self.inner.traffic(out);
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.inner.energy_j()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_that_of_the_last_minute() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "4.25 3.10 2.00 2/512 12345\n").unwrap();
        assert_eq!(load(file.path()), Some(4.25));
        std::fs::write(file.path(), "").unwrap();
        assert_eq!((load(file.path()), load(Path::new("/nowhere"))), (None, None));
    }
}
