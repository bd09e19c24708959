//! What the loop of a run asks of this machine.

use super::clock::monotonic;
use super::loaded::{Loaded, in_charge};
use super::{Host, HostError, capabilities, go_on};
use crate::hold::tree::ProcessTree;
use cosched_core::{
    Absence, Backend, Began, Capabilities, Capability, Change, CpuSet, Demand, DeviceTime, Event,
    Kill, Machine, MayStart, Nanos, Occupation, Origin, Payload, Plan, Planner, Reading, Resources,
    Switch, TaskId, TaskSpec, Traffic, Usage, Visible, Wanting,
};
use rustix::process::Signal;
use std::sync::Arc;

impl Backend for Host {
    type Error = HostError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = capabilities(
            &self.root,
            &self.machine,
            self.meter.support(),
            self.freezing,
        );
        if self.loaded.as_ref().is_some_and(Loaded::is_in_charge) {
            capabilities.missing.remove(&Capability::Plans);
        }
        capabilities
    }

    fn now(&mut self) -> Nanos {
        self.clock.now()
    }

    fn stopwatch(&self) -> Option<Nanos> {
        Some(monotonic())
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), HostError> {
        // Events already in the caller's list do not end the wait.
        let before = events.len();
        loop {
            self.look_around();
            self.hold_or_let_go();
            let look = self.look_at_reaped();
            events.append(&mut self.queued);
            let wake = self.do_what_is_due(until);
            let wake = wake.into_iter().chain(look).min();
            let timeout = if events.len() > before {
                Some(Nanos::ZERO)
            } else {
                let due = wake.map(|wake| wake - self.clock.now());
                due.into_iter().chain(self.extent.wait()).min()
            };
            let news = self.listen(timeout)?;
            self.take_news(news, events);
            if events.len() > before || until.is_some_and(|until| self.clock.now() >= until) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        let clock = self.clock.relation();
        for &task in tasks {
            let counted = self.loaded.as_mut().and_then(|loaded| loaded.counted(task));
            let account = self.lifecycle.cpu_time(task);
            let mut usage = self.meter.read(task, account, counted);
            if let Some(loaded) = &mut self.loaded {
                usage.residency = loaded.residency(task, &clock);
            }
            out.push(usage);
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        let mut moved = Vec::new();
        for task in self.lifecycle.tasks() {
            if let Some(tree) = self.lifecycle.tree(task) {
                moved.push((task, tree.disk_bytes()));
            }
        }
        self.disk.share_out(&moved);
        for usage in usages {
            usage.device_time = DeviceTime {
                disk: self.disk.time(usage.task),
                net: Reading::Absent(Absence::NotOffered),
            };
        }
    }

    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>) {
        out.extend(
            self.progress_reader
                .look(self.clock.now(), &self.lifecycle, tasks),
        );
    }

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        match self
            .lifecycle
            .tree(task)
            .filter(|_| !self.actuator.is_frozen(task))
        {
            Some(tree) => tree.wanting(),
            None => Reading::Absent(Absence::NotStarted),
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), HostError> {
        if let Some(loaded) = in_charge(&mut self.loaded) {
            loaded.withdraw();
        }
        let Host {
            lifecycle,
            actuator,
            broken,
            ..
        } = self;
        if changes.is_empty() && !actuator.holds_any() {
            return Ok(());
        }
        // Frozen jobs, and jobs about to be frozen, must include all their processes.
        lifecycle.adopt_orphans();
        actuator.look_again(lifecycle);
        for change in changes {
            if matches!(change, Change::Stop { .. }) {
                actuator.set_frozen(lifecycle, change.task(), true);
            }
        }
        let (new, old): (Vec<_>, Vec<_>) = placed(changes)
            .partition(|(task, _)| lifecycle.can_start(*task) || broken.contains_key(task));
        for (task, cpus) in &old {
            actuator.bind(lifecycle, *task, cpus);
        }
        for (task, _) in old {
            actuator.set_frozen(lifecycle, task, false);
        }
        for (task, cpus) in new {
            self.start(task, cpus);
        }
        Ok(())
    }

    fn began(&self, task: TaskId) -> Began {
        let at = self.began.get(&task);
        at.map_or(Began::WithDecision, |&at| Began::At(at))
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<HostError>> {
        self.loaded.is_some().then_some(self as _)
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        if let Some(loaded) = in_charge(&mut self.loaded) {
            // It needs a CPU to end.
            loaded.release(task);
        }
        let Host {
            lifecycle,
            actuator,
            ..
        } = self;
        lifecycle.adopt_orphans();
        let Some(tree) = lifecycle.tree(task) else {
            return;
        };
        match how {
            Kill::Term => {
                // First the signal, then the thaw: the job must do nothing else before it gets the signal.
                tree.signal(Signal::TERM);
                lifecycle.telling_to_end(task);
                actuator.release(lifecycle, task);
                // A job that stopped itself must get it too.
                go_on(lifecycle, task);
            }
            Kill::Kill if tree.kill_group() => {}
            Kill::Kill => {
                actuator.set_frozen(lifecycle, task, true);
                tree.kill_each();
                // If the kernel lacks `cgroup.kill`, a frozen group keeps even killed processes.
                actuator.set_frozen(lifecycle, task, false);
            }
        }
    }

    fn ending(&mut self) {
        self.end_hold();
    }

    fn restart(&mut self, task: TaskId) -> bool {
        // Its program is spawned again at its next placement, and appends to its files.
        let can = self.lifecycle.can_start(task);
        if can {
            self.meter.reset(task);
            self.progress_reader.forget(task);
            if let Some(loaded) = &mut self.loaded {
                loaded.forget(task);
            }
        }
        can
    }

    fn forget(&mut self, task: TaskId) {
        self.lifecycle.forget(task);
        self.meter.reset(task);
        self.headroom.not_started(task);
        self.headroom.forget(task);
        self.disk.forget(task);
        self.progress_reader.forget(task);
        if let Some(loaded) = &mut self.loaded {
            loaded.forget(task);
        }
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.resources
            .remove(&task)
            .unwrap_or(Resources::absent(Absence::NotEnded))
    }

    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        if task.origin == Origin::Adopted {
            return MayStart::Yes;
        }
        if self.extent.is_short_of_memory() {
            return MayStart::Later;
        }
        let Host {
            headroom,
            root,
            clock,
            lifecycle,
            ..
        } = self;
        let expected = task.expected.and_then(|expected| expected.memory);
        let needs = task.memory.or(expected);
        headroom.may_start(root, clock.now(), (task.id, needs), |live| {
            lifecycle.tree(live).map_or(0, ProcessTree::resident)
        })
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let first = out.len();
        self.meter.traffic(&self.root, &self.machine, out);
        let now = self.clock.now();
        if let Some(loaded) = in_charge(&mut self.loaded) {
            loaded.moved(now, &out[first..]);
        }
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.meter.energy_j()
    }
}

impl Planner<HostError> for Host {
    fn install(&mut self, plan: &Plan) -> Result<(), HostError> {
        let Host {
            lifecycle,
            actuator,
            loaded,
            clock,
            queued,
            ..
        } = self;
        let Payload::Schedule(schedule) = &plan.payload;
        let generation = plan.generation;
        let Some(loaded) = in_charge(loaded) else {
            let why = "the scheduler was removed from the kernel".to_owned();
            queued.push(Event::PlanRefused { generation, why });
            return Ok(());
        };
        if let Err(why) = loaded.adopt(generation, schedule, &clock.relation()) {
            queued.push(Event::PlanRefused { generation, why });
            return Ok(());
        }
        lifecycle.adopt_orphans();
        // From now on the plan controls the jobs that were frozen or pinned one by one.
        loaded.share_out(schedule, lifecycle, actuator);
        let mut new = Vec::new();
        for seat in &schedule.seats {
            if lifecycle.can_start(seat.task) {
                new.push((seat.task, loaded.cpus_of(seat)));
            }
        }
        for (task, cpus) in new {
            self.start(task, &cpus);
        }
        self.queued.push(Event::PlanAdopted { generation });
        Ok(())
    }

    fn switches(&mut self, out: &mut Vec<Switch>) {
        // A removed scheduler reports what it saw until then.
        if let Some(loaded) = &mut self.loaded {
            loaded.switches(&self.clock.relation(), out);
        }
    }

    fn occupation(&mut self) -> Option<Occupation> {
        in_charge(&mut self.loaded)?.occupation()
    }

    fn admits(&mut self) -> Option<Vec<Demand>> {
        let loaded = in_charge(&mut self.loaded)?;
        loaded.admits().then(|| loaded.demands())
    }
}

/// The jobs to place, with their CPUs.
fn placed(changes: &[Change]) -> impl Iterator<Item = (TaskId, &CpuSet)> {
    changes.iter().filter_map(|change| match change {
        Change::Place {
            task, placement, ..
        } => Some((*task, placement.cpus())),
        Change::Stop { .. } => None,
    })
}
