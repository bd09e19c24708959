//! `fair`: the least progress first (the baseline Fair of Perf&Fair).
//!
//! Progress is relative to solo IPC, which is estimated in quanta of low contention, as long as ordinary ones.

use super::estimation::{
    LIGHT_LLC, LIGHT_MM, RENEWAL_SHARE_MAX, SHARE_MAX, VALID_QUANTA, estimating, progress_by,
};
use super::params::{AS, ESTIMATES};
use super::prelude::*;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fair",
    gist: "the job with the least progress against running alone first",
    source: "Feliu et al., `Fair` in Perf&Fair",
    for_research: false,
    time_shares: true,
    kernel_shares: false,
    weighs: true,
    can_hand_over: false,
    for_nodes: false,
    params: &[
        QUANTUM_S,
        VALID_QUANTA,
        LIGHT_LLC,
        LIGHT_MM,
        SHARE_MAX,
        RENEWAL_SHARE_MAX,
        ESTIMATES,
        AS,
    ],
    needs: &|_| sharing_needs(&PROGRESS_NEEDS),
    build: &|params| {
        let progress = progress_by(params.word("estimates"));
        let quantum = Nanos::from_s(params.number("quantum_s"));
        estimating(params, quantum, move |round, end| {
            decide(round, end, progress)
        })
    },
};

/// Runs the tasks with the least progress by weight. Overdue and critical tasks come first, the longest waiting before the
/// others: the bound on pauses needs this.
fn decide(mut round: Round<'_>, end: Nanos, progress: fn(&TaskView) -> f64) -> Decision {
    let progress = weighted_progress(round.snap, progress);
    round.order_by_progress(&progress);
    round.choose_in_order(Purpose::Run, false);
    round.finish_in_order(end)
}
