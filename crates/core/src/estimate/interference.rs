//! Who slows whom, learnt from the times of earlier runs alone: no counters.
//!
//! The logarithm of a run's time is
//!
//! ```text
//! alone + sensitivity x (the sum over all neighbours of share x pressure)
//! ```
//!
//! `alone` belongs to the command that ran, `sensitivity` to its program, and `pressure` to the programs beside it (the
//! terms are those of Mars et al., "Bubble-Up", MICRO 2011). `share` is the share of the run's time for which each was
//! there. One product for each pair is much less to learn than a table of pairs: of 18 real programs some five runs each
//! suffice (`results/pairs-measured.md`). Ours.
//!
//! The model is fitted by Gauss-Newton steps to the most probable values. A new program is average by the prior. The matrix
//! of the last step gives the variances. `alone` is the mean of what the rest leaves of a command's runs, so it is
//! no unknown of the matrix.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a program fares beside others, and they beside it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interference {
    /// How much more than the average program it is slowed by the same neighbours, at least 0; 1 is average.
    pub sensitivity: f64,
    /// The logarithm by which it slows an average program.
    pub pressure: f64,
    /// The standard deviation of the sensitivity.
    pub sensitivity_sd: f64,
    /// The standard deviation of the pressure.
    pub pressure_sd: f64,
}

impl Interference {
    /// A program of which nothing is known.
    pub(crate) const AVERAGE: Interference = Interference {
        sensitivity: SENSITIVITY.0,
        pressure: PRESSURE.0,
        sensitivity_sd: SENSITIVITY.1,
        pressure_sd: PRESSURE.1,
    };
}

/// A run of a command beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct NeighbouredRun {
    /// The index of the command.
    pub command: usize,
    /// The index of its program.
    pub program: usize,
    /// The time that it took in seconds, greater than 0.
    pub time_s: f64,
    /// The indices of the programs beside it, each with the sum of their shares of its time.
    pub beside: Vec<(usize, f64)>,
}

/// The prior of the sensitivity: mean and standard deviation. The mean sets the unit of the pressure.
const SENSITIVITY: (f64, f64) = (1.0, 0.7);
/// Greatest sensitivity in a step of the fit.
const MOST_SENSITIVE: f64 = 5.0;
/// The prior of the pressure.
const PRESSURE: (f64, f64) = (0.1, 0.1);
/// The standard deviation of equal runs before any is known, and for how many runs that counts.
const NOISE: (f64, f64) = (0.03, 10.0);
/// The least standard deviation of equal runs.
const LEAST_NOISE: f64 = 0.003;
/// A run further from its prediction than this many standard deviations counts for less.
const FAR: f64 = 2.5;
/// Error of the model itself, as a share of each predicted slowdown. Without it the intervals are too narrow.
pub(crate) const MISFIT: f64 = 0.3;
/// Steps of the fit; the first ones are halved.
const STEPS: usize = 12;
const HALVED: usize = 3;
/// The parameters of a program: its sensitivity and its pressure.
const EACH: usize = 2;

/// What so many runs tell of so many programs, by the model that fits them best.
pub fn interferences(programs: usize, runs: &[NeighbouredRun]) -> Vec<Interference> {
    let mut fit = Fit::new(programs, runs);
    for step in 0..STEPS {
        fit.step(if step < HALVED { 0.5 } else { 1.0 });
    }
    (0..programs).map(|program| fit.program(program)).collect()
}

struct Fit<'a> {
    /// The runs of each command.
    commands: Vec<Vec<&'a NeighbouredRun>>,
    values: Vec<f64>,
    variances: Vec<f64>,
    noise: f64,
}

impl<'a> Fit<'a> {
    fn new(programs: usize, runs: &'a [NeighbouredRun]) -> Fit<'a> {
        let mut commands: BTreeMap<usize, Vec<&NeighbouredRun>> = BTreeMap::new();
        for run in runs {
            commands.entry(run.command).or_default().push(run);
        }
        let values = [SENSITIVITY.0, PRESSURE.0].repeat(programs);
        Fit {
            commands: commands.into_values().collect(),
            variances: vec![0.0; values.len()],
            values,
            noise: NOISE.0,
        }
    }

    /// One Gauss-Newton step.
    fn step(&mut self, length: f64) {
        let mut system = System::of_priors(&self.values);
        let mut squares = 0.0;
        for runs in &self.commands {
            let alone = self.alone(runs);
            let mut rows = Vec::new();
            for run in runs {
                let error = self.without_neighbours(run) - alone;
                let far = FAR * self.noise / error.abs();
                let weight = far.min(1.0) / (self.noise * self.noise);
                rows.push((weight, error, self.slopes(run)));
                squares += error * error;
            }
            system.add_command(rows);
        }
        let (change, variances) = system.solve();
        for (ix, value) in self.values.iter_mut().enumerate() {
            *value += length * change[ix];
            if ix % EACH == 0 {
                *value = value.clamp(0.0, MOST_SENSITIVE);
            }
        }
        self.variances = variances;
        self.noise = self.noise_of(squares);
    }

    /// The logarithm of a command's time alone.
    fn alone(&self, runs: &[&NeighbouredRun]) -> f64 {
        let logs = runs.iter().map(|run| self.without_neighbours(run));
        logs.sum::<f64>() / runs.len() as f64
    }

    /// The logarithm of a run's time, less its predicted slowdown.
    fn without_neighbours(&self, run: &NeighbouredRun) -> f64 {
        libm::log(run.time_s) - self.values[EACH * run.program] * self.pressure(run)
    }

    fn pressure(&self, run: &NeighbouredRun) -> f64 {
        let beside = run.beside.iter();
        beside
            .map(|&(program, share)| share * self.values[EACH * program + 1])
            .sum()
    }

    /// The slopes of a run's prediction by each parameter.
    fn slopes(&self, run: &NeighbouredRun) -> Vec<f64> {
        let mut slopes = vec![0.0; self.values.len()];
        slopes[EACH * run.program] = self.pressure(run);
        let sensitivity = self.values[EACH * run.program];
        for &(program, share) in &run.beside {
            slopes[EACH * program + 1] += share * sensitivity;
        }
        slopes
    }

    fn noise_of(&self, squares: f64) -> f64 {
        let (sd, count) = NOISE;
        let known = self.values.len() / EACH + self.commands.len();
        let runs = self.commands.iter().map(Vec::len).sum::<usize>();
        let free = runs.saturating_sub(known) as f64;
        let variance = (squares + count * sd * sd) / (free + count);
        variance.sqrt().max(LEAST_NOISE)
    }

    fn program(&self, program: usize) -> Interference {
        let first = EACH * program;
        Interference {
            sensitivity: self.values[first],
            pressure: self.values[first + 1],
            sensitivity_sd: self.variances[first].sqrt(),
            pressure_sd: self.variances[first + 1].sqrt(),
        }
    }
}

/// A run in a step: its weight, its error, and its slopes by each parameter.
type Row = (f64, f64, Vec<f64>);

/// The normal equations of a step.
struct System {
    matrix: Vec<Vec<f64>>,
    right: Vec<f64>,
}

impl System {
    fn of_priors(values: &[f64]) -> System {
        let mut matrix = vec![vec![0.0; values.len()]; values.len()];
        let mut right = vec![0.0; values.len()];
        for (ix, value) in values.iter().enumerate() {
            let (mean, sd) = if ix % EACH == 0 {
                SENSITIVITY
            } else {
                PRESSURE
            };
            matrix[ix][ix] = 1.0 / (sd * sd);
            right[ix] = (mean - value) / (sd * sd);
        }
        System { matrix, right }
    }

    /// Adds the runs of a command. What they have in common is its time alone, so only differences from their mean tell.
    fn add_command(&mut self, mut rows: Vec<Row>) {
        let all: f64 = rows.iter().map(|(weight, ..)| weight).sum();
        let mean_error = rows
            .iter()
            .map(|(weight, error, _)| weight / all * error)
            .sum::<f64>();
        let mut mean = vec![0.0; self.right.len()];
        for (weight, _, slopes) in &rows {
            for (mean, slope) in mean.iter_mut().zip(slopes) {
                *mean += weight / all * slope;
            }
        }
        for (weight, error, slopes) in &mut rows {
            for (slope, mean) in slopes.iter_mut().zip(&mean) {
                *slope -= mean;
            }
            self.add(slopes, *error - mean_error, *weight);
        }
    }

    fn add(&mut self, slopes: &[f64], error: f64, weight: f64) {
        let steep = |(ix, slope): (usize, &f64)| (*slope != 0.0).then_some((ix, *slope));
        let slopes: Vec<(usize, f64)> = slopes.iter().enumerate().filter_map(steep).collect();
        for &(row, slope) in &slopes {
            self.right[row] += weight * slope * error;
            for &(column, other) in &slopes {
                self.matrix[row][column] += weight * slope * other;
            }
        }
    }

    /// The solution, and the diagonal of the inverse.
    fn solve(self) -> (Vec<f64>, Vec<f64>) {
        let inverse = inverted(self.matrix);
        let change = inverse.iter().map(|row| dot(row, &self.right)).collect();
        let variances = (0..inverse.len()).map(|ix| inverse[ix][ix]).collect();
        (change, variances)
    }
}

/// The inverse of a symmetric, positive definite matrix, by Gauss and Jordan: it needs no pivots.
fn inverted(mut matrix: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for pivot in 0..matrix.len() {
        let mut own = std::mem::take(&mut matrix[pivot]);
        let by = 1.0 / std::mem::replace(&mut own[pivot], 1.0);
        own.iter_mut().for_each(|value| *value *= by);
        for row in matrix.iter_mut().filter(|row| !row.is_empty()) {
            let times = std::mem::replace(&mut row[pivot], 0.0);
            for (value, other) in row.iter_mut().zip(&own) {
                *value -= times * other;
            }
        }
        matrix[pivot] = own;
    }
    matrix
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// Sensitivity and pressure of some programs; the last two are as they are by the prior.
    const TRUTH: [(f64, f64); 6] = [
        (0.1, 0.02),
        (0.5, 0.3),
        (1.5, 0.05),
        (2.0, 0.25),
        SENSITIVITY_AND_PRESSURE,
        SENSITIVITY_AND_PRESSURE,
    ];
    const SENSITIVITY_AND_PRESSURE: (f64, f64) = (SENSITIVITY.0, PRESSURE.0);

    fn uniform(lots: &mut Rng) -> f64 {
        lots.below(1 << 30) as f64 / f64::from(1 << 30)
    }

    /// So many runs of two commands of each program, each run beside two others, with times off by up to 2 %.
    fn runs(count: usize, seed: u64) -> Vec<NeighbouredRun> {
        let mut lots = Rng::new(seed);
        let mut runs = Vec::new();
        for command in 0..2 * TRUTH.len() {
            let program = command / 2;
            for _ in 0..count {
                let other =
                    |lots: &mut Rng| (lots.below(TRUTH.len() as u64) as usize, uniform(lots));
                let beside = vec![other(&mut lots), other(&mut lots)];
                let pressure: f64 = beside
                    .iter()
                    .map(|&(other, share)| share * TRUTH[other].1)
                    .sum();
                let noise = 0.04 * (uniform(&mut lots) - 0.5);
                let alone = 3.0 + command as f64;
                let time_s = alone * libm::exp(TRUTH[program].0 * pressure + noise);
                runs.push(NeighbouredRun {
                    command,
                    program,
                    time_s,
                    beside,
                });
            }
        }
        runs
    }

    /// The logarithm of a command's time alone by the model.
    fn mean_alone(fitted: &[Interference], runs: &[NeighbouredRun]) -> f64 {
        let alone = runs.iter().map(|run| {
            let beside = run.beside.iter();
            let pressures = beside.map(|&(other, share)| share * fitted[other].pressure);
            libm::log(run.time_s) - fitted[run.program].sensitivity * pressures.sum::<f64>()
        });
        alone.sum::<f64>() / runs.len() as f64
    }

    #[test]
    fn runs_show_each_program_and_the_deviation_shows_what_they_do_not() {
        let (mut within, mut all) = (0, 0);
        for (count, most_off, alone_off) in
            [(1, f64::INFINITY, 1.0), (5, 0.12, 0.5), (60, 0.05, 0.15)]
        {
            for seed in 0..10 {
                let runs = runs(count, seed);
                let fitted = interferences(TRUTH.len(), &runs);
                for (one, &(sensitivity, pressure)) in fitted.iter().zip(&TRUTH) {
                    let off = (one.pressure - pressure).abs();
                    assert!(off < most_off, "{count} {one:?} {pressure}");
                    let sensitive = (one.sensitivity - sensitivity).abs();
                    within += usize::from(sensitive < 1.64 * one.sensitivity_sd);
                    within += usize::from(off < 1.64 * one.pressure_sd);
                    all += 2;
                }
                for runs in runs.chunks(count) {
                    let alone = mean_alone(&fitted, runs);
                    let off = (alone - libm::log(3.0 + runs[0].command as f64)).abs();
                    assert!(off < alone_off, "{count} {} {off}", runs[0].command);
                }
            }
        }
        assert!(within * 100 > all * 85, "{within} of {all}");
        assert_eq!(interferences(0, &[]), []);
    }
}
