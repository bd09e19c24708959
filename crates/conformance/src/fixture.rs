//! What a fixture offers to the scenarios that are played on it, and the jobs of the scenarios.

use cosched_core::{Backend, Capability, CpuSet, Nanos, TaskSpec};

/// Why a scenario can't be played.
#[derive(Debug)]
pub struct ScenarioSkip(pub String);

/// A scenario fails by a panic.
pub type ScenarioOutcome = Result<(), ScenarioSkip>;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAction {
    /// Some milliseconds of work, more or less, and exit code 0.
    Work(u32),
    /// Work without end.
    Endless,
    /// It ends with exit code 3, in a few milliseconds.
    Fails,
    /// It dies of SIGSEGV, in a few milliseconds.
    Crashes,
    /// It can't be started: its program does not exist.
    Unstartable,
    /// It sleeps once, for some 50 ms; then exit code 0.
    Naps,
}

/// A job of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioJob {
    /// What it does.
    pub does: JobAction,
    /// CPUs that it needs; as many processes or threads do its work.
    pub cpus: u32,
    /// CPUs that it may use.
    pub allowed: Option<CpuSet>,
}

/// A job on one CPU, whichever.
pub fn job(does: JobAction) -> ScenarioJob {
    ScenarioJob {
        does,
        cpus: 1,
        allowed: None,
    }
}

/// The task specifications of the jobs, for the loop.
pub(crate) fn specs(jobs: &[ScenarioJob]) -> Vec<TaskSpec> {
    let spec = |(id, job): (usize, &ScenarioJob)| TaskSpec {
        cpus: job.cpus,
        allowed: job.allowed.clone(),
        ..TaskSpec::new(id as u32, &name(id))
    };
    jobs.iter().enumerate().map(spec).collect()
}

/// The name of the job with this number.
pub fn name(id: usize) -> String {
    format!("job-{id}")
}

/// Where scenarios are played: what differs between backends.
pub trait Fixture {
    /// What the scenarios are played on.
    type Backend: Backend;

    /// CPU time that a task may still use after it was stopped: the kernel stops a process with a delay.
    const AFTER_STOP: Nanos;

    /// The least share of its CPUs that a task gets if no other task is placed there. Other users of a real machine may
    /// take all of it for a while.
    const LEAST_SHARE: f64;

    /// By how much times that a backend observed may differ from those that the scenario measured.
    const CLOSE: Nanos;

    /// A time, in ms, that is long beside what the backend needs to start a job.
    const LONG: u64;

    /// Why a run does not repeat to the last bit; `None` if it does.
    const NOT_REPEATABLE: Option<&'static str>;

    /// Why tasks run before they are placed for the first time; `None` if they do not.
    const RUNS_BEFORE: Option<&'static str> = None;

    /// A backend with these jobs, none of them started.
    ///
    /// # Errors
    /// Such jobs can't be made here.
    fn backend(&self, jobs: &[ScenarioJob]) -> Result<Self::Backend, ScenarioSkip>;

    /// The CPUs that a task's processes may use, or are on, now; empty if it has no process. Where a move takes a moment, and
    /// they are to be on some of the CPUs `wanted`, it is waited for.
    fn cpus_of(backend: &mut Self::Backend, task: usize, wanted: Option<&CpuSet>) -> CpuSet;

    /// Asserts that all processes of jobs without end go on after the backend was dropped. Panics if one does not.
    fn nothing_stands_still(&self);
}

/// Skips, with the reason, when a backend lacks a capability.
pub(crate) fn needs<B: Backend>(backend: &B, capability: Capability) -> ScenarioOutcome {
    match backend.capabilities().why_missing(capability) {
        None => Ok(()),
        Some(why) => Err(ScenarioSkip(format!(
            "{} is missing: {why}",
            capability.text()
        ))),
    }
}
