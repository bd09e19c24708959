//! Information on a run beside its result: its setup, its jobs, and how it was measured.

use crate::machine_load::{MachineUse, disturbances};
use crate::record::EarlierJob;
use crate::setting::{JobGiven, RunSetting};
use crate::source::{BackendKind, EnergySource, SoloSource};
use crate::text::{clip, visible};
use crate::warning::RunWarning;
use cosched_core::{
    ByTask, Capabilities, EarlierPhases, Machine, Nanos, Reading, TaskId, TaskSpec,
};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::SystemTime;

/// A job's time alone on the machine.
#[derive(Clone, Copy, Debug)]
pub struct SoloTime {
    /// Time from its start to its end.
    pub time: Nanos,
    /// Where the time comes from.
    pub source: SoloSource,
}

/// Maximum length of a command in messages.
const LONGEST_COMMAND: usize = 120;

/// Information on one job beside its result.
#[derive(Clone, Debug)]
pub struct JobInfo {
    /// Its unique name.
    pub name: String,
    /// What the user calls it, where the user did.
    pub id: Option<String>,
    /// Its number in the job log, from 1: its place in the list of all jobs, before `--resume` left any out.
    pub seq: u64,
    /// The profile that it simulates, if any.
    pub program: Option<String>,
    /// Its command as a shell would take it, if it has one. `--resume` identifies jobs by it.
    pub command: Option<String>,
    /// What else it was given.
    pub given: JobGiven,
    /// Its values in one line, or its name: what stands before its output with `--tag`.
    pub tag: Option<String>,
    /// Its solo time; if `None`, the time in the task's own solo profile is used.
    pub solo: Option<SoloTime>,
    /// Its solo run failed, so that there is no solo time.
    pub solo_failed: bool,
    /// Where it ran; `None` for the host of the run.
    pub host: Option<String>,
    /// What that host has learnt of its demands.
    pub learnt: Option<Arc<EarlierPhases>>,
    /// The file that its standard output went to.
    pub log: Option<String>,
    /// The file that its standard error went to.
    pub log_stderr: Option<String>,
}

impl JobInfo {
    /// Information on a task of which only the specification is known.
    pub fn of(spec: &TaskSpec) -> JobInfo {
        JobInfo {
            name: spec.name.clone(),
            id: None,
            seq: u64::from(spec.id.0) + 1,
            program: None,
            command: None,
            given: JobGiven::default(),
            tag: None,
            solo: None,
            solo_failed: false,
            host: None,
            learnt: None,
            log: None,
            log_stderr: None,
        }
    }

    /// Its name and its command, for messages: in one short line without control characters. A job that can be simulated
    /// is named after its program, so its name is enough.
    pub fn what(&self) -> String {
        let name = visible(&self.name);
        match &self.command {
            Some(command) if *command != self.name && self.program.is_none() => {
                format!("{name} ({})", clip(&visible(command), LONGEST_COMMAND))
            }
            _ => name,
        }
    }

    /// Its command in the job log, or its name if it has no command.
    pub fn command_or_name(&self) -> &str {
        self.command.as_deref().unwrap_or(&self.name)
    }
}

/// What is known of each job, shared by who takes jobs in and who reports on them.
pub type JobInfos = Rc<RefCell<ByTask<JobInfo>>>;

/// Information on a run beside its result.
#[derive(Debug)]
pub struct RunInfo {
    /// The policy that decided, never `auto`.
    pub policy: String,
    /// Real processes, or a simulation.
    pub backend: BackendKind,
    /// Unique identity of the run on its host; `None` in a simulation.
    pub run_id: Option<String>,
    /// How the run was started.
    pub setting: RunSetting,
    /// The machine, restricted to the CPUs that could be used.
    pub machine: Arc<Machine>,
    /// Seed of the run's generator.
    pub seed: u64,
    /// The unit of progress.
    pub quantum: Nanos,
    /// When the run began; `None` in a simulation.
    pub started_at: Option<SystemTime>,
    /// Every job, in the order of the tasks' numbers.
    pub jobs: Vec<JobInfo>,
    /// The capabilities that the run lacked.
    pub capabilities: Capabilities,
    /// The counters in use, in words; `None` if there are none.
    pub counters: Option<String>,
    /// How jobs are frozen, in words; `None` if they can't be.
    pub freezing: Option<String>,
    /// CPU time of cosched itself / (turnaround x 1 CPU), in [0, 1] for its one thread.
    pub cpu_share: Reading<f64>,
    /// Use of the run's CPUs, or why that is not known.
    pub machine_use: Reading<MachineUse>,
    /// Jobs of the batch that earlier runs did.
    pub earlier: Vec<EarlierJob>,
    /// Where the energy figure comes from, if there is one.
    pub energy_source: EnergySource,
    /// The warnings that the user has seen.
    pub warnings: Vec<RunWarning>,
}

impl RunInfo {
    /// What is known of the jobs that are known before the run.
    pub fn job_infos(&self) -> JobInfos {
        let jobs = (0..).map(TaskId).zip(self.jobs.iter().cloned());
        Rc::new(RefCell::new(jobs.collect()))
    }

    /// Warnings that the run's figures are not to be trusted; `alone` if its jobs ran one by one for solo times.
    pub fn disturbances(&self, alone: bool) -> Vec<RunWarning> {
        disturbances(self.machine_use, alone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_told_with_their_command() {
        let info = |name: &str, command: Option<&str>| JobInfo {
            name: name.to_owned(),
            command: command.map(str::to_owned),
            ..JobInfo::of(&TaskSpec::new(0, name))
        };
        assert_eq!(
            info("a.txt", Some("gzip a.txt")).what(),
            "a.txt (gzip a.txt)"
        );
        assert_eq!(
            (info("mcf", None).what(), info("true", Some("true")).what()),
            ("mcf".into(), "true".into())
        );
        assert_eq!(
            info("x", Some("echo '\u{1b}[2J\n'")).what(),
            r"x (echo '\x1b[2J\n')"
        );
        assert_eq!(
            info("x", Some(&"y".repeat(1_000))).what().chars().count(),
            4 + LONGEST_COMMAND
        );
    }
}
