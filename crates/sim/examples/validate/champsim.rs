//! Holds the simulated machine against ChampSim: how much programs slow each other down, predicted from what each does alone
//! with several sizes of the last-level cache.
//!
//! `examples/champsim` has the measurements, and says how to repeat them. A folder with `alone.csv` and `slowdowns.csv` of
//! other programs in the same form is judged in the same way.

use crate::measurements::{MeasuredTable, Row};
use cosched_core::Nanos;
use cosched_sim::program::{ProgramCache, ProgramCore, ProgramMemory, Stall};
use cosched_sim::{MachineSpec, ProgramSpec, parse_machine_with, speeds_beside};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter, Write};
use std::path::Path;
use std::sync::Arc;

/// Cycles per instruction in the core, assumed. The fastest of these programs takes as long in all.
const CORE_CYCLES: f64 = 0.27;

/// The greatest number of misses in flight that is told apart from no waiting at all.
const MOST_OVERLAP: f64 = 1_000.0;

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

/// The folder with the machine, and with our measurements.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/champsim");

/// The tables of slowdowns: the six programs that the world was made with, and six that came later.
pub(crate) const TABLES: [&str; 2] = ["slowdowns.csv", "slowdowns_second.csv"];

/// Measured and simulated slowdowns of a table.
pub(crate) struct Slowdowns(Vec<Direction>);

/// Simulates the pairs of a table in a folder with `alone.csv`.
pub(crate) fn slowdowns(folder: &Path, table: &str) -> Result<Slowdowns, String> {
    let machine = Arc::new(machine()?);
    let alone = MeasuredTable::read(&folder.join("alone.csv"))?;
    let programs = programs(&alone, &machine)?;
    let pairs = MeasuredTable::read(&folder.join(table))?;
    Ok(Slowdowns(simulate(&pairs, &programs, &machine)?))
}

/// The report on the measurements in a folder.
pub(crate) fn report(folder: &Path) -> Result<String, String> {
    let tables: Vec<&str> = TABLES
        .into_iter()
        .filter(|table| folder.join(table).exists())
        .collect();
    if tables.is_empty() {
        return Err(format!(
            "{} has no {}",
            folder.display(),
            TABLES.join(" and no ")
        ));
    }
    let mut text = "## ChampSim\n\n".to_owned();
    for table in tables {
        let slowdowns = slowdowns(folder, table)?;
        let _ = writeln!(text, "`{table}`:\n\n{}", slowdowns.text());
    }
    Ok(text)
}

/// The machine of ChampSim's configuration.
fn machine() -> Result<MachineSpec, String> {
    let read = |name: &str| {
        let file = Path::new(FOLDER).join(name);
        std::fs::read_to_string(&file)
            .map_err(|why| format!("cannot read {}: {why}", file.display()))
    };
    let text = read("machine.toml")?;
    parse_machine_with(&text, "machine.toml", &read).map_err(|error| error.to_string())
}

/// The program of each name, from what it does alone.
fn programs(
    alone: &MeasuredTable,
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
        misses.push((
            behind_l2_mb(row, machine)?,
            f64::min(most, row.number("llc_misses_pki")?),
        ));
    }
    let whole = row_of_size(rows, machine)?;
    Ok(ProgramSpec {
        name: name.to_owned(),
        title: String::new(),
        instructions: None,
        core: ProgramCore {
            cpi: core_cycles(largest)?,
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
            stall: Stall::OverlapBySize {
                mlp: overlap_by_size(rows, machine)?,
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

/// Cycles per instruction in the core. A program that hardly reaches the last level has no others.
fn core_cycles(row: &Row) -> Result<f64, String> {
    let cycles = 1.0 / row.number("ipc")?;
    Ok(if row.number("llc_accesses_pki")? < 0.01 {
        cycles
    } else {
        cycles.min(CORE_CYCLES)
    })
}

/// Misses in flight with each size: the time that hits and misses would take one after the other, over the cycles that they
/// cost. What the core takes besides is assumed.
fn overlap_by_size(rows: &Alone<'_>, machine: &MachineSpec) -> Result<Vec<(f64, f64)>, String> {
    let ghz = machine.core_types[0].ghz;
    let mut overlap = Vec::new();
    for row in rows {
        let misses = row.number("llc_misses_pki")? / 1e3;
        let hits = (row.number("llc_accesses_pki")? / 1e3 - misses).max(0.0);
        let latency_ns = loaded_latency_ns(row, machine)?;
        let one_by_one = (hits * machine.llc.hit_ns + misses * latency_ns) * ghz;
        let waits = (1.0 / row.number("ipc")? - CORE_CYCLES).max(0.0);
        let mlp = if waits > 0.0 {
            one_by_one / waits
        } else {
            MOST_OVERLAP
        };
        overlap.push((behind_l2_mb(row, machine)?, mlp.clamp(1.0, MOST_OVERLAP)));
    }
    Ok(overlap)
}

/// The size of the last level without the lines of the second: ChampSim fills all levels.
fn behind_l2_mb(row: &Row, machine: &MachineSpec) -> Result<f64, String> {
    Ok((row.number("llc_kb")? - machine.core_types[0].l2_kb) / 1_024.0)
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
    slowdowns: &MeasuredTable,
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

impl Slowdowns {
    pub(crate) fn errors(&self) -> Errors {
        Errors::of(&self.0, Direction::error)
    }

    /// The program without whose pairs the mean error is least, and the errors of the others.
    fn without_worst(&self) -> Option<(&str, Errors)> {
        let mut worst: Option<(&str, Errors)> = None;
        for Direction { program, .. } in &self.0 {
            let others = self
                .0
                .iter()
                .filter(|one| one.program != *program && one.corunner != *program);
            let left = Errors::of(others, Direction::error);
            let is_less = |other: &Errors| left.mean() < other.mean();
            if !left.0.is_empty() && worst.as_ref().is_none_or(|(_, least)| is_less(least)) {
                worst = Some((program, left));
            }
        }
        worst
    }

    /// Spearman's rank correlation of measured and simulated slowdowns.
    pub(crate) fn rank_correlation(&self) -> f64 {
        let measured: Vec<f64> = self.0.iter().map(|one| one.measured).collect();
        let simulated: Vec<f64> = self.0.iter().map(|one| one.simulated).collect();
        correlation(&ranks(&measured), &ranks(&simulated))
    }

    fn text(&self) -> String {
        let mut text = String::from("| program | beside | ChampSim | simulated | off |\n");
        text.push_str("| --- | --- | --- | --- | --- |\n");
        for one in &self.0 {
            let off = 100.0 * (one.simulated / one.measured - 1.0);
            let _ = writeln!(
                text,
                "| {} | {} | {:.2} | {:.2} | {off:+.1} % |",
                one.program, one.corunner, one.measured, one.simulated
            );
        }
        let all = self.errors();
        let unslowed = Errors::of(&self.0, Direction::error_if_unslowed);
        let _ = write!(
            text,
            "\n{all}; rank correlation (Spearman) {:.2}\n\nIf nobody slowed anybody: {unslowed}\n",
            self.rank_correlation(),
        );
        if let Some((worst, errors)) = self.without_worst() {
            let _ = writeln!(text, "\nWithout `{worst}`: {errors}");
        }
        text
    }
}

impl Direction {
    /// The absolute error in per cent.
    fn error(&self) -> f64 {
        100.0 * (self.simulated / self.measured - 1.0).abs()
    }

    /// The same if the simulation slowed nobody.
    fn error_if_unslowed(&self) -> f64 {
        100.0 * (1.0 / self.measured - 1.0).abs()
    }
}

/// Absolute errors in per cent, ascending.
pub(crate) struct Errors(Vec<f64>);

impl Errors {
    fn of<'a>(
        pairs: impl IntoIterator<Item = &'a Direction>,
        error: fn(&Direction) -> f64,
    ) -> Errors {
        let mut errors: Vec<f64> = pairs.into_iter().map(error).collect();
        errors.sort_by(f64::total_cmp);
        Errors(errors)
    }

    pub(crate) fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
}

impl Display for Errors {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Errors(errors) = self;
        write!(
            f,
            "{} slowdowns, mean error {:.1} %, 90th percentile {:.1} %, greatest {:.1} %",
            errors.len(),
            self.mean(),
            errors[errors.len() * 9 / 10],
            errors[errors.len() - 1],
        )
    }
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
