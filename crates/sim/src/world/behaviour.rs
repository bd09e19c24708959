//! The behaviour of a program on a type of core: its profile in the units of the simulation.
//!
//! Cycles per instruction = core part + hits x penalty of a hit + misses x penalty of a miss. The shape of the misses
//! comes from one measurement (misses by cache size, prefetcher off), their level from another (lines read from memory,
//! prefetches included). The penalty of a miss grows with the latency by the profile's own fit. A hit of the last level
//! costs as much as a miss with its latency would. So a lost line costs the difference.

use super::reuse::ReuseAges;
use crate::machine::CoreTypeSpec;
use crate::program::{ProgramCache, ProgramPhase, ProgramSpec, Stall};
use cosched_core::PerDevice;

/// Lines of 64 bytes in a MB of 2^20 bytes.
pub(crate) const LINES_PER_MB: f64 = 16_384.0;

/// Size in KB of the first-level cache of the profiles.
const FIRST_LEVEL_KB: f64 = 32.0;

/// Misses per KI for an entry 0.0 of the profiles, which have one decimal: half the greatest rounding error.
const ROUNDED_AWAY: f64 = 0.025;

/// Maximum share of hits of the last level in the cycles in the core: a guard for odd files.
const MOST_ON_HITS: f64 = 0.8;

/// Least misses per instruction for which a fit gives the cost of a miss.
const LEAST_FITTED: f64 = 1e-9;

/// A program on a type of core. Counts are per instruction.
pub(crate) struct Behaviour {
    /// Cycles in the core, without any hit of the last level.
    pub cpi: f64,
    /// Accesses to the first-level cache.
    pub l1: f64,
    /// Accesses to the last-level cache, prefetches included: the lines read while it holds none.
    pub llc: f64,
    /// Cycles per hit of the last level.
    pub hit: f64,
    /// Lines of the second-level cache that it comes back to.
    pub private: f64,
    /// Lines written per line read.
    pub writes: f64,
    /// Cycles per miss.
    penalty: Penalty,
    /// (lines held, factor on the cycles per hit and miss); empty for 1 throughout.
    waits_by_size: Vec<(f64, f64)>,
    /// The greatest change of that factor per line held.
    steepest_waits: f64,
    /// (lines held, lines read per instruction), linear in between, constant before the first and after the last. Lines
    /// in the private caches count as held in the last level.
    reads: Vec<(f64, f64)>,
    /// The greatest change of `reads` per line held.
    pub steepest: f64,
    /// The age of the oldest line held.
    pub ages: ReuseAges,
    /// Its phases; never empty.
    pub phases: Vec<ProgramPhase>,
}

/// What the misses and hits of a program cost.
pub(crate) struct Waits {
    /// Cycles per instruction.
    pub stall: f64,
    /// Growth of these cycles per cycle of latency.
    pub growth: f64,
    /// Change of these cycles per line held.
    pub per_line: f64,
    /// The greatest such change, anywhere on the curve.
    pub most_per_line: f64,
    /// Cycles to read a line again that left the private caches, and their growth per cycle of latency.
    pub per_refetch: f64,
    pub growth_per_refetch: f64,
}

/// Cycles per miss by latency: a line through 0 up to a knee, and another line from there.
#[derive(Clone, Copy)]
pub(crate) struct Penalty {
    knee: f64,
    low: f64,
    fixed: f64,
    high: f64,
}

impl Penalty {
    /// Misses that cost nothing.
    const NONE: Penalty = Penalty {
        knee: f64::INFINITY,
        low: 0.0,
        fixed: 0.0,
        high: 0.0,
    };

    /// The cycles at a latency in cycles, and their slope.
    pub(crate) fn at(&self, latency: f64) -> (f64, f64) {
        if latency < self.knee {
            (self.low * latency, self.low)
        } else {
            (self.fixed + self.high * latency, self.high)
        }
    }

    /// With this many misses in flight.
    fn overlapped(mlp: f64) -> Penalty {
        Penalty {
            knee: f64::INFINITY,
            low: 1.0 / mlp,
            fixed: 0.0,
            high: 1.0 / mlp,
        }
    }

    fn of(program: &ProgramSpec) -> Penalty {
        match &program.memory.stall {
            Stall::Overlap { mlp } => Penalty::overlapped(*mlp),
            // How many overlap is a factor of its own.
            Stall::OverlapBySize { .. } => Penalty::overlapped(1.0),
            Stall::Fitted {
                cpi_fixed,
                cpi_per_100_cycles,
                from_cycles,
            } => {
                // The fit includes all misses of its measurement: they cause all cycles outside the core.
                let misses = program.memory.reads_per_ki / 1_000.0;
                if misses < LEAST_FITTED {
                    return Penalty::NONE;
                }
                let fixed = (cpi_fixed - program.core.cpi) / misses;
                let high = cpi_per_100_cycles / 100.0 / misses;
                Penalty::fitted(fixed, high, *from_cycles)
            }
        }
    }

    /// A line that was fitted from a latency on.
    fn fitted(fixed: f64, high: f64, from_cycles: f64) -> Penalty {
        let at_knee = fixed + high * from_cycles;
        if at_knee <= 0.0 {
            return Penalty::NONE;
        }
        Penalty {
            knee: from_cycles,
            low: at_knee / from_cycles,
            fixed,
            high,
        }
    }
}

/// Binary logarithm of a finite positive number, linear between powers of two: exact enough to interpolate between cache
/// sizes, and the same on every machine.
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

/// The inverse of [`log2`].
fn exp2(x: f64) -> f64 {
    let (mut rest, mut power) = (x, 1.0);
    while rest >= 1.0 {
        rest -= 1.0;
        power *= 2.0;
    }
    while rest < 0.0 {
        rest += 1.0;
        power *= 0.5;
    }
    power * (1.0 + rest)
}

/// Lines read from memory per instruction, prefetches included, by the MB of private and shared cache that hold the
/// program's lines. The first point is for a second level of this size alone.
fn lines_by_size(program: &ProgramSpec, l2_kb: f64) -> Vec<(f64, f64)> {
    let cache = &program.cache;
    // The last level was measured behind a second level with other lines. So the misses of that second level are those
    // with its size in all.
    let measured_l2_mb = cache.l2_kb / 1_024.0;
    let mut misses = vec![(measured_l2_mb, cache.llc_accesses_per_ki)];
    misses.extend(
        cache
            .llc_misses_per_ki
            .iter()
            .map(|&(mb, misses)| (mb + measured_l2_mb, misses)),
    );
    // The level is the same on every machine.
    let measured = interpolate(&misses, program.memory.at_mb).0;
    let l2_mb = l2_kb / 1_024.0;
    if l2_mb < measured_l2_mb {
        misses.insert(0, (l2_mb, behind(cache, l2_kb)));
    } else {
        let through = interpolate(&misses, l2_mb).0;
        misses.retain(|&(mb, _)| mb > l2_mb);
        misses.insert(0, (l2_mb, through));
    }
    // A larger cache never misses more. Where different measurements contradict this, the larger figure holds.
    for at in (1..misses.len()).rev() {
        misses[at - 1].1 = misses[at - 1].1.max(misses[at].1);
    }
    let is_known = measured > 0.05 && program.memory.reads_per_ki > 0.0;
    let level = if is_known {
        program.memory.reads_per_ki / measured
    } else {
        1.0
    };
    misses
        .into_iter()
        .map(|(mb, misses)| (mb, misses * level / 1_000.0))
        .collect()
}

/// Misses per KI of a second level between the two measured sizes, by a power law of the size (Hartstein et al., "Cache
/// miss behavior: is it sqrt(2)?", CF 2006).
fn behind(cache: &ProgramCache, l2_kb: f64) -> f64 {
    let (first, last) = (log2(FIRST_LEVEL_KB), log2(cache.l2_kb));
    if last <= first {
        return cache.l1_misses_per_ki.max(cache.llc_accesses_per_ki);
    }
    let part = ((log2(l2_kb) - first) / (last - first)).clamp(0.0, 1.0);
    let [above, below] =
        [cache.l1_misses_per_ki, cache.llc_accesses_per_ki].map(|misses| misses.max(ROUNDED_AWAY));
    let misses = exp2(log2(above) + (log2(below) - log2(above)) * part);
    // A program without misses has none here either.
    misses.min(cache.l1_misses_per_ki.max(cache.llc_accesses_per_ki))
}

/// Lines of the second-level cache that a program comes back to: the share of its accesses there that hit, and of these
/// lines a half, since on average half of a line's hits are over. The lines of the first level are few, and how many of
/// them are in use is not known.
fn private_lines(cache: &ProgramCache, l2_kb: f64) -> f64 {
    if cache.l1_misses_per_ki <= ROUNDED_AWAY {
        return 0.0;
    }
    let through = behind(cache, l2_kb) / cache.l1_misses_per_ki;
    0.5 * l2_kb / 1_024.0 * (1.0 - through).max(0.0) * LINES_PER_MB
}

impl Behaviour {
    /// The program on a core of this type, with this hit latency of the last-level cache in cycles.
    pub(crate) fn new(program: &ProgramSpec, core: &CoreTypeSpec, hit_cycles: f64) -> Behaviour {
        let reads = lines_by_size(program, core.l2_kb);
        let penalty = Penalty::of(program);
        let waits_by_size = waits_by_size(program);
        let mut hit = penalty.at(hit_cycles).0;
        let mut cpi = program.core.cpi;
        if let Some(measured) = program.core.hits {
            let all = lines_by_size(program, measured.l2_kb);
            let hits = all[0].1 - interpolate(&all, program.memory.at_mb).0;
            let on_hits = hits * penalty.at(measured.llc_cycles).0;
            // If the estimate is too high, hits cost less on every machine.
            let too_much = (on_hits / (MOST_ON_HITS * cpi)).max(1.0);
            hit /= too_much;
            cpi -= on_hits / too_much;
        }
        let llc = reads[0].1;
        let reads: Vec<(f64, f64)> = reads
            .into_iter()
            .map(|(mb, lines)| (mb * LINES_PER_MB, lines))
            .collect();
        let writes = if program.memory.reads_per_ki > 0.0 {
            program.memory.writes_per_ki / program.memory.reads_per_ki
        } else {
            0.0
        };
        let endless = ProgramPhase {
            instructions: f64::INFINITY,
            cpi: 1.0,
            memory: 1.0,
            then_sleep_ms: 0.0,
            then_mb: PerDevice::default(),
        };
        Behaviour {
            cpi: cpi * core.cpi_factor,
            l1: program.core.l1_accesses_per_ki / 1_000.0,
            llc,
            hit,
            private: private_lines(&program.cache, core.l2_kb),
            writes,
            penalty,
            steepest_waits: steepest(&waits_by_size),
            waits_by_size,
            steepest: steepest(&reads),
            ages: ReuseAges::of(&reads),
            reads,
            phases: if program.phases.is_empty() {
                vec![endless]
            } else {
                program.phases.clone()
            },
        }
    }

    /// What the hits and misses with `held` lines cost, at a latency in cycles. `memory` is a factor on both.
    pub(crate) fn waits(&self, held: f64, memory: f64, latency: f64) -> Waits {
        let (reads, reads_slope, _) = self.reads(held);
        let (factor, factor_slope) = match self.waits_by_size.is_empty() {
            true => (1.0, 0.0),
            false => {
                let (factor, slope, _) = interpolate(&self.waits_by_size, held);
                (factor, slope)
            }
        };
        let (miss, growth) = self.penalty.at(latency);
        let one_by_one = memory * (reads * miss + (self.llc - reads) * self.hit);
        let per_lost_line = memory * (miss - self.hit);
        Waits {
            stall: one_by_one * factor,
            growth: memory * reads * growth * factor,
            per_line: reads_slope * per_lost_line * factor + one_by_one * factor_slope,
            most_per_line: self.steepest * per_lost_line.abs() * factor
                + one_by_one * self.steepest_waits,
            per_refetch: miss * factor,
            growth_per_refetch: growth * factor,
        }
    }

    /// Lines read per instruction with `held` lines in the cache, the slope per line held, and the ends of the linear
    /// piece around `held`.
    pub(crate) fn reads(&self, held: f64) -> (f64, f64, (f64, f64)) {
        interpolate(&self.reads, held)
    }
}

/// The greatest slope of a curve.
fn steepest(points: &[(f64, f64)]) -> f64 {
    let slopes = points
        .windows(2)
        .map(|two| (two[1].1 - two[0].1) / (two[1].0 - two[0].0));
    slopes.map(f64::abs).fold(0.0, f64::max)
}

/// (lines held, share of a wait that a hit or miss costs), where that depends on the size.
fn waits_by_size(program: &ProgramSpec) -> Vec<(f64, f64)> {
    let Stall::OverlapBySize { mlp } = &program.memory.stall else {
        return Vec::new();
    };
    let l2_mb = program.cache.l2_kb / 1_024.0;
    let points = mlp
        .iter()
        .map(|&(mb, mlp)| ((mb + l2_mb) * LINES_PER_MB, 1.0 / mlp));
    points.collect()
}

/// Value, slope, and the ends of the linear piece at `x`; constant beyond the last point.
fn interpolate(points: &[(f64, f64)], x: f64) -> (f64, f64, (f64, f64)) {
    let above = points
        .iter()
        .position(|&(at, _)| at > x)
        .unwrap_or(points.len());
    match (
        above.checked_sub(1).map(|below| points[below]),
        points.get(above),
    ) {
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
    use crate::program::{MeasuredHits, ProgramCache, ProgramCore, ProgramMemory};

    fn core(l2_kb: f64) -> CoreTypeSpec {
        CoreTypeSpec {
            name: "core".to_owned(),
            cores_per_llc: 1,
            threads_per_core: 1,
            ghz: 1.0,
            turbo: Vec::new(),
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
            instructions: None,
            core: ProgramCore {
                cpi: 0.5,
                l1_accesses_per_ki: 410.0,
                hits: Some(MeasuredHits {
                    l2_kb: 256.0,
                    llc_cycles: 36.0,
                }),
            },
            cache: ProgramCache {
                l1_misses_per_ki: 123.2,
                l2_kb: 1_024.0,
                llc_accesses_per_ki: 75.8,
                llc_misses_per_ki: vec![(1.75, 59.0), (7.0, 33.9), (19.25, 27.7)],
            },
            memory: ProgramMemory {
                reads_per_ki: 59.8,
                writes_per_ki: 9.6,
                at_mb: 2.5,
                stall: Stall::Fitted {
                    cpi_fixed: -0.66,
                    cpi_per_100_cycles: 1.783,
                    from_cycles: 228.0,
                },
            },
            phases: Vec::new(),
        }
    }

    #[test]
    fn the_profile_comes_back_under_the_conditions_of_its_measurement() {
        // With the second level and the last level's latency of the measurement.
        let behaviour = Behaviour::new(&mcf(), &core(256.0), 36.0);
        let (reads, _, _) = behaviour.reads(2.5 * LINES_PER_MB);
        assert!((reads - 0.0598).abs() < 1e-12);
        for latency in [228.0, 300.0, 600.0] {
            let hits = (behaviour.llc - reads) * behaviour.hit;
            let cpi = behaviour.cpi + hits + reads * behaviour.penalty.at(latency).0;
            assert!(
                (cpi - (-0.66 + 1.783 * latency / 100.0)).abs() < 1e-9,
                "{latency}"
            );
        }
        // Below the fit the penalty falls linearly to 0, without a jump at the knee.
        let (below, above) = (
            behaviour.penalty.at(227.999).0,
            behaviour.penalty.at(228.0).0,
        );
        assert!((below - above).abs() < 0.01 && behaviour.penalty.at(0.0).0 == 0.0);
    }

    #[test]
    fn a_fit_without_misses_costs_nothing() {
        for reads_per_ki in [0.0, 5e-324, 1e-300] {
            let program = mcf();
            let memory = ProgramMemory {
                reads_per_ki,
                writes_per_ki: 0.0,
                ..program.memory
            };
            let behaviour = Behaviour::new(&ProgramSpec { memory, ..program }, &core(256.0), 36.0);
            assert_eq!(
                (behaviour.penalty.at(300.0), behaviour.hit, behaviour.cpi),
                ((0.0, 0.0), 0.0, 0.5)
            );
        }
    }

    #[test]
    fn a_smaller_second_level_lets_more_through() {
        let of = |program: &ProgramSpec, kb| Behaviour::new(program, &core(kb), 36.0).llc * 1_000.0;
        // At 2.5 MB in all, between 1 and 2.75 MB, the curve has 61.4 misses, and 59.8 were measured.
        let level = 59.8 / (75.8 + (59.0 - 75.8) * 1.5 / 1.75);
        // Behind 4 MB: between 2.75 and 8 MB in all.
        let behind_4_mb = 59.0 + (33.9 - 59.0) * 1.25 / 5.25;
        for (kb, misses) in [
            (4_096.0, behind_4_mb),
            (1_024.0, 75.8),
            (32.0, 123.2),
            (8.0, 123.2),
        ] {
            assert!((of(&mcf(), kb) / level - misses).abs() < 1e-9, "{kb}");
        }
        // 123.2 x (75.8 / 123.2)^(3/5)
        assert!((of(&mcf(), 256.0) / level / 92.05 - 1.0).abs() < 0.04);
        // An entry 0.0 of a table with one decimal counts as 0.025: 6.8 x (0.025 / 6.8)^(3/5)
        let rare = ProgramCache {
            l1_misses_per_ki: 6.8,
            l2_kb: 1_024.0,
            llc_accesses_per_ki: 0.0,
            llc_misses_per_ki: vec![(1.75, 0.0)],
        };
        let rare = ProgramSpec {
            cache: rare,
            ..mcf()
        };
        assert!(
            (of(&rare, 256.0) / 0.2357 - 1.0).abs() < 0.1,
            "{}",
            of(&rare, 256.0)
        );
    }

    #[test]
    fn hits_take_no_more_than_most_of_the_time_in_the_core() {
        let mut program = mcf();
        program.core.cpi = 0.2;
        let behaviour = Behaviour::new(&program, &core(256.0), 36.0);
        let (reads, _, _) = behaviour.reads(2.5 * LINES_PER_MB);
        assert!((behaviour.cpi - 0.04).abs() < 1e-12);
        assert!((behaviour.cpi + (behaviour.llc - reads) * behaviour.hit - 0.2).abs() < 1e-12);
        // A program without hits in its cycles pays for all.
        program.core.hits = None;
        let behaviour = Behaviour::new(&program, &core(256.0), 36.0);
        assert_eq!(
            (behaviour.cpi, behaviour.hit),
            (0.2, behaviour.penalty.at(36.0).0)
        );
    }

    #[test]
    fn logarithms_of_powers_of_two_are_exact() {
        assert_eq!(
            [0.25, 1.0, 32.0, 256.0, 1_024.0].map(log2),
            [-2.0, 0.0, 5.0, 8.0, 10.0]
        );
        assert_eq!(log2(768.0), 9.5);
    }
}
