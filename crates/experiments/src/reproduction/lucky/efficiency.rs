//! Where each program is more efficient, and how well performance on the other type of core is predicted (sections 2 and 3).

use crate::reproduction::error::ReproduceError;
use crate::reproduction::figure::{Axes, bars};
use crate::reproduction::findings::{Cell, Part, Table, Verdict};
use crate::reproduction::lab::Lab;
use crate::reproduction::mixes::{copies, spec_programs};
use crate::reproduction::paper::lucky as paper;
use crate::reproduction::trial::{Measured, Trial, fitted};
use crate::statistics::{Estimate, mean};
use cosched_core::model::cross_core::{CoreType, benefit};
use cosched_core::{CpuSet, Nanos};
use cosched_sim::{CoreTypeFit, CoreTypesFit, MachineSpec, ProgramSpec, Work};
use std::sync::Arc;

/// A program alone on each type of core, by seed.
pub(super) struct Alone {
    pub(super) program: Arc<ProgramSpec>,
    big: Vec<Measured>,
    small: Vec<Measured>,
}

impl Alone {
    /// Million lines read a second on the big core, mean over the seeds.
    pub(super) fn misses(&self) -> f64 {
        let values: Vec<f64> = self.big.iter().map(|run| run.reads_per_us).collect();
        mean(&values).unwrap_or(0.0)
    }

    /// Million instructions a second on the small core, mean over the seeds.
    pub(super) fn small_mips(&self) -> f64 {
        mean(&self.small.iter().map(mips).collect::<Vec<_>>()).unwrap_or(0.0)
    }
}

fn mips(run: &Measured) -> f64 {
    run.instructions as f64 / run.turnaround_s / 1e6
}

/// Work of a program alone.
const WORK: Work = Work::SoloTime(Nanos::from_ms(20_000));

/// Every program alone on each type of core.
pub(super) fn alone(lab: &Lab<'_>, spec: &Arc<MachineSpec>) -> Result<Vec<Alone>, ReproduceError> {
    let seeds = lab.few_seeds();
    lab.pool
        .map("lucky: programs alone", &spec_programs(), |program| {
            alone_with(spec, program, seeds)
        })
}

/// A program alone on each type of core.
pub(super) fn alone_with(
    spec: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
    seeds: &[u64],
) -> Result<Alone, ReproduceError> {
    let machine = spec.machine();
    let on_type = |core_type: usize| -> Result<Vec<Measured>, ReproduceError> {
        let cpus = machine.cpus.iter().filter(|cpu| cpu.core_type == core_type);
        let usable: CpuSet = cpus.map(|cpu| cpu.id).take(1).collect();
        let jobs = copies(program, 1, WORK);
        let trial = |&seed: &u64| {
            Trial {
                usable: Some(usable.clone()),
                ..Trial::new(spec, &jobs, "linux", seed)
            }
            .simulate()
        };
        seeds.iter().map(trial).collect()
    };
    Ok(Alone {
        program: program.clone(),
        big: on_type(0)?,
        small: on_type(1)?,
    })
}

/// A program: the big core's efficiency over the small one's, and its million misses a second on the big core, by seed.
pub(super) struct Found {
    pub(super) name: String,
    pub(super) ratio: Vec<f64>,
    misses: Vec<f64>,
}

/// Fits the types of core, and finds what each program gains from the big one.
pub(super) fn benefits(
    spec: &Arc<MachineSpec>,
    alone: &[Alone],
) -> Result<Option<(CoreTypesFit, Vec<Found>)>, ReproduceError> {
    let Some(types) = fitted(spec)?.core_types else {
        return Ok(None);
    };
    let core = |of: &CoreTypeFit| CoreType::new(of.capacity_mips, of.busy_w, of.idle_w).ok();
    let (Some(big), Some(small)) = (core(&types.big), core(&types.small)) else {
        return Ok(None);
    };
    let found = |one: &Alone| {
        // The highest MIPS are the capacity; noise of the counters may lift one slightly above.
        let at_most = |mips: f64, core: &CoreType| mips.min(core.capacity_mips());
        let pairs = one.big.iter().zip(&one.small);
        let ratio = pairs.filter_map(|(on_big, on_small)| {
            benefit(
                &big,
                at_most(mips(on_big), &big),
                &small,
                at_most(mips(on_small), &small),
            )
            .ok()
        });
        Found {
            name: one.program.name.clone(),
            ratio: ratio.collect(),
            misses: one.big.iter().map(|run| run.reads_per_us).collect(),
        }
    };
    let found = alone.iter().map(found).collect();
    Ok(Some((types, found)))
}

/// A figure of the program of this name; none if there is no such program.
pub(super) fn of<'a>(found: &'a [Found], name: &str, figure: fn(&Found) -> &Vec<f64>) -> &'a [f64] {
    found
        .iter()
        .find(|one| one.name == name)
        .map_or(&[], |one| figure(one))
}

/// The big core's efficiency over the small one's for each program alone, and how well one is predicted from the other.
pub(super) fn figure_2(
    spec: &Arc<MachineSpec>,
    alone: &[Alone],
    parts: &mut Vec<Part>,
    verdicts: &mut Vec<Verdict>,
) -> Result<(), ReproduceError> {
    let Some((types, mut found)) = benefits(spec, alone)? else {
        return Ok(());
    };
    let mean_of = |one: &Found| mean(&one.ratio).unwrap_or(0.0);
    found.sort_by(|a, b| mean_of(b).total_cmp(&mean_of(a)));
    parts.push(Part::Heading(
        "Figure 2: where each program is more efficient".to_owned(),
    ));
    parts.push(bars(
        "lucky-figure-2".to_owned(),
        "MIPS squared per watt on the big core over that on the small one, each program alone."
            .to_owned(),
        Axes {
            x: "program",
            y: "big / small",
            decimals: 2,
        },
        found.iter().map(|one| one.name.clone()).collect(),
        vec![(
            "big / small".to_owned(),
            found.iter().map(|one| Estimate::of(&one.ratio)).collect(),
        )],
        None,
    ));
    for gains in ["zeusmp", "bwaves"] {
        let ratio = |name: &str| of(&found, name, |one| &one.ratio).to_vec();
        let values = [(gains, ratio(gains)), ("astar", ratio("astar"))];
        verdicts.push(Verdict::order(
            "Figure 2: efficiency of the big core",
            &[gains, "astar"],
            &values,
        ));
    }
    for (name, figure) in paper::MISSES {
        let what = format!("million misses a second of {name} on the big core");
        verdicts.push(Verdict::size(
            what,
            figure,
            0,
            of(&found, name, |one| &one.misses),
        ));
    }
    let mut rows = Vec::new();
    for (name, regression) in [
        ("to the big core", &types.to_big),
        ("to the small core", &types.to_small),
    ] {
        let Some(r2) = regression.r2 else { continue };
        rows.push(vec![
            Cell::text(name),
            Cell::number(r2.sqrt(), 2),
            Cell::number(r2, 2),
            Cell::number(paper::CORRELATION, 2),
        ]);
        // Correlations near 1 differ by what they leave unexplained.
        let left = 100.0 * (1.0 - paper::CORRELATION * paper::CORRELATION);
        let what = format!("variance that the prediction {name} leaves unexplained, %");
        verdicts.push(Verdict::size(what, left, 0, &[100.0 * (1.0 - r2)]));
    }
    parts.push(Part::Table(Table {
        id: "lucky-regression".to_owned(),
        caption:
            "The regression that predicts MIPS on the other type of core from MIPS and misses (section 2.2), over all \
                  programs."
                .to_owned(),
        columns: ["prediction", "correlation", "R squared", "paper's correlation"].map(str::to_owned).to_vec(),
        rows,
    }));
    Ok(())
}
