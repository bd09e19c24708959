//! The policies, one per file, and the table that lists them. A new policy is one file and one line of the table.
//!
//! # How long a task can wait
//!
//! A policy that stops tasks so that others can run may prefer some tasks to others. So all such policies bound the
//! wait of a task that has run once, and all in the same way. Let q be the longest quantum of the policy, m the number
//! of CPUs and n the number of live tasks. Each task needs one CPU and may run on any. Then no task waits longer than
//! `max_pause` + ⌈n / m⌉ q.
//!
//! Proof: a task that has waited for `max_pause` is overdue. The present quantum ends within q, because filling free
//! CPUs does not move its end. From then on no estimation quantum begins, because a task is overdue. At the end of each
//! quantum all CPUs are given out anew: overdue tasks come first, the longest waiting before the others. So only tasks
//! that have waited longer come before ours, and each of them only once: after it has run, it has waited for less time
//! than ours. These tasks are fewer than n, and m tasks are chosen each time. So ours is chosen the ⌈n / m⌉-th time at
//! the latest. The first time comes within q, and each later one q after the one before.
//!
//! Weights change nothing here: `max_pause` is the same for all tasks. A task that must not pause comes after all that
//! are overdue.
//!
//! Gangs: let W be the number of CPUs that all tasks need together. The bound is `max_pause` + 2 ⌈W / m⌉ q. Take the
//! tasks that are chosen at one end of a quantum, and the first task that did not fit, which is chosen at the next end.
//! Together they need more than m CPUs. So two ends of a quantum do at least as much as one did in the proof above.
//!
//! CPU masks: the bound is `max_pause` + n q. The task that has waited longest is always chosen. Nothing more can be
//! said when all tasks want the same CPU.
//!
//! Tasks that may not be frozen keep their CPUs for good. So m counts only the other CPUs, and a task that may use none
//! of those can wait for ever.
//!
//! `linux`, `fifo`, `spread`, `place`, `bias`, `big-fair` and `lucky` never stop a task. Where several tasks may use a CPU, the kernel
//! bounds the wait. `efs` has a bound of its own besides this one.
//!
//! A task that has not begun is never overdue, because it holds nothing. So if `max_pause` is shorter than ⌈n / m⌉ q,
//! only as many tasks take turns as `max_pause` has room for. The others begin when one of these ends.

mod allocate;
mod apart;
mod auto;
mod bandwidth;
mod bias;
mod big_fair;
mod core_types;
mod efs;
mod estimation;
mod even;
mod fair;
mod fifo;
mod fitness;
mod linux;
mod lucky;
mod needs;
mod oracle;
mod params;
mod perf_fair;
mod place;
mod quantum;
mod regions;
mod round;
mod round_robin;
mod spread;
mod tail;
mod target;
mod virtual_time;
pub(crate) mod weights;

pub use auto::{AUTO, AutoRow, JobKind, auto_lacks, auto_row};
pub use fitness::{FitnessCandidate, FitnessQueue};
pub use needs::{Importance, Need};
pub use params::{ParamError, ParamKind, ParamSpec, ParamValue, Params, set_along};
pub use spread::spread_has_choice;

use crate::capability::{Capabilities, Capability};
use crate::check::InvalidDecision;
use crate::decision::Decision;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Absence;

/// Decides which tasks run where.
///
/// A policy sees the snapshot, its own state and the generator, and nothing else: it does no I/O and reads no clock, so
/// the same three give the same decision.
pub trait Policy {
    /// Decides on a snapshot.
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision;

    /// Decides on a snapshot, if the policy can fail to: one in another process may end, or not answer. The loop calls this.
    ///
    /// # Errors
    /// There is no decision.
    fn try_decide(
        &mut self,
        snapshot: &Snapshot,
        rng: &mut Rng,
    ) -> Result<Decision, PolicyFailure> {
        Ok(self.decide(snapshot, rng))
    }

    /// Learns that its last decision can't be carried out. Round-robin decided instead.
    fn refused(&mut self, _why: &InvalidDecision) {}

    /// Whether a task that comes later starts at the least progress of the others: a policy that evens out progress would
    /// give it the machine until it had caught up. For other policies progress is the task's own work.
    fn evens_progress(&self) -> bool {
        true
    }

    /// Whether the visible progress of tasks counts.
    fn wants_visible(&self) -> bool {
        false
    }

    /// The state that the next decision depends on, besides the snapshot and the generator.
    fn save(&self) -> serde_json::Value;

    /// Continues from a state that [`save`](Policy::save) returned.
    ///
    /// # Errors
    /// The value is not a state of this policy.
    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error>;
}

/// Why a policy did not decide.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyFailure {
    /// Round-robin decides instead, and the policy is asked again.
    #[error("{0}")]
    NoAnswer(String),
    /// The run can't go on.
    #[error("{0}")]
    Hangs(String),
}

/// Finds what a policy with these parameters needs.
pub type FindNeeds = dyn Fn(&Params) -> Vec<Need> + Sync;
/// Builds a policy with these parameters.
pub type BuildPolicy = dyn Fn(&Params) -> Box<dyn Policy> + Sync;

/// One line of the table of policies, or a policy in another process.
pub struct PolicyEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// One-line summary.
    pub gist: &'static str,
    /// The paper, or `ours`.
    pub source: &'static str,
    /// Whether it serves experiments rather than work: it needs a solo run of each task, or only moves big cores around.
    pub for_research: bool,
    /// Whether more tasks than CPUs are live, and take turns.
    pub time_shares: bool,
    /// Whether it stops no task: the kernel time-shares the CPUs that it allows.
    pub kernel_shares: bool,
    /// Whether it divides time or progress by the tasks' weights. Other policies expect equal weights.
    pub weighs: bool,
    /// Whether a scheduler in the kernel can decide in its place, at each event.
    pub can_hand_over: bool,
    /// Whether it places tasks on the [nodes](crate::Node) of a machine. Only such a policy can run on several nodes.
    pub for_nodes: bool,
    /// Its parameters, with their ranges and defaults.
    pub params: &'static [ParamSpec],
    /// The capabilities that it needs with these parameters.
    pub needs: &'static FindNeeds,
    /// Builds the policy with these parameters.
    pub build: &'static BuildPolicy,
}

/// Every policy.
pub static POLICIES: &[PolicyEntry] = &[
    linux::ENTRY,
    fifo::ENTRY,
    round_robin::ENTRY,
    bandwidth::ENTRY,
    fair::ENTRY,
    perf_fair::ENTRY,
    oracle::ENTRY,
    even::ENTRY,
    efs::ENTRY,
    bias::ENTRY,
    big_fair::ENTRY,
    lucky::ENTRY,
    spread::ENTRY,
    place::ENTRY,
];

/// The policy of that name; `None` if there is none.
pub fn find_policy(name: &str) -> Option<&'static PolicyEntry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// A capability that a policy needs and a machine lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// The missing capability.
    pub capability: Capability,
    /// Why it is missing.
    pub why: Absence,
    /// Whether the policy can run without it.
    pub importance: Importance,
}

impl PolicyEntry {
    /// The capabilities that this policy needs and a machine lacks.
    pub fn shortfalls(&self, params: &Params, capabilities: &Capabilities) -> Vec<Shortfall> {
        (self.needs)(params)
            .into_iter()
            .filter_map(|need| {
                let why = capabilities.why_missing(need.capability)?;
                Some(Shortfall {
                    capability: need.capability,
                    why,
                    importance: need.importance,
                })
            })
            .collect()
    }

    /// Whether the policy needs the traffic of each memory domain: the value for
    /// [`RunConfig::traffic`](crate::RunConfig::traffic).
    pub fn needs_traffic(&self, params: &Params) -> bool {
        (self.needs)(params)
            .iter()
            .any(|need| need.capability == Capability::Traffic)
    }

    /// Whether the policy needs the time that a device works for each task: the value for
    /// [`RunConfig::devices`](crate::RunConfig::devices).
    pub fn needs_devices(&self, params: &Params) -> bool {
        (self.needs)(params)
            .iter()
            .any(|need| matches!(need.capability, Capability::Device(_)))
    }
}

/// The decision if a policy's own can't be carried out: round-robin over all tasks, from the snapshot alone.
pub fn stand_in(snapshot: &Snapshot) -> Decision {
    round_robin::decide_stateless(snapshot)
}

/// What most policies import.
mod prelude {
    pub(super) use super::needs::*;
    pub(super) use super::params::{ParamSpec, QUANTUM_S, choice, number};
    pub(super) use super::quantum::{QuantumEnd, each_quantum};
    pub(super) use super::round::{Round, is_full};
    pub(super) use super::weights::{Weights, weighted_progress};
    pub(super) use super::{Need, Params, Policy, PolicyEntry, state_is_a_field};
    pub(super) use crate::capability::Capability;
    pub(super) use crate::counter::Counter;
    pub(super) use crate::decision::{Basis, Change, Decision, WaitReason};
    pub(super) use crate::placement::{Placement, Purpose};
    pub(super) use crate::rng::Rng;
    pub(super) use crate::snapshot::{Snapshot, TaskView};
    pub(super) use crate::task::TaskId;
    pub(super) use crate::units::Nanos;
    pub(super) use serde::{Deserialize, Serialize};
}

/// [`Policy::save`] and [`Policy::load`] for a policy whose state is its field `state`.
macro_rules! state_is_a_field {
    () => {
        fn save(&self) -> serde_json::Value {
            serde_json::to_value(&self.state).unwrap_or_default()
        }

        fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
            self.state = serde::Deserialize::deserialize(state)?;
            Ok(())
        }
    };
}
use state_is_a_field;
