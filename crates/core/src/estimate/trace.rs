//! Progress against a trace of a solo run: Eq. 1 of Perf&Fair with the solo IPC over exactly the executed instructions,
//! as in its Oracle. Intervals count by their CPU time. On slower core types, which the paper does not have, they count
//! for less, in proportion to the clock.

use super::progress::{own_wait, used_quanta};
use crate::counter::Counter;
use crate::sample::Sample;
use crate::solo_trace::SoloTrace;
use crate::units::{Absence, Nanos, Reading};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(super) struct TraceProgress {
    trace: Arc<SoloTrace>,
    /// CPUs that the task needs at once.
    width: u32,
    start: f64,
    done: f64,
    /// Instructions executed since the task's start.
    position: u64,
    /// Why the position is unknown, once it is.
    lost: Option<Absence>,
}

impl TraceProgress {
    pub(super) fn new(trace: Arc<SoloTrace>, start: f64, width: u32) -> TraceProgress {
        TraceProgress {
            trace,
            width,
            start,
            done: 0.0,
            position: 0,
            lost: None,
        }
    }

    /// Adds one interval, and returns the solo IPC over its instructions.
    pub(super) fn add(&mut self, sample: &Sample, clock: f64, quantum: Nanos) -> Reading<f64> {
        let used = clock * used_quanta(sample, quantum, self.width);
        self.done += own_wait(sample, self.width).share_of(quantum);
        let counts = (sample.counts[Counter::Instructions], sample.counts.ipc());
        if let (Reading::Value(instructions), None) = (counts.0, self.lost) {
            let end = self.position.saturating_add(instructions);
            let alone = self.trace.ipc_over(self.position, end);
            self.position = end;
            if let Reading::Value(ipc) = counts.1 {
                self.done += ipc / alone * used;
                return Reading::Value(alone);
            }
            if counts.1.absence() == Some(Absence::NotYetMeasured) {
                // It used no cycle: no work was done, and that is certain.
                return Reading::Value(alone);
            }
        }
        // After a gap the task's position in its trace is unknown, so it counts as if without slowdown.
        let why = counts
            .0
            .absence()
            .or(counts.1.absence())
            .unwrap_or(Absence::CountersLost);
        let why = *self.lost.get_or_insert(why);
        self.done += used;
        Reading::Absent(why)
    }

    pub(super) fn earned(&self) -> f64 {
        self.done
    }

    pub(super) fn total(&self) -> f64 {
        self.start + self.done
    }

    /// Whether every interval was measured.
    pub(super) fn is_whole(&self) -> bool {
        self.lost.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::Purpose;
    use crate::sample::{Counts, Usage};
    use crate::task::TaskId;
    use crate::traffic::TrafficRates;

    const Q: Nanos = Nanos::from_ms(200);

    fn sample(cycles: u64, instructions: u64) -> Sample {
        let mut counts = Usage::zero(TaskId(0)).counts;
        counts[Counter::Cycles] = Reading::Value(cycles);
        counts[Counter::Instructions] = Reading::Value(instructions);
        Sample {
            task: TaskId(0),
            at: Q,
            interval: Q,
            planned: Q,
            purpose: Purpose::Run,
            cpus: "0".parse().unwrap(),
            whole_core: false,
            co_runners: [TaskId(0), TaskId(1)].into(),
            disturbed: false,
            cpu_time: Reading::Value(Nanos::from_ms(150)),
            counts,
            multiplexed: false,
            traffic: TrafficRates::absent(Absence::NotRequested),
            device_time: crate::device::DeviceTime::not_requested(),
            observed: false,
        }
    }

    #[test]
    fn each_interval_counts_against_the_trace_at_its_own_place() {
        // Solo: 100 cycles for the first 100 instructions, then 400 for the next 100.
        let trace = Arc::new(SoloTrace::new(vec![(100, 1.0), (200, 0.25)]).unwrap());
        let mut progress = TraceProgress::new(trace, 5.0, 1);
        assert_eq!(progress.add(&sample(200, 100), 1.0, Q), Reading::Value(1.0));
        assert_eq!(
            (progress.earned(), progress.total()),
            (0.375, 5.375),
            "half as fast, for 150 of 200 ms"
        );
        // Half as many instructions in as many cycles, and yet without slowdown.
        assert_eq!(progress.add(&sample(200, 50), 1.0, Q), Reading::Value(0.25));
        assert_eq!(progress.earned(), 1.125);
        assert_eq!(progress.add(&sample(0, 0), 1.0, Q), Reading::Value(0.25));
        assert_eq!((progress.earned(), progress.is_whole()), (1.125, true));
        // At half the clock.
        progress.add(&sample(200, 50), 0.5, Q);
        assert_eq!(progress.earned(), 1.5);
    }

    #[test]
    fn after_a_gap_its_place_is_unknown_and_cpu_time_counts() {
        let trace = Arc::new(SoloTrace::new(vec![(100, 1.0)]).unwrap());
        let mut progress = TraceProgress::new(trace, 0.0, 1);
        let mut gap = sample(0, 0);
        gap.counts = Counts::absent(Absence::CountersLost);
        assert_eq!(
            progress.add(&gap, 1.0, Q),
            Reading::Absent(Absence::CountersLost)
        );
        assert_eq!(progress.earned(), 0.75);
        assert_eq!(
            progress.add(&sample(100, 100), 1.0, Q),
            Reading::Absent(Absence::CountersLost)
        );
        assert_eq!((progress.earned(), progress.is_whole()), (1.5, false));
    }
}
