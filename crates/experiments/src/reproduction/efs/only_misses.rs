//! Four copies of a program that only misses: who has a core, and what it costs (section 5.2, Figure 7 and Table 1).

use super::effects::{
    CORES, Change, POWER, STREAMS, chip_energy, efs, energy, linux, runs, serial, time,
};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::timeline;
use crate::reproduction::findings::{Cell, Part, Table, Verdict};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{copies, program};
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::{Measured, Trial};
use cosched_core::Nanos;
use cosched_sim::MachineSpec;
use std::sync::Arc;

/// Time that Figure 7 shows: the paper's 300 ms, scaled from its periods of 18 ms to quanta of 200 ms.
const FIGURE_7: Nanos = Nanos::from_ms(3_300);

/// Who has which core, with four copies of a program that only misses.
pub(super) fn figure_7(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let jobs = copies(&program("bus-100"), CORES, lab.work);
    let watched = |trial: Trial| Trial {
        noted: FIGURE_7,
        ..trial
    };
    let both: [&Change<'_>; 2] = [&watched, &|trial| efs(watched(trial))];
    let results = runs(
        lab,
        "efs: Figure 7",
        machine,
        &[jobs],
        &both,
        lab.few_seeds(),
    )?;
    parts.push(Part::Heading("Figure 7: which cores are in use".to_owned()));
    for (runs, name) in results[0].iter().zip(["linux", "efs"]) {
        parts.push(timeline(
            format!("efs-figure-7-{name}"),
            format!(
                "Cores in use under `{name}` with four copies of a program that only misses, in the first {} s. (The \
                 paper's 300 ms, by the length of the quantum; it shows a section from the middle.{})",
                FIGURE_7.as_s(),
                if name == "linux" {
                    " The kernel does not tell which core a job has, so each job has a row of its own."
                } else {
                    ""
                }
            ),
            CORES,
            &runs[0].watch.stays,
        ));
        let busy = runs
            .iter()
            .map(|run| run.busy_s / run.turnaround_s)
            .collect::<Vec<f64>>();
        let paper = if name == "linux" { 4.0 } else { 1.0 };
        let what = format!("Figure 7: cores in use on average under `{name}`");
        verdicts.push(Verdict::size(what, paper, 1, &busy));
    }
    Ok(())
}

/// Four copies of a program that only misses: one after the other, together, and together under EFS.
pub(super) fn table_1(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let jobs = copies(&program("bus-100"), CORES, lab.work);
    let three: [&Change<'_>; 3] = [&serial, &linux, &efs];
    let results = runs(
        lab,
        "efs: Table 1",
        machine,
        &[jobs],
        &three,
        lab.few_seeds(),
    )?;
    let parallel = &results[0][1];
    let mut rows = Vec::new();
    let names = ["serial, `linux`", "parallel, `linux`", "parallel, `efs`"];
    for (at, name) in names.iter().enumerate() {
        let (paper_s, paper_j) = paper::TABLE_1[at];
        let (base_s, base_j) = paper::TABLE_1[1];
        let ratio = |of: fn(&Measured) -> Option<f64>| -> Vec<f64> {
            let pairs = results[0][at].iter().zip(parallel);
            pairs
                .filter_map(|(ours, base)| Some(of(ours)? / of(base)?))
                .collect()
        };
        let cpu_j = Cell::number(paper::TABLE_1_CPU_J[at] / paper::TABLE_1_CPU_J[1], 3);
        let power: Vec<f64> = results[0][at]
            .iter()
            .filter_map(Measured::power_w)
            .collect();
        rows.push(vec![
            Cell::text(*name),
            Cell::mean(&ratio(time), 3),
            Cell::number(paper_s / base_s, 3),
            Cell::mean(&ratio(energy), 3),
            Cell::number(paper_j / base_j, 3),
            Cell::mean(&ratio(chip_energy), 3),
            cpu_j,
            Cell::mean(&power, 1),
            Cell::number(paper_j / paper_s, 1),
        ]);
        // A ratio near 1 would agree with any other; what is saved is the result.
        if at != 1 {
            let less = |values: Vec<f64>| {
                values
                    .iter()
                    .map(|share| 100.0 * (1.0 - share))
                    .collect::<Vec<f64>>()
            };
            let what = format!("Table 1: time saved by {name} against parallel, %");
            let verdict = Verdict::gain(
                what,
                100.0 * (1.0 - paper_s / base_s),
                1,
                &less(ratio(time)),
            );
            verdicts.push(verdict.resting_on(STREAMS));
            let what = format!("Table 1: energy saved by {name} against parallel, %");
            let verdict = Verdict::gain(
                what,
                100.0 * (1.0 - paper_j / base_j),
                1,
                &less(ratio(energy)),
            );
            verdicts.push(verdict.resting_on(POWER));
            let what = format!("Table 1: energy of the CPU saved by {name} against parallel, %");
            let figure = 100.0 * (1.0 - paper::TABLE_1_CPU_J[at] / paper::TABLE_1_CPU_J[1]);
            verdicts
                .push(Verdict::gain(what, figure, 1, &less(ratio(chip_energy))).resting_on(POWER));
        }
        let what = format!("Table 1: power of {name}, W");
        verdicts.push(Verdict::size(what, paper_j / paper_s, 1, &power).resting_on(POWER));
    }
    parts.push(Part::Heading(
        "Table 1: four copies that only miss".to_owned(),
    ));
    parts.push(Part::Table(Table {
        id: "efs-table-1".to_owned(),
        caption: "Time, energy of the system and energy of the CPU as shares of those in parallel under `linux`, and power of \
                  the system. The paper's figures contradict each other: by its Eq. 25 one core in use takes 49.2 W, and by \
                  this table 41.4 W when it runs one copy after the other."
            .to_owned(),
        columns: [
            "how",
            "time",
            "paper's time",
            "energy",
            "paper's energy",
            "energy of the CPU",
            "paper's energy of the CPU",
            "power, W",
            "paper's power",
        ]
        .map(str::to_owned)
        .to_vec(),
        rows,
    }));
    Ok(())
}
