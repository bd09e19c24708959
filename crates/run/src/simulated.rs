//! A simulated machine as the platform of a run. It simulates the jobs' programs by their profiles.

use super::cpus::CpuChoice;
use super::gauge::Gauge;
use super::interruptible::Interruptible;
use super::options::{Actuator, Freeze, RunOptions, Source};
use super::platform::{KernelPart, Platform, RunIdentity, SoloWork, View};
use super::screen::Screen;
use super::setting::file;
use crate::exit::{Exit, Failure, usage};
use crate::input::{Job, spec, told};
use anyhow::Context as _;
use cosched_core::{Absence, Capabilities, Capability, Counter, CpuSet, Nanos, SoloProfile};
use cosched_linux::{Interrupt, Interrupts, Requests};
use cosched_memory::Key;
use cosched_report::{BackendKind, EnergySource, Given, SettingFile, SoloSource};
use cosched_sim::{MachineSpec, ProgramSpec, Sim, SimConfig, SimError, SimJob, Work, least_solo_s};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
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
    leaves_signals: bool,
    /// Empty until it is prepared: making it costs the jobs' solo runs, so it is made once, and never for a dry run.
    made: OnceCell<Made>,
}

/// The simulation, once the jobs' solo runs have been simulated.
struct Made {
    /// `None` once the run has begun.
    sim: RefCell<Option<Sim>>,
    alone: Alone,
}

/// The longest that a job may take alone: a year of simulated time. Simulating that takes minutes, and whoever asks for
/// more has most likely mistyped a figure.
const LONGEST_S: f64 = 365.0 * 86_400.0;

/// Refuses a job that would take longer alone than can be waited for.
fn check_length(machine: &MachineSpec, job: &Job, simulated: &SimJob) -> anyhow::Result<()> {
    let Some(instructions) = job.input.work_instructions else {
        return Ok(());
    };
    let least_s = least_solo_s(machine, simulated);
    if least_s <= LONGEST_S {
        return Ok(());
    }
    // Rounded down to two digits, as people write such figures.
    let most = instructions as f64 * (LONGEST_S / least_s);
    let mut unit = 1.0;
    while most / unit >= 100.0 {
        unit *= 10.0;
    }
    Err(usage(format!(
        "{}: job `{}` has {:e} instructions, and {} executes at most {:.2e} of them a second for it: alone it would take \
         {:.1} years; expected at most one, as in work_instructions = {:e}; nothing was started",
        job.input.place,
        job.name,
        instructions as f64,
        machine.name,
        instructions as f64 / least_s,
        least_s / LONGEST_S,
        (most / unit).floor() * unit,
    )))
}

/// The user's view of the jobs' solo runs, which are simulated before the run: progress, and Ctrl-C to end them.
struct Alone {
    screen: Screen,
    jobs: usize,
    since: Instant,
    /// `None` if the caller takes signals, or once the run has taken them over.
    interrupts: RefCell<Option<Interrupts>>,
    /// The signal that ended the solo runs.
    signal: Cell<Option<i32>>,
}

impl Alone {
    /// From now on signals such as Ctrl-C are held back until they are asked for, unless they are left to the caller.
    fn new(platform: &SimPlatform) -> anyhow::Result<Alone> {
        let interrupts = if platform.leaves_signals {
            None
        } else {
            Some(Interrupts::hold().context("taking signals")?)
        };
        Ok(Alone {
            screen: Screen::new(platform.quiet),
            jobs: platform.config.jobs.len(),
            since: Instant::now(),
            interrupts: RefCell::new(interrupts),
            signal: Cell::new(None),
        })
    }

    /// Shows how many solo runs are `done`; returns whether a signal came.
    fn look(&self, done: usize) -> bool {
        if self.since.elapsed() > PATIENCE {
            self.screen
                .progress(|_| format!("simulating {} jobs alone: {done} done", self.jobs));
        }
        let interrupt = self
            .interrupts
            .borrow()
            .as_ref()
            .and_then(Interrupts::next_signal);
        match interrupt {
            Some(Interrupt::End(signal)) => self.signal.set(Some(signal)),
            // It is not held back, and does what it always does.
            Some(Interrupt::Suspend) | None => {}
        }
        matches!(interrupt, Some(Interrupt::End(_)))
    }

    /// The error of a solo run, worded for the user; `on` is the machine.
    fn failure(&self, on: &str, error: &SimError) -> anyhow::Error {
        match self.signal.get() {
            Some(signal) => Failure {
                exit: Exit::Signal(signal),
                message: error.to_string(),
            }
            .into(),
            None => refused(on, error),
        }
    }
}

/// The error that nothing can be simulated; `on` is the machine.
fn refused(on: &str, error: &SimError) -> anyhow::Error {
    usage(format!("--on {}: {error}; nothing was started", told(on)))
}

/// Solo runs that take less than this show no progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// Refuses what has no meaning in a simulation.
pub(crate) fn check_options(options: &RunOptions, on: &str) -> anyhow::Result<()> {
    let RunOptions {
        machine,
        limits,
        output,
        ..
    } = options;
    let given = [
        ("--freeze", machine.freeze != Freeze::Auto),
        ("--actuator", machine.actuator != Actuator::Freezer),
        ("--event", !machine.events.is_empty()),
        ("--mem-keep", limits.mem_keep.is_some()),
        ("--load", limits.load.is_some()),
        ("--output", output.show.is_some()),
        ("--keep-order", output.keep_order),
        ("--metrics", output.metrics.is_some()),
        ("--shell", options.shell.is_some()),
        ("--resume", options.resume.is_some()),
    ];
    let on = told(on);
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{option} has no meaning in a simulation (--on {on}); leave it out, or use --on host"
        )));
    }
    let has_commands = match &options.jobs {
        Source::Mix(_) => false,
        Source::List(_) => true,
        Source::Command(words, _) => !words.is_empty(),
    };
    if has_commands {
        return Err(usage(format!(
            "--on {on}: commands can't be simulated; give a mix file whose jobs have a `program`, as in `cosched run \
             mix.toml --on {on}` with program = \"{}\"",
            spec::example_program()
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
    fn program(&mut self, job: &Job, folder: &Path) -> anyhow::Result<Arc<ProgramSpec>> {
        let input = &job.input;
        let Some(name) = &input.program else {
            return Err(usage(format!(
                "{}: job `{}` has a command to run but no program to simulate; add one, as in program = \"{}\" \
                 (`cosched list programs` shows them all)",
                input.place,
                job.name,
                spec::example_program()
            )));
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
fn usable_cpus(
    options: &RunOptions,
    machine: &str,
    all: &CpuSet,
) -> anyhow::Result<Option<CpuSet>> {
    let listed = options.machine.cpus.as_ref().and_then(CpuChoice::list);
    if let Some(cpus) = listed.filter(|cpus| cpus.is_empty() || !cpus.is_subset(all)) {
        return Err(usage(format!(
            "--cpus {cpus}: not all of them exist on {machine}; {all} can be used, as in --cpus {}",
            all.first().map_or(0, |cpu| cpu.0)
        )));
    }
    Ok(listed.cloned())
}

/// What can be counted, in words; `None` if nothing can.
fn counted(capabilities: &Capabilities) -> Option<String> {
    let all = Counter::ALL.into_iter().map(Capability::of);
    let mut counted: Vec<&str> = all
        .filter(|&capability| capabilities.why_missing(capability).is_none())
        .map(Capability::text)
        .collect();
    // Several counters can be one capability.
    counted.dedup();
    (!counted.is_empty()).then(|| format!("simulated ({})", counted.join(", ")))
}

impl SimPlatform {
    /// Reads the machine and the jobs' programs.
    pub(crate) fn open(
        options: &RunOptions,
        on: &str,
        jobs: &[Job],
    ) -> anyhow::Result<SimPlatform> {
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
                nice: 0,
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
        let view = View {
            kind: BackendKind::Sim,
            machine: Arc::new(seen),
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
            leaves_signals: options.leaves_signals,
            made: OnceCell::new(),
        })
    }

    fn made(&self) -> anyhow::Result<&Made> {
        self.made
            .get()
            .context("a simulation is prepared before it runs")
    }
}

impl Platform for SimPlatform {
    /// The simulation was made with its jobs.
    type Job = ();
    type Backend = Interruptible<Sim>;

    /// Solo runs in a simulation take almost no time.
    const SOLO_BY_DEFAULT: bool = true;
    const HAS_OUTPUT: bool = false;
    const MARK: &'static str = "[simulated] ";
    const UNMEASURED: Absence = Absence::Simulated;

    fn given(_job: &Job) -> Given {
        Given::default()
    }

    fn identity(_backend: &mut Interruptible<Sim>) -> RunIdentity {
        RunIdentity::default()
    }

    fn gauge(&self) -> Option<Gauge> {
        None
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn prepare(&self) -> anyhow::Result<()> {
        let alone = Alone::new(self)?;
        let sim = Sim::watched(self.config.clone(), &mut |done| alone.look(done));
        alone.screen.clear();
        let sim = sim.map_err(|error| alone.failure(&self.view.machine.name, &error))?;
        let made = Made {
            sim: RefCell::new(Some(sim)),
            alone,
        };
        self.made
            .set(made)
            .map_err(|_| anyhow::anyhow!("a simulation is prepared only once"))
    }

    fn job(&self, _job: &Job, _logs: &Path) -> anyhow::Result<()> {
        Ok(())
    }

    fn reads(options: &RunOptions, jobs: &[(u64, Job)], _tasks: &[()]) -> Vec<PathBuf> {
        let folder = options.mix_folder();
        let programs = jobs
            .iter()
            .filter_map(|(_, job)| job.input.program.as_ref())
            .map(|name| folder.join(name));
        let machine = options.machine.on.as_ref().map(PathBuf::from);
        programs.chain(machine).collect()
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
    ) -> anyhow::Result<Interruptible<Sim>> {
        let made = self.made()?;
        let sim = made.sim.take().context("a simulation runs only once")?;
        let interrupts = made.alone.interrupts.take();
        Ok(Interruptible::new(sim, interrupts))
    }

    fn solo_work(&self, trace_step: Option<Nanos>) -> anyhow::Result<SoloWork> {
        let Made { sim, alone } = self.made()?;
        let sim = sim.borrow();
        let sim = sim.as_ref().context("a simulation runs only once")?;
        // If reads can't be counted, a real solo run would not have measured the bandwidth either.
        let counted = self
            .view
            .capabilities
            .why_missing(Capability::Counter(Counter::MmReads))
            .is_none();
        // Traces need the solo runs once more, so they are made only for policies that need them.
        let traces = trace_step
            .map(|step| sim.solo_traces(step, &mut |done| alone.look(done)))
            .transpose();
        alone.screen.clear();
        let traces = traces.map_err(|error| alone.failure(&self.view.machine.name, &error))?;
        let mut traces = traces.into_iter().flatten();
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
