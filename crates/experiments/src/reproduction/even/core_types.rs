//! `even` on a machine with two types of core, beside lucky's own policies.

use super::energy::{COLUMNS, energy_delay, picture, rows, saved, worst};
use super::{LONG_S, Mixes, SHORT_S, met, table};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Part, plain};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::trial::machine;
use crate::statistics::mean;

/// Positions of candidates.
const LUCKY: usize = 3;
const EVEN: usize = 4;
const EVEN_EDP: usize = 7;

/// The first is the base, as in the paper.
fn candidates() -> [Candidate; 8] {
    [
        Candidate::new("bias"),
        Candidate::new("linux"),
        Candidate::new("big-fair"),
        Candidate::new("lucky"),
        Candidate::new("even"),
        Candidate {
            knows_progress: true,
            label: "even, true progress".to_owned(),
            ..Candidate::new("even")
        },
        Candidate::with("even", "objective", "energy"),
        Candidate::with("even", "objective", "edp"),
    ]
}

/// What is to be reached, and whether it is.
fn goals(grid: &Grid) -> Vec<(String, bool)> {
    let of = |at: usize, of: fn(&crate::reproduction::trial::Measured) -> Option<f64>| {
        mean(&saved(grid, at, of)).unwrap_or(f64::NAN)
    };
    let unfair = [EVEN, LUCKY].map(|at| worst(grid, at));
    let time = [EVEN, LUCKY].map(|at| of(at, |run| Some(run.turnaround_s)));
    let product = [EVEN_EDP, LUCKY].map(|at| of(at, energy_delay));
    let both = |what: &str, [ours, theirs]: [f64; 2], decimals: usize, unit: &str| {
        format!(
            "{what} {}{unit}, `lucky` {}{unit}",
            plain(ours, decimals),
            plain(theirs, decimals)
        )
    };
    vec![
        (
            both("unfairness of the worst run", unfair, 2, ""),
            unfair[0] <= unfair[1],
        ),
        (both("turnaround saved", time, 1, " %"), time[0] >= time[1]),
        (
            both("energy x time saved with `objective=edp`", product, 1, " %"),
            product[0] >= product[1],
        ),
    ]
}

/// The table and the picture.
pub(super) fn parts(lab: &Lab<'_>) -> Result<Vec<Part>, ReproduceError> {
    let seconds = if lab.quick { SHORT_S } else { LONG_S };
    let (spec, candidates) = (machine("big1-small3")?, candidates());
    let grid = Grid::simulate(
        &lab.pool,
        "even: two types of core",
        &spec,
        &Mixes::Lucky.of(seconds),
        &candidates,
        lab.few_seeds(),
    )?;
    let judged: Vec<String> = goals(&grid)
        .into_iter()
        .map(|(words, is_met)| format!("{words}: {}", met(is_met)))
        .collect();
    Ok(vec![
        Part::Heading("Two types of core".to_owned()),
        Part::Text(format!(
            "Who gets the fast core is part of what `even` decides: speed is that on the core that a job would have, over that \
             alone on the fast one. Lucky's eight mixes of four programs on its machine, `big1-small3`, with jobs of {seconds} s \
             alone on the big core and {}. There is a core for each of the four; `even` lets one pause that is too far ahead. Power is that of the cores alone, as in the paper. The \
             goals: fairer than `lucky`, at least as fast, and with `objective=edp` at least its saving of energy x time.",
            in_words(lab.few_seeds()),
        )),
        table(
            "even-core-types".to_owned(),
            "Energy, energy x time and turnaround saved against `bias` in per cent (geometric mean, and the mix on which least \
             is saved), and unfairness."
                .to_owned(),
            &COLUMNS,
            rows(&grid, &candidates),
        ),
        Part::Text(format!("{}.", judged.join("; "))),
        picture(
            "core-types",
            format!(
                "Energy and time saved against `bias` on `big1-small3`: lucky's eight mixes, each a point, jobs of {seconds} s."
            ),
            &grid,
            &candidates,
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduction::pool::Pool;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn the_fast_core_goes_round_so_that_all_progress_alike() {
        let stop = AtomicBool::new(false);
        let pool = Pool {
            threads: 2,
            progress: &|_, _, _| (),
            stop: &stop,
        };
        let (spec, all) = (machine("big1-small3").unwrap(), Mixes::Lucky.of(8));
        assert_eq!(all.len(), 8);
        let grid =
            Grid::simulate(&pool, "two mixes", &spec, &all[..2], &candidates(), &[1]).unwrap();
        assert!(
            worst(&grid, EVEN) < 1.15 && worst(&grid, LUCKY) > worst(&grid, EVEN),
            "{}",
            worst(&grid, EVEN)
        );
        let time = |at: usize| saved(&grid, at, |run| Some(run.turnaround_s))[0];
        assert!(time(EVEN) > time(LUCKY), "{} {}", time(EVEN), time(LUCKY));
        assert_eq!(
            (goals(&grid).len(), rows(&grid, &candidates()).len()),
            (3, candidates().len())
        );
    }
}
