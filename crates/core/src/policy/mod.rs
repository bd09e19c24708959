//! The policies, one per file, and the table that lists them: adding one is a file and a line.
//!
//! # How long a task can wait
//!
//! A policy that stops tasks for others may have favourites, so the wait of a task that has run once is bounded for all
//! of them alike. Let q be the longest quantum of the policy, m the CPUs, n the live tasks, each of one CPU and free to
//! run on any. Then nobody waits longer than `max_pause` + ⌈n / m⌉ q.
//!
//! A task that has waited for `max_pause` is overdue. The quantum that runs at that moment ends within q, since filling
//! free CPUs does not move its end. From then on no estimation quantum begins, because somebody is overdue, and at the
//! end of each quantum all CPUs are given out anew, to the overdue first, the longest waiting of them before the others.
//! Only tasks that have waited longer come before ours, and each of them only once: when it has run, it has waited less.
//! They are fewer than n, and m of them are taken each time, so ours is taken at the latest the ⌈n / m⌉-th time, of
//! which the first comes within q and each other one q later.
//!
//! With gangs, let W be the CPUs that all tasks want together: the bound is `max_pause` + 2 ⌈W / m⌉ q. What is taken at
//! one end of a quantum, together with the first that did not fit, which is taken at the next, wants more than m CPUs;
//! so two of them do at least as much as one did above. With masks it is `max_pause` + n q: the longest waiting is
//! always taken, and that is all that can be said when all want the same CPU. Tasks that may not be frozen keep their
//! CPUs for good: m counts only the others' CPUs, and a task that may use none of those can wait for ever. `linux`,
//! `fifo`, `bias`, `big-fair` and `lucky` never stop a task; where several may use a CPU, the kernel bounds the wait.
//! `efs` has a bound of its own beside this one.
//!
//! A task that has not begun is never overdue: it holds nothing. So where `max_pause` is shorter than ⌈n / m⌉ q, as many
//! tasks take turns as it has room for, and the others begin when one of them ends.

mod allocate;
mod bandwidth;
mod bias;
mod big_fair;
mod core_types;
mod efs;
mod estimation;
mod fair;
mod fifo;
mod fitness;
mod linux;
mod lucky;
mod oracle;
mod params;
mod perf_fair;
mod round;
mod round_robin;
mod target;

pub use fitness::{Candidate, FitnessQueue};
pub use params::{ParamError, ParamKind, ParamSpec, ParamValue, Params};

use crate::capability::{Capabilities, Capability};
use crate::decision::Decision;
use crate::rng::Rng;
use crate::snapshot::Snapshot;
use crate::units::Absence;

/// Decides who runs where.
///
/// A policy sees the snapshot, its own state and the generator, and nothing else: it does no I/O and reads no clock, so
/// the same three give the same decision.
pub trait Policy {
    /// Answers a snapshot.
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision;

    /// The state that the next decision depends on, beside the snapshot.
    fn save(&self) -> serde_json::Value;

    /// Goes on from a saved state.
    ///
    /// # Errors
    /// The value is not a state of this policy.
    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error>;
}

/// How much a policy needs a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Importance {
    /// It can't run without.
    Required,
    /// It runs without, in the way that the text says.
    Wanted(&'static str),
}

/// A capability that a policy needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What.
    pub capability: Capability,
    /// How much.
    pub importance: Importance,
}

/// One line of the table of policies.
pub struct PolicyEntry {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its idea in a line.
    pub gist: &'static str,
    /// The paper that it comes from, or `ours`.
    pub source: &'static str,
    /// More tasks than CPUs are live, and take turns.
    pub time_shares: bool,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// What it needs, under these parameters.
    pub needs: fn(&Params) -> Vec<Need>,
    /// Makes one.
    pub build: fn(&Params) -> Box<dyn Policy>,
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
    efs::ENTRY,
    bias::ENTRY,
    big_fair::ENTRY,
    lucky::ENTRY,
];

/// The policy of that name.
pub fn find_policy(name: &str) -> Option<&'static PolicyEntry> {
    POLICIES.iter().find(|entry| entry.name == name)
}

/// A policy that can't run, or not as it is meant to, for want of a capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortfall {
    /// What is missing.
    pub capability: Capability,
    /// Why.
    pub why: Absence,
    /// What it means for the policy.
    pub importance: Importance,
}

impl PolicyEntry {
    /// What this policy misses on a machine.
    pub fn shortfalls(&self, params: &Params, capabilities: &Capabilities) -> Vec<Shortfall> {
        let missing = |need: Need| {
            let why = capabilities.why_missing(need.capability)?;
            Some(Shortfall { capability: need.capability, why, importance: need.importance })
        };
        (self.needs)(params).into_iter().filter_map(missing).collect()
    }
}

/// The best policy that a machine supports: `perf-fair` where progress and bandwidth can be measured, else `fifo`,
/// which keeps what it starts on one CPU and pays nothing for switching.
pub fn auto_policy(capabilities: &Capabilities) -> &'static PolicyEntry {
    let can = |entry: &PolicyEntry| {
        Params::resolve(entry.name, entry.params, &[])
            .is_ok_and(|params| entry.shortfalls(&params, capabilities).is_empty())
    };
    if can(&perf_fair::ENTRY) { &perf_fair::ENTRY } else { &fifo::ENTRY }
}

/// The decision that stands in when a policy's own can't be carried out: round-robin over everything, from the
/// snapshot alone.
pub fn stand_in(snapshot: &Snapshot) -> Decision {
    round_robin::decide_stateless(snapshot)
}

const fn wanted(capability: Capability, without: &'static str) -> Need {
    Need { capability, importance: Importance::Wanted(without) }
}

const fn required(capability: Capability) -> Need {
    Need { capability, importance: Importance::Required }
}

/// Needs of every policy that stops some tasks for others.
fn sharing_needs() -> Vec<Need> {
    vec![required(Capability::Freeze), wanted(Capability::Affinity, "the kernel chooses the CPU of each job that runs")]
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

/// The end of the current quantum, which a round that only fills free CPUs must not move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct QuantumEnd {
    end: crate::units::Nanos,
}

impl QuantumEnd {
    /// The end of the quantum that a round belongs to: `length` from now for a full round.
    fn of_round(&mut self, round: &round::Round<'_>, length: crate::units::Nanos) -> crate::units::Nanos {
        self.after(round.snap.now, round.full, length)
    }

    /// The end of the quantum that `now` belongs to; `begins` when a new one begins in any case.
    fn after(&mut self, now: crate::units::Nanos, begins: bool, length: crate::units::Nanos) -> crate::units::Nanos {
        if begins || self.end <= now {
            self.end = now + length;
        }
        self.end
    }
}
