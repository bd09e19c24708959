//! The activity of tasks in the intervals that ended at an instant, and the contention between them.

use crate::counter::Counter;
use crate::estimate::progress::ran_alone;
use crate::model::contention::{PhaseDemand, PlacedJob};
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::task::TaskId;
use crate::topology::Machine;
use crate::units::{Absence, Nanos, Reading};

/// Samples with fewer instructions are ignored.
const LEAST_INSTRUCTIONS: f64 = 1e5;

/// A task's activity in an interval.
#[derive(Clone, Debug)]
pub(super) struct TaskActivity {
    pub(super) task: TaskId,
    /// Its cores, with the number of its CPUs in each.
    cores: Vec<(usize, f64)>,
    pub(super) core_type: usize,
    llc: usize,
    /// The memory domain of its cores, and the one where its memory lies.
    pub(super) domain: usize,
    pub(super) memory: usize,
    /// In ns.
    pub(super) since: u64,
    pub(super) until: u64,
    /// Cycles per ns of CPU time.
    pub(super) ghz: f64,
    pub(super) cycles: f64,
    pub(super) instructions: f64,
    pub(super) l1: f64,
    pub(super) llc_accesses: f64,
    /// Whether accesses to the last-level cache were counted.
    pub(super) counts_llc: bool,
    pub(super) reads: f64,
    /// Share of the interval in which its threads were on a CPU, on average.
    pub(super) duty: f64,
    /// Whether it was a measurement, alone behind its last-level cache or beside jobs that disturb little.
    pub(super) is_measurement: bool,
    /// Whether it is one without being planned: no other task ran.
    pub(super) ran_alone: bool,
}

impl TaskActivity {
    /// The activity in a sample of a task with `width` exclusive CPUs.
    ///
    /// # Errors
    /// Events were not counted, the task ran too little or warmed up, or its co-runners are unknown: the kernel time-shared its
    /// CPUs, or a plan let fillers in.
    pub(super) fn of(
        machine: &Machine,
        sample: &Sample,
        width: u32,
        quantum: Nanos,
    ) -> Result<TaskActivity, Absence> {
        if sample.purpose == Purpose::WarmUp {
            return Err(Absence::NotYetMeasured);
        }
        if sample.observed || sample.cpus.len() != width as usize {
            return Err(Absence::CoRunnersUnknown);
        }
        let cycles = count(sample, Counter::Cycles)?;
        let instructions = count(sample, Counter::Instructions)?;
        let cpus: Vec<usize> = machine.positions(&sample.cpus).collect();
        let Some(&first) = cpus.first() else {
            return Err(Absence::NotYetMeasured);
        };
        let cpu = &machine.cpus[first];
        // Cycles of different core types have no common clock.
        let mut types = cpus.iter().map(|&ix| machine.cpus[ix].core_type);
        if types.any(|core_type| core_type != cpu.core_type) {
            return Err(Absence::NotYetMeasured);
        }
        let threads = cpus.len() as f64;
        let time = sample
            .cpu_time
            .value()
            .map_or(sample.interval.0 as f64 * threads, |time| time.0 as f64);
        if time <= 0.0 || cycles <= 0.0 || instructions < LEAST_INSTRUCTIONS {
            return Err(Absence::NotYetMeasured);
        }
        let is_planned = sample.whole_core && sample.purpose == Purpose::MeasureAlone;
        let ran_alone = ran_alone(sample, quantum);
        // If one of the two is not counted, the other is the best substitute.
        let accesses = count(sample, Counter::LlcAccesses).ok();
        let reads = count(sample, Counter::MmReads).ok();
        Ok(TaskActivity {
            task: sample.task,
            cores: threads_on_cores(machine, &cpus),
            core_type: cpu.core_type,
            llc: cpu.llc,
            domain: cpu.memory_domain,
            memory: cpu.memory_domain,
            since: (sample.at - sample.interval).0,
            until: sample.at.0,
            ghz: cycles / time,
            cycles,
            instructions,
            l1: count(sample, Counter::L1Accesses).unwrap_or(0.0),
            llc_accesses: accesses.or(reads).unwrap_or(0.0),
            counts_llc: accesses.is_some(),
            reads: reads.or(accesses).unwrap_or(0.0),
            duty: time / (sample.interval.0.max(1) as f64 * threads),
            is_measurement: ran_alone || is_planned,
            ran_alone: ran_alone && !is_planned,
        })
    }

    /// Its seat, if it has one CPU.
    pub(super) fn seat(&self, asks: PhaseDemand) -> Option<PlacedJob> {
        let &[(core, threads)] = self.cores.as_slice() else {
            return None;
        };
        (threads == 1.0).then_some(PlacedJob {
            asks,
            core,
            llc: self.llc,
            domain: self.memory,
            away: self.is_away(),
        })
    }

    /// Whether its memory is in another domain than its cores.
    pub(super) fn is_away(&self) -> bool {
        self.memory != self.domain
    }

    pub(super) fn cpi(&self) -> f64 {
        self.cycles / self.instructions
    }

    pub(super) fn per_instruction(&self, count: f64) -> f64 {
        count / self.instructions
    }

    pub(super) fn per_ns(&self, count: f64) -> f64 {
        count / self.length().max(1) as f64
    }

    pub(super) fn threads(&self) -> f64 {
        self.cores.iter().map(|core| core.1).sum()
    }

    /// Number of its threads that ran at once while one ran. The threads of a gang wait for each other.
    pub(super) fn threads_at_once(&self) -> f64 {
        let threads = self.threads();
        (self.duty * threads).clamp(1.0, threads)
    }

    /// Length of the interval in ns.
    pub(super) fn length(&self) -> u64 {
        self.until - self.since
    }

    /// The part of this interval that overlaps that of another task.
    fn overlap(&self, other: &TaskActivity) -> f64 {
        let both = self
            .until
            .min(other.until)
            .saturating_sub(self.since.max(other.since));
        self.per_ns(both as f64)
    }

    /// Number of its threads on a core.
    fn threads_on(&self, core: usize) -> f64 {
        let here = self.cores.iter().find(|here| here.0 == core);
        here.map_or(0.0, |here| here.1)
    }
}

fn count(sample: &Sample, counter: Counter) -> Result<f64, Absence> {
    match sample.counts[counter] {
        Reading::Value(count) => Ok(count as f64),
        Reading::Absent(why) => Err(why),
    }
}

/// The cores of these CPUs, given by their positions, with the number of CPUs in each.
fn threads_on_cores(machine: &Machine, cpus: &[usize]) -> Vec<(usize, f64)> {
    let mut cores: Vec<(usize, f64)> = Vec::new();
    for &cpu in cpus {
        let core = machine.cpus[cpu].core;
        match cores.iter_mut().find(|known| known.0 == core) {
            Some(known) => known.1 += 1.0,
            None => cores.push((core, 1.0)),
        }
    }
    cores
}

/// A job's surroundings in an interval: of all tasks in `all`, those that overlap the one at position `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskSurroundings {
    /// Its position.
    pub(super) at: usize,
    /// Total lines per ns read from its memory domain, and into its last-level cache.
    pub(super) reads: f64,
    pub(super) cached: f64,
}

impl TaskSurroundings {
    pub(super) fn of(all: &[TaskActivity], at: usize) -> TaskSurroundings {
        let seen = &all[at];
        let (mut reads, mut cached) = (0.0, 0.0);
        for other in all {
            let rate = other.per_ns(other.reads) * seen.overlap(other);
            if other.memory == seen.memory {
                reads += rate;
            }
            if other.llc == seen.llc {
                cached += rate;
            }
        }
        TaskSurroundings { at, reads, cached }
    }
}

/// For each thread of the job at position `at`: the tasks beside it in its core, with their mean number of threads.
/// Threads of one job are siblings too.
pub(super) fn siblings(all: &[TaskActivity], at: usize) -> Vec<(&TaskActivity, f64)> {
    let seen = &all[at];
    let mut siblings = Vec::new();
    for (number, other) in all.iter().enumerate() {
        let own = f64::from(u8::from(number == at));
        let mut both = 0.0;
        for &(core, threads) in &seen.cores {
            both += threads * (other.threads_on(core) - own).max(0.0);
        }
        if both > 0.0 {
            siblings.push((other, both / seen.threads() * seen.overlap(other)));
        }
    }
    siblings
}
