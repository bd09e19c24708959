//! What the loop learns of a task from its samples. Estimators belong to the loop, so that every policy and every
//! report sees the same figures.

mod bandwidth;
mod learnt;
mod progress;
mod trace;
mod width;

use crate::counter::Counter;
use crate::sample::Sample;
use crate::snapshot::Estimates;
use crate::task::{SoloProfile, TaskSpec};
use crate::topology::CpuSet;
use crate::units::{Absence, Nanos, Rate, Reading};
use bandwidth::MeanRate;
pub use learnt::{Earlier, EarlierPhase};
pub(crate) use learnt::{Learner, UNSEEN_READS};
use progress::Progress;
use trace::TraceProgress;
pub(crate) use width::WidthEstimator;

/// The estimators of one task.
#[derive(Clone, Debug)]
pub struct TaskEstimator {
    quantum: Nanos,
    reads: MeanRate,
    progress: Progress,
    trace: Option<TraceProgress>,
    /// Where the task ran when its rates on a CPU were measured.
    rated_on: CpuSet,
}

/// Where a task's progress begins, in quanta. A task that arrives late begins at the least progress of the live tasks, or it
/// would have the machine to itself until it has caught up with what they did before it came.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// By estimates.
    pub progress: f64,
    /// By the trace of a solo run.
    pub trace_progress: f64,
}

impl TaskEstimator {
    /// For a task that begins now; `quantum` is the unit of progress.
    pub fn new(spec: &TaskSpec, quantum: Nanos, start: Start) -> TaskEstimator {
        let trace = spec.solo.trace.clone();
        TaskEstimator {
            quantum,
            reads: MeanRate::default(),
            progress: Progress::new(start.progress, spec.cpus),
            trace: trace.map(|trace| TraceProgress::new(trace, start.trace_progress, spec.cpus)),
            rated_on: CpuSet::new(),
        }
    }

    /// What is known before the first sample.
    pub fn initial(&self, solo: &SoloProfile) -> Estimates {
        Estimates {
            progress: Reading::Value(self.progress.total()),
            solo_mm_reads: Reading::from_option(solo.mm_reads, Absence::NoSoloEstimate),
            trace_ipc: match self.trace {
                Some(_) => Reading::Absent(Absence::NotYetMeasured),
                None => Reading::Absent(Absence::NoSoloTrace),
            },
            trace_progress: self.trace_progress(),
            ..Estimates::default()
        }
    }

    /// Takes in one sample from CPUs with this clock, as a share of that of the fastest type of core.
    pub fn update(&mut self, sample: &Sample, clock: f64, estimates: &mut Estimates) {
        if sample.interval == Nanos::ZERO {
            return;
        }
        estimates.executed = estimates.executed.saturating_add(1);
        estimates.ran += sample.interval;
        self.reads
            .add(sample.counts[Counter::MmReads], sample.interval);
        estimates.mm_reads_mean = self.reads.mean();
        // An interval too short to say anything keeps the rates of the one before it.
        let telling = sample.interval.0 * 10 >= self.quantum.0 || estimates.executed == 1;
        if telling {
            estimates.mm_reads = sample.rate(sample.counts[Counter::MmReads]);
            estimates.mm_writes = write_rate(sample, estimates.mm_reads);
            estimates.domain_lines = sample.traffic.lines_of_each();
            estimates.llc = sample.rate(sample.counts[Counter::LlcAccesses]);
            estimates.l1 = sample.rate(sample.counts[Counter::L1Accesses]);
            estimates.ipc = sample.counts.ipc();
        }
        self.rate_on_cpu(sample, estimates);
        self.progress.add(sample, self.quantum);
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

    /// The rates while the task has a CPU. A task that hardly used one keeps those of before, as long as it may still
    /// run on the same CPUs: a core of another type may do otherwise.
    fn rate_on_cpu(&mut self, sample: &Sample, estimates: &mut Estimates) {
        let telling = sample
            .cpu_time
            .value()
            .is_none_or(|time| time.0 * 100 >= self.quantum.0);
        if telling || self.rated_on != sample.cpus {
            estimates.cpu_instructions = sample
                .rate_on_cpu(sample.counts[Counter::Instructions])
                .map(|rate| rate.0);
            estimates.cpu_mm_reads = sample.rate_on_cpu(sample.counts[Counter::MmReads]);
            self.rated_on.clone_from(&sample.cpus);
        }
    }

    /// Progress earned in this run, without what a late task was credited with at its start.
    pub fn earned(&self) -> f64 {
        self.progress.earned()
    }

    /// The same by the trace of a solo run; `None` without one, or when counters failed on the way.
    pub fn earned_by_trace(&self) -> Option<f64> {
        self.trace
            .as_ref()
            .filter(|trace| trace.is_whole())
            .map(TraceProgress::earned)
    }
}

/// The rate at which a task wrote lines to memory: counted, or else its part of what its memory domain wrote.
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
