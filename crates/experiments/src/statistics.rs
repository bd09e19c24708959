//! Means with their uncertainty, over repetitions with different seeds.
//!
//! Only `+ - * /` and square roots are used, so that every machine computes the same digits.

/// Quantiles of Student's t distribution: degrees of freedom, and the quantiles of 95 % and 99 % intervals.
const STUDENT: &str = include_str!("student.txt");

/// The columns of that table.
#[derive(Clone, Copy)]
enum Level {
    P95 = 1,
    P99 = 2,
}

/// The quantile of the next lower number of degrees in the table, which makes intervals slightly too wide.
fn quantile_of_student(degrees: usize, level: Level) -> f64 {
    let mut quantile = f64::INFINITY;
    for line in STUDENT.lines().skip(1) {
        let numbers: Vec<f64> = line.split_whitespace().flat_map(str::parse).collect();
        if numbers[0] as usize > degrees {
            break;
        }
        quantile = numbers[level as usize];
    }
    quantile
}

/// Half of the width of the interval of the mean of these values; `None` with fewer than two.
fn half_width(values: &[f64], mean: f64, level: Level) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let n = values.len() as f64;
    let variance = squares(values, mean) / (n - 1.0);
    let quantile = quantile_of_student(values.len() - 1, level);
    Some(quantile * (variance / n).sqrt())
}

/// The sum of the squared differences from the mean.
fn squares(values: &[f64], mean: f64) -> f64 {
    let squared = values.iter().map(|value| (value - mean) * (value - mean));
    squared.sum()
}

/// A mean over repetitions, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeanEstimate {
    /// The mean.
    pub(crate) mean: f64,
    /// Half of the width of the 95 % interval, by Student's t distribution; `None` with fewer than two repetitions.
    pub(crate) half_width: Option<f64>,
}

impl MeanEstimate {
    /// The mean of these values and its interval; `None` if there are none, or one is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<MeanEstimate> {
        let mean = finite_mean(values)?;
        let half_width = half_width(values, mean, Level::P95);
        Some(MeanEstimate { mean, half_width })
    }

    /// The ends of the interval; both are the mean if there is none.
    pub(crate) fn interval(&self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

/// Whether the 99 % interval of the mean excludes zero. `None` with fewer than two values, or if one is not finite.
pub(crate) fn is_sure(values: &[f64]) -> Option<bool> {
    let mean = finite_mean(values)?;
    Some(mean.abs() > half_width(values, mean, Level::P99)?)
}

fn finite_mean(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let are_finite = values.iter().all(|value| value.is_finite());
    are_finite.then_some(mean)
}

/// The geometric mean; `None` if there are no values, or one is not positive.
pub(crate) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let mut product = 1.0;
    for &value in values {
        if value <= 0.0 || !value.is_finite() {
            return None;
        }
        // Roots of the single values, so that the product can't leave the range of numbers.
        product *= root(value, values.len());
    }
    Some(product)
}

/// The positive `n`-th root of a positive number, by halving the interval that it lies in.
fn root(value: f64, n: usize) -> f64 {
    let mut low = value.min(1.0);
    let mut high = value.max(1.0);
    for _ in 0..2_000 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if (0..n).fold(1.0, |product, _| product * middle) > value {
            high = middle
        } else {
            low = middle
        }
    }
    0.5 * (low + high)
}

/// The arithmetic mean; `None` if there are no values.
pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let sum: f64 = values.iter().sum();
    Some(sum / values.len() as f64)
}

/// The standard deviation of these values themselves; `None` if there are none.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    Some((squares(values, mean) / values.len() as f64).sqrt())
}

/// The sample standard deviation; `None` with fewer than two values, or if one is not finite.
pub(crate) fn sample_deviation(values: &[f64]) -> Option<f64> {
    let mean = finite_mean(values)?;
    if values.len() < 2 {
        return None;
    }
    let degrees = values.len() as f64 - 1.0;
    let variance = squares(values, mean) / degrees;
    Some(variance.sqrt())
}

/// A figure over several lists of one value for each repetition, by repetition.
pub(crate) fn over(lists: &[Vec<f64>], of: impl Fn(&[f64]) -> Option<f64>) -> Vec<f64> {
    let repetitions = lists.iter().map(Vec::len).min().unwrap_or(0);
    let mut figures = Vec::new();
    for at in 0..repetitions {
        let values: Vec<f64> = lists.iter().map(|list| list[at]).collect();
        figures.extend(of(&values));
    }
    figures
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5).unwrap_or(0.0)
}

/// The value below which a share of the values lies, with straight lines between them; `None` if there are no values.
pub(crate) fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let below = at as usize;
    let above = (below + 1).min(last);
    let (below, part) = (sorted[below], at - below as f64);
    Some(below + (sorted[above] - below) * part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Rng;
    use proptest::prelude::*;

    #[test]
    fn the_interval_is_that_of_student() {
        let estimate = MeanEstimate::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(estimate.mean, 2.5);
        // s = 1.29099, s / sqrt(4) = 0.645497, t(3) = 3.182, and 5.841 for one in a hundred.
        assert!((estimate.half_width.unwrap() - 2.05397).abs() < 1e-4);
        let moved = |by: f64| [1.0, 2.0, 3.0, 4.0].map(|value| value + by);
        assert_eq!(
            (is_sure(&moved(1.2)), is_sure(&moved(1.3))),
            (Some(false), Some(true))
        );
        assert_eq!(MeanEstimate::of(&[7.0]).unwrap().half_width, None);
        assert_eq!((MeanEstimate::of(&[]), is_sure(&[7.0])), (None, None));
        assert_eq!(
            (
                MeanEstimate::of(&[1.0, f64::NAN]),
                is_sure(&[1.0, f64::NAN])
            ),
            (None, None)
        );
        assert_eq!(
            (is_sure(&[0.0; 20]), is_sure(&[0.1; 20])),
            (Some(false), Some(true))
        );
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
            let (low, high) = MeanEstimate::of(&values).unwrap().interval();
            holds += f64::from(u8::from(low <= 0.0 && 0.0 <= high));
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

    proptest! {
        #[test]
        fn the_geometric_mean_agrees_with_logarithms(values in proptest::collection::vec(1e-6..1e6f64, 1..30)) {
            #[allow(clippy::disallowed_methods)] // A slow oracle.
            let expected = (values.iter().map(|value| value.ln()).sum::<f64>() / values.len() as f64).exp();
            let got = geometric_mean(&values).unwrap();
            prop_assert!((got / expected - 1.0).abs() < 1e-9, "{got} {expected}");
        }
    }

    #[test]
    fn quantiles_lie_between_the_values() {
        let values = [3.0, 1.0, 2.0];
        assert_eq!(quantile(&values, 0.5), Some(2.0));
        assert_eq!(quantile(&values, 0.75), Some(2.5));
        assert_eq!(quantile(&values, 1.0), Some(3.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(deviation(&[1.0, 3.0]), Some(1.0));
        assert_eq!(deviation(&[]), None);
        assert_eq!(geometric_mean(&[1.0, 0.0]), None);
    }
}
