//! `big-fair`: all tasks take turns on the big cores (the fair share policy of the lucky paper, section 4).

use super::core_types::{Side, Split};
use super::prelude::*;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "big-fair",
    gist: "the big cores go round all jobs in turn",
    source: "the fair share policy of the lucky paper, section 4",
    for_research: true,
    time_shares: true,
    kernel_shares: true,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S],
    needs: &|_| {
        vec![
            required(Capability::CoreTypes),
            required(Capability::Affinity),
        ]
    },
    build: &|params| {
        Box::new(BigFair {
            quantum: Nanos::from_s(params.number("quantum_s")),
            state: State::default(),
        })
    },
};

struct BigFair {
    quantum: Nanos,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct State {
    quantum: QuantumEnd,
    /// The last task that was given a big core.
    last: Option<TaskId>,
}

impl Policy for BigFair {
    fn decide(&mut self, snap: &Snapshot, _rng: &mut Rng) -> Decision {
        let mut split = Split::new(snap);
        let end = self.state.quantum.after(snap.now, split.full, self.quantum);
        if split.full {
            let count = split.free.len();
            let first = split
                .free
                .iter()
                .position(|ix| self.state.last.is_none_or(|last| split.task(*ix).id > last))
                .unwrap_or(0);
            split.clear();
            for step in 0..count {
                let ix = split.free[(first + step) % count];
                // No task is skipped: if it does not fit, it comes first in the next quantum, whatever it needs.
                if split.room() == 0 || (step > 0 && !split.fits(ix)) {
                    break;
                }
                split.put(ix, Side::Big);
                self.state.last = Some(split.task(ix).id);
            }
        }
        split.finish(end)
    }

    state_is_a_field!();
}
