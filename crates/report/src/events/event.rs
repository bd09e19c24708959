//! What an event is, and what it must not contradict.

use crate::json::JsonError;
use crate::source::BackendKind;
use cosched_core::{Absence, CpuSet, Decision, Placement, RngState, Sample, Snapshot};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The format's name and version.
pub const EVENT_SCHEMA: &str = "cosched.event/1";

/// A decision with everything that it was based on. Without `decision` it asks for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// [`EVENT_SCHEMA`].
    #[serde(deserialize_with = "own_schema")]
    pub schema: String,
    /// Number of the decision within its run, from 0.
    #[serde(default)]
    pub seq: u64,
    /// Real processes, or a simulation.
    pub backend: Option<BackendKind>,
    /// The policy that decided.
    pub policy: Option<String>,
    /// The policy's parameters; their keys are the policy's own.
    #[serde(default)]
    pub params: BTreeMap<String, serde_json::Value>,
    /// The machine's own values for the parameters of all policies, as its file gives them.
    #[serde(default)]
    pub machine_params: BTreeMap<String, String>,
    /// The codes of the capabilities that the run lacked, each with its reason.
    #[serde(default)]
    pub missing: BTreeMap<String, Absence>,
    /// The policy's state before it decided.
    pub policy_state: Option<serde_json::Value>,
    /// The generator's position before the policy decided.
    pub rng: Option<RngState>,
    /// The policy's own decision could not be carried out, and round-robin stood in.
    #[serde(default)]
    pub stood_in: bool,
    /// What the policy saw.
    pub snapshot: Snapshot,
    /// The samples that were new in the snapshot.
    #[serde(default)]
    pub samples: Vec<Sample>,
    /// The decision; `None` if the event asks for one.
    pub decision: Option<Decision>,
}

impl Event {
    /// The event as one line of JSON, without its line end.
    pub fn to_json(&self) -> String {
        // Plain data with text keys: it can't fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Checks what policies rely on and the types do not guarantee.
    pub(super) fn check(self) -> Result<Event, JsonError> {
        match contradiction(&self.snapshot) {
            Some((key, problem)) => Err(JsonError::at(&format!("snapshot.{key}"), problem)),
            None => Ok(self),
        }
    }
}

/// Reads the name of the format, and fails if it is another.
fn own_schema<'de, D: Deserializer<'de>>(input: D) -> Result<String, D::Error> {
    let found = String::deserialize(input)?;
    if found == EVENT_SCHEMA {
        return Ok(found);
    }
    let problem = format!("expected \"{EVENT_SCHEMA}\"; found \"{found}\"");
    Err(D::Error::custom(problem))
}

/// The first key of a snapshot that contradicts another, and the problem.
fn contradiction(snapshot: &Snapshot) -> Option<(String, String)> {
    let machine = &snapshot.machine;
    if let Err(error) = machine.validate() {
        return Some(("machine".to_owned(), error.to_string()));
    }
    let mut taken: BTreeMap<u32, u32> = BTreeMap::new();
    for (ix, task) in snapshot.tasks.iter().enumerate() {
        let at = |key: &str, problem: String| Some((format!("tasks[{ix}].{key}"), problem));
        if ix > 0 && snapshot.tasks[ix - 1].id >= task.id {
            let (before, id) = (snapshot.tasks[ix - 1].id.0, task.id.0);
            let expected = "expected tasks in ascending order of their numbers";
            return at(
                "id",
                format!("{expected}; found {id} after {before}, sort them by `id`"),
            );
        }
        if task.cpus == 0 {
            return at("cpus", "expected at least 1".to_owned());
        }
        if !(-20..=19).contains(&task.nice) {
            return at("nice", format!("expected -20 to 19; found {}", task.nice));
        }
        if let Some(milli) = task.bus_use_milli.filter(|milli| *milli > 1_000) {
            return at(
                "bus_use_milli",
                format!("expected at most 1000; found {milli}"),
            );
        }
        if task.allowed.as_ref().is_some_and(CpuSet::is_empty) {
            return at(
                "allowed",
                "expected at least one CPU, or null for all".to_owned(),
            );
        }
        if let Some(Placement::Exclusive { cpus, .. }) =
            task.running.as_ref().map(|running| &running.placement)
        {
            for cpu in cpus.iter() {
                if let Some(other) = taken.insert(cpu.0, task.id.0) {
                    let problem = format!(
                        "expected a CPU of its own; CPU {} is also that of task {other}",
                        cpu.0
                    );
                    return at("running.placement", problem);
                }
            }
        }
        if let Some(running) = &task.running
            && let Some(cpu) = running
                .placement
                .cpus()
                .iter()
                .find(|&cpu| machine.index_of(cpu).is_none())
        {
            return at(
                "running.placement",
                format!("expected CPUs of the machine; found CPU {}", cpu.0),
            );
        }
    }
    None
}
