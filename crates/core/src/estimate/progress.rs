//! Progress: the solo execution that a task has done (Perf&Fair, Eq. 1).
//!
//! Each interval adds instructions / solo instructions per second, in quanta. At one clock that is Eq. 1: the sum of
//! measured IPC / solo IPC over the executed quanta. Unlike Eq. 1 it stays correct where the kernel time-shares, where
//! the clock changes, and where cores differ. The solo rate, per CPU time, is from the last interval in which the task
//! ran in low contention.
//!
//! The threads of a gang wait for each other: while one of them prepares the work of all, the others use no CPU. So on cores of
//! its own a gang counts by the time in which a thread ran, not by its CPU time for each CPU (ours). There the time in which none
//! ran was a wait of its own, for a disk for example, and counts in full.
//!
//! An interval is worth at most its own CPU time (ours). Otherwise a task with phases of different IPC would be
//! credited with many times its work when a slow phase was measured alone. The paper's rule of one quantum of distance
//! relies on this too. Work before the first solo rate is rated once that rate is known, under the same bound; until
//! then it counts as if without slowdown.

use crate::counter::Counter;
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::snapshot::ProgressBasis;
use crate::units::{Absence, Nanos, Reading};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(super) struct ProgressEstimator {
    start: f64,
    /// CPUs that the task needs at once.
    width: u32,
    /// Solo execution in quanta, rated against the solo rate.
    done: f64,
    /// Quanta of CPU time in which that was done.
    rated: f64,
    /// Quanta of CPU time in which nothing was counted.
    uncounted: f64,
    /// Quanta in which it waited for neither a CPU nor a co-runner.
    waited: f64,
    unrated: Unrated,
    solo: Option<Solo>,
    age: f64,
    /// Why the last interval was not rated, if so.
    absence: Option<Absence>,
}

/// Solo rates of a task.
#[derive(Clone, Copy, Debug)]
struct Solo {
    /// Instructions per nanosecond of CPU time.
    rate: f64,
    /// Instructions per cycle; absent where cycles could not be counted.
    ipc: Reading<f64>,
}

/// Work before the first solo rate: sums over intervals with nearly the same instructions per CPU time. So each class
/// can be bounded by itself, and memory stays small.
#[derive(Clone, Debug, Default)]
struct Unrated {
    /// Keyed by the leading bits of the rate, 16 classes per octave: instructions per nanosecond x quanta, and quanta
    /// of CPU time.
    classes: BTreeMap<u64, (f64, f64)>,
    quanta: f64,
}

impl Unrated {
    fn add(&mut self, rate: f64, quanta: f64) {
        let class = self.classes.entry(rate.to_bits() >> 48).or_default();
        class.0 += rate * quanta;
        class.1 += quanta;
        self.quanta += quanta;
    }

    /// The solo execution of this work at a solo rate, in quanta.
    fn worth(&self, solo_rate: f64) -> f64 {
        self.classes
            .values()
            .map(|(work, quanta)| (work / solo_rate).min(*quanta))
            .sum()
    }
}

impl ProgressEstimator {
    /// The progress of a task of `width` CPUs that starts at `start` quanta.
    pub(super) fn new(start: f64, width: u32) -> ProgressEstimator {
        ProgressEstimator {
            start,
            width,
            done: 0.0,
            rated: 0.0,
            uncounted: 0.0,
            waited: 0.0,
            unrated: Unrated::default(),
            solo: None,
            age: 0.0,
            absence: None,
        }
    }

    pub(super) fn add(&mut self, sample: &Sample, quantum: Nanos) {
        self.age += run_quanta(sample, quantum);
        let used = used_quanta(sample, quantum, self.width);
        self.waited += own_wait(sample, self.width).share_of(quantum);
        match sample.counts[Counter::Instructions] {
            // Without CPU time there is no progress, and that is certain.
            Reading::Value(_) if used == 0.0 => {}
            Reading::Value(instructions) => {
                self.absence = None;
                let rate = instructions as f64 / used_time(sample, self.width).0 as f64;
                if is_low_contention(sample, quantum) && rate > 0.0 {
                    self.set_solo(Solo {
                        rate,
                        ipc: sample.counts.ipc(),
                    });
                }
                match self.solo {
                    Some(solo) => {
                        self.done += (rate / solo.rate).min(1.0) * used;
                        self.rated += used;
                    }
                    None => self.unrated.add(rate, used),
                }
            }
            Reading::Absent(why) => {
                self.absence = Some(why);
                self.uncounted += used;
            }
        }
    }

    fn set_solo(&mut self, solo: Solo) {
        self.solo = Some(solo);
        self.age = 0.0;
        let unrated = std::mem::take(&mut self.unrated);
        self.done += unrated.worth(solo.rate);
        self.rated += unrated.quanta;
    }

    /// Solo execution in quanta. Time in which nothing was counted is worth as much as the rated time on average; without
    /// any rated time it counts as if without slowdown.
    pub(super) fn earned(&self) -> f64 {
        let worth = match self.rated > 0.0 {
            true => self.done / self.rated,
            false => 1.0,
        };
        self.done + self.unrated.quanta + self.uncounted * worth + self.waited
    }

    pub(super) fn total(&self) -> f64 {
        self.start + self.earned()
    }

    /// The solo IPC, or why it is absent: no measurement in low contention yet, or the last interval was not counted.
    pub(super) fn solo_ipc(&self) -> Reading<f64> {
        match self.solo {
            Some(solo) => solo.ipc,
            None => Reading::Absent(self.absence.unwrap_or(Absence::NoSoloEstimate)),
        }
    }

    pub(super) fn solo_age(&self) -> u32 {
        self.age as u32
    }

    pub(super) fn basis(&self) -> ProgressBasis {
        // The uncounted part may be a gap in a long run, or the whole run.
        if self.uncounted > self.rated + self.unrated.quanta {
            ProgressBasis::CpuTime
        } else if self.solo.is_some() {
            ProgressBasis::Ipc
        } else {
            ProgressBasis::Provisional
        }
    }
}

/// The length of an interval in quanta.
pub(super) fn run_quanta(sample: &Sample, quantum: Nanos) -> f64 {
    sample.interval.share_of(quantum)
}

/// The CPU time of an interval in quanta, for each of the threads that ran at once; if unknown, its length.
pub(super) fn used_quanta(sample: &Sample, quantum: Nanos, width: u32) -> f64 {
    let quanta = run_quanta(sample, quantum);
    match sample.cpu_time {
        Reading::Value(cpu_time) => {
            (cpu_time.share_of(quantum) / threads_at_once(sample, width)).min(quanta)
        }
        Reading::Absent(_) => quanta,
    }
}

/// The threads of a task that ran at once, while one ran. A gang whose CPUs others may use as well may have waited for these, so
/// all of its threads count.
pub(super) fn threads_at_once(sample: &Sample, width: u32) -> f64 {
    let most = f64::from(width.max(1));
    match sample.cpu_time {
        Reading::Value(cpu_time) if is_gang_on_own_cores(sample, width) => {
            cpu_time.share_of(sample.interval).clamp(1.0, most)
        }
        _ => most,
    }
}

/// The time in which no thread of a gang ran although its cores were its own; zero where that is not known.
pub(super) fn own_wait(sample: &Sample, width: u32) -> Nanos {
    match sample.cpu_time {
        Reading::Value(cpu_time) if is_gang_on_own_cores(sample, width) => {
            sample.interval.since(cpu_time)
        }
        _ => Nanos::ZERO,
    }
}

fn is_gang_on_own_cores(sample: &Sample, width: u32) -> bool {
    let has_its_cpus = sample.cpus.len() == width as usize && !sample.observed;
    width > 1 && has_its_cpus && sample.whole_core
}

/// The CPU time of an interval, summed over all CPUs; if unknown, its length x `width`.
pub(super) fn used_time(sample: &Sample, width: u32) -> Nanos {
    match sample.cpu_time {
        Reading::Value(cpu_time) => cpu_time,
        Reading::Absent(_) => Nanos(sample.interval.0.saturating_mul(u64::from(width.max(1)))),
    }
}

/// Whether the interval is a solo measurement: the task had whole cores, no ordinary task joined, and the interval was
/// planned as a measurement or nothing else ran. A planned measurement must have lasted for half of its plan, any other
/// interval for a quarter of a quantum.
pub(super) fn is_low_contention(sample: &Sample, quantum: Nanos) -> bool {
    let is_arranged =
        sample.purpose == Purpose::MeasureAlone && sample.interval.0 * 2 >= sample.planned.0;
    let is_arranged = is_arranged && sample.whole_core && !sample.disturbed;
    is_arranged || ran_alone(sample, quantum)
}

/// Whether nothing else ran in an interval of at least a quarter of a quantum.
pub(super) fn ran_alone(sample: &Sample, quantum: Nanos) -> bool {
    let is_alone = sample.co_runners.len() <= 1 && sample.interval.0 * 4 >= quantum.0;
    is_alone && sample.whole_core && !sample.disturbed
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::sample::{Counts, Usage};
    use crate::task::TaskId;
    use crate::traffic::TrafficRates;

    const Q: Nanos = Nanos::from_ms(200);

    pub(in super::super) fn sample(ms: u64, ipc_milli: u64, purpose: Purpose) -> Sample {
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
            traffic: TrafficRates::absent(Absence::NotRequested),
            device_time: crate::device::DeviceTime::not_requested(),
            observed: false,
        }
    }

    #[test]
    fn quanta_before_the_first_estimate_are_rated_by_it() {
        let mut progress = ProgressEstimator::new(0.0, 1);
        progress.add(&sample(200, 500, Purpose::Run), Q);
        assert_eq!(
            (progress.total(), progress.basis()),
            (1.0, ProgressBasis::Provisional)
        );
        progress.add(&sample(100, 1_000, Purpose::MeasureAlone), Q);
        assert_eq!(progress.total(), 0.5 + 0.5);
        assert_eq!(progress.basis(), ProgressBasis::Ipc);
        progress.add(&sample(200, 250, Purpose::Run), Q);
        assert_eq!(progress.total(), 1.25);
        assert_eq!(progress.solo_age(), 1);
    }

    /// A sample of a gang of eight on its own cores: its threads that ran, and instructions per CPU time.
    pub(in super::super) fn of_gang(threads: f64, rate: f64, purpose: Purpose) -> Sample {
        let mut sample = sample(200, 0, purpose);
        let cpu_time = Nanos((threads * Q.0 as f64) as u64);
        sample.cpus = "0-7".parse().unwrap();
        sample.cpu_time = Reading::Value(cpu_time);
        sample.counts[Counter::Cycles] = Reading::Value(cpu_time.0);
        sample.counts[Counter::Instructions] = Reading::Value((cpu_time.0 as f64 * rate) as u64);
        sample
    }

    #[test]
    fn a_gang_counts_by_the_time_in_which_a_thread_of_it_ran() {
        let of = |threads: f64, rate: f64| {
            let mut progress = ProgressEstimator::new(0.0, 8);
            progress.add(&of_gang(8.0, 1.0, Purpose::MeasureAlone), Q);
            progress.add(&of_gang(threads, rate, Purpose::Run), Q);
            progress.total() - 1.0
        };
        assert_eq!((of(8.0, 0.5), of(1.0, 0.5), of(1.0, 1.0)), (0.5, 0.5, 1.0));
        // Half of the time it waited for a disk.
        assert_eq!(of(0.5, 0.5), 0.75);
        // It may have waited for others, where they use its cores as well.
        let mut shared = of_gang(1.0, 1.0, Purpose::Run);
        shared.whole_core = false;
        assert_eq!(used_quanta(&shared, Q, 8), 0.125);
    }

    #[test]
    fn a_spoiled_or_too_short_measurement_is_no_estimate() {
        let mut disturbed = sample(100, 1_000, Purpose::MeasureAlone);
        disturbed.disturbed = true;
        let mut shared = sample(100, 1_000, Purpose::MeasureAlone);
        shared.whole_core = false;
        for bad in [
            disturbed,
            shared,
            sample(49, 1_000, Purpose::MeasureAlone),
            sample(200, 1_000, Purpose::Run),
        ] {
            let mut progress = ProgressEstimator::new(0.0, 1);
            progress.add(&bad, Q);
            assert_eq!(
                progress.solo_ipc(),
                Reading::Absent(Absence::NoSoloEstimate)
            );
        }
    }

    #[test]
    fn without_counters_cpu_time_counts() {
        let mut progress = ProgressEstimator::new(3.0, 1);
        let mut sample = sample(200, 0, Purpose::Run);
        sample.counts = Counts::absent(Absence::NoCounters);
        sample.cpu_time = Reading::Value(Nanos::from_ms(150));
        progress.add(&sample, Q);
        assert_eq!((progress.total(), progress.earned()), (3.75, 0.75));
        assert_eq!(progress.basis(), ProgressBasis::CpuTime);
        assert_eq!(progress.solo_ipc(), Reading::Absent(Absence::NoCounters));
    }

    #[test]
    fn an_interval_is_worth_at_most_its_own_time() {
        let mut progress = ProgressEstimator::new(0.0, 1);
        // Two phases with IPCs of 20 to 1; the slow one is measured alone.
        for ipc in [2_000, 100, 2_000] {
            progress.add(&sample(200, ipc, Purpose::Run), Q);
        }
        progress.add(&sample(200, 100, Purpose::MeasureAlone), Q);
        assert_eq!(
            progress.total(),
            4.0,
            "undisturbed all the time, and no more than that"
        );
        progress.add(&sample(200, 2_000, Purpose::Run), Q);
        assert_eq!(progress.total(), 5.0);
        // A slowdown in the slow phase.
        progress.add(&sample(200, 25, Purpose::Run), Q);
        assert_eq!(progress.total(), 5.25);
    }

    #[test]
    fn where_the_kernel_time_shares_only_what_was_executed_counts() {
        // Half of the CPU at solo speed: half a quantum of progress.
        let mut shared = sample(200, 500, Purpose::Run);
        shared.cpu_time = Reading::Value(Nanos::from_ms(100));
        shared.cpus = "0-11".parse().unwrap();
        let mut progress = ProgressEstimator::new(0.0, 1);
        progress.add(&sample(200, 1_000, Purpose::MeasureAlone), Q);
        progress.add(&shared, Q);
        assert_eq!(progress.total(), 1.5);
        // The same without counters, whatever the mask.
        shared.counts = Counts::absent(Absence::NoCounters);
        let mut uncounted = ProgressEstimator::new(0.0, 1);
        uncounted.add(&shared, Q);
        assert_eq!(uncounted.total(), 0.5);
        // A gang of two with the CPU time of one CPU.
        let mut gang = ProgressEstimator::new(0.0, 2);
        gang.add(&shared, Q);
        assert_eq!(gang.total(), 0.25);
    }

    #[test]
    fn a_glitch_of_the_counters_is_forgotten() {
        let mut progress = ProgressEstimator::new(0.0, 1);
        let mut glitch = sample(200, 1_000, Purpose::Run);
        glitch.counts[Counter::Instructions] = Reading::Absent(Absence::WentBackwards);
        progress.add(&glitch, Q);
        assert_eq!(progress.solo_ipc(), Reading::Absent(Absence::WentBackwards));
        progress.add(&sample(200, 500, Purpose::Run), Q);
        assert_eq!(
            progress.solo_ipc(),
            Reading::Absent(Absence::NoSoloEstimate),
            "it can be measured again"
        );
        progress.add(&sample(200, 1_000, Purpose::MeasureAlone), Q);
        progress.add(&sample(200, 1_000, Purpose::Run), Q);
        assert_eq!(
            (progress.total(), progress.basis()),
            (2.5 + 2.5 / 3.0, ProgressBasis::Ipc),
            "the glitch is worth as much as the rest on average"
        );
    }

    #[test]
    fn a_short_measurement_counts_when_it_was_meant_to_be_short() {
        let mut short = sample(10, 1_000, Purpose::MeasureAlone);
        short.planned = Nanos::from_ms(10);
        let mut progress = ProgressEstimator::new(0.0, 1);
        progress.add(&short, Q);
        assert_eq!(progress.solo_ipc(), Reading::Value(1.0));
        // Cut to less than half, it does not count.
        short.interval = Nanos::from_ms(4);
        let mut progress = ProgressEstimator::new(0.0, 1);
        progress.add(&short, Q);
        assert!(!progress.solo_ipc().is_value());
    }
}
