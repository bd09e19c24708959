//! The lines of `cosched.world/1`.

use cosched_core::{Absence, Change, Exit, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

const SCHEMA: &str = "cosched.world/1";

/// A job as a world is told of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorldJob {
    /// The name of what it does: copies of a job share it.
    pub name: String,
    /// Hardware threads that it needs at once.
    pub cpus: u32,
    /// What the mix file gives to the world, verbatim.
    pub given: serde_json::Map<String, serde_json::Value>,
}

/// The first question.
#[derive(Serialize)]
pub(super) struct Open {
    schema: &'static str,
    open: Seed,
}

#[derive(Serialize)]
struct Seed {
    seed: u64,
}

impl Open {
    pub(super) fn new(seed: u64) -> Open {
        Open {
            schema: SCHEMA,
            open: Seed { seed },
        }
    }
}

/// The other questions.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Question<'a> {
    /// More tasks.
    Add(&'a [Added<'a>]),
    /// Changes to what runs.
    Apply(&'a [Change]),
    /// Time passes until an event, at most until this instant.
    Wait { until: Option<u64> },
    /// The totals of these tasks, and those of the machine.
    Read(&'a [u32]),
    /// A task is to end.
    Kill { task: u32, how: &'static str },
}

#[derive(Serialize)]
pub(super) struct Added<'a> {
    pub(super) task: u32,
    #[serde(flatten)]
    pub(super) job: &'a WorldJob,
}

/// The answer to the first question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opened {
    pub(super) machine: Machine,
    /// Codes of capabilities that it lacks.
    #[serde(default)]
    pub(super) missing: BTreeMap<String, Absence>,
}

/// The answer to a question that asks for nothing.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Done {
    pub(super) ok: bool,
}

/// What happened until an instant.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Passed {
    pub(super) now: u64,
    pub(super) events: Vec<Happening>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) enum Happening {
    Ended { task: u32, exit: Exit },
    Slept(u32),
    Woke(u32),
}

impl Happening {
    pub(super) fn task(&self) -> u32 {
        match self {
            Happening::Ended { task, .. } | Happening::Slept(task) | Happening::Woke(task) => *task,
        }
    }
}

/// Totals, as they are told.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    /// By the name: `task`, `cpu_time` and the counters.
    pub(super) usage: Vec<BTreeMap<String, Option<u64>>>,
    /// One entry for each memory domain.
    #[serde(default)]
    pub(super) traffic: Option<Vec<Lines>>,
    #[serde(default)]
    pub(super) energy_j: Option<f64>,
}

/// Lines that a memory domain moved.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    #[serde(default)]
    pub(super) reads: Option<u64>,
    #[serde(default)]
    pub(super) writes: Option<u64>,
}
