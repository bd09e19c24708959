//! One phase of a job: intervals with nearly the same cache accesses per instruction, which hardly depend on
//! co-runners.
//!
//! Two lines are fitted to a phase by least squares. Its cycles per instruction are `own` (1 + alpha A) + beta l L +
//! `penalty` x lines, with lines in units of a read from an idle memory. The logarithm of its reads is ln `reads` -
//! `steepness` x ln share. Both fits need samples of different contention. The model of co-runners is less certain than
//! a measurement without them, so a sample with more contention has less weight. All ordinary samples of a phase
//! together weigh at most a fraction of the few measurements, because their errors are not independent.

use super::earlier::EarlierPhase;
use super::sums::{Sums, solve_two};
use crate::model::contention::{Asks, Contention};

/// Relative standard error of a sample without contention.
pub(super) const NOISE: f64 = 0.01;
/// Relative error of the modelled effect of co-runners.
const MISFIT: f64 = 0.5;
/// Number of measurements kept.
const CALM_KEPT: usize = 4;
/// Upper bound on the total weight of ordinary samples, and their weight relative to measurements.
const MOST_BUSY: f64 = 1.0;
const BUSY_RATIO: f64 = 0.25;
/// The same for reads.
const MOST_BUSY_MISSES: f64 = 1.0;
const BUSY_MISSES_RATIO: f64 = 1.0;
/// Relative standard deviation of penalty between jobs.
const SPREAD_PENALTY: f64 = 0.5;
/// Standard deviation of steepness between jobs, and relative standard error of reads.
const SPREAD_STEEPNESS: f64 = 0.15;
const NOISE_MISSES: f64 = 0.03;
/// Weight of an earlier run's phase, as a fraction of a measurement, and its relative error.
const EARLIER: f64 = 0.1;
const EARLIER_ERROR: f64 = 0.04;
/// An earlier run's phase fails to explain a sample if ln CPI is off by `ODD`, or `ODD_IN_CALM` in a measurement.
/// `MOST_ODD` consecutive failures discard it.
const ODD: f64 = 0.3;
const ODD_IN_CALM: f64 = 0.1;
const MOST_ODD: u32 = 3;
/// An earlier run's phase is discarded after more measurements than this.
const MOST_MEASURED: u32 = 1;
/// Upper bound on steepness.
const STEEPEST: f64 = 1.5;
/// Lower bound on cycles per instruction in a core.
const LEAST_OWN: f64 = 0.05;
/// Number of samples for a meaningful fit.
const FITTED: f64 = 3.0;
/// Number of last samples in the mean over a phase.
const MEAN_OVER: f64 = 20.0;
/// Below this number of reads per instruction the logarithm is meaningless.
const LEAST_READS: f64 = 1e-7;
/// Lower bound on a job's largest share of a cache.
const LEAST_SHARE: f64 = 0.05;

/// Weight of a difference in reads, relative to one in accesses.
const READS_TELL: f64 = 0.25;

/// Relative error of reads with a larger cache share than ever observed, per e-fold.
pub(crate) const UNSEEN_READS: f64 = 0.4;

/// Figures of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) cpi: f64,
    /// Other busy threads of the core.
    pub(super) activity: f64,
    /// Own accesses to the first-level cache per instruction x those of the others per cycle.
    pub(super) ports: f64,
    pub(super) l1: f64,
    pub(super) llc: f64,
    pub(super) reads: f64,
    /// Lines from beyond the private caches, in units of a read from an idle memory.
    pub(super) lines: f64,
    /// Total lines per ns read from its memory domain.
    pub(super) load: f64,
    /// Its share of the reads into its last-level cache.
    pub(super) share: f64,
    /// The share of `cpi` that co-runners cause, by the present model.
    pub(super) disturbed: f64,
    /// Less for short intervals.
    pub(super) weight: f64,
    /// Start and end, in ns.
    pub(super) since: u64,
    pub(super) until: u64,
    /// Whether it was a measurement with no co-runner on its cores.
    pub(super) calm: bool,
}

impl Row {
    /// Row of the cycle fit: 1, activity, ports, lines; cycles. All relative to the cycles.
    fn cycles(&self) -> [f64; 5] {
        [1.0, self.activity, self.ports, self.lines, self.cpi].map(|figure| figure / self.cpi)
    }

    /// Row of the read fit: 1, ln share; ln reads. `None` if the job hardly reads.
    fn misses(&self) -> Option<[f64; 3]> {
        let is_telling = self.reads > LEAST_READS && self.share > 0.0;
        is_telling.then(|| {
            [
                1.0,
                libm::log(self.share.clamp(1e-3, 1.0)),
                libm::log(self.reads),
            ]
        })
    }

    /// Whether it is a measurement without sibling threads, even of its own job.
    fn is_calm(&self) -> bool {
        self.calm && self.activity == 0.0
    }

    /// Weight in the cycle fit.
    fn trust(&self) -> f64 {
        let misfit = MISFIT * self.disturbed / NOISE;
        self.weight / (1.0 + misfit * misfit)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    pub(super) core_type: usize,
    pub(super) asks: Asks,
    /// The last measurements, the newest last. Their memory contention is recomputed for each fit, because at first it
    /// is unknown.
    calm: Vec<Row>,
    /// All other samples: cycles and reads.
    busy: Sums<5>,
    busy_misses: Sums<3>,
    /// Number of samples.
    seen: f64,
    /// Per thread.
    pub(super) instructions: f64,
    /// CPU time per thread, in ns.
    pub(super) time: f64,
    pub(super) used_at: u64,
    pub(super) solo_cpi: f64,
    /// Solo time per instruction on the fastest core type, in ns.
    pub(super) solo_ns: f64,
    /// Relative standard error of `solo_cpi`.
    pub(super) error: f64,
    /// Its contribution to the shared normal equations.
    pub(super) normal: [f64; 5],
    /// The phase of an earlier run, until this run knows better.
    earlier: Option<Known>,
}

/// A phase learnt in an earlier run, and how well it explains this run.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Penalty and steepness are priors, in place of the shared ones.
    asks: Asks,
    solo_cpi: f64,
    /// Consecutive samples that it could not explain.
    odd: u32,
    /// Number of measurements in this run.
    measured: u32,
}

impl Known {
    /// A weak measurement with the whole cache.
    fn row(&self) -> Row {
        let Known { asks, solo_cpi, .. } = *self;
        Row {
            cpi: solo_cpi,
            activity: 0.0,
            ports: 0.0,
            l1: asks.l1,
            llc: asks.llc,
            reads: asks.reads,
            lines: 0.0,
            load: asks.reads * asks.ghz / solo_cpi,
            share: 1.0,
            disturbed: 0.0,
            weight: EARLIER,
            since: 0,
            until: 0,
            calm: true,
        }
    }
}

impl Phase {
    /// A phase that starts with this sample. Penalty and steepness are assumed.
    pub(super) fn new(
        core_type: usize,
        row: &Row,
        penalty: f64,
        steepness: f64,
        ghz: f64,
    ) -> Phase {
        let asks = Asks {
            own: row.cpi,
            penalty,
            l1: row.l1,
            llc: row.llc,
            reads: row.reads,
            steepness,
            ghz,
        };
        Phase {
            core_type,
            asks,
            ..Phase::default()
        }
    }

    /// Maximum memory use of a phase.
    #[cfg(test)]
    pub(super) fn most_bytes() -> usize {
        size_of::<Phase>() + CALM_KEPT * size_of::<Row>()
    }

    /// A phase learnt in an earlier run.
    pub(super) fn known_before(known: &EarlierPhase) -> Phase {
        let EarlierPhase {
            core_type,
            asks,
            solo_cpi,
        } = *known;
        let earlier = Some(Known {
            asks,
            solo_cpi,
            odd: 0,
            measured: 0,
        });
        Phase {
            core_type,
            asks,
            solo_cpi,
            error: EARLIER_ERROR,
            earlier,
            ..Phase::default()
        }
    }

    /// Compares a sample with the earlier run's phase, and drops that phase if a measurement or several samples
    /// contradict it, or if this run has enough measurements of its own.
    pub(super) fn doubt(&mut self, shared: &Contention, row: &Row) {
        let goes_on = self.goes_on(row);
        let Some(known) = &mut self.earlier else {
            return;
        };
        let asks = &self.asks;
        let expected = asks.own * (1.0 + shared.alpha * row.activity)
            + shared.beta * row.ports
            + asks.penalty * row.lines;
        let off = libm::log(row.cpi / expected).abs();
        known.odd = if off > ODD { known.odd + 1 } else { 0 };
        known.measured += u32::from(row.is_calm() && !goes_on);
        let is_wrong = known.odd >= MOST_ODD || (row.is_calm() && off > ODD_IN_CALM);
        if is_wrong || known.measured > MOST_MEASURED {
            self.earlier = None;
        }
    }

    /// Whether a sample directly continues the last measurement.
    fn goes_on(&self, row: &Row) -> bool {
        self.calm.last().is_some_and(|last| last.until == row.since)
    }

    /// Distance of a sample from the phase: the larger relative difference of its accesses. Without a count of
    /// last-level accesses, reads are compared, with less weight: they depend on the share of the cache.
    pub(super) fn distance(&self, row: &Row, counts_llc: bool) -> f64 {
        let beyond = if counts_llc {
            far(self.asks.llc, row.llc)
        } else {
            READS_TELL * far(self.asks.reads_at(row.share), row.reads)
        };
        far(self.asks.l1, row.l1).max(beyond)
    }

    /// Distance of another phase from this one.
    pub(super) fn apart(&self, other: &Phase) -> f64 {
        far(self.asks.l1, other.asks.l1).max(far(self.asks.llc, other.asks.llc))
    }

    /// Whether it has enough samples for the shared fits.
    pub(super) fn is_fitted(&self) -> bool {
        self.seen >= FITTED
    }

    /// Whether it was measured, in this run or in an earlier run that still holds.
    pub(super) fn is_measured(&self) -> bool {
        self.measurements().next().is_some()
    }

    fn measurements(&self) -> impl Iterator<Item = Row> {
        self.earlier
            .iter()
            .map(Known::row)
            .chain(self.calm.iter().copied())
    }

    /// Adds a sample. In a measurement, returns the change since its previous sample: see
    /// [`Learnt::settling`](crate::Learnt::settling).
    pub(super) fn add(&mut self, row: &Row) -> Option<f64> {
        self.seen += 1.0;
        let rate = 1.0 / self.seen.min(MEAN_OVER);
        self.asks.l1 += rate * (row.l1 - self.asks.l1);
        self.asks.llc += rate * (row.llc - self.asks.llc);
        if !row.is_calm() {
            self.busy.add(row.cycles(), row.trust(), MOST_BUSY);
            if let Some(misses) = row.misses() {
                self.busy_misses
                    .add(misses, row.weight * row.share, MOST_BUSY_MISSES);
            }
            return None;
        }
        let mut settling = None;
        // A later sample of the same measurement replaces the earlier one, because the cache was warmer.
        if self.goes_on(row)
            && let Some(last) = self.calm.pop()
        {
            settling = Some(self.asks.penalty * (last.reads - row.reads) / row.cpi);
        }
        if self.calm.len() == CALM_KEPT {
            self.calm.remove(0);
        }
        self.calm.push(*row);
        settling
    }

    /// The sums of all samples, for the fits.
    pub(super) fn sums(&self, shared: &Contention) -> (Sums<5>, Sums<3>) {
        let (mut calm, mut misses) = (Sums::default(), Sums::default());
        for row in self.measurements() {
            let latency = shared.memory.at(row.load);
            let lines = shared.hit * (row.llc - row.reads) + latency * row.reads;
            let row = Row {
                lines,
                disturbed: self.disturbed(shared, &row, latency),
                ..row
            };
            calm.add(row.cycles(), row.trust(), f64::INFINITY);
            if let Some(figures) = row.misses() {
                misses.add(figures, row.weight * row.share, f64::INFINITY);
            }
        }
        (
            calm.join(self.busy, BUSY_RATIO),
            misses.join(self.busy_misses, BUSY_MISSES_RATIO),
        )
    }

    /// The share of a sample's cycles that co-runners caused, by the present model, with memory at this latency.
    pub(super) fn disturbed(&self, shared: &Contention, row: &Row, latency: f64) -> f64 {
        let asks = &self.asks;
        // In a measurement, the job's own load on memory is no disturbance. Its own reads are used, because reads that
        // others take from a saturated memory do not show in the load.
        let alone = if row.calm {
            shared
                .memory
                .at(row.reads * asks.ghz / row.cpi)
                .min(latency)
        } else {
            1.0
        };
        let more = (1.0 - shared.hit) * (row.reads - asks.reads).max(0.0);
        let by_memory = asks.penalty * ((latency - alone) * row.reads + more);
        let in_core = shared.alpha * row.activity * asks.own + shared.beta * row.ports;
        ((by_memory + in_core) / row.cpi).clamp(0.0, 1.0)
    }

    /// The normal equations of this phase for alpha and beta, with own cost and penalty eliminated (the
    /// Frisch-Waugh-Lovell theorem). Products of the regressors first: `[aa, ab, bb, a, b]`.
    pub(super) fn normal_equations(&self, all: &Sums<5>, penalty: f64) -> [f64; 5] {
        if !self.is_fitted() {
            return [0.0; 5];
        }
        let precision = precision(penalty);
        let scale = [1.0, self.asks.own, 1.0, 1.0, 1.0];
        let of = |i: usize, j: usize| all.of(i, j) * scale[i] * scale[j];
        let eliminated = [[of(0, 0), of(0, 3)], [of(3, 0), of(3, 3) + precision]];
        let Some((_, inverse)) = solve_two(eliminated, [0.0, 0.0]) else {
            return [0.0; 5];
        };
        let side = |i: usize| [of(i, 0), of(i, 3)];
        let target = [of(4, 0), of(4, 3) + precision * penalty];
        let through = |x: [f64; 2], y: [f64; 2]| {
            x[0] * (inverse[0][0] * y[0] + inverse[0][1] * y[1])
                + x[1] * (inverse[1][0] * y[0] + inverse[1][1] * y[1])
        };
        [
            of(1, 1) - through(side(1), side(1)),
            of(1, 2) - through(side(1), side(2)),
            of(2, 2) - through(side(2), side(2)),
            of(1, 4) - through(side(1), target),
            of(2, 4) - through(side(2), target),
        ]
    }

    /// Fits own cost, penalty and reads, with the shared model as a prior.
    pub(super) fn fit(
        &mut self,
        (cycles, misses): &(Sums<5>, Sums<3>),
        shared: &Contention,
        penalty: f64,
        steepness: f64,
    ) {
        let (penalty, steepness) = self.earlier.map_or((penalty, steepness), |known| {
            (known.asks.penalty, known.asks.steepness)
        });
        let inverse = self.fit_cycles(cycles, shared, penalty);
        self.fit_misses(misses, steepness);
        self.solo_cpi = self.asks.solo_cpi(shared);
        let lines = shared.hit * (self.asks.llc - self.asks.reads).max(0.0) + self.asks.reads;
        let variance = inverse[0][0] + 2.0 * lines * inverse[0][1] + lines * lines * inverse[1][1];
        // Reads with the whole cache are uncertain if the phase never had the whole cache.
        let share = self
            .measurements()
            .map(|row| row.share)
            .fold(LEAST_SHARE, f64::max);
        let of_misses = self.asks.miss_cost(shared, share) * UNSEEN_READS * libm::log(1.0 / share);
        self.error = (NOISE * NOISE * variance.max(0.0) + of_misses * of_misses).sqrt()
            / self.solo_cpi.max(LEAST_OWN);
    }

    fn fit_cycles(&mut self, all: &Sums<5>, shared: &Contention, penalty: f64) -> [[f64; 2]; 2] {
        let (alpha, beta) = (shared.alpha, shared.beta);
        // Regressors: 1 + alpha A, and lines. Response: CPI - beta ports.
        let xx = all.of(0, 0) + 2.0 * alpha * all.of(0, 1) + alpha * alpha * all.of(1, 1);
        let xq = all.of(0, 3) + alpha * all.of(1, 3);
        let qq = all.of(3, 3);
        let xy = all.of(0, 4) + alpha * all.of(1, 4) - beta * (all.of(0, 2) + alpha * all.of(1, 2));
        let qy = all.of(3, 4) - beta * all.of(2, 3);
        let precision = precision(penalty);
        let Some(([own, cost], inverse)) = solve_two(
            [[xx, xq], [xq, qq + precision]],
            [xy, qy + precision * penalty],
        ) else {
            return [[1.0, 0.0], [0.0, 1.0]];
        };
        (self.asks.own, self.asks.penalty) = (own, cost);
        if cost < 0.0 && xx > 0.0 {
            (self.asks.own, self.asks.penalty) = (xy / xx, 0.0);
        }
        if self.asks.own < LEAST_OWN && qq > 0.0 {
            (self.asks.own, self.asks.penalty) = (LEAST_OWN, ((qy - LEAST_OWN * xq) / qq).max(0.0));
        }
        inverse
    }

    fn fit_misses(&mut self, all: &Sums<3>, steepness: f64) {
        if all.weight() <= 0.0 {
            return;
        }
        let precision = (NOISE_MISSES / SPREAD_STEEPNESS) * (NOISE_MISSES / SPREAD_STEEPNESS);
        let a = [
            [all.of(0, 0), -all.of(0, 1)],
            [-all.of(0, 1), all.of(1, 1) + precision],
        ];
        let Some(([mut level, power], _)) =
            solve_two(a, [all.of(0, 2), -all.of(1, 2) + precision * steepness])
        else {
            return;
        };
        let bounded = power.clamp(0.0, STEEPEST);
        if bounded != power {
            level = (all.of(0, 2) + bounded * all.of(0, 1)) / all.of(0, 0);
        }
        self.asks.reads = libm::exp(level).min(self.asks.llc);
        self.asks.steepness = bounded;
    }
}

/// The relative difference of two figures per instruction.
fn far(x: f64, y: f64) -> f64 {
    (x - y).abs() / (x.max(y) + 1e-4)
}

/// Precision of the penalty's prior, in units of a sample without co-runners.
fn precision(penalty: f64) -> f64 {
    let spread = SPREAD_PENALTY * penalty / NOISE;
    1.0 / (spread * spread).max(1e-12)
}
