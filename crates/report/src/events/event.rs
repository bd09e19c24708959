//! What an event is, and what it must not contradict.

use crate::json::JsonError;
use crate::source::BackendKind;
use cosched_core::{
    Absence, CpuSet, Decision, Machine, Placement, RngState, Sample, Snapshot, TaskView,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// The format's name and version.
pub const EVENT_SCHEMA: &str = "cosched.event/1";

/// A decision with everything that it was based on. Without `decision` it asks for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EventRecord {
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

impl EventRecord {
    /// The event as one line of JSON, without its line end.
    pub fn to_json(&self) -> String {
        // Plain data with text keys: it can't fail to serialise.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Checks what policies rely on and the types do not guarantee.
    pub(super) fn check(self) -> Result<EventRecord, JsonError> {
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
        let before = ix.checked_sub(1).map(|before| &*snapshot.tasks[before]);
        let found =
            wrong_number(before, task).or_else(|| wrong_placement(task, machine, &mut taken));
        if let Some((key, problem)) = found {
            return Some((format!("tasks[{ix}].{key}"), problem));
        }
    }
    None
}

/// A key of a task, and what is wrong with it.
type WrongKey = (&'static str, String);

fn wrong_number(before: Option<&TaskView>, task: &TaskView) -> Option<WrongKey> {
    if let Some(before) = before.filter(|before| before.id >= task.id) {
        let problem = format!(
            "expected tasks in ascending order of `id`; found {} after {}",
            task.id.0, before.id.0
        );
        return Some(("id", problem));
    }
    if task.cpus == 0 {
        return Some(("cpus", "expected at least 1".to_owned()));
    }
    if task.weight <= 0.0 {
        let problem = format!("expected more than 0; found {}", task.weight);
        return Some(("weight", problem));
    }
    if let Some(milli) = task.bus_use_milli.filter(|milli| *milli > 1_000) {
        let problem = format!("expected at most 1000; found {milli}");
        return Some(("bus_use_milli", problem));
    }
    if task.allowed.as_ref().is_some_and(CpuSet::is_empty) {
        let problem = "expected at least one CPU, or null for all";
        return Some(("allowed", problem.to_owned()));
    }
    None
}

/// Check the CPUs of a task; `taken` has the tasks of those that are exclusive.
fn wrong_placement(
    task: &TaskView,
    machine: &Machine,
    taken: &mut BTreeMap<u32, u32>,
) -> Option<WrongKey> {
    let placement = &task.running.as_ref()?.placement;
    let key = "running.placement";
    for cpu in placement.cpus().iter() {
        let is_exclusive = matches!(placement, Placement::Exclusive { .. });
        let other = is_exclusive
            .then(|| taken.insert(cpu.0, task.id.0))
            .flatten();
        if let Some(other) = other {
            let problem = format!(
                "expected a CPU of its own; CPU {} is also that of task {other}",
                cpu.0
            );
            return Some((key, problem));
        }
        if machine.index_of(cpu).is_none() {
            let problem = format!("expected CPUs of the machine; found CPU {}", cpu.0);
            return Some((key, problem));
        }
    }
    None
}
