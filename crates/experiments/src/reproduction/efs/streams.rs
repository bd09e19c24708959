//! What further streams cost on the bus, and what follows for Table 1 and for the time that EFS loses.

use super::programs::Effects;
use super::{Bench, CORES, EFS, linux_and_efs, serial};
use crate::reproduction::engine::{
    Candidate, Cell, Chapter, Grid, Measured, Result, changed, of_folder, plain, program, refitted,
    share,
};
use crate::reproduction::paper::efs as paper;

/// What further streams cost: each, and all together at most, as shares of the bandwidth. The first of them is the world as it
/// is; the last comes near to the paper's Table 1.
const LOSSES: [(f64, f64); 4] = [(0.025, 0.086), (0.0, 0.086), (0.05, 0.15), (0.08, 0.25)];

/// Table 1, time lost and Figure 10, by what further streams cost.
pub(super) fn causes(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for losses in LOSSES {
        rows.push(row(bench, losses)?);
    }
    let seconds = paper::TABLE_1_S;
    let [_, (_, _, of_gems)] = paper::NAMED;
    rows.push(vec![
        Cell::text("the paper"),
        Cell::number(seconds[0] / seconds[1], 2),
        Cell::number(paper::FIGURE_8.0, 1),
        Cell::number(paper::FIGURE_8.1, 1),
        Cell::number(of_gems, 1),
        Cell::number(-of_gems, 1),
        Cell::number(-paper::FIGURE_10.1, 1),
    ]);
    chapter.text(format!(
        "**Table 1 and the time that EFS costs.** In the paper four copies that only miss take {} times as long together as one \
         after the other, though the throughput of its model never falls below 1. It names destructive interference; but a \
         program that only misses has nothing in the last level to destroy. Here further streams close each other's rows and so \
         cost some bandwidth. The more they cost, the less EFS loses in the mean and the more the mixes of Figure 10 gain; single \
         programs such as GemsFDTD do not follow. If Table 1 came out, the best program would gain far more time than the \
         paper's best. So what slowed the paper's program did not act on the others alike. What it was can't be known from what \
         is published.",
        plain(seconds[1] / seconds[0], 2)
    ));
    chapter.table(
        "efs-stream-loss",
        "By what each further stream costs, and all together at most: time of four copies that only miss, one after the other / \
         together; and `efs` against `linux`: four copies of each program, and the mixes of Figure 10. The first row is the world \
         as it is.",
        [
            "a further stream costs",
            "serial / parallel",
            "energy saved, %",
            "time lost, %",
            "GemsFDTD, time lost, %",
            "best program, time gained, %",
            "Figure 10, time lost, %",
        ],
        rows,
    );
    Ok(())
}

fn row(bench: &Bench<'_>, (loss, most): (f64, f64)) -> Result<Vec<Cell>> {
    let machine = refitted(changed(&bench.full, |machine| {
        machine.memory.stream_loss = loss;
        machine.memory.stream_loss_most = most;
    }))?;
    let [each, together] = [loss, most].map(|share| plain(100.0 * share, 1));
    let what = format!("efs: streams cost {each} %");
    let (lab, both) = (bench.lab, linux_and_efs());
    let four = Grid::few(lab, &what, &machine, &bench.copies(CORES), &both)?;
    let four = Effects::of(&four, EFS);
    let high = of_folder("efs", lab.work());
    let high = Effects::of(&Grid::few(lab, &what, &machine, &high, &both)?, EFS);
    let only_misses = [bench.four_of(&program("bus-100"))];
    let orders = [Candidate::new("linux"), serial()];
    let orders = Grid::few(lab, &what, &machine, &only_misses, &orders)?;
    let gems = bench.programs.iter().position(|one| one.name == "GemsFDTD");
    let of_gems = gems.map_or(&[][..], |at| &four.time_lost[at]);
    Ok(vec![
        Cell::text(format!("{each} %, at most {together} %")),
        Cell::mean(&orders.compared(1, 0, Measured::time, share)[0], 2),
        Cell::signed(&four.mean_energy_saved(), 1),
        Cell::signed(&four.mean_time_lost(), 1),
        Cell::signed(of_gems, 1),
        Cell::signed(&four.best_time_gained(), 1),
        Cell::signed(&high.mean_time_lost(), 1),
    ])
}
