//! A world in a process of its own as the platform of a run: `--on "cmd:python3 world.py"`.

use super::simulation::{self, SoloProgress, interrupted, refused};
use super::{Arrivals, BackendOf, MachineView, Platform, SoloWork};
use crate::input::{Job, base};
use crate::options::RunOptions;
use crate::signals::Signals;
use anyhow::{Result, anyhow};
use cosched_core::{Backend as _, Capability, CpuSet, Nanos, SoloProfile};
use cosched_foreign::{Command, ForeignWorld, WorldError, WorldJob, run_alone};
use cosched_memory::CommandKey;
use cosched_report::{EnergySource, SoloSource};
use std::path::{Path, PathBuf};

/// A simulated machine in a process of its own, with the jobs that are to run on it. A fresh process is started for each solo
/// run and for the run itself.
pub(crate) struct WorldPlatform<'a> {
    options: &'a RunOptions,
    view: MachineView,
    command: Command,
    /// The CPUs of `--cpus`.
    usable: Option<CpuSet>,
    jobs: Vec<WorldJob>,
    signals: Signals,
}

/// The name of what a job does: that of its program, else its own, which its copies share.
fn name_of(job: &Job) -> String {
    job.input.program.clone().unwrap_or(base(&job.input))
}

impl WorldPlatform<'_> {
    /// Starts the world once, to see its machine, and reads the jobs.
    pub(crate) fn open<'a>(
        options: &'a RunOptions,
        command: Command,
        on: &str,
        jobs: &[Job],
        signals: Signals,
    ) -> Result<WorldPlatform<'a>> {
        let world = open(&command, options.policy.seed, &signals);
        let mut world = world.map_err(|error| match error {
            WorldError::Interrupted(signal) => interrupted(signal, &error),
            error => refused(on, &error),
        })?;
        let machine = world.machine();
        let all = machine.all_cpus();
        let usable = simulation::usable_cpus(options, &machine.name, &all)?;
        if let Some(usable) = &usable {
            world.use_cpus(usable);
        }
        let cpus = usable.as_ref().unwrap_or(&all);
        let mut told = Vec::new();
        for job in jobs {
            let (width, _) = options.machine.cpus_per_job.of(job, cpus, false)?;
            told.push(WorldJob {
                name: name_of(job),
                cpus: width,
                given: job.input.given_to_world.clone(),
            });
        }
        let capabilities = world.capabilities();
        let mut view = simulation::view(world.machine(), capabilities, Vec::new(), Vec::new());
        if view.capabilities.why_missing(Capability::Energy).is_some() {
            view.energy = EnergySource::Absent;
        }
        view.world = Some(on.to_owned());
        Ok(WorldPlatform {
            options,
            view,
            command,
            usable,
            jobs: told,
            signals,
        })
    }

    /// The world anew, without jobs.
    ///
    /// # Errors
    /// It can't be started, or is not the same as before.
    fn anew(&self) -> Result<ForeignWorld> {
        let world = open(&self.command, self.options.policy.seed, &self.signals);
        let mut world = world.map_err(Self::failure)?;
        if let Some(usable) = &self.usable {
            world.use_cpus(usable);
        }
        let is_same =
            world.machine() == self.view.machine && world.capabilities() == self.view.capabilities;
        if !is_same {
            let command = &self.command;
            return Err(anyhow!(
                "{command} has another machine each time it is started with the same seed"
            ));
        }
        Ok(world)
    }

    fn profile(&self, job: &WorldJob, trace_step: Option<Nanos>) -> Result<SoloProfile> {
        let profile = run_alone(self.anew()?, job.clone(), trace_step);
        let name = &job.name;
        profile.map_err(|error| Self::failure(error).context(format!("`{name}` alone")))
    }
}

/// Starts a world. Signals end the wait for its answers.
fn open(command: &Command, seed: u64, signals: &Signals) -> Result<ForeignWorld, WorldError> {
    let signals = signals.clone();
    ForeignWorld::open(command, seed, move || signals.next())
}

impl Platform for WorldPlatform<'_> {
    /// A simulation is made with its jobs.
    type Job = ();
    type Backend = ForeignWorld;

    fn view(&self) -> &MachineView {
        &self.view
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn job(&self, _job: &Job, _logs: &Path) -> Result<()> {
        Ok(())
    }

    /// The words of its command may be files.
    fn reads(&self, _jobs: &[(u64, Job)], _tasks: &[()]) -> Vec<PathBuf> {
        let command = self.options.machine.on.as_deref().unwrap_or_default();
        command.split_whitespace().map(PathBuf::from).collect()
    }

    fn key(&self, _job: &Job, _task: &()) -> Option<CommandKey> {
        None
    }

    fn look_anew(&self) {}

    fn shown(&self, job: &Job) -> String {
        let name = name_of(job);
        let given = serde_json::Value::Object(job.input.given_to_world.clone());
        format!("{name}, given {given}")
    }

    fn backend(&self, _of: BackendOf<'_, ()>) -> Result<ForeignWorld> {
        let mut world = self.anew()?;
        world.add(self.jobs.clone()).map_err(Self::failure)?;
        Ok(world)
    }

    fn arrivals(_backend: &mut ForeignWorld) -> Option<&mut dyn Arrivals<()>> {
        None
    }

    /// Each distinct job runs alone in a world of its own.
    fn solo_work(&self, trace_step: Option<Nanos>) -> Result<SoloWork> {
        let mut distinct: Vec<(&WorldJob, SoloProfile)> = Vec::new();
        let mut profiles = Vec::new();
        let alone = SoloProgress::new(
            self.options.output.quiet,
            self.jobs.len(),
            self.signals.clone(),
        );
        for (done, job) in self.jobs.iter().enumerate() {
            let known = distinct.iter().find(|(known, _)| *known == job);
            let profile = match known {
                Some((_, profile)) => profile.clone(),
                None => {
                    alone.show(done);
                    let profile = self.profile(job, trace_step);
                    alone.clear();
                    let profile = profile?;
                    distinct.push((job, profile.clone()));
                    profile
                }
            };
            profiles.push(profile);
        }
        Ok(SoloWork::Known {
            profiles,
            source: SoloSource::Simulated,
        })
    }

    fn late_failure(backend: &mut ForeignWorld) -> Option<WorldError> {
        backend.take_failure()
    }

    fn failure(error: WorldError) -> anyhow::Error {
        match error {
            WorldError::Interrupted(signal) => interrupted(signal, &error),
            error => anyhow::Error::new(error).context("the world can't go on"),
        }
    }
}
