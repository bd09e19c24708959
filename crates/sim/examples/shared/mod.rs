//! What the examples share: scenes of jobs, orders by lot, figures over seeds, and the heads of Markdown tables.

#[path = "../../tests/suite/scenarios/lab.rs"]
pub(crate) mod lab;

use cosched_core::Rng;
use lab::JobScene;

/// Prints titles with bars between them, and the rule below them.
pub(crate) fn print_head(titles: &str) {
    let columns = titles.split(" | ").count();
    println!("| {titles} |\n|{}", " --- |".repeat(columns));
}

/// Least, median and greatest.
pub(crate) fn least_median_greatest(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0, values.len() / 2, values.len() - 1].map(|at| values[at])
}

/// Least, median and greatest as text.
pub(crate) fn range(values: Vec<f64>, decimals: usize, between: &str) -> String {
    let three = least_median_greatest(values);
    three
        .map(|value| format!("{value:.decimals$}"))
        .join(between)
}

pub(crate) fn geometric_mean(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|value| value.ln()).sum();
    (logs / values.len() as f64).exp()
}

/// Brings items into an order by lot.
pub(crate) fn shuffle<T>(items: &mut [T], lots: &mut Rng) {
    for place in (1..items.len()).rev() {
        items.swap(place, lots.below(place as u64 + 1) as usize);
    }
}

/// The programs of this many mixes of Perf&Fair, 30 s each.
pub(crate) fn server(machine: &'static str, mixes: usize) -> JobScene {
    (0..mixes).fold(JobScene::on(machine), |scene, at| {
        scene.mix(&format!("perf-fair/mix{:02}", 1 + at % 13), 30_000)
    })
}
