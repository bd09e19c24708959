//! What tasks did in the intervals that ended at an instant, and who met whom.

use crate::counter::Counter;
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::task::TaskId;
use crate::topology::Machine;
use crate::units::{Absence, Reading};
use std::collections::BTreeMap;

/// Samples of fewer instructions say nothing.
const LEAST_INSTRUCTIONS: f64 = 1e5;

/// What a task did in an interval.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) task: TaskId,
    /// Its cores, and on how many of their CPUs it is.
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
    /// Share of the interval for which each of its threads had a CPU.
    pub(super) duty: f64,
    pub(super) calm: bool,
}

impl Seen {
    /// What a sample says of a task that was placed on `width` CPUs of its own.
    ///
    /// # Errors
    /// Events were not counted, it ran too little, or nobody knows beside whom it ran on a core: the kernel time-shared its
    /// CPUs, or a plan let others fill in.
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
        // Cycles of several types have no clock in common.
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
        // Where one of them is not counted, the other is the nearest to it.
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

    /// The part of this interval that lies in another.
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

/// The cores of these CPUs, given by their positions, and how many of them each core has.
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

/// Reads of all who ran from one instant to another and have a cache in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Readers {
    since: u64,
    until: u64,
    llc: usize,
    domain: usize,
    /// Lines per ns.
    reads: f64,
}

/// All who ran in the intervals of an instant, and who met whom.
#[derive(Clone, Debug)]
pub(super) struct Company {
    pub(super) seen: Vec<Seen>,
    /// Of each core: who was on it, and on how many of its CPUs.
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
            // Nearly all began and ended together, so there are few groups, and the last ones are the likeliest.
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

    /// What was read from its memory domain and into its last-level cache while a job ran.
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

    /// Those whom each thread of a job met in its core, with the number of their threads in the mean. Threads of a job meet
    /// each other too.
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

/// What a job met in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Met {
    /// Position of the job among those that were seen.
    pub(super) at: usize,
    /// Lines per ns that all read from its memory domain, and into its last-level cache.
    pub(super) reads: f64,
    pub(super) cached: f64,
}
