//! Mixes of the paper's eight kinds, drawn again and again: the paper names no program of its own.

use super::alone::Alone;
use super::efficiency::{Benefit, CoreTypes, ratio_of};
use super::{BIAS, BIG_FAIR, COMPARISONS, LUCKY, candidates, products_saved, share_saved, shares};
use crate::reproduction::engine::{
    Draft, ExperimentMix, FindingCell, Grid, Lab, Result, TrialMeasurements, gain, saved,
};
use crate::statistics::{mean, over};
use cosched_core::{Restart, Rng};
use cosched_sim::{JobWork, MachineSpec, SimJob};
use std::sync::Arc;

/// Part of its program's instructions that a job has, as in the mixes.
const PART: f64 = 0.1;
/// At most so many million misses a second make a program compute-intensive, at least so many memory-intensive: the paper's
/// figures, by which its mixes are drawn here.
const COMPUTE: f64 = 2.0;
const MEMORY: f64 = 14.0;

/// Programs from which jobs of a mix are drawn.
type Class = fn(&Alone) -> bool;

const CI: Class = |one| one.misses() <= COMPUTE;
const MI: Class = |one| one.misses() >= MEMORY;
const PHASED: Class = |one| one.program.phases.len() > 1;
const ANY: Class = |_| true;

/// The kinds of mixes: a name, and from which classes how many jobs are drawn.
const KINDS: [(&str, &[(Class, usize)]); 8] = [
    ("4CI", &[(CI, 4)]),
    ("3CI-1MI", &[(CI, 3), (MI, 1)]),
    ("2CI-2MI", &[(CI, 2), (MI, 2)]),
    ("1CI-3MI", &[(CI, 1), (MI, 3)]),
    ("4MI", &[(MI, 4)]),
    ("4P", &[(PHASED, 4)]),
    ("4R1", &[(ANY, 4)]),
    ("4R2", &[(ANY, 4)]),
];

/// Draws a mix of different programs of each class.
fn draw(classes: &[(Class, usize)], alone: &[Alone], rng: &mut Rng) -> ExperimentMix {
    let mut jobs = Vec::new();
    for (class, number) in classes {
        let mut left: Vec<&Alone> = alone.iter().filter(|one| class(one)).collect();
        for _ in 0..(*number).min(left.len()) {
            let drawn = rng.below(left.len() as u64);
            let program = &left.swap_remove(drawn as usize).program;
            let instructions = PART * program.instructions.unwrap_or(1e12);
            let work = JobWork::Instructions(instructions as u64);
            jobs.extend(ExperimentMix::of_copies(program, 1, work).jobs);
        }
    }
    ExperimentMix {
        name: "drawn".to_owned(),
        jobs,
        restart: Restart::UntilLast,
    }
}

/// The mixes of one kind.
struct Kind {
    name: &'static str,
    mixes: Vec<ExperimentMix>,
    grid: Grid,
}

/// Mixes of all kinds.
pub(super) struct Draws {
    kinds: Vec<Kind>,
    drawn: usize,
}

impl Kind {
    /// Energy-delay product saved in per cent, by draw.
    fn saved(&self, ours: usize, base: usize) -> Vec<f64> {
        products_saved(&self.grid, ours, base).concat()
    }
}

impl Draws {
    /// Draws them from programs by what they do alone, and simulates each with one seed.
    pub(super) fn simulate(
        lab: &Lab<'_>,
        spec: &Arc<MachineSpec>,
        alone: &[Alone],
    ) -> Result<Draws> {
        let drawn = if lab.quick { 8 } else { 30 };
        let seeds = &lab.seeds[..1];
        let mut kinds = Vec::new();
        for ((name, classes), number) in KINDS.into_iter().zip(1u64..) {
            let seed = seeds[0] ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut rng = Rng::new(seed);
            let mut mixes = Vec::new();
            for _ in 0..drawn {
                mixes.push(draw(classes, alone, &mut rng));
            }
            let grid = Grid::simulate(lab, spec, &mixes, &candidates(), seeds)?;
            kinds.push(Kind { name, mixes, grid });
        }
        Ok(Draws { kinds, drawn })
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        let mut kinds = self.kinds.iter();
        kinds.find(|kind| kind.name == name)
    }

    /// A figure of sets of eight mixes, as the paper has one: the first draws of all kinds are one set, the second ones
    /// another. `figure` is given the shares of the energy-delay product of a set.
    fn of_sets(&self, ours: usize, base: usize, figure: fn(&[f64]) -> Option<f64>) -> Vec<f64> {
        let mut by_kind = Vec::new();
        for kind in &self.kinds {
            let shares = shares(&kind.grid, ours, base);
            by_kind.push(shares.concat());
        }
        over(&by_kind, figure)
    }

    /// Holds the paper's Figures 1 and 3 against ours.
    pub(super) fn judge(&self, draft: &mut Draft) {
        if let Some(kind) = self.kind("3CI-1MI") {
            let faster = kind
                .grid
                .compared(BIG_FAIR, BIAS, TrialMeasurements::time, gain);
            let saved = kind
                .grid
                .compared(BIG_FAIR, BIAS, TrialMeasurements::energy, saved);
            draft.judge("figure-1-time", &faster.concat());
            draft.judge("figure-1-energy", &saved.concat());
        }
        for (key, base) in [("over-bias", BIAS), ("over-big-fair", BIG_FAIR)] {
            let means = self.of_sets(LUCKY, base, share_saved);
            let greatest = self.of_sets(LUCKY, base, most_saved);
            let worse = self.of_sets(LUCKY, base, mixes_worse);
            draft.judge(&format!("{key}-mean"), &means);
            draft.judge(&format!("{key}-greatest"), &greatest);
            draft.judge(&format!("{key}-worse"), &worse);
        }
        let means = self.of_sets(BIG_FAIR, BIAS, share_saved);
        draft.judge("big-fair-over-bias-mean", &means);
        for name in ["3CI-1MI", "4MI"] {
            if let Some(kind) = self.kind(name) {
                let ours = kind.saved(LUCKY, BIG_FAIR);
                draft.judge(&format!("worse-{name}"), &ours);
            }
        }
    }

    /// How much the result depends on the draw, and on which property of it.
    pub(super) fn show(
        &self,
        draft: &mut Draft,
        spec: &Arc<MachineSpec>,
        alone: &[Alone],
    ) -> Result<()> {
        self.by_kind(draft);
        let benefits = CoreTypes::fit(spec)?.benefits(alone);
        self.by_longest(draft, alone, &benefits);
        Ok(())
    }

    fn by_kind(&self, draft: &mut Draft) {
        let mut rows = Vec::new();
        for kind in &self.kinds {
            let mut row = vec![FindingCell::text(kind.name)];
            for (_, ours, base, _) in COMPARISONS {
                row.push(FindingCell::draws(&kind.saved(ours, base), 0));
            }
            rows.push(row);
        }
        let mut row = vec![FindingCell::text("all eight")];
        for (_, ours, base, _) in COMPARISONS {
            let saved = self.of_sets(ours, base, share_saved);
            row.push(FindingCell::draws(&saved, 0));
        }
        rows.push(row);
        draft.value("drawn", self.drawn);
        draft.table("draws", rows);
    }

    fn by_longest(&self, draft: &mut Draft, alone: &[Alone], benefits: &[Benefit]) {
        let mut by_gain = GAINS.map(|_| Vec::new());
        for kind in &self.kinds {
            let saved = products_saved(&kind.grid, LUCKY, BIG_FAIR);
            for (mix, saved) in kind.mixes.iter().zip(saved) {
                let gain = longest_gain(&mix.jobs, alone, benefits);
                let bin = GAINS.iter().rposition(|(from, _)| gain >= *from);
                by_gain[bin.unwrap_or(0)].extend(saved);
            }
        }
        let bins = GAINS.iter().zip(&by_gain);
        let rows = bins.map(|((_, how), saved)| {
            vec![
                FindingCell::text(*how),
                FindingCell::number(saved.len() as f64, 0),
                FindingCell::draws(saved, 0),
            ]
        });
        draft.table("longest", rows.collect());
    }
}

/// The greatest saving of a set, in per cent.
fn most_saved(shares: &[f64]) -> Option<f64> {
    let least = shares.iter().copied().reduce(f64::min)?;
    Some(100.0 * (1.0 - least))
}

/// In how many mixes of a set ours has more than the base.
fn mixes_worse(shares: &[f64]) -> Option<f64> {
    let worse = shares.iter().filter(|share| **share > 1.0);
    Some(worse.count() as f64)
}

/// Bins of [`longest_gain`], each with its least value.
const GAINS: [(f64, &str); 5] = [
    (0.0, "less than 1"),
    (1.0, "1 to 1.1"),
    (1.1, "1.1 to 1.25"),
    (1.25, "1.25 to 1.5"),
    (1.5, "1.5 or more"),
];

/// Time that a job takes on a small core, in us.
fn time_on_small(job: &SimJob, alone: &[Alone]) -> f64 {
    let mut programs = alone.iter();
    let found = programs.find(|one| one.program.name == job.program.name);
    match (found, job.work) {
        (Some(one), JobWork::Instructions(number)) => number as f64 / one.small_mips(),
        _ => 0.0,
    }
}

/// What the job that takes longest on a small core gains from the big one, over what the jobs do in the mean.
fn longest_gain(jobs: &[SimJob], alone: &[Alone], benefits: &[Benefit]) -> f64 {
    let mut gains = Vec::new();
    let (mut longest, mut gain_of_longest) = (0.0, 0.0);
    for job in jobs {
        let ratio = ratio_of(benefits, &job.program.name);
        let gain = mean(ratio).unwrap_or(0.0);
        gains.push(gain);
        let time = time_on_small(job, alone);
        if time >= longest {
            (longest, gain_of_longest) = (time, gain);
        }
    }
    gain_of_longest / mean(&gains).unwrap_or(1.0)
}
