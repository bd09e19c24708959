//! `stream`: sequential passes over a working set.
//!
//! The result of each pass changes the data that the next pass reads, so no pass can be left out. Elements are
//! 64-bit integers with wrapping arithmetic, whose sums don't depend on the order in which the compiler adds them.

use super::arithmetic::{Generator, fold};
use super::contract::{WORK, Workload, WorkloadOutcome};
use super::measure::timed;
use super::memory::{MemoryError, check, filled};
use crate::size::{count_within, size_within};
use serde_json::json;
use std::hint::black_box;
use std::mem::swap;

const ELEMENT_BYTES: u64 = size_of::<u64>() as u64;

/// The factor of the triad. With 3 the product is a shift and an addition, which vectorise everywhere.
const FACTOR: u64 = 3;

#[derive(clap::Args)]
pub struct Stream {
    /// What a pass does with the arrays that share the working set
    #[arg(long, value_enum, default_value = "triad")]
    op: Operation,
    /// Size of all arrays together
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "256M",
        value_parser = size_within(64..=1 << 50)
    )]
    working_set: u64,
    /// Passes over the whole working set
    #[arg(long, value_name = "PASSES", default_value = "300", value_parser = count_within(WORK))]
    work: u64,
}

/// The operation of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Operation {
    /// Sums one array: reads only
    Read,
    /// `b[i] = a[i] + 1`: as many reads as writes; the arrays change places after each pass
    Copy,
    /// `a[i] = b[i] + 3 c[i]`: two reads for each write; the arrays change places after each pass
    Triad,
}

impl Operation {
    /// Arrays read and arrays written by a pass.
    const fn arrays(self) -> (u64, u64) {
        match self {
            Self::Read => (1, 0),
            Self::Copy => (1, 1),
            Self::Triad => (2, 1),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Copy => "copy",
            Self::Triad => "triad",
        }
    }
}

impl Stream {
    /// Bytes that all passes move through some of the arrays.
    fn bytes(&self, arrays: u64, length: u64) -> u128 {
        u128::from(arrays * length * ELEMENT_BYTES) * u128::from(self.work)
    }
}

impl Workload for Stream {
    fn run(&self, seed: u64) -> Result<WorkloadOutcome, MemoryError> {
        let (read, written) = self.op.arrays();
        let length = self.working_set / ((read + written) * ELEMENT_BYTES);
        let (arrays, setup) = timed(|| fill(self.op, length, seed));
        let mut arrays = arrays?;
        let (sums, run) = timed(|| passes(self.op, &mut arrays, self.work));
        let bytes_read = self.bytes(read, length);
        let bytes_written = self.bytes(written, length);
        Ok(WorkloadOutcome {
            work: self.work,
            working_set_bytes: (read + written) * length * ELEMENT_BYTES,
            checksum: arrays
                .iter()
                .flatten()
                .fold(sums, |checksum, element| fold(checksum, *element)),
            setup,
            run,
            details: vec![
                ("op", json!(self.op.name())),
                ("bytes_read", json!(bytes_read as u64)),
                ("bytes_written", json!(bytes_written as u64)),
                ("read_bytes_per_s", json!(bytes_read as f64 / run.elapsed_s)),
                (
                    "written_bytes_per_s",
                    json!(bytes_written as f64 / run.elapsed_s),
                ),
            ],
        })
    }
}

/// The arrays of an operation, of `length` elements each; those it doesn't use are empty.
fn fill(op: Operation, length: u64, seed: u64) -> Result<[Vec<u64>; 3], MemoryError> {
    let (read, written) = op.arrays();
    check((read + written) * length * ELEMENT_BYTES)?;
    let mut generator = Generator::new(seed);
    let mut arrays = [const { Vec::new() }; 3];
    for array in arrays.iter_mut().take((read + written) as usize) {
        *array = filled(length as usize, |_| generator.next())?;
    }
    Ok(arrays)
}

/// Does `count` passes. Returns a checksum of the sums of a `read`, and 0 for the operations whose result is in the
/// arrays: these are added to the checksum after the clock has stopped.
#[inline(never)]
fn passes(op: Operation, [a, b, c]: &mut [Vec<u64>; 3], count: u64) -> u64 {
    let mut sums = 0;
    for _ in 0..count {
        match op {
            Operation::Read => sums = fold(sums, read(a)),
            Operation::Copy => {
                copy(b, a);
                swap(a, b);
            }
            Operation::Triad => {
                triad(a, b, c);
                swap(a, b);
                swap(b, c);
            }
        }
        // The array just written has become `b` or `c` by now; nothing may be assumed about any of them.
        black_box((&mut *a, &mut *b, &mut *c));
    }
    sums
}

#[inline(never)]
fn read(a: &[u64]) -> u64 {
    a.iter().fold(0, |sum, element| sum.wrapping_add(*element))
}

/// Adds one, so that the compiler does not make it a call of `memcpy`, whose stores may bypass the caches.
#[inline(never)]
fn copy(b: &mut [u64], a: &[u64]) {
    for (b, a) in b.iter_mut().zip(a) {
        *b = a.wrapping_add(1);
    }
}

#[inline(never)]
fn triad(a: &mut [u64], b: &[u64], c: &[u64]) {
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b.wrapping_add(FACTOR.wrapping_mul(*c));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Operation; 3] = [Operation::Read, Operation::Copy, Operation::Triad];

    /// The checksum by the definitions, one element at a time, with the arrays' roles computed from the number of the
    /// pass.
    fn slow(op: Operation, length: usize, passes: usize, seed: u64) -> u64 {
        let mut generator = Generator::new(seed);
        let count = match op {
            Operation::Read => 1,
            Operation::Copy => 2,
            Operation::Triad => 3,
        };
        // Element i of array k is at k x length + i.
        let mut elements: Vec<u64> = (0..count * length).map(|_| generator.next()).collect();
        let mut checksum = 0_u64;
        let mix = |checksum: u64, value: u64| checksum.rotate_left(5) ^ value;
        for pass in 0..passes {
            let mut sum = 0_u128;
            for i in 0..length {
                let at = |role: usize| (pass + role) % count * length + i;
                match op {
                    Operation::Read => sum += u128::from(elements[i]),
                    Operation::Copy => elements[at(1)] = elements[at(0)].wrapping_add(1),
                    Operation::Triad => {
                        let (b, c) = (elements[at(1)], elements[at(2)]);
                        elements[at(0)] = b.wrapping_add(c).wrapping_add(c).wrapping_add(c);
                    }
                }
            }
            if op == Operation::Read {
                checksum = mix(checksum, (sum & u128::from(u64::MAX)) as u64);
            }
        }
        // The array that is `a` after the last pass comes first.
        elements.rotate_left(passes % count * length);
        elements.into_iter().fold(checksum, mix)
    }

    #[test]
    fn checksums_equal_those_of_the_slow_definition() {
        for op in ALL {
            for (working_set, work) in [
                (64, 1),
                (1000, 1),
                (1000, 2),
                (4096, 3),
                (4096, 7),
                (10_007, 11),
            ] {
                let (read, written) = op.arrays();
                let length = usize::try_from(working_set / ((read + written) * 8)).unwrap();
                let checksum = Stream {
                    op,
                    working_set,
                    work,
                }
                .run(5)
                .unwrap()
                .checksum;
                let expected = slow(op, length, usize::try_from(work).unwrap(), 5);
                assert_eq!(
                    checksum, expected,
                    "{op:?}, {working_set} bytes, {work} passes"
                );
            }
        }
    }

    #[test]
    fn bytes_read_and_written_are_told_apart_and_exact() {
        for (op, read, written) in [
            (Operation::Read, 9600, 0),
            (Operation::Copy, 4800, 4800),
            (Operation::Triad, 6400, 3200),
        ] {
            let outcome = Stream {
                op,
                working_set: 960,
                work: 10,
            }
            .run(1)
            .unwrap();
            assert_eq!(outcome.working_set_bytes, 960);
            let detail = |name| {
                outcome
                    .details
                    .iter()
                    .find(|(key, _)| *key == name)
                    .map(|(_, value)| value.clone())
            };
            assert_eq!(detail("bytes_read"), Some(json!(read)), "{op:?}");
            assert_eq!(detail("bytes_written"), Some(json!(written)), "{op:?}");
        }
    }
}
