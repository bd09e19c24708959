//! Progress: how much solo execution a task has done (Perf&Fair, Eq. 1).
//!
//! Each executed quantum adds IPC measured / IPC alone. IPC alone is the IPC of the last interval in which the task
//! ran in low contention. Intervals that are shorter or longer than a quantum count by their length. What was executed
//! before the first such interval is counted when it is there; until then it counts as if nothing had slowed the task.

use crate::placement::Purpose;
use crate::sample::Sample;
use crate::snapshot::ProgressBasis;
use crate::units::{Absence, Nanos, Reading};

#[derive(Clone, Debug)]
pub(super) struct Progress {
    start: f64,
    /// Quanta' worth of solo execution, by measured IPC or, without counters, by CPU time.
    done: f64,
    /// Executed before the first solo IPC: sum of IPC x quanta, and of quanta.
    unrated_ipc: f64,
    unrated_quanta: f64,
    solo_ipc: Option<f64>,
    age: f64,
    by_cpu_time: bool,
    absence: Absence,
}

impl Progress {
    pub(super) fn new(start: f64) -> Progress {
        Progress {
            start,
            done: 0.0,
            unrated_ipc: 0.0,
            unrated_quanta: 0.0,
            solo_ipc: None,
            age: 0.0,
            by_cpu_time: false,
            absence: Absence::NoSoloEstimate,
        }
    }

    pub(super) fn add(&mut self, sample: &Sample, quantum: Nanos) {
        let quanta = run_quanta(sample, quantum);
        self.age += quanta;
        match sample.counts.ipc() {
            Reading::Value(ipc) => {
                if is_low_contention(sample, quantum) && ipc > 0.0 {
                    self.set_solo(ipc);
                }
                match self.solo_ipc {
                    Some(solo) => self.done += ipc / solo * quanta,
                    None => {
                        self.unrated_ipc += ipc * quanta;
                        self.unrated_quanta += quanta;
                    }
                }
            }
            // A task that used no cycle at all made no progress: nothing is unknown about that.
            Reading::Absent(Absence::NotYetMeasured) => {}
            Reading::Absent(why) => {
                self.absence = why;
                self.by_cpu_time = true;
                self.done += used_quanta(sample, quantum);
            }
        }
    }

    fn set_solo(&mut self, ipc: f64) {
        self.solo_ipc = Some(ipc);
        self.age = 0.0;
        self.done += self.unrated_ipc / ipc;
        self.unrated_ipc = 0.0;
        self.unrated_quanta = 0.0;
    }

    pub(super) fn earned(&self) -> f64 {
        self.done + self.unrated_quanta
    }

    pub(super) fn total(&self) -> f64 {
        self.start + self.earned()
    }

    pub(super) fn solo_ipc(&self) -> Reading<f64> {
        Reading::from_option(self.solo_ipc, self.absence)
    }

    pub(super) fn solo_age(&self) -> u32 {
        self.age as u32
    }

    pub(super) fn basis(&self) -> ProgressBasis {
        match (self.by_cpu_time, self.solo_ipc) {
            (true, _) => ProgressBasis::CpuTime,
            (false, Some(_)) => ProgressBasis::Ipc,
            (false, None) => ProgressBasis::Provisional,
        }
    }
}

/// The length of an interval in quanta.
pub(super) fn run_quanta(sample: &Sample, quantum: Nanos) -> f64 {
    sample.interval.share_of(quantum)
}

/// The CPU time of an interval in quanta of all CPUs that the task had; where that is unknown, its length.
pub(super) fn used_quanta(sample: &Sample, quantum: Nanos) -> f64 {
    let quanta = run_quanta(sample, quantum);
    let width = sample.cpus.len().max(1) as f64;
    match sample.cpu_time {
        Reading::Value(cpu_time) => (cpu_time.share_of(quantum) / width).min(quanta),
        Reading::Absent(_) => quanta,
    }
}

/// Whether the interval says what the task does alone: it was arranged to, or nothing else ran, for at least a quarter
/// of a quantum, with the task's cores to itself and no ordinary task joining.
fn is_low_contention(sample: &Sample, quantum: Nanos) -> bool {
    let alone = sample.purpose == Purpose::MeasureAlone || sample.co_runners.len() <= 1;
    alone && sample.whole_core && !sample.disturbed && sample.interval.0 * 4 >= quantum.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::Counter;
    use crate::sample::{Counts, Usage};
    use crate::task::TaskId;

    const Q: Nanos = Nanos::from_ms(200);

    fn sample(ms: u64, ipc_milli: u64, purpose: Purpose) -> Sample {
        let mut counts = Usage::zero(TaskId(0)).counts;
        counts[Counter::Cycles] = Reading::Value(1_000 * ms);
        counts[Counter::Instructions] = Reading::Value(ipc_milli * ms);
        Sample {
            task: TaskId(0),
            at: Q,
            interval: Nanos::from_ms(ms),
            planned: Q,
            purpose,
            cpus: "0".parse().unwrap(),
            whole_core: true,
            co_runners: [TaskId(0), TaskId(1)].into(),
            disturbed: false,
            cpu_time: Reading::Value(Nanos::from_ms(ms)),
            counts,
            multiplexed: false,
            observed: false,
        }
    }

    #[test]
    fn quanta_before_the_first_estimate_are_rated_by_it() {
        let mut progress = Progress::new(0.0);
        progress.add(&sample(200, 500, Purpose::Run), Q);
        assert_eq!((progress.total(), progress.basis()), (1.0, ProgressBasis::Provisional));
        progress.add(&sample(100, 1_000, Purpose::MeasureAlone), Q);
        assert_eq!(progress.total(), 0.5 + 0.5);
        assert_eq!(progress.basis(), ProgressBasis::Ipc);
        progress.add(&sample(200, 250, Purpose::Run), Q);
        assert_eq!(progress.total(), 1.25);
        assert_eq!(progress.solo_age(), 1);
    }

    #[test]
    fn a_spoiled_or_too_short_measurement_is_no_estimate() {
        let mut disturbed = sample(100, 1_000, Purpose::MeasureAlone);
        disturbed.disturbed = true;
        let mut shared = sample(100, 1_000, Purpose::MeasureAlone);
        shared.whole_core = false;
        for bad in [disturbed, shared, sample(49, 1_000, Purpose::MeasureAlone), sample(200, 1_000, Purpose::Run)] {
            let mut progress = Progress::new(0.0);
            progress.add(&bad, Q);
            assert_eq!(progress.solo_ipc(), Reading::Absent(Absence::NoSoloEstimate));
        }
    }

    #[test]
    fn without_counters_cpu_time_counts() {
        let mut progress = Progress::new(3.0);
        let mut sample = sample(200, 0, Purpose::Run);
        sample.counts = Counts::absent(Absence::NoCounters);
        sample.cpu_time = Reading::Value(Nanos::from_ms(150));
        progress.add(&sample, Q);
        assert_eq!((progress.total(), progress.earned()), (3.75, 0.75));
        assert_eq!(progress.basis(), ProgressBasis::CpuTime);
        assert_eq!(progress.solo_ipc(), Reading::Absent(Absence::NoCounters));
    }
}
