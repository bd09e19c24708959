//! The simulated machine with its jobs: its construction, and actions on jobs and CPUs.

use crate::config::{JobWork, SimConfig, SimJob};
use crate::error::SimError;
use crate::fault::{Fault, FaultKind};
use crate::program::ProgramSpec;
use crate::reported::{Reported, ReportedTraffic, Trouble, uniform};
use crate::residency::Residencies;
use crate::schedule::InForce;
use crate::solo::SoloRun;
use crate::world::{Instance, SimWorld, ThreadState};
use cosched_core::Event;
use cosched_core::{
    Change, CpuId, CpuSet, Exit, Machine, Nanos, Placement, Rng, SoloTrace, TaskId,
};
use std::collections::VecDeque;
use std::sync::Arc;

/// Greatest factor: a larger one would also fill every counter at once.
const MOST_LIED: f64 = 1e18;

/// A simulated machine with jobs.
pub struct Sim {
    pub(crate) config: SimConfig,
    /// The usable part of the machine, as policies see it.
    pub(crate) machine: Arc<Machine>,
    pub(crate) world: SimWorld,
    pub(crate) tasks: Vec<TaskState>,
    pub(crate) solo: Vec<SoloRun>,
    pub(crate) instances: Vec<Instance>,
    pub(crate) faults: VecDeque<Fault>,
    pub(crate) trouble: Trouble,
    pub(crate) traffic: ReportedTraffic,
    pub(crate) queued: Vec<Event>,
    pub(crate) idle_waits: u32,
    pub(crate) events: u64,
    /// The schedule in force; `None` while changes are applied one by one.
    pub(crate) schedule: Option<InForce>,
    /// Number of the last adopted plan.
    pub(crate) generation: u64,
    /// Why no further plan is adopted; set when the scheduler is ejected.
    pub(crate) ejected: Option<String>,
    /// Present from the first plan on.
    pub(crate) residencies: Option<Residencies>,
    /// The next signal that ends the run.
    pub(crate) next_signal: Box<dyn FnMut() -> Option<i32>>,
}

pub(crate) struct TaskState {
    pub started: bool,
    pub placement: Option<Placement>,
    pub ended: bool,
    pub reported: Reported,
}

fn has_no_work(job: &SimJob) -> bool {
    let none = [JobWork::Instructions(0), JobWork::SoloTime(Nanos::ZERO)];
    job.cpus == 0 || none.contains(&job.work)
}

/// The distinct programs, and the program of each job. Jobs of the same program share its behaviours.
fn distinct_programs(jobs: &[SimJob]) -> (Vec<Arc<ProgramSpec>>, Vec<usize>) {
    let mut programs: Vec<Arc<ProgramSpec>> = Vec::new();
    let mut program_of = Vec::new();
    for job in jobs {
        let mut seen = programs.iter();
        let found = seen.position(|program| Arc::ptr_eq(program, &job.program));
        program_of.push(found.unwrap_or(programs.len()));
        if found.is_none() {
            programs.push(job.program.clone());
        }
    }
    (programs, program_of)
}

/// The random stream of a job, independent of the other jobs.
fn rng_of_job(seed: u64, job: usize) -> Rng {
    Rng::new(seed ^ (job as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// An instance of a program whose figures differ from the profile by up to the share `variation`.
fn drawn_instance(rng: &mut Rng, variation: f64) -> Instance {
    let [cpi, memory, length] =
        std::array::from_fn(|_| 1.0 + (uniform(rng) * 2.0 - 1.0) * variation);
    Instance {
        cpi,
        memory,
        length,
    }
}

impl Sim {
    /// Simulates every job alone, and then builds a machine on which no job has started.
    ///
    /// # Errors
    /// `usable` is empty, or names CPUs that the machine lacks, or a job has no work.
    pub fn new(config: SimConfig) -> Result<Sim, SimError> {
        Sim::watched(config, &mut |_| false)
    }

    /// Like [`Sim::new`]. `stop` is called regularly with the number of jobs already simulated alone; `true` cancels.
    ///
    /// # Errors
    /// As [`Sim::new`], or [`SimError::Interrupted`].
    pub fn watched(
        config: SimConfig,
        stop: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Sim, SimError> {
        let (spec, step) = (config.machine.one_node(), config.step);
        Sim::made(config, &mut |ix, job, instance| {
            SoloRun::simulate(&spec, job, instance, step, &mut || stop(ix))
                .ok_or(SimError::Interrupted)
        })
    }

    /// Like [`Sim::new`], with the solo runs of another simulation of the same jobs on the same machine with the same
    /// seed. They depend on nothing else, so several policies can share them.
    ///
    /// # Errors
    /// As [`Sim::new`].
    ///
    /// # Panics
    /// There are fewer solo runs than jobs.
    pub fn with_solo_runs(config: SimConfig, alone: &[SoloRun]) -> Result<Sim, SimError> {
        Sim::made(config, &mut |ix, _, _| Ok(alone[ix]))
    }

    fn made(
        config: SimConfig,
        alone: &mut dyn FnMut(usize, &SimJob, Instance) -> Result<SoloRun, SimError>,
    ) -> Result<Sim, SimError> {
        let machine = config.usable_machine()?;
        if let Some(job) = config.jobs.iter().position(has_no_work) {
            return Err(SimError::NoWork(job));
        }
        let (programs, program_of) = distinct_programs(&config.jobs);
        let mut world = SimWorld::new(config.machine.clone(), &programs, config.step);
        let mut tasks = Vec::new();
        let mut solo = Vec::new();
        let mut instances = Vec::new();
        for (ix, job) in config.jobs.iter().enumerate() {
            let mut rng = rng_of_job(config.seed, ix);
            let instance = drawn_instance(&mut rng, config.variation);
            let alone = alone(ix, job, instance)?;
            world.add_task(
                program_of[ix],
                instance,
                job.cpus,
                alone.instructions as f64,
                job.nice,
            );
            solo.push(alone);
            instances.push(instance);
            tasks.push(TaskState {
                started: false,
                placement: None,
                ended: false,
                reported: Reported::new(rng),
            });
        }
        let mut faults = config.faults.clone();
        faults.sort_by_key(|fault| fault.at);
        let domains = world.machine.memory_domains.len();
        Ok(Sim {
            machine: Arc::new(machine),
            world,
            tasks,
            solo,
            instances,
            faults: faults.into(),
            trouble: Trouble {
                vanished: false,
                factor: 1.0,
            },
            // A separate random stream: reading the traffic does not change any counter's noise.
            traffic: ReportedTraffic::new(Rng::new(!config.seed), domains),
            queued: Vec::new(),
            idle_waits: 0,
            events: 0,
            schedule: None,
            generation: 0,
            ejected: None,
            residencies: None,
            next_signal: Box::new(|| None),
            config,
        })
    }

    /// Lets signals end the run. `next` is asked before simulated time moves on.
    pub fn take_signals(&mut self, next: impl FnMut() -> Option<i32> + 'static) {
        self.next_signal = Box::new(next);
    }

    /// The run of each job alone on the machine, on the fastest type of core.
    pub fn solo_runs(&self) -> &[SoloRun] {
        &self.solo
    }

    /// Solo IPC of each job by instructions executed, one point per `every`. This repeats all solo runs. `stop` is as
    /// for [`Sim::watched`].
    ///
    /// # Errors
    /// [`SimError::Interrupted`].
    pub fn solo_traces(
        &self,
        every: Nanos,
        stop: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Option<SoloTrace>>, SimError> {
        let config = &self.config;
        let node = config.machine.one_node();
        let mut traces = Vec::new();
        for (ix, (job, &instance)) in config.jobs.iter().zip(&self.instances).enumerate() {
            let stop = &mut || stop(ix);
            let trace = SoloRun::trace(&node, job, instance, config.step, every, stop);
            traces.push(trace.ok_or(SimError::Interrupted)?);
        }
        Ok(traces)
    }

    /// Number of events simulated so far, a measure of the simulation's own work.
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

    /// True number of instructions that a task has executed, without the counters' noise.
    pub fn executed(&mut self, task: TaskId) -> f64 {
        self.world.sync_task(task.0);
        let threads = self.world.tasks[task.0 as usize].clone();
        threads
            .map(|thread| self.world.threads[thread].tally.instructions)
            .sum()
    }

    pub(crate) fn end(&mut self, task: TaskId, exit: Exit) {
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

    pub(crate) fn stop(&mut self, task: TaskId) {
        self.tasks[task.0 as usize].placement = None;
        for thread in self.world.tasks[task.0 as usize].clone() {
            self.world.stop(thread);
        }
    }

    /// Gives empty seats to fillers, and returns seats that their own task wants.
    pub(crate) fn fill(&mut self) {
        let Some(mut schedule) = self.schedule.take() else {
            return;
        };
        // A filler that ends or sleeps at once leaves its seat empty again. Each pass fills at least one seat, or
        // changes nothing.
        loop {
            let tasks = &self.tasks;
            let changes = schedule.changes(&self.world, |task| tasks[task.0 as usize].ended);
            if changes.is_empty() {
                break;
            }
            for change in &changes {
                match change {
                    Change::Stop { task } => self.stop(*task),
                    Change::Place {
                        task, placement, ..
                    } => self.place(*task, placement),
                }
            }
            self.world.settle();
        }
        self.schedule = Some(schedule);
    }

    /// Removes the scheduler that carries out plans. Every started task may then run on every CPU.
    pub(crate) fn eject(&mut self, why: String) {
        self.schedule = None;
        let mask = self.machine.all_cpus();
        for ix in 0..self.tasks.len() as u32 {
            if self.tasks[ix as usize].started {
                self.place(TaskId(ix), &Placement::Shared { mask: mask.clone() });
            }
        }
        self.queued
            .push(Event::SchedulerEjected { why: why.clone() });
        self.ejected = Some(why);
    }

    pub(crate) fn place(&mut self, task: TaskId, placement: &Placement) {
        let state = &mut self.tasks[task.0 as usize];
        if state.ended {
            return;
        }
        state.started = true;
        state.placement = Some(placement.clone());
        // Indices of CPUs in the whole machine.
        let all = &self.world.machine;
        let cpus: Vec<usize> = all.positions(placement.cpus()).collect();
        let threads = self.world.tasks[task.0 as usize].clone();
        match placement {
            Placement::Exclusive { .. } => {
                // With fewer CPUs than threads, several threads share one.
                for (thread, cpu) in threads.zip(cpus.iter().cycle()) {
                    self.world.place(thread, Arc::new([*cpu]));
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

    pub(crate) fn strike(&mut self, fault: FaultKind) {
        match fault {
            FaultKind::CountersVanish => self.trouble.vanished = true,
            FaultKind::CountersWrap => {
                self.tasks.iter_mut().for_each(|task| task.reported.wrap());
                self.traffic.wrap();
            }
            // NaN and negative factors count as 0.
            FaultKind::CountersLie { factor } => {
                self.trouble.factor = if factor > 0.0 {
                    factor.min(MOST_LIED)
                } else {
                    0.0
                };
            }
            FaultKind::CpuOffline(cpu) => self.set_online(cpu, false),
            FaultKind::CpuOnline(cpu) => self.set_online(cpu, true),
            FaultKind::SchedulerEjected { why } => self.eject(why),
            FaultKind::JobDies { task, exit } => {
                let state = self.tasks.get(task.0 as usize);
                if state.is_some_and(|state| state.started) {
                    self.end(task, exit);
                }
            }
        }
    }

    pub(crate) fn set_online(&mut self, cpu: CpuId, online: bool) {
        let whole = self.world.machine.clone();
        let Some(ix) = whole.index_of(cpu) else {
            return;
        };
        let mut others = self.world.cpus.iter().enumerate();
        if !online && !others.any(|(other, state)| other != ix && state.online) {
            // The last CPU can't be taken offline.
            return;
        }
        self.world.set_online(ix, online);
        let mut left = match &self.config.usable {
            Some(usable) => usable.clone(),
            None => whole.all_cpus(),
        };
        for (cpu, state) in whole.cpus.iter().zip(&self.world.cpus) {
            if !state.online {
                left.remove(cpu.id);
            }
        }
        if !left.is_empty() {
            self.machine = Arc::new(whole.part(&left));
            self.queued.push(Event::MachineChanged);
        }
    }
}

impl Sim {
    /// Number of threads of all tasks; for tests.
    pub fn threads(&self) -> usize {
        self.world.threads.len()
    }

    /// The CPUs on which a task's threads run or are queued now; for tests.
    pub fn cpus_of(&self, task: TaskId) -> CpuSet {
        let threads = &self.world.threads[self.world.tasks[task.0 as usize].clone()];
        let on = threads.iter().filter_map(|thread| match thread.state {
            ThreadState::Running(cpu) | ThreadState::Ready(cpu) => {
                Some(self.world.machine.cpus[cpu].id)
            }
            ThreadState::Off | ThreadState::Asleep | ThreadState::Waiting | ThreadState::Done => {
                None
            }
        });
        on.collect()
    }
}
