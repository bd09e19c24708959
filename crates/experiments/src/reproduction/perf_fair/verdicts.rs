//! The paper's figures and orders held against ours.

use super::{BANDWIDTH, Bench, FAIR, GROUPS, LINUX, NINTH, PERF_FAIR, POLICIES};
use crate::reproduction::engine::{Figure, Lab, Measured, Verdict};
use crate::reproduction::paper::perf_fair as paper;
use crate::statistics::over;

/// As many jobs as there are hardware threads.
const HALF: usize = 12;

/// A figure of each of some policies, by name.
type Named = Vec<(&'static str, Vec<f64>)>;

fn position(name: &str) -> usize {
    let found = POLICIES.iter().position(|policy| *policy == name);
    found.expect("the paper's policies are simulated")
}

/// A figure of these policies.
fn of<const N: usize>(names: [&'static str; N], figure: impl Fn(usize) -> Vec<f64>) -> Named {
    names.map(|name| (name, figure(position(name)))).to_vec()
}

/// The verdicts for one machine.
pub(super) fn judge(lab: &Lab<'_>, bench: &Bench) -> Vec<Verdict> {
    let mut verdicts = unfairness(bench);
    verdicts.extend(speed(bench));
    verdicts.extend(speed_by_group(bench));
    verdicts.extend(orders_of_ninth(bench));
    verdicts.extend(times_of_ninth(lab, bench));
    let on_machine = verdicts.into_iter().map(|one| one.on(bench.channels));
    on_machine.collect()
}

/// Section 7.1.
fn unfairness(bench: &Bench) -> Vec<Verdict> {
    let grid = &bench.grid;
    let mut verdicts = Vec::new();
    for (name, figure) in paper::UNFAIRNESS {
        let what = format!("unfairness of `{name}`, %");
        let ours = grid.unfairness(position(name));
        verdicts.push(Verdict::size(what, figure, 1, &ours));
    }
    let order = ["bandwidth", "linux", "perf-fair", "fair", "oracle"];
    let values = of(order, |at| grid.unfairness(at));
    verdicts.push(Verdict::order("unfairness", &order, &values));
    for (name, figure) in paper::MIXES_ABOVE_20 {
        let at = position(name);
        let above = grid.count(|mix, seed| grid.of(mix, at)[seed].unfair_percent() > Some(20.0));
        let what = format!("mixes of 13 above 20 % under `{name}`");
        verdicts.push(Verdict::size(what, figure, 1, &above));
    }
    verdicts
}

/// Section 7.2.
fn speed(bench: &Bench) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (name, figure) in paper::SPEED_UP {
        let what = format!("speed-up of `{name}`, %");
        let ours = bench.overall(position(name));
        verdicts.push(Verdict::gain(what, figure, 1, &ours));
    }
    let order = ["oracle", "perf-fair", "bandwidth", "fair", "linux"];
    let values = of(order, |at| bench.overall(at));
    verdicts.push(Verdict::order("speed", &order, &values));
    let grid = &bench.grid;
    let wins = grid.count(|mix, seed| {
        grid.of(mix, PERF_FAIR)[seed].turnaround_s < grid.of(mix, FAIR)[seed].turnaround_s
    });
    let what = "mixes of 13 in which `perf-fair` is faster than `fair`";
    verdicts.push(Verdict::at_least(what, 13.0, 1, &wins));
    verdicts
}

fn speed_by_group(bench: &Bench) -> Vec<Verdict> {
    let orders: [&[&str]; 3] = [
        &["oracle", "perf-fair", "bandwidth ~ fair", "linux"],
        &["oracle", "perf-fair ~ bandwidth", "fair", "linux"],
        &["bandwidth", "oracle", "perf-fair", "fair", "linux"],
    ];
    let mut verdicts = Vec::new();
    for (group, order) in orders.iter().enumerate() {
        let names = ["oracle", "perf-fair", "bandwidth", "fair", "linux"];
        let values = of(names, |at| bench.of_group(group, at));
        if values.iter().all(|(_, values)| !values.is_empty()) {
            let what = format!("speed in mixes of {}", GROUPS[group]);
            verdicts.push(Verdict::order(what, order, &values));
        }
    }
    verdicts
}

/// When so many jobs of mix 9 have ended, in s, by seed.
fn ends(bench: &Bench, candidate: usize, ended: usize) -> Vec<f64> {
    let runs = bench.grid.of(NINTH, candidate).iter();
    runs.filter_map(|run| run.ends_s.get(ended - 1).copied())
        .collect()
}

fn order_of_ninth(bench: &Bench, what: &str, order: [&'static str; 4], figure: Figure) -> Verdict {
    let values = of(order, |at| bench.grid.values(NINTH, at, figure));
    Verdict::order(format!("{what} of mix 9"), &order, &values)
}

/// Section 7.3: mix 9.
fn orders_of_ninth(bench: &Bench) -> [Verdict; 3] {
    let by_time = ["linux", "fair", "perf-fair", "bandwidth"];
    let by_unfairness = ["bandwidth", "linux", "perf-fair", "fair"];
    let others = [BANDWIDTH, FAIR, PERF_FAIR].map(|at| ends(bench, at, HALF));
    let first_of_others = over(&others, |ends| ends.iter().copied().reduce(f64::min));
    let half = [
        ("linux", ends(bench, LINUX, HALF)),
        ("others", first_of_others),
    ];
    let what = "time until 12 jobs of mix 9 have ended";
    [
        order_of_ninth(bench, "turnaround", by_time, Measured::time),
        order_of_ninth(bench, "unfairness", by_unfairness, Measured::unfair_percent),
        Verdict::order(what, &["others", "linux"], &half),
    ]
}

/// The two times that the paper gives of mix 9.
fn times_of_ninth(lab: &Lab<'_>, bench: &Bench) -> [Verdict; 2] {
    let first = ends(bench, BANDWIDTH, 1);
    let half = ends(bench, LINUX, HALF);
    let solo_s = lab.solo.as_s();
    [
        (
            "`bandwidth`: the first job of mix 9 ends, in solo times",
            paper::FIRST_END_QUANTA,
            first,
        ),
        (
            "`linux`: 12 jobs of mix 9 have ended, in solo times",
            paper::HALF_END_QUANTA,
            half,
        ),
    ]
    .map(|(what, quanta, ends)| {
        let ours: Vec<f64> = ends.iter().map(|end| end / solo_s).collect();
        let figure = quanta * paper::QUANTUM_S / paper::SOLO_S;
        Verdict::size(what, figure, 2, &ours)
    })
}
