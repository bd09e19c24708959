//! How headline figures move when an assumed number of the simulated world is another.
//!
//! One number is changed at a time. Jobs are short and seeds few, so that it takes minutes: what counts is the difference
//! from the first row.

use crate::error::ReproduceError;
use crate::findings::{Cell, Chapter, Part, Table};
use crate::grid::{Candidate, Grid};
use crate::lab::Lab;
use crate::mixes::{Mix, copies, of_folder, program};
use crate::stats::mean;
use crate::trial::{Measured, Trial, machine, refitted};
use cosched_core::Nanos;
use cosched_sim::machine::Replacement;
use cosched_sim::{MachineSpec, SimJob, Work};
use std::sync::Arc;

/// Work of each job.
const WORK: Work = Work::SoloTime(Nanos::from_ms(10_000));

/// A change of a machine, and its name.
type Change = (&'static str, fn(&mut MachineSpec));

/// Each assumed number halved and doubled, or as far as it makes sense.
const CHANGES: &[Change] = &[
    ("as it is", |_| ()),
    ("idle latency x 0.8", |m| m.memory.idle_latency_ns *= 0.8),
    ("idle latency x 1.25", |m| m.memory.idle_latency_ns *= 1.25),
    ("price of a hit x 0.5", |m| m.llc.hit_ns *= 0.5),
    ("price of a hit x 2", |m| m.llc.hit_ns *= 2.0),
    ("any line is replaced", |m| m.llc.replacement = Replacement::Random),
    ("streams cost nothing", |m| m.memory.stream_loss = 0.0),
    ("streams cost x 2", |m| m.memory.stream_loss *= 2.0),
    ("last level x 0.67", |m| m.llc.mb *= 0.67),
    ("last level x 1.5", |m| m.llc.mb *= 1.5),
    ("SMT issue share x 0.5", |m| m.smt.issue_share *= 0.5),
    ("SMT issue share x 1.5", |m| m.smt.issue_share *= 1.5),
    ("wait for L1 0", |m| m.smt.l1_wait_cycles = 0.0),
    ("wait for L1 x 2", |m| m.smt.l1_wait_cycles *= 2.0),
    ("period x 0.33", |m| m.kernel.period_ms *= 0.33),
    ("period x 3", |m| m.kernel.period_ms *= 3.0),
    ("balancing x 0.25", |m| m.kernel.balance_ms *= 0.25),
    ("balancing x 4", |m| m.kernel.balance_ms *= 4.0),
    ("switch x 0.5", |m| m.kernel.switch_us *= 0.5),
    ("switch x 3", |m| m.kernel.switch_us *= 3.0),
    ("cold private caches x 0.5", |m| m.kernel.migration_us *= 0.5),
    ("cold private caches x 5", |m| m.kernel.migration_us *= 5.0),
    ("energy of a line x 0.5", |m| m.power.nj_per_line *= 0.5),
    ("energy of a line x 2", |m| m.power.nj_per_line *= 2.0),
    ("big core idle x 0.5", |m| idle_power(m, 0.5)),
    ("big core idle x 2", |m| idle_power(m, 2.0)),
    ("counters without noise", |m| m.counters.noise = 0.0),
    ("noise of counters x 5", |m| m.counters.noise *= 5.0),
];

/// Where there are two types of core, the idle power of the big one is assumed.
fn idle_power(machine: &mut MachineSpec, factor: f64) {
    if machine.core_types.len() > 1 {
        machine.core_types[0].idle_w *= factor;
    }
}

/// What is simulated for each change.
struct Scenes {
    mixes: Vec<Mix>,
    fours: Vec<Vec<SimJob>>,
    lucky: Vec<Mix>,
}

/// Programs whose energy depends most on the bus, and two that hardly use it.
const FOURS: [&str; 8] = ["libquantum", "lbm", "soplex", "mcf", "GemsFDTD", "milc", "gcc", "povray"];

/// The chapter.
pub(crate) fn chapter(lab: &Lab<'_>) -> Result<Chapter, ReproduceError> {
    let scenes = Scenes {
        mixes: of_folder("perf-fair", WORK),
        fours: FOURS.iter().map(|name| copies(&program(name), 4, WORK)).collect(),
        lucky: of_folder("lucky", WORK),
    };
    let mut rows = Vec::new();
    for (name, change) in CHANGES {
        let mut row = vec![Cell::text(*name)];
        for channels in ["xeon-e5645", "xeon-e5645-1ch"] {
            perf_fair(lab, &scenes, &format!("{name}, {channels}"), channels, *change, &mut row)?;
        }
        efs(lab, &scenes, name, *change, &mut row)?;
        lucky(lab, &scenes, name, *change, &mut row)?;
        rows.push(row);
    }
    let columns = [
        "changed",
        "3 ch., linux unf.",
        "bandwidth",
        "fair",
        "perf-fair",
        "perf-fair unf.",
        "round-robin",
        "1 ch., linux unf.",
        "bandwidth",
        "fair",
        "perf-fair",
        "perf-fair unf.",
        "round-robin",
        "efs, energy",
        "efs, time",
        "lucky, bias",
        "lucky, big-fair",
    ];
    let text = "One assumed number of the world is changed at a time, by as much as can be doubted or more. The parameters \
                that policies take from a machine's file are fitted again. Perf&Fair's 13 mixes with three channels and with \
                one: unfairness in per cent (geometric means), and speed-up over `linux` in per cent. EFS: four copies of \
                eight programs, energy saved and time lost against `linux` in per cent. Lucky: energy-delay product that it \
                saves over `bias` and over `big-fair` in per cent. Jobs of 10 s and few seeds, so compare with the first row and not with \
                the chapters above; a few tenths of a per cent are chance.";
    let table = Table {
        id: "sensitivity".to_owned(),
        caption: "Headline figures by what is changed.".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows,
    };
    let title = "How sensitive the figures are".to_owned();
    let parts = vec![Part::Text(text.to_owned()), Part::Table(table)];
    Ok(Chapter { id: "sensitivity", title, parts, verdicts: Vec::new(), causes: Vec::new() })
}

/// The built-in machine with this change, and with its policies' parameters fitted to it.
fn changed(name: &str, change: fn(&mut MachineSpec)) -> Result<Arc<MachineSpec>, ReproduceError> {
    let mut spec = (*machine(name)?).clone();
    change(&mut spec);
    Ok(refitted(spec))
}

fn cell(values: &[f64], decimals: usize) -> Cell {
    mean(values).map_or(Cell::Absent("not measured".to_owned()), |value| Cell::number(value, decimals))
}

fn perf_fair(
    lab: &Lab<'_>,
    scenes: &Scenes,
    what: &str,
    name: &str,
    change: fn(&mut MachineSpec),
    row: &mut Vec<Cell>,
) -> Result<(), ReproduceError> {
    let candidates = ["linux", "bandwidth", "fair", "perf-fair", "round-robin"].map(Candidate::new);
    let grid =
        Grid::simulate(&lab.pool, what, &changed(name, change)?, &scenes.mixes, &candidates, lab.sensitivity_seeds())?;
    row.push(cell(&grid.unfairness(0), 0));
    for at in 1..=3 {
        row.push(cell(&grid.speed_up(at, (&grid, 0)), 1));
    }
    row.push(cell(&grid.unfairness(3), 0));
    row.push(cell(&grid.speed_up(4, (&grid, 0)), 1));
    Ok(())
}

fn efs(
    lab: &Lab<'_>,
    scenes: &Scenes,
    what: &str,
    change: fn(&mut MachineSpec),
    row: &mut Vec<Cell>,
) -> Result<(), ReproduceError> {
    let spec = changed("i5-2500", change)?;
    let seeds = lab.sensitivity_seeds();
    let mut trials = Vec::new();
    for jobs in &scenes.fours {
        for policy in ["linux", "efs"] {
            trials.extend(seeds.iter().map(|&seed| Trial::new(&spec, jobs, policy, seed)));
        }
    }
    let runs = lab.pool.map(&format!("{what}, i5-2500"), &trials, Trial::simulate)?;
    let pairs = || runs.chunks(2 * seeds.len()).flat_map(|both| both[..seeds.len()].iter().zip(&both[seeds.len()..]));
    let saved = |(linux, efs): (&Measured, &Measured)| Some(100.0 * (1.0 - efs.energy_j? / linux.energy_j?));
    let slower = |(linux, efs): (&Measured, &Measured)| 100.0 * (efs.turnaround_s / linux.turnaround_s - 1.0);
    row.push(cell(&pairs().filter_map(saved).collect::<Vec<_>>(), 1));
    row.push(cell(&pairs().map(slower).collect::<Vec<_>>(), 1));
    Ok(())
}

fn lucky(
    lab: &Lab<'_>,
    scenes: &Scenes,
    what: &str,
    change: fn(&mut MachineSpec),
    row: &mut Vec<Cell>,
) -> Result<(), ReproduceError> {
    let spec = changed("big1-small3", change)?;
    let candidates = ["lucky", "bias", "big-fair"].map(Candidate::new);
    let what = format!("{what}, big1-small3");
    let grid = Grid::simulate(&lab.pool, &what, &spec, &scenes.lucky, &candidates, lab.sensitivity_seeds())?;
    let product = |run: &Measured| Some(run.energy_j? * run.turnaround_s);
    for base in [1, 2] {
        let pairs = (0..grid.mixes).flat_map(|mix| grid.of(mix, 0).iter().zip(grid.of(mix, base)));
        let saved: Vec<f64> =
            pairs.filter_map(|(ours, base)| Some(100.0 * (1.0 - product(ours)? / product(base)?))).collect();
        row.push(cell(&saved, 0));
    }
    Ok(())
}
