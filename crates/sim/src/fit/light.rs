//! Finds the light jobs by Perf&Fair's rule (section 3): those that do not slow their co-runners.
//!
//! The paper gives its thresholds, 19 accesses to the last-level cache and 3.5 reads from memory per microsecond, but
//! not the slowdown behind them. Here a program is light if it slows others by at most 4 % per other core that runs it,
//! and by at most a fifth when all do. The 4 % are a choice: they gave the paper's reads before cache hits had a cost
//! in the simulation, and give five times as many now. They allow more cache accesses than the paper, too, since the
//! simulated cache serves any number of them: only the lines they evict do harm.

use super::{Together, mixed};
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use cosched_core::{CpuId, Nanos};
use std::sync::Arc;

/// Maximum mean slowdown of another program by one core with a light program, minus 1.
const IMPACT_OF_ONE: f64 = 0.04;
/// The same for all other cores together.
const IMPACT_OF_ALL: f64 = 0.2;

/// Maximum ratio of a threshold to the heaviest light program.
const MARGIN: f64 = 1.05;

/// Maximum demand of a light job, per microsecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LightFit {
    /// Accesses to the last-level cache.
    pub llc_trans_per_us: f64,
    /// Reads from memory.
    pub mm_trans_per_us: f64,
}

/// Solo demand of a program, and whether it is light.
struct Judged {
    llc: f64,
    mm: f64,
    is_light: bool,
}

impl Judged {
    fn is_within(&self, llc: f64, mm: f64) -> bool {
        self.llc <= llc && self.mm <= mm
    }
}

/// Finds the thresholds that include as many light programs as possible and no other. Each program is judged by its
/// impact on all of them. `cores` has a CPU of each core of a memory domain.
pub(super) fn fit(
    machine: &Arc<MachineSpec>,
    programs: &[Arc<ProgramSpec>],
    cores: &[CpuId],
    length: Nanos,
) -> LightFit {
    let Some((&first, others)) = cores.split_first() else {
        return LightFit {
            llc_trans_per_us: 0.0,
            mm_trans_per_us: 0.0,
        };
    };
    let bench = Bench {
        machine,
        programs,
        first,
        others,
        length,
    };
    let alone = bench.alone_on(first);
    // The demand on those cores: cores of another type have less.
    let there = others.first().map(|&cpu| bench.alone_on(cpu));
    let there = there.as_ref().unwrap_or(&alone);
    let programs = programs.iter().zip(there);
    let judged: Vec<Judged> = programs
        .map(|(program, own)| bench.judge(program, own, &alone))
        .collect();
    thresholds(&judged)
}

/// The cores to measure co-runners on: a probe on the first, a program on all others.
struct Bench<'a> {
    machine: &'a Arc<MachineSpec>,
    programs: &'a [Arc<ProgramSpec>],
    first: CpuId,
    others: &'a [CpuId],
    length: Nanos,
}

impl Bench<'_> {
    fn run(&self, jobs: &[(&Arc<ProgramSpec>, CpuId)]) -> Together {
        mixed(self.machine, jobs, 1e18, self.length)
    }

    /// Runs each program alone on a CPU.
    fn alone_on(&self, cpu: CpuId) -> Vec<Together> {
        let programs = self.programs.iter();
        programs
            .map(|program| self.run(&[(program, cpu)]))
            .collect()
    }

    /// Judges a program by its solo run, and its mean impact on all programs.
    fn judge(&self, program: &Arc<ProgramSpec>, own: &Together, alone: &[Together]) -> Judged {
        let most = 1.0 + (IMPACT_OF_ONE * self.others.len() as f64).min(IMPACT_OF_ALL);
        let probes = self.programs.iter().zip(alone);
        let slowdowns: f64 = probes
            .map(|(probe, solo)| self.slowdown(probe, solo, program))
            .sum();
        let (tally, us) = (&own.tallies[0], own.time.as_us());
        Judged {
            llc: tally.llc / us,
            mm: tally.reads / us,
            is_light: slowdowns <= most * self.programs.len() as f64,
        }
    }

    /// Slowdown of a probe beside a program on all other cores.
    fn slowdown(
        &self,
        probe: &Arc<ProgramSpec>,
        solo: &Together,
        program: &Arc<ProgramSpec>,
    ) -> f64 {
        let beside = self.others.iter().map(|&cpu| (program, cpu));
        let jobs: Vec<_> = std::iter::once((probe, self.first)).chain(beside).collect();
        solo.tallies[0].instructions / self.run(&jobs).tallies[0].instructions
    }
}

fn thresholds(programs: &[Judged]) -> LightFit {
    let light: Vec<&Judged> = programs.iter().filter(|program| program.is_light).collect();
    let mut best = (0, 0.0, 0.0);
    for llc in light.iter().map(|program| program.llc) {
        for mm in light.iter().map(|program| program.mm) {
            let within = programs.iter().filter(|program| program.is_within(llc, mm));
            let (light, heavy): (Vec<&Judged>, Vec<&Judged>) =
                within.partition(|program| program.is_light);
            if heavy.is_empty() && light.len() > best.0 {
                best = (light.len(), llc, mm);
            }
        }
    }
    let (_, llc, mm) = best;
    LightFit {
        llc_trans_per_us: beyond(llc, programs.iter().map(|program| program.llc)),
        mm_trans_per_us: beyond(mm, programs.iter().map(|program| program.mm)),
    }
}

/// A threshold a little beyond the heaviest light program. Counters are noisy, so that program must not lie on the
/// border.
fn beyond(border: f64, values: impl Iterator<Item = f64>) -> f64 {
    let next = values
        .filter(|&value| value > border)
        .fold(f64::INFINITY, f64::min);
    (border * MARGIN).min((border + next) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(llc: f64, mm: f64, is_light: bool) -> Judged {
        Judged { llc, mm, is_light }
    }

    #[test]
    fn most_light_programs_are_told_and_no_heavy_one_is_called_light() {
        // The light program that reads 9 would include the heavy one at (30, 8), and the one at (60, 1) that at (50,
        // 1).
        let programs = [
            program(10.0, 1.0, true),
            program(20.0, 3.0, true),
            program(40.0, 2.0, true),
            program(35.0, 9.0, true),
            program(60.0, 1.0, true),
            program(30.0, 8.0, false),
            program(50.0, 1.0, false),
        ];
        assert_eq!(
            thresholds(&programs),
            LightFit {
                llc_trans_per_us: 42.0,
                mm_trans_per_us: 3.0 * 1.05
            }
        );
    }

    #[test]
    fn where_all_are_heavy_nothing_is_light() {
        let none = LightFit {
            llc_trans_per_us: 0.0,
            mm_trans_per_us: 0.0,
        };
        assert_eq!(thresholds(&[program(5.0, 1.0, false)]), none);
        assert_eq!(thresholds(&[]), none);
    }
}
