//! Who slows whom, learnt from the times of earlier runs alone: no counters.
//!
//! The logarithm of a run's time is
//!
//! ```text
//! alone + the sum over all neighbours of share x (
//!     sensitivity x neighbour's pressure + (own pressure - 0.05) x neighbour's bandwidth pressure)
//! ```
//!
//! `alone` belongs to the command that ran, `sensitivity` to its program, and `pressure` to the programs beside it (the
//! terms are those of Mars et al., "Bubble-Up", MICRO 2011). `share` is the share of the run's time for which each was
//! there. Two products for each pair are much less to learn than a table of pairs: of 18 real programs some seven runs each
//! suffice (`results/pairs-measured.md`). Ours.
//!
//! The second product tells bandwidth from cache. A program that reuses its lines suffers from each neighbour that fills
//! the cache. A program that streams suffers most from neighbours that stream, too. It presses on others itself. So its
//! own pressure stands for its need of bandwidth.
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
    /// Further slowdown of programs that press on memory themselves.
    ///
    /// A logarithm per unit of their own pressure beyond 0.05. Below 0 if it takes cache rather than bandwidth.
    #[serde(default)]
    pub bandwidth_pressure: f64,
    /// The standard deviation of the sensitivity.
    pub sensitivity_sd: f64,
    /// The standard deviation of the pressure.
    pub pressure_sd: f64,
    /// The standard deviation of the bandwidth pressure.
    #[serde(default)]
    pub bandwidth_pressure_sd: f64,
}

impl Interference {
    /// A program of which nothing is known.
    pub(crate) const AVERAGE: Interference = Interference {
        sensitivity: SENSITIVITY.0,
        pressure: PRESSURE.0,
        bandwidth_pressure: BANDWIDTH_PRESSURE.0,
        sensitivity_sd: SENSITIVITY.1,
        pressure_sd: PRESSURE.1,
        bandwidth_pressure_sd: BANDWIDTH_PRESSURE.1,
    };

    /// The logarithm of its slowdown beside another program.
    pub fn slowdown_beside(&self, other: &Interference) -> f64 {
        self.sensitivity * other.pressure + self.pressure_beyond_mild() * other.bandwidth_pressure
    }

    /// Its need of bandwidth, as its own pressure shows it.
    pub fn pressure_beyond_mild(&self) -> f64 {
        self.pressure - MILD_PRESSURE
    }
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
/// The prior of the bandwidth pressure.
const BANDWIDTH_PRESSURE: (f64, f64) = (0.0, 0.1);
/// The pressure of a program to which bandwidth pressure makes no difference.
const MILD_PRESSURE: f64 = 0.05;
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
/// The correlation of sensitivity and pressure by the prior. A program that uses caches and memory suffers and disturbs.
const CORRELATION: f64 = 0.5;
/// The priors of the parameters of a program, in their order.
const PRIORS: [(f64, f64); EACH] = [SENSITIVITY, PRESSURE, BANDWIDTH_PRESSURE];
/// The number of parameters of a program.
const EACH: usize = 3;

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
        let values = PRIORS.map(|(mean, _)| mean).repeat(programs);
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
        let own = self.program(run.program);
        let beside = run.beside.iter();
        let slowdown: f64 = beside
            .map(|&(other, share)| share * own.slowdown_beside(&self.program(other)))
            .sum();
        libm::log(run.time_s) - slowdown
    }

    /// The slopes of a run's prediction by each parameter.
    fn slopes(&self, run: &NeighbouredRun) -> Vec<f64> {
        let mut slopes = vec![0.0; self.values.len()];
        let own = self.program(run.program);
        let [sensitivity, pressure, _] = parameters_of(run.program);
        for &(program, share) in &run.beside {
            let other = self.program(program);
            slopes[sensitivity] += share * other.pressure;
            slopes[pressure] += share * other.bandwidth_pressure;
            let [_, pressure, bandwidth_pressure] = parameters_of(program);
            slopes[pressure] += share * own.sensitivity;
            slopes[bandwidth_pressure] += share * own.pressure_beyond_mild();
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
        let [value, sd] = [&self.values, &self.variances]
            .map(|all| parameters_of(program).map(|parameter| all[parameter]));
        Interference {
            sensitivity: value[0],
            pressure: value[1],
            bandwidth_pressure: value[2],
            sensitivity_sd: sd[0].sqrt(),
            pressure_sd: sd[1].sqrt(),
            bandwidth_pressure_sd: sd[2].sqrt(),
        }
    }
}

/// The indices of a program's parameters.
fn parameters_of(program: usize) -> [usize; EACH] {
    [0, 1, 2].map(|parameter| EACH * program + parameter)
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
        let precision = prior_precision();
        let mut matrix = vec![vec![0.0; values.len()]; values.len()];
        let mut right = vec![0.0; values.len()];
        for program in 0..values.len() / EACH {
            let parameters = parameters_of(program);
            for (row, of_row) in parameters.iter().zip(&precision) {
                for ((column, entry), (mean, _)) in parameters.iter().zip(of_row).zip(PRIORS) {
                    matrix[*row][*column] = *entry;
                    right[*row] += entry * (mean - values[*column]);
                }
            }
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

/// The inverse of the prior covariance of a program's parameters.
fn prior_precision() -> Vec<Vec<f64>> {
    let mut covariance = vec![vec![0.0; EACH]; EACH];
    for (parameter, (_, sd)) in PRIORS.iter().enumerate() {
        covariance[parameter][parameter] = sd * sd;
    }
    let [sensitivity, pressure, _] = parameters_of(0);
    let both = CORRELATION * SENSITIVITY.1 * PRESSURE.1;
    covariance[sensitivity][pressure] = both;
    covariance[pressure][sensitivity] = both;
    inverted(covariance)
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

    /// Sensitivity, pressure and bandwidth pressure of some programs; the last two are as they are by the prior.
    const TRUTH: [[f64; 3]; 6] = [
        [0.1, 0.02, 0.0],
        [0.5, 0.3, 0.2],
        [1.5, 0.05, -0.05],
        [2.0, 0.25, -0.1],
        BY_PRIOR,
        BY_PRIOR,
    ];
    const BY_PRIOR: [f64; 3] = [SENSITIVITY.0, PRESSURE.0, BANDWIDTH_PRESSURE.0];

    fn truth(program: usize) -> Interference {
        let [sensitivity, pressure, bandwidth_pressure] = TRUTH[program];
        Interference {
            sensitivity,
            pressure,
            bandwidth_pressure,
            ..Interference::AVERAGE
        }
    }

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
                let own = truth(program);
                let slowdown: f64 = beside
                    .iter()
                    .map(|&(other, share)| share * own.slowdown_beside(&truth(other)))
                    .sum();
                let noise = 0.04 * (uniform(&mut lots) - 0.5);
                let alone = 3.0 + command as f64;
                let time_s = alone * libm::exp(slowdown + noise);
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
            let own = &fitted[run.program];
            let beside = run.beside.iter();
            let slowdowns =
                beside.map(|&(other, share)| share * own.slowdown_beside(&fitted[other]));
            libm::log(run.time_s) - slowdowns.sum::<f64>()
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
                for (program, one) in fitted.iter().enumerate() {
                    let truth = truth(program);
                    let off = (one.pressure - truth.pressure).abs();
                    assert!(off < most_off, "{count} {one:?} {truth:?}");
                    let sensitivity_off = (one.sensitivity - truth.sensitivity).abs();
                    let bandwidth_off = (one.bandwidth_pressure - truth.bandwidth_pressure).abs();
                    within += usize::from(sensitivity_off < 1.64 * one.sensitivity_sd);
                    within += usize::from(off < 1.64 * one.pressure_sd);
                    within += usize::from(bandwidth_off < 1.64 * one.bandwidth_pressure_sd);
                    all += 3;
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
