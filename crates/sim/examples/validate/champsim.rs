//! Holds the simulated machine against ChampSim: how much programs slow each other down, predicted from what each does alone
//! with several sizes of the last-level cache.
//!
//! `examples/champsim` has the measurements, and says how to repeat them. A folder with `alone.csv` and `slowdowns.csv` of
//! other programs in the same form is judged in the same way.

use crate::table::{Row, Table};
use cosched_core::Nanos;
use cosched_sim::program::{ProgramCache, ProgramCore, ProgramMemory, Stall};
use cosched_sim::{MachineSpec, ProgramSpec, speeds_beside};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// Cycles per instruction in the core of a program whose misses are alike with every size: all of the cache's effect and the
/// core's are one figure then. The fastest of these programs takes as long.
const FEWEST_CYCLES: f64 = 0.27;

/// Least cycles per instruction that count.
const LEAST_CYCLES: f64 = 0.05;

/// Least standard deviation over sizes of the time in memory, as a share of the greatest, that tells its cost.
const LEAST_SPREAD: f64 = 0.05;

/// Simulated time until a pair is measured, and until its end.
const SPAN: [Nanos; 2] = [Nanos::from_ms(10), Nanos::from_ms(30)];

/// A program's rows of `alone.csv`, by ascending size of the last level.
type Alone<'a> = Vec<&'a Row>;

/// One direction of a pair.
struct Direction {
    program: String,
    corunner: String,
    measured: f64,
    simulated: f64,
}

/// The report on the measurements in a folder.
pub fn report(folder: &Path, machine: &Arc<MachineSpec>) -> Result<String, String> {
    let alone = Table::read(&folder.join("alone.csv"))?;
    let slowdowns = Table::read(&folder.join("slowdowns.csv"))?;
    let programs = programs(&alone, machine)?;
    let directions = simulate(&slowdowns, &programs, machine)?;
    Ok(written(&directions))
}

/// The program of each name, from what it does alone.
fn programs(
    alone: &Table,
    machine: &MachineSpec,
) -> Result<BTreeMap<String, Arc<ProgramSpec>>, String> {
    let mut rows: BTreeMap<String, Alone<'_>> = BTreeMap::new();
    for row in &alone.rows {
        rows.entry(row.text("program")?.to_owned())
            .or_default()
            .push(row);
    }
    let mut programs = BTreeMap::new();
    for (name, rows) in rows {
        let program = identified(&name, &rows, machine)?;
        programs.insert(name, Arc::new(program));
    }
    Ok(programs)
}

/// A program as its counts and its speed alone tell it.
fn identified(name: &str, rows: &Alone<'_>, machine: &MachineSpec) -> Result<ProgramSpec, String> {
    let largest = rows.last().ok_or("a program without rows")?;
    let mut misses = Vec::new();
    for row in rows {
        let most = misses.last().map_or(f64::INFINITY, |&(_, most)| most);
        // ChampSim fills all levels, so the last level has the lines of the second, too.
        misses.push((
            (row.number("llc_kb")? - machine.core_types[0].l2_kb) / 1_024.0,
            f64::min(most, row.number("llc_misses_pki")?),
        ));
    }
    let time = time_alone(rows, machine)?;
    let whole = row_of_size(rows, machine)?;
    Ok(ProgramSpec {
        name: name.to_owned(),
        title: String::new(),
        instructions: None,
        core: ProgramCore {
            cpi: time.cpi,
            l1_accesses_per_ki: largest.number("l1_accesses_pki")?,
            hits: None,
        },
        cache: ProgramCache {
            l1_misses_per_ki: largest.number("l1_misses_pki")?,
            l2_kb: machine.core_types[0].l2_kb,
            llc_accesses_per_ki: f64::max(largest.number("llc_accesses_pki")?, misses[0].1),
            llc_misses_per_ki: misses,
        },
        memory: ProgramMemory {
            reads_per_ki: whole.number("dram_reads_pki")?,
            writes_per_ki: whole.number("dram_writes_pki")?,
            at_mb: whole.number("llc_kb")? / 1_024.0,
            stall: Stall::Overlap {
                mlp: time.mlp,
                mlp_reused: time.mlp_reused,
            },
        },
        phases: Vec::new(),
    })
}

/// The row of the machine's own size of the last level.
fn row_of_size<'a>(rows: &Alone<'a>, machine: &MachineSpec) -> Result<&'a Row, String> {
    let llc_kb = machine.llc.mb * 1_024.0;
    for row in rows {
        if row.number("llc_kb")? == llc_kb {
            return Ok(row);
        }
    }
    Err(format!(
        "alone.csv lacks a row of {llc_kb} KB for a program"
    ))
}

/// How a program's time alone divides.
struct TimeAlone {
    /// Cycles per instruction in the core.
    cpi: f64,
    /// Misses in flight, of those that remain with the largest cache.
    mlp: f64,
    /// The same of all others.
    mlp_reused: f64,
}

/// Fits a straight line through the cycles per instruction of all sizes, by the cycles that the hits, and the misses that a
/// larger cache avoids, would take one after the other. The rest belongs to the core and to the misses that remain.
fn time_alone(rows: &Alone<'_>, machine: &MachineSpec) -> Result<TimeAlone, String> {
    let ghz = machine.core_types[0].ghz;
    let remaining = rows
        .last()
        .ok_or("a program without rows")?
        .number("llc_misses_pki")?
        / 1e3;
    let (mut points, mut remaining_cycles) = (Vec::new(), 0.0);
    for row in rows {
        let misses = row.number("llc_misses_pki")? / 1e3;
        let hits = row.number("llc_accesses_pki")? / 1e3 - misses;
        let latency = loaded_latency_ns(row, machine)? * ghz;
        let cycles =
            hits.max(0.0) * machine.llc.hit_ns * ghz + (misses - remaining).max(0.0) * latency;
        points.push((cycles, 1.0 / row.number("ipc")?));
        remaining_cycles += remaining * latency / rows.len() as f64;
    }
    let line = Line::through(&points);
    let rest = line.start.max(LEAST_CYCLES);
    let mlp_reused = overlap(line.slope);
    if remaining_cycles < LEAST_CYCLES {
        return Ok(TimeAlone {
            cpi: rest,
            mlp: mlp_reused,
            mlp_reused,
        });
    }
    let cpi = rest.min(FEWEST_CYCLES);
    let mlp = overlap((rest - cpi) / remaining_cycles);
    Ok(TimeAlone {
        cpi,
        mlp,
        mlp_reused: if line.is_known { mlp_reused } else { mlp },
    })
}

/// The misses in flight, if a cycle of waiting costs so much of one.
fn overlap(share: f64) -> f64 {
    (1.0 / share.max(1.0 / 64.0)).max(1.0)
}

/// A straight line.
struct Line {
    start: f64,
    slope: f64,
    /// Whether the points were far enough apart.
    is_known: bool,
}

impl Line {
    /// The line with the least squares of relative errors.
    fn through(points: &[(f64, f64)]) -> Line {
        let weight = |y: f64| 1.0 / (y * y);
        let all: f64 = points.iter().map(|point| weight(point.1)).sum();
        let x = points
            .iter()
            .map(|point| weight(point.1) * point.0)
            .sum::<f64>()
            / all;
        let y = points
            .iter()
            .map(|point| weight(point.1) * point.1)
            .sum::<f64>()
            / all;
        let squares: f64 = points
            .iter()
            .map(|point| weight(point.1) * (point.0 - x) * (point.0 - x))
            .sum();
        let products: f64 = points
            .iter()
            .map(|point| weight(point.1) * (point.0 - x) * (point.1 - y))
            .sum();
        let most = points.iter().map(|point| point.0).fold(0.0, f64::max);
        if squares <= all * (LEAST_SPREAD * most) * (LEAST_SPREAD * most) || products <= 0.0 {
            return Line {
                start: y - x,
                slope: 1.0,
                is_known: false,
            };
        }
        let slope = products / squares;
        Line {
            start: y - slope * x,
            slope,
            is_known: true,
        }
    }
}

/// The latency that a program's own traffic causes, in ns.
fn loaded_latency_ns(row: &Row, machine: &MachineSpec) -> Result<f64, String> {
    let (reads, writes) = (
        row.number("dram_reads_pki")? / 1e3,
        row.number("dram_writes_pki")? / 1e3,
    );
    let lines_per_ns = (reads + writes) * row.number("ipc")? * machine.core_types[0].ghz;
    let peak = f64::from(machine.memory.channels) * machine.memory.gb_per_s_per_channel / 64.0;
    let share = if reads > 0.0 {
        reads / (reads + writes)
    } else {
        1.0
    };
    Ok(machine.memory.idle_latency_ns * machine.memory.curve.latency(lines_per_ns / peak, share))
}

/// Every direction of the table, simulated.
fn simulate(
    slowdowns: &Table,
    programs: &BTreeMap<String, Arc<ProgramSpec>>,
    machine: &Arc<MachineSpec>,
) -> Result<Vec<Direction>, String> {
    let mut directions = Vec::new();
    for row in &slowdowns.rows {
        let [program, corunner] = [row.text("program")?, row.text("corunner")?];
        let find = |name: &str| {
            programs
                .get(name)
                .cloned()
                .ok_or(format!("alone.csv has no rows of {name}"))
        };
        let (own, other) = (find(program)?, find(corunner)?);
        let speed =
            |programs: &[Arc<ProgramSpec>]| speeds_beside(machine, programs, SPAN[0], SPAN[1])[0];
        directions.push(Direction {
            program: program.to_owned(),
            corunner: corunner.to_owned(),
            measured: row.number("slowdown")?,
            simulated: speed(std::slice::from_ref(&own)) / speed(&[own.clone(), other]),
        });
    }
    Ok(directions)
}

fn written(directions: &[Direction]) -> String {
    let mut text = String::from(
        "| program | beside | ChampSim | simulated | off |\n| --- | --- | --- | --- | --- |\n",
    );
    for one in directions {
        let off = 100.0 * (one.simulated / one.measured - 1.0);
        let _ = writeln!(
            text,
            "| {} | {} | {:.2} | {:.2} | {off:+.1} % |",
            one.program, one.corunner, one.measured, one.simulated
        );
    }
    let mut errors: Vec<f64> = directions
        .iter()
        .map(|one| 100.0 * (one.simulated / one.measured - 1.0).abs())
        .collect();
    errors.sort_by(f64::total_cmp);
    let mean = errors.iter().sum::<f64>() / errors.len() as f64;
    let _ = writeln!(
        text,
        "\n{} slowdowns: mean error {mean:.1} %, 90th percentile {:.1} %, greatest {:.1} %; rank correlation (Spearman) {:.2}",
        errors.len(),
        errors[errors.len() * 9 / 10],
        errors[errors.len() - 1],
        spearman(directions),
    );
    text
}

/// Spearman's rank correlation of measured and simulated slowdowns.
fn spearman(directions: &[Direction]) -> f64 {
    let measured = ranks(
        &directions
            .iter()
            .map(|one| one.measured)
            .collect::<Vec<f64>>(),
    );
    let simulated = ranks(
        &directions
            .iter()
            .map(|one| one.simulated)
            .collect::<Vec<f64>>(),
    );
    correlation(&measured, &simulated)
}

/// The rank of each value; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut ranks = Vec::new();
    for &value in values {
        let below = values.iter().filter(|&&other| other < value).count();
        let equal = values.iter().filter(|&&other| other == value).count();
        ranks.push(below as f64 + 0.5 * (equal as f64 - 1.0));
    }
    ranks
}

fn correlation(one: &[f64], other: &[f64]) -> f64 {
    let count = one.len() as f64;
    let [mean_one, mean_other] = [one, other].map(|values| values.iter().sum::<f64>() / count);
    let mut sums = [0.0; 3];
    for (x, y) in one.iter().zip(other) {
        let (dx, dy) = (x - mean_one, y - mean_other);
        sums[0] += dx * dy;
        sums[1] += dx * dx;
        sums[2] += dy * dy;
    }
    sums[0] / (sums[1] * sums[2]).sqrt()
}
