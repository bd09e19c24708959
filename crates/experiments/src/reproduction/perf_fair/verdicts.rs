//! The paper's figures and orders held against ours.

use super::{BANDWIDTH, Bench, FAIR, GROUPS, HALF, LINUX, PERF_FAIR, POLICIES};
use super::{mixes_faster, mixes_unfair};
use crate::reproduction::engine::{Draft, TrialMeasurements};
use crate::statistics::{mean, over};

fn position(name: &str) -> usize {
    let found = POLICIES.iter().position(|policy| *policy == name);
    found.expect("the paper's policies are simulated")
}

/// The verdicts.
pub(super) fn judge(draft: &mut Draft, solo_s: f64, bench: &Bench) {
    unfairness(draft, bench);
    speed(draft, bench);
    ninth(draft, bench);
    times_of_ninth(draft, solo_s, bench);
}

/// Section 7.1.
fn unfairness(draft: &mut Draft, bench: &Bench) {
    let grid = &bench.grid;
    for name in ["linux", "bandwidth", "fair", "perf-fair", "oracle"] {
        let ours = grid.unfairness(position(name));
        draft.judge(&format!("unfairness-{name}"), &ours);
    }
    draft.judge_order("unfairness", |name| grid.unfairness(position(name)));
    for name in ["linux", "fair", "perf-fair"] {
        let ours = mixes_unfair(grid, position(name));
        draft.judge(&format!("unfair-mixes-{name}"), &ours);
    }
}

/// Section 7.2.
fn speed(draft: &mut Draft, bench: &Bench) {
    for name in ["bandwidth", "fair", "perf-fair"] {
        let ours = bench.overall(position(name));
        draft.judge(&format!("speed-up-{name}"), &ours);
    }
    draft.judge_order("speed-up", |name| bench.overall(position(name)));
    let faster = mixes_faster(&bench.grid, PERF_FAIR, FAIR);
    draft.judge("faster-mixes", &faster);
    for group in 0..GROUPS.len() {
        let key = format!("speed-up-group-{group}");
        draft.judge_order(&key, |name| bench.of_group(group, position(name)));
    }
}

/// When so many jobs of a mix have ended, in s, by seed.
fn ends_s(bench: &Bench, mix: usize, candidate: usize, jobs: usize) -> Vec<f64> {
    let runs = bench.grid.runs(mix, candidate).iter();
    runs.map(|run| run.end_s(jobs)).collect()
}

/// Section 7.3: mix 9, which is one draw. In the paper `linux` has ended half of the jobs before the others.
fn ninth(draft: &mut Draft, bench: &Bench) {
    let grid = &bench.grid;
    draft.judge_drawn_order("time-of-ninth", grid.mixes, |mix, name| {
        grid.values(mix, position(name), TrialMeasurements::time)
    });
    draft.judge_drawn_order("unfairness-of-ninth", grid.mixes, |mix, name| {
        grid.values(mix, position(name), TrialMeasurements::unfair_percent)
    });
    draft.judge_drawn_order("half-of-ninth", grid.mixes, |mix, name| {
        if name == "linux" {
            return ends_s(bench, mix, LINUX, HALF);
        }
        let others = [BANDWIDTH, FAIR, PERF_FAIR].map(|at| ends_s(bench, mix, at, HALF));
        over(&others, |ends_s| ends_s.iter().copied().reduce(f64::min))
    });
}

/// The two times that the paper gives of mix 9, as multiples of what a job takes alone, by mix.
fn times_of_ninth(draft: &mut Draft, solo_s: f64, bench: &Bench) {
    for (key, policy, jobs) in [("first-end", BANDWIDTH, 1), ("half-end", LINUX, HALF)] {
        let mixes = 0..bench.grid.mixes;
        let ends_s = mixes.filter_map(|mix| mean(&ends_s(bench, mix, policy, jobs)));
        let ours: Vec<f64> = ends_s.map(|end_s| end_s / solo_s).collect();
        draft.judge(key, &ours);
    }
}
