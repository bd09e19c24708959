//! A world as a backend of the loop.

use super::error::WorldError;
use super::line::{
    Added, Done, Happening, Lines, Open, Opened, Passed, Question, Totals, WorldJob,
};
use super::machine;
use crate::process::{Command, ForeignError, ForeignProcess, PATIENCE};
use cosched_core::{
    Absence, Backend, Began, Capabilities, Capability, Change, Counter, Counts, CpuSet, DeviceTime,
    Event, Exit, Kill, Machine, MayStart, Nanos, Placement, Planner, Reading, Resources, TaskId,
    TaskSpec, Traffic, Usage, Visible, Wanting,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time between two looks for signals while an answer is waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Maximum number of consecutive waits in which nothing happens and no task is placed. Then the run gives up.
const IDLE_WAITS: u32 = 100_000;

/// A machine with jobs that a foreign process simulates.
///
/// The loop asks for totals by methods that can't fail. An error there is kept, and the next method that can fail reports
/// it; after the last one, [`ForeignWorld::take_failure`] does.
pub struct ForeignWorld {
    process: ForeignProcess,
    /// The machine as the process knows it.
    whole: Machine,
    /// The usable part of it, as policies see it.
    machine: Arc<Machine>,
    missing: BTreeMap<String, Absence>,
    capabilities: Capabilities,
    now: Nanos,
    tasks: Vec<Task>,
    /// The task behind each number that the process knows. A task that starts again gets a new number.
    numbers: Vec<TaskId>,
    /// The totals of the machine, as last told.
    totals: MachineTotals,
    idle_waits: u32,
    failure: Option<WorldError>,
    signals: Signals,
}

struct Task {
    job: WorldJob,
    /// Its number in the process.
    number: u32,
    state: State,
    placement: Option<Placement>,
    /// Its CPU time, as last told.
    cpu_time: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    Started,
    Ended,
    /// It ended because it could not be started, so it has no totals.
    NeverStarted,
}

#[derive(Default)]
struct MachineTotals {
    /// When they were told.
    at: Option<Nanos>,
    traffic: Option<Vec<Lines>>,
    energy_j: Option<f64>,
}

/// The signals that end the run.
struct Signals {
    next: Box<dyn FnMut() -> Option<i32>>,
    /// Those that came while an answer was waited for.
    come: Vec<i32>,
    /// An answer is not waited for any longer when so many have come.
    enough: usize,
}

/// Asks a process, and looks for signals while it waits for the answer.
fn ask<A: DeserializeOwned>(
    process: &mut ForeignProcess,
    question: &impl Serialize,
    signals: &mut Signals,
) -> Result<A, WorldError> {
    process.tell(question);
    let since = Instant::now();
    loop {
        let within = PATIENCE.min(since.elapsed() + LOOK);
        match process.answer(since, within) {
            Err(ForeignError::Late { .. }) if within < PATIENCE => {}
            answer => return Ok(answer?),
        }
        if let Some(signal) = (signals.next)() {
            signals.come.push(signal);
            if signals.come.len() >= signals.enough {
                return Err(WorldError::Interrupted(signal));
            }
        }
    }
}

impl ForeignWorld {
    /// Starts a world, and asks it for its machine. `next_signal` returns a signal that ends the run, if one has come.
    ///
    /// # Errors
    /// The command can't be started, what it says is no machine, or the user does not wait for it.
    pub fn open(
        command: &Command,
        seed: u64,
        next_signal: impl FnMut() -> Option<i32> + 'static,
    ) -> Result<ForeignWorld, WorldError> {
        let mut process = ForeignProcess::start(command)?;
        // Nothing has started yet that would have to be ended.
        let mut signals = Signals {
            next: Box::new(next_signal),
            come: Vec::new(),
            enough: 1,
        };
        let opened: Opened = ask(&mut process, &Open::new(seed), &mut signals)?;
        signals.enough = 2;
        let Opened { machine, missing } = opened;
        machine::check(&machine).map_err(|problem| process.wrong(problem))?;
        let capabilities = machine::capabilities(&missing, &machine);
        let capabilities = capabilities.map_err(|problem| process.wrong(problem))?;
        Ok(ForeignWorld {
            process,
            machine: Arc::new(machine.clone()),
            whole: machine,
            missing,
            capabilities,
            now: Nanos::ZERO,
            tasks: Vec::new(),
            numbers: Vec::new(),
            totals: MachineTotals::default(),
            idle_waits: 0,
            failure: None,
            signals,
        })
    }

    /// Shows policies only these CPUs, some of the machine's.
    pub fn use_cpus(&mut self, usable: &CpuSet) {
        let part = self.whole.part(usable);
        // It was checked when the world was opened.
        if let Ok(capabilities) = machine::capabilities(&self.missing, &part) {
            self.capabilities = capabilities;
        }
        self.machine = Arc::new(part);
    }

    /// Adds jobs, which become the next tasks.
    ///
    /// # Errors
    /// The world refuses them, or is gone.
    pub fn add(&mut self, jobs: Vec<WorldJob>) -> Result<(), WorldError> {
        let first = self.tasks.len();
        for job in jobs {
            let task = TaskId(self.tasks.len() as u32);
            let number = self.new_number(task);
            self.tasks.push(Task {
                job,
                number,
                state: State::New,
                placement: None,
                cpu_time: 0,
            });
        }
        self.tell_of(first..self.tasks.len())
    }

    /// The error that no method could report, if there is one.
    pub fn take_failure(&mut self) -> Option<WorldError> {
        self.failure.take()
    }

    /// The CPUs on which a task is placed; none if it does not run. For tests.
    pub fn cpus_of(&self, task: TaskId) -> CpuSet {
        let placement = self.tasks[task.0 as usize].placement.as_ref();
        placement.map_or_else(CpuSet::new, |placement| placement.cpus().clone())
    }

    fn new_number(&mut self, task: TaskId) -> u32 {
        self.numbers.push(task);
        self.numbers.len() as u32 - 1
    }

    /// Tells the process of tasks.
    fn tell_of(&mut self, tasks: std::ops::Range<usize>) -> Result<(), WorldError> {
        let mut added = Vec::new();
        for task in &self.tasks[tasks] {
            added.push(Added {
                task: task.number,
                job: &task.job,
            });
        }
        if added.is_empty() {
            return Ok(());
        }
        let question = Question::Add(&added);
        let done = ask(&mut self.process, &question, &mut self.signals)?;
        self.check_done(&done)
    }

    fn ask<A: DeserializeOwned>(&mut self, question: &Question<'_>) -> Result<A, WorldError> {
        ask(&mut self.process, question, &mut self.signals)
    }

    /// Asks for something that needs no answer but that it was done.
    fn order(&mut self, question: &Question<'_>) -> Result<(), WorldError> {
        let done = self.ask(question)?;
        self.check_done(&done)
    }

    fn check_done(&self, done: &Done) -> Result<(), WorldError> {
        if done.ok {
            return Ok(());
        }
        Err(self.wrong("ok: it is false; say why, as in {\"error\": \"no such task\"}"))
    }

    fn wrong(&self, problem: impl std::fmt::Display) -> WorldError {
        self.process.wrong(problem).into()
    }

    /// Keeps the error of a method that can't report it. The first one is the cause of the others.
    fn keep(&mut self, result: Result<(), WorldError>) {
        if let Err(error) = result {
            self.failure.get_or_insert(error);
        }
    }

    fn check_passed(&self, passed: &Passed, until: Option<Nanos>) -> Result<(), WorldError> {
        let Passed { now, events } = passed;
        let before = self.now.0;
        if *now < before {
            return Err(self.wrong(format_args!("now: {now} is before {before}")));
        }
        match until {
            Some(Nanos(until)) if *now > until => {
                Err(self.wrong(format_args!("now: {now} is after `until`, {until}")))
            }
            Some(Nanos(until)) if *now < until && events.is_empty() => Err(self.wrong(
                format_args!("now: {now} is before `until`, {until}, and there is no event"),
            )),
            None if events.is_empty() => {
                Err(self.wrong("events: there is none, and `until` was null"))
            }
            _ => Ok(()),
        }
    }

    /// Notes what happened to a task; `at` is its place in the answer.
    fn take(&mut self, happening: Happening, at: usize) -> Result<Event, WorldError> {
        let number = happening.task();
        let Some(&id) = self.numbers.get(number as usize) else {
            return Err(self.wrong(format_args!("events[{at}]: there is no task {number}")));
        };
        let task = &mut self.tasks[id.0 as usize];
        if task.number != number || task.state != State::Started {
            let why = match task.state {
                State::New if task.number == number => "has not started",
                _ => "has ended",
            };
            return Err(self.wrong(format_args!("events[{at}]: task {number} {why}")));
        }
        Ok(match happening {
            Happening::Ended { exit, .. } => {
                task.placement = None;
                task.state = match exit {
                    Exit::NotStarted(_) => State::NeverStarted,
                    _ => State::Ended,
                };
                Event::Ended { task: id, exit }
            }
            Happening::Slept(_) => Event::Slept(id),
            Happening::Woke(_) => Event::Woke(id),
        })
    }

    fn try_wait(&mut self, until: Option<Nanos>) -> Result<Vec<Event>, WorldError> {
        // A time that has passed needs no wait.
        let until = until.map(|until| until.max(self.now));
        let passed: Passed = self.ask(&Question::Wait {
            until: until.map(|until| until.0),
        })?;
        self.check_passed(&passed, until)?;
        self.now = Nanos(passed.now);
        let mut events = Vec::new();
        for (at, happening) in passed.events.into_iter().enumerate() {
            events.push(self.take(happening, at)?);
        }
        let is_idle = events.is_empty() && self.tasks.iter().all(|task| task.placement.is_none());
        self.idle_waits = if is_idle { self.idle_waits + 1 } else { 0 };
        if self.idle_waits > IDLE_WAITS {
            return Err(WorldError::Stuck(self.now));
        }
        Ok(events)
    }

    fn try_apply(&mut self, changes: &[Change]) -> Result<(), WorldError> {
        let mut told = Vec::new();
        for change in changes {
            let task = &mut self.tasks[change.task().0 as usize];
            if matches!(task.state, State::Ended | State::NeverStarted) {
                continue;
            }
            let number = TaskId(task.number);
            told.push(match change.clone() {
                Change::Stop { .. } => {
                    task.placement = None;
                    Change::Stop { task: number }
                }
                Change::Place {
                    placement,
                    lease_end,
                    purpose,
                    ..
                } => {
                    task.state = State::Started;
                    task.placement = Some(placement.clone());
                    Change::Place {
                        task: number,
                        placement,
                        lease_end,
                        purpose,
                    }
                }
            });
        }
        if told.is_empty() {
            return Ok(());
        }
        self.order(&Question::Apply(&told))
    }

    /// Reads the totals of these tasks, all of which have some, and those of the machine.
    fn try_read(&mut self, tasks: &[TaskId]) -> Result<Vec<Usage>, WorldError> {
        let mut numbers = Vec::new();
        for task in tasks {
            numbers.push(self.tasks[task.0 as usize].number);
        }
        let totals: Totals = self.ask(&Question::Read(&numbers))?;
        self.check_machine_totals(&totals)?;
        if totals.usage.len() != numbers.len() {
            return Err(self.wrong(format_args!(
                "usage: it has {} entries; expected {}, one for each task that was asked for",
                totals.usage.len(),
                numbers.len()
            )));
        }
        let mut usages = Vec::new();
        for (at, (&task, told)) in tasks.iter().zip(&totals.usage).enumerate() {
            let usage = self.usage(task, told);
            usages.push(usage.map_err(|problem| self.wrong(format_args!("usage[{at}]{problem}")))?);
        }
        self.totals = MachineTotals {
            at: Some(self.now),
            traffic: totals.traffic,
            energy_j: totals.energy_j,
        };
        Ok(usages)
    }

    fn check_machine_totals(&self, totals: &Totals) -> Result<(), WorldError> {
        let domains = self.whole.memory_domains.len();
        if let Some(traffic) = &totals.traffic
            && traffic.len() != domains
        {
            let have = traffic.len();
            return Err(self.wrong(format_args!(
                "traffic: it has {have} entries; expected {domains}, one for each memory domain"
            )));
        }
        match totals.energy_j {
            Some(energy_j) if energy_j < 0.0 => {
                Err(self.wrong(format_args!("energy_j: {energy_j} is below zero")))
            }
            _ => Ok(()),
        }
    }

    /// The usage of a task from what is told of it. The error names the field.
    fn usage(&mut self, id: TaskId, told: &BTreeMap<String, Option<u64>>) -> Result<Usage, String> {
        let is_known =
            |name: &str| matches!(name, "task" | "cpu_time") || counter_of(name).is_some();
        if let Some(name) = told.keys().find(|name| !is_known(name)) {
            return Err(format!(".{name}: there is no such counter"));
        }
        let value = |name: &str| told.get(name).copied().flatten();
        let task = &mut self.tasks[id.0 as usize];
        if value("task") != Some(u64::from(task.number)) {
            return Err(format!(".task: expected {}, as was asked", task.number));
        }
        if let Some(cpu_time) = value("cpu_time") {
            let before = std::mem::replace(&mut task.cpu_time, cpu_time);
            if cpu_time < before {
                return Err(format!(
                    ".cpu_time: {cpu_time} is less than before, {before}"
                ));
            }
        }
        let cpu_time = value("cpu_time").map(Nanos);
        // A counter that falls is absent for the loop, which says so.
        let counts =
            Counts::from_fn(|counter| self.told(Capability::of(counter), value(counter.name())));
        Ok(Usage {
            cpu_time: self.told(Capability::CpuTime, cpu_time),
            counts,
            ..Usage::zero(id)
        })
    }

    /// A value as it was told. What is missing stays absent even if the world tells a value.
    fn told<T>(&self, capability: Capability, value: Option<T>) -> Reading<T> {
        match self.capabilities.why_missing(capability) {
            Some(why) => Reading::Absent(why),
            None => Reading::from_option(value, Absence::NotTold),
        }
    }

    /// Reads the totals of the machine, unless they were just told.
    fn read_machine(&mut self) {
        if self.failure.is_none() && self.totals.at != Some(self.now) {
            let read = self.try_read(&[]).map(drop);
            self.keep(read);
        }
    }

    fn traffic_of(&self, domain: usize) -> Traffic {
        let lines = self.totals.traffic.as_ref().map(|all| &all[domain]);
        Traffic {
            reads: self.told(Capability::Traffic, lines.and_then(|lines| lines.reads)),
            writes: self.told(Capability::Traffic, lines.and_then(|lines| lines.writes)),
        }
    }

    fn has(&self, capability: Capability) -> bool {
        self.capabilities.why_missing(capability).is_none()
    }

    /// Adds an ended task once more, under a new number.
    fn try_restart(&mut self, id: TaskId) -> Result<(), WorldError> {
        let number = self.new_number(id);
        let ix = id.0 as usize;
        let task = &mut self.tasks[ix];
        task.number = number;
        task.state = State::New;
        task.cpu_time = 0;
        self.tell_of(ix..ix + 1)
    }
}

fn counter_of(name: &str) -> Option<Counter> {
    let mut all = Counter::ALL.into_iter();
    all.find(|counter| counter.name() == name)
}

/// The usage of a task without totals.
fn absent(task: TaskId, why: Absence) -> Usage {
    Usage {
        cpu_time: Reading::Absent(why),
        counts: Counts::absent(why),
        ..Usage::zero(task)
    }
}

impl Backend for ForeignWorld {
    type Error = WorldError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn now(&mut self) -> Nanos {
        self.now
    }

    fn stopwatch(&self) -> Option<Nanos> {
        None
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), WorldError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.signals.come.extend((self.signals.next)());
        if self.signals.come.is_empty() {
            events.append(&mut self.try_wait(until)?);
        }
        for signal in self.signals.come.drain(..) {
            events.push(Event::Interrupt { signal });
        }
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        let has_totals = |world: &Self, task: TaskId| {
            matches!(
                world.tasks[task.0 as usize].state,
                State::Started | State::Ended
            )
        };
        let mut asked = Vec::new();
        for &task in tasks {
            if has_totals(self, task) {
                asked.push(task);
            }
        }
        let mut told = Vec::new();
        if !asked.is_empty() && self.failure.is_none() {
            match self.try_read(&asked) {
                Ok(usages) => told = usages,
                Err(error) => self.keep(Err(error)),
            }
        }
        let mut told = told.into_iter();
        for &task in tasks {
            let usage = if has_totals(self, task) {
                told.next()
                    .unwrap_or_else(|| absent(task, Absence::NotTold))
            } else {
                absent(task, Absence::NotStarted)
            };
            out.push(usage);
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        for usage in usages {
            usage.device_time = DeviceTime::from_fn(|_| Reading::Absent(Absence::NotOffered));
        }
    }

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, _task: TaskId) -> Reading<Wanting> {
        Reading::Absent(Absence::NotOffered)
    }

    fn resources(&mut self, _task: TaskId) -> Resources {
        Resources::absent(Absence::Simulated)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), WorldError> {
        match self.failure.take() {
            Some(failure) => Err(failure),
            None => self.try_apply(changes),
        }
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::WithDecision
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<WorldError>> {
        None
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        let Task { number, state, .. } = self.tasks[task.0 as usize];
        if state != State::Started || self.failure.is_some() {
            return;
        }
        let how = match how {
            Kill::Term => "term",
            Kill::Kill => "kill",
        };
        let killed = self.order(&Question::Kill { task: number, how });
        self.keep(killed);
    }

    // It holds nothing.
    fn ending(&mut self) {}

    fn restart(&mut self, task: TaskId) -> bool {
        let state = self.tasks[task.0 as usize].state;
        let has_ended = matches!(state, State::Ended | State::NeverStarted);
        if !has_ended || self.failure.is_some() {
            return false;
        }
        let restarted = self.try_restart(task);
        self.keep(restarted);
        true
    }

    // A simulation is small, and keeps all.
    fn forget(&mut self, _task: TaskId) {}

    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        if self.has(Capability::Traffic) {
            self.read_machine();
        }
        for cpus in &self.machine.memory_domains {
            // The usable part of the machine may lack some of its domains.
            let cpu = self.whole.cpus_in(cpus).next();
            out.push(match cpu {
                Some(cpu) => self.traffic_of(cpu.memory_domain),
                None => Traffic::absent(Absence::NotTold),
            });
        }
    }

    fn energy_j(&mut self) -> Reading<f64> {
        if self.has(Capability::Energy) {
            self.read_machine();
        }
        self.told(Capability::Energy, self.totals.energy_j)
    }
}
