//! What further streams cost on the bus, and what follows for Table 1 and for the time that EFS loses.

use super::effects::{CORES, Effects, linux, runs, serial};
use super::programs::fours;
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part, Table, plain};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{copies, of_folder, program};
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::refitted;
use crate::statistics::{mean, over};
use cosched_sim::{MachineSpec, ProgramSpec, SimJob};
use std::sync::Arc;

/// What further streams cost: each, and all together at most, as shares of the bandwidth. The first of them is the world as it
/// is; the last comes near to the paper's Table 1.
const LOSSES: [(f64, f64); 4] = [(0.025, 0.086), (0.0, 0.086), (0.05, 0.15), (0.08, 0.25)];

/// Table 1, time lost and Figure 10, by what further streams cost.
pub(super) fn causes(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
) -> Result<Vec<Part>, ReproduceError> {
    let seeds = lab.few_seeds();
    let lists = fours(lab, programs);
    let only_misses = vec![copies(&program("bus-100"), CORES, lab.work)];
    let high: Vec<Vec<SimJob>> = of_folder("efs", lab.work)
        .into_iter()
        .map(|mix| mix.jobs)
        .collect();
    let gems = programs
        .iter()
        .position(|program| program.name == "GemsFDTD");
    let mut rows = Vec::new();
    for (loss, most) in LOSSES {
        let mut spec = (**machine).clone();
        spec.memory.stream_loss = loss;
        spec.memory.stream_loss_most = most;
        let changed = refitted(spec)?;
        let what = format!("efs: streams cost {} %", plain(100.0 * loss, 1));
        let four = Effects::simulate(lab, &what, &changed, &lists, seeds)?;
        let alone = runs(
            lab,
            &what,
            &changed,
            &only_misses,
            &[&serial, &linux],
            seeds,
        )?;
        let mixed = Effects::simulate(lab, &what, &changed, &high, seeds)?;
        let lost = four.time_lost();
        let best: Vec<f64> = over(&lost, |lost| lost.iter().copied().reduce(f64::min))
            .iter()
            .map(|lost| -lost)
            .collect();
        let of_gems = gems.map_or_else(Vec::new, |at| lost[at].clone());
        let pairs = alone[0][0].iter().zip(&alone[0][1]);
        let ratio: Vec<f64> = pairs
            .map(|(serial, both)| serial.turnaround_s / both.turnaround_s)
            .collect();
        rows.push(vec![
            Cell::text(format!(
                "{} %, at most {} %",
                plain(100.0 * loss, 1),
                plain(100.0 * most, 1)
            )),
            Cell::mean(&ratio, 2),
            Cell::signed(&over(&four.energy_saved(), mean), 1),
            Cell::signed(&over(&lost, mean), 1),
            Cell::signed(&of_gems, 1),
            Cell::signed(&best, 1),
            Cell::signed(&over(&mixed.time_lost(), mean), 1),
        ]);
    }
    let (table_s, table_j) = (&paper::TABLE_1, paper::FIGURE_8);
    rows.push(vec![
        Cell::text("the paper"),
        Cell::number(table_s[0].0 / table_s[1].0, 2),
        Cell::number(table_j.0, 1),
        Cell::number(table_j.1, 1),
        Cell::number(paper::NAMED[1].2, 1),
        Cell::number(-paper::NAMED[1].2, 1),
        Cell::number(-paper::FIGURE_10.1, 1),
    ]);
    Ok(vec![
        Part::Text(format!(
            "**Table 1 and the time that EFS costs.** In the paper four copies that only miss take {} times as long together as \
             one after the other, though the throughput of its model never falls below 1. It names destructive interference; \
             but a program that only misses has nothing in the last level that others could destroy. Here further streams cost \
             some bandwidth (they close each other's rows), as much as was chosen within what is published for other programs. \
             What they cost moves the times: the more it is, the less EFS loses in the mean and the more the mixes of Figure 10 \
             gain; single programs such as GemsFDTD do not follow. If streams cost so much that Table 1 came out, the best \
             program would gain far more time than the paper's best. So what made the paper's program so slow did not act on the \
             others alike. What it was can't be known from what is published.",
            plain(table_s[1].0 / table_s[0].0, 2)
        )),
        Part::Table(Table {
            id: "efs-stream-loss".to_owned(),
            caption: "By what each further stream costs, and all together at most: time of four copies that only miss, one \
                      after the other / together; and `efs` against `linux`: four copies of each program, and the mixes of \
                      Figure 10. The first row is the world as it is."
                .to_owned(),
            columns: [
                "a further stream costs",
                "serial / parallel",
                "energy saved, %",
                "time lost, %",
                "GemsFDTD, time lost, %",
                "best program, time gained, %",
                "Figure 10, time lost, %",
            ]
            .map(str::to_owned)
            .to_vec(),
            rows,
        }),
    ])
}
