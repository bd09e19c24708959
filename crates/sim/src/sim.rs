//! The simulated machine behind the loop's seam.

use crate::fault::{Fault, FaultKind};
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use crate::reported::{Reported, Trouble, uniform};
use crate::solo::SoloRun;
use crate::world::{Happening, Instance, State, World};
use cosched_core::{
    Absence, Change, Counter, Counts, CpuId, CpuSet, Exit, Machine, Nanos, Placement, Reading, Rng, SoloTrace, TaskId,
    Usage,
};
use cosched_core::{Backend, Capabilities, Capability, Event, Kill};
use std::collections::VecDeque;
use std::sync::Arc;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The machine.
    pub machine: Arc<MachineSpec>,
    /// The jobs, in the order of the tasks' numbers.
    pub jobs: Vec<SimJob>,
    /// The CPUs that the run may use; `None` for all.
    pub usable: Option<CpuSet>,
    /// Seed of what differs between instances of a program, and of the counters' noise.
    pub seed: u64,
    /// Instances differ from their profile, in the core and in their use of memory, by up to this share.
    pub variation: f64,
    /// Rates are solved anew when what a thread holds of a cache has changed its cycles per instruction by this share:
    /// smaller is more exact and slower.
    pub step: f64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The step unless it is said otherwise; a twentieth of it changes turnarounds by less than 2 % (a test shows it).
pub const DEFAULT_STEP: f64 = 0.08;

/// By how much instances of a program differ unless it is said otherwise: by the input, the layout of memory, and so on.
pub const DEFAULT_VARIATION: f64 = 0.02;

impl SimConfig {
    /// Jobs on a machine, with nothing special.
    pub fn new(machine: Arc<MachineSpec>, jobs: Vec<SimJob>, seed: u64) -> SimConfig {
        SimConfig {
            machine,
            jobs,
            usable: None,
            seed,
            variation: DEFAULT_VARIATION,
            step: DEFAULT_STEP,
            faults: Vec::new(),
        }
    }
}

/// A job of the simulation.
#[derive(Clone, Debug)]
pub struct SimJob {
    /// What it does.
    pub program: Arc<ProgramSpec>,
    /// How much of it.
    pub work: Work,
    /// Hardware threads that it needs; it shares its work evenly among them.
    pub cpus: u32,
    /// Linux nice value.
    pub nice: i8,
}

/// How much a job has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many instructions.
    Instructions(u64),
    /// What it executes alone in this time (the papers' rule: 100 s).
    SoloTime(Nanos),
}

/// A simulation that can't begin, or go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// A CPU list with a CPU that is not there, or with none.
    #[error("the simulated machine `{machine}` has the CPUs {have}, and not {asked}")]
    NoSuchCpu {
        /// The machine.
        machine: String,
        /// Its CPUs.
        have: CpuSet,
        /// What was asked for.
        asked: CpuSet,
    },
    /// A job without work or without a CPU.
    #[error("job {0} has no work, or needs no CPU")]
    NoWork(usize),
    /// Nothing runs any more, and nothing will change that.
    #[error("nothing runs at {} s of simulated time, and nothing that could change that will happen", .0.as_s())]
    Stuck(Nanos),
    /// Who wanted it wants it no more.
    #[error("interrupted while the jobs were simulated alone; nothing was run")]
    Interrupted,
}

/// After so many waits in a row without anybody running, asleep, or about to come back, the simulation gives up: somebody
/// asks again and again, and nothing will change.
const PATIENCE: u32 = 100_000;

/// Counters that lie by more than this are full at once anyway.
const MOST_LIED: f64 = 1e18;

/// A simulated machine with jobs.
pub struct Sim {
    config: SimConfig,
    /// What of it may be used, as policies see it.
    machine: Arc<Machine>,
    world: World,
    tasks: Vec<TaskState>,
    solo: Vec<SoloRun>,
    instances: Vec<Instance>,
    faults: VecDeque<Fault>,
    trouble: Trouble,
    queued: Vec<Event>,
    idle_waits: u32,
    events: u64,
}

struct TaskState {
    started: bool,
    placement: Option<Placement>,
    ended: bool,
    reported: Reported,
}

impl Sim {
    /// A machine with jobs that have not started.
    ///
    /// # Errors
    /// CPUs that are not there, or a job without work.
    pub fn new(config: SimConfig) -> Result<Sim, SimError> {
        Sim::watched(config, &mut |_| false)
    }

    /// The same; `stop` is told now and then how many jobs have been simulated alone, and ends it by answering `true`.
    ///
    /// # Errors
    /// CPUs that are not there, a job without work, or [`SimError::Interrupted`].
    pub fn watched(config: SimConfig, stop: &mut dyn FnMut(usize) -> bool) -> Result<Sim, SimError> {
        let whole = config.machine.machine();
        let machine = match &config.usable {
            None => whole,
            Some(usable) if !usable.is_empty() && usable.is_subset(&whole.all_cpus()) => restrict(&whole, usable),
            Some(asked) => {
                let (machine, have) = (whole.name.clone(), whole.all_cpus());
                return Err(SimError::NoSuchCpu { machine, have, asked: asked.clone() });
            }
        };
        let none =
            |job: &SimJob| job.cpus == 0 || matches!(job.work, Work::Instructions(0) | Work::SoloTime(Nanos::ZERO));
        if let Some(job) = config.jobs.iter().position(none) {
            return Err(SimError::NoWork(job));
        }
        // Jobs of the same program share its behaviours.
        let mut programs: Vec<Arc<ProgramSpec>> = Vec::new();
        let mut program_of = Vec::new();
        for job in &config.jobs {
            let known = programs.iter().position(|program| Arc::ptr_eq(program, &job.program));
            program_of.push(known.unwrap_or(programs.len()));
            if known.is_none() {
                programs.push(job.program.clone());
            }
        }
        let mut world = World::new(config.machine.clone(), &programs, config.step);
        let mut tasks = Vec::new();
        let mut solo = Vec::new();
        let mut instances = Vec::new();
        for (ix, job) in config.jobs.iter().enumerate() {
            // A stream of numbers of its own for each job, whatever the others are.
            let mut rng = Rng::new(config.seed ^ (ix as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut factor = || 1.0 + (uniform(&mut rng) * 2.0 - 1.0) * config.variation;
            let instance = Instance { cpi: factor(), memory: factor(), length: factor() };
            let alone = SoloRun::simulate(&config.machine, job, instance, config.step, &mut || stop(ix))
                .ok_or(SimError::Interrupted)?;
            world.add_task(program_of[ix], instance, job.cpus, alone.instructions as f64, job.nice);
            solo.push(alone);
            instances.push(instance);
            tasks.push(TaskState { started: false, placement: None, ended: false, reported: Reported::new(rng) });
        }
        let mut faults = config.faults.clone();
        faults.sort_by_key(|fault| fault.at);
        Ok(Sim {
            machine: Arc::new(machine),
            world,
            tasks,
            solo,
            instances,
            faults: faults.into(),
            trouble: Trouble { vanished: false, factor: 1.0 },
            queued: Vec::new(),
            idle_waits: 0,
            events: 0,
            config,
        })
    }

    /// What every job does when it is alone on the machine, on the fastest type of core.
    pub fn solo_runs(&self) -> &[SoloRun] {
        &self.solo
    }

    /// Each job's IPC alone by the instructions done, a point for each stretch of `every`; costs its solo runs once more.
    /// `stop` is as for [`Sim::watched`].
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    pub fn solo_traces(
        &self,
        every: Nanos,
        stop: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Option<SoloTrace>>, SimError> {
        let config = &self.config;
        let jobs = config.jobs.iter().zip(&self.instances).enumerate();
        let trace = |(ix, (job, &instance)): (usize, (&SimJob, &Instance))| {
            SoloRun::trace(&config.machine, job, instance, config.step, every, &mut || stop(ix))
                .ok_or(SimError::Interrupted)
        };
        jobs.map(trace).collect()
    }

    /// Events simulated so far: a measure of the simulation's own work.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Energy by its parts, in joules: idle machine, sockets in use, cores in use, instructions, memory traffic.
    pub fn energy_parts(&mut self) -> [(&'static str, f64); 5] {
        let energy = self.world.energy();
        [
            ("idle", energy.idle),
            ("uncore", energy.uncore),
            ("active cores", energy.active),
            ("instructions", energy.instructions),
            ("memory", energy.lines),
        ]
    }

    /// Instructions that a task has really executed.
    pub fn executed(&mut self, task: TaskId) -> f64 {
        self.world.sync_task(task.0);
        let threads = self.world.tasks[task.0 as usize].clone();
        threads.map(|thread| self.world.threads[thread].tally.instructions).sum()
    }

    fn end(&mut self, task: TaskId, exit: Exit) {
        let state = &mut self.tasks[task.0 as usize];
        if std::mem::replace(&mut state.ended, true) {
            return;
        }
        state.placement = None;
        for thread in self.world.tasks[task.0 as usize].clone() {
            self.world.end(thread);
        }
        self.queued.push(Event::Ended { task, exit });
    }

    fn place(&mut self, task: TaskId, placement: &Placement) {
        let state = &mut self.tasks[task.0 as usize];
        if state.ended {
            return;
        }
        state.started = true;
        state.placement = Some(placement.clone());
        // Numbers of CPUs in the whole machine.
        let all = &self.world.machine;
        let cpus: Vec<usize> = placement.cpus().iter().filter_map(|cpu| all.index_of(cpu)).collect();
        let threads = self.world.tasks[task.0 as usize].clone();
        match placement {
            Placement::Exclusive { .. } => {
                for (thread, cpu) in threads.zip(cpus) {
                    self.world.place(thread, Arc::new([cpu]));
                }
            }
            Placement::Shared { .. } => {
                let cpus: Arc<[usize]> = cpus.into();
                for thread in threads {
                    self.world.place(thread, cpus.clone());
                }
            }
        }
    }

    fn strike(&mut self, fault: FaultKind) {
        match fault {
            FaultKind::CountersVanish => self.trouble.vanished = true,
            FaultKind::CountersWrap => self.tasks.iter_mut().for_each(|task| task.reported.wrap()),
            // Not a number counts as nothing.
            FaultKind::CountersLie { factor } => {
                self.trouble.factor = if factor > 0.0 { factor.min(MOST_LIED) } else { 0.0 };
            }
            FaultKind::CpuOffline(cpu) => self.set_online(cpu, false),
            FaultKind::CpuOnline(cpu) => self.set_online(cpu, true),
            FaultKind::JobDies { task, exit } => {
                if self.tasks.get(task.0 as usize).is_some_and(|state| state.started) {
                    self.end(task, exit);
                }
            }
        }
    }

    fn set_online(&mut self, cpu: CpuId, online: bool) {
        let whole = self.world.machine.clone();
        let Some(ix) = whole.index_of(cpu) else { return };
        let others = self.world.cpus.iter().enumerate().any(|(other, state)| other != ix && state.online);
        if !online && !others {
            // The last CPU can't be taken offline.
            return;
        }
        self.world.set_online(ix, online);
        let usable = self.config.usable.clone().unwrap_or_else(|| whole.all_cpus());
        let left: CpuSet =
            usable.iter().filter(|&cpu| whole.index_of(cpu).is_some_and(|ix| self.world.cpus[ix].online)).collect();
        if !left.is_empty() {
            self.machine = Arc::new(restrict(&whole, &left));
            self.queued.push(Event::MachineChanged);
        }
    }
}

/// The part of a machine that may be used.
fn restrict(whole: &Machine, usable: &CpuSet) -> Machine {
    let mut part = whole.clone();
    part.cpus.retain(|cpu| usable.contains(cpu.id));
    // Cores, caches and domains without a usable CPU go; the others are numbered anew.
    fn keep(sets: &mut Vec<CpuSet>, usable: &CpuSet) -> Vec<Option<usize>> {
        let mut numbers = Vec::new();
        let mut kept = Vec::new();
        for set in sets.iter() {
            let set = set.intersection(usable);
            numbers.push((!set.is_empty()).then_some(kept.len()));
            if !set.is_empty() {
                kept.push(set);
            }
        }
        *sets = kept;
        numbers
    }
    let cores = keep(&mut part.cores, usable);
    let llcs = keep(&mut part.llcs, usable);
    let domains = keep(&mut part.memory_domains, usable);
    let mut types: Vec<usize> = part.cpus.iter().map(|cpu| cpu.core_type).collect();
    types.sort_unstable();
    types.dedup();
    part.core_types = types.iter().map(|&ix| whole.core_types[ix].clone()).collect();
    for cpu in &mut part.cpus {
        cpu.core = cores[cpu.core].unwrap_or_default();
        cpu.llc = llcs[cpu.llc].unwrap_or_default();
        cpu.memory_domain = domains[cpu.memory_domain].unwrap_or_default();
        cpu.core_type = types.iter().position(|&ix| ix == cpu.core_type).unwrap_or_default();
    }
    part
}

impl Backend for Sim {
    type Error = SimError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        let counters = &self.config.machine.counters;
        let mut capabilities = Capabilities::default();
        for counter in Counter::ALL {
            if let Some(why) = counters.absence(counter) {
                capabilities.missing.insert(Capability::of(counter), why);
            }
        }
        let mut capability = |has: bool, capability: Capability, why: Absence| {
            if !has {
                capabilities.missing.insert(capability, why);
            }
        };
        capability(counters.energy, Capability::Energy, Absence::NoEnergyMeter);
        capability(self.machine.core_types.len() > 1, Capability::CoreTypes, Absence::OneCoreType);
        capabilities
    }

    fn now(&mut self) -> Nanos {
        Nanos(self.world.now)
    }

    fn stopwatch(&self) -> Option<Nanos> {
        None
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), SimError> {
        let limit = until.map_or(u64::MAX, |until| until.0.max(self.world.now));
        loop {
            self.world.settle();
            if !self.queued.is_empty() {
                events.append(&mut self.queued);
                return Ok(());
            }
            let fault = self.faults.front().map_or(u64::MAX, |fault| fault.at.0.max(self.world.now));
            let next = self.world.next_event();
            let at = next.min(fault).min(limit);
            if at == u64::MAX {
                return Err(SimError::Stuck(Nanos(self.world.now)));
            }
            if self.world.any_running() || next != u64::MAX || fault != u64::MAX {
                self.idle_waits = 0;
            } else if self.idle_waits == PATIENCE {
                return Err(SimError::Stuck(Nanos(self.world.now)));
            } else {
                self.idle_waits += 1;
            }
            self.events += 1;
            self.world.advance(at);
            while self.faults.front().is_some_and(|fault| fault.at.0 <= at) {
                if let Some(fault) = self.faults.pop_front() {
                    self.strike(fault.what);
                }
            }
            for happening in std::mem::take(&mut self.world.happened) {
                match happening {
                    Happening::Finished(task) => self.end(TaskId(task), Exit::Code(0)),
                    Happening::Slept(task) if self.tasks[task as usize].placement.is_some() => {
                        self.queued.push(Event::Slept(TaskId(task)));
                    }
                    Happening::Woke(task) if self.tasks[task as usize].placement.is_some() => {
                        self.queued.push(Event::Woke(TaskId(task)));
                    }
                    Happening::Slept(_) | Happening::Woke(_) => {}
                }
            }
            if at == limit && self.queued.is_empty() {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        for &task in tasks {
            if !self.tasks[task.0 as usize].started {
                let why = Absence::NotStarted;
                out.push(Usage { cpu_time: Reading::Absent(why), counts: Counts::absent(why), ..Usage::zero(task) });
                continue;
            }
            self.world.sync_task(task.0);
            let mut tally = crate::world::Tally::default();
            let mut cpu_ns = 0;
            for thread in self.world.tasks[task.0 as usize].clone() {
                tally.add(&self.world.threads[thread].tally);
                cpu_ns += self.world.threads[thread].cpu_ns;
            }
            let counters = &self.config.machine.counters;
            let counts = self.tasks[task.0 as usize].reported.read(&tally, counters, self.trouble);
            out.push(Usage { task, cpu_time: Reading::Value(Nanos(cpu_ns)), counts, multiplexed: false });
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), SimError> {
        for change in changes {
            if let Change::Stop { task } = change {
                self.tasks[task.0 as usize].placement = None;
                for thread in self.world.tasks[task.0 as usize].clone() {
                    self.world.stop(thread);
                }
            }
        }
        for change in changes {
            if let Change::Place { task, placement, .. } = change {
                self.place(*task, placement);
            }
        }
        self.world.settle();
        Ok(())
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        if !self.tasks[task.0 as usize].started {
            return;
        }
        // Simulated programs do not catch signals.
        let signal = if how == Kill::Kill { 9 } else { 15 };
        self.end(task, Exit::Signal { signal, oom: false });
    }

    fn restart(&mut self, task: TaskId) -> bool {
        let ix = task.0 as usize;
        let Some(state) = self.tasks.get_mut(ix).filter(|state| state.ended) else { return false };
        (state.started, state.ended, state.placement) = (false, false, None);
        state.reported.begin_anew();
        self.world.restart_task(task.0, self.solo[ix].instructions as f64);
        true
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Value(self.world.energy().total())
    }
}

impl Sim {
    /// The CPUs on which a task's threads run, or wait for their turn, at this moment; for tests.
    pub fn cpus_of(&self, task: TaskId) -> CpuSet {
        let threads = &self.world.threads[self.world.tasks[task.0 as usize].clone()];
        let on = threads.iter().filter_map(|thread| match thread.state {
            State::Running(cpu) | State::Ready(cpu) => Some(self.world.machine.cpus[cpu].id),
            State::Off | State::Asleep | State::Done => None,
        });
        on.collect()
    }
}
