//! `chase`: dependent loads in random order over a working set.

use super::arithmetic::Generator;
use super::contract::{WORK, Workload, WorkloadOutcome};
use super::measure::timed;
use super::memory::MemoryError;
use super::ring::{LINE_BYTES, rings, walk};
use crate::size::{count_within, size_within};
use serde_json::json;

#[derive(clap::Args)]
pub struct Chase {
    /// Memory to walk over, one load per 64-byte line
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8M",
        value_parser = size_within(64..=1 << 50)
    )]
    working_set: u64,
    /// Loads to do, each of which needs the one before
    #[arg(long, value_name = "LOADS", default_value = "150M", value_parser = count_within(WORK))]
    work: u64,
}

impl Workload for Chase {
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        let (lines, setup) = timed(|| rings(self.working_set, 1, &mut Generator::new(seed)));
        let lines = lines?;
        let ((_, checksum), run) = timed(|| walk(&lines, 0, self.work, seed));
        let per_load = run.elapsed_s / self.work as f64 * 1e9;
        Ok(WorkloadOutcome {
            work: self.work,
            working_set_bytes: lines.len() as u64 * LINE_BYTES,
            checksum,
            setup,
            run,
            details: vec![("ns_per_load", json!(per_load))],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_is_rounded_down_to_whole_lines() {
        for (asked, got) in [(64, 64), (100, 64), (128, 128), (8191, 8128)] {
            let outcome = Chase {
                working_set: asked,
                work: 10,
            }
            .run(1)
            .unwrap();
            assert_eq!(outcome.working_set_bytes, got);
        }
    }

    #[test]
    fn the_checksum_is_that_of_the_lines_in_the_order_of_the_walk() {
        let lines = rings(1000 * 64, 1, &mut Generator::new(3)).unwrap();
        let (mut at, mut expected) = (0, 3_u64);
        for _ in 0..2500 {
            at = lines[at].next();
            expected = expected.rotate_left(5) ^ at as u64;
        }
        assert_eq!(
            Chase {
                working_set: 1000 * 64,
                work: 2500
            }
            .run(3)
            .unwrap()
            .checksum,
            expected
        );
    }
}
