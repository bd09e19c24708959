//! Metrics of fairness: how equal the slowdowns are, and how long tasks wait.

use super::outcome::Outcomes;
use crate::units::{Nanos, Reading};

fn greatest(slowdowns: &[f64]) -> f64 {
    slowdowns.iter().copied().fold(0.0, f64::max)
}

fn least(slowdowns: &[f64]) -> f64 {
    slowdowns.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Unfairness, >= 1: max s_i / min s_i (Perf&Fair, section 6, which reports the per cent above 1).
pub fn unfairness(run: &Outcomes) -> Reading<f64> {
    run.slowdowns()
        .map(|slowdowns| greatest(&slowdowns) / least(&slowdowns))
}

/// Maximum slowdown, > 0: max s_i.
pub fn worst_slowdown(run: &Outcomes) -> Reading<f64> {
    run.slowdowns().map(|slowdowns| greatest(&slowdowns))
}

/// Jain's index over the speeds x_i = 1 / s_i, in [1/n, 1]: (sum x_i)^2 / (n sum x_i^2) (Jain, Chiu and Hawe, 1984).
pub fn jain(run: &Outcomes) -> Reading<f64> {
    run.slowdowns().map(|slowdowns| {
        let (sum, squares) = slowdowns
            .iter()
            .map(|s| 1.0 / s)
            .fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
        sum * sum / (slowdowns.len() as f64 * squares)
    })
}

/// Longest time in seconds, >= 0, that any task had no CPU between two placements.
pub fn longest_wait(run: &Outcomes) -> Reading<f64> {
    Reading::Value(
        run.tasks
            .iter()
            .map(|task| task.waited_max)
            .max()
            .unwrap_or(Nanos::ZERO)
            .as_s(),
    )
}
