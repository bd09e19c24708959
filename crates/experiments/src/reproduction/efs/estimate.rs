//! Solo utilisation of the bus, estimated beside another program (section 5.2, Figure 6).

use super::bus::{AT_ONCE, FEWER_AT_ONCE, mu, solo_utilisation, synthetic};
use super::effects::runs;
use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, Curve, curves};
use crate::reproduction::findings::{Cell, Part, Table, Verdict, plain};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::copies;
use crate::reproduction::paper::efs as paper;
use crate::reproduction::trial::Trial;
use crate::statistics::{mean, over};
use cosched_core::model::bus;
use cosched_core::{Nanos, TaskId};
use cosched_sim::{MachineSpec, Work};
use std::sync::Arc;

/// The other's utilisation, and estimates by Eq. 9 and by the additive model, by seed; all in per cent.
type Row = (f64, Vec<f64>, Vec<f64>);

/// Estimates of the solo utilisation of a program beside others.
struct Beside {
    truth: f64,
    rows: Vec<Row>,
}

/// Estimates for a program that uses 57 % of the bus alone beside one of varying use, from simulated counters.
fn beside(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    at_once: f64,
    others: &[u32],
) -> Result<Option<Beside>, ReproduceError> {
    let Some(observed) = synthetic(machine, paper::FIGURE_6_SOLO, at_once) else {
        return Ok(None);
    };
    let truth = solo_utilisation(machine, &observed);
    let work = Work::SoloTime(Nanos::from_ms(20_000));
    let mut lists = Vec::new();
    let mut used = Vec::new();
    for &percent in others {
        let mut jobs = copies(&observed, 1, work);
        if percent > 0 {
            // The greatest is as great as one program alone can be.
            let Some(other) = synthetic(machine, f64::from(percent.min(99)) / 100.0, at_once)
            else {
                continue;
            };
            jobs.extend(copies(&other, 1, work));
        }
        lists.push(jobs);
        used.push(f64::from(percent));
    }
    // Both run for at least as long as one takes alone.
    let watched = |trial: Trial| Trial {
        noted: Nanos::from_ms(10_000),
        ..trial
    };
    let what = format!("efs: Figure 6, {} misses at once", plain(at_once, 0));
    let results = runs(lab, &what, machine, &lists, &[&watched], lab.few_seeds())?;
    let mu = mu(machine);
    let mut rows = Vec::new();
    for (percent, by_policy) in used.into_iter().zip(&results) {
        let (mut models, mut sums) = (Vec::new(), Vec::new());
        for run in &by_policy[0] {
            let used = |task: u32| {
                run.watch
                    .lines
                    .get(&TaskId(task))
                    .map_or(0.0, |&(lines, ns)| {
                        lines as f64 * 1e3 / ns.max(1) as f64 / mu
                    })
            };
            let (mine, other) = (used(0), used(1));
            sums.push(100.0 * mine);
            if let Ok(solo) = bus::solo_utilisation(mine, (1.0 - mine - other).max(1e-6)) {
                models.push(100.0 * solo);
            }
        }
        rows.push((percent, models, sums));
    }
    Ok(Some(Beside {
        truth: 100.0 * truth,
        rows,
    }))
}

/// The mean size of the error of estimates over the rows, by seed.
fn errors(beside: &Beside, of: impl Fn(&Row) -> &Vec<f64>) -> Vec<f64> {
    let sizes = |row| {
        of(row)
            .iter()
            .map(|value| (value - beside.truth).abs())
            .collect()
    };
    over(
        &beside.rows.iter().map(sizes).collect::<Vec<Vec<f64>>>(),
        mean,
    )
}

/// Solo utilisation estimated beside another program, by Eq. 9 and by the additive model.
pub(super) fn figure_6(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let tenths: Vec<u32> = (0..=10).map(|tenth| 10 * tenth).collect();
    let Some(found) = beside(lab, machine, AT_ONCE, &tenths)? else {
        return Ok(());
    };
    let of = |values: fn(&Row) -> &Vec<f64>| {
        found
            .rows
            .iter()
            .filter_map(|row| Some((row.0, mean(values(row))?)))
            .collect()
    };
    parts.push(Part::Heading(
        "Figure 6: solo utilisation, estimated beside another program".to_owned(),
    ));
    parts.push(curves(
        "efs-figure-6".to_owned(),
        "Estimates of a solo utilisation of 57 % beside another program: from simulated counters, by the other's use of \
         the bus."
            .to_owned(),
        Axes { x: "solo utilisation of the other, %", y: "estimate, %", decimals: 1 },
        vec![
            Curve::line("by Eq. 9".to_owned(), of(|row| &row.1)),
            Curve::line("truth".to_owned(), vec![(0.0, found.truth), (100.0, found.truth)]),
            Curve::line("additive model".to_owned(), of(|row| &row.2)),
        ],
    ));
    let row = |(x, models, sums): &Row| {
        vec![
            Cell::number(*x, 0),
            Cell::number(found.truth, 1),
            Cell::mean(models, 1),
            Cell::mean(sums, 1),
        ]
    };
    parts.push(Part::Table(Table {
        id: "efs-figure-6-numbers".to_owned(),
        caption: "The estimates of Figure 6, in per cent.".to_owned(),
        columns: ["other, %", "truth", "by Eq. 9", "additive"]
            .map(str::to_owned)
            .to_vec(),
        rows: found.rows.iter().map(row).collect(),
    }));
    verdicts.push(Verdict::order(
        "error of the estimate of a solo utilisation of 57 % (Figure 6)",
        &["additive", "Eq. 9"],
        &[
            ("additive", errors(&found, |row| &row.2)),
            ("Eq. 9", errors(&found, |row| &row.1)),
        ],
    ));
    Ok(())
}

/// Figure 6 with programs that wait for fewer misses at once.
pub(super) fn causes(
    lab: &Lab<'_>,
    machine: &Arc<MachineSpec>,
) -> Result<Vec<Part>, ReproduceError> {
    // With few misses at once a program can't use much more.
    let others = [10, 20, 30, 40, 50];
    let mut rows = Vec::new();
    for at_once in FEWER_AT_ONCE {
        let Some(found) = beside(lab, machine, at_once, &others)? else {
            continue;
        };
        rows.push(vec![
            Cell::number(at_once, 0),
            Cell::mean(&errors(&found, |row| &row.1), 1),
            Cell::mean(&errors(&found, |row| &row.2), 1),
        ]);
    }
    Ok(vec![
        Part::Text(
            "**Figure 6.** Eq. 9 takes every access that finds the bus busy for lost time. The synthetic program here has as \
             many misses under way at once as it takes to fill the bus alone; such a program hardly waits until the bus is \
             full, and then the bus has no free share left from which its demand could be told. The less waits overlap, the \
             nearer Eq. 9 comes, and the worse the additive model. So the difference is due to how waits overlap, as in \
             Figure 4."
                .to_owned(),
        ),
        Part::Table(Table {
            id: "efs-figure-6-causes".to_owned(),
            caption: "Mean size of the error of the estimates of Figure 6 in percentage points, by the misses that programs \
                      have under way at once, beside others that use 10 to 50 % alone."
                .to_owned(),
            columns: ["misses at once", "Eq. 9", "additive"].map(str::to_owned).to_vec(),
            rows,
        }),
    ])
}
