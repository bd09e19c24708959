//! A tiny world in memory for tests of the loop: each task has its own speed, and time jumps from event to event.
//! Optionally, tasks slow each other down on the memory bus and in the first-level caches.
#![allow(unreachable_pub)]

use cosched_core::*;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A task's behaviour in this world.
#[derive(Clone, Debug)]
pub struct Work {
    /// CPU time that it needs.
    pub needs: Nanos,
    /// Instructions per cycle at 1 GHz, in thousandths.
    pub ipc_milli: u64,
    /// Lines read from memory per microsecond.
    pub reads_per_us: u64,
    /// Lines written to memory per microsecond; no counter counts them per task.
    pub writes_per_us: u64,
    /// Bytes from and to the disks per microsecond.
    pub disk_per_us: u64,
    /// Accesses to the first-level cache per microsecond.
    pub l1_per_us: u64,
    /// The share of its time on the fastest core in which it waits for memory, at any clock.
    pub stalls: f64,
    /// How it ends.
    pub exit: Exit,
    /// Threads, each of which can use a CPU.
    pub threads: u32,
    /// Whether it ignores SIGTERM.
    pub ignores_term: bool,
    /// How it ends after SIGTERM; `None` if the signal kills it.
    pub term_exit: Option<Exit>,
    /// Whether it cannot be started.
    pub broken: bool,
    /// Whether it cannot be started a second time.
    pub once: bool,
    /// Its behaviour after a restart; `None` for the same.
    pub second: Option<Box<Work>>,
}

impl Work {
    pub fn ms(ms: u64) -> Work {
        Work {
            needs: Nanos::from_ms(ms),
            ipc_milli: 1_000,
            reads_per_us: 1,
            writes_per_us: 0,
            disk_per_us: 0,
            l1_per_us: 100,
            stalls: 0.0,
            exit: Exit::Code(0),
            threads: 1,
            ignores_term: false,
            term_exit: None,
            broken: false,
            once: false,
            second: None,
        }
    }
    pub fn reads(mut self, per_us: u64) -> Work {
        self.reads_per_us = per_us;
        self
    }
    pub fn writes(mut self, per_us: u64) -> Work {
        self.writes_per_us = per_us;
        self
    }
    pub fn disk(mut self, per_us: u64) -> Work {
        self.disk_per_us = per_us;
        self
    }
    /// Lines moved from and to memory per microsecond.
    fn lines_per_us(&self) -> u64 {
        self.reads_per_us + self.writes_per_us
    }
    pub fn l1(mut self, per_us: u64) -> Work {
        self.l1_per_us = per_us;
        self
    }
    pub fn ipc(mut self, milli: u64) -> Work {
        self.ipc_milli = milli;
        self
    }
    pub fn stalls(mut self, share: f64) -> Work {
        self.stalls = share;
        self
    }
    pub fn threads(mut self, threads: u32) -> Work {
        self.threads = threads;
        self
    }
    pub fn exit(mut self, code: i32) -> Work {
        self.exit = Exit::Code(code);
        self
    }
}

struct State {
    work: Work,
    started: bool,
    placement: Option<Placement>,
    /// Work done, in time at full speed.
    done: Nanos,
    /// Time on a CPU.
    used: Nanos,
    /// Clock cycles; at 1 GHz on the fastest cores.
    cycles: u64,
    ended: Option<Exit>,
    is_forgotten: bool,
}

impl State {
    fn new(work: Work) -> State {
        State {
            work,
            started: false,
            placement: None,
            done: Nanos::ZERO,
            used: Nanos::ZERO,
            cycles: 0,
            ended: None,
            is_forgotten: false,
        }
    }
}

/// An action of the world, for assertions.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    Start(u32),
    Stop(u32),
    Move(u32, String),
    Kill(u32),
}

pub struct Memory {
    pub machine: Arc<Machine>,
    pub capabilities: Capabilities,
    now: Nanos,
    tasks: Vec<State>,
    queued: Vec<Event>,
    /// Interrupts to deliver at these instants.
    pub interrupts: Vec<Nanos>,
    /// Their signals; SIGTERM by default.
    pub signals: VecDeque<i32>,
    /// Capacity of the memory bus in lines per microsecond; tasks that together demand more slow each other down.
    pub bus_per_us: Option<u64>,
    /// Bytes per microsecond that the disks deliver.
    pub disk_per_us: Option<u64>,
    /// Lines per microsecond that other programs read and write on each memory domain; they slow no task down.
    pub foreign_per_us: (u64, u64),
    /// The meters of memory domains fail between these instants.
    pub traffic_gap: (Nanos, Nanos),
    /// Lines read and written on each memory domain.
    moved: Vec<(u64, u64)>,
    /// Accesses per microsecond that the first-level cache of a core serves without delay.
    pub l1_per_us: Option<u64>,
    /// Tasks that fall asleep or wake at these instants, in their order.
    pub naps: Vec<(Nanos, Event)>,
    /// Counters fail from this instant on.
    pub counters_until: Option<Nanos>,
    /// No further task may start before this instant.
    pub room_from: Nanos,
    /// Memory for all tasks together; `None` for no limit.
    pub memory: Option<u64>,
    /// Admitted tasks, with their expected memory.
    let_in: BTreeMap<TaskId, u64>,
    /// Time from a task's start until it executes its program.
    pub start_takes: Nanos,
    /// Whether tasks are handed over, so that they begin later.
    pub hands_over: bool,
    /// When tasks began to execute their programs.
    began: BTreeMap<TaskId, Nanos>,
    pub acts: Vec<(Nanos, Act)>,
    /// Whether the loop has ended all tasks.
    pub is_ending: bool,
    /// The number of tasks in each read.
    pub reads: Vec<usize>,
    /// The clock of each type of core, as a share of the fastest type's; empty where all are alike.
    pub clocks: Vec<f64>,
    /// Total use of each CPU.
    pub busy: BTreeMap<u32, Nanos>,
}

#[derive(Debug, thiserror::Error)]
#[error("the world ended")]
pub struct WorldEnd;

impl Memory {
    pub fn new(machine: Machine, work: Vec<Work>) -> Memory {
        machine.validate().unwrap();
        Memory {
            moved: vec![(0, 0); machine.memory_domains.len()],
            foreign_per_us: (0, 0),
            start_takes: Nanos::ZERO,
            hands_over: false,
            began: BTreeMap::new(),
            traffic_gap: (Nanos::MAX, Nanos::MAX),
            machine: Arc::new(machine),
            capabilities: Capabilities {
                missing: [(Capability::Plans, Absence::NotOffered)].into(),
            },
            now: Nanos::ZERO,
            tasks: work.into_iter().map(State::new).collect(),
            queued: Vec::new(),
            interrupts: Vec::new(),
            signals: VecDeque::new(),
            bus_per_us: None,
            disk_per_us: None,
            l1_per_us: None,
            naps: Vec::new(),
            counters_until: None,
            room_from: Nanos::ZERO,
            memory: None,
            let_in: BTreeMap::new(),
            acts: Vec::new(),
            is_ending: false,
            reads: Vec::new(),
            clocks: Vec::new(),
            busy: BTreeMap::new(),
        }
    }

    pub fn specs(&self) -> Vec<TaskSpec> {
        (0..self.tasks.len() as u32)
            .map(|id| TaskSpec::new(id, &format!("t{id}")))
            .collect()
    }

    fn runs(&self) -> impl Iterator<Item = &State> {
        self.tasks
            .iter()
            .filter(|state| state.placement.is_some() && state.ended.is_none())
    }

    /// The total share of CPUs that a task has: under a shared mask every running task gets an equal share of the
    /// mask's CPUs, among all tasks whose masks overlap it.
    fn share(&self, state: &State) -> f64 {
        match &state.placement {
            _ if state.ended.is_some() => 0.0,
            None => 0.0,
            Some(Placement::Exclusive { .. }) => 1.0,
            Some(Placement::Shared { mask }) => {
                let meets = |s: &&State| {
                    s.placement
                        .as_ref()
                        .is_some_and(|placement| !placement.cpus().intersection(mask).is_empty())
                };
                (mask.len() as f64 / self.runs().filter(meets).count() as f64)
                    .min(f64::from(state.work.threads))
            }
        }
    }

    /// The clock of a task's cores, as a share of the fastest type's: a mean, if it may use several types.
    fn clock(&self, state: &State) -> f64 {
        let Some(placement) = state.placement.as_ref().filter(|_| !self.clocks.is_empty()) else {
            return 1.0;
        };
        let clock =
            |cpu| self.clocks[self.machine.cpus[self.machine.index_of(cpu).unwrap()].core_type];
        placement.cpus().iter().map(clock).sum::<f64>() / placement.cpus().len() as f64
    }

    /// The speed of a task while it has a CPU. Its solo bus time is stretched by total demand / capacity if the bus is
    /// overloaded; a core's first-level cache is shared in the same way.
    fn speed(&self, state: &State) -> f64 {
        let longer = |asked: u64, served: u64| (asked as f64 / served as f64).max(1.0);
        let bus = self.bus_per_us.map_or(1.0, |served| {
            let asked: f64 = self
                .runs()
                .map(|s| s.work.lines_per_us() as f64 * self.share(s))
                .sum();
            let busy = (state.work.lines_per_us() as f64 / served as f64).min(1.0);
            1.0 - busy + busy * longer(asked as u64, served)
        });
        let disk = self.disk_per_us.map_or(1.0, |served| {
            let asked: u64 = self.runs().map(|s| s.work.disk_per_us).sum();
            let busy = (state.work.disk_per_us as f64 / served as f64).min(1.0);
            1.0 - busy + busy * longer(asked, served)
        });
        let l1 = self.l1_per_us.map_or(1.0, |served| {
            let cores = |state: &State| -> Vec<usize> {
                let cpus = state
                    .placement
                    .iter()
                    .flat_map(|placement| placement.cpus().iter());
                cpus.map(|cpu| self.machine.cpus[self.machine.index_of(cpu).unwrap()].core)
                    .collect()
            };
            let mine = cores(state);
            let beside = self
                .runs()
                .filter(|s| cores(s).iter().any(|core| mine.contains(core)));
            longer(beside.map(|s| s.work.l1_per_us).sum(), served)
        });
        let clock = state.work.stalls + (1.0 - state.work.stalls) / self.clock(state);
        1.0 / (bus * disk * l1 * clock)
    }

    fn advance(&mut self, to: Nanos) {
        let span = to - self.now;
        let rates = self
            .tasks
            .iter()
            .map(|s| (self.share(s), self.speed(s), self.clock(s)));
        let rates: Vec<(f64, f64, f64)> = rates.collect();
        for (state, (share, speed, clock)) in self.tasks.iter_mut().zip(rates) {
            state.used += Nanos((span.0 as f64 * share) as u64);
            state.cycles += (span.0 as f64 * share * clock) as u64;
            let done = Nanos((span.0 as f64 * share * speed) as u64);
            state.done += done;
            if let Some(cpu) = state
                .placement
                .as_ref()
                .and_then(|placement| placement.cpus().first())
            {
                let of = &self.machine.cpus[self.machine.index_of(cpu).unwrap()];
                let (reads, writes) = &mut self.moved[of.memory_domain];
                *reads += done.0 * state.work.reads_per_us / 1_000;
                *writes += done.0 * state.work.writes_per_us / 1_000;
            }
            if let (Some(Placement::Exclusive { cpus, .. }), None) =
                (&state.placement, &state.ended)
            {
                for cpu in cpus.iter() {
                    *self.busy.entry(cpu.0).or_default() += span;
                }
            }
        }
        for (reads, writes) in &mut self.moved {
            *reads += span.0 * self.foreign_per_us.0 / 1_000;
            *writes += span.0 * self.foreign_per_us.1 / 1_000;
        }
        self.now = to;
    }
}

impl Backend for Memory {
    type Error = WorldEnd;

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

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), WorldEnd> {
        if !self.queued.is_empty() {
            events.append(&mut self.queued);
            return Ok(());
        }
        let mut next = until;
        let mut at = |t: Nanos| next = Some(next.map_or(t, |n| n.min(t)));
        for state in &self.tasks {
            let speed = self.share(state) * self.speed(state);
            if speed > 0.0 {
                let left = (state.work.needs - state.done).0 as f64 / speed;
                at(self.now + Nanos(left as u64 + u64::from(left.fract() > 0.0)));
            }
        }
        if let Some(&interrupt) = self.interrupts.first() {
            at(interrupt);
        }
        if let Some(&(nap, _)) = self.naps.first() {
            at(nap);
        }
        // Nothing would ever wake the loop: a bug of the loop.
        let next = next.ok_or(WorldEnd)?;
        self.advance(next.max(self.now));
        for (id, state) in self.tasks.iter_mut().enumerate() {
            if state.ended.is_none() && state.started && state.done >= state.work.needs {
                state.ended = Some(state.work.exit.clone());
                events.push(Event::Ended {
                    task: TaskId(id as u32),
                    exit: state.work.exit.clone(),
                });
            }
        }
        while self.naps.first().is_some_and(|(at, _)| *at <= self.now) {
            let event = self.naps.remove(0).1;
            if let Event::Lost(task) = event {
                let state = &mut self.tasks[task.0 as usize];
                *state = State::new(state.work.clone());
            }
            events.push(event);
        }
        while self.interrupts.first().is_some_and(|&at| at <= self.now) {
            self.interrupts.remove(0);
            events.push(Event::Interrupt {
                signal: self.signals.pop_front().unwrap_or(15),
            });
        }
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        self.reads.push(tasks.len());
        for &task in tasks {
            let state = &self.tasks[task.0 as usize];
            let mut usage = Usage::zero(task);
            usage.cpu_time = Reading::Value(state.used);
            let us = state.done.0 / 1_000;
            usage.counts = if self.counters_until.is_some_and(|until| self.now > until) {
                Counts::absent(Absence::CountersLost)
            } else if let Some(why) = self.capabilities.why_missing(Capability::Ipc) {
                Counts::absent(why)
            } else {
                let value = |counter| match (
                    counter,
                    self.capabilities.why_missing(Capability::of(counter)),
                ) {
                    (_, Some(why)) => Reading::Absent(why),
                    (Counter::Cycles, None) => Reading::Value(state.cycles),
                    (Counter::Instructions, None) => Reading::Value(us * state.work.ipc_milli),
                    (Counter::L1Accesses, None) => Reading::Value(us * state.work.l1_per_us),
                    (Counter::LlcAccesses, None) => {
                        Reading::Value(us * state.work.reads_per_us * 2)
                    }
                    (Counter::MmReads, None) => Reading::Value(us * state.work.reads_per_us),
                    _ => Reading::Absent(Absence::NoSuchEvent),
                };
                Counts::from_fn(value)
            };
            out.push(usage);
        }
    }

    fn device_time(&mut self, usages: &mut [Usage]) {
        for usage in usages {
            let state = &self.tasks[usage.task.0 as usize];
            let asked = state.done.0 * state.work.disk_per_us;
            let time = self
                .disk_per_us
                .and_then(|served| asked.checked_div(served));
            usage.device_time.disk = Reading::from_option(time.map(Nanos), Absence::NotOffered);
        }
    }

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        let state = &self.tasks[task.0 as usize];
        assert!(
            state.placement.is_some() && state.ended.is_none(),
            "{task} does not run"
        );
        Reading::Value(Wanting {
            all: state.work.threads,
            of_one_process: Reading::Value(state.work.threads),
        })
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), WorldEnd> {
        for change in changes {
            let id = change.task().0;
            let state = &mut self.tasks[id as usize];
            assert!(state.ended.is_none(), "task {id} has ended and is placed");
            match change {
                Change::Stop { .. } => {
                    assert!(state.started);
                    self.acts.push((self.now, Act::Stop(id)));
                    state.placement = None;
                }
                Change::Place { placement, .. } => {
                    if !std::mem::replace(&mut state.started, true) {
                        self.acts.push((self.now, Act::Start(id)));
                        if state.work.broken {
                            state.ended = Some(Exit::Unknown);
                            self.queued.push(Event::Ended {
                                task: TaskId(id),
                                exit: Exit::NotStarted("no such file".to_owned()),
                            });
                            continue;
                        }
                    } else if state.placement.as_ref() != Some(placement) {
                        self.acts
                            .push((self.now, Act::Move(id, placement.cpus().to_string())));
                    }
                    state.placement = Some(placement.clone());
                    if self.start_takes > Nanos::ZERO && !self.began.contains_key(&TaskId(id)) {
                        self.tasks[id as usize].placement = None;
                        self.advance(self.now + self.start_takes);
                        self.tasks[id as usize].placement = Some(placement.clone());
                        self.began.insert(TaskId(id), self.now);
                    }
                }
            }
        }
        // The world itself rejects two tasks on one CPU.
        let mut seen = CpuSet::new();
        for state in self.tasks.iter().filter(|state| state.ended.is_none()) {
            if let Some(Placement::Exclusive { cpus, .. }) = &state.placement {
                for cpu in cpus.iter() {
                    assert!(seen.insert(cpu), "two tasks on CPU {}", cpu.0);
                }
            }
        }
        for state in self.tasks.iter().filter(|state| state.ended.is_none()) {
            if let Some(Placement::Shared { mask }) = &state.placement {
                assert!(
                    mask.intersection(&seen).is_empty(),
                    "{mask} is not all free: tasks have {seen} alone"
                );
            }
        }
        Ok(())
    }

    fn began(&self, task: TaskId) -> Began {
        if self.hands_over {
            return Began::Later;
        }
        let at = self.began.get(&task);
        at.map_or(Began::WithDecision, |&at| Began::At(at))
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<WorldEnd>> {
        None
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        let state = &mut self.tasks[task.0 as usize];
        self.acts.push((self.now, Act::Kill(task.0)));
        state.placement = None;
        if how == Kill::Kill || !state.work.ignores_term {
            let exit = match (how, &state.work.term_exit) {
                (Kill::Kill, _) => Exit::Signal {
                    signal: 9,
                    oom: false,
                },
                (Kill::Term, Some(exit)) => exit.clone(),
                (Kill::Term, None) => Exit::Signal {
                    signal: 15,
                    oom: false,
                },
            };
            state.ended = Some(exit.clone());
            self.queued.push(Event::Ended { task, exit });
        }
    }

    fn ending(&mut self) {
        self.is_ending = true;
    }

    fn restart(&mut self, task: TaskId) -> bool {
        let state = &mut self.tasks[task.0 as usize];
        assert!(
            state.ended.is_some(),
            "only what has ended is started again"
        );
        let second = state.work.second.clone();
        let work = second.map_or_else(|| state.work.clone(), |second| (*second).clone());
        let can = !work.once;
        *state = State::new(work);
        can
    }

    fn forget(&mut self, task: TaskId) {
        let state = &mut self.tasks[task.0 as usize];
        assert!(
            state.ended.is_some() || !state.started,
            "only what has ended is forgotten"
        );
        assert!(!std::mem::replace(&mut state.is_forgotten, true), "once");
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        assert!(
            self.tasks[task.0 as usize].ended.is_some() || !self.tasks[task.0 as usize].started,
            "only what has ended or was lost is asked for"
        );
        Resources::absent(Absence::NotOffered)
    }

    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        let needs = task
            .expected
            .and_then(|expected| expected.memory)
            .unwrap_or(0);
        let is_live = |id: &TaskId| self.tasks[id.0 as usize].ended.is_none();
        let held: u64 = self
            .let_in
            .iter()
            .filter(|(id, _)| is_live(id))
            .map(|(_, needs)| needs)
            .sum();
        match self.memory {
            _ if self.now < self.room_from => MayStart::Later,
            Some(memory) if held + needs > memory => MayStart::NeedsMemory,
            _ => {
                self.let_in.insert(task.id, needs);
                MayStart::Yes
            }
        }
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let is_gap = (self.traffic_gap.0..self.traffic_gap.1).contains(&self.now);
        let value = |&(reads, writes): &(u64, u64)| match self
            .capabilities
            .why_missing(Capability::Traffic)
        {
            None if is_gap => Traffic::absent(Absence::CountersLost),
            None => Traffic {
                reads: Reading::Value(reads),
                writes: Reading::Value(writes),
            },
            Some(why) => Traffic::absent(why),
        };
        out.extend(self.moved.iter().map(value));
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NoEnergyMeter)
    }
}

/// A machine with two core types, the big cores first, all on one last-level cache.
pub fn two_types(big: u32, small: u32) -> Machine {
    let mut machine = Machine::uniform("two types", big + small, 1);
    machine
        .cpus
        .iter_mut()
        .skip(big as usize)
        .for_each(|cpu| cpu.core_type = 1);
    let kind = |name: &str| CoreType {
        name: name.to_owned(),
        capacity: None,
        max_khz: None,
    };
    machine.core_types = vec![kind("big"), kind("small")];
    machine
}

/// Runs the world under a policy by name, with parameters as on the command line.
pub fn run_policy(
    world: &mut Memory,
    policy: &str,
    params: &[(&str, &str)],
    config: &RunConfig,
) -> RunResult {
    let specs = world.specs();
    run_specs(world, specs, policy, params, config, &mut NullRecorder)
}

pub fn run_specs(
    world: &mut Memory,
    specs: Vec<TaskSpec>,
    policy: &str,
    params: &[(&str, &str)],
    config: &RunConfig,
    recorder: &mut dyn Recorder,
) -> RunResult {
    let entry = find_policy(policy).unwrap();
    let settings: Vec<(String, String)> = params
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let params = Params::resolve(entry.name, entry.params, &settings).unwrap();
    let mut policy = (entry.build)(&params);
    run(world, &mut *policy, recorder, specs, config).unwrap()
}
