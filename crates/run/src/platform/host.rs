//! This machine as the platform of a run: real processes.

use super::allotted::Allotted;
use super::host_warnings::{lost_at_start, named, not_counted, stand_ins, warning};
use super::kernel::{self, KernelPart};
use super::keys::Keys;
use super::program::{Programs, reaped, reaped_id};
use super::{Arrivals, BackendOf, MachineView, Platform, SoloWork};
use crate::cpus::{CpuChoice, usable_text};
use crate::exit::{incapable, usage};
use crate::input::spec::measured_params;
use crate::input::{Command, Job, wrong};
use crate::options::{Actuator, Freeze, MachineOptions, RunOptions, ThreadsEnv};
use anyhow::{Context as _, Result};
use cosched_core::{Capability, CpuSet, Event, Machine, Nanos, TaskId, Width};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::events::{EventOverride, MachineEvents};
use cosched_linux::identity::machine_kind;
use cosched_linux::meminfo;
use cosched_linux::root::Root;
use cosched_linux::topology::{self, Topology};
use cosched_linux::{
    Allocation, Freezing, GroupError, HeadroomLimits, Host, HostConfig, HostError, HostJob,
    JobBegin, JobProgram, PlaceAmongRuns, Share, check_open_files,
};
use cosched_memory::CommandKey;
use cosched_report::{BackendKind, EnergySource, RunWarning};
use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// This machine, as it was found before the run.
pub(crate) struct HostPlatform<'a> {
    options: &'a RunOptions,
    view: MachineView,
    counters: CounterSupport,
    freezing: Freezing,
    programs: Programs,
    keys: Keys,
    /// Its place among other runs.
    place: Rc<RefCell<PlaceAmongRuns>>,
    /// Memory that Slurm gave, where that is less than the machine and its cgroups allow.
    given: Option<u64>,
}

impl HostPlatform<'_> {
    /// Reads the machine's topology, counters and freezer, and chooses the CPUs beside other runs. They know of this one from
    /// now on, unless it is a dry run.
    pub(crate) fn look<'a>(root: &Root, run: &'a RunOptions) -> Result<HostPlatform<'a>> {
        let options = &run.machine;
        check_limit_of_files()?;
        let needing = [
            ("--polite", options.polite),
            ("--jobserver", options.jobserver),
            ("--reaper", options.reaper.is_some()),
        ];
        if let Some((option, _)) = needing.iter().find(|(_, given)| *given)
            && options.actuator != Actuator::Freezer
        {
            let why = "needs --actuator freezer; leave one of them out";
            return Err(usage(format!("{option} {why}")));
        }
        let allocation = Allocation::here().map(Allocation::with_end);
        let Part {
            whole,
            quota,
            by_slurm,
            place,
            mut warnings,
        } = part_beside_others(root, options, allocation.as_ref(), !run.dry_run)?;
        let machine = whole.part(place.cpus());
        // The CPUs of a scheduler in the kernel never change.
        let is_fixed = options.actuator != Actuator::Freezer;
        let whole = if is_fixed { machine.clone() } else { whole };
        let (counters, event_warnings) = read_counters(root, options)?;
        warnings.extend(event_warnings);
        let freezer_problem = cosched_linux::freezer_problem(root);
        let freezing = freezing(options.freeze, freezer_problem.as_ref())?;
        let mut capabilities = cosched_linux::capabilities(root, &machine, &counters, freezing);
        let mut refused = None;
        if options.actuator != Actuator::Freezer {
            capabilities.missing.remove(&Capability::Plans);
            refused = kernel::refused(root);
        }
        let memory = meminfo::read(root).ok().map(|memory| memory.allowed());
        let given = allocation.as_ref().and_then(|allocation| allocation.memory);
        let given = given.map(|(given, _)| given);
        let given = given.filter(|&given| memory.is_some_and(|memory| given < memory));
        let keys = Keys::new(machine_kind(root, &machine.name));
        let view = MachineView {
            kind: BackendKind::Host,
            machine: Arc::new(machine),
            whole: Arc::new(whole),
            quota,
            by_slurm,
            memory: memory.map(|memory| given.map_or(memory, |given| given.min(memory))),
            counters: counted(&counters),
            freezing: freezing_text(freezing).to_owned(),
            allocation,
            energy: match capabilities.why_missing(Capability::Energy) {
                None => EnergySource::Measured,
                Some(_) => EnergySource::Absent,
            },
            capabilities,
            params: measured_params(root),
            world: None,
            files: Vec::new(),
            folders: Vec::new(),
            measures_width: true,
            refused,
            warnings,
        };
        Ok(HostPlatform {
            options: run,
            view,
            counters,
            freezing,
            programs: Programs::new()?,
            keys,
            place: Rc::new(RefCell::new(place)),
            given,
        })
    }
}

fn check_limit_of_files() -> Result<()> {
    check_open_files().map_err(|limit| {
        incapable(format!(
            "{limit}; nothing was started; raise it, as in `ulimit -n 1024`"
        ))
    })
}

/// The part of the machine that this run uses.
struct Part {
    /// The machine with all CPUs that it may come to use.
    whole: Machine,
    /// What a quota leaves of its CPUs, in words.
    quota: Option<String>,
    /// What Slurm gave, a line each.
    by_slurm: Vec<String>,
    place: PlaceAmongRuns,
    warnings: Vec<RunWarning>,
}

fn part_beside_others(
    root: &Root,
    options: &MachineOptions,
    allocation: Option<&Allocation>,
    publish: bool,
) -> Result<Part> {
    let affinity =
        cosched_linux::affinity(0).context("reading the CPUs that this process may use")?;
    let listed = options.cpus.as_ref().and_then(CpuChoice::list);
    let whole = topology::read(root, &affinity, listed).map_err(|error| match listed {
        Some(_) => usage(format!("--cpus: {error}; {}", usable_text(&affinity))),
        None => error.into(),
    })?;
    let Allotted {
        topology: Topology { machine: whole, .. },
        quota,
        by_slurm,
        warning,
    } = match options.cpus {
        None => Allotted::of(root, whole, allocation),
        // What the user lists is used.
        Some(_) => Allotted::listed(whole, allocation),
    };
    // Slurm gave these CPUs to this worker alone.
    let is_alone = options.is_worker && allocation.is_some();
    let choice = options.cpus.clone().or(is_alone.then_some(CpuChoice::All));
    let all = whole.all_cpus();
    let (place, mut warnings) = beside_others(root, &all, choice.as_ref(), options, publish);
    warnings.extend(warning);
    Ok(Part {
        whole,
        quota,
        by_slurm,
        place,
        warnings,
    })
}

/// Reads what the counters can count, with the events that the user gave.
fn read_counters(
    root: &Root,
    options: &MachineOptions,
) -> Result<(CounterSupport, Vec<RunWarning>)> {
    let mut overrides = Vec::new();
    for text in &options.events {
        let event: Result<EventOverride, _> = text.parse();
        overrides.push(event.map_err(|error| usage(format!("--event {text}: {error}")))?);
    }
    let events = MachineEvents::detect(root, &overrides)
        .map_err(|error| usage(format!("--event: {error}")))?;
    let counters = probe(root, &events, Duration::ZERO)?;
    let mut warnings = Vec::new();
    warnings.extend(stand_ins(&events, &counters));
    warnings.extend(not_counted(&overrides, &counters));
    warnings.extend(lost_at_start(&counters));
    Ok((counters, warnings))
}

fn freezing(wish: Freeze, problem: Option<&GroupError>) -> Result<Freezing> {
    match (wish, problem) {
        (Freeze::Signals, _) | (Freeze::Auto, Some(_)) => Ok(Freezing::Signals),
        (Freeze::Auto | Freeze::Cgroup, None) => Ok(Freezing::Cgroup),
        (Freeze::Cgroup, Some(why)) => Err(incapable(format!(
            "--freeze cgroup: {why}; use --freeze signals"
        ))),
    }
}

fn freezing_text(freezing: Freezing) -> &'static str {
    match freezing {
        Freezing::Cgroup => "cgroup v2 freezer",
        Freezing::Signals | Freezing::Auto => "signals (SIGSTOP, SIGCONT)",
    }
}

/// The names of the events that are counted; `None` without any.
fn counted(counters: &CounterSupport) -> Option<String> {
    let mut names = Vec::new();
    for (kind, state) in counters.events.iter() {
        if state.is_value() {
            names.push(kind.name());
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

/// Chooses CPUs from those that were given, and says what the user should know of other runs on them.
fn beside_others(
    root: &Root,
    given: &CpuSet,
    choice: Option<&CpuChoice>,
    options: &MachineOptions,
    publish: bool,
) -> (PlaceAmongRuns, Vec<RunWarning>) {
    let share = match choice {
        Some(_) => Share::All,
        None if options.actuator == Actuator::Freezer => Share::Fair,
        None => Share::Kept,
    };
    let place = PlaceAmongRuns::take(root, given, share, publish);
    let mut warnings = Vec::new();
    if choice != Some(&CpuChoice::All) {
        let rivals = place.rivals();
        let cpus = place.cpus().to_string();
        if !rivals.is_empty() {
            let others = named(&rivals);
            warnings.push(RunWarning::CpusCollide { cpus, others });
        } else if place.cpus() != given {
            let others = named(place.others());
            warnings.push(RunWarning::CpusShared { cpus, others });
        }
    }
    (place, warnings)
}

impl Platform for HostPlatform<'_> {
    type Job = HostJob;
    type Backend = Host;

    fn view(&self) -> &MachineView {
        &self.view
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn job(&self, job: &Job, logs: &Path) -> Result<HostJob> {
        let key = match &self.options.machine.reaper {
            Some(folder) => Some(folder.join(reaped_id(job)?)),
            None => None,
        };
        let begin = match (job.input.adopt, &key) {
            (Some(_), None) => return Err(wrong(job, "`adopt` needs --reaper")),
            (None, None) if job.input.inherited.is_some() => {
                return Err(wrong(job, "`inherited` needs --reaper"));
            }
            (Some(adoption), Some(_)) => JobBegin::Adopt(adoption),
            (None, key) => {
                let program = self.programs.of(job, logs)?;
                JobBegin::Program(match key {
                    Some(key) => reaped(program, key, job.input.inherited.as_ref()),
                    None => program,
                })
            }
        };
        let all = self.view.whole.all_cpus();
        let (cpus, width) = self.options.machine.cpus_per_job.of(job, &all, true)?;
        Ok(HostJob {
            name: job.name.clone(),
            begin,
            cpus: (width == Width::Stated).then_some(cpus),
            key,
        })
    }

    fn reads(&self, _jobs: &[(u64, Job)], tasks: &[HostJob]) -> Vec<PathBuf> {
        let mut all = Vec::new();
        for HostJob { begin, .. } in tasks {
            let JobBegin::Program(program) = begin else {
                continue;
            };
            let cwd = program.cwd.as_deref().unwrap_or(Path::new(""));
            all.push(cwd.join(&program.path));
            if let Some(stdin) = &program.stdin {
                all.push(cwd.join(stdin));
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn key(&self, job: &Job, task: &HostJob) -> Option<CommandKey> {
        // Of an adopted job only the last part of its time is known.
        let JobBegin::Program(JobProgram { cwd, env, .. }) = &task.begin else {
            return None;
        };
        let cwd = cwd.as_deref();
        let path = env.get("PATH");
        self.keys
            .of(job, cwd, |name| self.programs.find(name, cwd, path))
    }

    fn shown(&self, job: &Job) -> String {
        let command = job.input.command.as_ref();
        command.map(Command::line).unwrap_or_default()
    }

    fn backend(&self, of: BackendOf<'_, HostJob>) -> Result<Host> {
        let options = self.options;
        let BackendOf {
            jobs,
            screen,
            requests,
            ..
        } = of;
        let part = KernelPart::of(of.choice, of.actuation);
        let tell = screen.clone();
        let machine = &self.view.machine;
        let kernel = if part == KernelPart::None {
            None
        } else {
            let all = options.machine.actuator == Actuator::SchedExtAll;
            let loaded = kernel::load(machine, &self.counters, jobs.len(), all, part, screen);
            Some(loaded?)
        };
        let limits = &options.limits;
        let cpus = machine.cpus.len();
        let headroom = HeadroomLimits {
            mem_keep: limits.kept_memory(self.view.memory).unwrap_or(0),
            given: self.given,
            guess_from: limits.guess_from(cpus),
            most_load: limits.load.map(|load| load.on(cpus)),
        };
        Ok(Host::new(HostConfig {
            root: Root::default(),
            machine: (*self.view.whole).clone(),
            place: Some(self.place.clone()),
            polite: options.machine.polite,
            jobserver: options.machine.jobserver,
            threads_env: threads_env(options, cpus),
            jobs,
            freezing: self.freezing,
            counters: self.counters.clone(),
            progress: options.output.progress_pattern.clone(),
            headroom,
            max_pause: limits.max_pause,
            ends_jobs: options.output.frames,
            kernel,
            requests,
            notice: Box::new(move |notice| tell.warn(warning(notice))),
        })?)
    }

    fn arrivals(backend: &mut Host) -> Option<&mut dyn Arrivals<HostJob>> {
        Some(backend)
    }

    fn look_anew(&self) {
        self.programs.forget();
        self.keys.forget();
    }

    fn solo_work(&self, _trace_step: Option<Nanos>) -> Result<SoloWork> {
        // Traces come from the series that every solo run writes.
        Ok(SoloWork::RunEach)
    }

    fn late_failure(_backend: &mut Host) -> Option<HostError> {
        None
    }

    fn failure(error: HostError) -> anyhow::Error {
        match error {
            HostError::System { what, source } => anyhow::Error::new(source).context(what),
            error => error.into(),
        }
    }
}

impl Arrivals<HostJob> for Host {
    fn add(&mut self, task: TaskId, job: Result<HostJob, String>) {
        match job {
            Ok(job) => Host::add(self, task, job),
            Err(why) => self.add_broken(task, why),
        }
    }

    fn post(&mut self, event: Event) {
        Host::post(self, event);
    }

    fn watch_input(&mut self, input: OwnedFd) {
        Host::watch_input(self, input);
    }

    fn wake_at_input(&mut self) {
        Host::wake_at_input(self);
    }
}

/// The maximum number of live jobs, where variables say how many threads a job should start.
pub(crate) fn threads_env(options: &RunOptions, cpus: usize) -> Option<usize> {
    let limit = options.limits.jobs;
    let most_live = limit.map_or(usize::MAX, |limit| limit.on(cpus));
    (options.machine.threads_env == ThreadsEnv::Auto).then_some(most_live)
}
