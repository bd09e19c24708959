//! Means of values with their intervals.
//!
//! The interval is that of Student's t distribution, and from [`LEAST_FOR_BOOTSTRAP`] values on at least that of the
//! bootstrap: the quantiles of the means of resamples, taken further out by as much as makes up for the narrowness of
//! resamples of few values (the expanded percentile interval of Hesterberg, "What teachers should know about the bootstrap",
//! The American Statistician 69, 2015). Either alone is too narrow for some noise: the first where values lean to one side,
//! the second where there are few.

use cosched_core::Rng;

/// From so many values on, the bootstrap has a say. Resamples of fewer are too much alike.
pub const LEAST_FOR_BOOTSTRAP: usize = 8;

/// Resamples of a bootstrap.
const RESAMPLES: usize = 2_000;

/// 97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom, and 99.5 % quantiles.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
const T_99: [f64; 30] = [
    63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012,
    2.977, 2.947, 2.921, 2.898, 2.878, 2.861, 2.845, 2.831, 2.819, 2.807, 2.797, 2.787, 2.779,
    2.771, 2.763, 2.756, 2.750,
];

/// A quantile for so many degrees of freedom: from this table, or one of these for 31, 60 and 120 or more. Between them it is
/// that of the next lower number, which makes intervals slightly too wide.
fn student(table: &[f64; 30], later: [f64; 3], degrees: usize) -> f64 {
    match degrees {
        0 => f64::INFINITY,
        1..=30 => table[degrees - 1],
        31..=59 => later[0],
        60..=119 => later[1],
        _ => later[2],
    }
}

/// A mean of values and the interval that holds the true mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The mean and the standard deviation of values; `None` without at least two finite ones.
pub fn mean_and_deviation(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.len() < 2 || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    Some((mean, (squares / (n - 1.0)).sqrt()))
}

impl Interval {
    /// The 95 % interval of the mean of independent values; `None` if there are fewer than two, or one is not finite. The
    /// same values give the same interval.
    pub fn of(values: &[f64]) -> Option<Interval> {
        let (mean, deviation) = mean_and_deviation(values)?;
        let n = values.len();
        let t = student(&T_95, [2.042, 2.000, 1.980], n - 1);
        let half = t * deviation / (n as f64).sqrt();
        let (mut low, mut high) = (mean - half, mean + half);
        if n >= LEAST_FOR_BOOTSTRAP && deviation > 0.0 {
            let mut rng = Rng::new(n as u64);
            let mut means: Vec<f64> = (0..RESAMPLES)
                .map(|_| {
                    (0..n)
                        .map(|_| values[one_of(n, rng.next_u64())])
                        .sum::<f64>()
                        / n as f64
                })
                .collect();
            means.sort_by(f64::total_cmp);
            // A resample varies by sqrt((n - 1) / n) of what it should, and normal quantiles are nearer than those of t.
            let outside = below_normal(-t * (n as f64 / (n as f64 - 1.0)).sqrt());
            let quantile = |share: f64| {
                let at = share * (RESAMPLES - 1) as f64;
                let below = at as usize;
                let above = (below + 1).min(RESAMPLES - 1);
                means[below] + (means[above] - means[below]) * (at - below as f64)
            };
            low = low.min(quantile(outside));
            high = high.max(quantile(1.0 - outside));
        }
        Some(Interval { mean, low, high })
    }

    /// Whether zero is outside.
    pub fn excludes_zero(&self) -> bool {
        self.low > 0.0 || self.high < 0.0
    }
}

/// Whether the mean of values is surely not zero: that would be so in one of 100 cases by chance. `None` if there are fewer
/// than two values, or one is not finite.
pub fn is_sure(values: &[f64]) -> Option<bool> {
    let (mean, deviation) = mean_and_deviation(values)?;
    let n = values.len();
    let half = student(&T_99, [2.750, 2.660, 2.617], n - 1) * deviation / (n as f64).sqrt();
    Some(mean.abs() > half && Interval::of(values)?.excludes_zero())
}

/// One of `n` values, by uniform bits. That some come up more often by 1 / 2^64 does not matter here.
fn one_of(n: usize, bits: u64) -> usize {
    ((u128::from(bits) * n as u128) >> 64) as usize
}

/// The share of a normal distribution below so many standard deviations.
fn below_normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_few_values_it_is_that_of_student() {
        let interval = Interval::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(interval.mean, 2.5);
        // s = 1.29099, s / sqrt(4) = 0.645497, t(3) = 3.182, and 5.841 for one in a hundred.
        assert!(
            (interval.high - 2.5 - 2.05397).abs() < 1e-4
                && (2.5 - interval.low - 2.05397).abs() < 1e-4
        );
        let moved = |by: f64| [1.0, 2.0, 3.0, 4.0].map(|value| value + by);
        assert_eq!(
            (is_sure(&moved(1.2)), is_sure(&moved(1.3))),
            (Some(false), Some(true))
        );
        assert_eq!((Interval::of(&[7.0]), is_sure(&[7.0])), (None, None));
        assert_eq!(
            (Interval::of(&[1.0, f64::NAN]), is_sure(&[1.0, f64::NAN])),
            (None, None)
        );
        let same = Interval::of(&[0.0; 20]).unwrap();
        assert_eq!(
            (
                same.low,
                same.high,
                is_sure(&[0.0; 20]),
                is_sure(&[0.1; 20])
            ),
            (0.0, 0.0, Some(false), Some(true))
        );
    }

    #[test]
    fn normal_shares() {
        for (x, share) in [
            (0.0, 0.5),
            (-1.959964, 0.025),
            (1.0, 0.841345),
            (-2.575829, 0.005),
        ] {
            assert!((below_normal(x) - share).abs() < 1e-6, "{x}");
        }
    }

    /// A kind of noise, whose mean is zero.
    type Noise = fn(&mut Rng) -> f64;

    fn uniform(rng: &mut Rng) -> f64 {
        (rng.below(1 << 52) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// Nearly normal: the sum of twelve uniform numbers.
    fn normal(rng: &mut Rng) -> f64 {
        (0..12).map(|_| uniform(rng)).sum::<f64>() - 6.0
    }

    /// Seldom something takes long: the time of each of two runs has one long tail, their difference two.
    fn tails(rng: &mut Rng) -> f64 {
        let mut long = || -libm::log(uniform(rng));
        long() - long()
    }

    /// One run in ten is disturbed by much more than the others vary.
    fn outliers(rng: &mut Rng) -> f64 {
        let mut once = || 0.2 * normal(rng) + if uniform(rng) < 0.1 { 3.0 } else { 0.0 };
        once() - once()
    }

    /// The share of intervals that hold the true mean of this noise, and of tests that find no difference.
    fn coverage(noise: Noise, n: usize) -> (f64, f64) {
        let mut rng = Rng::new(7);
        let (mut holds, mut equal) = (0.0, 0.0);
        const TRIALS: u32 = 1_500;
        for _ in 0..TRIALS {
            let values: Vec<f64> = (0..n).map(|_| noise(&mut rng)).collect();
            holds += f64::from(u8::from(
                Interval::of(&values).is_some_and(|interval| !interval.excludes_zero()),
            ));
            equal += f64::from(u8::from(is_sure(&values) == Some(false)));
        }
        (holds / f64::from(TRIALS), equal / f64::from(TRIALS))
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_true_mean() {
        for n in [2, 5, 7, 10, 20] {
            let (holds, equal) = coverage(normal, n);
            assert!(
                (0.93..=0.97).contains(&holds) && (0.98..=0.998).contains(&equal),
                "{n} normal: {holds} {equal}"
            );
        }
        for n in [5, 10, 20] {
            let (holds, equal) = coverage(tails, n);
            assert!(
                (0.93..=0.975).contains(&holds) && equal >= 0.98,
                "{n} with tails: {holds} {equal}"
            );
            // A few disturbed runs make intervals wide.
            let (holds, equal) = coverage(outliers, n);
            assert!(
                (0.93..=0.99).contains(&holds) && equal >= 0.98,
                "{n} with outliers: {holds} {equal}"
            );
        }
    }
}
