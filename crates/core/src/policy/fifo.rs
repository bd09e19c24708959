//! `fifo`: at most as many tasks as CPUs, each to its end, in the order of admission, like `parallel -j` and
//! `xargs -P`.

use super::prelude::*;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo",
    gist: "at most as many jobs as CPUs, each to its end, in order",
    source: "baseline (GNU parallel -j)",
    for_research: false,
    time_shares: false,
    weighs: false,
    can_hand_over: false,
    params: &[QUANTUM_S],
    needs: |_| vec![WANTS_BINDING],
    build: |params| {
        each_quantum(params, Snapshot::is_quantum_end, |snap, end, _| {
            decide(snap, end)
        })
    },
};

fn decide(snap: &Snapshot, end: Nanos) -> Decision {
    let mut round = Round::between_quanta(snap);
    // The order of admission, whatever happened to a task since. Handwritten events may lack that number.
    round.order.sort_by_key(|&ix| {
        let task = &snap.tasks[ix as usize];
        (task.turn, task.arrived, task.id)
    });
    // No task overtakes a gang that waits for its CPUs: otherwise the gang might wait for ever.
    round.choose_in_order(Purpose::Run, true);
    round.finish_in_order(end)
}
