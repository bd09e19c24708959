//! `phases`: a chase and arithmetic in turns, to test whether estimators notice that a program has changed.

use super::arithmetic::{Generator, fold};
use super::compute::{self, iterate, start};
use super::contract::{WORK, Workload, WorkloadOutcome};
use super::measure::timed;
use super::memory::MemoryError;
use super::ring::{LINE_BYTES, rings, walk};
use crate::size::{count_within, size_within};
use serde_json::json;
use std::ops::Range;

/// Iterations of the arithmetic of `compute` in one unit of work, chosen to take about as long as a load from a
/// last-level cache, so that the phases take about equally long with the default working set.
const ITERATIONS_PER_UNIT: u64 = 16;

#[derive(clap::Args)]
pub struct Phases {
    /// Memory to walk over in the memory phases, one load per 64-byte line
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8M",
        value_parser = size_within(64..=1 << 50)
    )]
    working_set: u64,
    /// Units of work in a memory phase and the compute phase that follows it, half in each
    #[arg(
        long,
        value_name = "UNITS",
        default_value = "50M",
        value_parser = count_within(2..=*WORK.end())
    )]
    period: u64,
    /// Units of work to do: in a memory phase each is one load, in a compute phase 16 iterations of arithmetic
    #[arg(long, value_name = "UNITS", default_value = "150M", value_parser = count_within(WORK))]
    work: u64,
}

/// What a phase stresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Memory,
    Compute,
}

/// The phases of `work` units in order, each with its range of units; the last one may be cut short. A period starts
/// with its memory phase, which has the odd unit if there is one.
fn schedule(work: u64, period: u64) -> impl Iterator<Item = (Phase, Range<u64>)> {
    let memory = period.div_ceil(2);
    let mut start = 0;
    std::iter::from_fn(move || {
        let into = start % period;
        let (phase, left) = if into < memory {
            (Phase::Memory, memory - into)
        } else {
            (Phase::Compute, period - into)
        };
        let units = start..start + left.min(work - start);
        start = units.end;
        (!units.is_empty()).then_some((phase, units))
    })
}

impl Workload for Phases {
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        let (lines, setup) = timed(|| rings(self.working_set, 1, &mut Generator::new(seed)));
        let lines = lines?;
        let mut state = start(seed);
        let (mut at, mut checksum, mut count) = (0, seed, 0);
        let (mut memory_s, mut compute_s) = (0.0, 0.0);
        let ((), run) = timed(|| {
            for (phase, units) in schedule(self.work, self.period) {
                let length = units.end - units.start;
                let ((), spent) = timed(|| match phase {
                    Phase::Memory => (at, checksum) = walk(&lines, at, length, checksum),
                    Phase::Compute => state = iterate(state, length * ITERATIONS_PER_UNIT),
                });
                match phase {
                    Phase::Memory => memory_s += spent.elapsed_s,
                    Phase::Compute => compute_s += spent.elapsed_s,
                }
                count += 1;
            }
        });
        Ok(WorkloadOutcome {
            work: self.work,
            working_set_bytes: lines.len() as u64 * LINE_BYTES,
            checksum: fold(checksum, compute::checksum(state)),
            setup,
            run,
            details: vec![
                ("period", json!(self.period)),
                ("phases", json!(count)),
                ("memory_elapsed_s", json!(memory_s)),
                ("compute_elapsed_s", json!(compute_s)),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_alternate_at_the_stated_points() {
        use Phase::{Compute, Memory};
        let check = |work, period, expected: &[(Phase, Range<u64>)]| {
            assert_eq!(
                schedule(work, period).collect::<Vec<_>>(),
                expected,
                "work {work}, period {period}"
            );
        };
        check(
            10,
            4,
            &[
                (Memory, 0..2),
                (Compute, 2..4),
                (Memory, 4..6),
                (Compute, 6..8),
                (Memory, 8..10),
            ],
        );
        check(
            7,
            4,
            &[
                (Memory, 0..2),
                (Compute, 2..4),
                (Memory, 4..6),
                (Compute, 6..7),
            ],
        );
        check(
            10,
            5,
            &[
                (Memory, 0..3),
                (Compute, 3..5),
                (Memory, 5..8),
                (Compute, 8..10),
            ],
        );
        check(3, 2, &[(Memory, 0..1), (Compute, 1..2), (Memory, 2..3)]);
        check(2, 100, &[(Memory, 0..2)]);
    }

    #[test]
    fn the_schedule_covers_all_work_without_gap_or_overlap() {
        for work in 1..60 {
            for period in 2..20 {
                let mut next = 0;
                for (phase, units) in schedule(work, period) {
                    assert_eq!(units.start, next);
                    for unit in units.clone() {
                        let memory = unit % period < period.div_ceil(2);
                        assert_eq!(
                            phase == Phase::Memory,
                            memory,
                            "unit {unit} of period {period}"
                        );
                    }
                    next = units.end;
                }
                assert_eq!(next, work);
            }
        }
    }

    #[test]
    fn each_phase_goes_on_where_the_last_of_its_kind_stopped() {
        // 25 units with a period of 10: 5 + 5 + 5 of memory, 5 + 5 of compute.
        let outcome = Phases {
            working_set: 6400,
            period: 10,
            work: 25,
        }
        .run(2)
        .unwrap();
        let lines = rings(6400, 1, &mut Generator::new(2)).unwrap();
        let (_, checksum) = walk(&lines, 0, 15, 2);
        let state = iterate(start(2), 10 * ITERATIONS_PER_UNIT);
        assert_eq!(outcome.checksum, fold(checksum, compute::checksum(state)));
    }
}
