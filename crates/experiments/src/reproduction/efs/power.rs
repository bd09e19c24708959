//! Power by the number of cores in use: the calibration of P_k (section 5.1, Eq. 25).

use super::{Bench, CORES, LINUX};
use crate::reproduction::engine::{
    Draft, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements,
};
use crate::statistics::{deviation, mean, over};

/// Eq. 25: power with no core active.
const IDLE_W: f64 = 26.6;

/// The standard deviation in per cent of the mean.
fn relative_deviation(values: &[f64]) -> Option<f64> {
    Some(100.0 * deviation(values)? / mean(values)?)
}

/// Power by the number of cores in use.
pub(super) fn calibration(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let linux = [TrialCandidate::new("linux")];
    let mut rows = Vec::new();
    let mut last = vec![IDLE_W; bench.lab.few_seeds().len()];
    for cores in 1..=CORES {
        let mixes = bench.copies(cores);
        let grid = Grid::few(bench.lab, &bench.full, &mixes, &linux)?;
        let power = grid.by_mix(LINUX, TrialMeasurements::power);
        let means = over(&power, mean);
        let deviation = over(&power, relative_deviation);
        let steps = means.iter().zip(&last).map(|(now, before)| now - before);
        let step: Vec<f64> = steps.collect();
        rows.push(vec![
            FindingCell::number(cores as f64, 0),
            FindingCell::mean(&means, 1),
            FindingCell::mean(&step, 1),
            draft.cell(&format!("power-{cores}"), 1),
            FindingCell::mean(&deviation, 1),
            draft.cell(&format!("deviation-{cores}"), 1),
        ]);
        draft.judge(&format!("power-{cores}"), &step);
        draft.judge(&format!("deviation-{cores}"), &deviation);
        last = means;
    }
    draft.table("power", rows);
    Ok(())
}
