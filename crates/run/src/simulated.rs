//! A simulated machine as the platform of a run. It simulates the jobs' programs by their profiles.

use super::cpus::{CpuChoice, usable_text};
use super::gauge::Gauge;
use super::options::{Actuator, Freeze, RunOptions, Show, Source};
use super::platform::{KernelPart, Platform, RunIdentity, SoloWork, View};
use super::screen::Screen;
use super::setting::file;
use super::signals::Signals;
use crate::exit::{Exit, Failure, usage};
use crate::input::spec::{self, EXAMPLE_PROGRAM};
use crate::input::{Job, told, wrong};
use anyhow::{Context as _, Result};
use cosched_core::{
    Absence, Capabilities, Capability, Counter, CpuSet, Event, Nanos, SoloProfile, TaskId,
};
use cosched_linux::Requests;
use cosched_memory::Key;
use cosched_report::{BackendKind, EnergySource, Given, JobInfos, SettingFile, SoloSource};
use cosched_sim::{MachineSpec, ProgramSpec, Sim, SimConfig, SimError, SimJob, Work, least_solo_s};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default work of a job: what it does in this time alone (Perf&Fair, section 2).
const WORK: Work = Work::SoloTime(Nanos::from_ms(100_000));

/// A simulated machine, with the jobs that are to run on it.
pub(crate) struct SimPlatform {
    view: View,
    config: SimConfig,
    quiet: bool,
    signals: Signals,
    /// Empty until it is prepared: making it costs the jobs' solo runs, so it is made once, and never for a dry run.
    made: RefCell<Option<Made>>,
}

/// The simulation, once the jobs' solo runs have been simulated.
struct Made {
    sim: Sim,
    alone: Alone,
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

/// The user's view of the jobs' solo runs, which are simulated before the run: progress, and Ctrl-C to end them.
struct Alone {
    screen: Screen,
    jobs: usize,
    since: Instant,
    signals: Signals,
    /// The signal that ended the solo runs.
    signal: Cell<Option<i32>>,
}

impl Alone {
    fn new(platform: &SimPlatform) -> Alone {
        Alone {
            screen: Screen::new(platform.quiet),
            jobs: platform.config.jobs.len(),
            since: Instant::now(),
            signals: platform.signals.clone(),
            signal: Cell::new(None),
        }
    }

    /// Shows how many solo runs are `done`; returns whether a signal came.
    fn look(&self, done: usize) -> bool {
        if self.since.elapsed() > PATIENCE {
            self.screen
                .progress(|_| format!("simulating {} jobs alone: {done} done", self.jobs));
        }
        let signal = self.signals.next();
        if signal.is_some() {
            self.signal.set(signal);
        }
        signal.is_some()
    }

    /// The error of a solo run, worded for the user; `on` is the machine.
    fn failure(&self, on: &str, error: &SimError) -> anyhow::Error {
        let Some(signal) = self.signal.get() else {
            return refused(on, error);
        };
        let failure = Failure {
            exit: Exit::Signal(signal),
            message: error.to_string(),
        };
        failure.into()
    }
}

/// The error that nothing can be simulated; `on` is the machine.
fn refused(on: &str, error: &SimError) -> anyhow::Error {
    usage(format!("--on {}: {error}; nothing was started", told(on)))
}

/// Solo runs that take less than this show no progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refuses what has no meaning in a simulation.
pub(crate) fn check_options(options: &RunOptions, on: &str) -> Result<()> {
    let RunOptions {
        machine,
        limits,
        output,
        ..
    } = options;
    let given = [
        ("--freeze", machine.freeze != Freeze::Auto),
        ("--actuator", machine.actuator != Actuator::Freezer),
        ("--polite", machine.polite),
        ("--jobserver", machine.jobserver),
        ("--event", !machine.events.is_empty()),
        ("--mem-keep", limits.mem_keep.is_some()),
        ("--load", limits.load.is_some()),
        (
            "--output",
            output.show.is_some_and(|show| show != Show::Nothing),
        ),
        ("--keep-order", output.keep_order),
        ("--metrics", output.metrics.is_some()),
        ("--progress-pattern", output.progress_pattern.is_some()),
        ("--shell", options.shell.is_some()),
        ("--workdir", options.cwd.is_some()),
        ("--nice", options.nice.is_some()),
        ("--resume", options.resume.is_some()),
    ];
    let on = told(on);
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{option} has no meaning in a simulation (--on {on}); leave it out"
        )));
    }
    let has_commands = match &options.jobs {
        Source::Mix(_) => false,
        Source::List(_) => true,
        Source::Command(words, _) => !words.is_empty(),
    };
    if has_commands {
        return Err(usage(format!(
            "--on {on}: commands can't be simulated; give a mix file whose jobs have a `program`, as in program = \"{EXAMPLE_PROGRAM}\""
        )));
    }
    Ok(())
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
            self.all.push(file(kind, Path::new(name), text.as_bytes()));
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

/// The CPUs of `--cpus`; `None` without it.
fn usable_cpus(options: &RunOptions, machine: &str, all: &CpuSet) -> Result<Option<CpuSet>> {
    let listed = options.machine.cpus.as_ref().and_then(CpuChoice::list);
    if let Some(cpus) = listed
        && (cpus.is_empty() || !cpus.is_subset(all))
    {
        let usable = usable_text(all);
        return Err(usage(format!(
            "--cpus {cpus}: not all of them exist on {machine}; {usable}"
        )));
    }
    Ok(listed.cloned())
}

/// What can be counted, in words; `None` if nothing can.
fn counted(capabilities: &Capabilities) -> Option<String> {
    let mut counted = Vec::new();
    for capability in Counter::ALL.into_iter().map(Capability::of) {
        if capabilities.why_missing(capability).is_none() {
            counted.push(capability.text());
        }
    }
    // Several counters can be one capability.
    counted.dedup();
    if counted.is_empty() {
        return None;
    }
    let counted = counted.join(", ");
    Some(format!("simulated ({counted})"))
}

impl SimPlatform {
    /// Reads the machine and the jobs' programs.
    pub(crate) fn open(
        options: &RunOptions,
        on: &str,
        jobs: &[Job],
        signals: Signals,
    ) -> Result<SimPlatform> {
        let mut files = Files::default();
        let described = spec::machine(on)?;
        files.note("machine", on, described.text);
        let machine = Arc::new(described.spec);
        let all = machine.machine().all_cpus();
        let usable = usable_cpus(options, &machine.name, &all)?;
        let cpus = usable.as_ref().unwrap_or(&all);
        let mut simulated = Vec::new();
        for job in jobs {
            let (width, _) = options.machine.cpus_per_job.of(job, cpus, false)?;
            let one = SimJob {
                program: files.program(job, options.mix_folder())?,
                work: job.input.work_instructions.map_or(WORK, Work::Instructions),
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
        let seen = Arc::new(seen);
        let view = View {
            kind: BackendKind::Sim,
            whole: seen.clone(),
            machine: seen,
            quota: None,
            by_slurm: Vec::new(),
            allocation: None,
            memory: None,
            counters: counted(&capabilities),
            capabilities,
            params,
            freezing: "simulated".to_owned(),
            // The report has a modelled figure even if policies have no meter to read.
            energy: EnergySource::Modelled,
            measures_width: false,
            refused: None,
            files: files.all,
            warnings: Vec::new(),
        };
        Ok(SimPlatform {
            view,
            config,
            quiet: options.output.quiet,
            signals,
            made: RefCell::new(None),
        })
    }
}

/// Why a simulation has nothing to run.
const PREPARED: &str = "a simulation is prepared before it runs, and runs only once";

impl Platform for SimPlatform {
    /// The simulation was made with its jobs.
    type Job = ();
    type Backend = Sim;

    /// Solo runs in a simulation take almost no time.
    const SOLO_BY_DEFAULT: bool = true;
    const HAS_OUTPUT: bool = false;
    const HAS_FILES: bool = false;
    const MARK: &'static str = "[simulated] ";
    const UNMEASURED: Absence = Absence::Simulated;

    fn given(_job: &Job) -> Given {
        Given::default()
    }

    fn identity(_backend: &mut Sim) -> RunIdentity {
        RunIdentity::default()
    }

    fn folders(&self) -> &[String] {
        &[]
    }

    fn gauge(&self) -> Option<Gauge> {
        None
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn prepare(&self) -> Result<()> {
        let alone = Alone::new(self);
        let sim = Sim::watched(self.config.clone(), &mut |done| alone.look(done));
        alone.screen.clear();
        let sim = sim.map_err(|error| alone.failure(&self.view.machine.name, &error))?;
        self.made.replace(Some(Made { sim, alone }));
        Ok(())
    }

    fn job(&self, _job: &Job, _logs: &Path) -> Result<()> {
        Ok(())
    }

    fn reads(options: &RunOptions, jobs: &[(u64, Job)], _tasks: &[()]) -> Vec<PathBuf> {
        let folder = options.mix_folder();
        let mut files = Vec::new();
        for (_, job) in jobs {
            files.extend(job.input.program.as_ref().map(|name| folder.join(name)));
        }
        files.extend(options.machine.on.as_ref().map(PathBuf::from));
        files
    }

    fn key(&self, _job: &Job, _task: &()) -> Option<Key> {
        None
    }

    fn shown(&self, job: &Job) -> String {
        let program = job.input.program.as_deref().unwrap_or_default();
        match job.input.work_instructions {
            Some(instructions) => format!("program {program}, {instructions} instructions"),
            None => format!("program {program}, as much as it does in 100 s alone"),
        }
    }

    fn backend(
        &self,
        _options: &RunOptions,
        _part: KernelPart,
        _jobs: Vec<()>,
        _screen: &Screen,
        _requests: Option<Requests>,
        _logs: &Path,
    ) -> Result<Sim> {
        let Made { mut sim, alone } = self.made.take().context(PREPARED)?;
        sim.take_signals(move || alone.signals.next());
        Ok(sim)
    }

    fn note_hosts(_backend: &mut Self::Backend, _infos: &JobInfos) {}

    fn add(_: &mut Sim, _: TaskId, _: Result<Self::Job, String>) {
        unreachable!("a simulation knows its jobs beforehand")
    }

    fn post(_: &mut Sim, _: Event) {
        unreachable!("a simulation knows its jobs beforehand")
    }

    fn watch_input(_: &mut Sim, _: OwnedFd) {
        unreachable!("a simulation knows its jobs beforehand")
    }

    fn wake_at_input(_: &mut Sim) {
        unreachable!("a simulation knows its jobs beforehand")
    }

    fn look_anew(&self) {}

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
            alone.screen.clear();
            traces = found.map_err(|error| alone.failure(&self.view.machine.name, &error))?;
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

    fn failure(error: SimError) -> anyhow::Error {
        anyhow::Error::new(error).context("the simulation can't go on")
    }
}
