//! `bias`: the tasks with the fewest misses of the last-level cache per instruction have the big cores (Koufaty et al.;
//! the lucky paper compares with it in section 4).
//!
//! `bias = LLCMS / MIPS`, which is misses per instruction and independent of the core's speed. It is unfair by design:
//! the tasks with the least bias keep the big cores for good.

use super::core_types::{Side, Split, measuring_needs};
use super::params::QUANTUM_S;
use super::{Policy, PolicyEntry, QuantumEnd, state_is_a_field};
use crate::decision::Decision;
use crate::rng::Rng;
use crate::snapshot::{Snapshot, TaskView};
use crate::units::Nanos;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "bias",
    gist: "big cores for the jobs that miss the last-level cache least per instruction",
    source: "bias scheduling, as in the lucky paper, section 4",
    time_shares: true,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| measuring_needs(),
    build: |params| {
        Box::new(Bias {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: QuantumEnd::default(),
        })
    },
};

struct Bias {
    quantum: Nanos,
    state: QuantumEnd,
}

/// Misses per thousand million instructions. Each miss is a line read from memory. `None` before the first quantum.
fn bias(task: &TaskView) -> Option<u64> {
    let reads = task.estimates.cpu_mm_reads.value()?.0;
    let instructions = task
        .estimates
        .cpu_instructions
        .value()
        .filter(|&rate| rate > 0)?;
    u64::try_from(u128::from(reads) * 1_000_000_000 / u128::from(instructions)).ok()
}

impl Policy for Bias {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut split = Split::new(snap);
        let end = self.state.after(snap.now, split.full, self.quantum);
        if split.full {
            let known: Vec<u64> = split
                .free
                .iter()
                .filter_map(|&ix| bias(split.task(ix)))
                .collect();
            let sum: u128 = known.iter().map(|&bias| u128::from(bias)).sum();
            // Ours: a task that was not measured yet counts as the mean.
            let mean = (sum / known.len().max(1) as u128) as u64;
            let mut order: Vec<_> = split
                .free
                .iter()
                .map(|&ix| (bias(split.task(ix)).unwrap_or(mean), !split.is_big(ix), ix))
                .collect();
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
        split.finish(end)
    }

    state_is_a_field!();
}
