//! Perf&Fair: fairness and speed of mixes of 24 on six cores of two hardware threads (its section 7).
//!
//! `tables` shows what was simulated, `verdicts` holds it against the paper, `causes` changes one thing at a time.

mod causes;
mod tables;
mod verdicts;

use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Chapter, Part};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::of_folder;
use crate::reproduction::paper::perf_fair as paper;
use crate::reproduction::trial::{Measured, machine};
use crate::statistics::{mean, over};
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// The machines: the paper does not say how many channels of memory its machine had.
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

/// Mix 9 is the one of Figure 3.
const NINTH: usize = 8;

/// What was simulated on one machine.
struct Bench {
    name: &'static str,
    channels: &'static str,
    spec: Arc<MachineSpec>,
    candidates: Vec<Candidate>,
    grid: Grid,
    /// The group of each mix by its bandwidth: a position in [`GROUPS`].
    groups: Vec<usize>,
}

impl Bench {
    fn base(&self, mix: usize) -> &[Measured] {
        self.grid.of(mix, LINUX)
    }

    /// Speed-up of turnaround over linux in per cent, by seed.
    fn speed_up(&self, mix: usize, candidate: usize) -> Vec<f64> {
        self.grid
            .gains(mix, candidate, self.base(mix), |run| Some(run.turnaround_s))
    }

    fn overall(&self, candidate: usize) -> Vec<f64> {
        self.grid.speed_up(candidate, (&self.grid, LINUX))
    }

    /// Lines read per us under linux, mean over the seeds.
    fn bandwidth(&self, mix: usize) -> f64 {
        bandwidth(&self.grid, mix)
    }

    /// For each seed, the mean speed-up of the mixes of a group.
    fn of_group(&self, group: usize, candidate: usize) -> Vec<f64> {
        let is_in = |mix: &usize| self.groups[*mix] == group;
        let mixes: Vec<Vec<f64>> = (0..self.grid.mixes)
            .filter(is_in)
            .map(|mix| self.speed_up(mix, candidate))
            .collect();
        over(&mixes, mean)
    }
}

fn bandwidth(grid: &Grid, mix: usize) -> f64 {
    mean(&grid.values(mix, LINUX, |run| Some(run.reads_per_us))).unwrap_or(0.0)
}

/// The groups of mixes of section 7.2: by the lines that they read per us, below 80, 80 to 120, and above.
const GROUPS: [&str; 3] = ["low demand", "middle demand", "high demand"];

/// The group of each mix, by its bandwidth under linux where memory is least short: what it asks for.
fn groups(grid: &Grid) -> Vec<usize> {
    let group = |mix: usize| {
        paper::GROUPS
            .iter()
            .filter(|&&limit| bandwidth(grid, mix) >= limit)
            .count()
    };
    (0..grid.mixes).map(group).collect()
}

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let mixes = of_folder("perf-fair", lab.work);
    let mut candidates: Vec<Candidate> = POLICIES.map(Candidate::new).to_vec();
    candidates[FAIR].truth = true;
    candidates[PERF_FAIR].truth = true;
    let mut benches: Vec<Bench> = Vec::new();
    for (name, channels) in MACHINES {
        let spec = machine(name)?;
        let what = format!("perf-fair on {name}");
        let grid = Grid::simulate(&lab.pool, &what, &spec, &mixes, &candidates, &lab.seeds)?;
        let groups = benches
            .first()
            .map_or_else(|| groups(&grid), |first| first.groups.clone());
        benches.push(Bench {
            name,
            channels,
            spec,
            candidates: candidates.clone(),
            grid,
            groups,
        });
    }
    let mut parts = vec![Part::Text(format!(
        "Thirteen mixes of 24 programs on `xeon-e5645` (six cores with two hardware threads), {}, with {}: the same jobs for \
         every policy, so that differences are pairs. The mixes are ours: the paper's stand in a supplement that was not at \
         hand, so they are drawn to read 60 to 140 lines per us, on both sides of the 80 and 120 that separate its groups. `bandwidth` \
         is the paper's Perf. `perf-fair` and `fair` are the paper's but for two things that are ours: renewed estimates take at \
         most 5 % of the time, and what counts as light is fitted to the machine. The paper does not say how many channels of \
         memory its machine had, so there are three machines. No single one shows both its fairness and its speed. \
         Unfairness is the greatest slowdown over the least, in per cent above 1; means over mixes are geometric. \
         `round-robin` knows nothing of jobs: what it gains over `linux` is mostly due to its long quanta.",
        lab.work_in_words(),
        lab.seeds_in_words(),
    ))];
    for bench in &benches {
        parts.push(Part::Heading(format!(
            "{}: `{}`",
            capital(bench.channels),
            bench.name
        )));
        parts.push(Part::Table(tables::summary(bench)));
    }
    let (first, last) = (&benches[0], &benches[benches.len() - 1]);
    for bench in [first, last] {
        parts.push(Part::Heading(format!(
            "Figures 1 and 2 with {}",
            bench.channels
        )));
        parts.push(tables::figure_1(bench, &mixes));
        parts.push(tables::figure_2(bench, &mixes));
    }
    parts.push(Part::Heading("Figure 3: how jobs of mix 9 end".to_owned()));
    for bench in [first, last] {
        parts.push(tables::figure_3(bench));
    }
    parts.push(Part::Heading("Groups of mixes by bandwidth".to_owned()));
    parts.push(Part::Table(tables::by_group(&benches)));
    parts.push(Part::Heading("What estimates are worth".to_owned()));
    parts.push(Part::Table(tables::estimates(&benches)));
    let verdicts = benches
        .iter()
        .flat_map(|bench| verdicts::judge(lab, bench))
        .collect();
    let causes = causes::causes(lab, &mixes, &benches)?;
    let title = "Perf&Fair: fairness and speed".to_owned();
    Ok(Chapter {
        id: "perf-fair",
        title,
        parts,
        verdicts,
        causes,
    })
}

fn capital(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}
