//! Four copies of each program, on all cores and on fewer, and mixes of high demand (section 5.3, Figures 8 to 10).

use super::{Bench, CORES, EFS, LINUX, linux_and_efs};
use crate::reproduction::engine::{
    Draft, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements, lost, of_folder, saved,
};
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
            energy_saved: grid.compared(candidate, LINUX, TrialMeasurements::energy, saved),
            time_lost: grid.compared(candidate, LINUX, TrialMeasurements::time, lost),
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

    fn row(&self, label: &str) -> Vec<FindingCell> {
        vec![
            FindingCell::text(label),
            FindingCell::signed(&self.mean_energy_saved(), 1),
            FindingCell::signed(&self.mean_time_lost(), 1),
        ]
    }

    fn draw(&self, draft: &mut Draft, key: &str, names: Vec<String>) {
        let series = vec![
            ("energy saved".to_owned(), self.energy_saved.clone()),
            ("time lost".to_owned(), self.time_lost.clone()),
        ];
        draft.bars(key, names, series);
    }
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

/// Programs that take less energy, in per cent of all. What the table of programs shows as 0.0 is no saving.
fn share_of_improved(saved: &[f64]) -> Option<f64> {
    let improved = saved.iter().filter(|saved| **saved >= 0.05).count();
    Some(100.0 * improved as f64 / saved.len() as f64)
}

/// Four copies of each program under `linux` and `efs`.
pub(super) fn figure_8(draft: &mut Draft, bench: &Bench<'_>) -> Result<Effects> {
    let mixes = bench.copies(CORES);
    let grid = bench.linux_against_efs(&mixes)?;
    let effects = Effects::of(&grid, EFS);
    let names: Vec<String> = mixes.into_iter().map(|mix| mix.name).collect();
    effects.draw(draft, "figure-8", names.clone());
    judge_figure_8(draft, &grid, &effects);
    judge_named(draft, &effects, &names);
    Ok(effects)
}

fn judge_figure_8(draft: &mut Draft, grid: &Grid, effects: &Effects) {
    let chip = grid.compared(EFS, LINUX, TrialMeasurements::chip_energy, saved);
    let product = grid.compared(EFS, LINUX, TrialMeasurements::energy_delay, saved);
    draft.judge("figure-8-energy", &effects.mean_energy_saved());
    draft.judge("figure-8-cpu-energy", &over(&chip, mean));
    draft.judge("figure-8-time", &effects.mean_time_lost());
    draft.judge("figure-8-product", &over(&product, mean));
    let affected = over(&effects.energy_saved, share_of_affected);
    draft.judge("affected", &affected);
    draft.judge("improved", &over(&effects.energy_saved, share_of_improved));
    let affected_energy = of_affected(effects, &effects.energy_saved);
    let affected_time = of_affected(effects, &effects.time_lost);
    draft.judge("affected-energy", &affected_energy);
    draft.judge("affected-time", &affected_time);
    draft.judge("best-time", &effects.best_time_gained());
}

/// The programs whose figures the paper gives.
fn judge_named(draft: &mut Draft, effects: &Effects, names: &[String]) {
    for name in ["libquantum", "GemsFDTD"] {
        if let Some(at) = names.iter().position(|one| one == name) {
            draft.judge(&format!("{name}-energy"), &effects.energy_saved[at]);
            draft.judge(&format!("{name}-time"), &effects.time_lost[at]);
        }
    }
    draft.judge_order("libquantum-most", |name| {
        let all = names.iter().zip(&effects.energy_saved);
        let chosen = all.filter(|(one, _)| (*one == "libquantum") == (name == "libquantum"));
        let saved: Vec<Vec<f64>> = chosen.map(|(_, saved)| saved.clone()).collect();
        over(&saved, greatest)
    });
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

/// Fewer cores for the same copies. Returns the effects of one, two and three cores.
pub(super) fn figure_9(draft: &mut Draft, bench: &Bench<'_>) -> Result<Vec<Effects>> {
    let cpus = bench.full.machine().all_cpus();
    let mut candidates = linux_and_efs().to_vec();
    for cores in 1..CORES {
        let label = format!("linux, {cores} of {CORES} cores");
        let mut candidate = TrialCandidate::new("linux").named(&label);
        candidate.usable = Some(cpus.iter().take(cores).collect());
        candidates.push(candidate);
    }
    let mixes = bench.copies(CORES);
    let grid = Grid::few(bench.lab, &bench.full, &mixes, &candidates)?;
    let efs = Effects::of(&grid, EFS);
    let mut fixed = Vec::new();
    let mut rows = Vec::new();
    for (at, candidate) in candidates.iter().enumerate().skip(EFS + 1) {
        let effects = Effects::of(&grid, at);
        rows.push(effects.row(&candidate.label));
        fixed.push(effects);
    }
    rows.push(efs.row("efs"));
    draft.value("programs", mixes.len());
    draft.table("figure-9", rows);
    judge_figure_9(draft, &efs, &fixed);
    Ok(fixed)
}

fn by_mean(a: &[f64], b: &[f64]) -> Ordering {
    let a = mean(a).unwrap_or(0.0);
    let b = mean(b).unwrap_or(0.0);
    a.total_cmp(&b)
}

fn judge_figure_9(draft: &mut Draft, efs: &Effects, fixed: &[Effects]) {
    draft.judge_order("figure-9-energy", |name| match name {
        "efs" => efs.mean_energy_saved(),
        _ => {
            let saved = fixed.iter().map(Effects::mean_energy_saved);
            saved.max_by(|a, b| by_mean(a, b)).unwrap_or_default()
        }
    });
    draft.judge_order("figure-9-time", |name| match name {
        "efs" => efs.mean_time_lost(),
        _ => {
            let lost = fixed.iter().map(Effects::mean_time_lost);
            lost.min_by(|a, b| by_mean(a, b)).unwrap_or_default()
        }
    });
}

/// Mixes of high demand.
pub(super) fn figure_10(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let mixes = of_folder("efs", bench.lab.work());
    let grid = bench.linux_against_efs(&mixes)?;
    let effects = Effects::of(&grid, EFS);
    let names = mixes
        .iter()
        .map(|mix| format!("{} ({} jobs)", mix.name, mix.jobs.len()));
    effects.draw(draft, "figure-10", names.collect());
    let lost = effects.mean_time_lost();
    let faster: Vec<f64> = lost.iter().map(|lost| -lost).collect();
    draft.judge("figure-10-energy", &effects.mean_energy_saved());
    draft.judge("figure-10-speed", &faster);
    Ok(())
}
