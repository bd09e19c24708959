//! The paper's figures and orders held against ours.

use super::{
    BANDWIDTH, Bench, FAIR, GROUPS, HALF, LINUX, NINTH, PERF_FAIR, POLICIES, mixes_faster,
    mixes_unfair,
};
use crate::reproduction::engine::{Figure, Lab, Measured, Verdict};
use crate::reproduction::paper::perf_fair as paper;
use crate::statistics::over;

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
        let what = format!("mixes of 13 above 20 % under `{name}`");
        let ours = mixes_unfair(grid, position(name));
        verdicts.push(Verdict::size(what, figure, 1, &ours));
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
    let what = "mixes of 13 in which `perf-fair` is faster than `fair`";
    let ours = mixes_faster(&bench.grid, PERF_FAIR, FAIR);
    verdicts.push(Verdict::at_least(what, 13.0, 1, &ours));
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
fn ends_s(bench: &Bench, candidate: usize, jobs: usize) -> Vec<f64> {
    let runs = bench.grid.runs(NINTH, candidate).iter();
    runs.map(|run| run.end_s(jobs)).collect()
}

/// Section 7.3: mix 9.
fn orders_of_ninth(bench: &Bench) -> [Verdict; 3] {
    let by_time = ["linux", "fair", "perf-fair", "bandwidth"];
    let by_unfairness = ["bandwidth", "linux", "perf-fair", "fair"];
    [
        order_of_ninth(bench, "turnaround", by_time, Measured::time),
        order_of_ninth(bench, "unfairness", by_unfairness, Measured::unfair_percent),
        half_of_ninth(bench),
    ]
}

fn order_of_ninth(bench: &Bench, what: &str, order: [&'static str; 4], figure: Figure) -> Verdict {
    let values = of(order, |at| bench.grid.values(NINTH, at, figure));
    Verdict::order(format!("{what} of mix 9"), &order, &values)
}

/// In the paper `linux` has ended half of the jobs before the others.
fn half_of_ninth(bench: &Bench) -> Verdict {
    let others = [BANDWIDTH, FAIR, PERF_FAIR].map(|at| ends_s(bench, at, HALF));
    let first_of_others = over(&others, |ends_s| ends_s.iter().copied().reduce(f64::min));
    let values = [
        ("linux", ends_s(bench, LINUX, HALF)),
        ("others", first_of_others),
    ];
    let what = "time until 12 jobs of mix 9 have ended";
    Verdict::order(what, &["others", "linux"], &values)
}

/// The two times that the paper gives of mix 9.
fn times_of_ninth(lab: &Lab<'_>, bench: &Bench) -> [Verdict; 2] {
    let first_s = ends_s(bench, BANDWIDTH, 1);
    let half_s = ends_s(bench, LINUX, HALF);
    let of_first = "`bandwidth`: the first job of mix 9 ends, in solo times";
    let of_half = "`linux`: 12 jobs of mix 9 have ended, in solo times";
    [
        in_solo_times(lab, of_first, paper::FIRST_END_QUANTA, &first_s),
        in_solo_times(lab, of_half, paper::HALF_END_QUANTA, &half_s),
    ]
}

/// A time that the paper gives in quanta, and ours in s by seed, both as multiples of what a job takes alone.
fn in_solo_times(lab: &Lab<'_>, what: &str, quanta: f64, ours_s: &[f64]) -> Verdict {
    let figure = quanta * paper::QUANTUM_S / paper::SOLO_S;
    let solo_s = lab.solo.as_s();
    let ours: Vec<f64> = ours_s.iter().map(|end_s| end_s / solo_s).collect();
    Verdict::size(what, figure, 2, &ours)
}
