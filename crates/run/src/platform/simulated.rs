//! A simulated machine as the platform of a run. It simulates the jobs' programs by their profiles.

use super::simulation::{self, SoloProgress, interrupted, refused};
use super::{Arrivals, BackendOf, MachineView, Platform, SoloWork};
use crate::input::spec::{self, EXAMPLE_PROGRAM};
use crate::input::{Job, wrong};
use crate::options::RunOptions;
use crate::signals::Signals;
use crate::source::noted_file;
use anyhow::{Context as _, Result};
use cosched_core::{Capability, Counter, Nanos, SoloProfile};
use cosched_memory::CommandKey;
use cosched_report::{SettingFile, SoloSource};
use cosched_sim::{
    JobWork, MachineSpec, ProgramSpec, Sim, SimConfig, SimError, SimJob, least_solo_s,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The default work of a job: what it does in this time alone (Perf&Fair, section 2).
const WORK: JobWork = JobWork::SoloTime(Nanos::from_ms(100_000));

/// A simulated machine, with the jobs that are to run on it.
pub(crate) struct SimPlatform<'a> {
    options: &'a RunOptions,
    view: MachineView,
    config: SimConfig,
    signals: Signals,
    /// Empty until it is prepared: making it costs the jobs' solo runs, so it is made once, and never for a dry run.
    made: RefCell<Option<Made>>,
}

/// The simulation, once the jobs' solo runs have been simulated.
struct Made {
    sim: Sim,
    alone: SoloProgress,
}

/// The longest that a job may take alone, in years of simulated time. That takes minutes to simulate.
const MOST_YEARS: f64 = 1.0;

/// Refuses a job that would take longer alone than can be waited for.
fn check_length(machine: &MachineSpec, job: &Job, simulated: &SimJob) -> Result<()> {
    let years = least_solo_s(machine, simulated) / (365.0 * 86_400.0);
    if years <= MOST_YEARS {
        return Ok(());
    }
    Err(wrong(
        job,
        format_args!(
            "alone on {} it would take {years:.1} years; expected at most {MOST_YEARS}; nothing was started",
            machine.name
        ),
    ))
}

/// The error of a solo run, worded for the user; `on` is the machine.
fn failure_alone(alone: &SoloProgress, on: &str, error: &SimError) -> anyhow::Error {
    match alone.signal() {
        Some(signal) => interrupted(signal, error),
        None => refused(on, error),
    }
}

/// The files that a simulation reads, each once.
#[derive(Default)]
struct Files {
    all: Vec<SettingFile>,
    programs: BTreeMap<String, Arc<ProgramSpec>>,
}

impl Files {
    /// Notes a file by its content; what is built in has none.
    fn note(&mut self, kind: &str, name: &str, text: Option<String>) {
        if let Some(text) = text {
            self.all
                .push(noted_file(kind, Path::new(name), text.as_bytes()));
        }
    }

    /// The program that a job simulates; paths count from `folder`.
    fn program(&mut self, job: &Job, folder: &Path) -> Result<Arc<ProgramSpec>> {
        let input = &job.input;
        let Some(name) = &input.program else {
            return Err(wrong(
                job,
                format_args!(
                    "has no program to simulate; add one, as in program = \"{EXAMPLE_PROGRAM}\" (`cosched list programs`)"
                ),
            ));
        };
        if let Some(known) = self.programs.get(name) {
            return Ok(known.clone());
        }
        let place = format!("{}: job `{}`", input.place, job.name);
        let described = spec::program(name, folder, &place)?;
        self.note("program", name, described.text);
        let program = Arc::new(described.spec);
        self.programs.insert(name.clone(), program.clone());
        Ok(program)
    }
}

impl SimPlatform<'_> {
    /// Reads the machine and the jobs' programs.
    pub(crate) fn open<'a>(
        options: &'a RunOptions,
        on: &str,
        jobs: &[Job],
        signals: Signals,
    ) -> Result<SimPlatform<'a>> {
        let mut files = Files::default();
        let described = spec::machine(on)?;
        files.note("machine", on, described.text);
        let machine = Arc::new(described.spec);
        let all = machine.machine().all_cpus();
        let usable = simulation::usable_cpus(options, &machine.name, &all)?;
        let cpus = usable.as_ref().unwrap_or(&all);
        let mut simulated = Vec::new();
        for job in jobs {
            let (width, _) = options.machine.cpus_per_job.of(job, cpus, false)?;
            let one = SimJob {
                program: files.program(job, options.mix_folder())?,
                work: job
                    .input
                    .work_instructions
                    .map_or(WORK, JobWork::Instructions),
                cpus: width,
                nice: job.input.nice.unwrap_or(0),
            };
            check_length(&machine, job, &one)?;
            simulated.push(one);
        }
        let params = machine.params.clone();
        let config = SimConfig {
            usable,
            ..SimConfig::new(machine, simulated, options.policy.seed)
        };
        let seen = config
            .usable_machine()
            .map_err(|error| refused(on, &error))?;
        let capabilities = config.machine.capabilities(&seen);
        let view = simulation::view(Arc::new(seen), capabilities, params, files.all);
        Ok(SimPlatform {
            options,
            view,
            config,
            signals,
            made: RefCell::new(None),
        })
    }
}

/// Why a simulation has nothing to run.
const PREPARED: &str = "a simulation is prepared before it runs, and runs only once";

impl Platform for SimPlatform<'_> {
    /// A simulation is made with its jobs.
    type Job = ();
    type Backend = Sim;

    fn view(&self) -> &MachineView {
        &self.view
    }

    fn prepare(&self) -> Result<()> {
        let alone = SoloProgress::new(
            self.options.output.quiet,
            self.config.jobs.len(),
            self.signals.clone(),
        );
        let sim = Sim::watched(self.config.clone(), &mut |done| alone.look(done));
        alone.clear();
        let on = &self.view.machine.name;
        let sim = sim.map_err(|error| failure_alone(&alone, on, &error))?;
        self.made.replace(Some(Made { sim, alone }));
        Ok(())
    }

    fn job(&self, _job: &Job, _logs: &Path) -> Result<()> {
        Ok(())
    }

    fn reads(&self, jobs: &[(u64, Job)], _tasks: &[()]) -> Vec<PathBuf> {
        let folder = self.options.mix_folder();
        let mut files = Vec::new();
        for (_, job) in jobs {
            files.extend(job.input.program.as_ref().map(|name| folder.join(name)));
        }
        files.extend(self.options.machine.on.as_ref().map(PathBuf::from));
        files
    }

    fn key(&self, _job: &Job, _task: &()) -> Option<CommandKey> {
        None
    }

    fn look_anew(&self) {}

    fn shown(&self, job: &Job) -> String {
        let program = job.input.program.as_deref().unwrap_or_default();
        match job.input.work_instructions {
            Some(instructions) => format!("program {program}, {instructions} instructions"),
            None => format!("program {program}, as much as it does in 100 s alone"),
        }
    }

    fn backend(&self, _of: BackendOf<'_, ()>) -> Result<Sim> {
        let Made { mut sim, alone } = self.made.take().context(PREPARED)?;
        sim.take_signals(move || alone.next_signal());
        Ok(sim)
    }

    fn arrivals(_backend: &mut Sim) -> Option<&mut dyn Arrivals<()>> {
        None
    }

    fn solo_work(&self, trace_step: Option<Nanos>) -> Result<SoloWork> {
        let made = self.made.borrow();
        let Made { sim, alone } = made.as_ref().context(PREPARED)?;
        // If reads can't be counted, a real solo run would not have measured the bandwidth either.
        let counted = self
            .view
            .capabilities
            .why_missing(Capability::Counter(Counter::MmReads))
            .is_none();
        // Traces need the solo runs once more, so they are made only for policies that need them.
        let mut traces = Vec::new();
        if let Some(step) = trace_step {
            let found = sim.solo_traces(step, &mut |done| alone.look(done));
            alone.clear();
            let on = &self.view.machine.name;
            traces = found.map_err(|error| failure_alone(alone, on, &error))?;
        }
        let mut traces = traces.into_iter();
        let mut profiles = Vec::new();
        for solo in sim.solo_runs() {
            profiles.push(SoloProfile {
                time: Some(solo.time),
                mm_reads: counted.then_some(solo.mm_reads),
                trace: traces.next().flatten().map(Arc::new),
            });
        }
        Ok(SoloWork::Known {
            profiles,
            source: SoloSource::Simulated,
        })
    }

    fn late_failure(_backend: &mut Sim) -> Option<SimError> {
        None
    }

    fn failure(error: SimError) -> anyhow::Error {
        anyhow::Error::new(error).context("the simulation can't go on")
    }
}
