//! The solo time of all work that a task has done, from the intervals in which it ran almost alone.
//!
//! Co-runners change a program's cycles, but hardly its loads, unless it spins while it waits. So the solo time of an
//! instruction is taken as a linear function of the loads per instruction, fitted to the measurements. A program with two
//! phases is then rated right also where an interval has both. The sum over all intervals needs only the total instructions
//! and loads, so work done before a measurement is rated by it as well (ours). Phases with equal loads per instruction can't
//! be told apart.
//!
//! Co-runners can only slow a measurement down, so those below the line count more than those above it.

use super::progress::{is_low_contention, used_time};
use crate::counter::Counter;
use crate::sample::Sample;
use crate::units::{Absence, Nanos};
use std::collections::VecDeque;

/// Number of measurements kept.
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
    /// Its CPU time.
    weight: f64,
}

/// Sums over all counted intervals, and the last measurements.
#[derive(Clone, Debug, Default)]
pub(super) struct SoloWork {
    instructions: f64,
    loads: f64,
    /// Nanoseconds of CPU time, counted and not.
    counted: f64,
    uncounted: f64,
    /// Whether loads were counted in all intervals.
    lacks_loads: bool,
    measured: VecDeque<Measured>,
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
        let time = used_time(sample, width).0 as f64;
        let Some(instructions) = sample.counts[Counter::Instructions].value() else {
            self.uncounted += time;
            return;
        };
        let loads = sample.counts[Counter::L1Accesses].value();
        self.lacks_loads |= loads.is_none();
        let (instructions, loads) = (instructions as f64, loads.unwrap_or(0) as f64);
        self.instructions += instructions;
        self.loads += loads;
        self.counted += time;
        if instructions > 0.0 && time > 0.0 && is_low_contention(sample, quantum) {
            if self.measured.len() == KEPT {
                self.measured.pop_front();
            }
            self.measured.push_back(Measured {
                loads: loads / instructions,
                time: time / instructions,
                weight: time,
            });
        }
    }

    /// The solo time of all work, in nanoseconds of CPU time; at most the CPU time.
    ///
    /// # Errors
    /// Nothing was measured, or not all phases were.
    pub(super) fn time(&self) -> Result<f64, Absence> {
        let line = self.line().ok_or(Absence::NoSoloEstimate)?;
        let loads = self.loads / self.instructions;
        if !self.lacks_loads && self.distance(loads) > BEYOND {
            return Err(Absence::PhaseNotMeasured);
        }
        let solo = (line.at(loads) * self.instructions).clamp(0.0, self.counted);
        let worth = if self.counted > 0.0 {
            solo / self.counted
        } else {
            1.0
        };
        Ok(solo + self.uncounted * worth)
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
    use super::super::progress::tests::sample;
    use super::*;
    use crate::placement::Purpose;
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
