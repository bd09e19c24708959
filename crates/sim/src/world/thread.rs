//! A thread of a simulated task: its place in the program, what it has used, and what it holds of a cache.

use super::llc::Mark;
use crate::program::Phase;
use cosched_core::Counter;
use std::sync::Arc;

/// What a thread is doing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum State {
    /// It is frozen, or not started.
    Off,
    /// It waits in the queue of a CPU.
    Ready(usize),
    /// It has a CPU.
    Running(usize),
    /// It sleeps.
    Asleep,
    /// It has done its work.
    Done,
}

/// What was executed and moved, without the counters' noise.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    pub cycles: f64,
    pub instructions: f64,
    pub l1: f64,
    pub llc: f64,
    pub reads: f64,
    pub writes: f64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.cycles += other.cycles;
        self.instructions += other.instructions;
        self.l1 += other.l1;
        self.llc += other.llc;
        self.reads += other.reads;
        self.writes += other.writes;
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

/// How one instance of a program differs from its profile: factors near 1.
#[derive(Clone, Copy)]
pub(crate) struct Instance {
    /// On the cycles per instruction in the core.
    pub cpi: f64,
    /// On the use of memory.
    pub memory: f64,
    /// On the length of phases.
    pub length: f64,
}

#[derive(Clone)]
pub(crate) struct Thread {
    pub task: u32,
    /// Index of its program's behaviours.
    pub program: usize,
    pub instance: Instance,
    pub state: State,
    /// Whether it may run: it has started and is not frozen.
    pub placed: bool,
    /// The CPUs that it may use, ascending.
    pub affinity: Arc<[usize]>,
    pub weight: u64,
    /// Weighted run time on the scale of its CPU's queue. Off a queue: its distance from the queue's least, plus an
    /// offset.
    pub vruntime: u64,
    pub last_cpu: Option<usize>,
    /// The memory domain that holds its data: the one where it ran first.
    pub home: Option<usize>,
    /// Kernel time of the switch to it that is still left, in ns.
    pub switching: f64,
    /// Time that cold private caches still cost it, in ns.
    pub warming: f64,
    pub phase: usize,
    /// Instructions to the end of the phase.
    pub phase_left: f64,
    /// Instructions to the end of its work.
    pub work_left: f64,
    pub tally: Tally,
    pub cpu_ns: u64,
    /// Lines that it holds of `held_in`.
    pub held: f64,
    pub held_in: usize,
    /// The moment at which it stopped running, in the life of the cache's unused lines.
    pub held_at: Mark,
    /// While it runs: instructions per ns.
    pub rate: f64,
    /// While it runs: cycles per instruction in the core beside its siblings.
    pub busy: f64,
    /// While it runs: what an instruction uses.
    pub uses: Uses,
    /// While it runs: when its phase or its work ends.
    pub ends: u64,
    /// While it sleeps: when it wakes.
    pub wakes: u64,
}

/// What an instruction of a running thread uses, and how its reads change with the lines that it holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Uses {
    pub l1: f64,
    pub llc: f64,
    pub reads: f64,
    pub writes: f64,
    /// Change of `reads` for each line held; never positive.
    pub reads_per_line: f64,
    /// The lines that it held when `reads` were right.
    pub at_held: f64,
    /// Share by which its cycles per instruction change for each line held more or less.
    pub share_per_line: f64,
    /// The same where its reads change most.
    pub most_share_per_line: f64,
    /// The range of lines held in which `reads_per_line` holds.
    pub piece: (f64, f64),
}

impl Thread {
    /// Instructions until its behaviour changes.
    pub(crate) fn left(&self) -> f64 {
        self.phase_left.min(self.work_left)
    }

    /// Executes instructions at its present rates; returns what they used.
    pub(crate) fn execute(&mut self, instructions: f64) -> Tally {
        let done = Tally {
            cycles: 0.0,
            instructions,
            l1: instructions * self.uses.l1,
            llc: instructions * self.uses.llc,
            reads: instructions * self.uses.reads,
            writes: instructions * self.uses.writes,
        };
        self.phase_left -= instructions;
        self.work_left -= instructions;
        self.tally.add(&done);
        done
    }

    /// Begins a phase.
    pub(crate) fn enter(&mut self, number: usize, phase: &Phase) {
        self.phase = number;
        self.phase_left = phase.instructions * self.instance.length;
    }
}
