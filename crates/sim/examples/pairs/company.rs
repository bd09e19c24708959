//! Who slows whom, learnt from the times of earlier runs alone: no counters.
//!
//! The logarithm of a run's time is
//!
//! ```text
//! solo + sensitivity x (the sum over all others of share x pressure)
//! ```
//!
//! `solo` and `sensitivity` are those of the command that ran, `pressure` those of the commands beside it, and `share` is
//! the share of the run's time for which each was there. One product for each pair is much less to learn than a table of
//! pairs: of 18 real programs some five runs each suffice (`results/pairs-measured.md`).
//!
//! The model is fitted by Gauss-Newton steps to the most probable values. A new command is average by the prior. The
//! matrix of the last step gives the variances.

/// What is known of a command beside others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Company {
    /// The time that it takes alone, in seconds.
    pub(crate) solo_s: f64,
    /// How much more than the average command it is slowed by the same others; 1 is average.
    pub(crate) sensitivity: f64,
    /// The logarithm by which it slows an average command.
    pub(crate) pressure: f64,
    /// The standard deviation of the sensitivity.
    pub(crate) sensitivity_sd: f64,
    /// The standard deviation of the pressure.
    pub(crate) pressure_sd: f64,
}

/// A run of a command beside others.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CompanyRun {
    /// The index of the command.
    pub(crate) command: usize,
    /// The time that it took, in seconds.
    pub(crate) time_s: f64,
    /// The indices of the commands beside it, each with the sum of their shares of its time.
    pub(crate) beside: Vec<(usize, f64)>,
}

/// The prior of the sensitivity: mean and standard deviation. The mean sets the unit of the pressure.
const SENSITIVITY: (f64, f64) = (1.0, 0.7);

/// The prior of the pressure.
const PRESSURE: (f64, f64) = (0.1, 0.1);

/// The weight of the prior of the time alone, which says nothing.
const NO_SOLO: f64 = 1e-4;

/// The standard deviation of equal runs before any is known, and for how many runs that counts.
const NOISE: (f64, f64) = (0.03, 10.0);

/// The least standard deviation of equal runs.
const LEAST_NOISE: f64 = 0.003;

/// A run further from its prediction than this many standard deviations counts for less.
const FAR: f64 = 2.5;

/// Steps of the fit; the first ones are halved.
const STEPS: usize = 12;
const HALVED: usize = 3;

/// The parameters of a command: the logarithm of its time alone, its sensitivity, and its pressure.
const EACH: usize = 3;

/// Fits the model to these runs of so many commands.
pub(crate) fn fit(commands: usize, runs: &[CompanyRun]) -> Vec<Company> {
    let mut fit = Fit::new(commands, runs);
    for step in 0..STEPS {
        fit.step(if step < HALVED { 0.5 } else { 1.0 });
    }
    (0..commands).map(|command| fit.company(command)).collect()
}

struct Fit<'a> {
    runs: &'a [CompanyRun],
    values: Vec<f64>,
    variances: Vec<f64>,
    noise: f64,
}

impl<'a> Fit<'a> {
    fn new(commands: usize, runs: &'a [CompanyRun]) -> Fit<'a> {
        let mut values = Vec::with_capacity(EACH * commands);
        for command in 0..commands {
            let own = runs.iter().filter(|run| run.command == command);
            let (mut sum, mut count) = (0.0, 0.0);
            for run in own {
                sum += run.time_s.ln();
                count += 1.0;
            }
            values.extend([sum / f64::max(count, 1.0), SENSITIVITY.0, PRESSURE.0]);
        }
        Fit {
            runs,
            variances: vec![0.0; values.len()],
            values,
            noise: NOISE.0,
        }
    }

    /// One Gauss-Newton step.
    fn step(&mut self, length: f64) {
        let mut system = System::of_priors(&self.values);
        let mut squares = 0.0;
        for run in self.runs {
            let (error, slopes) = self.compare(run);
            let far = FAR * self.noise / error.abs();
            system.add(&slopes, error, far.min(1.0) / (self.noise * self.noise));
            squares += error * error;
        }
        let (change, variances) = system.solve();
        for (ix, value) in self.values.iter_mut().enumerate() {
            *value += length * change[ix];
            if ix % EACH == 1 {
                *value = value.clamp(0.0, 5.0);
            }
        }
        self.variances = variances;
        self.noise = self.noise_of(squares);
    }

    /// The difference of a run from its prediction, and the slopes of that by each parameter.
    fn compare(&self, run: &CompanyRun) -> (f64, Vec<(usize, f64)>) {
        let first = EACH * run.command;
        let sensitivity = self.values[first + 1];
        let mut pressure = 0.0;
        let mut slopes = Vec::with_capacity(run.beside.len() + 2);
        for &(other, share) in &run.beside {
            pressure += share * self.values[EACH * other + 2];
            slopes.push((EACH * other + 2, share * sensitivity));
        }
        slopes.extend([(first, 1.0), (first + 1, pressure)]);
        let predicted = self.values[first] + sensitivity * pressure;
        (run.time_s.ln() - predicted, slopes)
    }

    fn noise_of(&self, squares: f64) -> f64 {
        let (sd, count) = NOISE;
        let known = 2 * self.values.len() / EACH;
        let free = self.runs.len().saturating_sub(known) as f64;
        let variance = (squares + count * sd * sd) / (free + count);
        variance.sqrt().max(LEAST_NOISE)
    }

    fn company(&self, command: usize) -> Company {
        let first = EACH * command;
        Company {
            solo_s: self.values[first].exp(),
            sensitivity: self.values[first + 1],
            pressure: self.values[first + 2],
            sensitivity_sd: self.variances[first + 1].sqrt(),
            pressure_sd: self.variances[first + 2].sqrt(),
        }
    }
}

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
            let (mean, sd) = match ix % EACH {
                1 => SENSITIVITY,
                2 => PRESSURE,
                _ => (*value, 1.0 / NO_SOLO.sqrt()),
            };
            matrix[ix][ix] = 1.0 / (sd * sd);
            right[ix] = (mean - value) / (sd * sd);
        }
        System { matrix, right }
    }

    fn add(&mut self, slopes: &[(usize, f64)], error: f64, weight: f64) {
        for &(row, slope) in slopes {
            self.right[row] += weight * slope * error;
            for &(column, other) in slopes {
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
