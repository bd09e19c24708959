//! Learns the model of [`contention`](crate::model::contention) from the intervals that jobs run anyway.
//!
//! All samples that end at an instant are processed together, because their jobs are co-runners:
//!
//! 1. The surroundings of each job ([`activity`]): its siblings' busy threads and accesses, its share of the reads into its
//!    cache.
//! 2. The memory latency in the interval, common to all jobs: the value that explains their cycles best.
//! 3. Each sample is added to a phase of its job ([`phase`]), and the phase is fitted again.
//! 4. A job that does the same kind of work as one that was measured takes over what is known of it ([`kinds`]).
//! 5. What siblings of a core raise in each other is learnt from each pair ([`rise`]); the latency curve is fitted to the
//!    last intervals.
//!
//! Progress follows from the phases ([`job`]); an interval in two of them is a [`mixture`]. With several core types, solo means alone on the fastest
//! ([`core_types`]).

mod activity;
mod core_types;
mod earlier;
mod forecast;
mod job;
mod kinds;
mod mixture;
mod phase;
mod rise;
mod shared;
mod sums;
#[cfg(test)]
mod test_law;
#[cfg(test)]
mod tests;

use super::MISFIT;
use crate::model::contention::{Contention, PhaseDemand, PlacedJob, SpeedPrediction};
use crate::sample::Sample;
use crate::snapshot::Learnt;
use crate::task::TaskId;
use crate::topology::{CoreType, Machine};
use crate::units::{Absence, Nanos, Reading};
use activity::{TaskActivity, TaskSurroundings, siblings};
use core_types::CoreTypes;
pub use earlier::{EarlierPhase, EarlierPhases};
pub use forecast::PredictionErrors;
use forecast::{LastInterval, ModelTrust};
use job::{JobPrior, LearntJob};
use kinds::Kinds;
use phase::{IntervalFigures, LearntPhase};
use rise::{SiblingPressure, SiblingUpdate, doubt_of, pressure_of};
use shared::SharedFit;
use std::collections::BTreeMap;

/// Maximum number of phases per job. The least recently used one is dropped.
const PHASES: usize = 8;
/// Weight of what is assumed: of so many jobs, samples or intervals.
const ASSUMED: f64 = 4.0;
/// Relative standard error of a good figure: of a sample without contention, and of a prediction.
pub(crate) const NOISE: f64 = 0.01;
/// Relative standard error of a rough figure: of reads, and of what was learnt in an earlier run.
pub(crate) const ROUGH: f64 = 0.05;
/// Number of intervals kept for the latency fit, and of jobs that ended for the lengths of others.
pub(crate) const KEPT: usize = 64;
/// Intervals that differ by less than this part of a quantum count as one.
const SAME_TIME: f64 = 0.02;
/// Number of past samples or quanta that a moving average covers; also the length in quanta of a job while nothing is
/// known.
pub(crate) const MEMORY: f64 = 20.0;

/// The learner of a run.
#[derive(Clone, Debug)]
pub(crate) struct Learner {
    /// In ns.
    quantum: f64,
    shared: Contention,
    fit: SharedFit,
    types: CoreTypes,
    forecast: ModelTrust,
    kinds: Kinds,
    /// The live jobs.
    jobs: BTreeMap<TaskId, LearntJob>,
    /// Recent intervals: co-runners of intervals that end later.
    recent: Vec<TaskActivity>,
    /// Time of the last fit of the shared model, in ns.
    fitted: u64,
}

impl Learner {
    /// A learner for a machine with cores of these types; a quantum is the unit of progress.
    pub(crate) fn new(types: &[CoreType], quantum: Nanos) -> Learner {
        Learner {
            quantum: quantum.0.max(1) as f64,
            shared: Contention::default(),
            fit: SharedFit::default(),
            forecast: ModelTrust::default(),
            kinds: Kinds::default(),
            types: CoreTypes::new(types),
            jobs: BTreeMap::new(),
            recent: Vec::new(),
            fitted: 0,
        }
    }

    /// The costs of sharing the machine, as learnt so far.
    pub(crate) fn shared(&self) -> Contention {
        self.shared
    }

    /// Adds the samples that ended at an instant.
    pub(crate) fn observe(&mut self, machine: &Machine, samples: &[Sample]) {
        if !self.types.are_those_of(machine) {
            // Types are renumbered, so what was learnt about each is useless.
            self.types = CoreTypes::new(&machine.core_types);
            self.kinds = Kinds::default();
            for job in self.jobs.values_mut() {
                job.forget_phases();
            }
        }
        let mut fresh = Vec::with_capacity(samples.len());
        for sample in samples {
            if let Some(job) = self.jobs.get_mut(&sample.task) {
                fresh.extend(job.see(machine, sample, Nanos(self.quantum as u64)));
            }
        }
        let Some(earliest) = fresh.iter().map(|seen| seen.since).min() else {
            return;
        };
        let looks = self.look(&fresh);
        let mut all = std::mem::take(&mut self.recent);
        all.retain(|seen| seen.until > earliest);
        let first = all.len();
        all.extend(fresh);
        for domain in 0..machine.memory_domains.len() {
            self.learn(&all, first, domain);
        }
        for (task, look) in looks {
            self.compare(task, look);
        }
        self.recent = all;
        let now = self
            .recent
            .iter()
            .map(|seen| seen.until)
            .max()
            .unwrap_or_default();
        // The fit visits all jobs, which is too expensive whenever one of many short jobs ends.
        if (now - self.fitted) as f64 >= self.quantum
            || self.recent[first..].iter().any(|seen| seen.is_measurement)
        {
            self.fitted = now;
            self.fit.update(
                &mut self.shared,
                &self.types,
                self.jobs.values().flat_map(|job| &job.phases),
            );
            let pairs = self.jobs.values().flat_map(LearntJob::on_two_types);
            self.types.update(pairs);
        }
    }

    /// What the model says of ordinary intervals before it learns from them. None of them unless all began and ended together,
    /// as otherwise the co-runners are not the same all the time, and unless each job is known.
    fn look(&self, fresh: &[TaskActivity]) -> Vec<(TaskId, LastInterval)> {
        let mut seats = Vec::with_capacity(fresh.len());
        for seen in fresh {
            if seen.is_measurement || !self.is_same_quantum(seen, &fresh[0]) {
                return Vec::new();
            }
            seats.extend(self.seat_of(seen));
        }
        if seats.len() != fresh.len() {
            return Vec::new();
        }
        let mut prediction = SpeedPrediction::default();
        prediction.make(&self.shared, &seats);
        let mut looks = Vec::with_capacity(fresh.len());
        for (seen, predicted) in fresh.iter().zip(&prediction.jobs) {
            let look = LastInterval {
                counted: libm::log(seen.cpi()),
                modelled: libm::log(predicted.cpi),
                phase: self.phase_of(seen.task).map_or(0, |phase| phase.number),
                core_type: seen.core_type,
            };
            looks.push((seen.task, look));
        }
        looks
    }

    /// Whether both intervals are nearly the same, and no less than half of a quantum. The counters of jobs are read one after
    /// the other.
    fn is_same_quantum(&self, one: &TaskActivity, other: &TaskActivity) -> bool {
        let near = (SAME_TIME * self.quantum) as u64;
        one.since.abs_diff(other.since) < near
            && one.until.abs_diff(other.until) < near
            && one.length() as f64 >= 0.5 * self.quantum
    }

    /// The seat of a job of one CPU, by its present phase.
    fn seat_of(&self, seen: &TaskActivity) -> Option<PlacedJob> {
        let job = self.jobs.get(&seen.task)?;
        seen.seat(job.asks_in(seen.core_type, &self.types, &self.shared)?)
    }

    /// Compares what was predicted for a job with what was counted.
    fn compare(&mut self, task: TaskId, look: LastInterval) {
        let Some(job) = self.jobs.get_mut(&task) else {
            return;
        };
        let Some(mut last) = job.last.replace(look) else {
            return;
        };
        if last.core_type != look.core_type {
            // The ratio of its times alone does not depend on co-runners.
            let types = [last.core_type, look.core_type];
            let asks = types.map(|kind| job.asks_in(kind, &self.types, &self.shared));
            let [Some(from), Some(to)] = asks else {
                return;
            };
            let [from, to] = [from, to].map(|asks| asks.solo_cpi(&self.shared));
            last = last.on_type(look.core_type, libm::log(to / from));
        }
        self.forecast.learn(&mut self.shared, &last, &look);
    }

    /// The learnt model of a task.
    pub(crate) fn known(&self, task: TaskId) -> Reading<Learnt> {
        match self.jobs.get(&task) {
            Some(job) => job.known(&self.types, &self.shared, self.quantum),
            None => Reading::Absent(Absence::NotYetMeasured),
        }
    }

    /// Starts or restarts a task of `width` CPUs with this progress in quanta, and the phases learnt in an earlier run.
    pub(crate) fn begin(
        &mut self,
        task: TaskId,
        width: u32,
        progress: f64,
        earlier: Option<&EarlierPhases>,
    ) {
        let job = LearntJob::new(width, progress * self.quantum, earlier, &self.types);
        self.jobs.insert(task, job);
    }

    /// Solo execution done in this run, in quanta.
    pub(crate) fn earned(&self, task: TaskId) -> Reading<f64> {
        match self.jobs.get(&task) {
            Some(job) => job.earned().map(|ns| ns / self.quantum),
            None => Reading::Absent(Absence::NotYetMeasured),
        }
    }

    /// How well the next intervals were predicted.
    pub(crate) fn prediction_errors(&self) -> Option<PredictionErrors> {
        self.forecast.errors()
    }

    /// The learnt phases of a task, for a later run; `None` without any.
    pub(crate) fn keep(&self, task: TaskId) -> Option<EarlierPhases> {
        self.jobs.get(&task)?.keep()
    }

    /// Forgets a task that ended. The shared model keeps what it learnt from it.
    pub(crate) fn end(&mut self, task: TaskId) {
        self.jobs.remove(&task);
    }

    fn phase_of(&self, task: TaskId) -> Option<&LearntPhase> {
        self.jobs.get(&task)?.phase()
    }

    /// Learns from the jobs of one memory domain; jobs from position `first` on are new.
    fn learn(&mut self, all: &[TaskActivity], first: usize, domain: usize) {
        let met: Vec<TaskSurroundings> = (first..all.len())
            .filter(|&at| all[at].memory == domain)
            .map(|at| TaskSurroundings::of(all, at))
            .collect();
        if met.is_empty() {
            return;
        }
        let reads = met.iter().map(|met| met.reads).sum::<f64>() / met.len() as f64;
        let is_measurement = met.iter().any(|met| all[met.at].is_measurement);
        let (latency, certainty) = self.latency(all, &met, reads);
        if !is_measurement {
            let length = met
                .iter()
                .map(|met| all[met.at].length())
                .max()
                .unwrap_or_default();
            self.fit.note_interval(
                reads,
                latency,
                (length as f64 / self.quantum).min(1.0) * certainty,
            );
        }
        for met in met {
            self.take_in(all, met, latency);
        }
    }

    /// The latency of an interval relative to an idle memory, by least squares over all jobs, with the expected latency
    /// as a prior.
    fn latency(&self, all: &[TaskActivity], met: &[TaskSurroundings], reads: f64) -> (f64, f64) {
        let expected = self.shared.memory.at(reads);
        // The expected latency counts like a job that reads cost a tenth of its cycles.
        let (mut xx, mut xy) = (NOISE, NOISE * expected);
        for met in met {
            let seen = &all[met.at];
            let Some(phase) = self.phase_of(seen.task).filter(|phase| phase.is_measured()) else {
                continue;
            };
            let (time, _) = self.beside(all, met.at);
            let stretched = phase.asks.time.growth(pressure_of(&time));
            let asks = PhaseDemand {
                llc: seen.per_instruction(seen.llc_accesses),
                ghz: seen.ghz,
                ..phase.asks
            };
            let m = seen.per_instruction(seen.reads);
            let far = if seen.is_away() { self.shared.far } else { 0.0 };
            let base = asks.own + asks.stall(&self.shared, m, far);
            let x = asks.line() * m * stretched / seen.cpi();
            // What siblings cost is known less well.
            let misfit = MISFIT * (stretched - 1.0) / stretched / NOISE;
            let weight = 1.0 / (1.0 + misfit * misfit);
            xx += weight * x * x;
            xy += weight * x * (1.0 - base * stretched / seen.cpi());
        }
        let certainty = (xx - NOISE) / xx;
        ((xy / xx).max(1.0), certainty)
    }

    /// What the siblings of a job's thread do to its time and to its accesses, each with the mean number of its threads there.
    fn beside(
        &self,
        all: &[TaskActivity],
        at: usize,
    ) -> (Vec<SiblingPressure>, Vec<SiblingPressure>) {
        let (mut time, mut accesses) = (Vec::new(), Vec::new());
        for (other, met) in siblings(all, at) {
            let part = met * other.duty;
            let phase = self.phase_of(other.task);
            let rises = phase.map_or_else(Default::default, LearntPhase::rises);
            let [of_time, of_accesses] = rises;
            time.push(SiblingPressure::of(part, of_time.0, of_time.1));
            accesses.push(SiblingPressure::of(part, of_accesses.0, of_accesses.1));
        }
        (time, accesses)
    }

    fn take_in(&mut self, all: &[TaskActivity], met: TaskSurroundings, latency: f64) {
        let seen = &all[met.at];
        let (time, accesses) = self.beside(all, met.at);
        let reads = seen.per_instruction(seen.reads);
        let llc = seen.per_instruction(seen.llc_accesses).max(reads);
        let row = IntervalFigures {
            cpi: seen.cpi(),
            ghz: seen.ghz,
            pressure: pressure_of(&time),
            crowd: pressure_of(&accesses),
            crowd_doubt: doubt_of(&accesses),
            l1: seen.per_instruction(seen.l1),
            llc,
            reads,
            latency: latency + if seen.is_away() { self.shared.far } else { 0.0 },
            share: if met.cached > 0.0 {
                (seen.per_ns(seen.reads) / met.cached).min(1.0)
            } else {
                1.0
            },
            load: met.reads,
            weight: 1.0,
            since: seen.since,
            until: seen.until,
            has_siblings: !time.is_empty(),
            is_measurement: seen.is_measurement && time.is_empty() && !seen.is_away(),
            ran_alone: seen.ran_alone,
        };
        self.types.saw(seen.core_type, seen.ghz, row.is_measurement);
        let common = JobPrior {
            shared: &self.shared,
            types: &self.types,
            penalty: self.fit.penalty() * self.types.penalty(seen.core_type),
            steepness: self.fit.steepness(),
            rises: self.fit.rises(),
            kinds: &self.kinds,
        };
        let Some(job) = self.jobs.get_mut(&seen.task) else {
            return;
        };
        let phase = job.take_in(&row, seen, common);
        if row.is_measurement {
            self.kinds.note(phase);
        }
        if !phase.is_measured() || time.is_empty() {
            return;
        }
        let growths = phase.growths(&row);
        self.fit.note_growth(growths);
        let alone = phase.without_siblings(&self.shared, &row);
        let noise = phase.noise(&self.shared, &row);
        let [of_time, of_accesses] = phase.rises();
        let of_time = SiblingUpdate::of(of_time, &time, row.cpi / alone - 1.0, noise);
        let risen = growths[0].max(0.0);
        let of_accesses = SiblingUpdate::of(of_accesses, &accesses, risen, 2.0 * ROUGH);
        self.learn_rises(all, met.at, [&of_time, &of_accesses]);
    }

    /// Learns what siblings raise from a job's sample.
    fn learn_rises(&mut self, all: &[TaskActivity], at: usize, lessons: [&SiblingUpdate; 2]) {
        if let Some(phase) = self.phase_mut(all[at].task) {
            phase.learn_sensitivity(lessons);
        }
        for (other, met) in siblings(all, at) {
            if let Some(phase) = self.phase_mut(other.task) {
                phase.learn_pressure(lessons, met * other.duty);
            }
        }
    }

    fn phase_mut(&mut self, task: TaskId) -> Option<&mut LearntPhase> {
        self.jobs.get_mut(&task)?.phase_mut()
    }
}
