//! Power by the number of cores in use: the calibration of P_k (section 5.1, Eq. 25).

use super::super::error::ReproduceError;
use super::super::findings::{Cell, Chapter, Verdict};
use super::super::grid::Grid;
use super::super::lab::Lab;
use super::super::measured::Measured;
use super::super::mixes::Mix;
use super::super::paper::efs as paper;
use super::super::trial::Candidate;
use super::{CORES, LINUX, POWER};
use crate::statistics::{deviation, mean, over};
use cosched_sim::{MachineSpec, ProgramSpec};
use std::sync::Arc;

/// The standard deviation in per cent of the mean.
fn relative_deviation(values: &[f64]) -> Option<f64> {
    Some(100.0 * deviation(values)? / mean(values)?)
}

/// Power by the number of cores in use.
pub(super) fn calibration(
    chapter: &mut Chapter,
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
) -> Result<(), ReproduceError> {
    let (linux, seeds) = ([Candidate::new("linux")], lab.few_seeds());
    let mut rows = Vec::new();
    let mut last = vec![paper::POWER_W[0]; seeds.len()];
    for cores in 1..=CORES {
        let mixes: Vec<Mix> = programs
            .iter()
            .map(|program| Mix::of_copies(program, cores, lab.work()))
            .collect();
        let what = format!("efs: power with {cores} cores in use");
        let power = Grid::simulate(lab, &what, machine, &mixes, &linux, seeds)?
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
        let what = format!("P_{cores}, W");
        let of_step = Verdict::size(what, paper::POWER_W[cores], 1, &step);
        let what = format!("deviation of power between programs, {cores} cores in use, %");
        let spread = Verdict::size(what, paper::POWER_DEVIATION[cores - 1], 1, &deviation);
        chapter.verdicts.extend([
            of_step.fitted(),
            if cores == CORES {
                spread.fitted()
            } else {
                spread.resting_on(POWER)
            },
        ]);
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
