//! `even` with energy as its objective, on EFS's machine beside EFS's own policy.

use super::{LONG_S, Mixes, SHORT_S, met, table};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, Curve, curves};
use crate::reproduction::findings::{Cell, Part, plain};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::trial::{Measured, machine};
use crate::statistics::mean;

/// Positions of candidates; the order is that of the rows. The first is the base.
pub(super) const BASE: usize = 0;
const EFS: usize = 3;
const EFS_EDP: usize = 4;
const EVEN_ENERGY: usize = 6;
const EVEN_EDP: usize = 7;

fn candidates() -> [Candidate; 8] {
    [
        Candidate::new("linux"),
        Candidate::new("bandwidth"),
        Candidate::new("perf-fair"),
        Candidate::new("efs"),
        Candidate::with("efs", "objective", "edp"),
        Candidate::new("even"),
        Candidate::with("even", "objective", "energy"),
        Candidate::with("even", "objective", "edp"),
    ]
}

/// How unfair it may be: greatest slowdown / least.
const UNFAIR_MOST: f64 = 1.1;

const SETS: [(&str, &str, Mixes); 2] = [
    ("high", "EFS's eight mixes of high demand", Mixes::Efs),
    (
        "copies",
        "four copies of each of 29 programs",
        Mixes::FourCopies,
    ),
];

pub(super) fn energy_delay(run: &Measured) -> Option<f64> {
    run.energy_j.map(|energy| energy * run.turnaround_s)
}

/// Of each seed, how many per cent less of a figure there is than with the base: geometric mean over the mixes.
pub(super) fn saved(grid: &Grid, at: usize, of: impl Fn(&Measured) -> Option<f64>) -> Vec<f64> {
    let ratio = |mix: usize, seed: usize| {
        Some(of(&grid.of(mix, at)[seed])? / of(&grid.of(mix, BASE)[seed])?)
    };
    grid.geometric(ratio)
        .into_iter()
        .map(|ratio| 100.0 * (1.0 - ratio))
        .collect()
}

/// The same on each mix: mean over the seeds.
fn saved_on(grid: &Grid, at: usize, mix: usize, of: impl Fn(&Measured) -> Option<f64>) -> f64 {
    let base = grid.of(mix, BASE);
    let saved: Vec<f64> = grid
        .of(mix, at)
        .iter()
        .zip(base)
        .filter_map(|(ours, base)| Some(100.0 * (1.0 - of(ours)? / of(base)?)))
        .collect();
    mean(&saved).unwrap_or(f64::NAN)
}

/// The least saving of any mix.
fn least_saved(grid: &Grid, at: usize, of: impl Fn(&Measured) -> Option<f64> + Copy) -> f64 {
    (0..grid.mixes)
        .map(|mix| saved_on(grid, at, mix, of))
        .min_by(f64::total_cmp)
        .unwrap_or(f64::NAN)
}

/// The greatest slowdown / the least: of the worst run.
pub(super) fn worst(grid: &Grid, at: usize) -> f64 {
    1.0 + super::measured::worst(grid, at) / 100.0
}

/// Of each candidate a row under these columns.
pub(super) const COLUMNS: [&str; 8] = [
    "policy",
    "energy saved",
    "least",
    "energy x time saved",
    "turnaround saved",
    "least",
    "unfairness",
    "worst",
];

pub(super) fn rows(grid: &Grid, candidates: &[Candidate]) -> Vec<Vec<Cell>> {
    let row = |(at, candidate): (usize, &Candidate)| {
        let mut row = vec![Cell::text(format!("`{}`", candidate.label))];
        if at == BASE {
            row.extend((0..5).map(|_| Cell::Absent("the base".to_owned())));
        } else {
            row.push(Cell::signed(&saved(grid, at, |run| run.energy_j), 1));
            row.push(Cell::number(least_saved(grid, at, |run| run.energy_j), 1));
            row.push(Cell::signed(&saved(grid, at, energy_delay), 1));
            row.push(Cell::signed(
                &saved(grid, at, |run| Some(run.turnaround_s)),
                1,
            ));
            row.push(Cell::number(
                least_saved(grid, at, |run| Some(run.turnaround_s)),
                1,
            ));
        }
        row.push(Cell::mean(
            &grid.geometric(|mix, seed| grid.of(mix, at)[seed].unfairness),
            2,
        ));
        row.push(Cell::number(worst(grid, at), 2));
        row
    };
    candidates.iter().enumerate().map(row).collect()
}

/// What is to be reached on a set of mixes, and whether it is.
fn goals(grid: &Grid) -> Vec<(String, bool)> {
    let of = |at: usize, of: fn(&Measured) -> Option<f64>| {
        mean(&saved(grid, at, of)).unwrap_or(f64::NAN)
    };
    let energy = [EVEN_ENERGY, EFS].map(|at| of(at, |run| run.energy_j));
    let product = [EVEN_EDP, EFS_EDP].map(|at| of(at, energy_delay));
    let unfair = [EVEN_ENERGY, EVEN_EDP].map(|at| worst(grid, at));
    vec![
        (
            format!(
                "`objective=energy` saves {} % of the energy, `efs` {} %",
                plain(energy[0], 1),
                plain(energy[1], 1)
            ),
            energy[0] >= energy[1],
        ),
        (
            format!(
                "`objective=edp` saves {} % of energy x time, `efs` for it {} %",
                plain(product[0], 1),
                plain(product[1], 1)
            ),
            product[0] >= product[1],
        ),
        (
            format!(
                "unfairness of the worst run for energy {}",
                plain(unfair[0], 2)
            ),
            unfair[0] <= UNFAIR_MOST,
        ),
        (
            format!("and for energy x time {}", plain(unfair[1], 2)),
            unfair[1] <= UNFAIR_MOST,
        ),
    ]
}

/// Energy and time saved: each mix a point.
pub(super) fn picture(id: &str, caption: String, grid: &Grid, candidates: &[Candidate]) -> Part {
    let drawn = candidates.iter().enumerate().map(|(at, candidate)| {
        let point = |mix: usize| {
            (
                saved_on(grid, at, mix, |run| Some(run.turnaround_s)),
                saved_on(grid, at, mix, |run| run.energy_j),
            )
        };
        Curve::points(
            candidate.label.clone(),
            (0..grid.mixes).map(point).collect(),
        )
    });
    curves(
        format!("even-energy-picture-{id}"),
        caption,
        Axes {
            x: "turnaround saved, %",
            y: "energy saved, %",
            decimals: 1,
        },
        drawn.collect(),
    )
}

/// The tables and pictures.
pub(super) fn parts(lab: &Lab<'_>) -> Result<Vec<Part>, ReproduceError> {
    let seconds = if lab.quick { SHORT_S } else { LONG_S };
    let (spec, candidates) = (machine("i5-2500")?, candidates());
    let mut parts = vec![
        Part::Heading("Energy".to_owned()),
        Part::Text(format!(
            "With `objective=energy` or `objective=edp`, `even` leaves cores idle where they would cost more than they give, as \
             `efs` does, and lets all jobs progress alike. Energy is that of the whole system on `i5-2500`, jobs of {seconds} s, \
             with {}. Unfairness here is the greatest slowdown over the least. The goals: to save at least what `efs` saves for \
             the same objective, in the mean, with an unfairness of at most {UNFAIR_MOST} in the worst run.",
            in_words(lab.few_seeds()),
        )),
    ];
    for (id, title, mixes) in SETS {
        let what = format!("even: energy, {title}");
        let grid = Grid::simulate(
            &lab.pool,
            &what,
            &spec,
            &mixes.of(seconds),
            &candidates,
            lab.few_seeds(),
        )?;
        parts.push(table(
            format!("even-energy-{id}"),
            format!(
                "{title}: energy, energy x time and turnaround saved against `linux` in per cent (geometric mean, and the mix on \
                 which least is saved), and unfairness."
            ),
            &COLUMNS,
            rows(&grid, &candidates),
        ));
        let judged: Vec<String> = goals(&grid)
            .into_iter()
            .map(|(words, is_met)| format!("{words}: {}", met(is_met)))
            .collect();
        parts.push(Part::Text(format!("{}.", judged.join("; "))));
        let caption = format!(
            "Energy and time saved against `linux` on `i5-2500`: {title}, each a point, jobs of {seconds} s."
        );
        parts.push(picture(id, caption, &grid, &candidates));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::pool::Pool;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn equal_progress_saves_nearly_as_much_energy_as_efs_at_once() {
        let stop = AtomicBool::new(false);
        let pool = Pool {
            threads: 2,
            progress: &|_, _, _| (),
            stop: &stop,
        };
        let (spec, all) = (machine("i5-2500").unwrap(), Mixes::Efs.of(4));
        assert_eq!(Mixes::FourCopies.of(4).len(), 29);
        let grid =
            Grid::simulate(&pool, "two mixes", &spec, &all[4..6], &candidates(), &[1]).unwrap();
        let energy = |at: usize| saved(&grid, at, |run| run.energy_j)[0];
        // EFS's mixes of programs that fill the bus: both save a sixth, `even` alone lets all progress alike.
        assert!(
            energy(EVEN_ENERGY) > 10.0 && energy(EVEN_ENERGY) > energy(EFS) - 4.0,
            "{}",
            energy(EVEN_ENERGY)
        );
        assert!(
            worst(&grid, EVEN_ENERGY) < UNFAIR_MOST && worst(&grid, EFS) > 1.5,
            "{}",
            worst(&grid, EVEN_ENERGY)
        );
        // For the product of both time counts more.
        let time = |at: usize| saved(&grid, at, |run| Some(run.turnaround_s))[0];
        assert!(
            time(EVEN_EDP) > time(EVEN_ENERGY),
            "{} {}",
            time(EVEN_EDP),
            time(EVEN_ENERGY)
        );
        // Tables and figures are files in one folder.
        let Part::Figure(drawn) = picture("high", "two mixes".to_owned(), &grid, &candidates())
        else {
            panic!("a figure")
        };
        assert_eq!(
            (drawn.table.id.as_str(), drawn.table.rows.is_empty()),
            ("even-energy-picture-high", false)
        );
        let rows = rows(&grid, &candidates());
        assert!(rows.iter().all(|row| row.len() == 8) && rows.len() == candidates().len());
        assert!(matches!(rows[BASE][1], Cell::Absent(_)) && goals(&grid).len() == 4);
    }
}
