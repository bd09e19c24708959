//! Makes jobs ready to be started: their programs, their tasks for the loop, and what is known of them.

use super::folder::{output_files, reaped_files};
use super::limits::JobLimit;
use super::memory::{Known, Memory};
use super::options::RunOptions;
use super::platform::{MachineView, Platform};
use super::policy::PolicyChoice;
use crate::exit::incapable;
use crate::input::{Command, Job, program_words};
use anyhow::Result;
use cosched_core::{
    Absence, Actuation, Expected, ExpectedFrom, Nanos, Origin, SoloProfile, TaskSpec,
};
use cosched_memory::LockPatience;
use cosched_report::{JobGiven, JobInfo, RunWarning};
use std::ffi::OsStr;
use std::path::Path;

/// Makes the jobs of a run ready.
pub(crate) struct Preparer<'a, P> {
    pub(crate) options: &'a RunOptions,
    pub(crate) platform: &'a P,
    /// The log folder.
    pub(crate) logs: &'a Path,
    /// The policy that decides.
    pub(crate) choice: &'a PolicyChoice,
}

/// Whether a job is a client of Slurm, whose work is done elsewhere.
pub(crate) fn is_srun(job: &Job) -> bool {
    let words = job.input.command.as_ref().map(program_words);
    let first = words.and_then(|words| words.into_iter().next());
    first.is_some_and(|word| Path::new(&word).file_name() == Some(OsStr::new("srun")))
}

/// A job that can be started.
pub(crate) struct Prepared<P: Platform> {
    /// In the platform's own form.
    pub(crate) task: P::Job,
    pub(crate) spec: TaskSpec,
}

impl<P: Platform> Preparer<'_, P> {
    /// The program and the task of the job with this number.
    ///
    /// # Errors
    /// The job can't run here.
    pub(crate) fn prepare(&self, id: usize, job: &Job) -> Result<Prepared<P>> {
        if is_srun(job) && self.choice.freezes() {
            let Job { name, .. } = job;
            let policy = self.choice.entry.name;
            let why = Absence::OnlyClient;
            return Err(incapable(format!(
                "job `{name}`: policy {policy} freezes jobs, and {why}; use --policy fifo"
            )));
        }
        Ok(Prepared {
            spec: self.spec(id, job)?,
            task: self.platform.job(job, self.logs)?,
        })
    }

    fn spec(&self, id: usize, job: &Job) -> Result<TaskSpec> {
        let view = self.platform.view();
        let cpus = view.whole.all_cpus();
        let per_job = self.options.machine.cpus_per_job;
        let spec = per_job.spec(id, job, &cpus, view.measures_width)?;
        let weighs = self.without_weights().is_none();
        Ok(TaskSpec {
            // Other runs may use some of the CPUs now.
            cpus: spec.cpus.min(view.machine.cpus.len() as u32),
            arrives: Nanos::from_s(job.input.start_s),
            origin: match job.input.adopt {
                Some(_) => Origin::Adopted,
                None => Origin::Spawned,
            },
            bus_use_milli: job.input.bus_use_milli,
            program: job.input.program.as_deref().map(Into::into),
            weight: if weighs { job.input.weight() } else { 1.0 },
            solo: SoloProfile::default(),
            ..spec
        })
    }

    /// What decides, if it does not use weights.
    pub(crate) fn without_weights(&self) -> Option<String> {
        let entry = self.choice.entry;
        let is_in_kernel =
            entry.can_hand_over && self.options.machine.actuation() == Actuation::Plans;
        if is_in_kernel {
            Some(format!("{} in the kernel", entry.name))
        } else if entry.weighs {
            None
        } else {
            Some(entry.name.to_owned())
        }
    }

    /// Lets tasks begin with what earlier runs know of their jobs, and returns that.
    pub(crate) fn recall(
        &self,
        memory: &mut Memory,
        patience: LockPatience,
        jobs: &mut [(&Job, &mut Prepared<P>)],
    ) -> (Vec<Option<Known>>, Option<RunWarning>) {
        let remembers = self.options.history.is_some();
        let limit = self.options.limits.jobs;
        let is_needed = remembers || limit.is_none_or(|limit| limit == JobLimit::Auto);
        let mut keys = Vec::new();
        for (job, prepared) in jobs.iter_mut() {
            let key = is_needed.then(|| self.platform.key(job, &prepared.task));
            let key = key.flatten();
            if let Some(key) = &key {
                prepared.spec.program = Some(key.program.as_ref().into());
            }
            keys.push(key.filter(|_| remembers));
        }
        let (known, warning) = memory.recall(keys, patience);
        for ((job, prepared), known) in jobs.iter_mut().zip(&known) {
            if let Some(known) = known {
                known.tell(&mut prepared.spec);
            }
            tell_stated(&mut prepared.spec, job);
        }
        (known, warning)
    }

    /// What the record says of a job beside its result. `seq` is its number in the job log.
    pub(crate) fn info(&self, seq: u64, job: &Job, spec: &TaskSpec) -> JobInfo {
        let view = self.platform.view();
        let given = if view.is_simulated() {
            JobGiven::default()
        } else {
            job.input.given()
        };
        let mut info = JobInfo {
            seq,
            id: job.input.id.clone(),
            program: job.input.program.clone(),
            command: job.input.command.as_ref().map(Command::line),
            given,
            tag: Some(job.tag()),
            ..JobInfo::of(spec)
        };
        match (&self.options.machine.reaper, &job.input.id) {
            (Some(reaper), Some(id)) => {
                let files = reaped_files(&reaper.join(id));
                [info.log, info.log_stderr] = files.map(|file| Some(file.display().to_string()));
            }
            _ if self.options.output.keeps_logs() => note_files(&mut info, view, self.logs),
            _ => {}
        }
        info
    }
}

/// Lets a task begin with what the user says of its job.
fn tell_stated(spec: &mut TaskSpec, job: &Job) {
    spec.memory = job.input.mem;
    if let Some(time_s) = job.input.expected_s {
        expect(spec, Nanos::from_s(time_s), ExpectedFrom::Told);
    }
}

/// Lets a task begin with the time that its job took alone, unless the user has stated another.
pub(crate) fn tell_solo(spec: &mut TaskSpec, time: Nanos) {
    let is_stated = spec
        .expected
        .is_some_and(|expected| expected.from == ExpectedFrom::Told);
    if !is_stated {
        expect(spec, time, ExpectedFrom::Solo);
    }
}

/// Replaces the expected time. What the history knows of the memory stays.
fn expect(spec: &mut TaskSpec, time: Nanos, from: ExpectedFrom) {
    let memory = spec.expected.and_then(|expected| expected.memory);
    spec.expected = Some(Expected {
        memory,
        ..Expected::of(time, from)
    });
}

/// Notes the files of a job's output in a folder, for the record.
pub(crate) fn note_files(info: &mut JobInfo, view: &MachineView, folder: &Path) {
    if view.has_job_files() {
        let files = output_files(folder, &info.name);
        [info.log, info.log_stderr] = files.map(|file| Some(file.display().to_string()));
    }
}
