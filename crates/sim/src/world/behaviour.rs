//! What a program does on a core of a certain type: its profile, converted into the figures that the world computes
//! with.
//!
//! Cycles per instruction = core part + misses x penalty. The shape of the misses comes from one measurement (misses by
//! cache size, prefetcher off), their level from another (lines read from memory, prefetches included). The penalty of
//! a miss grows with the latency as the profile's own fit says.

use crate::machine::CoreTypeSpec;
use crate::program::{Phase, ProgramSpec, Stall};

/// Lines of 64 bytes in a MB of 2^20 bytes.
pub(crate) const LINES_PER_MB: f64 = 16_384.0;

/// Size in MB of the second-level cache behind which the profiles' last-level cache was measured.
const MEASURED_L2_MB: f64 = 1.0;

/// With fewer misses per instruction than this a fit does not tell what one of them costs.
const LEAST_FITTED: f64 = 1e-9;

/// A program on a type of core. Counts are per instruction.
#[derive(Clone, Debug)]
pub(crate) struct Behaviour {
    /// Cycles in the core.
    pub(crate) cpi: f64,
    /// Accesses to the first-level cache.
    pub(crate) l1: f64,
    /// Accesses to the last-level cache.
    pub(crate) llc: f64,
    /// Lines written for each line read.
    pub(crate) writes: f64,
    /// Cycles that a miss costs.
    pub(crate) penalty: Penalty,
    /// (lines held, lines read per instruction), linear in between, constant before the first and after the last. Lines
    /// in the private caches count as held in the last level.
    reads: Vec<(f64, f64)>,
    /// Its phases; never empty.
    pub(crate) phases: Vec<Phase>,
}

/// Cycles that a miss costs by latency: a line through 0 up to a knee, and another line from there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Penalty {
    knee: f64,
    low: f64,
    fixed: f64,
    high: f64,
}

impl Penalty {
    /// The cycles at a latency in cycles, and their slope.
    pub(crate) fn at(&self, latency: f64) -> (f64, f64) {
        if latency < self.knee { (self.low * latency, self.low) } else { (self.fixed + self.high * latency, self.high) }
    }

    fn of(program: &ProgramSpec) -> Penalty {
        match program.memory.stall {
            Stall::Overlap { mlp } => Penalty { knee: f64::INFINITY, low: 1.0 / mlp, fixed: 0.0, high: 1.0 / mlp },
            Stall::Fitted { cpi_fixed, cpi_per_100_cycles, from_cycles } => {
                // The fit holds for all the misses that it was made with: they cause all cycles outside the core.
                let misses = program.memory.reads_per_ki / 1_000.0;
                if misses < LEAST_FITTED {
                    return Penalty { knee: f64::INFINITY, low: 0.0, fixed: 0.0, high: 0.0 };
                }
                let fixed = (cpi_fixed - program.core.cpi) / misses;
                let high = cpi_per_100_cycles / 100.0 / misses;
                let at_knee = fixed + high * from_cycles;
                if at_knee <= 0.0 {
                    return Penalty { knee: f64::INFINITY, low: 0.0, fixed: 0.0, high: 0.0 };
                }
                Penalty { knee: from_cycles, low: at_knee / from_cycles, fixed, high }
            }
        }
    }
}

/// Binary logarithm, linear between powers of two: exact enough to interpolate between cache sizes, and the same on
/// every machine.
fn log2(x: f64) -> f64 {
    let (mut rest, mut whole) = (x, 0.0);
    while rest >= 2.0 {
        rest *= 0.5;
        whole += 1.0;
    }
    while rest > 0.0 && rest < 1.0 {
        rest *= 2.0;
        whole -= 1.0;
    }
    whole + rest - 1.0
}

impl Behaviour {
    pub(crate) fn new(program: &ProgramSpec, core: &CoreTypeSpec) -> Behaviour {
        let cache = &program.cache;
        // Misses of all private and shared cache together, by size in MB. The last level was measured behind a second
        // level of 1 MB that holds other lines than it. So the misses of that second level are those with 1 MB in all.
        let mut misses = vec![(MEASURED_L2_MB, cache.llc_accesses_per_ki)];
        misses.extend(cache.llc_misses_per_ki.iter().map(|&(mb, misses)| (mb + MEASURED_L2_MB, misses)));
        // The misses of a smaller second level lie between these and the misses of the first level, linear in the
        // doublings.
        let first_level = 32.0;
        let doublings = log2(MEASURED_L2_MB * 1_024.0) - log2(first_level);
        let part = ((log2(core.l2_kb) - log2(first_level)) / doublings).clamp(0.0, 1.0);
        let behind_l2 = cache.l1_misses_per_ki + (cache.llc_accesses_per_ki - cache.l1_misses_per_ki) * part;
        if core.l2_kb / 1_024.0 < MEASURED_L2_MB {
            misses.insert(0, (core.l2_kb / 1_024.0, behind_l2));
        }
        // A larger cache never misses more. Where different measurements contradict this, the larger figure holds.
        for at in (1..misses.len()).rev() {
            misses[at - 1].1 = misses[at - 1].1.max(misses[at].1);
        }
        let llc = misses[0].1;
        let measured = interpolate(&misses, program.memory.at_mb).0;
        let level = if measured > 0.05 && program.memory.reads_per_ki > 0.0 {
            program.memory.reads_per_ki / measured
        } else {
            1.0
        };
        let reads = misses.into_iter().map(|(mb, misses)| (mb * LINES_PER_MB, misses * level / 1_000.0));
        let writes = if program.memory.reads_per_ki > 0.0 {
            program.memory.writes_per_ki / program.memory.reads_per_ki
        } else {
            0.0
        };
        let endless = Phase { instructions: f64::INFINITY, cpi: 1.0, memory: 1.0, then_sleep_ms: 0.0 };
        Behaviour {
            cpi: program.core.cpi * core.cpi_factor,
            l1: program.core.l1_accesses_per_ki / 1_000.0,
            llc: llc / 1_000.0,
            writes,
            penalty: Penalty::of(program),
            reads: reads.collect(),
            phases: if program.phases.is_empty() { vec![endless] } else { program.phases.clone() },
        }
    }

    /// Lines read per instruction while `held` lines are in the cache, the slope per line held, and the ends of the
    /// straight piece that `held` lies on.
    pub(crate) fn reads(&self, held: f64) -> (f64, f64, (f64, f64)) {
        interpolate(&self.reads, held)
    }
}

/// Value, slope, and the ends of the straight piece at `x`; constant beyond the last point.
fn interpolate(points: &[(f64, f64)], x: f64) -> (f64, f64, (f64, f64)) {
    let above = points.iter().position(|&(at, _)| at > x).unwrap_or(points.len());
    match (above.checked_sub(1).map(|below| points[below]), points.get(above)) {
        (Some((x0, y0)), Some(&(x1, y1))) => {
            let slope = (y1 - y0) / (x1 - x0);
            (y0 + slope * (x - x0), slope, (x0, x1))
        }
        (Some((x0, y0)), None) => (y0, 0.0, (x0, f64::INFINITY)),
        (None, Some(&(x1, y1))) => (y1, 0.0, (f64::NEG_INFINITY, x1)),
        (None, None) => (0.0, 0.0, (f64::NEG_INFINITY, f64::INFINITY)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{ProgramCache, ProgramCore, ProgramMemory};

    fn core(l2_kb: f64) -> CoreTypeSpec {
        CoreTypeSpec {
            name: "core".to_owned(),
            cores_per_llc: 1,
            threads_per_core: 1,
            ghz: 1.0,
            capacity: None,
            cpi_factor: 1.0,
            l1_ports: 1.0,
            l2_kb,
            idle_w: 0.0,
            active_w: 0.0,
            nj_per_instruction: 0.0,
        }
    }

    fn mcf() -> ProgramSpec {
        ProgramSpec {
            name: "mcf".to_owned(),
            title: String::new(),
            core: ProgramCore { cpi: 0.5, l1_accesses_per_ki: 410.0 },
            cache: ProgramCache {
                l1_misses_per_ki: 123.2,
                llc_accesses_per_ki: 75.8,
                llc_misses_per_ki: vec![(1.75, 59.0), (7.0, 33.9), (19.25, 27.7)],
            },
            memory: ProgramMemory {
                reads_per_ki: 59.8,
                writes_per_ki: 9.6,
                at_mb: 2.5,
                stall: Stall::Fitted { cpi_fixed: -0.66, cpi_per_100_cycles: 1.783, from_cycles: 228.0 },
            },
            phases: Vec::new(),
            sources: Vec::new(),
        }
    }

    #[test]
    fn the_profile_comes_back_under_the_conditions_of_its_measurement() {
        let behaviour = Behaviour::new(&mcf(), &core(1_024.0));
        let (reads, _, _) = behaviour.reads(2.5 * LINES_PER_MB);
        assert!((reads - 0.0598).abs() < 1e-12);
        for latency in [228.0, 300.0, 600.0] {
            let cpi = behaviour.cpi + reads * behaviour.penalty.at(latency).0;
            assert!((cpi - (-0.66 + 1.783 * latency / 100.0)).abs() < 1e-9, "{latency}");
        }
        // Below the fit the penalty falls in a line to 0, without a jump at the knee.
        let (below, above) = (behaviour.penalty.at(227.999).0, behaviour.penalty.at(228.0).0);
        assert!((below - above).abs() < 0.01 && behaviour.penalty.at(0.0).0 == 0.0);
    }

    #[test]
    fn a_fit_without_misses_costs_nothing() {
        for reads_per_ki in [0.0, 5e-324, 1e-300] {
            let program = mcf();
            let memory = ProgramMemory { reads_per_ki, writes_per_ki: 0.0, ..program.memory };
            let behaviour = Behaviour::new(&ProgramSpec { memory, ..program }, &core(256.0));
            assert_eq!(behaviour.penalty.at(300.0), (0.0, 0.0));
        }
    }

    #[test]
    fn a_smaller_second_level_lets_more_through() {
        let llc = |kb| Behaviour::new(&mcf(), &core(kb)).llc * 1_000.0;
        assert!((llc(1_024.0) - 75.8).abs() < 1e-9);
        assert!((llc(256.0) - (123.2 * 0.4 + 75.8 * 0.6)).abs() < 1e-9);
        assert!((llc(32.0) - 123.2).abs() < 1e-9);
    }

    #[test]
    fn logarithms_of_powers_of_two_are_exact() {
        assert_eq!([0.25, 1.0, 32.0, 256.0, 1_024.0].map(log2), [-2.0, 0.0, 5.0, 8.0, 10.0]);
        assert_eq!(log2(768.0), 9.5);
    }
}
