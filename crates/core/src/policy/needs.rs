//! What policies need, the needs that several share, and how the policies do without a wanted capability.

use crate::capability::Capability;
use crate::counter::Counter;

/// Importance of a capability to a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// The policy can't run without the capability.
    Required,
    /// The policy runs without the capability. The text names the loss.
    Wanted(&'static str),
}

/// A capability that a policy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// The capability.
    pub capability: Capability,
    /// Its importance.
    pub importance: Importance,
}

pub(super) const fn wanted(capability: Capability, without: &'static str) -> Need {
    Need {
        capability,
        importance: Importance::Wanted(without),
    }
}

pub(super) const fn required(capability: Capability) -> Need {
    Need {
        capability,
        importance: Importance::Required,
    }
}

pub(super) const WANTS_BINDING: Need = wanted(
    Capability::Affinity,
    "the kernel chooses the CPU of each job that runs",
);

pub(super) const WANTS_L1: Need = wanted(
    Capability::Counter(Counter::L1Accesses),
    "jobs are not paired by their use of the L1 cache",
);

/// The needs of a policy that stops tasks so that others can run, and `more`.
pub(super) fn sharing_needs(more: &[Need]) -> Vec<Need> {
    [&[required(Capability::Freeze), WANTS_BINDING], more].concat()
}

/// The needs of a policy that measures progress.
pub(super) const PROGRESS_NEEDS: [Need; 3] = [
    wanted(
        Capability::Ipc,
        "progress is CPU time: slowdown by co-runners is not seen",
    ),
    wanted(
        Capability::Counter(Counter::LlcAccesses),
        "light and heavy jobs are told apart by their reads from memory alone",
    ),
    WANTS_L1,
];
