//! The paper's figures and orders held against ours.

use super::{BANDWIDTH, Bench, FAIR, GROUPS, LINUX, NINTH, PERF_FAIR, POLICIES};
use crate::reproduction::findings::Verdict;
use crate::reproduction::lab::Lab;
use crate::reproduction::paper::perf_fair as paper;
use crate::reproduction::trial::Measured;
use crate::statistics::over;

/// A figure of each of some policies, by name.
type Named = Vec<(&'static str, Vec<f64>)>;

fn position(name: &str) -> usize {
    POLICIES
        .iter()
        .position(|policy| *policy == name)
        .unwrap_or(LINUX)
}

/// A figure of these policies.
fn of<const N: usize>(names: [&'static str; N], figure: impl Fn(usize) -> Vec<f64>) -> Named {
    names.map(|name| (name, figure(position(name)))).to_vec()
}

/// The verdicts for one machine.
pub(super) fn judge(lab: &Lab<'_>, bench: &Bench) -> Vec<Verdict> {
    let mut verdicts = unfairness(bench);
    verdicts.extend(speed(bench));
    verdicts.extend(ninth(lab, bench));
    verdicts
        .into_iter()
        .map(|verdict| verdict.on(bench.channels))
        .collect()
}

/// Section 7.1.
fn unfairness(bench: &Bench) -> Vec<Verdict> {
    let grid = &bench.grid;
    let mut verdicts = Vec::new();
    for (name, figure) in paper::UNFAIRNESS {
        let what = format!("unfairness of `{name}`, %");
        verdicts.push(Verdict::size(
            what,
            figure,
            1,
            &grid.unfairness(position(name)),
        ));
    }
    let values = of(paper::UNFAIRNESS.map(|(name, _)| name), |at| {
        grid.unfairness(at)
    });
    let order = ["bandwidth", "linux", "perf-fair", "fair", "oracle"];
    verdicts.push(Verdict::order("unfairness", &order, &values));
    for (name, figure) in paper::MIXES_ABOVE_20 {
        let above = |seed: usize| {
            let is_above =
                |mix: &usize| grid.of(*mix, position(name))[seed].unfair_percent() > Some(20.0);
            (0..grid.mixes).filter(is_above).count() as f64
        };
        let counts: Vec<f64> = (0..grid.seeds).map(above).collect();
        let what = format!("mixes of 13 above 20 % under `{name}`");
        verdicts.push(Verdict::size(what, figure, 1, &counts));
    }
    verdicts
}

/// Section 7.2.
fn speed(bench: &Bench) -> Vec<Verdict> {
    let grid = &bench.grid;
    let mut verdicts = Vec::new();
    for (name, figure) in paper::SPEED_UP {
        let what = format!("speed-up of `{name}`, %");
        verdicts.push(Verdict::gain(
            what,
            figure,
            1,
            &bench.overall(position(name)),
        ));
    }
    let order = ["oracle", "perf-fair", "bandwidth", "fair", "linux"];
    verdicts.push(Verdict::order(
        "speed",
        &order,
        &of(order, |at| bench.overall(at)),
    ));
    let wins = |seed: usize| {
        let is_faster = |mix: &usize| {
            grid.of(*mix, PERF_FAIR)[seed].turnaround_s < grid.of(*mix, FAIR)[seed].turnaround_s
        };
        (0..grid.mixes).filter(is_faster).count() as f64
    };
    let wins: Vec<f64> = (0..grid.seeds).map(wins).collect();
    verdicts.push(Verdict::at_least(
        "mixes of 13 in which `perf-fair` is faster than `fair`",
        13.0,
        1,
        &wins,
    ));
    let orders: [&[&str]; 3] = [
        &["oracle", "perf-fair", "bandwidth ~ fair", "linux"],
        &["oracle", "perf-fair ~ bandwidth", "fair", "linux"],
        &["bandwidth", "oracle", "perf-fair", "fair", "linux"],
    ];
    for (group, order) in orders.iter().enumerate() {
        let values = of(
            ["oracle", "perf-fair", "bandwidth", "fair", "linux"],
            |at| bench.of_group(group, at),
        );
        if values.iter().all(|(_, values)| !values.is_empty()) {
            let what = format!("speed in mixes of {}", GROUPS[group]);
            verdicts.push(Verdict::order(what, order, &values));
        }
    }
    verdicts
}

/// Section 7.3: mix 9. The paper gives its orders and two times.
fn ninth(lab: &Lab<'_>, bench: &Bench) -> Vec<Verdict> {
    let grid = &bench.grid;
    let mut verdicts = Vec::new();
    let by_time = ["linux", "fair", "perf-fair", "bandwidth"];
    let of_ninth =
        |figure: fn(&Measured) -> Option<f64>| of(by_time, |at| grid.values(NINTH, at, figure));
    let times = of_ninth(|run| Some(run.turnaround_s));
    verdicts.push(Verdict::order("turnaround of mix 9", &by_time, &times));
    let order = ["bandwidth", "linux", "perf-fair", "fair"];
    let unfairness = of_ninth(Measured::unfair_percent);
    verdicts.push(Verdict::order("unfairness of mix 9", &order, &unfairness));
    // When the first, and half of the 24, have ended.
    let ends = |candidate: usize, ended: usize| -> Vec<f64> {
        grid.values(NINTH, candidate, |run| run.ends_s.get(ended - 1).copied())
    };
    let others: Vec<Vec<f64>> = [BANDWIDTH, FAIR, PERF_FAIR]
        .map(|at| ends(at, HALF))
        .to_vec();
    let first_of_others = over(&others, |ends| ends.iter().copied().reduce(f64::min));
    let values = [("linux", ends(LINUX, HALF)), ("others", first_of_others)];
    verdicts.push(Verdict::order(
        "time until 12 jobs of mix 9 have ended",
        &["others", "linux"],
        &values,
    ));
    if let Some(solo_s) = lab.solo_s() {
        let in_solo_times =
            |ends: Vec<f64>| -> Vec<f64> { ends.iter().map(|end| end / solo_s).collect() };
        for (name, what, candidate, ended, quanta) in [
            (
                "bandwidth",
                "the first job of mix 9 ends",
                BANDWIDTH,
                1,
                paper::FIRST_END_QUANTA,
            ),
            (
                "linux",
                "12 jobs of mix 9 have ended",
                LINUX,
                HALF,
                paper::HALF_END_QUANTA,
            ),
        ] {
            let what = format!("`{name}`: {what}, in solo times");
            let figure = quanta * paper::QUANTUM_S / paper::SOLO_S;
            verdicts.push(Verdict::size(
                what,
                figure,
                2,
                &in_solo_times(ends(candidate, ended)),
            ));
        }
    }
    verdicts
}

/// As many jobs as there are hardware threads.
const HALF: usize = 12;
