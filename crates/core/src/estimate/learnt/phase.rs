//! One phase of a job: intervals with nearly the same cache accesses per instruction. Accesses to the first-level cache do
//! not depend on co-runners. Accesses to the last-level cache rise beside siblings, by as much as was learnt of them
//! ([`rise`](super::rise)).
//!
//! Two lines are fitted to a phase by least squares. Its cycles per instruction without siblings are `own` + `penalty` x
//! lines, with lines in units of a read from an idle memory. The logarithm of its reads is ln `reads` - `steepness` x ln
//! share. Both fits need samples of different contention. The model of co-runners is less certain than a measurement
//! without them, so a sample with more contention has less weight. All ordinary samples of a phase together weigh at most
//! a part of the few measurements, because their errors are not independent.

use super::earlier::EarlierPhase;
use super::rise::{SiblingUpdate, SiblingVariance};
use super::sums::WeightedSums;
use super::{ASSUMED, MEMORY, NOISE, ROUGH};
use crate::model::contention::{Contention, LEAST_PART, PhaseDemand, SPREAD, SiblingEffect};

/// Relative error of what is modelled, not measured: the effect of co-runners, and the penalty of a job before its fit.
const MISFIT: f64 = 0.5;
/// Cycles of an instruction in a core, of most programs: mean and standard deviation. A job that waits for memory half of its
/// time would otherwise be taken for one that computes slowly.
const OWN: (f64, f64) = (0.55, 0.25);
/// Number of measurements kept.
const MEASURED_KEPT: usize = 4;
/// Greatest weight of all ordinary samples together, as a part of that of the measurements.
const BUSY: f64 = 0.25;
/// Before a measurement, all ordinary samples together tell as much as so many would if their errors were independent.
const DEPENDENT: f64 = 2.0;
/// Relative distance below which samples belong to one phase.
pub(super) const SAME_PHASE: f64 = 0.12;
/// Weight of a difference in reads relative to one in accesses to the last-level cache.
const READS_TELL: f64 = 0.25;
/// Accesses to the first-level cache tell phases apart as well as they are steady within one. Their relative standard deviation as it
/// is assumed at first, and its least value; so many standard deviations are another phase.
const UNSTEADY: f64 = 1.5 * NOISE;
const STEADIEST: f64 = 0.1 * NOISE;
const DEVIATIONS: f64 = 4.0;
/// Greatest relative growth of a count beside siblings. A job may do alone none of what it does beside others.
const MOST_GROWTH: f64 = 10.0;
/// Growth of the tolerance with the standard error of what siblings raise, and the part of that error that no learning
/// removes: no two numbers a job tell all of it.
const SIBLINGS_BLUR: f64 = 10.0;
const SIBLINGS_MISFIT: f64 = 0.2;

/// Figures of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IntervalFigures {
    pub(super) cpi: f64,
    /// Sums of the siblings' pressures on its time, and on its accesses to the last-level cache; 0 without siblings.
    pub(super) pressure: f64,
    pub(super) crowd: f64,
    /// The variance of `crowd`.
    pub(super) crowd_doubt: f64,
    /// Cycles per ns.
    pub(super) ghz: f64,
    pub(super) l1: f64,
    pub(super) llc: f64,
    pub(super) reads: f64,
    /// Latency of memory, relative to an idle one.
    pub(super) latency: f64,
    /// Total lines per ns read from its memory domain.
    pub(super) load: f64,
    /// Its share of the reads into its last-level cache.
    pub(super) share: f64,
    /// Less than 1 if it stands for an earlier run.
    pub(super) weight: f64,
    /// Start and end, in ns.
    pub(super) since: u64,
    pub(super) until: u64,
    /// Whether it had siblings in its core, even threads of its own job.
    pub(super) has_siblings: bool,
    /// Whether it was a measurement, without siblings and at its memory.
    pub(super) is_measurement: bool,
    /// Whether no other task ran, so that it is a measurement though none was planned.
    pub(super) ran_alone: bool,
}

impl IntervalFigures {
    /// Instructions of its time.
    fn instructions(&self) -> f64 {
        (self.until - self.since) as f64 * self.ghz / self.cpi
    }

    /// The mean of this row and the one that follows, weighted by their instructions.
    fn joined(&self, next: &IntervalFigures) -> IntervalFigures {
        let (before, more) = (self.instructions(), next.instructions());
        let part = more / (before + more);
        let mean = |of: fn(&IntervalFigures) -> f64| of(self) + part * (of(next) - of(self));
        let time = mean(|row| row.cpi / row.ghz);
        let cpi = mean(|row| row.cpi);
        IntervalFigures {
            cpi,
            ghz: cpi / time,
            l1: mean(|row| row.l1),
            llc: mean(|row| row.llc),
            reads: mean(|row| row.reads),
            load: mean(|row| row.load),
            since: self.since,
            ..*next
        }
    }

    /// Lines from beyond the private caches, in units of a read from an idle memory.
    fn lines(&self, shared: &Contention) -> f64 {
        shared.hit * (self.llc - self.reads) + self.latency * self.reads
    }

    /// Row of the cycle fit: 1, lines x clock; cycles without siblings. All relative to the cycles.
    fn cycles(&self, shared: &Contention, sensitivity: f64) -> [f64; 3] {
        let cycles = self.cpi / (1.0 + sensitivity * self.pressure);
        [1.0, self.lines(shared) * self.ghz, cycles].map(|figure| figure / cycles)
    }

    /// Row of the read fit: 1, -ln share; ln reads. `None` if the job hardly reads.
    fn misses(&self) -> Option<[f64; 3]> {
        let is_telling = self.reads > 0.0 && self.share > 0.0;
        is_telling.then(|| [1.0, -libm::log(self.share), libm::log(self.reads)])
    }
}

/// What is known of a job in a phase.
#[derive(Clone, Debug, Default)]
pub(super) struct LearntPhase {
    /// A phase has the same number on all core types.
    pub(super) number: u32,
    pub(super) core_type: usize,
    pub(super) asks: PhaseDemand,
    /// The doubt of what siblings raise: its time, and its accesses to the last-level cache.
    pub(super) doubt_of_time: SiblingVariance,
    pub(super) doubt_of_accesses: SiblingVariance,
    /// The last measurements, the newest last. Their memory contention is recomputed for each fit, because at first it
    /// is unknown.
    measured: Vec<IntervalFigures>,
    /// All other samples: cycles and reads.
    busy: WeightedSums,
    busy_misses: WeightedSums,
    /// Number of samples, and the mean weight of the ordinary ones in the fit.
    seen: f64,
    mean_trust: f64,
    /// Relative variance of a sample's accesses to the first-level cache.
    l1_variance: f64,
    /// Per thread.
    pub(super) instructions: f64,
    /// CPU time per thread, in ns.
    pub(super) ran: f64,
    pub(super) used_at: u64,
    pub(super) solo_cpi: f64,
    /// Solo time per instruction on the fastest core type, in ns.
    pub(super) solo_ns: f64,
    /// Whether it was seen without siblings.
    was_clean: bool,
    /// Whether it is a mixture of two measured phases.
    pub(super) is_mixed: bool,
    /// Relative standard error of `solo_cpi`.
    pub(super) error: f64,
    /// The phase of an earlier run, until this run measures it.
    earlier: Option<EarlierPhase>,
    /// Its solo time per instruction, in ns, if that is in fact a phase of another job.
    of_another_ns: Option<f64>,
}

impl LearntPhase {
    /// A phase that starts with this sample. Penalty and steepness are assumed.
    pub(super) fn new(
        core_type: usize,
        row: &IntervalFigures,
        penalty: f64,
        steepness: f64,
        ghz: f64,
        [time, accesses]: [(SiblingEffect, SiblingVariance); 2],
    ) -> LearntPhase {
        let grown = accesses.0.growth(row.crowd);
        let asks = PhaseDemand {
            own: row.cpi,
            penalty,
            l1: row.l1,
            llc: row.llc / grown,
            reads: row.reads,
            steepness,
            ghz,
            time: time.0,
            accesses: accesses.0,
        };
        LearntPhase {
            core_type,
            asks,
            l1_variance: UNSTEADY * UNSTEADY,
            doubt_of_time: time.1,
            doubt_of_accesses: accesses.1,
            ..LearntPhase::default()
        }
    }

    /// Takes over the sensitivities of other jobs.
    pub(super) fn assume_sensitivities(&mut self, [time, accesses]: [SiblingEffect; 2]) {
        self.asks.time.sensitivity = time.sensitivity;
        self.asks.accesses.sensitivity = accesses.sensitivity;
    }

    /// What siblings raise: its time, and its accesses.
    pub(super) fn rises(&self) -> [(SiblingEffect, SiblingVariance); 2] {
        [
            (self.asks.time, self.doubt_of_time),
            (self.asks.accesses, self.doubt_of_accesses),
        ]
    }

    /// Learns how sensitive it is to siblings.
    pub(super) fn learn_sensitivity(&mut self, [time, accesses]: [&SiblingUpdate; 2]) {
        let asks = &mut self.asks;
        self.doubt_of_time.learn_sensitivity(&mut asks.time, time);
        self.doubt_of_accesses
            .learn_sensitivity(&mut asks.accesses, accesses);
    }

    /// Learns its pressure on a sibling, beside which it was for this part of the time.
    pub(super) fn learn_pressure(&mut self, [time, accesses]: [&SiblingUpdate; 2], part: f64) {
        let asks = &mut self.asks;
        self.doubt_of_time
            .learn_pressure(&mut asks.time, time, part);
        self.doubt_of_accesses
            .learn_pressure(&mut asks.accesses, accesses, part);
    }

    /// Maximum memory use of a phase.
    #[cfg(test)]
    pub(super) fn most_bytes() -> usize {
        size_of::<LearntPhase>() + MEASURED_KEPT * size_of::<IntervalFigures>()
    }

    /// A phase learnt in an earlier run.
    pub(super) fn known_before(known: &EarlierPhase) -> LearntPhase {
        LearntPhase {
            core_type: known.core_type,
            asks: known.asks,
            l1_variance: UNSTEADY * UNSTEADY,
            solo_cpi: known.solo_cpi,
            error: ROUGH,
            earlier: Some(*known),
            ..LearntPhase::default()
        }
    }

    /// The phase as a kind of work. How steady it is in one job does not tell how another job differs.
    pub(super) fn as_kind(&self) -> LearntPhase {
        LearntPhase {
            l1_variance: NOISE * NOISE,
            ..self.clone()
        }
    }

    /// Takes over what was measured of the same kind of work in another job.
    pub(super) fn assume_kind(&mut self, kind: &LearntPhase) {
        let Some(solo_ns) = kind.measured_ns() else {
            return;
        };
        self.earlier = Some(EarlierPhase {
            core_type: kind.core_type,
            asks: kind.asks,
            solo_cpi: kind.solo_cpi,
        });
        self.of_another_ns = Some(solo_ns);
        self.asks = PhaseDemand {
            ghz: self.asks.ghz,
            ..kind.asks
        };
        (self.doubt_of_time, self.doubt_of_accesses) = (kind.doubt_of_time, kind.doubt_of_accesses);
        (self.busy, self.busy_misses) = Default::default();
    }

    /// Distance of a sample from the phase: the larger relative difference of its accesses. Without a count of
    /// last-level accesses, reads are compared, with less weight: they depend on the share of the cache. What siblings
    /// raise is known less well.
    /// `reluctance`: factor on what siblings may have caused.
    pub(super) fn distance(&self, row: &IntervalFigures, counts_llc: bool, reluctance: f64) -> f64 {
        let grown = self.asks.accesses.growth(row.crowd);
        let beyond = if counts_llc {
            far(self.asks.llc * grown, row.llc)
        } else {
            READS_TELL * far(self.asks.reads_at(row.share), row.reads)
        };
        f64::max(
            self.l1_tells() * far(self.asks.l1, row.l1),
            reluctance * beyond / (1.0 + self.blur(row, grown)),
        )
    }

    /// Weight of a difference in accesses to the first-level cache: the greater, the steadier they were.
    fn l1_tells(&self) -> f64 {
        let deviation = self.l1_variance.sqrt();
        SAME_PHASE / (DEVIATIONS * deviation.clamp(STEADIEST, SAME_PHASE / DEVIATIONS))
    }

    /// Growth of the tolerance by the doubt of what siblings raise.
    fn blur(&self, row: &IntervalFigures, grown: f64) -> f64 {
        let misfit = SIBLINGS_MISFIT * (grown - 1.0);
        let sensitivity = self.asks.accesses.sensitivity;
        let doubt = self
            .doubt_of_accesses
            .of_growth(sensitivity, row.crowd, row.crowd_doubt);
        SIBLINGS_BLUR * (doubt + misfit * misfit).sqrt() / grown
    }

    /// Distance of another phase from this one.
    pub(super) fn apart(&self, other: &LearntPhase) -> f64 {
        far(self.asks.l1, other.asks.l1).max(far(self.asks.llc, other.asks.llc))
    }

    /// Whether a sample with these accesses to the first-level cache may be of this phase, whatever its siblings raise.
    pub(super) fn may_be(&self, l1: f64) -> bool {
        self.l1_tells() * far(self.asks.l1, l1) < SAME_PHASE
    }

    /// Whether it was never measured, nor seen without siblings.
    pub(super) fn is_guess(&self) -> bool {
        !self.is_measured() && !self.was_clean
    }

    /// Whether its samples outweigh what is assumed.
    pub(super) fn is_fitted(&self) -> bool {
        self.seen >= ASSUMED
    }

    /// Whether it was measured, in this run or in an earlier run that still holds.
    pub(super) fn is_measured(&self) -> bool {
        self.earlier.is_some() || self.is_measured_now()
    }

    /// Whether this job itself was measured in it.
    pub(super) fn is_measured_itself(&self) -> bool {
        self.is_measured_now() || (self.earlier.is_some() && self.of_another_ns.is_none())
    }

    /// Whether this run measured it.
    pub(super) fn is_measured_now(&self) -> bool {
        !self.measured.is_empty()
    }

    /// The measurements. An earlier run's phase is a weak one, with the whole cache.
    fn measurements(&self) -> impl Iterator<Item = IntervalFigures> {
        let earlier = self.earlier.as_ref().map(|known| IntervalFigures {
            cpi: known.solo_cpi,
            l1: known.asks.l1,
            llc: known.asks.llc,
            reads: known.asks.reads,
            ghz: known.asks.ghz,
            load: known.asks.reads * known.asks.ghz / known.solo_cpi,
            share: 1.0,
            weight: (NOISE / ROUGH) * (NOISE / ROUGH),
            is_measurement: true,
            ..IntervalFigures::default()
        });
        earlier.into_iter().chain(self.measured.iter().copied())
    }

    /// Adds a sample.
    pub(super) fn add(&mut self, shared: &Contention, row: &IntervalFigures) {
        if self.seen > 0.0 {
            let off = far(self.asks.l1, row.l1);
            self.l1_variance += (off * off - self.l1_variance) / (ASSUMED + self.seen + 1.0);
        }
        self.seen += 1.0;
        let is_clean = !row.has_siblings;
        self.was_clean |= is_clean;
        if is_clean || !self.is_measured() {
            let rate = 1.0 / self.seen.min(MEMORY);
            // What was learnt beside siblings before the first measurement is a guess.
            let is_first = self.measured.is_empty();
            let rate = match row.is_measurement {
                true if is_first => 1.0,
                true => rate.max(0.5),
                false => rate,
            };
            let alone = row.llc / self.asks.accesses.growth(row.crowd);
            self.asks.l1 += rate * (row.l1 - self.asks.l1);
            self.asks.llc += rate * (alone - self.asks.llc);
        }
        if row.is_measurement {
            return self.measure(row);
        }
        if is_clean || !self.is_measured() {
            let trust = self.trust(shared, row);
            self.mean_trust += (trust - self.mean_trust) / self.seen.min(MEMORY);
            self.busy
                .add(row.cycles(shared, self.asks.time.sensitivity), trust);
            self.busy.fade(1.0);
            if let Some(misses) = row.misses() {
                self.busy_misses.add(misses, row.weight * row.share);
                self.busy_misses.fade(1.0);
            }
        }
    }

    /// Cycles per instruction without siblings, by the model, in the caches and at the memory of a sample.
    pub(super) fn without_siblings(&self, shared: &Contention, row: &IntervalFigures) -> f64 {
        let grown = self.asks.accesses.growth(row.crowd);
        let reads = self.asks.reads_at(row.share) * shared.reads_growth(grown);
        let asks = PhaseDemand {
            llc: self.asks.llc * grown,
            ghz: row.ghz,
            ..self.asks
        };
        asks.own + asks.stall(shared, reads, row.latency)
    }

    /// Cycles per instruction by the model, in the surroundings of a sample.
    pub(super) fn expected_cpi(&self, shared: &Contention, row: &IntervalFigures) -> f64 {
        self.without_siblings(shared, row) * self.asks.time.growth(row.pressure)
    }

    /// Growth of accesses and of reads in a sample, relative to those without siblings, at most `MOST_GROWTH`, and how much the reads
    /// cost as a share of the cycles.
    pub(super) fn growths(&self, row: &IntervalFigures) -> [f64; 3] {
        let asks = &self.asks;
        let cost = asks.penalty * row.ghz * row.reads / row.cpi;
        [
            relative_growth(asks.llc, row.llc),
            relative_growth(asks.reads_at(row.share), row.reads),
            cost,
        ]
    }

    /// Standard error of a sample's time beside siblings, relative to that without.
    pub(super) fn noise(&self, shared: &Contention, row: &IntervalFigures) -> f64 {
        ROUGH + MISFIT * self.lost_to_memory(shared, row)
    }

    /// Takes over the work of another phase, which was this one in fact.
    pub(super) fn absorb(&mut self, other: &LearntPhase) {
        self.seen += other.seen;
        self.instructions += other.instructions;
        self.ran += other.ran;
    }

    /// Adds a sample of a measurement. A later one of the same measurement replaces the earlier one, because the cache
    /// was warmer. What a job did in a longer time alone is one measurement: its mean.
    fn measure(&mut self, row: &IntervalFigures) {
        (self.earlier, self.of_another_ns) = (None, None);
        if self.measured.is_empty() {
            // Until now its own cycles and those that siblings cost were told apart by guess.
            (self.busy, self.busy_misses) = Default::default();
        }
        let mut row = *row;
        if let Some(last) = self.measured.pop_if(|last| last.until == row.since)
            && row.ran_alone
        {
            row = last.joined(&row);
        }
        if self.measured.len() == MEASURED_KEPT {
            self.measured.remove(0);
        }
        self.measured.push(row);
    }

    /// The sums of all samples, for the fits of cycles and reads.
    fn sums(&self, shared: &Contention) -> (WeightedSums, WeightedSums) {
        let (mut cycles, mut misses) = (WeightedSums::default(), WeightedSums::default());
        for mut row in self.measurements() {
            row.latency = shared.memory.at(row.load);
            cycles.add(row.cycles(shared, 0.0), self.trust(shared, &row));
            if let Some(figures) = row.misses() {
                misses.add(figures, row.weight * row.share);
            }
        }
        let mut busy = self.busy;
        if !self.is_measured() {
            busy.fade(DEPENDENT * self.mean_trust);
        }
        (cycles.join(busy, BUSY), misses.join(self.busy_misses, BUSY))
    }

    /// Weight of a sample in the cycle fit.
    fn trust(&self, shared: &Contention, row: &IntervalFigures) -> f64 {
        let risen = self.asks.time.sensitivity * row.pressure;
        let misfit = MISFIT * (self.lost_to_memory(shared, row) + risen / (1.0 + risen)) / NOISE;
        row.weight / (1.0 + misfit * misfit)
    }

    /// The share of a sample's cycles that co-runners caused in caches and memory, by the present model.
    fn lost_to_memory(&self, shared: &Contention, row: &IntervalFigures) -> f64 {
        let asks = &self.asks;
        // In a measurement, the job's own load on memory is no disturbance. Its own reads are used, because reads that
        // others take from a saturated memory do not show in the load.
        let alone = if row.is_measurement {
            let own = row.reads * row.ghz / row.cpi;
            shared.memory.at(own).min(row.latency)
        } else {
            1.0
        };
        let more = (1.0 - shared.hit) * (row.reads - asks.reads).max(0.0);
        let lost = asks.penalty * row.ghz * ((row.latency - alone) * row.reads + more);
        (lost / row.cpi).clamp(0.0, 1.0)
    }

    /// Solo time per instruction, in ns, as it was measured of this job, else of another one that does the same kind of work, else in
    /// an earlier run; `None` without such a measurement.
    pub(super) fn measured_ns(&self) -> Option<f64> {
        let known = self.earlier.map(|known| known.solo_cpi / known.asks.ghz);
        match self.mean_measurement() {
            Some((cpi, ghz)) => Some(cpi / ghz),
            None => self.of_another_ns.or(known),
        }
    }

    /// The mean of the measurements of this run: cycles per instruction, and the clock that gives the mean time.
    fn mean_measurement(&self) -> Option<(f64, f64)> {
        let count = self.measured.len() as f64;
        let cycles: f64 = self.measured.iter().map(|row| row.cpi).sum();
        let time: f64 = self.measured.iter().map(|row| row.cpi / row.ghz).sum();
        (count > 0.0).then(|| (cycles / count, cycles / time))
    }

    /// The phase for a later run, in which it stands for a measurement: so cycles and clock are those of the measurements. The clock
    /// beside others may be lower.
    pub(super) fn for_later(&self) -> EarlierPhase {
        let before = self.earlier.map(|known| (known.solo_cpi, known.asks.ghz));
        let alone = self.mean_measurement().or(before);
        let (solo_cpi, ghz) = alone.unwrap_or((self.solo_cpi, self.asks.ghz));
        EarlierPhase {
            core_type: self.core_type,
            asks: PhaseDemand { ghz, ..self.asks },
            solo_cpi,
        }
    }

    /// Fits own cost, penalty and reads, with the shared model or an earlier run as a prior.
    pub(super) fn fit(&mut self, shared: &Contention, penalty: f64, steepness: f64) {
        let prior = self.earlier.map(|known| known.asks);
        let penalty = prior.map_or(penalty, |asks| asks.penalty);
        let steepness = prior.map_or(steepness, |asks| asks.steepness);
        let (cycles, misses) = self.sums(shared);
        let misses = misses.assume(None, (steepness, SPREAD / ROUGH));
        if let Some(found) = misses.solve([f64::NEG_INFINITY, 0.0]) {
            self.asks.reads = libm::exp(found.a).min(self.asks.llc);
            self.asks.steepness = found.b;
        }
        let own = (OWN.0, OWN.1 / NOISE);
        let cycles = cycles.assume(Some(own), (penalty, MISFIT * penalty / NOISE));
        let Some(found) = cycles.solve([LEAST_PART, 0.0]) else {
            self.solo_cpi = self.asks.solo_cpi(shared);
            self.error = 1.0;
            return;
        };
        (self.asks.own, self.asks.penalty) = (found.a, found.b);
        self.solo_cpi = self.asks.solo_cpi(shared);
        self.error = self.error_of(shared, found.inverse);
    }

    /// The relative error of its solo cycles. Reads with the whole cache are uncertain if the phase never had all of it.
    fn error_of(&self, shared: &Contention, [own, both, penalty]: [f64; 3]) -> f64 {
        let asks = &self.asks;
        let lines = shared.hit * (asks.llc - asks.reads).max(0.0) + asks.reads;
        let lines = lines * asks.ghz;
        let variance = own + 2.0 * lines * both + lines * lines * penalty;
        let shares = self.measurements().map(|row| row.share);
        let unseen = asks.unseen(shared, shares.fold(LEAST_PART, f64::max));
        (NOISE * NOISE * variance.max(0.0) + unseen * unseen).sqrt() / self.solo_cpi
    }
}

/// The relative growth of a figure per instruction. A measurement may have counted none.
fn relative_growth(from: f64, to: f64) -> f64 {
    (to / from.max(f64::MIN_POSITIVE) - 1.0).min(MOST_GROWTH)
}

/// The relative difference of two figures per instruction.
pub(super) fn far(x: f64, y: f64) -> f64 {
    (x - y).abs() / (x.max(y) + 1e-4)
}
