//! Means with their uncertainty, over repetitions with different seeds.
//!
//! Only `+ - * /` and square roots are used, so that every machine computes the same digits.

/// A mean over repetitions, with its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half of the width of the 95 % interval, by Student's t distribution; `None` with fewer than two repetitions.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The mean of these values and its interval; `None` if there are none, or one is not finite.
    pub fn of(values: &[f64]) -> Option<Estimate> {
        let n = values.len();
        if n == 0 || values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let mean = values.iter().sum::<f64>() / n as f64;
        let squares: f64 = values
            .iter()
            .map(|value| (value - mean) * (value - mean))
            .sum();
        let half_width =
            (n > 1).then(|| t_95(n - 1) * (squares / (n - 1) as f64 / n as f64).sqrt());
        Some(Estimate { mean, half_width })
    }

    /// The same in another unit.
    pub fn scaled(self, by: f64) -> Estimate {
        let half_width = self.half_width.map(|half| half * by.abs());
        Estimate {
            mean: self.mean * by,
            half_width,
        }
    }

    /// The ends of the interval; both are the mean if there is none.
    pub fn interval(&self) -> (f64, f64) {
        let half = self.half_width.unwrap_or(0.0);
        (self.mean - half, self.mean + half)
    }
}

/// The 97.5 % quantile of Student's t distribution with so many degrees of freedom. Between the numbers of the table it is
/// that of the next lower one, which makes intervals slightly too wide.
fn t_95(degrees: usize) -> f64 {
    const FIRST: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
        2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
        2.052, 2.048, 2.045, 2.042,
    ];
    match degrees {
        0 => f64::INFINITY,
        1..=30 => FIRST[degrees - 1],
        31..=59 => 2.042,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

/// The geometric mean; `None` if there are no values, or one is not positive.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty()
        || values
            .iter()
            .any(|&value| !(value > 0.0 && value.is_finite()))
    {
        return None;
    }
    // Roots of the single values, so that the product can't leave the range of numbers.
    Some(
        values
            .iter()
            .map(|&value| root(value, values.len()))
            .product(),
    )
}

/// The positive `n`-th root of a positive number, by halving the interval that it lies in.
fn root(value: f64, n: usize) -> f64 {
    let power = |base: f64| (0..n).fold(1.0, |product, _| product * base);
    let (mut low, mut high) = if value < 1.0 {
        (value, 1.0)
    } else {
        (1.0, value)
    };
    for _ in 0..2_000 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if power(middle) > value {
            high = middle
        } else {
            low = middle
        }
    }
    0.5 * (low + high)
}

/// The arithmetic mean; `None` if there are no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of these values themselves; `None` if there are none.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values
        .iter()
        .map(|value| (value - mean) * (value - mean))
        .sum();
    Some((squares / values.len() as f64).sqrt())
}

/// A figure over several lists of one value for each repetition, by repetition.
pub(crate) fn over(lists: &[Vec<f64>], of: impl Fn(&[f64]) -> Option<f64>) -> Vec<f64> {
    let repetitions = lists.iter().map(Vec::len).min().unwrap_or(0);
    (0..repetitions)
        .filter_map(|at| of(&lists.iter().map(|list| list[at]).collect::<Vec<_>>()))
        .collect()
}

/// The value below which a share of the values lies, with straight lines between them; `None` if there are no values.
pub fn quantile(values: &[f64], share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    let at = share.clamp(0.0, 1.0) * last as f64;
    let below = at as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Rng;
    use proptest::prelude::*;

    #[test]
    fn the_interval_is_that_of_student() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(estimate.mean, 2.5);
        // s = 1.29099, s / sqrt(4) = 0.645497, t(3) = 3.182.
        assert!((estimate.half_width.unwrap() - 2.05397).abs() < 1e-4);
        assert_eq!(Estimate::of(&[7.0]).unwrap().half_width, None);
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn nineteen_of_twenty_intervals_hold_the_true_mean() {
        let mut rng = Rng::new(1);
        // Nearly normal: the sum of twelve uniform numbers.
        let mut draw = || {
            (0..12)
                .map(|_| rng.below(1 << 32) as f64 / 4_294_967_296.0)
                .sum::<f64>()
                - 6.0
        };
        for n in [2, 5, 20] {
            let trials = 4_000;
            let holds = (0..trials).filter(|_| {
                let values: Vec<f64> = (0..n).map(|_| draw()).collect();
                let (low, high) = Estimate::of(&values).unwrap().interval();
                low <= 0.0 && 0.0 <= high
            });
            let share = holds.count() as f64 / f64::from(trials);
            assert!((0.94..0.96).contains(&share), "{n}: {share}");
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
