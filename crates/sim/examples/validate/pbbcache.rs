//! Holds the profiles of SPEC CPU2006 against PBBCache's measurements, from which no profile was made: misses and cycles of 29
//! programs on a Skylake with one to eleven ways of its last level.

use cosched_core::Nanos;
use cosched_sim::{MachineSpec, ProgramSpec, builtin_machine, builtin_program, rates};
use std::sync::Arc;

const MEASURED: &str = include_str!("../../tests/suite/data/pbbcache.csv");

/// A program by the ways of the last level that it had, from 1 to 11.
struct ByWays {
    program: Arc<ProgramSpec>,
    misses_per_ki: Vec<f64>,
    cpi: Vec<f64>,
}

/// How far simulation and measurement are apart.
pub(crate) struct Differences {
    /// Of the misses per KI, over programs and ways, ascending.
    pub(crate) misses: Vec<f64>,
    /// Of the growth of the cycles per instruction from eleven ways to one, over programs, ascending.
    pub(crate) growth: Vec<f64>,
    /// The measured growth beyond 1, over programs, ascending.
    pub(crate) growth_measured: Vec<f64>,
    /// The mean growth, simulated and measured.
    pub(crate) mean_growth: [f64; 2],
}

/// Simulates all programs with each number of ways.
pub(crate) fn differences() -> Differences {
    let machines: Vec<Arc<MachineSpec>> = (1..=11).map(with_ways).collect();
    let (mut misses, mut growth, mut growth_measured) = (Vec::new(), Vec::new(), Vec::new());
    let mut sums = [0.0; 2];
    let programs = measured();
    for row in &programs {
        let mut cpi = Vec::new();
        for (machine, theirs) in machines.iter().zip(&row.misses_per_ki) {
            let (own_misses, own_cpi) = simulated(machine, &row.program);
            misses.push((own_misses - theirs).abs());
            cpi.push(own_cpi);
        }
        let both = [cpi[0] / cpi[10], row.cpi[0] / row.cpi[10]];
        growth.push((both[0] - both[1]).abs());
        growth_measured.push(both[1] - 1.0);
        sums = [sums[0] + both[0], sums[1] + both[1]];
    }
    misses.sort_by(f64::total_cmp);
    growth.sort_by(f64::total_cmp);
    growth_measured.sort_by(f64::total_cmp);
    Differences {
        misses,
        growth,
        growth_measured,
        mean_growth: sums.map(|sum| sum / programs.len() as f64),
    }
}

/// The value below which this share of ascending values lies.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    values[((values.len() - 1) as f64 * share + 0.5) as usize]
}

/// The report.
pub(crate) fn report() -> String {
    let found = differences();
    let [ours, theirs] = found.mean_growth;
    let of = |values: &[f64]| [0.5, 0.75, 0.9].map(|share| quantile(values, share));
    let ([m, m75, m90], [g, g75, g90]) = (of(&found.misses), of(&found.growth));
    let [n, n75, n90] = of(&found.growth_measured);
    format!(
        "## PBBCache: 29 programs with one to eleven ways\n\n\
         An instruction takes {ours:.3} times as long with one way as with eleven (measured {theirs:.3}).\n\n\
         | difference | median | 75 % | 90 % |\n| --- | --- | --- | --- |\n\
         | misses per 1,000 instructions | {m:.2} | {m75:.2} | {m90:.2} |\n\
         | growth of the time | {g:.3} | {g75:.3} | {g90:.3} |\n\
         | the same, if nothing grew | {n:.3} | {n75:.3} | {n90:.3} |\n"
    )
}

fn measured() -> Vec<ByWays> {
    let lines = MEASURED.lines().filter(|line| !line.starts_with('#'));
    lines.map(by_ways).collect()
}

/// The program of a line, as `NAME;misses of each number of ways;cycles per instruction of each`.
fn by_ways(line: &str) -> ByWays {
    let parts: Vec<&str> = line.split(';').collect();
    let numbers = |text: &str| -> Vec<f64> {
        let numbers = text.split(',');
        numbers
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let program = builtin_program(parts[0]).expect("a built-in program");
    ByWays {
        program: Arc::new(program),
        misses_per_ki: numbers(parts[1]),
        cpi: numbers(parts[2]),
    }
}

/// A core of that machine with so many ways of its last level, which holds other lines than the second level of 1 MB. The
/// latencies are those that Skylake servers usually have.
fn with_ways(ways: usize) -> Arc<MachineSpec> {
    let mut machine = builtin_machine("i5-2500").expect("it is built in");
    let core = &mut machine.core_types[0];
    (core.ghz, core.cpi_factor, core.l2_kb) = (2.0, 1.0, 1_024.0);
    machine.llc.mb = 2.5 * ways as f64 + 1.0;
    machine.llc.hit_ns = 25.0;
    machine.llc.inclusive = false;
    machine.memory.idle_latency_ns = 90.0;
    machine.memory.channels = 6;
    Arc::new(machine)
}

/// Misses per KI and cycles per instruction of a program alone.
fn simulated(machine: &Arc<MachineSpec>, program: &Arc<ProgramSpec>) -> (f64, f64) {
    let done = rates(machine, program, 1, Nanos::from_ms(2_000));
    let writes = program.memory.writes_per_ki / program.memory.reads_per_ki.max(1e-9);
    let reads = done.lines_per_ns / (1.0 + writes);
    (
        1_000.0 * reads / done.instructions_per_ns,
        machine.core_types[0].ghz / done.instructions_per_ns,
    )
}
