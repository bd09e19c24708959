//! What is learnt of jobs from the intervals that they run anyway: the model of
//! [`contention`](crate::model::contention), fitted to what was counted.
//!
//! All samples that end at an instant are looked at together, because each is the others' surroundings:
//!
//! 1. What each job met: busy threads and accesses of its siblings, its share of the reads into its cache.
//! 2. The latency of memory in the interval, which all who ran have in common: the one that explains their cycles best.
//! 3. Each sample goes to a phase of its job ([`phase`]), and the phase is fitted again.
//! 4. What threads of a core cost each other is fitted to all phases of all jobs at once, and how the latency rises to the
//!    last intervals.
//!
//! Progress is the solo time of what was executed: for each phase instructions x cycles per instruction alone, and at most
//! the CPU time that they took; and the time in which it had CPUs and did not use them. It is computed anew as the model
//! improves, also of what was executed long ago. Where cores are of several types, alone means alone on the fastest
//! ([`core_types`]).

mod core_types;
mod earlier;
mod phase;
mod shared;
mod sums;
#[cfg(test)]
mod tests;

use crate::counter::Counter;
use crate::model::contention::{Asks, Contention, activity};
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::snapshot::Learnt;
use crate::task::TaskId;
use crate::topology::{CoreType, Machine};
use crate::units::{Absence, Nanos, Reading};
use core_types::CoreTypes;
pub use earlier::{Earlier, EarlierPhase};
pub(crate) use phase::UNSEEN_READS;
use phase::{Phase, Row};
use shared::SharedFit;
use std::collections::BTreeMap;

/// Phases that are kept of a job. When there are more, the one that was not seen for longest is forgotten.
const PHASES: usize = 8;
/// Samples within this relative distance belong to one phase.
const SAME_PHASE: f64 = 0.12;
/// The same for samples on different types of core, whose private caches may differ.
const SAME_ON_OTHERS: f64 = 0.3;
/// Samples of fewer instructions say nothing.
const LEAST_INSTRUCTIONS: f64 = 1e5;
/// Shorter intervals count for less, in ns.
const FULL_LENGTH: f64 = 1e7;
/// Trust in the expected latency, in squares of the part of the cycles that reads cause: in a measurement, where others are
/// kept from disturbing, and otherwise.
const TRUST_CALM: f64 = 10.0;
const TRUST: f64 = 0.01;
/// The greatest latency that is believed, in units of the idle one.
const GREATEST_LATENCY: f64 = 30.0;
/// How often in a quantum what jobs have in common is fitted at most, but for measurements.
const FITS_IN_QUANTUM: f64 = 4.0;
/// With each sample what is told of a job's progress makes up for this part of what it lacks: this / samples so far, but at
/// least so much.
const CATCH_UP: f64 = 4.0;
const LEAST_CATCH_UP: f64 = 0.04;
/// A phase has been fitted well enough after so many samples to tell something of the latency.
const FITTED: f64 = 3.0;

/// A job that was seen.
#[derive(Clone, Debug, Default)]
struct Job {
    /// CPUs that it needs at once.
    width: u32,
    phases: Vec<Phase>,
    /// The numbers of the phases, in the order in which they were first seen. A phase on several types of core has the same
    /// number on all of them.
    numbers: Vec<u32>,
    /// The present phase.
    now: usize,
    stay: u32,
    /// What it was credited with at its start, in ns.
    start: f64,
    /// Solo time of phases that were forgotten, time that it did not use, and CPU time of what could not be counted, in ns.
    settled: f64,
    /// Solo time that is told, in ns: it follows what the model says.
    told: f64,
    /// Samples so far.
    samples: f64,
    /// See [`Learnt::settling`].
    settling: Option<f64>,
    /// Why the last sample said nothing.
    absence: Option<Absence>,
}

/// What a task did in an interval.
#[derive(Clone, Debug)]
struct Seen {
    task: TaskId,
    /// Its cores, and on how many of their CPUs it is.
    cores: Vec<(usize, f64)>,
    core_type: usize,
    llc: usize,
    domain: usize,
    /// In ns.
    since: u64,
    until: u64,
    /// Cycles per ns of CPU time.
    ghz: f64,
    cycles: f64,
    instructions: f64,
    l1: f64,
    llc_accesses: f64,
    /// Whether accesses to the last-level cache were counted.
    counts_llc: bool,
    reads: f64,
    /// Share of the interval for which each of its threads had a CPU.
    duty: f64,
    calm: bool,
}

impl Seen {
    /// What a sample says of a task that was placed on `width` CPUs of its own.
    ///
    /// # Errors
    /// Events were not counted, it ran too little, or nobody knows beside whom it ran on a core: the kernel time-shared its
    /// CPUs, or a plan let others fill in.
    fn of(machine: &Machine, sample: &Sample, width: u32) -> Result<Seen, Absence> {
        if sample.observed || sample.cpus.len() != width as usize {
            return Err(Absence::NotTold);
        }
        let count = |counter: Counter| match sample.counts[counter] {
            Reading::Value(count) => Ok(count as f64),
            Reading::Absent(why) => Err(why),
        };
        let (cycles, instructions) = (count(Counter::Cycles)?, count(Counter::Instructions)?);
        let cpus: Vec<usize> = sample
            .cpus
            .iter()
            .filter_map(|cpu| machine.index_of(cpu))
            .collect();
        let mut cores: Vec<(usize, f64)> = Vec::new();
        for &cpu in &cpus {
            let core = machine.cpus[cpu].core;
            match cores.iter_mut().find(|known| known.0 == core) {
                Some(known) => known.1 += 1.0,
                None => cores.push((core, 1.0)),
            }
        }
        let Some(&first) = cpus.first() else {
            return Err(Absence::NotYetMeasured);
        };
        // Cycles of several types have no clock in common.
        let core_type = machine.cpus[first].core_type;
        if cpus
            .iter()
            .any(|&cpu| machine.cpus[cpu].core_type != core_type)
        {
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
        let cpu = &machine.cpus[first];
        // Where one of them is not counted, the other is the nearest to it.
        let (accesses, reads) = (
            count(Counter::LlcAccesses).ok(),
            count(Counter::MmReads).ok(),
        );
        Ok(Seen {
            task: sample.task,
            cores,
            core_type: cpu.core_type,
            llc: cpu.llc,
            domain: cpu.memory_domain,
            since: (sample.at - sample.interval).0,
            until: sample.at.0,
            ghz: cycles / time,
            cycles,
            instructions,
            l1: count(Counter::L1Accesses).unwrap_or(0.0),
            llc_accesses: accesses.or(reads).unwrap_or(0.0),
            counts_llc: accesses.is_some(),
            reads: reads.or(accesses).unwrap_or(0.0),
            duty: time / (sample.interval.0.max(1) as f64 * threads),
            calm: sample.whole_core && sample.purpose != Purpose::Run,
        })
    }

    fn cpi(&self) -> f64 {
        self.cycles / self.instructions
    }

    fn per_instruction(&self, count: f64) -> f64 {
        count / self.instructions
    }

    fn per_ns(&self, count: f64) -> f64 {
        count / (self.until - self.since).max(1) as f64
    }

    fn threads(&self) -> f64 {
        self.cores.iter().map(|core| core.1).sum()
    }

    /// The part of this interval that lies in another.
    fn overlap(&self, since: u64, until: u64) -> f64 {
        let both = self.until.min(until).saturating_sub(self.since.max(since));
        both as f64 / (self.until - self.since).max(1) as f64
    }
}

/// Reads of all who ran from one instant to another and have a cache in common.
#[derive(Clone, Copy, Debug)]
struct Readers {
    since: u64,
    until: u64,
    llc: usize,
    domain: usize,
    /// Lines per ns.
    reads: f64,
}

/// All who ran in the intervals of an instant, and who met whom.
#[derive(Clone, Debug)]
struct Company {
    seen: Vec<Seen>,
    /// Of each core: who was on it, and on how many of its CPUs.
    on_core: BTreeMap<usize, Vec<(usize, f64)>>,
    readers: Vec<Readers>,
}

impl Company {
    fn of(seen: Vec<Seen>) -> Company {
        let mut on_core: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
        let mut readers: Vec<Readers> = Vec::new();
        for (at, one) in seen.iter().enumerate() {
            for &(core, threads) in &one.cores {
                on_core.entry(core).or_default().push((at, threads));
            }
            let rate = one.per_ns(one.reads);
            let alike = |group: &&mut Readers| {
                (group.since, group.until, group.llc, group.domain)
                    == (one.since, one.until, one.llc, one.domain)
            };
            // Nearly all began and ended together, so there are few groups, and the last ones are the likeliest.
            match readers.iter_mut().rev().find(alike) {
                Some(group) => group.reads += rate,
                None => {
                    let Seen {
                        since,
                        until,
                        llc,
                        domain,
                        ..
                    } = *one;
                    readers.push(Readers {
                        since,
                        until,
                        llc,
                        domain,
                        reads: rate,
                    });
                }
            }
        }
        Company {
            seen,
            on_core,
            readers,
        }
    }

    /// What was read from its memory domain and into its last-level cache while a job ran.
    fn met(&self, at: usize) -> Met {
        let seen = &self.seen[at];
        let (mut reads, mut cached) = (0.0, 0.0);
        for group in &self.readers {
            let rate = group.reads * seen.overlap(group.since, group.until);
            reads += if group.domain == seen.domain {
                rate
            } else {
                0.0
            };
            cached += if group.llc == seen.llc { rate } else { 0.0 };
        }
        Met { at, reads, cached }
    }

    /// Those whom each thread of a job met in its core, with the number of their threads in the mean. Threads of a job meet
    /// each other too.
    fn siblings(&self, at: usize) -> impl Iterator<Item = (&Seen, f64)> {
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
struct Met {
    /// Position of the job among those that were seen.
    at: usize,
    /// Lines per ns that all read from its memory domain, and into its last-level cache.
    reads: f64,
    cached: f64,
}

/// The learner of a run.
#[derive(Clone, Debug)]
pub(crate) struct Learner {
    /// In ns.
    quantum: f64,
    shared: Contention,
    fit: SharedFit,
    types: CoreTypes,
    /// The jobs that are live.
    jobs: BTreeMap<TaskId, Job>,
    /// What ran until lately: the surroundings of what ends later.
    recent: Vec<Seen>,
    /// When what jobs have in common was fitted last, in ns.
    fitted: u64,
}

impl Learner {
    /// For a machine with cores of these types, with a quantum as the unit of progress.
    pub(crate) fn new(types: &[CoreType], quantum: Nanos) -> Learner {
        Learner {
            quantum: quantum.0.max(1) as f64,
            shared: Contention::default(),
            fit: SharedFit::default(),
            types: CoreTypes::new(types),
            jobs: BTreeMap::new(),
            recent: Vec::new(),
            fitted: 0,
        }
    }

    /// What the machine charges jobs that share it, as learnt so far.
    pub(crate) fn shared(&self) -> Contention {
        self.shared
    }

    /// Takes in the samples that ended at an instant.
    pub(crate) fn observe(&mut self, machine: &Machine, samples: &[Sample]) {
        if !self.types.are_those_of(machine) {
            // What was learnt on a type of core is of no use where types have other numbers.
            self.types = CoreTypes::new(&machine.core_types);
            for job in self.jobs.values_mut() {
                job.settled += job.phases.iter().map(worth).sum::<f64>();
                (job.phases, job.numbers, job.now, job.stay) = Default::default();
            }
        }
        let mut fresh = Vec::with_capacity(samples.len());
        for sample in samples {
            let Some(job) = self.jobs.get_mut(&sample.task) else {
                continue;
            };
            match Seen::of(machine, sample, job.width) {
                Ok(seen) => {
                    job.absence = None;
                    fresh.push(seen);
                }
                Err(why) => {
                    // Where the kernel time-shares the CPUs, it may have waited for others; else only for itself.
                    let time = if sample.observed {
                        sample.cpu_time.value()
                    } else {
                        None
                    };
                    let time = time.unwrap_or(sample.interval);
                    job.settle(time.0.min(sample.interval.0) as f64);
                    job.absence = Some(why);
                }
            }
        }
        let Some(earliest) = fresh.iter().map(|seen| seen.since).min() else {
            return;
        };
        let mut all = std::mem::take(&mut self.recent);
        all.retain(|seen| seen.until > earliest);
        let first = all.len();
        all.extend(fresh);
        let company = Company::of(all);
        for domain in 0..machine.memory_domains.len() {
            self.learn(&company, first, domain);
        }
        self.recent = company.seen;
        let now = self
            .recent
            .iter()
            .map(|seen| seen.until)
            .max()
            .unwrap_or_default();
        // It looks at all jobs, which would cost too much whenever one of many short jobs ends.
        if (now - self.fitted) as f64 * FITS_IN_QUANTUM >= self.quantum
            || self.recent[first..].iter().any(|seen| seen.calm)
        {
            self.fitted = now;
            self.fit.update(
                &mut self.shared,
                &self.types,
                self.jobs.values().flat_map(|job| &job.phases),
            );
            self.types.update(&self.shared, self.jobs.values());
        }
    }

    /// What is known of a task.
    pub(crate) fn known(&self, task: TaskId) -> Reading<Learnt> {
        let Some(job) = self.jobs.get(&task) else {
            return Reading::Absent(Absence::NotYetMeasured);
        };
        let Some(phase) = job.phases.get(job.now) else {
            return Reading::Absent(job.absence.unwrap_or(Absence::NotYetMeasured));
        };
        let on = |kind: usize| job.asks_on(job.now, kind, &self.types, &self.shared);
        let (asks, solo_cpi) = on(0);
        Reading::Value(Learnt {
            asks,
            solo_cpi,
            slower: self.types.slower().map(|kind| on(kind).0).collect(),
            error: phase.error,
            progress: job.told / self.quantum,
            phase: job.numbers[job.now],
            stay: job.stay,
            measured: phase.is_measured(),
            settling: job.settling,
        })
    }

    /// A task of `width` CPUs begins, or begins anew, with this progress in quanta. What an earlier run learnt of it may help.
    pub(crate) fn begin(
        &mut self,
        task: TaskId,
        width: u32,
        progress: f64,
        earlier: Option<&Earlier>,
    ) {
        let told = progress * self.quantum;
        // That run may have had other CPUs, and so other types of core.
        let known = earlier
            .iter()
            .flat_map(|earlier| &earlier.phases)
            .filter(|phase| phase.is_sound() && self.types.has(phase.core_type));
        let mut job = Job {
            width,
            start: told,
            settled: told,
            told,
            ..Job::default()
        };
        for known in known.take(PHASES) {
            let phase = Phase::known_before(known);
            job.numbers
                .push(job.number_of(phase.core_type, |other| other.apart(&phase)));
            job.phases.push(phase);
        }
        self.jobs.insert(task, job);
    }

    /// Quanta' worth of solo execution done in this run.
    pub(crate) fn earned(&self, task: TaskId) -> Reading<f64> {
        let Some(job) = self.jobs.get(&task) else {
            return Reading::Absent(Absence::NotYetMeasured);
        };
        if job.samples == 0.0 {
            return Reading::Absent(job.absence.unwrap_or(Absence::NotYetMeasured));
        }
        Reading::Value((job.told - job.start) / self.quantum)
    }

    /// What was learnt of a task that a later run can use: its measured phases. `None` if there is nothing.
    pub(crate) fn keep(&self, task: TaskId) -> Option<Earlier> {
        let mut phases = Vec::new();
        for phase in &self.jobs.get(&task)?.phases {
            let known = EarlierPhase {
                core_type: phase.core_type,
                asks: phase.asks,
                solo_cpi: phase.solo_cpi,
            };
            if phase.is_measured() && known.is_sound() {
                phases.push(known);
            }
        }
        (!phases.is_empty()).then_some(Earlier { phases })
    }

    /// A task has ended. What it has told of the machine stays known.
    pub(crate) fn end(&mut self, task: TaskId) {
        self.jobs.remove(&task);
    }

    fn phase_of(&self, task: TaskId) -> Option<&Phase> {
        let job = self.jobs.get(&task)?;
        job.phases.get(job.now)
    }

    /// Learns from those that ran at one memory domain; those from the position `first` on are new.
    fn learn(&mut self, company: &Company, first: usize, domain: usize) {
        let all = &company.seen;
        let met: Vec<Met> = (first..all.len())
            .filter(|&at| all[at].domain == domain)
            .map(|at| company.met(at))
            .collect();
        if met.is_empty() {
            return;
        }
        let reads = met.iter().map(|met| met.reads).sum::<f64>() / met.len() as f64;
        let is_calm = met.iter().any(|met| all[met.at].calm);
        let mut latency = self.latency(company, &met, reads, is_calm);
        if !is_calm {
            let length = met
                .iter()
                .map(|met| all[met.at].until - all[met.at].since)
                .max()
                .unwrap_or_default();
            latency = self
                .fit
                .note_interval(reads, latency, length as f64 / self.quantum);
        }
        for met in met {
            self.take_in(company, met, latency);
        }
    }

    /// The latency of an interval in units of the idle one, by least squares over all who ran, with the expected one as a
    /// prior.
    fn latency(&self, company: &Company, met: &[Met], reads: f64, is_calm: bool) -> f64 {
        let expected = self.shared.memory.at(reads);
        let trust = if is_calm { TRUST_CALM } else { TRUST };
        let mut latency = expected;
        // Who is busy depends on the latency too.
        for _ in 0..2 {
            let (mut xx, mut xy) = (trust, trust * expected);
            for met in met {
                let seen = &company.seen[met.at];
                let Some(phase) = self
                    .phase_of(seen.task)
                    .filter(|phase| phase.seen >= FITTED)
                else {
                    continue;
                };
                let (busy, ports) = self.siblings(company, met.at, latency);
                let asks = Asks {
                    llc: seen.per_instruction(seen.llc_accesses),
                    ..phase.asks
                };
                let m = seen.per_instruction(seen.reads);
                let base = asks.own * (1.0 + self.shared.alpha * busy)
                    + self.shared.beta * seen.per_instruction(seen.l1) * ports
                    + asks.stall(&self.shared, m, 0.0);
                let x = asks.penalty * m / seen.cpi();
                xx += x * x;
                xy += x * (1.0 - base / seen.cpi());
            }
            latency = (xy / xx).clamp(0.5, GREATEST_LATENCY);
        }
        latency
    }

    /// Other busy threads in a job's cores, and their accesses to the first-level cache per cycle; for each of its threads.
    fn siblings(&self, company: &Company, at: usize, latency: f64) -> (f64, f64) {
        let (mut busy, mut ports) = (0.0, 0.0);
        for (other, met) in company.siblings(at) {
            let threads = met * other.duty;
            let stall = self.phase_of(other.task).map_or(0.0, |phase| {
                let asks = Asks {
                    llc: other.per_instruction(other.llc_accesses),
                    ..phase.asks
                };
                asks.stall(&self.shared, other.per_instruction(other.reads), latency)
            });
            busy += threads * activity(stall / other.cpi());
            ports += threads * other.l1 / other.cycles;
        }
        (busy, ports)
    }

    fn take_in(&mut self, company: &Company, met: Met, latency: f64) {
        let seen = &company.seen[met.at];
        let (activity, ports) = self.siblings(company, met.at, latency);
        let reads = seen.per_instruction(seen.reads);
        let llc = seen.per_instruction(seen.llc_accesses).max(reads);
        let l1 = seen.per_instruction(seen.l1);
        let mut row = Row {
            cpi: seen.cpi(),
            activity,
            ports: l1 * ports,
            l1,
            llc,
            reads,
            lines: self.shared.hit * (llc - reads) + latency * reads,
            share: if met.cached > 0.0 {
                (seen.per_ns(seen.reads) / met.cached).min(1.0)
            } else {
                1.0
            },
            load: met.reads,
            disturbed: 0.0,
            weight: ((seen.until - seen.since) as f64 / FULL_LENGTH).min(1.0),
            since: seen.since,
            until: seen.until,
            calm: seen.calm,
        };
        self.types.saw(seen.core_type, seen.ghz);
        let (shared, steepness) = (self.shared, self.fit.steepness());
        let penalty = self.fit.penalty() * self.types.penalty(seen.core_type);
        let Some(job) = self.jobs.get_mut(&seen.task) else {
            return;
        };
        let number = job.numbers.get(job.now).copied();
        let now = job.phase_for(&row, seen, &self.types, (penalty, steepness));
        job.stay = if number == Some(job.numbers[now]) {
            job.stay.saturating_add(1)
        } else {
            1
        };
        job.now = now;
        let phase = &mut job.phases[now];
        phase.doubt(&shared, &row);
        row.disturbed = phase.disturbed(&shared, &row, latency);
        phase.used_at = seen.until;
        phase.instructions += seen.instructions / seen.threads();
        phase.time += seen.cycles / seen.ghz / seen.threads();
        phase.asks.ghz = seen.ghz;
        job.settling = phase.add(&row);
        let before = phase.normal;
        let sums = phase.sums(&shared);
        phase.normal = phase.normal_equations(&sums.0, penalty);
        self.fit.exchange(&before, &phase.normal);
        phase.fit(&sums, &shared, penalty, steepness);
        job.rate(now, &self.types, &shared);
        let time = seen.cycles / seen.ghz / seen.threads();
        let solo = (seen.instructions * job.phases[now].solo_ns / seen.threads()).min(time);
        // It had CPUs of its own. What it did not use of them, it would not have used alone.
        job.settle(((seen.until - seen.since) as f64 - time).max(0.0));
        job.tell(solo);
    }
}

impl Job {
    /// Adds solo time of which nothing will be known better, in ns.
    fn settle(&mut self, time: f64) {
        self.settled += time;
        self.told += time;
    }

    /// Adds the solo time of one sample to what is told, and brings it nearer to what the model says of all that was executed.
    /// A model that changes a little would otherwise move jobs that have run for long by more than they do in a quantum.
    fn tell(&mut self, solo: f64) {
        self.samples += 1.0;
        let said = self.settled + self.phases.iter().map(worth).sum::<f64>();
        self.told += solo;
        self.told += (CATCH_UP / self.samples).clamp(LEAST_CATCH_UP, 1.0) * (said - self.told);
    }

    /// The phase that a sample belongs to: a known one, or a new one.
    fn phase_for(
        &mut self,
        row: &Row,
        seen: &Seen,
        types: &CoreTypes,
        (penalty, steepness): (f64, f64),
    ) -> usize {
        let kind = seen.core_type;
        let far = |phase: &Phase| phase.distance(row, seen.counts_llc);
        if let Some(ix) = self.nearest(SAME_PHASE, |phase| phase.core_type == kind, far) {
            return ix;
        }
        // What a read costs is carried from phase to phase.
        let last = self.phases.get(self.now);
        let penalty = last.map_or(penalty, |phase| {
            types.convert(&phase.asks, phase.core_type, kind).penalty
        });
        let phase = Phase::new(kind, row, penalty, steepness, seen.ghz);
        let number = self.number_of(kind, far);
        if self.phases.len() < PHASES {
            self.phases.push(phase);
            self.numbers.push(number);
            return self.phases.len() - 1;
        }
        let oldest = (0..PHASES)
            .min_by_key(|&ix| self.phases[ix].used_at)
            .unwrap_or_default();
        self.settled += worth(&self.phases[oldest]);
        let said = self.phases[oldest].normal;
        self.phases[oldest] = phase;
        self.phases[oldest].normal = said;
        self.numbers[oldest] = number;
        oldest
    }
}

impl Job {
    /// The nearest of some phases, within a distance.
    fn nearest(
        &self,
        within: f64,
        of: impl Fn(&Phase) -> bool,
        far: impl Fn(&Phase) -> f64,
    ) -> Option<usize> {
        let some = (0..self.phases.len()).filter(|&ix| of(&self.phases[ix]));
        let (distance, ix) = some
            .map(|ix| (far(&self.phases[ix]), ix))
            .min_by(|x, y| x.0.total_cmp(&y.0))?;
        (distance < within).then_some(ix)
    }

    /// The number of a phase that is new on this type of core: that of the same phase on another type, if it has one there
    /// that this type lacks, or a new one.
    fn number_of(&self, kind: usize, far: impl Fn(&Phase) -> f64) -> u32 {
        let elsewhere = self
            .nearest(SAME_ON_OTHERS, |phase| phase.core_type != kind, far)
            .map(|ix| self.numbers[ix]);
        let mut here = self
            .phases
            .iter()
            .zip(&self.numbers)
            .filter(|(phase, _)| phase.core_type == kind);
        let same = elsewhere.filter(|number| !here.any(|(_, other)| other == number));
        same.unwrap_or_else(|| self.numbers.iter().max().map_or(0, |most| most + 1))
    }
}

/// Solo time of what was executed in a phase, in ns.
fn worth(phase: &Phase) -> f64 {
    (phase.instructions * phase.solo_ns).min(phase.time)
}
