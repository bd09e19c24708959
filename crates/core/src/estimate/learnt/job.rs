//! A job: its phases and its progress.
//!
//! Progress is the solo time of the executed work. For each phase that is instructions x solo cycles per instruction,
//! at most the CPU time used, both divided by the threads that ran at once: the threads of a gang wait for each other, and for a slow
//! one they wait longer. Time in which the job did not use its CPUs is added. As the model improves, progress is
//! recomputed, also for work done long ago.

use super::activity::TaskActivity;
use super::core_types::CoreTypes;
use super::earlier::EarlierPhases;
use super::forecast::LastInterval;
use super::kinds::Kinds;
use super::mixture::solo_ns_of_mixture;
use super::phase::{IntervalFigures, LearntPhase, SAME_PHASE};
use super::rise::SiblingVariance;
use super::{ASSUMED, MEMORY, PHASES};
use crate::counter::Counter;
use crate::estimate::progress::threads_at_once;
use crate::model::contention::{Contention, PhaseDemand, SPREAD, SiblingEffect};
use crate::sample::Sample;
use crate::snapshot::{LastCpi, Learnt, Measured};
use crate::topology::Machine;
use crate::units::{Absence, Nanos, Reading};

/// What the distance from the present phase counts.
const STAYS: f64 = 0.5;

/// A job that has run.
#[derive(Clone, Debug, Default)]
pub(super) struct LearntJob {
    /// CPUs that it needs at once.
    width: u32,
    pub(super) phases: Vec<LearntPhase>,
    /// The present phase.
    now: usize,
    /// Its credit at the start, in ns.
    start: f64,
    /// Solo time of forgotten phases, unused time, and CPU time of uncounted intervals, in ns.
    settled: f64,
    /// Reported solo time in ns: it follows the model.
    told: f64,
    /// Number of samples used.
    samples: f64,
    /// The memory domain where it ran first, which has its memory.
    home: Option<usize>,
    /// Its last ordinary interval.
    pub(super) last: Option<LastInterval>,
    /// Why the last sample was unusable.
    absence: Option<Absence>,
}

/// The shared model, as the prior for fitting one job.
#[derive(Clone, Copy)]
pub(super) struct JobPrior<'a> {
    pub(super) shared: &'a Contention,
    pub(super) types: &'a CoreTypes,
    /// Assumed for a job before its own fit.
    pub(super) penalty: f64,
    pub(super) steepness: f64,
    /// What siblings raise of it: its time, and its accesses.
    pub(super) rises: [SiblingEffect; 2],
    /// What was measured of other jobs.
    pub(super) kinds: &'a Kinds,
}

impl LearntJob {
    /// A job of `width` CPUs with this progress in ns, and the phases learnt in an earlier run.
    pub(super) fn new(
        width: u32,
        told: f64,
        earlier: Option<&EarlierPhases>,
        types: &CoreTypes,
    ) -> LearntJob {
        let mut job = LearntJob {
            width,
            start: told,
            settled: told,
            told,
            ..LearntJob::default()
        };
        // The earlier run may have had other CPUs, and so other core types.
        let known = earlier
            .iter()
            .flat_map(|earlier| &earlier.phases)
            .filter(|phase| phase.is_sound() && types.has(phase.core_type));
        for known in known.take(PHASES) {
            let mut phase = LearntPhase::known_before(known);
            phase.number = job.number_of(phase.core_type, |other| other.apart(&phase));
            job.phases.push(phase);
        }
        job
    }

    /// The present phase.
    pub(super) fn phase(&self) -> Option<&LearntPhase> {
        self.phases.get(self.now)
    }

    pub(super) fn phase_mut(&mut self) -> Option<&mut LearntPhase> {
        self.phases.get_mut(self.now)
    }

    /// The learnt model of the job; progress is in units of `quantum` ns.
    pub(super) fn known(
        &self,
        types: &CoreTypes,
        shared: &Contention,
        quantum: f64,
    ) -> Reading<Learnt> {
        let Some(phase) = self.phase() else {
            return Reading::Absent(self.absence.unwrap_or(Absence::NotYetMeasured));
        };
        let (asks, solo_cpi) = self.asks_on(self.now, 0, types, shared);
        let slower = types.slower();
        Reading::Value(Learnt {
            asks,
            solo_cpi,
            slower: slower
                .map(|kind| self.asks_on(self.now, kind, types, shared).0)
                .collect(),
            error: phase.error,
            measured: self.measured(phase),
            progress: self.told / quantum,
            last: self.last_of(phase),
            phase: phase.number,
        })
    }

    /// Its demand in the present phase on a core type.
    pub(super) fn asks_in(
        &self,
        kind: usize,
        types: &CoreTypes,
        shared: &Contention,
    ) -> Option<PhaseDemand> {
        self.phase()?;
        Some(self.asks_on(self.now, kind, types, shared).0)
    }

    /// Its last ordinary interval, if it was in this phase.
    fn last_of(&self, phase: &LearntPhase) -> Option<LastCpi> {
        let last = self.last.filter(|last| last.phase == phase.number)?;
        Some(LastCpi {
            counted: libm::exp(last.counted),
            modelled: libm::exp(last.modelled),
            core_type: last.core_type,
        })
    }

    /// How far it was measured, when it is in this phase.
    fn measured(&self, phase: &LearntPhase) -> Measured {
        if phase.is_measured_now() || phase.is_mixed {
            Measured::Phase
        } else if phase.is_measured_itself() {
            Measured::EarlierRun
        } else if phase.is_measured() {
            Measured::Alike
        } else if self.phases.iter().any(LearntPhase::is_measured_itself) {
            Measured::OtherPhase
        } else {
            Measured::Never
        }
    }

    /// Solo time of the work done in this run, in ns.
    pub(super) fn earned(&self) -> Reading<f64> {
        if self.samples == 0.0 {
            return Reading::Absent(self.absence.unwrap_or(Absence::NotYetMeasured));
        }
        Reading::Value(self.told - self.start)
    }

    /// The measured phases, for a later run; `None` without any.
    pub(super) fn keep(&self) -> Option<EarlierPhases> {
        let mut phases = Vec::new();
        for phase in &self.phases {
            let known = phase.for_later();
            if phase.is_measured_itself() && known.is_sound() {
                phases.push(known);
            }
        }
        (!phases.is_empty()).then_some(EarlierPhases { phases })
    }

    /// Forgets its phases; the work done in them stays settled.
    pub(super) fn forget_phases(&mut self) {
        self.settled += self.phases.iter().map(worth).sum::<f64>();
        (self.phases, self.now, self.last) = Default::default();
    }

    /// Reads a sample. From one that shows nothing about contention only its work counts.
    pub(super) fn see(
        &mut self,
        machine: &Machine,
        sample: &Sample,
        quantum: Nanos,
    ) -> Option<TaskActivity> {
        let mut seen = TaskActivity::of(machine, sample, self.width, quantum);
        if let Ok(seen) = &mut seen {
            seen.memory = *self.home.get_or_insert(seen.domain);
        }
        self.absence = seen.as_ref().err().copied();
        if seen.is_err() {
            self.work(sample);
        }
        seen.ok()
    }

    /// Adds work beside unknown co-runners. It is rated as work of the phase with the same accesses to the first-level cache, else as
    /// if nothing had slowed it down.
    fn work(&mut self, sample: &Sample) {
        let interval = sample.interval.0 as f64;
        let threads = threads_at_once(sample, self.width);
        let used = sample.cpu_time.value().map(|time| time.0 as f64 / threads);
        let used = used.unwrap_or(interval).min(interval);
        // Under time-sharing it may have waited for others; otherwise all waiting was its own.
        let unused = if sample.observed {
            0.0
        } else {
            interval - used
        };
        let solo = self.solo_time(sample, threads).unwrap_or(used);
        self.settle(unused + solo.min(used));
    }

    /// The time alone of the work in a sample, in ns, by its instructions and its accesses to the first-level cache.
    fn solo_time(&self, sample: &Sample, threads: f64) -> Option<f64> {
        let count = |counter| sample.counts[counter].value().map(|count| count as f64);
        let instructions = count(Counter::Instructions)?;
        let l1 = count(Counter::L1Accesses).unwrap_or(0.0) / instructions.max(1.0);
        let rated = self.phases.iter().filter(|phase| phase.solo_ns > 0.0);
        let phase = match l1 > 0.0 {
            true => rated
                .filter(|phase| phase.may_be(l1))
                .min_by(|x, y| (x.asks.l1 - l1).abs().total_cmp(&(y.asks.l1 - l1).abs())),
            false => self.phase().filter(|phase| phase.solo_ns > 0.0),
        };
        Some(instructions / threads * phase?.solo_ns)
    }

    /// Adds a sample. Returns its phase.
    pub(super) fn take_in(
        &mut self,
        row: &IntervalFigures,
        seen: &TaskActivity,
        common: JobPrior<'_>,
    ) -> &LearntPhase {
        self.now = self.phase_for(row, seen, common);
        let JobPrior {
            shared,
            types,
            penalty,
            steepness,
            rises,
            kinds,
        } = common;
        let threads = seen.threads_at_once();
        let time = seen.cycles / seen.ghz / threads;
        let is_unknown = !self.phases.iter().any(LearntPhase::is_measured);
        let phase = &mut self.phases[self.now];
        if is_unknown {
            // Only measured phases show their own.
            phase.assume_sensitivities(rises);
        }
        let is_guess = !phase.is_measured() && !row.is_measurement;
        if is_guess && let Some(kind) = kinds.of(shared, row, seen.core_type, seen.counts_llc) {
            phase.assume_kind(kind);
        }
        phase.used_at = seen.until;
        // What it did alone took its own time, so nothing needs to be rated.
        let is_rated = !(seen.ran_alone && row.is_measurement && seen.core_type == 0);
        if is_rated {
            phase.instructions += seen.instructions / threads;
            phase.ran += time;
        }
        phase.asks.ghz = seen.ghz;
        phase.add(shared, row);
        phase.fit(shared, penalty, steepness);
        self.rate(types, shared);
        let phase = &self.phases[self.now];
        let solo = (seen.instructions * phase.solo_ns / threads).min(time);
        // The CPUs were its own. The time that it left unused would be unused in a solo run too.
        self.settle((seen.length() as f64 - time).max(0.0));
        if is_rated {
            self.tell(solo);
        } else {
            self.settle(time);
            self.tell(0.0);
        }
        &self.phases[self.now]
    }

    /// Adds final solo time, in ns.
    fn settle(&mut self, time: f64) {
        self.settled += time;
        self.told += time;
    }

    /// Adds the solo time of one sample to the reported progress, and moves it towards the model's total: at once after
    /// the first samples, later smoothly. Else a small change of the model would move a long-running job by more than a
    /// quantum of progress.
    fn tell(&mut self, solo: f64) {
        self.samples += 1.0;
        let said = self.settled + self.phases.iter().map(worth).sum::<f64>();
        self.told += solo;
        self.told += (said - self.told) * (ASSUMED / self.samples).clamp(1.0 / MEMORY, 1.0);
    }

    /// The phase of a sample: a known one, or a new one.
    fn phase_for(
        &mut self,
        row: &IntervalFigures,
        seen: &TaskActivity,
        common: JobPrior<'_>,
    ) -> usize {
        let kind = seen.core_type;
        let far = |phase: &LearntPhase| phase.distance(row, seen.counts_llc, 1.0);
        if row.is_measurement {
            if let Some(ix) = self.identified(kind, row, far) {
                return ix;
            }
        } else {
            let nearest = self.nearest(
                SAME_PHASE,
                |phase| phase.core_type == kind,
                |phase| phase.distance(row, seen.counts_llc, self.reluctance(phase, row)),
            );
            if let Some(ix) = nearest {
                return self.known_of(ix, kind, row, far);
            }
        }
        // The cost of a read is carried over to the new phase.
        let penalty = self.phase().map_or(common.penalty, |last| {
            let asks = common.types.convert(&last.asks, last.core_type, kind);
            asks.penalty
        });
        let mut phase = LearntPhase::new(
            kind,
            row,
            penalty,
            common.steepness,
            seen.ghz,
            self.rises(common.rises),
        );
        phase.number = self.number_of(kind, far);
        if self.phases.len() < PHASES {
            self.phases.push(phase);
            return self.phases.len() - 1;
        }
        // Intervals between two phases make many that come once.
        let oldest = (0..PHASES)
            .min_by_key(|&ix| {
                let phase = &self.phases[ix];
                (phase.is_measured(), phase.is_fitted(), phase.used_at)
            })
            .unwrap_or_default();
        self.settled += worth(&self.phases[oldest]);
        self.phases[oldest] = phase;
        oldest
    }

    /// The factor on the distance of a sample from a phase. Of two phases that explain a sample beside siblings about as well,
    /// the present one goes on. Without siblings there is no doubt.
    fn reluctance(&self, phase: &LearntPhase, row: &IntervalFigures) -> f64 {
        match self.phase() {
            Some(now) if row.has_siblings && std::ptr::eq(now, phase) => STAYS,
            _ => 1.0,
        }
    }

    /// What siblings raise in a new phase, before anything of it is known: as in one that was measured, else as
    /// of other jobs.
    fn rises(&self, of_others: [SiblingEffect; 2]) -> [(SiblingEffect, SiblingVariance); 2] {
        let now = self.phase().filter(|now| now.is_measured());
        let last = now.or_else(|| self.phases.iter().find(|phase| phase.is_measured()));
        match last {
            Some(last) => last.rises().map(|(of, doubt)| (of, doubt.in_new_phase())),
            None => of_others.map(|of| (of, SiblingVariance::default())),
        }
    }

    /// The phase that a measurement without siblings shows. It is one that was measured before, else the present one,
    /// whose figures were only guessed. If the present one turns out to be one measured before, both become one.
    fn identified(
        &mut self,
        kind: usize,
        row: &IntervalFigures,
        far: impl Fn(&LearntPhase) -> f64,
    ) -> Option<usize> {
        if !self.phases.iter().any(LearntPhase::is_measured_itself) {
            self.join_guesses(kind, row);
        }
        let guess = self.guess_on(kind, row);
        let found = self.nearest(
            SAME_PHASE,
            |phase| phase.core_type == kind && phase.is_measured(),
            far,
        );
        let (Some(found), Some(guess)) = (found, guess) else {
            return found.or(guess);
        };
        Some(self.join(guess, found))
    }

    /// The phase of a sample, of which this is the nearest phase. A phase that is only guessed may have changed slowly into one that
    /// was measured. Beside siblings the counts do not tell that for sure.
    fn known_of(
        &mut self,
        nearest: usize,
        kind: usize,
        row: &IntervalFigures,
        far: impl Fn(&LearntPhase) -> f64,
    ) -> usize {
        if row.has_siblings || self.phases[nearest].is_measured() {
            return nearest;
        }
        let measured = self.nearest(
            SAME_PHASE,
            |phase| phase.core_type == kind && phase.is_measured(),
            far,
        );
        measured.map_or(nearest, |measured| self.join(nearest, measured))
    }

    /// Makes one phase of a guessed and a measured one, and returns its position.
    fn join(&mut self, guess: usize, measured: usize) -> usize {
        if measured == guess {
            return measured;
        }
        let guessed = self.phases.remove(guess);
        let measured = if measured > guess {
            measured - 1
        } else {
            measured
        };
        self.phases[measured].absorb(&guessed);
        measured
    }

    /// Joins phases that were seen only beside siblings to the present one, if only siblings may have made them differ. Before the
    /// job's first measurement what siblings raise is a guess.
    fn join_guesses(&mut self, kind: usize, row: &IntervalFigures) {
        if row.l1 == 0.0 {
            return;
        }
        let Some(guess) = self.guess_on(kind, row) else {
            return;
        };
        let mut joined = self.phases.swap_remove(guess);
        self.phases.retain(|other| {
            let is_same = other.core_type == kind && other.is_guess() && other.may_be(row.l1);
            if is_same {
                joined.absorb(other);
            }
            !is_same
        });
        self.phases.push(joined);
        self.now = self.phases.len() - 1;
    }

    /// The present phase on this core type, if this job was not measured in it there, and the measurement may be of it.
    fn guess_on(&self, kind: usize, row: &IntervalFigures) -> Option<usize> {
        let number = self.phase()?.number;
        let mut phases = self.phases.iter();
        phases.position(|phase| {
            let is_guess =
                phase.number == number && phase.core_type == kind && !phase.is_measured_itself();
            is_guess && phase.may_be(row.l1)
        })
    }

    /// The nearest of the selected phases, within a distance.
    fn nearest(
        &self,
        within: f64,
        of: impl Fn(&LearntPhase) -> bool,
        far: impl Fn(&LearntPhase) -> f64,
    ) -> Option<usize> {
        let some = (0..self.phases.len()).filter(|&ix| of(&self.phases[ix]));
        let (distance, ix) = some
            .map(|ix| (far(&self.phases[ix]), ix))
            .min_by(|x, y| x.0.total_cmp(&y.0))?;
        (distance < within).then_some(ix)
    }

    /// The number of a phase that is new on this core type. It is the number of the same phase on another type, unless
    /// this type has that number already; otherwise a new number.
    fn number_of(&self, kind: usize, far: impl Fn(&LearntPhase) -> f64) -> u32 {
        let elsewhere = self
            .nearest(SPREAD, |phase| phase.core_type != kind, far)
            .map(|ix| self.phases[ix].number);
        let is_here = |number: &u32| {
            let mut here = self.phases.iter().filter(|phase| phase.core_type == kind);
            here.any(|phase| phase.number == *number)
        };
        let numbers = self.phases.iter().map(|phase| phase.number + 1);
        elsewhere
            .filter(|number| !is_here(number))
            .unwrap_or_else(|| numbers.max().unwrap_or(0))
    }

    /// Pairs of a phase on a slower core type and the same phase on the fastest, both with enough samples.
    pub(super) fn on_two_types(&self) -> impl Iterator<Item = (&LearntPhase, &LearntPhase)> {
        let slower = self.phases.iter().enumerate();
        slower
            .filter(|(_, phase)| phase.core_type > 0 && phase.is_fitted())
            .filter_map(|(ix, phase)| Some((phase, self.counterpart(ix, 0)?)))
    }

    /// The same phase on another core type, if it has enough samples there.
    fn counterpart(&self, ix: usize, kind: usize) -> Option<&LearntPhase> {
        let number = self.phases[ix].number;
        let mut phases = self.phases.iter();
        let found = phases.find(|phase| phase.number == number && phase.core_type == kind);
        found.filter(|phase| phase.is_fitted() || phase.is_measured())
    }

    /// The job's demand and solo cycles per instruction in a phase, on a core type.
    fn asks_on(
        &self,
        ix: usize,
        kind: usize,
        types: &CoreTypes,
        shared: &Contention,
    ) -> (PhaseDemand, f64) {
        let phase = &self.phases[ix];
        if phase.core_type == kind {
            return (phase.asks, phase.solo_cpi);
        }
        if let Some(there) = self.counterpart(ix, kind) {
            return (there.asks, there.solo_cpi);
        }
        let asks = types.convert(&phase.asks, phase.core_type, kind);
        (asks, asks.solo_cpi(shared))
    }

    /// Updates the present phase's solo time per instruction on the fastest core type: as measured there, else as of a mixture of
    /// measured phases, else by the model.
    fn rate(&mut self, types: &CoreTypes, shared: &Contention) {
        let number = self.phases[self.now].number;
        for at in 0..self.phases.len() {
            if self.phases[at].number == number {
                let phase = &self.phases[at];
                let is_fastest = phase.core_type == 0;
                let measured = phase.measured_ns().filter(|_| is_fastest);
                let mixed = match is_fastest && !phase.is_measured() {
                    true => solo_ns_of_mixture(phase, &self.phases),
                    false => None,
                };
                let known = measured.or(mixed);
                let solo_ns = known.unwrap_or_else(|| self.modelled_ns(at, types, shared));
                let phase = &mut self.phases[at];
                phase.solo_ns = solo_ns;
                phase.is_mixed = mixed.is_some();
            }
        }
    }

    /// Solo time per instruction by the model, in ns. A faster clock speeds up the cycles in the core, not those of waiting.
    fn modelled_ns(&self, at: usize, types: &CoreTypes, shared: &Contention) -> f64 {
        let (asks, solo_cpi) = self.asks_on(at, 0, types, shared);
        let ghz = asks.ghz.max(1e-3);
        let alone = types.alone_ghz().unwrap_or(ghz).max(1e-3);
        asks.own / alone + (solo_cpi - asks.own) / ghz
    }
}

/// Solo time of the work done in a phase, in ns.
fn worth(phase: &LearntPhase) -> f64 {
    (phase.instructions * phase.solo_ns).min(phase.ran)
}
