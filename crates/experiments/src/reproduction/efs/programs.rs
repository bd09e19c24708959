//! Four copies of each program, on all cores and on fewer, and mixes of high demand (section 5.3, Figures 8 to 10).

use super::{Bench, CORES, EFS, LINUX, POWER, STREAMS, linux_and_efs};
use crate::reproduction::engine::{
    Axes, Candidate, Cell, Chapter, Grid, Measured, Result, Verdict, bars, lost, of_folder, saved,
};
use crate::reproduction::paper::efs as paper;
use crate::statistics::{mean, over};
use std::cmp::Ordering;

/// A program is affected when its energy changes by more than this, in per cent (section 5.3).
pub(super) const AFFECTED: f64 = 3.0;

/// What a candidate changes against `linux` in per cent: by program or mix, then by seed.
pub(super) struct Effects {
    pub(super) energy_saved: Vec<Vec<f64>>,
    pub(super) time_lost: Vec<Vec<f64>>,
}

impl Effects {
    pub(super) fn of(grid: &Grid, candidate: usize) -> Effects {
        Effects {
            energy_saved: grid.compared(candidate, LINUX, Measured::energy, saved),
            time_lost: grid.compared(candidate, LINUX, Measured::time, lost),
        }
    }

    pub(super) fn mean_energy_saved(&self) -> Vec<f64> {
        over(&self.energy_saved, mean)
    }

    pub(super) fn mean_time_lost(&self) -> Vec<f64> {
        over(&self.time_lost, mean)
    }

    /// Time that the best program gains.
    pub(super) fn best_time_gained(&self) -> Vec<f64> {
        over(&self.time_lost, |lost| {
            lost.iter().map(|lost| -lost).reduce(f64::max)
        })
    }

    fn row(&self, label: &str) -> Vec<Cell> {
        vec![
            Cell::text(label),
            Cell::signed(&self.mean_energy_saved(), 1),
            Cell::signed(&self.mean_time_lost(), 1),
        ]
    }

    fn draw(
        &self,
        chapter: &mut Chapter,
        id: &str,
        caption: &str,
        x: &'static str,
        names: Vec<String>,
    ) {
        let axes = Axes {
            x,
            y: "%",
            decimals: 1,
        };
        let series = vec![
            ("energy saved".to_owned(), self.energy_saved.clone()),
            ("time lost".to_owned(), self.time_lost.clone()),
        ];
        let figure = bars(id.to_owned(), caption.to_owned(), axes, names, series, None);
        chapter.figure(figure);
    }
}

/// A verdict on energy.
fn energy(what: impl Into<String>, figure: f64, ours: &[f64]) -> Verdict {
    Verdict::gain(what, figure, 1, ours).resting_on(POWER)
}

/// A verdict on time.
fn time(what: impl Into<String>, figure: f64, ours: &[f64]) -> Verdict {
    Verdict::gain(what, figure, 1, ours).resting_on(STREAMS)
}

/// The mean over the affected programs, by seed.
fn of_affected(effects: &Effects, values: &[Vec<f64>]) -> Vec<f64> {
    let mut affected = Vec::new();
    for (saved, values) in effects.energy_saved.iter().zip(values) {
        if mean(saved).unwrap_or(0.0).abs() > AFFECTED {
            affected.push(values.clone());
        }
    }
    over(&affected, mean)
}

/// Affected programs in per cent of all.
fn share_of_affected(saved: &[f64]) -> Option<f64> {
    let affected = saved.iter().filter(|saved| saved.abs() > AFFECTED).count();
    Some(100.0 * affected as f64 / saved.len() as f64)
}

/// Four copies of each program under `linux` and `efs`.
pub(super) fn figure_8(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<Effects> {
    let mixes = bench.copies(CORES);
    let grid = bench.linux_against_efs("efs: Figure 8", &mixes)?;
    let effects = Effects::of(&grid, EFS);
    let names: Vec<String> = mixes.into_iter().map(|mix| mix.name).collect();
    chapter.heading("Figure 8: four copies of each program");
    let caption = "What `efs` changes for four copies of each program, against `linux`.";
    effects.draw(chapter, "efs-figure-8", caption, "program", names.clone());
    chapter
        .verdicts
        .extend(judge_figure_8(&grid, &effects, &names));
    Ok(effects)
}

fn judge_figure_8(grid: &Grid, effects: &Effects, names: &[String]) -> Vec<Verdict> {
    let chip = grid.compared(EFS, LINUX, Measured::chip_energy, saved);
    let product = grid.compared(EFS, LINUX, Measured::energy_delay, saved);
    let share = over(&effects.energy_saved, share_of_affected);
    let affected_energy = of_affected(effects, &effects.energy_saved);
    let affected_time = of_affected(effects, &effects.time_lost);
    let (of_energy, of_time, of_product) = paper::FIGURE_8;
    let (number, less, longer) = paper::AFFECTED;
    let what = "Figure 8: affected programs, whose energy changes by more than 3 %, % of all";
    let mut verdicts = vec![
        energy(
            "Figure 8: energy saved, mean over the programs, %",
            of_energy,
            &effects.mean_energy_saved(),
        ),
        energy(
            "Figure 8: energy of the CPU saved, mean, %",
            paper::FIGURE_8_CPU,
            &over(&chip, mean),
        ),
        time(
            "Figure 8: time lost, mean, %",
            of_time,
            &effects.mean_time_lost(),
        ),
        energy(
            "Figure 8: energy-delay product saved, mean, %",
            of_product,
            &over(&product, mean),
        ),
        Verdict::size(what, 100.0 * number / paper::PROGRAMS, 0, &share).resting_on(POWER),
        energy(
            "Figure 8: energy saved by the affected, mean, %",
            less,
            &affected_energy,
        ),
        time(
            "Figure 8: time lost by the affected, mean, %",
            longer,
            &affected_time,
        ),
        time(
            "Figure 8: time gained by the best program, %",
            paper::BEST_GAIN,
            &effects.best_time_gained(),
        ),
    ];
    verdicts.extend(judge_named(effects, names));
    verdicts
}

/// The programs whose figures the paper gives.
fn judge_named(effects: &Effects, names: &[String]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (name, less, longer) in paper::NAMED {
        if let Some(at) = names.iter().position(|one| one == name) {
            let (saved, lost) = (&effects.energy_saved[at], &effects.time_lost[at]);
            let what = format!("Figure 8: energy saved by {name}, %");
            verdicts.push(energy(what, less, saved));
            let what = format!("Figure 8: time lost by {name}, %");
            verdicts.push(time(what, longer, lost));
        }
    }
    verdicts
}

/// Fewer cores for the same copies. Returns the effects of one, two and three cores.
pub(super) fn figure_9(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<Vec<Effects>> {
    let cpus = bench.full.machine().all_cpus();
    let mut candidates = linux_and_efs().to_vec();
    for cores in 1..CORES {
        candidates.push(Candidate {
            usable: Some(cpus.iter().take(cores).collect()),
            ..Candidate::new("linux").named(&format!("linux, {cores} of {CORES} cores"))
        });
    }
    let mixes = bench.copies(CORES);
    let grid = Grid::few(bench.lab, "efs: Figure 9", &bench.full, &mixes, &candidates)?;
    let efs = Effects::of(&grid, EFS);
    let mut fixed = Vec::new();
    let mut rows = Vec::new();
    for (at, candidate) in candidates.iter().enumerate().skip(EFS + 1) {
        let effects = Effects::of(&grid, at);
        rows.push(effects.row(&candidate.label));
        fixed.push(effects);
    }
    rows.push(efs.row("efs"));
    chapter.heading("Figure 9: fewer cores, fixed");
    chapter.table(
        "efs-figure-9",
        format!(
            "Means over {} programs with four copies each, against `linux` on four cores: `linux` on one, two and three cores, \
             and `efs`.",
            mixes.len()
        ),
        ["how", "energy saved, %", "time lost, %"],
        rows,
    );
    chapter.verdicts.extend(judge_figure_9(&efs, &fixed));
    Ok(fixed)
}

fn by_mean(a: &[f64], b: &[f64]) -> Ordering {
    mean(a).unwrap_or(0.0).total_cmp(&mean(b).unwrap_or(0.0))
}

/// The paper says that EFS is better than all of them, and does not order them.
fn judge_figure_9(efs: &Effects, fixed: &[Effects]) -> [Verdict; 2] {
    let saved = fixed.iter().map(Effects::mean_energy_saved);
    let most_saved = saved.max_by(|a, b| by_mean(a, b)).unwrap_or_default();
    let lost = fixed.iter().map(Effects::mean_time_lost);
    let least_lost = lost.min_by(|a, b| by_mean(a, b)).unwrap_or_default();
    let energies = [
        ("efs", efs.mean_energy_saved()),
        ("fewer cores", most_saved),
    ];
    let times = [("fewer cores", least_lost), ("efs", efs.mean_time_lost())];
    let what = "Figure 9: energy saved, against the best of fewer cores";
    let on_energy = Verdict::order(what, &["efs", "fewer cores"], &energies);
    let what = "Figure 9: time lost, against the fastest of fewer cores";
    let on_time = Verdict::order(what, &["fewer cores", "efs"], &times);
    [on_energy.resting_on(POWER), on_time.resting_on(STREAMS)]
}

/// Mixes of high demand.
pub(super) fn figure_10(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<()> {
    let mixes = of_folder("efs", bench.lab.work());
    let grid = bench.linux_against_efs("efs: Figure 10", &mixes)?;
    let effects = Effects::of(&grid, EFS);
    let names = mixes
        .iter()
        .map(|mix| format!("{} ({} jobs)", mix.name, mix.jobs.len()));
    chapter.heading("Figure 10: mixes of high demand");
    let caption =
        "What `efs` changes for mixes of programs that ask for much of the bus, against `linux`.";
    effects.draw(chapter, "efs-figure-10", caption, "mix", names.collect());
    let lost = effects.mean_time_lost();
    let faster: Vec<f64> = lost.iter().map(|lost| -lost).collect();
    let (of_energy, of_speed) = paper::FIGURE_10;
    chapter.verdicts.extend([
        energy(
            "Figure 10: energy saved, mean over the mixes, %",
            of_energy,
            &effects.mean_energy_saved(),
        ),
        time("Figure 10: speed-up, mean, %", of_speed, &faster),
    ]);
    Ok(())
}
