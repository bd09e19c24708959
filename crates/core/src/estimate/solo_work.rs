//! The solo time of all work that a task has done, from the intervals in which it ran almost alone.
//!
//! Co-runners change a program's cycles, but hardly its loads, unless it spins while it waits. So the solo time of an
//! instruction is taken as a linear function of the loads per instruction, fitted to the measurements. A program with two
//! phases is then rated right also where an interval has both. The sum over all intervals needs only the total instructions
//! and loads, so work done before a measurement is rated by it as well (ours). Phases with equal loads per instruction can't
//! be told apart.
//!
//! Work that a task did while nothing else ran took its solo time, except in a planned measurement, which begins with cold caches.
//! Only the other work is rated by the measurements.
//!
//! Co-runners can only slow a measurement down, so those below the line count more than those above it. Where loads are not
//! counted, the line is the mean of all measurements.

use super::progress::{is_low_contention, own_wait, ran_alone, threads_at_once, used_time};
use crate::counter::Counter;
use crate::placement::Purpose;
use crate::sample::Sample;
use crate::units::{Absence, Nanos};

/// Maximum number of measurements kept. One more, and each two that followed each other become one: the last ones alone would tell
/// little of the work done before.
const KEPT: usize = 32;
/// Weight of a measurement above the line, relative to one below.
const ABOVE: f64 = 0.1;
/// Rounds of fitting with new weights.
const ROUNDS: usize = 8;
/// Relative differences of loads per instruction below this say nothing.
const SAME: f64 = 0.01;
/// Greatest relative distance of the mean of all work from the measurements. Beyond it, some phase was surely not measured;
/// within it, one may still be missing.
const BEYOND: f64 = 0.03;

/// A measurement in low contention.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Loads per instruction; 0 if they are not counted.
    loads: f64,
    /// Nanoseconds of CPU time per instruction.
    time: f64,
    /// Its instructions: a mean weighted by time would count slow phases twice.
    weight: f64,
}

impl Measured {
    /// Several measurements as one.
    fn mean(all: &[Measured]) -> Measured {
        let weight: f64 = all.iter().map(|one| one.weight).sum();
        let loads: f64 = all.iter().map(|one| one.weight * one.loads).sum();
        let time: f64 = all.iter().map(|one| one.weight * one.time).sum();
        Measured {
            loads: loads / weight,
            time: time / weight,
            weight,
        }
    }
}

/// Sums over all intervals, and the measurements. Counts and times are those of a thread: of all threads, divided by
/// those that ran at once.
#[derive(Clone, Debug, Default)]
pub(super) struct SoloWork {
    /// Of counted intervals beside others.
    instructions: f64,
    loads: f64,
    /// Nanoseconds of CPU time: in these, in counted intervals in which nothing else ran, and in those without counts.
    counted: f64,
    alone: f64,
    uncounted: f64,
    /// Nanoseconds in which a gang waited by itself.
    waited: f64,
    /// Whether loads were counted in all intervals.
    lacks_loads: bool,
    measured: Vec<Measured>,
}

/// A line: the time at the mean of the loads, and its slope.
#[derive(Clone, Copy)]
struct Line {
    mean: f64,
    time: f64,
    slope: f64,
}

impl Line {
    fn at(self, loads: f64) -> f64 {
        self.time + self.slope * (loads - self.mean)
    }
}

impl SoloWork {
    pub(super) fn add(&mut self, sample: &Sample, quantum: Nanos, width: u32) {
        let threads = threads_at_once(sample, width);
        let time = used_time(sample, width).0 as f64 / threads;
        self.waited += own_wait(sample, width).0 as f64;
        let Some(instructions) = sample.counts[Counter::Instructions].value() else {
            self.uncounted += time;
            return;
        };
        let loads = sample.counts[Counter::L1Accesses].value();
        self.lacks_loads |= loads.is_none();
        let instructions = instructions as f64 / threads;
        let loads = loads.unwrap_or(0) as f64 / threads;
        if instructions > 0.0 && time > 0.0 && is_low_contention(sample, quantum) {
            self.measure(Measured {
                loads: loads / instructions,
                time: time / instructions,
                weight: instructions,
            });
        }
        // A planned measurement begins with a cold cache: what it did is rated as any other work.
        if sample.purpose == Purpose::Run && ran_alone(sample, quantum) {
            self.alone += time;
            return;
        }
        self.instructions += instructions;
        self.loads += loads;
        self.counted += time;
    }

    fn measure(&mut self, measured: Measured) {
        if self.measured.len() == KEPT {
            let pairs = self.measured.chunks(2);
            self.measured = pairs.map(Measured::mean).collect();
        }
        self.measured.push(measured);
    }

    /// The solo time of all work in nanoseconds: at most the CPU time of a thread, and what it waited by itself.
    ///
    /// # Errors
    /// Nothing was measured, or not all phases were.
    pub(super) fn time(&self) -> Result<f64, Absence> {
        let line = self.line().ok_or(Absence::NoSoloEstimate)?;
        let solo = self.alone + self.time_of_others(line)?;
        let counted = self.alone + self.counted;
        let worth = if counted > 0.0 { solo / counted } else { 1.0 };
        Ok(solo + self.uncounted * worth + self.waited)
    }

    /// The solo time of the work done beside others.
    fn time_of_others(&self, line: Line) -> Result<f64, Absence> {
        if self.instructions == 0.0 {
            return Ok(0.0);
        }
        let loads = self.loads / self.instructions;
        if !self.lacks_loads && self.distance(loads) > BEYOND {
            return Err(Absence::PhaseNotMeasured);
        }
        Ok((line.at(loads) * self.instructions).clamp(0.0, self.counted))
    }

    /// The relative distance of these loads per instruction from the range of the measurements.
    fn distance(&self, loads: f64) -> f64 {
        let all = self.measured.iter().map(|one| one.loads);
        let least = all.clone().fold(f64::INFINITY, f64::min);
        let most = all.fold(0.0, f64::max);
        (least - loads).max(loads - most) / loads
    }

    /// The line through the measurements.
    fn line(&self) -> Option<Line> {
        let mut line = self.fit(|_| 1.0)?;
        if self.lacks_loads {
            // Nothing tells a slow phase from a disturbed measurement.
            return Some(line);
        }
        for _ in 0..ROUNDS {
            let last = line;
            let is_below = |one: &Measured| one.time < last.at(one.loads);
            line = self.fit(|one| if is_below(one) { 1.0 } else { ABOVE })?;
        }
        Some(line)
    }

    /// Least squares with these weights. The slope is 0 where loads hardly differ.
    fn fit(&self, weight: impl Fn(&Measured) -> f64) -> Option<Line> {
        let (mut weights, mut loads, mut times) = (0.0, 0.0, 0.0);
        for one in &self.measured {
            let w = one.weight * weight(one);
            weights += w;
            loads += w * one.loads;
            times += w * one.time;
        }
        if weights == 0.0 {
            return None;
        }
        let (mean, time) = (loads / weights, times / weights);
        let (mut xx, mut xy) = (weights * (SAME * mean) * (SAME * mean), 0.0);
        for one in &self.measured {
            let w = one.weight * weight(one);
            xx += w * (one.loads - mean) * (one.loads - mean);
            xy += w * (one.loads - mean) * (one.time - time);
        }
        let has_slope = xx > 0.0 && !self.lacks_loads;
        let slope = if has_slope { xy / xx } else { 0.0 };
        Some(Line { mean, time, slope })
    }
}

#[cfg(test)]
mod tests {
    use super::super::progress::tests::{of_gang, sample};
    use super::*;
    use crate::placement::Purpose;
    use crate::task::TaskId;
    use crate::units::Reading;

    const Q: Nanos = Nanos::from_ms(200);

    /// An interval of 200 ms: instructions per ns, loads per instruction.
    fn interval(rate: f64, loads: f64, purpose: Purpose) -> Sample {
        let mut sample = sample(200, 0, purpose);
        let instructions = rate * 200e6;
        sample.counts[Counter::Instructions] = Reading::Value(instructions as u64);
        sample.counts[Counter::L1Accesses] = Reading::Value((instructions * loads) as u64);
        sample
    }

    fn of(samples: &[Sample]) -> SoloWork {
        let mut work = SoloWork::default();
        samples.iter().for_each(|sample| work.add(sample, Q, 1));
        work
    }

    #[test]
    fn phases_are_rated_by_their_loads_also_where_they_are_mixed_and_before_they_are_measured() {
        let alone = Purpose::MeasureAlone;
        let work = of(&[
            // Half of the instructions are of each phase, at half of the solo speed.
            interval(1.0 / 3.0, 0.35, Purpose::Run),
            interval(2.0, 0.3, alone),
            interval(0.4, 0.4, alone),
        ]);
        // Alone, an instruction takes 0.5 ns in one phase and 2.5 ns in the other.
        let solo_ms = 200.0 / 3.0 * 1.5 + 400.0;
        let time_ms = work.time().unwrap() / 1e6;
        assert!(
            (time_ms / solo_ms - 1.0).abs() < 0.02,
            "{time_ms} {solo_ms}"
        );
    }

    #[test]
    fn a_disturbed_measurement_counts_less_than_a_calm_one() {
        let alone = Purpose::MeasureAlone;
        let work = of(&[
            interval(1.0, 0.3, alone),
            interval(0.5, 0.3, alone),
            interval(0.5, 0.3, Purpose::Run),
        ]);
        let per_instruction = work.time().unwrap() / work.instructions;
        assert!((1.0..1.2).contains(&per_instruction), "{per_instruction}");
    }

    #[test]
    fn work_alone_took_its_own_time_whatever_was_measured_last() {
        let mut samples = Vec::new();
        for n in 0..100 {
            let mut alone = interval(if n < 60 { 0.2 } else { 1.0 }, 0.3, Purpose::Run);
            alone.co_runners = [TaskId(0)].into();
            samples.push(alone);
        }
        assert_eq!(of(&samples).time(), Ok(100.0 * 200e6));
        assert!(of(&samples).measured.len() <= KEPT);
    }

    #[test]
    fn without_loads_the_mean_speed_is_that_of_all_work() {
        let alone = Purpose::MeasureAlone;
        let mut samples = vec![
            interval(0.2, 0.0, alone),
            interval(1.0, 0.0, alone),
            // The same work beside others, in twice the time.
            interval(0.1, 0.0, Purpose::Run),
            interval(0.1, 0.0, Purpose::Run),
            interval(0.5, 0.0, Purpose::Run),
            interval(0.5, 0.0, Purpose::Run),
        ];
        for sample in &mut samples {
            sample.counts[Counter::L1Accesses] = Reading::Absent(Absence::NoSuchEvent);
        }
        let time_ms = of(&samples).time().unwrap() / 1e6;
        assert!((time_ms - 800.0).abs() < 1e-3, "{time_ms}");
    }

    #[test]
    fn a_gang_with_one_busy_thread_takes_the_time_of_that_thread() {
        let mut work = SoloWork::default();
        for sample in [
            of_gang(8.0, 1.0, Purpose::MeasureAlone),
            of_gang(1.0, 0.5, Purpose::Run),
        ] {
            work.add(&sample, Q, 8);
        }
        assert_eq!(work.time(), Ok(300e6));
    }

    #[test]
    fn without_measurement_nothing_is_known() {
        let work = of(&[interval(1.0, 0.3, Purpose::Run)]);
        assert_eq!(work.time(), Err(Absence::NoSoloEstimate));
    }

    #[test]
    fn a_phase_that_was_never_measured_is_not_guessed() {
        let work = of(&[
            interval(0.4, 0.4, Purpose::Run),
            interval(2.0, 0.3, Purpose::MeasureAlone),
        ]);
        assert_eq!(work.time(), Err(Absence::PhaseNotMeasured));
    }
}
