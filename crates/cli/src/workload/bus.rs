//! `bus`: cache misses and an idle loop, mixed so that misses take a wanted share of the time. It follows the synthetic
//! program of the EFS paper (section 3.2), which keeps the memory bus busy for a settable part of its time.
//!
//! # The mix
//! A step is a miss (or, with `--chains`, a burst of independent misses) and then an idle loop of n iterations. With a
//! miss of `miss_ns` and an iteration of `spin_ns`, the share of time in misses is
//!
//! ```text
//! share = miss_ns / (miss_ns + n spin_ns)        so        n = miss_ns (1 / share - 1) / spin_ns
//! ```
//!
//! Both costs are measured at the start, unless n is given. The idle loop starts from the loaded value, and the
//! next miss needs the end of the idle loop, so an out-of-order core can't hide one behind the other.

use super::arithmetic::{Generator, fold, spin};
use super::contract::{WORK, Workload, WorkloadOutcome};
use super::measure::timed;
use super::memory::MemoryError;
use super::ring::{LINE_BYTES, Line, rings};
use crate::size::{count_within, size_within};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;

/// The smallest share above 0: at a thousandth an idle loop is a thousand times as long as a miss.
const LEAST_SHARE: f64 = 0.001;

/// Steps timed as one batch in calibration: long beside a reading of the clock, short beside a time slice.
const BATCH_STEPS: u64 = 10_000;

/// Batches timed in calibration. The quickest counts: whatever disturbs a batch makes it slower, never quicker.
const BATCHES: u32 = 15;

/// Iterations of the idle loop timed as one batch in calibration.
const BATCH_SPINS: u64 = 100_000;

/// Numbers of chains to choose from. Each is compiled separately, so that the chains' positions stay in registers.
const CHAINS: [usize; 5] = [1, 2, 4, 8, 16];

#[derive(clap::Args)]
pub struct Bus {
    /// Share of the time to spend in misses, from 0.001 to 1; with 0 the steps idle for as long as a miss takes
    #[arg(long, default_value = "0.5", value_parser = parse_share)]
    share: f64,
    /// Iterations of the idle loop in each step, without calibration, so that runs beside others repeat exactly
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "share",
        value_parser = count_within(0..=1_000_000_000)
    )]
    idle_iterations: Option<u64>,
    /// Independent misses in each step; one alone leaves most of the bandwidth of a modern memory unused
    #[arg(long, value_name = "CHAINS", default_value = "1", value_parser = parse_chains)]
    chains: usize,
    /// Memory to miss in: at least four times the last-level cache
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256M",
        value_parser = size_within(64..=1 << 50)
    )]
    working_set: u64,
    /// Steps to do, each of one miss (or as many as there are chains) and an idle loop
    #[arg(long, value_name = "STEPS", default_value = "10M", value_parser = count_within(WORK))]
    work: u64,
}

/// The time of a miss and of an iteration of the idle loop.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Costs {
    /// Nanoseconds that the misses of a step take, alone.
    miss_ns: f64,
    /// Nanoseconds that an iteration of the idle loop takes.
    spin_ns: f64,
}

impl Costs {
    /// Iterations of the idle loop for a share of time in misses in (0, 1]. For 0: as many as take the time of the
    /// misses of a step.
    fn idle_iterations(self, share: f64) -> u64 {
        let idle_ns = if share == 0.0 {
            self.miss_ns
        } else {
            self.miss_ns * (1.0 / share - 1.0)
        };
        (idle_ns / self.spin_ns).round() as u64
    }

    /// The share of time in misses that this whole number of iterations in each step gives.
    fn share(self, idle_iterations: u64) -> f64 {
        self.miss_ns / (self.miss_ns + idle_iterations as f64 * self.spin_ns)
    }
}

impl Workload for Bus {
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        match self.chains {
            1 => self.run_chains::<1>(seed),
            2 => self.run_chains::<2>(seed),
            4 => self.run_chains::<4>(seed),
            8 => self.run_chains::<8>(seed),
            _ => self.run_chains::<16>(seed),
        }
    }
}

impl Bus {
    fn run_chains<const N: usize>(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        let (prepared, setup) = timed(|| self.prepare::<N>(seed));
        let (lines, costs, idle) = prepared?;
        let (checksum, run) = timed(|| steps::<N>(&lines, [0; N], self.work, idle, seed).1);
        let mut details = vec![
            ("chains", json!(N)),
            ("loads", json!(self.work.saturating_mul(N as u64))),
            ("idle_iterations", json!(idle)),
            ("ns_per_step", json!(run.elapsed_s / self.work as f64 * 1e9)),
        ];
        match costs {
            Some(costs) => details.extend([
                ("share_wanted", json!(self.share)),
                (
                    "share_calibrated",
                    json!(if self.share == 0.0 {
                        0.0
                    } else {
                        costs.share(idle)
                    }),
                ),
                ("miss_ns", json!(costs.miss_ns)),
                ("spin_ns", json!(costs.spin_ns)),
            ]),
            None => details.push(("calibration_absent", json!("--idle-iterations was given"))),
        }
        let working_set_bytes = lines.len() as u64 * LINE_BYTES;
        Ok(WorkloadOutcome {
            work: self.work,
            working_set_bytes,
            checksum,
            setup,
            run,
            details,
        })
    }

    /// The lines to walk over, the costs if they were measured, and the length of the idle loop.
    fn prepare<const N: usize>(
        &self,
        seed: u64,
    ) -> Result<(Vec<Line>, Option<Costs>, u64), MemoryError> {
        let mut generator = Generator::new(seed);
        let lines = rings(self.working_set, N, &mut generator)?;
        if let Some(idle) = self.idle_iterations {
            return Ok((lines, None, idle));
        }
        let costs = calibrate::<N>(&lines, &mut generator);
        let idle = costs.idle_iterations(self.share);
        // Without misses the walk stays on one line per chain: the same instructions, and nothing leaves the L1 cache.
        let lines = if self.share == 0.0 {
            rings(0, N, &mut generator)?
        } else {
            lines
        };
        Ok((lines, Some(costs), idle))
    }
}

fn parse_chains(text: &str) -> Result<usize, String> {
    let chains = text.parse().ok().filter(|chains| CHAINS.contains(chains));
    chains.ok_or_else(|| "must be 1, 2, 4, 8 or 16".into())
}

fn parse_share(text: &str) -> Result<f64, String> {
    let share = text.parse().map_err(|_| "expected a number such as 0.57")?;
    if share == 0.0 || (LEAST_SHARE..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err(format!("must be 0, or from {LEAST_SHARE} to 1"))
    }
}

/// Does `count` steps from the given positions on the chains' rings, counted from the start of each ring. Returns the
/// final positions, and a checksum of the lines visited, which does not depend on the length of the idle loop.
#[inline(never)]
fn steps<const N: usize>(
    lines: &[Line],
    offsets: [usize; N],
    count: u64,
    idle: u64,
    mut checksum: u64,
) -> ([usize; N], u64) {
    let length = lines.len() / N;
    let mut at: [usize; N] = std::array::from_fn(|chain| chain * length + offsets[chain] % length);
    // Always zero, but neither the compiler nor the core can know that: so the next loads wait for the end of the idle
    // loop.
    let zero = black_box(0_u64);
    for _ in 0..count {
        let mut loaded = 0;
        for place in &mut at {
            *place = lines[*place].next();
            loaded = fold(loaded, *place as u64);
        }
        checksum = fold(checksum, loaded);
        let tie = (spin(loaded, idle) & zero) as usize;
        for place in &mut at {
            *place += tie;
        }
    }
    (
        std::array::from_fn(|chain| at[chain] - chain * length),
        checksum,
    )
}

/// Measures both costs: the misses in the same steps as in the work but without an idle loop, and the idle loop alone.
/// Other processes may disturb the measurement.
fn calibrate<const N: usize>(lines: &[Line], generator: &mut Generator) -> Costs {
    // Starts elsewhere than the work, so that the work's first lines are not in the cache.
    let mut offsets = std::array::from_fn(|_| generator.below((lines.len() / N) as u64) as usize);
    let miss_ns = quickest_ns(BATCH_STEPS, || {
        (offsets, _) = black_box(steps::<N>(lines, offsets, BATCH_STEPS, 0, 0));
    });
    let spin_ns = quickest_ns(BATCH_SPINS, || {
        black_box(spin(black_box(1), black_box(BATCH_SPINS)));
    });
    Costs { miss_ns, spin_ns }
}

/// Nanoseconds that each of `count` repetitions takes in the quickest of some batches.
fn quickest_ns(count: u64, mut batch: impl FnMut()) -> f64 {
    let batch_ns = (0..BATCHES).map(|_| {
        let start = Instant::now();
        batch();
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    });
    batch_ns.fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COSTS: Costs = Costs {
        miss_ns: 120.0,
        spin_ns: 1.5,
    };

    #[test]
    fn the_idle_loop_leaves_the_asked_share_to_the_misses() {
        // By hand: for a share of 1/4 the idle loop takes three times a miss, 360 ns or 240 iterations of 1.5 ns.
        for (share, iterations) in [(1.0, 0), (0.5, 80), (0.25, 240), (0.001, 79_920), (0.0, 80)] {
            assert_eq!(COSTS.idle_iterations(share), iterations, "share {share}");
        }
        // Rounding to whole iterations moves the share by at most half an iteration's part of a step.
        for miss_ns in [9.0, 80.0, 400.0] {
            for spin_ns in [0.4, 1.3, 5.0] {
                let costs = Costs { miss_ns, spin_ns };
                for share in (1..=1000).map(|thousandths| f64::from(thousandths) / 1000.0) {
                    let got = costs.share(costs.idle_iterations(share));
                    let tolerance = share * share * 0.5 * spin_ns / miss_ns * 1.5 + 1e-12;
                    assert!(
                        (got - share).abs() <= tolerance,
                        "{costs:?}: {got} for {share}"
                    );
                }
            }
        }
    }

    #[test]
    fn more_idling_is_never_a_greater_share() {
        let shares: Vec<f64> = (0..500).map(|idle| COSTS.share(idle)).collect();
        assert_eq!(shares[0], 1.0);
        assert!(shares.is_sorted_by(|before, after| before > after));
    }

    #[test]
    fn shares_outside_their_range_are_refused() {
        for text in ["0", "0.0", "-0", "0.001", "0.57", "1", "1.0"] {
            assert!(parse_share(text).is_ok(), "{text}");
        }
        for text in ["-0.1", "0.0009", "1.0001", "inf", "NaN", "50%", ""] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    fn bus(share: f64, idle_iterations: Option<u64>, chains: usize) -> WorkloadOutcome {
        Bus {
            share,
            idle_iterations,
            chains,
            working_set: 16 * 64 * 50,
            work: 500,
        }
        .run(1)
        .unwrap()
    }

    #[test]
    fn what_is_visited_does_not_depend_on_calibration_or_idling() {
        for chains in CHAINS {
            let expected = bus(0.5, Some(0), chains).checksum;
            assert_eq!(bus(0.5, Some(777), chains).checksum, expected);
            assert_eq!(bus(0.5, None, chains).checksum, expected);
            assert_eq!(bus(1.0, None, chains).checksum, expected);
        }
    }

    #[test]
    fn each_step_loads_once_from_every_chain_and_walks_its_whole_ring() {
        let lines = rings(8 * 64 * 100, 8, &mut Generator::new(4)).unwrap();
        let start = [3, 1, 4, 1, 5, 9, 2, 6];
        assert_eq!(
            steps::<8>(&lines, start, 100, 2, 0).0,
            start,
            "a round of a hundred lines"
        );
        let (half, checksum) = steps::<8>(&lines, start, 50, 2, 0);
        assert_eq!(
            steps::<8>(&lines, half, 50, 3, checksum),
            steps::<8>(&lines, start, 100, 0, 0)
        );
    }

    #[test]
    fn without_a_share_it_stays_on_one_line_a_chain() {
        let outcome = bus(0.0, None, 4);
        assert_eq!(outcome.working_set_bytes, 4 * 64);
        // The same run without calibration.
        let same = Bus {
            share: 0.5,
            idle_iterations: Some(9),
            chains: 4,
            working_set: 64,
            work: 500,
        }
        .run(1)
        .unwrap();
        assert_eq!(
            (same.working_set_bytes, same.checksum),
            (outcome.working_set_bytes, outcome.checksum)
        );
    }

    #[test]
    fn a_missing_calibration_is_said_to_be_missing() {
        let keys = |outcome: WorkloadOutcome| {
            outcome
                .details
                .into_iter()
                .map(|(key, _)| key)
                .collect::<Vec<_>>()
        };
        let (with, without) = (keys(bus(0.5, None, 1)), keys(bus(0.5, Some(5), 1)));
        assert!(with.contains(&"miss_ns") && !with.contains(&"calibration_absent"));
        assert!(!without.contains(&"miss_ns") && without.contains(&"calibration_absent"));
    }
}
