//! What further streams cost on the bus, and what follows for Table 1 and for the time that EFS loses.

use super::programs::Effects;
use super::{Bench, CORES, EFS, linux_and_efs, serial};
use crate::reproduction::engine::{
    Draft, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements, changed, of_folder, plain,
    program, refitted, share,
};

/// What further streams cost: each, and all together at most, as shares of the bandwidth. The first of them is the world as it
/// is; the last comes near to the paper's Table 1.
const LOSSES: [(f64, f64); 4] = [(0.025, 0.086), (0.0, 0.086), (0.05, 0.15), (0.08, 0.25)];

/// Table 1, time lost and Figure 10, by what further streams cost.
pub(super) fn causes(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let mut rows = Vec::new();
    for losses in LOSSES {
        rows.push(row(bench, losses)?);
    }
    let parallel_s = 1.0 / (1.0 - draft.published("serial-time") / 100.0);
    rows.push(vec![
        FindingCell::text("the paper"),
        FindingCell::number(1.0 / parallel_s, 2),
        draft.cell("figure-8-energy", 1),
        draft.cell("figure-8-time", 1),
        draft.cell("GemsFDTD-time", 1),
        draft.cell("best-time", 1),
        FindingCell::number(-draft.published("figure-10-speed"), 1),
    ]);
    draft.value("parallel", plain(parallel_s, 2));
    draft.table("stream-loss", rows);
    Ok(())
}

fn row(bench: &Bench<'_>, (loss, most): (f64, f64)) -> Result<Vec<FindingCell>> {
    let machine = refitted(changed(&bench.full, |machine| {
        machine.memory.stream_loss = loss;
        machine.memory.stream_loss_most = most;
    }))?;
    let each = plain(100.0 * loss, 1);
    let together = plain(100.0 * most, 1);
    let lab = bench.lab;
    let both = linux_and_efs();
    let four = bench.copies(CORES);
    let four = Grid::few(lab, &machine, &four, &both)?;
    let four = Effects::of(&four, EFS);
    let high = of_folder("efs", lab.work());
    let high = Grid::few(lab, &machine, &high, &both)?;
    let high = Effects::of(&high, EFS);
    let only_misses = [bench.four_of(&program("bus-100"))];
    let orders = [TrialCandidate::new("linux"), serial()];
    let orders = Grid::few(lab, &machine, &only_misses, &orders)?;
    let serial_share = orders.compared(1, 0, TrialMeasurements::time, share);
    let gems = bench.programs.iter().position(|one| one.name == "GemsFDTD");
    let of_gems = gems.map_or(&[][..], |at| &four.time_lost[at]);
    Ok(vec![
        FindingCell::text(format!("{each} %, at most {together} %")),
        FindingCell::mean(&serial_share[0], 2),
        FindingCell::signed(&four.mean_energy_saved(), 1),
        FindingCell::signed(&four.mean_time_lost(), 1),
        FindingCell::signed(of_gems, 1),
        FindingCell::signed(&four.best_time_gained(), 1),
        FindingCell::signed(&high.mean_time_lost(), 1),
    ])
}
