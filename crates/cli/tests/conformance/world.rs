//! A world in a process of its own as a fixture: the example in Python, without help of a library.

use crate::fixture::{Does, Fixture, Job, Skip, name};
use cosched_core::{CpuSet, Nanos, TaskId};
use cosched_foreign::{Command, ForeignWorld, WorldJob};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Stdio;

/// The world of `examples/foreign/queue_world.py`.
pub(crate) struct QueueWorld {
    command: Command,
}

impl QueueWorld {
    pub(crate) fn new() -> Result<QueueWorld, Skip> {
        let mut python = std::process::Command::new("python3");
        python.arg("--version").stdout(Stdio::null());
        if !python.status().is_ok_and(|status| status.success()) {
            return Err(Skip("there is no python3".to_owned()));
        }
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let file = root.join("examples/foreign/queue_world.py");
        let word = format!("cmd:python3 '{}'", file.display());
        let command = Command::of(&word).expect("a command");
        Ok(QueueWorld { command })
    }
}

/// What the world is given for a job.
fn given(does: Does) -> Result<Map<String, Value>, Skip> {
    let given = match does {
        Does::Work(ms) => json!({"work_s": f64::from(ms) / 1e3, "memory": 0.2}),
        Does::Endless => json!({"work_s": 1e6}),
        Does::Fails => json!({"work_s": 0.005, "exit": {"code": 3}}),
        Does::Crashes => {
            json!({"work_s": 0.005, "exit": {"signal": {"signal": 11, "oom": false}}})
        }
        Does::Unstartable => json!({"work_s": 0.0, "exit": {"not-started": "it is to fail"}}),
        Does::Naps => {
            return Err(Skip("the jobs of the example do not sleep".to_owned()));
        }
    };
    Ok(given.as_object().cloned().unwrap_or_default())
}

impl Fixture for QueueWorld {
    type Backend = ForeignWorld;

    const AFTER_STOP: Nanos = Nanos::ZERO;
    const CLOSE: Nanos = Nanos::ZERO;
    const LONG: u64 = 40;
    const LEAST_SHARE: f64 = 0.98;
    const NOT_REPEATABLE: Option<&'static str> = None;

    fn backend(&self, jobs: &[Job]) -> Result<ForeignWorld, Skip> {
        let mut told = Vec::new();
        for (id, job) in jobs.iter().enumerate() {
            told.push(WorldJob {
                name: name(id),
                cpus: job.cpus,
                given: given(job.does)?,
            });
        }
        let mut world = ForeignWorld::open(&self.command, 1, || None).expect("a world");
        world.add(told).expect("the world takes jobs");
        Ok(world)
    }

    fn cpus_of(backend: &mut ForeignWorld, task: usize, _wanted: Option<&CpuSet>) -> CpuSet {
        backend.cpus_of(TaskId(task as u32))
    }

    /// A simulation leaves no processes.
    fn nothing_stands_still(&self) {}
}
