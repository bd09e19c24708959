//! The activity of tasks in the intervals that ended at an instant, and the contention between them.

use crate::counter::Counter;
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::task::TaskId;
use crate::topology::Machine;
use crate::units::{Absence, Reading};
use std::collections::BTreeMap;

/// Samples with fewer instructions are ignored.
const LEAST_INSTRUCTIONS: f64 = 1e5;

/// A task's activity in an interval.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) task: TaskId,
    /// Its cores, with the number of its CPUs in each.
    cores: Vec<(usize, f64)>,
    pub(super) core_type: usize,
    llc: usize,
    pub(super) domain: usize,
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
    pub(super) calm: bool,
}

impl Seen {
    /// The activity in a sample of a task with `width` exclusive CPUs.
    ///
    /// # Errors
    /// Events were not counted, the task ran too little, or its siblings are unknown, because the kernel time-shared
    /// its CPUs or a plan let fillers in.
    pub(super) fn of(machine: &Machine, sample: &Sample, width: u32) -> Result<Seen, Absence> {
        if sample.observed || sample.cpus.len() != width as usize {
            return Err(Absence::NotTold);
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
            return Err(Absence::NotTold);
        }
        let threads = cpus.len() as f64;
        let time = sample
            .cpu_time
            .value()
            .map_or(sample.interval.0 as f64 * threads, |time| time.0 as f64);
        if time <= 0.0 || cycles <= 0.0 || instructions < LEAST_INSTRUCTIONS {
            return Err(Absence::NotYetMeasured);
        }
        // If one of the two is not counted, the other is the best substitute.
        let accesses = count(sample, Counter::LlcAccesses).ok();
        let reads = count(sample, Counter::MmReads).ok();
        Ok(Seen {
            task: sample.task,
            cores: threads_on_cores(machine, &cpus),
            core_type: cpu.core_type,
            llc: cpu.llc,
            domain: cpu.memory_domain,
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
            calm: sample.whole_core && sample.purpose != Purpose::Run,
        })
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

    /// Length of the interval in ns.
    pub(super) fn length(&self) -> u64 {
        self.until - self.since
    }

    /// The part of this interval that overlaps another.
    fn overlap(&self, since: u64, until: u64) -> f64 {
        let both = self.until.min(until).saturating_sub(self.since.max(since));
        self.per_ns(both as f64)
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

/// Reads of all tasks with the same start, end and cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readers {
    since: u64,
    until: u64,
    llc: usize,
    domain: usize,
    /// Lines per ns.
    reads: f64,
}

/// All tasks in the intervals of an instant, and the contention between them.
#[derive(Clone, Debug)]
pub(super) struct Company {
    pub(super) seen: Vec<Seen>,
    /// For each core: the tasks on it, with the number of their CPUs.
    on_core: BTreeMap<usize, Vec<(usize, f64)>>,
    pub(super) readers: Vec<Readers>,
}

impl Company {
    pub(super) fn of(seen: Vec<Seen>) -> Company {
        let mut on_core: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
        let mut readers: Vec<Readers> = Vec::new();
        for (at, one) in seen.iter().enumerate() {
            for &(core, threads) in &one.cores {
                on_core.entry(core).or_default().push((at, threads));
            }
            let reads = one.per_ns(one.reads);
            // Most tasks have the same start and end, so there are few groups, and the last ones match most often.
            let group = readers.iter_mut().rev().find(|group| {
                (group.since, group.until, group.llc, group.domain)
                    == (one.since, one.until, one.llc, one.domain)
            });
            match group {
                Some(group) => group.reads += reads,
                None => readers.push(Readers {
                    since: one.since,
                    until: one.until,
                    llc: one.llc,
                    domain: one.domain,
                    reads,
                }),
            }
        }
        Company {
            seen,
            on_core,
            readers,
        }
    }

    /// The reads from its memory domain and into its last-level cache while a job ran.
    pub(super) fn met(&self, at: usize) -> Met {
        let seen = &self.seen[at];
        let (mut reads, mut cached) = (0.0, 0.0);
        for group in &self.readers {
            let rate = group.reads * seen.overlap(group.since, group.until);
            if group.domain == seen.domain {
                reads += rate;
            }
            if group.llc == seen.llc {
                cached += rate;
            }
        }
        Met { at, reads, cached }
    }

    /// For each thread of a job: the tasks beside it in its core, with their mean number of threads. Threads of one job
    /// are siblings too.
    pub(super) fn siblings(&self, at: usize) -> impl Iterator<Item = (&Seen, f64)> {
        let seen = &self.seen[at];
        let all = seen.threads();
        seen.cores
            .iter()
            .filter_map(move |&(core, own)| Some((own, self.on_core.get(&core)?)))
            .flat_map(move |(own, there)| {
                there.iter().filter_map(move |&(other_at, threads)| {
                    let other = &self.seen[other_at];
                    let others = if other_at == at {
                        threads - 1.0
                    } else {
                        threads
                    };
                    let met = own / all * others * seen.overlap(other.since, other.until);
                    (met > 0.0).then_some((other, met))
                })
            })
    }
}

/// A job's surroundings in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    /// Index of the job in [`Company::seen`].
    pub(super) at: usize,
    /// Total lines per ns read from its memory domain, and into its last-level cache.
    pub(super) reads: f64,
    pub(super) cached: f64,
}
