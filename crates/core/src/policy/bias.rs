//! `bias`: the tasks with the fewest last-level cache misses per instruction get the big cores (Koufaty et al.;
//! compared in the lucky paper, section 4).
//!
//! `bias = LLCMS / MIPS` is misses per instruction, independent of the core's speed. It is unfair by design: the tasks
//! with the least bias keep the big cores for good.

use super::core_types::{Side, Split, measuring_needs};
use super::prelude::*;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "bias",
    gist: "big cores for jobs with the fewest last-level misses",
    source: "bias scheduling, as in the lucky paper, section 4",
    for_research: true,
    time_shares: true,
    kernel_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S],
    needs: &|_| measuring_needs(),
    build: &|params| each_quantum(params, is_full, |snap, end, _| decide(snap, end)),
};

/// Misses per 10^9 instructions. Each miss is a line read from memory. `None` before the first quantum.
fn bias(task: &TaskView) -> Option<u64> {
    let reads = task.estimates.cpu_mm_reads.value()?.0;
    let instructions = task
        .estimates
        .cpu_instructions
        .value()
        .filter(|&rate| rate > 0)?;
    u64::try_from(u128::from(reads) * 1_000_000_000 / u128::from(instructions)).ok()
}

fn decide(snap: &Snapshot, end: Nanos) -> Decision {
    let mut split = Split::new(snap);
    if split.full {
        choose_big(&mut split);
    }
    split.finish(end)
}

fn choose_big(split: &mut Split<'_>) {
    let known: Vec<u64> = split
        .free
        .iter()
        .filter_map(|&ix| bias(split.task(ix)))
        .collect();
    let sum: u128 = known.iter().map(|&bias| u128::from(bias)).sum();
    // Ours: a task not measured yet counts as the mean.
    let mean = (sum / known.len().max(1) as u128) as u64;
    let mut order = Vec::new();
    for &ix in &split.free {
        let bias = bias(split.task(ix)).unwrap_or(mean);
        order.push((bias, !split.is_big(ix), ix));
    }
    order.sort_unstable();
    split.clear();
    for (_, _, ix) in order {
        if split.room() == 0 {
            break;
        }
        if split.fits(ix) {
            split.put(ix, Side::Big);
        }
    }
}
