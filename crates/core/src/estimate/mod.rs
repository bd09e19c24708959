//! The loop's estimators of tasks, fed by samples. They belong to the loop, so that every policy and every report sees
//! the same figures.

mod bandwidth;
mod crowding;
mod interference;
mod learnt;
mod pace;
mod progress;
mod solo_work;
mod trace;
mod width;

use crate::counter::Counter;
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::snapshot::Estimates;
use crate::task::TaskSpec;
use crate::topology::CpuSet;
use crate::units::{Absence, Nanos, Rate, Reading};
pub use bandwidth::IdealBandwidth;
use bandwidth::MeanRate;
pub(crate) use crowding::Crowding;
pub(crate) use interference::MISFIT;
pub use interference::{Interference, NeighbouredRun, interferences};
pub use learnt::{EarlierPhase, EarlierPhases, PredictionErrors};
pub(crate) use learnt::{KEPT, Learner, MEMORY, NOISE, ROUGH};
pub use pace::Pace;
use progress::ProgressEstimator;
use solo_work::SoloWork;
use trace::TraceProgress;
pub(crate) use width::WidthEstimator;

/// The estimators of one task.
#[derive(Clone, Debug)]
pub struct TaskEstimator {
    quantum: Nanos,
    reads: MeanRate,
    progress: ProgressEstimator,
    solo_work: SoloWork,
    width: u32,
    trace: Option<TraceProgress>,
    /// The CPUs on which the rates per CPU time were measured.
    rated_on: CpuSet,
}

/// A task's initial progress, in quanta. A late task starts at the least progress of the live tasks, or it would own
/// the machine until it had caught up with their earlier work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct InitialProgress {
    /// By estimates.
    pub progress: f64,
    /// By the trace of a solo run.
    pub trace_progress: f64,
}

impl TaskEstimator {
    /// The estimators of a task that starts now; `quantum` is the unit of progress.
    pub fn new(spec: &TaskSpec, quantum: Nanos, start: InitialProgress) -> TaskEstimator {
        let trace = spec.solo.trace.clone();
        TaskEstimator {
            quantum,
            reads: MeanRate::default(),
            progress: ProgressEstimator::new(start.progress, spec.cpus),
            solo_work: SoloWork::default(),
            width: spec.cpus,
            trace: trace.map(|trace| TraceProgress::new(trace, start.trace_progress, spec.cpus)),
            rated_on: CpuSet::new(),
        }
    }

    /// The estimates before the first sample.
    pub fn initial(&self) -> Estimates {
        Estimates {
            progress: Reading::Value(self.progress.total()),
            trace_ipc: match self.trace {
                Some(_) => Reading::Absent(Absence::NotYetMeasured),
                None => Reading::Absent(Absence::NoSoloTrace),
            },
            trace_progress: self.trace_progress(),
            ..Estimates::default()
        }
    }

    /// Adds one sample from CPUs with this clock, as a share of the fastest core type's clock.
    pub fn update(&mut self, sample: &Sample, clock: f64, estimates: &mut Estimates) {
        if sample.interval == Nanos::ZERO {
            return;
        }
        estimates.executed = estimates.executed.saturating_add(1);
        estimates.ran += sample.interval;
        self.reads
            .add(sample.counts[Counter::MmReads], sample.interval);
        estimates.mm_reads_mean = self.reads.mean();
        // An interval too short for a meaningful rate keeps the previous rates.
        let telling = sample.interval.0 * 10 >= self.quantum.0 || estimates.executed == 1;
        if telling {
            estimates.mm_reads = sample.rate(sample.counts[Counter::MmReads]);
            estimates.mm_writes = write_rate(sample, estimates.mm_reads);
            estimates.domain_lines = sample.traffic.lines_of_each();
            estimates.device_time = sample.device_time.rates(sample.interval);
            estimates.llc = sample.rate(sample.counts[Counter::LlcAccesses]);
            estimates.l1 = sample.rate(sample.counts[Counter::L1Accesses]);
            estimates.ipc = sample.counts.ipc();
        }
        self.rate_on_cpu(sample, estimates);
        self.progress.add(sample, self.quantum);
        self.solo_work.add(sample, self.quantum, self.width);
        estimates.solo_ipc = self.progress.solo_ipc();
        estimates.solo_age = self.progress.solo_age();
        estimates.progress = Reading::Value(self.progress.total());
        estimates.progress_basis = self.progress.basis();
        if let Some(trace) = &mut self.trace {
            estimates.trace_ipc = trace.add(sample, clock, self.quantum);
            estimates.trace_progress = self.trace_progress();
        }
    }

    fn trace_progress(&self) -> Reading<f64> {
        Reading::from_option(
            self.trace.as_ref().map(TraceProgress::total),
            Absence::NoSoloTrace,
        )
    }

    /// Updates the rates per CPU time. Except in a measurement, which is short, a task that hardly used a CPU keeps its previous
    /// rates, as long as it may still run on the same CPUs: on another core type the rates may differ.
    fn rate_on_cpu(&mut self, sample: &Sample, estimates: &mut Estimates) {
        let telling = sample
            .cpu_time
            .value()
            .is_none_or(|time| time.0 * 100 >= self.quantum.0);
        let is_measurement = sample.purpose != Purpose::Run;
        if telling || is_measurement || self.rated_on != sample.cpus {
            estimates.cpu_instructions = sample
                .rate_on_cpu(sample.counts[Counter::Instructions])
                .map(|rate| rate.0);
            estimates.cpu_mm_reads = sample.rate_on_cpu(sample.counts[Counter::MmReads]);
            self.rated_on.clone_from(&sample.cpus);
        }
    }

    /// Progress earned in this run, without a late task's initial credit. It is rated anew by each measurement, also for work
    /// done long before; Eq. 1 of Perf&Fair, by which policies decide, is not.
    /// Absent if not all phases were measured.
    pub fn earned(&self) -> Reading<f64> {
        match self.solo_work.time() {
            Ok(time) => Reading::Value(time / self.quantum.0 as f64),
            Err(Absence::NoSoloEstimate) => Reading::Value(self.progress.earned()),
            Err(why) => Reading::Absent(why),
        }
    }

    /// The same by the trace of a solo run; `None` without a trace, or after a counter failure.
    pub fn earned_by_trace(&self) -> Option<f64> {
        self.trace
            .as_ref()
            .filter(|trace| trace.is_whole())
            .map(TraceProgress::earned)
    }
}

/// The rate of lines written to memory: counted, or else the task's share of the writes of its memory domain.
fn write_rate(sample: &Sample, reads: Reading<Rate>) -> Reading<Rate> {
    let counted = sample.rate(sample.counts[Counter::MmWrites]);
    match (
        counted,
        reads.and_then(|reads| sample.traffic.writes_of(reads)),
    ) {
        (Reading::Absent(_), shared @ Reading::Value(_)) => shared,
        (counted, _) => counted,
    }
}

#[cfg(test)]
mod tests {
    use super::progress::tests::of_gang;
    use super::*;

    #[test]
    fn a_gang_earns_the_time_in_which_all_its_threads_ran_alone() {
        let spec = TaskSpec {
            cpus: 8,
            ..TaskSpec::new(0, "gang")
        };
        let alone = of_gang(8.0, 1.0, Purpose::MeasureAlone);
        let mut estimator = TaskEstimator::new(&spec, alone.interval, InitialProgress::default());
        let mut estimates = estimator.initial();
        for _ in 0..4 {
            estimator.update(&alone, 1.0, &mut estimates);
        }
        assert_eq!(estimator.earned(), Reading::Value(4.0));
    }
}
