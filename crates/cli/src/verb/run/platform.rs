//! Where a run takes place: this machine or a simulated one, behind one trait. All that differs between the two is in its
//! implementations, `host` and `simulated`; everything else is shared.

use super::args::{Requirement, RunArgs};
use super::screen::Screen;
use crate::exit::incapable;
use crate::input::Job;
use cosched_core::{Backend, Capabilities, CpuSet, Machine, Nanos, SoloProfile};
use cosched_report::{BackendKind, EnergySource, SoloSource};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known of a machine before a run.
pub(crate) struct View {
    /// Real processes, or a simulation.
    pub(crate) kind: BackendKind,
    /// The machine, restricted to the CPUs that may be used.
    pub(crate) machine: Arc<Machine>,
    /// What it can't do. Solo bandwidths are missing until jobs have run alone.
    pub(crate) capabilities: Capabilities,
    /// Parameters of policies that belong to the machine, as its file says; none on this machine.
    pub(crate) params: Vec<(String, String)>,
    /// What counts, in words; `None` without counters.
    pub(crate) counters: Option<String>,
    /// What freezes jobs, in words.
    pub(crate) freezing: String,
    /// Where an energy figure would come from.
    pub(crate) energy: EnergySource,
}

impl View {
    pub(crate) fn is_simulated(&self) -> bool {
        self.kind == BackendKind::Sim
    }
}

/// Why something that was required can't be had.
pub(crate) struct Problem {
    /// More permissions would help.
    pub(crate) is_permission: bool,
    /// The reason, in words.
    pub(crate) why: String,
    /// What would help, for the end of the message.
    pub(crate) hint: &'static str,
}

/// What has to be done to learn how each job does alone.
pub(crate) enum SoloWork {
    /// Nothing: the platform knows it already.
    Known {
        /// What each job does alone, in the order of the jobs, with its time.
        profiles: Vec<SoloProfile>,
        /// Where the times come from.
        source: SoloSource,
    },
    /// Each distinct job has to be run alone.
    RunEach,
}

/// A machine on which jobs can run.
pub(crate) trait Platform {
    /// What it needs to know of a job.
    type Job: Clone;
    /// What carries out decisions while a run goes on.
    type Backend: Backend;

    /// Whether solo times are found out even if nobody asks for them.
    const SOLO_BY_DEFAULT: bool;

    /// What is known of its machine.
    fn view(&self) -> &View;

    /// Why a requirement is not met; `None` if it is met.
    fn lacks(&self, requirement: Requirement) -> Option<Problem>;

    /// What it needs to know of a job, checked as far as it can be before anything is started. The job's output goes to
    /// files in `logs`.
    ///
    /// # Errors
    /// The job can't run here.
    fn job(&self, job: &Job, logs: &Path) -> anyhow::Result<Self::Job>;

    /// The files that a job's standard output and standard error go to; `None` if it writes nothing.
    fn files(job: &Self::Job) -> Option<(PathBuf, PathBuf)>;

    /// What a job runs, for a person.
    fn shown(&self, job: &Job) -> String;

    /// Gets everything ready for these jobs; nothing is started yet.
    ///
    /// # Errors
    /// The machine can't be used.
    fn backend(&self, args: &RunArgs, jobs: Vec<Self::Job>, screen: &Screen) -> anyhow::Result<Self::Backend>;

    /// What has to be done to learn how each job does alone. With `trace_step` solo traces are wanted as well, with one
    /// point for each of this length.
    ///
    /// # Errors
    /// What the platform does by itself for it failed, or the user interrupted it.
    fn solo_work(&self, trace_step: Option<Nanos>) -> anyhow::Result<SoloWork>;

    /// An error of its backend, for a person.
    fn failure(error: <Self::Backend as Backend>::Error) -> anyhow::Error;
}

/// Refuses a job that needs more CPUs at once than there are.
pub(crate) fn check_width(job: &Job, cpus: &CpuSet) -> anyhow::Result<()> {
    let input = &job.input;
    if input.cpus as usize <= cpus.len() {
        return Ok(());
    }
    Err(incapable(format!(
        "{}: job `{}` needs cpus = {}, and {} can be used here ({cpus}); use a smaller number, as in cpus = 1",
        input.place,
        job.name,
        input.cpus,
        cpus.len(),
    )))
}
