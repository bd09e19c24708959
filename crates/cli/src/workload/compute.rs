//! `compute`: integer arithmetic in registers.
//!
//! An iteration is one round of SipHash (Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012): 14
//! additions, rotations and exclusive ors on four words. It suits because:
//! - two of its words can always be worked on at once, so it keeps a core busier than one dependent chain would, and
//!   slows down a sibling on the same core;
//! - its rotations are by different distances, so vector instructions gain nothing. Several equal chains side by side
//!   would not do: the compiler packs them into vectors, well or badly, so the work would depend on the compiler;
//! - it is a permutation of the 256-bit state, so it can't collapse into a few states, and there is no short cut to its
//!   n-th power.

use super::arithmetic::{Generator, fold};
use super::contract::{WORK, Workload, WorkloadOutcome};
use super::measure::timed;
use super::memory::MemoryError;
use crate::size::count_within;
use serde_json::json;

#[derive(clap::Args)]
pub struct Compute {
    /// Iterations to do, each of 14 additions, rotations and exclusive ors
    #[arg(
        long,
        value_name = "ITERATIONS",
        default_value = "2500M",
        value_parser = count_within(WORK)
    )]
    work: u64,
}

/// The four words that the arithmetic works on.
pub type State = [u64; 4];

impl Workload for Compute {
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        let (start, setup) = timed(|| start(seed));
        let (state, run) = timed(|| iterate(start, self.work));
        Ok(WorkloadOutcome {
            work: self.work,
            working_set_bytes: 0,
            checksum: checksum(state),
            setup,
            run,
            details: vec![(
                "ns_per_iteration",
                json!(run.elapsed_s / self.work as f64 * 1e9),
            )],
        })
    }
}

/// The initial state of the arithmetic.
pub fn start(seed: u64) -> State {
    let mut generator = Generator::new(seed);
    std::array::from_fn(|_| generator.next())
}

/// Does `count` rounds.
#[inline(never)]
pub fn iterate([mut a, mut b, mut c, mut d]: State, count: u64) -> State {
    for _ in 0..count {
        a = a.wrapping_add(b);
        c = c.wrapping_add(d);
        b = b.rotate_left(13) ^ a;
        d = d.rotate_left(16) ^ c;
        a = a.rotate_left(32).wrapping_add(d);
        c = c.wrapping_add(b);
        b = b.rotate_left(17) ^ c;
        d = d.rotate_left(21) ^ a;
        c = c.rotate_left(32);
    }
    [a, b, c, d]
}

/// A checksum that depends on all four words.
pub fn checksum(state: State) -> u64 {
    state.into_iter().fold(0, fold)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rounds_are_those_of_siphash() {
        // SipHash-2-4 of the 15 bytes 00 01 .. 0e under the key 00 01 .. 0f: the worked example of the paper's appendix.
        let (k0, k1) = (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let constants = [
            0x736f_6d65_7073_6575,
            0x646f_7261_6e64_6f6d,
            0x6c79_6765_6e65_7261,
            0x7465_6462_7974_6573,
        ];
        let mut state: State = std::array::from_fn(|i| constants[i] ^ [k0, k1][i % 2]);
        for word in [0x0706_0504_0302_0100_u64, 0x0f0e_0d0c_0b0a_0908] {
            state[3] ^= word;
            state = iterate(state, 2);
            state[0] ^= word;
        }
        state[2] ^= 0xff;
        state = iterate(state, 4);
        assert_eq!(
            state.into_iter().fold(0, |x, word| x ^ word),
            0xa129_ca61_49be_45e5
        );
    }

    #[test]
    fn rounds_may_be_cut_anywhere() {
        for (first, second) in [(0, 0), (0, 5), (1, 0), (400, 601)] {
            assert_eq!(
                iterate(iterate(start(9), first), second),
                iterate(start(9), first + second)
            );
        }
    }

    #[test]
    fn each_round_can_be_taken_back() {
        // Exactly 1,000 rounds were done if undoing 1,000, by the inverse of each operation, leads to the start.
        let [mut a, mut b, mut c, mut d] = iterate(start(5), 1000);
        for _ in 0..1000 {
            c = c.rotate_right(32);
            d = (d ^ a).rotate_right(21);
            b = (b ^ c).rotate_right(17);
            c = c.wrapping_sub(b);
            a = a.wrapping_sub(d).rotate_right(32);
            d = (d ^ c).rotate_right(16);
            b = (b ^ a).rotate_right(13);
            c = c.wrapping_sub(d);
            a = a.wrapping_sub(b);
        }
        assert_eq!([a, b, c, d], start(5));
    }
}
