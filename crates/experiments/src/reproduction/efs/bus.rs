//! The memory bus: what one program needs of it alone, and what four of them get (section 3, Figure 4).

use super::{Bench, CORES, LINUX};
use crate::reproduction::engine::{
    Draft, ExperimentMix, FindingCell, Grid, Result, TrialCandidate, TrialMeasurements, plain,
    program,
};
use crate::statistics::{deviation, mean, over};
use cosched_core::model::bus;
use cosched_report::chart::Curve;
use cosched_sim::program::Stall;
use cosched_sim::{FIT_LENGTH, MachineSpec, ProgramSpec, rates};
use std::sync::Arc;

/// Transactions per us that the machine's bus serves, as its file says.
pub(super) fn mu(machine: &MachineSpec) -> f64 {
    let mut params = machine.params.iter();
    let found = params.find(|(name, _)| name == "mu_trans_per_us");
    let (_, value) = found.expect("the machine has the parameters of EFS");
    value.parse().unwrap_or(f64::NAN)
}

/// The share of time for which a program keeps the bus busy when it is alone.
pub(super) fn solo_utilisation(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>) -> f64 {
    let rates = rates(machine, program, 1, FIT_LENGTH);
    let lines_per_us = rates.lines_per_ns * 1e3;
    (lines_per_us / mu(machine)).min(0.999)
}

/// The program `bus-60` with so many misses at once, and so many times the cycles in the core.
fn like_bus_60(factor: f64, at_once: f64, name: String) -> Arc<ProgramSpec> {
    let mut made = (*program("bus-60")).clone();
    made.name = name;
    made.core.cpi *= factor;
    made.memory.stall = Stall::Overlap { mlp: at_once };
    Arc::new(made)
}

/// A synthetic program that uses such a share of the bus alone, with so many misses at once. `None` if it can't use as much.
pub(super) fn synthetic(
    machine: &Arc<MachineSpec>,
    demand: f64,
    at_once: f64,
) -> Option<Arc<ProgramSpec>> {
    let percent = plain(100.0 * demand, 0);
    let name = format!("bus-{percent}-{at_once}");
    // More time in the core between two reads means less use of the bus.
    let (mut low, mut high) = (0.02, 64.0);
    let greediest = like_bus_60(low, at_once, name.clone());
    if solo_utilisation(machine, &greediest) < demand {
        return None;
    }
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        let made = like_bus_60(middle, at_once, name.clone());
        if solo_utilisation(machine, &made) > demand {
            low = middle
        } else {
            high = middle
        }
    }
    Some(like_bus_60(0.5 * (low + high), at_once, name))
}

/// Misses at once of the synthetic programs, as many as it takes to fill the bus alone.
pub(super) const AT_ONCE: f64 = 40.0;

/// The same, and fewer: what the number changes.
pub(super) const FEWER_AT_ONCE: [f64; 4] = [AT_ONCE, 20.0, 12.0, 8.0];

/// Work of the four together in the time that one would take alone: the sum of their speeds.
fn throughput(run: &TrialMeasurements) -> Option<f64> {
    Some(run.slowdowns.iter().map(|slowdown| 1.0 / slowdown).sum())
}

/// EFS's model of the throughput of four identical tasks.
fn model(demand: f64) -> f64 {
    bus::throughput(&[demand; CORES]).unwrap_or(f64::NAN)
}

/// By how many per cent the model is above each throughput.
fn off(model: f64, throughputs: &[f64]) -> Vec<f64> {
    let values = throughputs.iter();
    values.map(|value| 100.0 * (model / value - 1.0)).collect()
}

/// A point of Figure 4: what a program needs of the bus alone, and what four copies of it get.
struct Point {
    program: String,
    /// Solo utilisation, from 0 to 1.
    demand: f64,
    /// Throughput of four copies, by seed.
    throughput: Vec<f64>,
}

impl Point {
    fn mean_throughput(&self) -> f64 {
        mean(&self.throughput).unwrap_or(0.0)
    }

    /// Its place in the figure: solo utilisation in per cent, and throughput.
    fn place(&self) -> (f64, f64) {
        (100.0 * self.demand, self.mean_throughput())
    }

    fn is_below_model(&self) -> bool {
        self.mean_throughput() < 0.99 * model(self.demand)
    }

    fn row(&self) -> Vec<FindingCell> {
        vec![
            FindingCell::text(&self.program),
            FindingCell::number(100.0 * self.demand, 1),
            FindingCell::number(model(self.demand), 2),
            FindingCell::mean(&self.throughput, 2),
        ]
    }
}

fn simulate(bench: &Bench<'_>, programs: &[Arc<ProgramSpec>]) -> Result<Vec<Point>> {
    let linux = [TrialCandidate::new("linux")];
    let mixes = programs.iter().map(|program| bench.four_of(program));
    let mixes: Vec<ExperimentMix> = mixes.collect();
    let grid = Grid::few(bench.lab, &bench.slow, &mixes, &linux)?;
    let mut points = Vec::new();
    for (at, program) in programs.iter().enumerate() {
        points.push(Point {
            program: program.name.clone(),
            demand: solo_utilisation(&bench.slow, program),
            throughput: grid.values(at, LINUX, throughput),
        });
    }
    Ok(points)
}

/// Throughput of four identical tasks against what one needs of the bus alone.
pub(super) fn figure_4(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let mut programs = Vec::new();
    for percent in (10..=100).step_by(10) {
        programs.push(program(&format!("bus-{percent}")));
    }
    let synthetic = programs.len();
    programs.extend_from_slice(&bench.programs);
    let points = simulate(bench, &programs)?;
    let (made, real) = points.split_at(synthetic);
    draw_figure_4(draft, made, real);
    let rows = points.iter().map(Point::row);
    draft.table("figure-4-points", rows.collect());
    let below = real.iter().filter(|point| point.is_below_model()).count();
    draft.value("programs", real.len());
    draft.value("below", below);
    draft.text("below-model");
    judge_figure_4(draft, made);
    Ok(())
}

fn greatest_size(values: &[f64]) -> Option<f64> {
    values.iter().map(|value| value.abs()).reduce(f64::max)
}

fn judge_figure_4(draft: &mut Draft, made: &[Point]) {
    let mut differences = Vec::new();
    for point in made {
        differences.push(off(model(point.demand), &point.throughput));
    }
    draft.judge("figure-4-most", &over(&differences, greatest_size));
    draft.judge("figure-4-deviation", &over(&differences, deviation));
}

fn draw_figure_4(draft: &mut Draft, made: &[Point], real: &[Point]) {
    let percent = (0..100).map(f64::from);
    let modelled = percent.map(|percent| (percent, model(percent / 100.0)));
    let modelled = modelled.filter(|(_, throughput)| throughput.is_finite());
    let made = made.iter().map(Point::place).collect();
    let real = real.iter().map(Point::place).collect();
    let lines = vec![
        Curve::line("model (Eqs. 10-12)".to_owned(), modelled.collect()),
        Curve::line("synthetic".to_owned(), made),
        Curve::points("SPEC CPU2006".to_owned(), real),
    ];
    draft.curves("figure-4", lines);
}

/// By how many per cent the model is above the throughput of four copies of a synthetic program.
fn model_against_synthetic(bench: &Bench<'_>, demand: f64, at_once: f64) -> Result<FindingCell> {
    let machine = &bench.slow;
    let Some(program) = synthetic(machine, demand, at_once) else {
        return Ok(FindingCell::absent());
    };
    let linux = [TrialCandidate::new("linux")];
    let mixes = [bench.four_of(&program)];
    let grid = Grid::few(bench.lab, machine, &mixes, &linux)?;
    let model = model(solo_utilisation(machine, &program));
    let off = off(model, &grid.values(0, LINUX, throughput));
    Ok(FindingCell::signed(&off, 1))
}

/// Figure 4 with programs that wait for fewer misses at once.
pub(super) fn causes(draft: &mut Draft, bench: &Bench<'_>) -> Result<()> {
    let demands = [0.1, 0.2, 0.3, 0.4];
    let mut rows = Vec::new();
    for at_once in FEWER_AT_ONCE {
        let mut row = vec![FindingCell::number(at_once, 0)];
        for demand in demands {
            row.push(model_against_synthetic(bench, demand, at_once)?);
        }
        rows.push(row);
    }
    draft.table("figure-4-causes", rows);
    Ok(())
}
