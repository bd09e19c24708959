//! The simulated world: cores, caches, memory, the kernel's queues, and time.
//!
//! Time jumps from event to event. An event concerns one core: the core is synced to now, the event is carried out, and
//! its rates are solved again. Other cores are visited only if the latency of their common memory has changed
//! noticeably. Shares of a cache are integrals over time, which each core reads when its turn comes.

mod balance;
mod behaviour;
mod decay;
mod device;
mod energy;
mod llc;
mod memory;
mod physics;
mod reuse;
mod run_queue;
mod thread;

pub(crate) use behaviour::{Behaviour, LINES_PER_MB};
pub(crate) use thread::{Instance, Thread, ThreadState, TrueCounts};

use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use cosched_core::{CpuSet, Device, Machine, PerDevice, kernel_weight};
use device::DeviceQueue;
use llc::Llc;
use memory::Domain;
use physics::{Core, Sibling};
use run_queue::{CpuState, Times};
use std::collections::BTreeSet;
use std::sync::Arc;

/// An event for the backend.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum WorldEvent {
    /// All threads of a task have done their work.
    Finished(u32),
    /// The last awake thread of a task fell asleep.
    Slept(u32),
    /// A sleeping thread of a task woke.
    Woke(u32),
}

pub(crate) struct SimWorld {
    pub spec: Arc<MachineSpec>,
    pub machine: Arc<Machine>,
    pub now: u64,
    pub cpus: Vec<CpuState>,
    cores: Vec<Core>,
    /// Instants of the next event of each core, then of each last-level cache. Kept apart from the cores, as every
    /// event scans them.
    next: Vec<u64>,
    llcs: Vec<Llc>,
    domains: Vec<Domain>,
    /// True lines read from and written to each memory domain, without the counters' noise.
    moved: Vec<(f64, f64)>,
    pub threads: Vec<Thread>,
    /// The threads of each task.
    pub tasks: Vec<std::ops::Range<usize>>,
    /// By program and core type.
    behaviours: Vec<Vec<Behaviour>>,
    times: Times,
    sleeping: BTreeSet<(u64, usize)>,
    pub(crate) devices: PerDevice<Option<DeviceQueue>>,
    balance_at: u64,
    /// Whether the clock of any type of core changes.
    has_turbo: bool,
    /// Number of placed threads that may use more than one CPU. At 0 there is nothing to balance.
    shared: usize,
    to_place: Vec<usize>,
    to_reschedule: Vec<usize>,
    dirty: Vec<usize>,
    scratch: Vec<Sibling>,
    active_since: Vec<(usize, u64, u64)>,
    pub happened: Vec<WorldEvent>,
    /// Change of a thread's cycles per instruction, as a share, after which its rates are solved again.
    pub step: f64,
}

fn indices_of(cpus: &CpuSet, machine: &Machine) -> Vec<usize> {
    cpus.iter()
        .map(|cpu| machine.index_of(cpu).unwrap_or_default())
        .collect()
}

fn new_llc(llc: usize, spec: &MachineSpec, cores: &[Core]) -> Llc {
    let own = (0..cores.len()).filter(|&core| cores[core].llc == llc);
    Llc::new(
        spec.llc.mb * LINES_PER_MB,
        &spec.llc,
        own.collect(),
        cores.len(),
    )
}

/// The behaviour of a program on each type of core.
fn behaviours_of(program: &ProgramSpec, spec: &MachineSpec) -> Vec<Behaviour> {
    let kinds = spec.core_types.iter();
    kinds
        .map(|kind| Behaviour::new(program, kind, spec.llc.hit_ns * kind.ghz))
        .collect()
}

impl SimWorld {
    pub(crate) fn new(
        spec: Arc<MachineSpec>,
        programs: &[Arc<ProgramSpec>],
        step: f64,
    ) -> SimWorld {
        // The whole machine is simulated, whatever part of it the run may use.
        let machine = Arc::new(spec.machine());
        let cpus: Vec<CpuState> = machine
            .cpus
            .iter()
            .map(|cpu| CpuState::new(cpu.core))
            .collect();
        let cores: Vec<Core> = machine
            .cores
            .iter()
            .map(|set| Core::new(indices_of(set, &machine), &machine, &spec))
            .collect();
        let llcs = 0..machine.llcs.len();
        let domains = machine.memory_domains.len();
        let domain = Domain::new(&spec.memory, cores.len());
        SimWorld {
            times: Times::new(&spec.kernel),
            llcs: llcs.map(|llc| new_llc(llc, &spec, &cores)).collect(),
            domains: vec![domain; domains],
            moved: vec![(0.0, 0.0); domains],
            behaviours: programs
                .iter()
                .map(|program| behaviours_of(program, &spec))
                .collect(),
            active_since: vec![(0, 0, 0); domains],
            now: 0,
            threads: Vec::new(),
            tasks: Vec::new(),
            sleeping: BTreeSet::new(),
            devices: PerDevice::from_fn(|device| spec.devices[device].map(DeviceQueue::new)),
            balance_at: 0,
            has_turbo: spec.core_types.iter().any(|kind| !kind.turbo.is_empty()),
            shared: 0,
            to_place: Vec::new(),
            to_reschedule: Vec::new(),
            dirty: Vec::new(),
            scratch: Vec::new(),
            happened: Vec::new(),
            step,
            cpus,
            next: vec![u64::MAX; cores.len() + machine.llcs.len()],
            cores,
            spec,
            machine,
        }
    }

    /// Adds a task whose threads share its work evenly. Returns its number.
    pub(crate) fn add_task(
        &mut self,
        program: usize,
        instance: Instance,
        threads: u32,
        work: f64,
        nice: i8,
    ) -> u32 {
        let task = self.tasks.len() as u32;
        let thread = self.new_thread(
            task,
            program,
            instance,
            work / f64::from(threads),
            kernel_weight(nice).into(),
        );
        let first = self.threads.len();
        self.threads
            .extend(std::iter::repeat_n(thread, threads as usize));
        self.tasks.push(first..self.threads.len());
        task
    }

    /// Restarts a task that has ended: its threads begin anew.
    pub(crate) fn restart_task(&mut self, task: u32, work: f64) {
        let all = self.tasks[task as usize].clone();
        for ix in all.clone() {
            let one = &self.threads[ix];
            let (program, instance, weight) = (one.program, one.instance, one.weight);
            self.threads[ix] =
                self.new_thread(task, program, instance, work / all.len() as f64, weight);
        }
    }

    fn new_thread(
        &self,
        task: u32,
        program: usize,
        instance: Instance,
        work: f64,
        weight: u64,
    ) -> Thread {
        let mut thread = Thread {
            task,
            program,
            instance,
            state: ThreadState::Off,
            placed: false,
            affinity: Arc::new([]),
            weight,
            vruntime: 1 << 40,
            last_cpu: None,
            home: None,
            switching: 0.0,
            warming: 0.0,
            phase: 0,
            phase_left: 0.0,
            work_left: work,
            tally: TrueCounts::default(),
            cpu_ns: 0,
            held: 0.0,
            held_in: 0,
            held_at: Default::default(),
            oldest: Default::default(),
            rate: 0.0,
            busy: 0.0,
            uses: Default::default(),
            ends: u64::MAX,
            wakes: 0,
        };
        thread.enter(0, &self.behaviours[program][0].phases[0]);
        thread
    }

    /// Lets a thread run on some CPUs, ascending and at least one of them online. It stays where it is if allowed.
    pub(crate) fn place(&mut self, thread_ix: usize, affinity: Arc<[usize]>) {
        let thread = &mut self.threads[thread_ix];
        if thread.state == ThreadState::Done {
            return;
        }
        let was_shared = thread.placed && thread.affinity.len() > 1;
        let is_shared = affinity.len() > 1;
        self.shared = self.shared + usize::from(is_shared) - usize::from(was_shared);
        thread.affinity = affinity;
        thread.placed = true;
        let may_stay =
            |cpu: usize| self.cpus[cpu].online && thread.affinity.binary_search(&cpu).is_ok();
        match thread.state {
            ThreadState::Running(cpu) | ThreadState::Ready(cpu) if may_stay(cpu) => {}
            ThreadState::Running(_) | ThreadState::Ready(_) | ThreadState::Off => {
                self.dequeue(thread_ix, ThreadState::Off);
                self.to_place.push(thread_ix);
            }
            ThreadState::Asleep | ThreadState::Waiting | ThreadState::Done => {}
        }
    }

    /// Freezes a thread.
    pub(crate) fn stop(&mut self, thread_ix: usize) {
        let thread = &mut self.threads[thread_ix];
        if !std::mem::replace(&mut thread.placed, false) {
            return;
        }
        self.shared -= usize::from(thread.affinity.len() > 1);
        match thread.state {
            ThreadState::Running(_) | ThreadState::Ready(_) => {
                self.dequeue(thread_ix, ThreadState::Off)
            }
            ThreadState::Off | ThreadState::Asleep | ThreadState::Waiting | ThreadState::Done => {}
        }
    }

    /// Ends a thread in any state.
    pub(crate) fn end(&mut self, thread_ix: usize) {
        self.stop(thread_ix);
        if self.threads[thread_ix].state == ThreadState::Asleep {
            self.sleeping
                .remove(&(self.threads[thread_ix].wakes, thread_ix));
        } else if self.threads[thread_ix].state == ThreadState::Waiting {
            self.leave_devices(thread_ix);
        }
        self.threads[thread_ix].state = ThreadState::Done;
    }

    /// Takes a CPU offline or brings it back. Its threads move to other CPUs, even to those that they may not use, as
    /// in the kernel.
    pub(crate) fn set_online(&mut self, cpu: usize, online: bool) {
        self.cpus[cpu].online = online;
        if online {
            return;
        }
        let mut threads: Vec<usize> = self.cpus[cpu]
            .queue
            .iter()
            .map(|&(_, thread)| thread)
            .collect();
        threads.extend(self.cpus[cpu].current);
        for thread in threads {
            self.dequeue(thread, ThreadState::Off);
            self.to_place.push(thread);
        }
    }

    /// Carries out the caller's changes: puts threads on CPUs, chooses which run, and solves for the rates.
    pub(crate) fn settle(&mut self) {
        loop {
            for thread in std::mem::take(&mut self.to_place) {
                if self.threads[thread].state == ThreadState::Off && self.threads[thread].placed {
                    let cpu = self
                        .choose_cpu(thread)
                        .or_else(|| self.cpus.iter().position(|cpu| cpu.online));
                    if let Some(cpu) = cpu {
                        self.enqueue(thread, cpu);
                    }
                }
            }
            self.reschedule_all();
            if self.to_place.is_empty() {
                break;
            }
        }
        self.note_activity();
        self.solve_dirty();
    }

    /// The time of the next event.
    pub(crate) fn next_event(&self) -> u64 {
        let mut next = self.next.iter().copied().min().unwrap_or(u64::MAX);
        if let Some(&(wakes, _)) = self.sleeping.first() {
            next = next.min(wakes);
        }
        next = next.min(self.next_served());
        if self.shared > 0 {
            next = next.min(self.balance_at.max(self.now + 1));
        }
        next
    }

    /// Goes to an instant not after the next event, and carries out what is due.
    pub(crate) fn advance(&mut self, to: u64) {
        self.now = to;
        for core in 0..self.cores.len() {
            if self.next[core] <= to {
                self.core_event(core);
            }
        }
        for llc in 0..self.llcs.len() {
            if self.next[self.cores.len() + llc] <= to {
                self.full_event(llc);
            }
        }
        while let Some(&(wakes, thread)) = self.sleeping.first()
            && wakes <= to
        {
            self.sleeping.pop_first();
            self.threads[thread].state = ThreadState::Off;
            if self.threads[thread].placed {
                self.to_place.push(thread);
            }
            self.happened
                .push(WorldEvent::Woke(self.threads[thread].task));
        }
        self.wake_served();
        if self.shared > 0 && self.balance_at <= to {
            self.balance_at = to + self.times.balance;
            self.balance();
        }
        self.settle();
    }

    /// Carries out what is due on a core: the end of a phase, of work or of a slice, or a new solution for its rates.
    fn core_event(&mut self, core: usize) {
        self.touch(core);
        for at in 0..self.cores[core].cpus.len() {
            let cpu = self.cores[core].cpus[at];
            if let Some(thread) = self.cpus[cpu].current
                && self.threads[thread].ends <= self.now
            {
                self.piece_over(thread);
            }
            if self.cpus[cpu].slice_end.is_some_and(|end| end <= self.now) {
                self.slice_over(cpu);
            }
        }
    }

    /// Handles the end of a thread's phase or of its work.
    fn piece_over(&mut self, thread_ix: usize) {
        let is_end = self.threads[thread_ix].work_left <= self.threads[thread_ix].phase_left;
        self.finish_piece(thread_ix);
        let task = self.threads[thread_ix].task;
        if is_end {
            self.stop(thread_ix);
            self.threads[thread_ix].state = ThreadState::Done;
            let mut threads = self.tasks[task as usize].clone();
            if threads.all(|thread| self.threads[thread].state == ThreadState::Done) {
                self.happened.push(WorldEvent::Finished(task));
            } else {
                self.note_sleep(task);
            }
            return;
        }
        let thread = &mut self.threads[thread_ix];
        let phases = &self.behaviours[thread.program][0].phases;
        let sleep = (phases[thread.phase].then_sleep_ms * 1e6) as u64;
        let done = thread.phase;
        let next = (done + 1) % phases.len();
        thread.enter(next, &phases[next]);
        if self.wait_for_device(thread_ix, done) {
            return;
        }
        if sleep > 0 {
            self.dequeue(thread_ix, ThreadState::Asleep);
            self.threads[thread_ix].wakes = self.now + sleep;
            self.sleeping.insert((self.now + sleep, thread_ix));
            self.note_sleep(task);
        }
    }

    /// Reports that a task sleeps, if none of its threads is awake.
    fn note_sleep(&mut self, task: u32) {
        let asleep = |thread: usize| {
            matches!(
                self.threads[thread].state,
                ThreadState::Asleep | ThreadState::Done
            )
        };
        if self.tasks[task as usize].clone().all(asleep) {
            self.happened.push(WorldEvent::Slept(task));
        }
    }

    /// Lines read from and written to each memory domain so far.
    pub(crate) fn moved(&mut self) -> &[(f64, f64)] {
        for core in 0..self.cores.len() {
            self.sync(core);
        }
        &self.moved
    }

    /// Syncs every figure of a task to now.
    pub(crate) fn sync_task(&mut self, task: u32) {
        Device::ALL.iter().for_each(|&device| self.serve(device));
        for thread in self.tasks[task as usize].clone() {
            if let ThreadState::Running(cpu) = self.threads[thread].state {
                self.sync(self.cpus[cpu].core);
            }
        }
    }
}

impl SimWorld {
    /// Whether any thread has a CPU.
    pub(crate) fn any_running(&self) -> bool {
        self.active_since.iter().any(|&(cores, ..)| cores > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{builtin_machine, builtin_program};

    #[test]
    fn no_cache_holds_more_lines_than_it_has() {
        let spec = Arc::new(builtin_machine("xeon-e5645").unwrap());
        let programs = ["mcf", "lbm", "gcc", "workload-chase"]
            .map(|name| Arc::new(builtin_program(name).unwrap()));
        let mut world = SimWorld::new(spec, &programs, 0.06);
        let same = Instance {
            cpi: 1.0,
            memory: 1.0,
            length: 1.0,
        };
        let all: Arc<[usize]> = (0..world.cpus.len()).collect();
        for n in 0..20 {
            world.add_task(n % programs.len(), same, 1, 1e12, 0);
            world.place(n, all.clone());
        }
        world.settle();
        let (mut fullest, mut lost): (f64, f64) = (0.0, 0.0);
        for _ in 0..20_000 {
            world.advance(world.next_event());
            for core in 0..world.cores.len() {
                world.sync(core);
            }
            let now = world.now;
            for llc in 0..world.llcs.len() {
                world.llcs[llc].advance(now);
                let cache = &world.llcs[llc];
                let here = world.threads.iter().filter(|thread| thread.held_in == llc);
                let held = here.map(|thread| match thread.state {
                    ThreadState::Running(_) => thread.held,
                    _ => cache.left_of(thread.held, thread.held_at),
                });
                fullest = fullest.max(held.sum::<f64>() / cache.size);
                let running = world
                    .threads
                    .iter()
                    .filter(|thread| matches!(thread.state, ThreadState::Running(_)));
                let used: f64 = running
                    .filter(|thread| thread.held_in == llc)
                    .map(|thread| thread.held)
                    .sum();
                lost = lost.max((1.0 - (used + cache.unused()) / cache.size).abs());
            }
        }
        // Rates are solved again only after a step, so threads can hold slightly more than all lines.
        assert!(fullest > 0.9 && fullest < 1.03, "{fullest}");
        assert!(
            lost < 1e-6,
            "of all lines {lost} are neither used nor unused"
        );
    }

    #[test]
    fn a_program_that_hardly_misses_any_more_leaves_no_line_to_nobody() {
        let spec = Arc::new(builtin_machine("i5-2500").unwrap());
        for name in ["hmmer", "h264ref", "gromacs", "sphinx3", "mcf"] {
            let mut world = SimWorld::new(
                spec.clone(),
                &[Arc::new(builtin_program(name).unwrap())],
                0.08,
            );
            world.add_task(
                0,
                Instance {
                    cpi: 1.0,
                    memory: 1.0,
                    length: 1.0,
                },
                1,
                1e12,
                0,
            );
            world.place(0, Arc::new([0]));
            world.settle();
            for _ in 0..200 {
                world.advance(world.next_event());
                world.sync(0);
                let now = world.now;
                world.llcs[0].advance(now);
                let cache = &world.llcs[0];
                let all = world.threads[0].held + cache.unused();
                assert!(
                    (all / cache.size - 1.0).abs() < 1e-6,
                    "{name}: {} of {}",
                    all,
                    cache.size
                );
            }
        }
    }

    fn forward(world: &mut SimWorld) {
        let until = world.now + 200_000_000;
        while world.now < until {
            world.advance(world.next_event().min(until));
        }
        (0..2).for_each(|core| world.sync(core));
    }

    #[test]
    fn a_thread_that_has_lost_all_its_lines_fetches_them_again() {
        let spec = Arc::new(builtin_machine("xeon-e5645").unwrap());
        let lbm = Arc::new(builtin_program("lbm").unwrap());
        let mut world = SimWorld::new(spec, &[lbm], 0.08);
        let same = Instance {
            cpi: 1.0,
            memory: 1.0,
            length: 1.0,
        };
        for n in 0..2 {
            world.add_task(0, same, 1, 1e12, 0);
            world.place(n, Arc::new([n]));
        }
        world.settle();
        forward(&mut world);
        world.stop(1);
        world.settle();
        forward(&mut world);
        // Of what it had hardly any number is left, and its age is as small.
        world.place(1, Arc::new([1]));
        world.settle();
        world.threads[1].held = 1e-72;
        world.threads[1].oldest.age = None;
        world.touch(1);
        world.solve_dirty();
        forward(&mut world);
        let held = [0, 1].map(|thread| world.threads[thread].held);
        assert!((held[1] / held[0] - 1.0).abs() < 0.1, "{held:?}");
    }
}
