//! Power by the number of cores in use: the calibration of P_k (section 5.1, Eq. 25).

use super::effects::{CORES, POWER, linux, runs};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part, Table, Verdict};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::copies;
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::Measured;
use crate::statistics::{deviation, mean, over};
use cosched_sim::{MachineSpec, ProgramSpec, SimJob};
use std::sync::Arc;

/// Power by the number of cores in use (section 5.1).
pub(super) fn calibration(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let lists: Vec<Vec<SimJob>> = (1..=CORES)
        .flat_map(|cores| programs.iter().map(move |program| (program, cores)))
        .map(|(program, cores)| copies(program, cores, lab.work))
        .collect();
    let results = runs(
        lab,
        "efs: power by cores in use",
        machine,
        &lists,
        &[&linux],
        lab.few_seeds(),
    )?;
    let mut rows = Vec::new();
    let mut last = vec![paper::POWER_W[0]; lab.few_seeds().len()];
    for cores in 1..=CORES {
        let of_programs: Vec<Vec<f64>> = results
            [(cores - 1) * programs.len()..cores * programs.len()]
            .iter()
            .map(|by_policy| by_policy[0].iter().filter_map(Measured::power_w).collect())
            .collect();
        let means = over(&of_programs, mean);
        let deviation = over(&of_programs, |power| {
            Some(100.0 * deviation(power)? / mean(power)?)
        });
        let step: Vec<f64> = means
            .iter()
            .zip(&last)
            .map(|(now, before)| now - before)
            .collect();
        rows.push(vec![
            Cell::number(cores as f64, 0),
            Cell::mean(&means, 1),
            Cell::mean(&step, 1),
            Cell::number(paper::POWER_W[cores], 1),
            Cell::mean(&deviation, 1),
            Cell::number(paper::POWER_DEVIATION[cores - 1], 1),
        ]);
        verdicts
            .push(Verdict::size(format!("P_{cores}, W"), paper::POWER_W[cores], 1, &step).fitted());
        let what = format!("deviation of power between programs, {cores} cores in use, %");
        let verdict = Verdict::size(what, paper::POWER_DEVIATION[cores - 1], 1, &deviation);
        verdicts.push(if cores == CORES {
            verdict.fitted()
        } else {
            verdict.resting_on(POWER)
        });
        last = means;
    }
    parts.push(Part::Heading("Calibration of P_k".to_owned()));
    parts.push(Part::Table(Table {
        id: "efs-power".to_owned(),
        caption: "Power of the system by the number of cores that run copies of one program; means over 29 programs, and \
                  the standard deviation between them (Eq. 25). The parts of the machine's power are fitted to the paper's \
                  means and to its deviation with four cores."
            .to_owned(),
        columns: ["cores", "power, W", "P_k, W", "paper's P_k", "deviation, %", "paper's deviation"]
            .map(str::to_owned)
            .to_vec(),
        rows,
    }));
    Ok(())
}
