//! What a scenario may ask of the fixture that it is played on, and the jobs that it is made of.

use cosched_core::{Backend, Capability, CpuSet, Nanos, TaskSpec};

/// Why a scenario can't be played.
#[derive(Debug)]
pub(crate) struct Skip(pub(crate) String);

/// A scenario fails by a panic.
pub(crate) type Outcome = Result<(), Skip>;

/// What a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Does {
    /// Some milliseconds of work, more or less, and exit code 0.
    Work(u32),
    /// Work without end.
    Endless,
    /// It ends with exit code 3, in a few milliseconds.
    Fails,
    /// It dies of SIGSEGV, in a few milliseconds.
    Crashes,
    /// There is nothing that could be started.
    Unstartable,
    /// It stands still of its own accord, once, for some 50 ms; then exit code 0.
    Naps,
}

/// A job of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) does: Does,
    /// CPUs that it needs: so many processes or threads do what it does.
    pub(crate) cpus: u32,
    /// CPUs that it may use.
    pub(crate) allowed: Option<CpuSet>,
}

/// A job on one CPU, whichever.
pub(crate) fn job(does: Does) -> Job {
    Job { does, cpus: 1, allowed: None }
}

/// The loop's view of the jobs.
pub(crate) fn specs(jobs: &[Job]) -> Vec<TaskSpec> {
    let spec = |(id, job): (usize, &Job)| TaskSpec {
        cpus: job.cpus,
        allowed: job.allowed.clone(),
        ..TaskSpec::new(id as u32, &name(id))
    };
    jobs.iter().enumerate().map(spec).collect()
}

/// The name of the job with this number.
pub(crate) fn name(id: usize) -> String {
    format!("job-{id}")
}

/// Where scenarios are played: what differs between backends.
pub(crate) trait Fixture {
    type Backend: Backend;

    /// What a task may still use after it was stopped: a process is stopped when the kernel next looks at it.
    const AFTER_STOP: Nanos;

    /// The least share of its CPUs that a task gets when nobody else is placed there; other users of a real machine may
    /// leave it nothing for a while.
    const LEAST_SHARE: f64;

    /// Why a run does not repeat to the last bit, where it does not.
    const NOT_REPEATABLE: Option<&'static str>;

    /// A backend with these jobs, none of them started.
    fn backend(&self, jobs: &[Job]) -> Result<Self::Backend, Skip>;

    /// The CPUs that a task's processes may use, or are on, now; none where nothing of it is there.
    fn cpus_of(backend: &mut Self::Backend, task: usize) -> CpuSet;

    /// After the backend was dropped, and its jobs are without end: all that is left of them goes on. Panics where
    /// something does not.
    fn nothing_stands_still(&self);
}

/// Skips, with the reason, when a backend lacks a capability.
pub(crate) fn needs<B: Backend>(backend: &B, capability: Capability) -> Outcome {
    match backend.capabilities().why_missing(capability) {
        None => Ok(()),
        Some(why) => Err(Skip(format!("{} can't be had: {why}", capability.text()))),
    }
}
