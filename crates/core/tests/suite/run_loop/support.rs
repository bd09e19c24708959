//! A world in memory, and the end times of its tasks.

use crate::memory::{Memory, Work};
use cosched_core::*;

pub(crate) fn world(cores: u32, work: Vec<Work>) -> Memory {
    Memory::new(Machine::uniform("memory", cores, 1), work)
}

pub(crate) fn finish_ms(result: &RunResult) -> Vec<u64> {
    result
        .tasks
        .iter()
        .map(|task| task.finished.unwrap().0 / 1_000_000)
        .collect()
}
