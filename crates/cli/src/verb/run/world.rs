//! Where a run takes place: this machine or a simulated one, behind one trait. All that differs is in its two
//! implementations, `host` and `simulated`; everything else is shared.

use super::args::{Requirement, RunArgs};
use super::execute::Run;
use super::screen::Screen;
use crate::exit::{Exit, incapable};
use crate::input::Job;
use cosched_core::{Backend, Capabilities, CpuSet, Machine};
use cosched_report::{BackendKind, EnergySource};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known of a machine before a run.
pub(crate) struct View {
    /// Real processes, or a simulation.
    pub(crate) kind: BackendKind,
    /// The machine, restricted to the CPUs that may be used.
    pub(crate) machine: Arc<Machine>,
    /// What it can't do; solo bandwidths are among it until jobs have run alone.
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
    /// With more permissions it could.
    pub(crate) is_permission: bool,
    pub(crate) why: String,
    /// What would help, for the end of the message.
    pub(crate) hint: &'static str,
}

/// A world in which jobs can run.
pub(crate) trait World {
    /// What it needs to know of a job.
    type Job: Clone;
    /// The world itself while a run goes on.
    type Backend: Backend;

    /// What is known of its machine.
    fn view(&self) -> &View;

    /// Whether jobs are run alone when nobody says where solo times come from.
    const SOLO_BY_DEFAULT: bool;

    /// Why a requirement is not met, if it is not.
    fn lacks(&self, requirement: Requirement) -> Option<Problem>;

    /// What it needs to know of a job, checked as far as it can be before anything is started.
    fn job(&self, job: &Job, logs: &Path) -> anyhow::Result<Self::Job>;

    /// The files that a job's standard output and standard error go to.
    fn files(job: &Self::Job) -> Option<(PathBuf, PathBuf)>;

    /// What a job is, for a person.
    fn shown(&self, job: &Job) -> String;

    /// Gets everything ready for these jobs; nothing is started yet.
    fn backend(&self, args: &RunArgs, jobs: Vec<Self::Job>, screen: &Screen) -> anyhow::Result<Self::Backend>;

    /// Runs every job alone, and notes solo times and bandwidths; an exit if the user has had enough.
    fn alone(&self, run: &mut Run<'_, Self>) -> anyhow::Result<Option<Exit>>
    where
        Self: Sized;

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
