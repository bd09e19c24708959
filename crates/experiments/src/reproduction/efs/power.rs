//! Power by the number of cores in use: the calibration of P_k (section 5.1, Eq. 25).

use super::{Bench, CORES, LINUX, POWER};
use crate::reproduction::engine::{Candidate, Cell, Chapter, Grid, Measured, Result, Verdict};
use crate::reproduction::paper::efs as paper;
use crate::statistics::{deviation, mean, over};

/// The standard deviation in per cent of the mean.
fn relative_deviation(values: &[f64]) -> Option<f64> {
    Some(100.0 * deviation(values)? / mean(values)?)
}

/// Power by the number of cores in use.
pub(super) fn calibration(chapter: &mut Chapter, bench: &Bench<'_>) -> Result<()> {
    let linux = [Candidate::new("linux")];
    let mut rows = Vec::new();
    let mut last = vec![paper::POWER_W[0]; bench.lab.few_seeds().len()];
    for cores in 1..=CORES {
        let what = format!("efs: power with {cores} cores in use");
        let mixes = bench.copies(cores);
        let power = Grid::few(bench.lab, &what, &bench.full, &mixes, &linux)?
            .by_mix(LINUX, Measured::power);
        let means = over(&power, mean);
        let deviation = over(&power, relative_deviation);
        let steps = means.iter().zip(&last).map(|(now, before)| now - before);
        let step: Vec<f64> = steps.collect();
        rows.push(vec![
            Cell::number(cores as f64, 0),
            Cell::mean(&means, 1),
            Cell::mean(&step, 1),
            Cell::number(paper::POWER_W[cores], 1),
            Cell::mean(&deviation, 1),
            Cell::number(paper::POWER_DEVIATION[cores - 1], 1),
        ]);
        chapter.verdicts.extend(judge(cores, &step, &deviation));
        last = means;
    }
    chapter.heading("Calibration of P_k");
    chapter.table(
        "efs-power",
        "Power of the system by the number of cores that run copies of one program; means over 29 programs, and the standard \
         deviation between them (Eq. 25). The parts of the machine's power are fitted to the paper's means and to its deviation \
         with four cores.",
        [
            "cores",
            "power, W",
            "P_k, W",
            "paper's P_k",
            "deviation, %",
            "paper's deviation",
        ],
        rows,
    );
    Ok(())
}

fn judge(cores: usize, step: &[f64], deviation: &[f64]) -> [Verdict; 2] {
    let what = format!("P_{cores}, W");
    let of_step = Verdict::size(what, paper::POWER_W[cores], 1, step);
    let what = format!("deviation of power between programs, {cores} cores in use, %");
    let spread = Verdict::size(what, paper::POWER_DEVIATION[cores - 1], 1, deviation);
    let spread = match cores {
        CORES => spread.fitted(),
        _ => spread.resting_on(POWER),
    };
    [of_step.fitted(), spread]
}
