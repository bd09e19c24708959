//! `even` in worlds that its equations do not fit.

use super::{ENDS, LONG_S, Mixes, SHORT_S, met, table, work};
use crate::reproduction::error::ReproduceError;
use crate::reproduction::findings::{Cell, Part, plain};
use crate::reproduction::grid::{Candidate, Grid};
use crate::reproduction::lab::{Lab, in_words};
use crate::reproduction::mixes::Mix;
use crate::reproduction::trial::{Measured, machine, refitted};
use crate::statistics::mean;
use cosched_core::{Counter, Nanos};
use cosched_sim::machine::Replacement;
use cosched_sim::program::Phase;
use cosched_sim::{MachineSpec, ProgramSpec, Sim, SimConfig, SimJob};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A change of a machine, and its name.
type Change = (&'static str, fn(&mut MachineSpec));

/// Worlds to which the policies' parameters are fitted again.
const CHANGES: [Change; 12] = [
    ("as it is", |_| ()),
    ("any line is replaced", |m| {
        m.llc.replacement = Replacement::Random
    }),
    ("SMT issue share x 0.5", |m| m.smt.issue_share *= 0.5),
    ("SMT issue share x 2", |m| {
        m.smt.issue_share = (2.0 * m.smt.issue_share).min(1.0)
    }),
    ("wait for L1 x 0.5", |m| m.smt.l1_wait_cycles *= 0.5),
    ("wait for L1 x 2", |m| m.smt.l1_wait_cycles *= 2.0),
    ("latency rises half as much", |m| {
        bend(m, |points| rise(points, 0.5))
    }),
    ("latency rises twice as much", |m| {
        bend(m, |points| rise(points, 2.0))
    }),
    ("latency rises in a straight line", |m| bend(m, straighten)),
    ("streams cost nothing", |m| m.memory.stream_loss = 0.0),
    ("counters without noise", |m| m.counters.noise = 0.0),
    ("noise of counters 5 %", |m| m.counters.noise = 0.05),
];

/// Counters that a machine lacks. Nothing can be fitted without them, so parameters stay as they are.
const MISSING: [(&str, Counter); 3] = [
    ("L1 accesses not counted", Counter::L1Accesses),
    ("LLC accesses not counted", Counter::LlcAccesses),
    ("reads from memory not counted", Counter::MmReads),
];

/// Phases that all programs have, by their length in ms.
const PHASES: [(&str, u64); 3] = [
    ("phases of 5 ms", 5),
    ("phases of 1 s", 1_000),
    ("phases of 60 s", 60_000),
];

/// Changes each line of the curve of the memory's latency.
fn bend(machine: &mut MachineSpec, change: fn(&mut Vec<(f64, f64)>)) {
    Arc::make_mut(&mut machine.memory.curve)
        .lines
        .iter_mut()
        .for_each(|line| change(&mut line.points));
}

fn rise(points: &mut [(f64, f64)], factor: f64) {
    points
        .iter_mut()
        .for_each(|(_, latency)| *latency = 1.0 + factor * (*latency - 1.0));
}

fn straighten(points: &mut Vec<(f64, f64)>) {
    if points.len() > 2 {
        points.drain(1..points.len() - 1);
    }
}

/// The mixes with programs of two phases in turn, of as many instructions as the program without phases executes alone in the
/// time `each`: one that computes more and reads less, and one the other way round. Every other job begins with the second.
fn with_phases(
    spec: &Arc<MachineSpec>,
    mixes: &[Mix],
    each: Nanos,
) -> Result<Vec<Mix>, ReproduceError> {
    let mut known: BTreeMap<String, [Arc<ProgramSpec>; 2]> = BTreeMap::new();
    let mut changed = mixes.to_vec();
    for (at, job) in changed
        .iter_mut()
        .flat_map(|mix| mix.jobs.iter_mut().enumerate())
    {
        let name = job.program.name.clone();
        if !known.contains_key(&name) {
            let per_s = instructions_per_s(spec, &job.program)?;
            let phase = |cpi, memory| Phase {
                instructions: per_s * each.as_s(),
                cpi,
                memory,
                then_sleep_ms: 0.0,
            };
            let phases = [phase(1.2, 0.5), phase(0.8, 1.5)];
            let of = |phases: [Phase; 2]| {
                Arc::new(ProgramSpec {
                    phases: phases.to_vec(),
                    ..(*job.program).clone()
                })
            };
            known.insert(name.clone(), [of(phases), of([phases[1], phases[0]])]);
        }
        job.program = known[&name][at % 2].clone();
    }
    Ok(changed)
}

/// What a program executes alone in a second, as it is.
fn instructions_per_s(
    spec: &Arc<MachineSpec>,
    program: &Arc<ProgramSpec>,
) -> Result<f64, ReproduceError> {
    let job = SimJob {
        program: program.clone(),
        work: work(1),
        cpus: 1,
        nice: 0,
    };
    let failure = |error| ReproduceError::Simulation {
        what: format!("{} alone on {}", program.name, spec.name),
        error,
    };
    let sim = Sim::new(SimConfig::new(spec.clone(), vec![job], 1)).map_err(failure)?;
    Ok(sim
        .solo_runs()
        .iter()
        .map(|run| run.instructions as f64 / run.time.as_s())
        .sum())
}

/// Positions of the candidates.
const LINUX: usize = 0;
const PERF: usize = 1;
const EVEN: usize = 2;

/// How many points of unfairness `even` may be behind `perf-fair`, and how many per cent slower than `linux`, on any mix.
const LESS_FAIR_MOST: f64 = 3.0;
const SLOWER_MOST: f64 = 1.0;

/// A world: its name, its machine and its mixes.
type World = (&'static str, Arc<MachineSpec>, Vec<Mix>);

fn worlds(
    base: &Arc<MachineSpec>,
    mixes: &[Mix],
    seconds: u64,
) -> Result<Vec<World>, ReproduceError> {
    let mut worlds = Vec::new();
    for (name, change) in CHANGES {
        let mut changed = (**base).clone();
        change(&mut changed);
        let spec = if changed == **base {
            base.clone()
        } else {
            refitted(changed)?
        };
        worlds.push((name, spec, mixes.to_vec()));
    }
    for (name, counter) in MISSING {
        let mut changed = (**base).clone();
        changed.counters.counts[counter] = false;
        worlds.push((name, Arc::new(changed), mixes.to_vec()));
    }
    for (name, ms) in PHASES {
        if ms < 1_000 * seconds {
            worlds.push((
                name,
                base.clone(),
                with_phases(base, mixes, Nanos::from_ms(ms))?,
            ));
        }
    }
    Ok(worlds)
}

/// By how much the unfairness of `even` exceeds that of `perf-fair` on the mix where that is most, in points.
fn less_fair(grid: &Grid) -> f64 {
    let of = |mix: usize, at: usize| mean(&grid.values(mix, at, Measured::unfair_percent));
    let differences = (0..grid.mixes).filter_map(|mix| Some(of(mix, EVEN)? - of(mix, PERF)?));
    differences.max_by(f64::total_cmp).unwrap_or(f64::NAN)
}

/// The row of a world, and how many of its two goals are met.
fn row(name: &str, grid: &Grid) -> (Vec<Cell>, usize) {
    let least = super::measured::least(grid, EVEN, LINUX);
    let less_fair = less_fair(grid);
    let (is_fair, is_fast) = (less_fair <= LESS_FAIR_MOST, least >= -SLOWER_MOST);
    let judged =
        |value: f64, is_met: bool| Cell::text(format!("{}: {}", plain(value, 2), met(is_met)));
    let row = vec![
        Cell::text(name),
        Cell::mean(&grid.unfairness(LINUX), 1),
        Cell::mean(&grid.unfairness(PERF), 1),
        Cell::mean(&grid.unfairness(EVEN), 1),
        Cell::number(super::measured::worst(grid, EVEN), 1),
        Cell::signed(&grid.speed_up(PERF, (grid, LINUX)), 1),
        Cell::signed(&grid.speed_up(EVEN, (grid, LINUX)), 1),
        judged(less_fair, is_fair),
        judged(least, is_fast),
    ];
    (row, usize::from(is_fair) + usize::from(is_fast))
}

/// A table for each machine.
pub(super) fn parts(lab: &Lab<'_>) -> Result<Vec<Part>, ReproduceError> {
    let seconds = if lab.quick { SHORT_S } else { LONG_S };
    let seeds = &lab.few_seeds()[..1];
    let candidates = ["linux", "perf-fair", "even"].map(Candidate::new);
    let mut parts = vec![
        Part::Heading("Worlds that the equations do not fit".to_owned()),
        Part::Text(format!(
            "The equations of `even` know one law of the cache, of the core and of the memory. Each row changes the world in one \
             way, on all 13 mixes with jobs of {seconds} s, with {}; parameters that come from the machine's file are fitted \
             again, unless a counter is missing. In the worlds with phases all programs have two in turn, of 1.2 times the \
             cycles in the core with half of the accesses to the last level, and of 0.8 times with one and a half; they \
             last as long as said for the program without phases. The goals hold for each single mix: at most 3 \
             points less fair than `perf-fair`, and at most 1 % slower than `linux`.",
            in_words(seeds)
        )),
    ];
    for name in ENDS {
        let base = machine(name)?;
        let (mut rows, mut reached) = (Vec::new(), 0);
        for (world, spec, mixes) in worlds(&base, &Mixes::PerfFair.of(seconds), seconds)? {
            let what = format!("even: {world} on {name}");
            let grid = Grid::simulate(&lab.pool, &what, &spec, &mixes, &candidates, seeds)?;
            let (row, goals) = row(world, &grid);
            rows.push(row);
            reached += goals;
        }
        parts.push(table(
            format!("even-worlds-{name}"),
            format!(
                "`{name}`: unfairness in per cent, speed-up of turnaround over `linux` in per cent, and on the mix where it \
                 is worst, by how many points `even` is less fair than `perf-fair`, and its speed-up. Of {} goals {reached} are met \
                 and {} are not.",
                2 * rows.len(),
                2 * rows.len() - reached,
            ),
            &[
                "world",
                "unfairness, `linux`",
                "`perf-fair`",
                "`even`",
                "`even`, worst",
                "speed-up, `perf-fair`",
                "speed-up, `even`",
                "less fair than `perf-fair`, at most 3",
                "least speed-up, at least -1",
            ],
            rows,
        ));
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_world_is_another_one() {
        let base = machine("xeon-e5645-1ch").unwrap();
        for (name, change) in &CHANGES[1..] {
            let mut changed = (*base).clone();
            change(&mut changed);
            assert_ne!(changed, *base, "{name}");
        }
        let mut steeper = (*base).clone();
        bend(&mut steeper, |points| rise(points, 2.0));
        let over = |spec: &MachineSpec| spec.memory.curve.latency(0.8, 1.0) - 1.0;
        assert!((over(&steeper) / over(&base) - 2.0).abs() < 1e-9);
    }

    #[test]
    fn phases_last_as_long_as_said_and_jobs_begin_with_either() {
        let (base, all) = (machine("xeon-e5645").unwrap(), Mixes::PerfFair.of(4));
        let each = Nanos::from_ms(5);
        let changed = with_phases(&base, &all[..1], each).unwrap();
        assert_eq!(changed[0].jobs.len(), all[0].jobs.len());
        for (at, (job, before)) in changed[0].jobs.iter().zip(&all[0].jobs).enumerate() {
            let phases = &job.program.phases;
            assert_eq!(
                (phases.len(), phases[0].memory),
                (2, if at % 2 == 0 { 0.5 } else { 1.5 })
            );
            let per_s = instructions_per_s(&base, &before.program).unwrap();
            assert!((phases[0].instructions / per_s - each.as_s()).abs() < 1e-9);
        }
    }
}
