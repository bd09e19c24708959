//! Perf&Fair: fairness and speed of mixes of 24 on six cores of two hardware threads (its section 7).
//!
//! `tables` shows what was simulated, `verdicts` holds it against the paper, `causes` changes one thing at a time.

mod causes;
mod tables;
mod verdicts;

use crate::reproduction::engine::{
    Chapter, Draft, ExperimentMix, Grid, Lab, Result, TrialCandidate, TrialMeasurements, gain,
    machine, of_folder,
};
use crate::statistics::{mean, over};
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machines. The first is judged: 12 GB of DDR3 are three equal modules, and its mixes read more than 120 lines per us,
/// which one channel can't serve. The others show what the channels change.
const MACHINES: [(&str, &str); 3] = [
    ("xeon-e5645", "three channels"),
    ("xeon-e5645-2ch", "two channels"),
    ("xeon-e5645-1ch", "one channel"),
];

/// The policies in the order of the columns. The first is the base.
const POLICIES: [&str; 6] = [
    "linux",
    "bandwidth",
    "fair",
    "perf-fair",
    "oracle",
    "round-robin",
];
/// Position of a policy in that order.
const LINUX: usize = 0;
const BANDWIDTH: usize = 1;
const FAIR: usize = 2;
const PERF_FAIR: usize = 3;
const ROUND_ROBIN: usize = 5;
/// Positions of `fair` and `perf-fair` with our limits.
const OURS: [usize; 2] = [6, 7];

/// Mix 9 is the one of Figure 3.
const NINTH: usize = 8;

/// Jobs of a mix.
const JOBS: usize = 24;
/// Half of them: as many as there are hardware threads.
const HALF: usize = JOBS / 2;

/// The paper counts the mixes whose unfairness is above this, in per cent.
const UNFAIR_PERCENT: f64 = 20.0;

/// The groups of mixes of section 7.2, by the lines that they read per us.
const GROUPS: [&str; 3] = ["low demand", "middle demand", "high demand"];
/// The bandwidths that separate them.
const LIMITS: [f64; 2] = [80.0, 120.0];

/// What was simulated on one machine.
struct Bench {
    name: &'static str,
    channels: &'static str,
    spec: Arc<MachineSpec>,
    /// Names of the candidates.
    labels: Vec<String>,
    grid: Grid,
    /// The group of each mix by its bandwidth: a position in [`GROUPS`].
    groups: Vec<usize>,
}

/// The policies of the paper as it states them, which are judged, then ours beside them.
fn candidates() -> Vec<TrialCandidate> {
    let mut candidates = Vec::new();
    for policy in POLICIES {
        candidates.push(TrialCandidate::new(policy).named(&format!("`{policy}`")));
    }
    for at in [FAIR, PERF_FAIR] {
        candidates[at].truth = true;
        let ours = format!("{}, ours", candidates[at].label);
        candidates.push(candidates[at].clone().named(&ours));
        candidates[at] = candidates[at].clone().with("as", "paper");
    }
    candidates
}

impl Bench {
    fn simulate(
        lab: &Lab<'_>,
        mixes: &[ExperimentMix],
        (name, channels): (&'static str, &'static str),
    ) -> Result<Bench> {
        let candidates = candidates();
        let labels = candidates.iter().map(|one| one.label.clone()).collect();
        let spec = machine(name);
        let grid = Grid::simulate(lab, &spec, mixes, &candidates, &lab.seeds)?;
        let mut groups = Vec::new();
        for mix in 0..grid.mixes {
            groups.push(group(bandwidth(&grid, mix)));
        }
        Ok(Bench {
            name,
            channels,
            spec,
            labels,
            groups,
            grid,
        })
    }

    /// Speed-up of turnaround over linux in per cent: by mix, then by seed.
    fn speed_ups(&self, candidate: usize) -> Vec<Vec<f64>> {
        self.grid
            .compared(candidate, LINUX, TrialMeasurements::time, gain)
    }

    /// For each seed, the mean speed-up over linux in per cent.
    fn overall(&self, candidate: usize) -> Vec<f64> {
        self.overall_in(&self.grid, candidate)
    }

    /// The same of a candidate of another grid with the same mixes.
    fn overall_in(&self, grid: &Grid, candidate: usize) -> Vec<f64> {
        grid.speed_up(candidate, (&self.grid, LINUX))
    }

    /// For each seed, the mean speed-up of the mixes of a group.
    fn of_group(&self, group: usize, candidate: usize) -> Vec<f64> {
        let mut of_group = self.speed_ups(candidate);
        let mut groups = self.groups.iter();
        of_group.retain(|_| groups.next() == Some(&group));
        over(&of_group, mean)
    }
}

/// For each seed, in how many mixes one candidate is faster than another.
fn mixes_faster(grid: &Grid, one: usize, other: usize) -> Vec<f64> {
    grid.count(|mix, seed| {
        let one = &grid.runs(mix, one)[seed];
        let other = &grid.runs(mix, other)[seed];
        one.turnaround_s < other.turnaround_s
    })
}

/// For each seed, in how many mixes the unfairness under a candidate is above 20 %.
fn mixes_unfair(grid: &Grid, candidate: usize) -> Vec<f64> {
    grid.count(|mix, seed| {
        let run = &grid.runs(mix, candidate)[seed];
        run.unfair_percent() > Some(UNFAIR_PERCENT)
    })
}

/// Lines read per us under linux, mean over the seeds.
fn bandwidth(grid: &Grid, mix: usize) -> f64 {
    mean(&grid.values(mix, LINUX, TrialMeasurements::reads)).unwrap_or(0.0)
}

/// The group of a mix that reads so many lines per us.
fn group(bandwidth: f64) -> usize {
    LIMITS.iter().filter(|&&limit| bandwidth >= limit).count()
}

/// The chapter.
pub(super) fn chapter(lab: &Lab<'_>) -> Result<Chapter> {
    let mut draft = Draft::new("perf-fair", include_str!("chapter.toml"), lab);
    let mixes = of_folder("perf-fair", lab.work());
    let mut benches: Vec<Bench> = Vec::new();
    for machine in MACHINES {
        benches.push(Bench::simulate(lab, &mixes, machine)?);
    }
    // A mix asks for what it reads where memory is least short.
    let groups = benches[0].groups.clone();
    for bench in &mut benches {
        bench.groups.clone_from(&groups);
    }
    tables::all(&mut draft, &benches, &mixes);
    verdicts::judge(&mut draft, lab.solo.as_s(), &benches[0]);
    causes::all(&mut draft, lab, &mixes, &benches)?;
    Ok(draft.finish())
}
