//! A thread of a simulated task: its place in the program, its counts, and its lines in a cache.

use super::llc::Mark;
use super::reuse::ReuseAges;
use crate::program::ProgramPhase;
use cosched_core::{Counter, Device, PerDevice};
use std::sync::Arc;

/// Least instructions per ns at which a thread counts as accessing the cache, so that no age is endless.
const SLOWEST_ACCESSES: f64 = 1e-9;

/// The state of a thread.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ThreadState {
    /// Frozen, or not started.
    Off,
    /// Queued on a CPU.
    Ready(usize),
    /// Running on a CPU.
    Running(usize),
    /// Asleep.
    Asleep,
    /// Waiting for a device: off its CPU, but not by its own choice.
    Waiting,
    /// Finished.
    Done,
}

/// True counts of instructions and traffic, without the counters' noise.
#[derive(Clone, Copy, Default)]
pub(crate) struct TrueCounts {
    pub cycles: f64,
    pub instructions: f64,
    pub l1: f64,
    pub llc: f64,
    pub reads: f64,
    pub writes: f64,
    /// Time that devices worked for it, in ns.
    pub device_ns: PerDevice<f64>,
}

impl TrueCounts {
    pub(crate) fn add(&mut self, other: &TrueCounts) {
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        self.l1 += other.l1;
        self.llc += other.llc;
        self.reads += other.reads;
        self.writes += other.writes;
        for device in Device::ALL {
            self.device_ns[device] += other.device_ns[device];
        }
    }

    /// The true count for a counter.
    pub(crate) fn of(&self, counter: Counter) -> f64 {
        match counter {
            Counter::Cycles => self.cycles,
            Counter::Instructions => self.instructions,
            Counter::L1Accesses => self.l1,
            Counter::LlcAccesses => self.llc,
            Counter::MmReads => self.reads,
            Counter::MmWrites => self.writes,
        }
    }
}

/// The factors, near 1, by which an instance of a program differs from its profile.
#[derive(Clone, Copy)]
pub(crate) struct Instance {
    /// Factor on the cycles per instruction in the core.
    pub cpi: f64,
    /// Factor on the use of memory.
    pub memory: f64,
    /// Factor on the length of phases.
    pub length: f64,
}

#[derive(Clone)]
pub(crate) struct Thread {
    pub task: u32,
    /// Index of its program's behaviours.
    pub program: usize,
    pub instance: Instance,
    pub state: ThreadState,
    /// Whether it may run: it has started and is not frozen.
    pub placed: bool,
    /// The CPUs that it may use, ascending.
    pub affinity: Arc<[usize]>,
    pub weight: u64,
    /// Weighted run time on the scale of its CPU's queue. Off a queue: its distance from the queue's least, plus an
    /// offset.
    pub vruntime: u64,
    pub last_cpu: Option<usize>,
    /// The memory domain of its data: that of its first CPU.
    pub home: Option<usize>,
    /// Rest of the kernel time of the switch to it, in ns.
    pub switching: f64,
    /// Rest of the time lost to cold private caches, in ns.
    pub warming: f64,
    pub phase: usize,
    /// Instructions left in the phase.
    pub phase_left: f64,
    /// Instructions left of its work.
    pub work_left: f64,
    pub tally: TrueCounts,
    pub cpu_ns: u64,
    /// Lines that it holds of `held_in`.
    pub held: f64,
    pub held_in: usize,
    /// The moment at which it stopped running, in the life of the cache's unused lines.
    pub held_at: Mark,
    /// While it runs: the age of its oldest line.
    pub oldest: OldestLine,
    /// While it runs: instructions per ns.
    pub rate: f64,
    /// While it runs: cycles per instruction in the core beside its siblings.
    pub busy: f64,
    /// While it runs: use per instruction.
    pub uses: Uses,
    /// While it runs: when its phase or its work ends.
    pub ends: u64,
    /// While it sleeps: when it wakes.
    pub wakes: u64,
}

/// The age of the oldest line that a running thread holds, and what follows from it.
#[derive(Clone, Copy, Default)]
pub(crate) struct OldestLine {
    /// The age in ns, and the instant at which it was that; `None` before the thread's rates are solved.
    pub age: Option<(f64, u64)>,
    /// Growth of its losses with its lines, as a share of each: 1 if the age stays.
    pub growth: f64,
    /// Whether the age grows with time: the thread does not come back to the line.
    pub is_left: bool,
    /// How much more its lines are replaced than others ([`Llc::weight`](super::llc::Llc::weight)).
    pub weight: f64,
}

/// Use per instruction of a running thread, and the change of its reads with its lines in the cache.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub l1: f64,
    pub llc: f64,
    pub reads: f64,
    /// Lines read again as they left its private caches.
    pub refetched: f64,
    pub writes: f64,
    /// Change of `reads` per line held; never positive.
    pub reads_per_line: f64,
    /// Its lines at the instant of `reads`.
    pub at_held: f64,
    /// Change of its cycles per instruction per line held, as a share.
    pub share_per_line: f64,
    /// The same where its reads change most.
    pub most_share_per_line: f64,
    /// The range of lines held for which `reads_per_line` holds.
    pub piece: (f64, f64),
}

impl Thread {
    /// Instructions until its behaviour changes.
    pub(crate) fn left(&self) -> f64 {
        self.phase_left.min(self.work_left)
    }

    /// Executes instructions at its present rates. Returns their counts.
    pub(crate) fn execute(&mut self, instructions: f64) -> TrueCounts {
        let done = TrueCounts {
            cycles: 0.0,
            instructions,
            l1: instructions * self.uses.l1,
            llc: instructions * self.uses.llc,
            reads: instructions * (self.uses.reads + self.uses.refetched),
            writes: instructions * self.uses.writes,
            device_ns: PerDevice::default(),
        };
        self.phase_left -= instructions;
        self.work_left -= instructions;
        self.tally.add(&done);
        done
    }

    /// Sets the age of its oldest line at an instant. `memory` is the factor on its accesses. The thread comes back to
    /// the line after as long as its rate of accesses says, and until then the line grows older with time.
    pub(crate) fn grow_old(&mut self, ages: &ReuseAges, memory: f64, power: f64, now: u64) {
        let (instructions, per_line) = ages.at(self.held);
        let ns_per_instruction = 1.0 / (self.rate * memory).max(SLOWEST_ACCESSES);
        let comes_back = instructions * ns_per_instruction;
        let grown = match self.oldest.age {
            Some((age, at)) => age + (now - at) as f64,
            None => f64::INFINITY,
        };
        let age = f64::min(comes_back, grown);
        self.oldest.age = Some((age, now));
        self.oldest.is_left = grown < comes_back;
        self.oldest.growth = 1.0;
        if instructions > 0.0 && !self.oldest.is_left {
            self.oldest.growth += power * self.held * per_line / instructions;
        }
    }

    /// Begins a phase.
    pub(crate) fn enter(&mut self, number: usize, phase: &ProgramPhase) {
        self.phase = number;
        self.phase_left = phase.instructions * self.instance.length;
    }
}
