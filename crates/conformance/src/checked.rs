//! A backend under supervision: every call, by a scenario or by the loop, asserts what the contract says about it.

use crate::fixture::{Fixture, ScenarioJob, ScenarioOutcome, ScenarioSkip, needs};
use cosched_core::{
    Backend, Began, Capabilities, Capability, Change, CpuSet, Demand, Event, Exit, Kill, Machine,
    MayStart, Nanos, Occupation, Payload, Placement, Plan, Planner, Purpose, Reading, Resources,
    Switch, TaskId, TaskSpec, Traffic, Usage, Visible, Wanting,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The limit of a wait. Nothing in a scenario takes nearly this long, even on a busy machine.
const PATIENCE: Nanos = Nanos::from_ms(100_000);

/// A backend under test, with the checks.
pub(crate) struct Checked<F: Fixture> {
    pub(crate) inner: F::Backend,
    now: Nanos,
    /// Tasks that were placed at least once.
    started: BTreeSet<TaskId>,
    /// The placements of the tasks that run now.
    placed: BTreeMap<TaskId, CpuSet>,
    asleep: BTreeSet<TaskId>,
    used: BTreeMap<TaskId, Nanos>,
    ended: BTreeMap<TaskId, Exit>,
    forgotten: BTreeSet<TaskId>,
    /// Plans that were installed and neither adopted nor refused yet.
    installed: BTreeSet<u64>,
}

impl<F: Fixture> Checked<F> {
    /// A checked backend with these jobs.
    pub(crate) fn new(fixture: &F, jobs: &[ScenarioJob]) -> Result<Checked<F>, ScenarioSkip> {
        Ok(Checked {
            inner: fixture.backend(jobs)?,
            now: Nanos::ZERO,
            started: BTreeSet::new(),
            placed: BTreeMap::new(),
            asleep: BTreeSet::new(),
            used: BTreeMap::new(),
            ended: BTreeMap::new(),
            forgotten: BTreeSet::new(),
            installed: BTreeSet::new(),
        })
    }

    /// Skips the scenario, with the reason, when the backend lacks a capability.
    pub(crate) fn needs(&self, capability: Capability) -> ScenarioOutcome {
        needs(&self.inner, capability)
    }

    /// Two CPUs of the machine; skips the scenario if there is only one.
    pub(crate) fn two_cpus(&self) -> Result<[CpuSet; 2], ScenarioSkip> {
        let all = self.machine().all_cpus();
        let mut cpus = all.iter().map(|cpu| CpuSet::from_iter([cpu]));
        match (cpus.next(), cpus.next()) {
            (Some(a), Some(b)) => Ok([a, b]),
            _ => Err(ScenarioSkip("there is only one CPU".to_owned())),
        }
    }

    /// Applies valid changes.
    pub(crate) fn change(&mut self, changes: &[Change]) {
        self.apply(changes).expect("changes are applied");
    }

    /// Installs a plan that is adopted.
    pub(crate) fn plan(&mut self, plan: &Plan) {
        self.install(plan).expect("plans are taken");
    }

    /// Installs a plan that is going to be refused and changes nothing.
    pub(crate) fn refused_plan(&mut self, plan: &Plan) {
        plans(&mut self.inner)
            .install(plan)
            .expect("plans are taken");
        self.installed.insert(plan.generation);
    }

    /// The backend's clock.
    pub(crate) fn time(&mut self) -> Nanos {
        self.now()
    }

    /// Waits until something has happened.
    pub(crate) fn until(&mut self, what: impl Fn(&Event) -> bool) {
        let end = self.now() + PATIENCE;
        let mut events = Vec::new();
        while !events.iter().any(&what) {
            assert!(self.now() < end, "it never happens; only {events:?}");
            self.wait(Some(end), &mut events)
                .expect("the backend can wait");
        }
    }

    /// Waits for some milliseconds, whatever happens, and returns the events.
    pub(crate) fn pass(&mut self, ms: u64) -> Vec<Event> {
        let end = self.now() + Nanos::from_ms(ms);
        let mut events = Vec::new();
        while self.now() < end {
            self.wait(Some(end), &mut events)
                .expect("the backend can wait");
        }
        events
    }

    /// Waits until a task has ended, and returns how.
    pub(crate) fn until_ended(&mut self, task: u32) -> Exit {
        let end = self.now() + PATIENCE;
        loop {
            if let Some(exit) = self.ended.get(&TaskId(task)) {
                return exit.clone();
            }
            assert!(self.now() < end, "task {task} never ends");
            self.wait(Some(end), &mut Vec::new())
                .expect("the backend can wait");
        }
    }

    /// What one task has used.
    pub(crate) fn usage(&mut self, task: u32) -> Usage {
        let mut usages = Vec::new();
        self.read(&[TaskId(task)], &mut usages);
        usages.remove(0)
    }

    /// The CPU time of a started task. Panics if it can't be read.
    pub(crate) fn cpu_time(&mut self, task: u32) -> Nanos {
        match self.usage(task).cpu_time {
            Reading::Value(time) => time,
            Reading::Absent(why) => panic!("no CPU time of task {task}: {why}"),
        }
    }

    /// Waits until a task has used more than it had.
    pub(crate) fn until_it_works(&mut self, task: u32) {
        let before = self.cpu_time(task);
        let end = self.now() + PATIENCE;
        while self.cpu_time(task) <= before {
            assert!(self.now() < end, "task {task} does nothing");
            self.pass(10);
        }
    }

    /// The CPU time that some tasks use together, and a time that surely covers it: the clock is read before and after.
    pub(crate) fn used_while(&mut self, tasks: &[u32], ms: u64) -> (Nanos, Nanos) {
        let all = |this: &mut Self| {
            tasks
                .iter()
                .fold(Nanos::ZERO, |sum, &task| sum + this.cpu_time(task))
        };
        let began = self.now();
        let before = all(self);
        self.pass(ms);
        let used = all(self) - before;
        (used, self.now() - began)
    }

    /// The CPUs on which a task's processes are, or may be.
    pub(crate) fn cpus_of(&mut self, task: u32) -> CpuSet {
        F::cpus_of(&mut self.inner, task as usize, None)
    }

    fn check_places(&mut self) {
        for (task, cpus) in &self.placed {
            let found = F::cpus_of(&mut self.inner, task.0 as usize, Some(cpus));
            assert!(
                found.is_subset(cpus),
                "{task} was placed on {cpus} and is on {found}"
            );
        }
    }
}

/// The change that places a task alone on CPUs.
pub(crate) fn exclusive(task: u32, cpus: &CpuSet) -> Change {
    let placement = Placement::Exclusive {
        cpus: cpus.clone(),
        whole_core: false,
    };
    Change::Place {
        task: TaskId(task),
        placement,
        lease_end: None,
        purpose: Purpose::Run,
    }
}

/// The change that places a task on CPUs that it shares with others.
pub(crate) fn allowed(task: u32, mask: &CpuSet) -> Change {
    let placement = Placement::Shared { mask: mask.clone() };
    Change::Place {
        task: TaskId(task),
        placement,
        lease_end: None,
        purpose: Purpose::Run,
    }
}

/// The change that stops a task.
pub(crate) fn stop(task: u32) -> Change {
    Change::Stop { task: TaskId(task) }
}

impl<F: Fixture> Backend for Checked<F> {
    type Error = <F::Backend as Backend>::Error;

    fn machine(&self) -> Arc<Machine> {
        let machine = self.inner.machine();
        machine
            .validate()
            .expect("a machine without contradictions");
        machine
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn now(&mut self) -> Nanos {
        let now = self.inner.now();
        assert!(
            now >= self.now,
            "the clock went from {:?} back to {now:?}",
            self.now
        );
        self.now = now;
        now
    }

    fn stopwatch(&self) -> Option<Nanos> {
        self.inner.stopwatch()
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), Self::Error> {
        let before = events.len();
        let kept = events.clone();
        self.inner.wait(until, events)?;
        let now = self.now();
        assert_eq!(events[..before], kept[..], "what was there already stays");
        let new = &events[before..];
        if new.is_empty() {
            assert!(
                until.is_some_and(|until| now >= until),
                "at {now:?}, long before {until:?}, with no news"
            );
        }
        for event in new {
            match event {
                Event::Ended { task, exit } => {
                    assert!(
                        self.started.contains(task),
                        "{task}, which was never placed, ended: {exit}"
                    );
                    assert_eq!(
                        self.ended.insert(*task, exit.clone()),
                        None,
                        "{task} ended twice"
                    );
                    self.placed.remove(task);
                }
                Event::Slept(task) | Event::Woke(task) => {
                    assert!(
                        self.started.contains(task),
                        "{event:?}, and was never placed"
                    );
                    assert!(!self.ended.contains_key(task), "{event:?}, and had ended");
                    let news = match event {
                        Event::Slept(_) => self.asleep.insert(*task),
                        _ => self.asleep.remove(task),
                    };
                    // The backend need not report a frozen task's sleep and waking.
                    assert!(
                        news || !self.placed.contains_key(task),
                        "{event:?} is no news"
                    );
                }
                Event::PlanAdopted { generation } | Event::PlanRefused { generation, .. } => {
                    assert!(
                        self.installed.remove(generation),
                        "{event:?}, and was not installed, or is no news"
                    );
                }
                Event::MachineChanged
                | Event::Began { .. }
                | Event::Lost(_)
                | Event::GiveBack(_)
                | Event::Arrivals
                | Event::JobLimit(_)
                | Event::Paused
                | Event::Continued
                | Event::SchedulerEjected { .. }
                | Event::Drain
                | Event::Interrupt { .. }
                | Event::EndTask { .. } => {
                    panic!("{event:?}, and nothing led to it")
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        let before = out.len();
        self.inner.read(tasks, out);
        let told: Vec<TaskId> = out[before..].iter().map(|usage| usage.task).collect();
        assert_eq!(told, tasks, "one usage for each task, in their order");
        for usage in &out[before..] {
            if let Reading::Value(time) = usage.cpu_time {
                let earlier = self.used.insert(usage.task, time).unwrap_or_default();
                assert!(
                    time >= earlier,
                    "{} had used {earlier:?} and now {time:?}",
                    usage.task
                );
            }
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        self.inner.device_time(usages)
    }

    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>) {
        self.inner.visible(tasks, out);
    }

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        let wanting = self.inner.wanting(task);
        assert!(
            self.placed.contains_key(&task) || !wanting.is_value(),
            "{task} does not run and wants {wanting:?}"
        );
        wanting
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), Self::Error> {
        self.inner.apply(changes)?;
        for change in changes {
            match change {
                Change::Place {
                    task, placement, ..
                } => {
                    self.started.insert(*task);
                    self.placed.insert(*task, placement.cpus().clone());
                }
                Change::Stop { task } => drop(self.placed.remove(task)),
            }
        }
        self.check_places();
        Ok(())
    }

    fn began(&self, task: TaskId) -> Began {
        self.inner.began(task)
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<Self::Error>> {
        self.inner.planner()?;
        Some(self)
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        // A task may end on any CPU.
        self.placed.remove(&task);
        self.inner.kill(task, how);
    }

    fn restart(&mut self, task: TaskId) -> bool {
        assert!(
            self.ended.contains_key(&task),
            "only what has ended is started again"
        );
        let can = self.inner.restart(task);
        if can {
            self.ended.remove(&task);
            self.used.remove(&task);
            self.started.remove(&task);
        }
        can
    }

    fn forget(&mut self, task: TaskId) {
        assert!(
            self.ended.contains_key(&task),
            "only what has ended is forgotten"
        );
        assert!(self.forgotten.insert(task), "a task is forgotten once");
        self.inner.forget(task);
    }

    fn ending(&mut self) {
        self.inner.ending();
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        assert!(
            self.ended.contains_key(&task),
            "only what has ended is asked for"
        );
        self.inner.resources(task)
    }

    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        self.inner.may_start(task)
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let before = out.len();
        self.inner.traffic(out);
        let missing = self.inner.capabilities().why_missing(Capability::Traffic);
        let now = &out[before..];
        assert_eq!(
            now.len(),
            self.inner.machine().memory_domains.len(),
            "one for each memory domain"
        );
        for traffic in now {
            for value in [traffic.reads, traffic.writes] {
                assert!(
                    missing.is_none() || !value.is_value(),
                    "a value of what is missing: {traffic:?}"
                );
            }
        }
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.inner.energy_j()
    }
}

impl<F: Fixture> Planner<<F::Backend as Backend>::Error> for Checked<F> {
    fn install(&mut self, plan: &Plan) -> Result<(), <F::Backend as Backend>::Error> {
        let missing = self.capabilities().why_missing(Capability::Plans);
        assert_eq!(
            missing, None,
            "a plan is only installed where plans are carried out"
        );
        plans(&mut self.inner).install(plan)?;
        self.installed.insert(plan.generation);
        let Payload::Schedule(schedule) = &plan.payload;
        self.placed = schedule
            .seats
            .iter()
            .map(|seat| (seat.task, seat.placement.cpus().clone()))
            .collect();
        self.started.extend(self.placed.keys().copied());
        // An ended task keeps its seat in the plan, but does not run.
        self.placed.retain(|task, _| !self.ended.contains_key(task));
        self.check_places();
        Ok(())
    }

    fn switches(&mut self, out: &mut Vec<Switch>) {
        plans(&mut self.inner).switches(out);
    }

    fn occupation(&mut self) -> Option<Occupation> {
        plans(&mut self.inner).occupation()
    }

    fn admits(&mut self) -> Option<Vec<Demand>> {
        plans(&mut self.inner).admits()
    }
}

fn plans<B: Backend>(backend: &mut B) -> &mut dyn Planner<B::Error> {
    backend.planner().expect("this backend carries out plans")
}
