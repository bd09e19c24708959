//! `oracle`: Perf&Fair with perfect knowledge (Perf&Fair, section 7). Progress is relative to a trace of each task's
//! solo run, keyed by instructions, and the target is the ideal one, from solo bandwidths. Its gain over `perf-fair` is
//! the most that better estimates could gain.
//!
//! It has no quanta of low contention. A task without a trace would count by its estimated progress, but the policy
//! needs traces, so no run has such a task.

use super::estimation::progress;
use super::perf_fair::{LEAD, lead, select};
use super::prelude::*;
use super::target::BandwidthTarget;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "oracle",
    gist: "perf-fair that knows each job's solo run beforehand: a bound for what estimates can reach",
    source: "Feliu et al., Perf&Fair, section 7",
    for_research: true,
    time_shares: true,
    kernel_shares: false,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S, LEAD],
    needs: &|_| {
        sharing_needs(&[
            required(Capability::SoloTrace),
            required(Capability::SoloBandwidth),
            required(Capability::Ipc),
            required(Capability::Counter(Counter::MmReads)),
            WANTS_L1,
        ])
    },
    build: &|params| {
        let lead = lead(params);
        each_quantum(params, is_full, move |snap, end, _| {
            select(
                Round::new(snap),
                end,
                BandwidthTarget::Ideal,
                lead,
                traced_progress,
            )
        })
    },
};

fn traced_progress(task: &TaskView) -> f64 {
    task.estimates
        .trace_progress
        .value()
        .unwrap_or_else(|| progress(task))
}
