//! Which jobs are light, by Perf&Fair's rule (section 3): those that do not impact on the performance of their co-runners.
//!
//! The paper gives its thresholds, 19 accesses to the last-level cache and 3.5 reads from memory per microsecond, but not
//! how great an impact they stand for. Here a program is light if it slows others by at most 4 % for each other core that
//! runs it, and by at most a fifth when all do. The 4 % are a choice: they gave the paper's reads before hits of the cache had
//! a price in the simulation, and give five times as many now. It gives more accesses to the cache than the paper, too, since
//! the simulated cache serves any number of them: what hurts is only what they drive out.

use super::mixed;
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use cosched_core::{CpuId, Nanos};
use std::sync::Arc;

/// By how much one that runs a light program may slow another, in the mean.
const IMPACT_OF_ONE: f64 = 0.04;
/// By how much all together may.
const IMPACT_OF_ALL: f64 = 0.2;

/// How far a threshold lies beyond the heaviest light program, at most.
const MARGIN: f64 = 1.05;

/// The most that a light job asks for, per microsecond.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LightFit {
    /// Accesses to the last-level cache.
    pub llc_trans_per_us: f64,
    /// Reads from memory.
    pub mm_trans_per_us: f64,
}

/// What a program asks for alone, and whether it is light.
struct Judged {
    llc: f64,
    mm: f64,
    is_light: bool,
}

/// Finds the thresholds that tell as many light programs as possible from the others, and call none of the others light.
/// Each program is judged by what it does to all of them. `cores` holds a CPU of each core of a memory domain.
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
    let run = |jobs: &[(&Arc<ProgramSpec>, CpuId)]| mixed(machine, jobs, 1e18, length);
    let alone_on = |cpu| {
        programs
            .iter()
            .map(|program| run(&[(program, cpu)]))
            .collect::<Vec<_>>()
    };
    let (alone, there) = (alone_on(first), others.first().map(|&cpu| alone_on(cpu)));
    let most = 1.0 + (IMPACT_OF_ONE * others.len() as f64).min(IMPACT_OF_ALL);
    // What it asks for there: cores of another type ask for less.
    let judge = |(program, own): (&Arc<ProgramSpec>, &super::Together)| {
        let slowdown = |(probe, solo): (&Arc<ProgramSpec>, &super::Together)| {
            let beside = others.iter().map(|&cpu| (program, cpu));
            let jobs: Vec<_> = std::iter::once((probe, first)).chain(beside).collect();
            solo.tallies[0].instructions / run(&jobs).tallies[0].instructions
        };
        let sum: f64 = programs.iter().zip(&alone).map(slowdown).sum();
        let (tally, us) = (&own.tallies[0], own.time.as_us());
        Judged {
            llc: tally.llc / us,
            mm: tally.reads / us,
            is_light: sum <= most * programs.len() as f64,
        }
    };
    let there = there.as_ref().unwrap_or(&alone);
    thresholds(&programs.iter().zip(there).map(judge).collect::<Vec<_>>())
}

fn thresholds(programs: &[Judged]) -> LightFit {
    let light = || programs.iter().filter(|program| program.is_light);
    let mut best = (
        0,
        LightFit {
            llc_trans_per_us: 0.0,
            mm_trans_per_us: 0.0,
        },
    );
    for llc in light().map(|program| program.llc) {
        for mm in light().map(|program| program.mm) {
            let within = |program: &&Judged| program.llc <= llc && program.mm <= mm;
            let count = light().filter(within).count();
            let is_right = !programs
                .iter()
                .filter(within)
                .any(|program| !program.is_light);
            if is_right && count > best.0 {
                best = (
                    count,
                    LightFit {
                        llc_trans_per_us: llc,
                        mm_trans_per_us: mm,
                    },
                );
            }
        }
    }
    // Counters are noisy: the heaviest of the light ones must not lie on the border.
    let LightFit {
        llc_trans_per_us: llc,
        mm_trans_per_us: mm,
    } = best.1;
    let above = |border: f64, of: fn(&Judged) -> f64| {
        let next = programs
            .iter()
            .map(of)
            .filter(|&value| value > border)
            .fold(f64::INFINITY, f64::min);
        (border * MARGIN).min((border + next) / 2.0)
    };
    LightFit {
        llc_trans_per_us: above(llc, |program| program.llc),
        mm_trans_per_us: above(mm, |program| program.mm),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(llc: f64, mm: f64, is_light: bool) -> Judged {
        Judged { llc, mm, is_light }
    }

    #[test]
    fn most_light_programs_are_told_and_no_heavy_one_is_called_light() {
        // The light one that reads 9 would let in the heavy one at (30, 8), and the one at (60, 1) that at (50, 1).
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
