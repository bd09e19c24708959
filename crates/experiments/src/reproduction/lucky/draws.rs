//! Mixes of the paper's eight kinds, drawn again and again: the paper names no program of its own.

use super::efficiency::{Alone, Found, benefits, of};
use super::{BIAS, BIG_FAIR, LUCKY, POLICIES, saved, share_saved, shares};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part, Table, Verdict};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{Mix, copies};
use crate::reproduction::paper::lucky as paper;
use crate::reproduction::trial::Measured;
use crate::statistics::{mean, over};
use cosched_core::{Restart, Rng};
use cosched_sim::{MachineSpec, ProgramSpec, SimJob, Work};
use std::sync::Arc;

/// Part of its program's instructions that a job has, as in the mixes.
const PART: f64 = 0.1;
/// At most so many million misses a second make a program compute-intensive, at least so many memory-intensive: the paper's
/// figures, by which its mixes are drawn here.
const COMPUTE: f64 = 2.0;
const MEMORY: f64 = 14.0;
/// Mixes of each kind that are drawn.
const DRAWN: usize = 30;
/// The same in the short form.
const QUICK_DRAWN: usize = 8;

/// The mixes of one kind.
struct Kind {
    name: &'static str,
    mixes: Vec<Mix>,
    grid: Grid,
}

/// Mixes of all kinds.
pub(super) struct Draws {
    kinds: Vec<Kind>,
    drawn: usize,
}

impl Draws {
    /// Draws them from programs by what they do alone, and simulates each with one seed.
    pub(super) fn simulate(
        lab: &Lab<'_>,
        spec: &Arc<MachineSpec>,
        alone: &[Alone],
    ) -> Result<Draws, ReproduceError> {
        let pool = |which: &dyn Fn(&Alone) -> bool| -> Vec<&Arc<ProgramSpec>> {
            alone
                .iter()
                .filter(|one| which(one))
                .map(|one| &one.program)
                .collect()
        };
        let compute = pool(&|one| one.misses() <= COMPUTE);
        let memory = pool(&|one| one.misses() >= MEMORY);
        let phased = pool(&|one| one.program.phases.len() > 1);
        let all = pool(&|_| true);
        let pick = |from: &[&Arc<ProgramSpec>], count: usize, rng: &mut Rng| -> Vec<SimJob> {
            let mut left = from.to_vec();
            let mut jobs = Vec::new();
            while jobs.len() < count && !left.is_empty() {
                let program = left.swap_remove(rng.below(left.len() as u64) as usize);
                let instructions = PART * program.instructions.unwrap_or(1e12);
                jobs.extend(copies(program, 1, Work::Instructions(instructions as u64)));
            }
            jobs
        };
        type Pools<'a> = Vec<(&'a [&'a Arc<ProgramSpec>], usize)>;
        let kinds: [(&'static str, Pools<'_>); 8] = [
            ("4CI", vec![(&compute, 4)]),
            ("3CI-1MI", vec![(&compute, 3), (&memory, 1)]),
            ("2CI-2MI", vec![(&compute, 2), (&memory, 2)]),
            ("1CI-3MI", vec![(&compute, 1), (&memory, 3)]),
            ("4MI", vec![(&memory, 4)]),
            ("4P", vec![(&phased, 4)]),
            ("4R1", vec![(&all, 4)]),
            ("4R2", vec![(&all, 4)]),
        ];
        let drawn = if lab.few < crate::reproduction::FEW {
            QUICK_DRAWN
        } else {
            DRAWN
        };
        let simulate = |(kind, (name, pools)): (usize, (&'static str, Pools<'_>))| {
            let mut rng =
                Rng::new(lab.seeds[0] ^ (kind as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut draw = || {
                let jobs = pools
                    .iter()
                    .flat_map(|(from, count)| pick(from, *count, &mut rng))
                    .collect();
                Mix {
                    name: "drawn",
                    jobs,
                    restart: Restart::UntilLast,
                }
            };
            let mixes: Vec<Mix> = (0..drawn).map(|_| draw()).collect();
            let what = format!("lucky: mixes of the kind {name}");
            let candidates = POLICIES.map(Candidate::new);
            let grid =
                Grid::simulate(&lab.pool, &what, spec, &mixes, &candidates, &lab.seeds[..1])?;
            Ok(Kind { name, mixes, grid })
        };
        let kinds = kinds
            .into_iter()
            .enumerate()
            .map(simulate)
            .collect::<Result<Vec<_>, ReproduceError>>()?;
        Ok(Draws { kinds, drawn })
    }

    fn kind(&self, name: &str) -> Option<&Kind> {
        self.kinds
            .iter()
            .find(|kind| kind.name.eq_ignore_ascii_case(name))
    }

    /// A figure of sets of eight mixes, as the paper has one: the first draws of all kinds are one set, the second ones
    /// another. `figure` is given the shares of the energy-delay product of a set.
    fn of_sets(
        &self,
        ours: usize,
        base: usize,
        figure: impl Fn(&[f64]) -> Option<f64>,
    ) -> Vec<f64> {
        let lists: Vec<Vec<f64>> = self
            .kinds
            .iter()
            .map(|kind| shares(&kind.grid, ours, base).concat())
            .collect();
        over(&lists, figure)
    }

    /// The figures of the paper's Figures 1 and 3.
    pub(super) fn judge(&self) -> Vec<Verdict> {
        let mut verdicts = Vec::new();
        if let Some(kind) = self.kind("3ci-1mi") {
            let ratios = |of: fn(&Measured) -> Option<f64>| -> Vec<f64> {
                let pair = |mix: usize| {
                    let pairs = kind
                        .grid
                        .of(mix, BIG_FAIR)
                        .iter()
                        .zip(kind.grid.of(mix, BIAS));
                    pairs
                        .filter_map(|(fair, bias)| Some(of(fair)? / of(bias)?))
                        .collect::<Vec<f64>>()
                };
                (0..kind.grid.mixes).flat_map(pair).collect()
            };
            let faster: Vec<f64> = ratios(|run| Some(run.turnaround_s))
                .iter()
                .map(|ratio| 100.0 * (1.0 / ratio - 1.0))
                .collect();
            let saved: Vec<f64> = ratios(|run| run.energy_j)
                .iter()
                .map(|ratio| 100.0 * (1.0 - ratio))
                .collect();
            let figure = 100.0 * (paper::FIGURE_1.0 - 1.0);
            verdicts.push(Verdict::draws(
                "Figure 1: `big-fair` faster than `bias`, %",
                figure,
                0,
                &faster,
            ));
            verdicts.push(Verdict::draws(
                "Figure 1: energy saved by `big-fair`, %",
                paper::FIGURE_1.1,
                0,
                &saved,
            ));
        }
        let most = |shares: &[f64]| {
            shares
                .iter()
                .copied()
                .reduce(f64::min)
                .map(|least| 100.0 * (1.0 - least))
        };
        let worse =
            |shares: &[f64]| Some(shares.iter().filter(|&&share| share > 1.0).count() as f64);
        for (base, name, figures, worse_in) in [
            (BIAS, "bias", paper::OVER_BIAS, 0.0),
            (
                BIG_FAIR,
                "big-fair",
                paper::OVER_BIG_FAIR,
                paper::WORSE.len() as f64,
            ),
        ] {
            let saved = format!("Figure 3: saved by `lucky` over `{name}`");
            verdicts.push(Verdict::draws(
                format!("{saved}, mean, %"),
                figures.0,
                0,
                &self.of_sets(LUCKY, base, share_saved),
            ));
            verdicts.push(Verdict::draws(
                format!("{saved}, greatest, %"),
                figures.1,
                0,
                &self.of_sets(LUCKY, base, most),
            ));
            let what = format!("Figure 3: mixes of 8 in which `lucky` is worse than `{name}`");
            verdicts.push(Verdict::draws(
                what,
                worse_in,
                0,
                &self.of_sets(LUCKY, base, worse),
            ));
        }
        let means = self.of_sets(BIG_FAIR, BIAS, share_saved);
        let what = "Figure 3: saved by `big-fair` over `bias`, mean, %";
        verdicts.push(Verdict::draws(what, paper::BIG_FAIR_OVER_BIAS, 0, &means));
        for (name, figure) in paper::WORSE {
            if let Some(kind) = self.kind(name) {
                let what = format!(
                    "Figure 3: {}, saved by `lucky` over `big-fair`, %",
                    kind.name
                );
                verdicts.push(Verdict::draws(
                    what,
                    figure,
                    0,
                    &kind.saved(LUCKY, BIG_FAIR),
                ));
            }
        }
        verdicts
    }

    /// How much depends on what is drawn, and on what.
    pub(super) fn parts(
        &self,
        spec: &Arc<MachineSpec>,
        alone: &[Alone],
    ) -> Result<Vec<Part>, ReproduceError> {
        const PAIRS: [(usize, usize); 3] = [(LUCKY, BIAS), (LUCKY, BIG_FAIR), (BIG_FAIR, BIAS)];
        let row = |name: &str, of: &dyn Fn(usize, usize) -> Vec<f64>| {
            let mut row = vec![Cell::text(name)];
            row.extend(PAIRS.map(|(ours, base)| Cell::draws(&of(ours, base), 0)));
            row
        };
        let mut rows: Vec<Vec<Cell>> = self
            .kinds
            .iter()
            .map(|kind| row(kind.name, &|ours, base| kind.saved(ours, base)))
            .collect();
        rows.push(row("all eight", &|ours, base| {
            self.of_sets(ours, base, share_saved)
        }));
        let found = benefits(spec, alone)?.map_or_else(Vec::new, |(_, found)| found);
        let mut by_longest = GAINS.map(|_| Vec::new());
        for kind in &self.kinds {
            for (at, mix) in kind.mixes.iter().enumerate() {
                let gain = longest_gain(&mix.jobs, alone, &found);
                let bin = GAINS
                    .iter()
                    .filter(|&&(from, _)| gain >= from)
                    .count()
                    .saturating_sub(1);
                by_longest[bin].extend(saved(&kind.grid, at, LUCKY, BIG_FAIR));
            }
        }
        Ok(vec![
            Part::Text(
                "**Single mixes decide.** Mixes of the same kind that are drawn otherwise come out otherwise, above all against \
                 `bias`: it gives one job the big core all the time, which is best if that job is the longest and worst if it \
                 is the shortest. The last row is of sets of eight mixes, one of each kind, as the paper has one."
                    .to_owned(),
            ),
            Part::Table(Table {
                id: "lucky-draws".to_owned(),
                caption: format!(
                    "Energy-delay product saved in per cent, over {} mixes of each kind: mean, and in brackets from the 10th \
                     to the 90th percentile.",
                    self.drawn
                ),
                columns: ["kind", "lucky over bias", "lucky over big-fair", "big-fair over bias"]
                    .map(str::to_owned)
                    .to_vec(),
                rows,
            }),
            Part::Text(
                "**When `lucky` gains over `big-fair`.** It gives the big core to those who gain most from it, whoever they are; \
                 the product counts the time of the job that ends last. So it depends on that job: where it gains half as \
                 much again as the four do in the mean, `lucky` saves as much as in the paper; where it gains no more than \
                 they do, `lucky` loses."
                    .to_owned(),
            ),
            Part::Table(Table {
                id: "lucky-longest".to_owned(),
                caption: "The same mixes of all kinds, by what the longest job gains from the big core over what the four do in \
                          the mean: energy-delay product saved in per cent, mean and from the 10th to the 90th percentile."
                    .to_owned(),
                columns: ["the longest job gains, x the mean", "mixes", "lucky over big-fair"]
                    .map(str::to_owned)
                    .to_vec(),
                rows: (GAINS.iter().zip(&by_longest))
                    .map(|((_, how), saved)| {
                        vec![Cell::text(*how), Cell::number(saved.len() as f64, 0), Cell::draws(saved, 0)]
                    })
                    .collect(),
            }),
        ])
    }
}

impl Kind {
    /// Energy-delay product saved in per cent, by draw.
    fn saved(&self, ours: usize, base: usize) -> Vec<f64> {
        (0..self.grid.mixes)
            .flat_map(|mix| saved(&self.grid, mix, ours, base))
            .collect()
    }
}

/// Bins of [`longest_gain`], each with its least value.
const GAINS: [(f64, &str); 5] = [
    (0.0, "less than 1"),
    (1.0, "1 to 1.1"),
    (1.1, "1.1 to 1.25"),
    (1.25, "1.25 to 1.5"),
    (1.5, "1.5 or more"),
];

/// What the job that takes longest on a small core gains from the big one, over what the jobs do in the mean.
fn longest_gain(jobs: &[SimJob], alone: &[Alone], found: &[Found]) -> f64 {
    let time = |job: &SimJob| {
        let one = alone
            .iter()
            .find(|one| one.program.name == job.program.name);
        match (one, job.work) {
            (Some(one), Work::Instructions(instructions)) => instructions as f64 / one.small_mips(),
            _ => 0.0,
        }
    };
    let ratio = |job: &SimJob| mean(of(found, &job.program.name, |one| &one.ratio)).unwrap_or(0.0);
    let longest = jobs.iter().max_by(|a, b| time(a).total_cmp(&time(b)));
    let ratios: Vec<f64> = jobs.iter().map(ratio).collect();
    longest
        .zip(mean(&ratios))
        .map_or(0.0, |(longest, mean)| ratio(longest) / mean)
}
