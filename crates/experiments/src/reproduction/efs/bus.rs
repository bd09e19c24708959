//! The memory bus: what one program needs of it alone, and what four of them get (section 3, Figure 4).

use super::effects::{CORES, linux, runs};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, Curve, curves};
use crate::reproduction::findings::{Cell, Part, Table, Verdict, plain};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{copies, program};
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::Measured;
use crate::statistics::{deviation, mean, over};
use cosched_core::model::bus;
use cosched_sim::program::Stall;
use cosched_sim::{FIT_LENGTH, MachineSpec, ProgramSpec, SimJob, rates};
use std::sync::Arc;

/// Transactions per us that the machine's bus serves, as its file says.
pub(super) fn mu(machine: &MachineSpec) -> f64 {
    let value = machine
        .params
        .iter()
        .find(|(name, _)| name == "mu_trans_per_us");
    value
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(paper::MU)
}

/// The share of time for which a program keeps the bus busy when it is alone.
pub(super) fn solo_utilisation(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>) -> f64 {
    (rates(machine, program, 1, FIT_LENGTH).lines_per_ns * 1e3 / mu(machine)).min(0.999)
}

/// A synthetic program like `bus-60` that uses such a share of the bus alone, with so many misses at once. `None` if it can't
/// use as much.
pub(super) fn synthetic(
    machine: &Arc<MachineSpec>,
    demand: f64,
    at_once: f64,
) -> Option<Arc<ProgramSpec>> {
    let base = program("bus-60");
    let with = |factor: f64| {
        let mut made = (*base).clone();
        made.name = format!("bus-{}-{}", plain(100.0 * demand, 0), plain(at_once, 0));
        made.core.cpi *= factor;
        made.memory.stall = Stall::Overlap { mlp: at_once };
        Arc::new(made)
    };
    // More time in the core between two reads means less use of the bus.
    let (mut low, mut high) = (0.02, 64.0);
    if solo_utilisation(machine, &with(low)) < demand {
        return None;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if solo_utilisation(machine, &with(middle)) > demand {
            low = middle
        } else {
            high = middle
        }
    }
    Some(with(0.5 * (low + high)))
}

/// Misses at once of the synthetic programs, as many as it takes to fill the bus alone.
pub(super) const AT_ONCE: f64 = 40.0;

/// The same, and fewer: what the number changes.
pub(super) const FEWER_AT_ONCE: [f64; 4] = [AT_ONCE, 20.0, 12.0, 8.0];

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
    let synthetic: Vec<Arc<ProgramSpec>> = (1..=10)
        .map(|tenth| program(&format!("bus-{}", 10 * tenth)))
        .collect();
    let all: Vec<&Arc<ProgramSpec>> = synthetic.iter().chain(programs).collect();
    let lists: Vec<Vec<SimJob>> = all
        .iter()
        .map(|program| copies(program, CORES, lab.work))
        .collect();
    let results = runs(
        lab,
        "efs: Figure 4",
        machine,
        &lists,
        &[&linux],
        lab.few_seeds(),
    )?;
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
            off.push(
                values
                    .iter()
                    .map(|value| 100.0 * (model / value - 1.0))
                    .collect(),
            );
        } else {
            real.push(point);
            below += usize::from(point.1 < 0.99 * model);
        }
    }
    let model: Vec<(f64, f64)> = (0..100)
        .filter_map(|percent| {
            let demand = f64::from(percent) / 100.0;
            bus::throughput(&[demand; CORES])
                .ok()
                .map(|throughput| (f64::from(percent), throughput))
        })
        .collect();
    parts.push(Part::Heading(
        "Figure 4: throughput of four identical tasks".to_owned(),
    ));
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
    let most = over(&off, |values| {
        values.iter().map(|off| off.abs()).reduce(f64::max)
    });
    let what = "Figure 4: greatest difference of the synthetic program from the model, %";
    verdicts.push(Verdict::at_most(what, paper::FIGURE_4_MOST, 1, &most));
    let what = "Figure 4: standard deviation of that difference, %";
    verdicts.push(Verdict::size(
        what,
        paper::FIGURE_4_DEVIATION,
        1,
        &over(&off, deviation),
    ));
    parts.push(Part::Text(format!(
        "Of {} SPEC programs {below} lie more than 1 % below the model.",
        programs.len()
    )));
    Ok(())
}

/// Figure 4 with programs that wait for fewer misses at once.
pub(super) fn causes(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
) -> Result<Vec<Part>, ReproduceError> {
    let tenths = [10u32, 20, 30, 40];
    let mut rows = Vec::new();
    for at_once in FEWER_AT_ONCE {
        let programs: Vec<_> = tenths
            .iter()
            .map(|&percent| synthetic(machine, f64::from(percent) / 100.0, at_once))
            .collect();
        let lists: Vec<Vec<SimJob>> = programs
            .iter()
            .flatten()
            .map(|program| copies(program, CORES, lab.work))
            .collect();
        let what = format!("efs: Figure 4, {} misses at once", plain(at_once, 0));
        let mut results =
            runs(lab, &what, machine, &lists, &[&linux], lab.few_seeds())?.into_iter();
        let mut row = vec![Cell::number(at_once, 0)];
        for program in &programs {
            let found = program
                .as_ref()
                .and_then(|program| Some((program, results.next()?)));
            row.push(found.map_or_else(
                || Cell::Absent("it can't use as much".to_owned()),
                |(program, by_change)| {
                    let model = bus::throughput(&[solo_utilisation(machine, program); CORES])
                        .unwrap_or(f64::NAN);
                    let off = |run: &Measured| 100.0 * (model / throughput(run) - 1.0);
                    Cell::signed(&by_change[0].iter().map(off).collect::<Vec<_>>(), 1)
                },
            ));
        }
        rows.push(row);
    }
    let mut columns = vec!["misses at once".to_owned()];
    columns.extend(tenths.iter().map(|percent| format!("{percent} % alone")));
    Ok(vec![
        Part::Text(
            "**Figure 4.** EFS's model takes every access that finds the bus busy for lost time, also where the bus is mostly \
             free. Programs that have many misses under way at once hide such short waits, so that four of them get more than \
             the model says, most of all where each uses a fifth of the bus. With fewer misses under way at once, the \
             synthetic program comes nearer to the model. The paper's program filled the bus alone, which here takes 40 misses at \
             once; so it can't have had fewer, but its waits overlapped less than those of the simulated one."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "efs-figure-4-causes".to_owned(),
            caption: "The model against the throughput of four copies, in per cent, by the misses that a program has under way at \
                      once and by what one copy uses of the bus alone."
                .to_owned(),
            columns,
            rows,
        }),
    ])
}
