//! The memory bus: what one program needs of it alone, and what four of them get (section 3, Figure 4).

use super::effects::{CORES, linux, runs};
use crate::error::ReproduceError;
use crate::figure::{Axes, Curve, curves};
use crate::findings::{Cell, Part, Table, Verdict};
use crate::lab::Lab;
use crate::mixes::{copies, program};
use crate::paper::efs as paper;
use crate::stats::{mean, over};
use crate::trial::Measured;
use cosched_core::model::bus;
use cosched_sim::{FIT_LENGTH, MachineSpec, ProgramSpec, SimJob, rates};
use std::sync::Arc;

/// Transactions per us that the machine's bus serves, as its file says.
pub(super) fn mu(machine: &MachineSpec) -> f64 {
    let value = machine.params.iter().find(|(name, _)| name == "mu_trans_per_us");
    value.and_then(|(_, value)| value.parse().ok()).unwrap_or(paper::MU)
}

/// The share of time for which a program keeps the bus busy when it is alone.
pub(super) fn solo_utilisation(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>) -> f64 {
    (rates(machine, program, 1, FIT_LENGTH).lines_per_ns * 1e3 / mu(machine)).min(0.999)
}

/// Work of the four together in the time that one would take alone: the sum of their speeds.
fn throughput(run: &Measured) -> f64 {
    run.slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum()
}

/// Throughput of four identical tasks against what one needs of the bus alone.
pub(super) fn figure_4(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let synthetic: Vec<Arc<ProgramSpec>> = (1..=10).map(|tenth| program(&format!("bus-{}", 10 * tenth))).collect();
    let all: Vec<&Arc<ProgramSpec>> = synthetic.iter().chain(programs).collect();
    let lists: Vec<Vec<SimJob>> = all.iter().map(|program| copies(program, CORES, lab.work)).collect();
    let results = runs(lab, "efs: Figure 4", machine, &lists, &[&linux], lab.few_seeds())?;
    let (mut rows, mut made, mut real) = (Vec::new(), Vec::new(), Vec::new());
    let mut off: Vec<Vec<f64>> = Vec::new();
    let mut below = 0;
    for (at, program) in all.iter().enumerate() {
        let demand = solo_utilisation(machine, program);
        let model = bus::throughput(&[demand; CORES]).unwrap_or(f64::NAN);
        let values: Vec<f64> = results[at][0].iter().map(throughput).collect();
        let point = (100.0 * demand, mean(&values).unwrap_or(0.0));
        rows.push(vec![
            Cell::text(program.name.clone()),
            Cell::number(100.0 * demand, 1),
            Cell::number(model, 2),
            Cell::mean(&values, 2),
        ]);
        if at < synthetic.len() {
            made.push(point);
            off.push(values.iter().map(|value| 100.0 * (model / value - 1.0).abs()).collect());
        } else {
            real.push(point);
            below += usize::from(point.1 < 0.99 * model);
        }
    }
    let model: Vec<(f64, f64)> = (0..100)
        .filter_map(|percent| {
            let demand = f64::from(percent) / 100.0;
            bus::throughput(&[demand; CORES]).ok().map(|throughput| (f64::from(percent), throughput))
        })
        .collect();
    parts.push(Part::Heading("Figure 4: throughput of four identical tasks".to_owned()));
    parts.push(curves(
        "efs-figure-4".to_owned(),
        "Throughput of four identical tasks, against the share of the bus that one uses alone: EFS's model, synthetic \
         programs that only miss, and SPEC CPU2006 programs, which also destroy each other's cache."
            .to_owned(),
        Axes { x: "solo utilisation of the bus, %", y: "throughput", decimals: 2 },
        vec![
            Curve::line("model (Eqs. 10-12)".to_owned(), model),
            Curve::line("synthetic".to_owned(), made),
            Curve::points("SPEC CPU2006".to_owned(), real),
        ],
    ));
    parts.push(Part::Table(Table {
        id: "efs-figure-4-points".to_owned(),
        caption: "The points of Figure 4: solo utilisation in per cent, throughput by the model, throughput here."
            .to_owned(),
        columns: ["program", "solo utilisation, %", "model", "here"].map(str::to_owned).to_vec(),
        rows,
    }));
    let most = over(&off, |values| values.iter().copied().reduce(f64::max));
    verdicts.push(Verdict::size(
        "greatest difference of the synthetic program from the model, %",
        paper::FIGURE_4_MOST,
        1,
        &most,
    ));
    parts.push(Part::Text(format!("Of {} SPEC programs {below} lie more than 1 % below the model.", programs.len())));
    Ok(())
}
