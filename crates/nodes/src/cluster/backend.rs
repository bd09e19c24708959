//! What the loop of a run asks of the nodes.

use super::{Cluster, ClusterError};
use crate::link::BEAT;
use crate::protocol::NodeOrder;
use cosched_core::{
    Absence, Backend, Began, Capabilities, Capability, Change, Counter, Device, Event, Kill,
    Machine, MayStart, Nanos, Planner, Reading, Resources, TaskId, TaskSpec, Traffic, Usage,
    Visible, Wanting,
};
use std::sync::Arc;
use std::time::Duration;

/// What no backend of nodes can do: its workers schedule and count.
pub fn capabilities() -> Capabilities {
    let counters = Counter::ALL.into_iter().map(Capability::of);
    let others = [
        Capability::Freeze,
        Capability::Energy,
        Capability::Traffic,
        Capability::Device(Device::Disk),
        Capability::Device(Device::Net),
        Capability::SoloBandwidth,
        Capability::SoloTrace,
        Capability::CoreTypes,
        Capability::Plans,
    ];
    Capabilities {
        missing: counters
            .chain(others)
            .map(|lack| (lack, Absence::NotOffered))
            .collect(),
    }
}

impl Backend for Cluster {
    type Error = ClusterError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn now(&mut self) -> Nanos {
        self.elapsed()
    }

    fn stopwatch(&self) -> Option<Nanos> {
        Some(self.elapsed())
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), ClusterError> {
        // Events already in the caller's list do not end the wait.
        let before = events.len();
        loop {
            events.append(&mut self.queued);
            self.beat();
            self.even_out();
            let timeout = if events.len() > before {
                Duration::ZERO
            } else {
                let left = until.map(|until| until - self.elapsed());
                left.map_or(BEAT, |left| BEAT.min(Duration::from_nanos(left.0)))
            };
            let ready = self.poll(Some(timeout))?;
            self.take_news(&ready, events);
            self.lose_silent(events);
            self.pass_warnings();
            if events.len() > before || until.is_some_and(|until| self.elapsed() >= until) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        out.extend(tasks.iter().map(|&task| self.jobs.usage(task)));
    }

    fn device_time(&mut self, _usages: &mut [Usage]) {}

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, _task: TaskId) -> Reading<Wanting> {
        Reading::Absent(Absence::NotOffered)
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.jobs.resources(task)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), ClusterError> {
        for change in changes {
            if let Change::Place {
                task, placement, ..
            } = change
            {
                self.send(*task, placement.cpus());
            }
        }
        // A worker that sees all its new jobs at once knows how many threads each may have.
        for link in self.nodes.iter_mut().flat_map(|node| &mut node.link) {
            link.flush();
        }
        Ok(())
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::Later
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<ClusterError>> {
        None
    }

    /// A worker that is asked a second time kills the job.
    fn kill(&mut self, task: TaskId, _how: Kill) {
        let node = self.jobs.withdraw(task);
        if let Some(link) = node.and_then(|index| self.nodes[index].link.as_mut()) {
            link.send(&NodeOrder::Cancel(task.0.to_string()));
        }
    }

    fn ending(&mut self) {}

    fn restart(&mut self, _task: TaskId) -> bool {
        true
    }

    fn forget(&mut self, task: TaskId) {
        self.jobs.forget(task);
    }

    /// Where there is room on which node is for the policy to say.
    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let domains = self.machine.memory_domains.len();
        out.extend(std::iter::repeat_n(
            Traffic::absent(Absence::NotOffered),
            domains,
        ));
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NotOffered)
    }
}
