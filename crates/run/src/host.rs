//! This machine as the platform of a run: real processes.

use super::cpus::CpuChoice;
use super::folder::output_files;
use super::gauge::Gauge;
use super::kernel;
use super::keys::Keys;
use super::options::{Actuator, Freeze, MachineOptions, RunOptions};
use super::platform::{KernelPart, Platform, RunIdentity, SoloWork, View};
use super::screen::Screen;
use crate::exit::{incapable, no_program, usage};
use crate::input::{COMMAND_LINE, Command, Job, told};
use anyhow::Context as _;
use cosched_core::{Absence, Backend as _, Capability, CpuSet, Machine, Nanos};
use cosched_linux::counters::{CounterSupport, probe};
use cosched_linux::events::{EventOverride, MachineEvents};
use cosched_linux::identity::machine_kind;
use cosched_linux::root::Root;
use cosched_linux::topology;
use cosched_linux::{
    Environment, Freezing, GroupError, Host, HostConfig, HostError, HostJob, Notice, Program,
    Requests, Seat, Share, check_open_files, find_program, own_run,
};
use cosched_memory::Key;
use cosched_report::{BackendKind, EnergySource, Given, RunWarning};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// This machine, as it was found before the run.
pub(crate) struct HostPlatform {
    view: View,
    counters: CounterSupport,
    freezing: Freezing,
    /// This process's own environment, which jobs share.
    env: Arc<Environment>,
    found: Found,
    keys: Keys,
    /// The CPUs of this run, as other runs see them.
    _seat: Option<Seat>,
}

impl HostPlatform {
    /// Reads the machine's topology, counters and freezer, and chooses the CPUs beside other runs. With `publish` other
    /// runs know of this one from now on.
    pub(crate) fn look(
        root: &Root,
        options: &MachineOptions,
        publish: bool,
    ) -> anyhow::Result<HostPlatform> {
        check_limit_of_files()?;
        let (machine, chosen, mut warnings) = machine_beside_others(root, options, publish)?;
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
        let keys = Keys::new(machine_kind(root, &machine.name));
        let view = View {
            kind: BackendKind::Host,
            machine: Arc::new(machine),
            counters: counted(&counters),
            freezing: freezing_text(freezing).to_owned(),
            energy: match capabilities.why_missing(Capability::Energy) {
                None => EnergySource::Measured,
                Some(_) => EnergySource::Absent,
            },
            capabilities,
            params: Vec::new(),
            files: Vec::new(),
            measures_width: true,
            refused,
            warnings,
        };
        let env = Environment::new(std::env::vars_os()).context("reading the environment")?;
        Ok(HostPlatform {
            view,
            counters,
            freezing,
            env: Arc::new(env),
            found: Found::default(),
            keys,
            _seat: chosen.seat,
        })
    }
}

fn check_limit_of_files() -> anyhow::Result<()> {
    check_open_files().map_err(|limit| {
        incapable(format!(
            "{limit}; nothing was started; raise the limit, as in `ulimit -n 1024`, or have it raised"
        ))
    })
}

/// Reads the part of the machine that this run uses.
fn machine_beside_others(
    root: &Root,
    options: &MachineOptions,
    publish: bool,
) -> anyhow::Result<(Machine, cosched_linux::Chosen, Vec<RunWarning>)> {
    let affinity =
        cosched_linux::affinity(0).context("reading the CPUs that this process may use")?;
    let listed = options.cpus.as_ref().and_then(CpuChoice::list);
    let whole = topology::read(root, &affinity, listed).map_err(|error| match listed {
        Some(_) => usage(format!(
            "--cpus: {error}; {affinity} can be used, as in --cpus {}",
            affinity.first().map_or(0, |cpu| cpu.0)
        )),
        None => anyhow::Error::new(error),
    })?;
    let cpus = whole.machine.all_cpus();
    let (chosen, warnings) = beside_others(root, &cpus, options.cpus.as_ref(), publish);
    if chosen.cpus == cpus {
        return Ok((whole.machine, chosen, warnings));
    }
    let part = topology::read(root, &affinity, Some(&chosen.cpus))?;
    Ok((part.machine, chosen, warnings))
}

/// Reads what the counters can count, with the events that the user gave.
fn read_counters(
    root: &Root,
    options: &MachineOptions,
) -> anyhow::Result<(CounterSupport, Vec<RunWarning>)> {
    let mut overrides: Vec<EventOverride> = Vec::new();
    for text in &options.events {
        let event = text.parse();
        overrides.push(event.map_err(|error| usage(format!("--event {text}: {error}")))?);
    }
    let events = MachineEvents::detect(root, &overrides)
        .map_err(|error| usage(format!("--event: {error}")))?;
    let counters = probe(root, &events)?;
    let warnings = event_warnings(&overrides, &events, &counters);
    Ok((counters, warnings))
}

fn freezing(wish: Freeze, problem: Option<&GroupError>) -> anyhow::Result<Freezing> {
    match (wish, problem) {
        (Freeze::Signals, _) | (Freeze::Auto, Some(_)) => Ok(Freezing::Signals),
        (Freeze::Auto | Freeze::Cgroup, None) => Ok(Freezing::Cgroup),
        (Freeze::Cgroup, Some(why)) => Err(incapable(format!(
            "--freeze cgroup: {why}; --freeze signals works everywhere"
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
    let counted = counters.events.iter().filter(|(_, state)| state.is_value());
    let names: Vec<&str> = counted.map(|(kind, _)| kind.name()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Chooses CPUs from those that were given, and says what the user should know of other runs on them.
fn beside_others(
    root: &Root,
    given: &CpuSet,
    choice: Option<&CpuChoice>,
    publish: bool,
) -> (cosched_linux::Chosen, Vec<RunWarning>) {
    let share = if choice.is_none() {
        Share::Free
    } else {
        Share::All
    };
    let chosen = cosched_linux::choose_cpus(root, given, share, publish);
    let others = chosen.others.iter();
    let others = others
        .map(|other| (other.pid, other.cpus.to_string()))
        .collect();
    let warning = if chosen.others.is_empty() || choice == Some(&CpuChoice::All) {
        None
    } else if chosen.cpus == *given {
        let cpus = given.to_string();
        Some(RunWarning::CpusCollide { cpus, others })
    } else {
        let cpus = chosen.cpus.to_string();
        Some(RunWarning::CpusShared { cpus, others })
    };
    (chosen, warning.into_iter().collect())
}

impl Platform for HostPlatform {
    type Job = HostJob;
    type Backend = Host;

    const SOLO_BY_DEFAULT: bool = false;
    const HAS_OUTPUT: bool = true;
    const MARK: &'static str = "";
    const UNMEASURED: Absence = Absence::NotTold;

    fn given(job: &Job) -> Given {
        job.input.given()
    }

    fn identity(backend: &mut Host) -> RunIdentity {
        let elapsed = Duration::from_nanos(backend.now().0);
        RunIdentity {
            run_id: own_run(&Root::default()),
            started_at: Some(SystemTime::now() - elapsed),
        }
    }

    fn gauge(&self) -> Option<Gauge> {
        Some(Gauge::start(self.view.machine.all_cpus()))
    }

    fn view(&self) -> &View {
        &self.view
    }

    fn prepare(&self) -> anyhow::Result<()> {
        Ok(())
    }

    fn job(&self, job: &Job, logs: &Path) -> anyhow::Result<HostJob> {
        Ok(HostJob {
            name: job.name.clone(),
            program: program(job, logs, &self.env, &self.found)?,
        })
    }

    fn reads(_options: &RunOptions, _jobs: &[(u64, Job)], tasks: &[HostJob]) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> = Vec::new();
        for HostJob { program, .. } in tasks {
            let from = program.cwd.as_deref().unwrap_or(Path::new(""));
            let its = [Some(&program.path), program.stdin.as_ref()]
                .into_iter()
                .flatten()
                .map(|path| from.join(path));
            all.extend(its);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    fn key(&self, job: &Job, task: &HostJob) -> Option<Key> {
        let HostJob { program, .. } = task;
        let find = |name: &OsStr| match name {
            name if name == "cosched" => std::env::current_exe().ok(),
            name => self
                .found
                .program(name, program.cwd.as_deref(), program.env.get("PATH")),
        };
        self.keys.of(job, program.cwd.as_deref(), find)
    }

    fn shown(&self, job: &Job) -> String {
        job.input
            .command
            .as_ref()
            .map_or_else(String::new, Command::line)
    }

    fn backend(
        &self,
        options: &RunOptions,
        part: KernelPart,
        jobs: Vec<HostJob>,
        screen: &Screen,
        requests: Option<Requests>,
    ) -> anyhow::Result<Host> {
        let tell = screen.clone();
        let kernel = match part {
            KernelPart::None => None,
            part => Some(kernel::load(
                &self.view.machine,
                &self.counters,
                jobs.len(),
                options.machine.actuator == Actuator::SchedExtAll,
                part,
                |warning| {
                    screen.warn(warning);
                },
            )?),
        };
        Ok(Host::new(HostConfig {
            root: Root::default(),
            machine: (*self.view.machine).clone(),
            jobs,
            freezing: self.freezing,
            counters: self.counters.clone(),
            mem_keep: options.limits.mem_keep,
            most_load: options
                .limits
                .load
                .map(|load| load.on(self.view.machine.cpus.len())),
            max_pause: options.limits.max_pause,
            kernel,
            requests,
            notice: Box::new(move |notice| tell.warn(warning(notice))),
        })?)
    }

    fn solo_work(&self, _trace_step: Option<Nanos>) -> anyhow::Result<SoloWork> {
        // Traces come from the series that every solo run writes.
        Ok(SoloWork::RunEach)
    }

    fn failure(error: HostError) -> anyhow::Error {
        match error {
            HostError::System { what, source } => anyhow::Error::new(source).context(what),
            error => error.into(),
        }
    }
}

/// What is to be known of the events that the user gave.
fn event_warnings(
    given: &[EventOverride],
    events: &MachineEvents,
    counters: &CounterSupport,
) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    for entry in events.pmus.iter().filter(|entry| entry.is_of_kernel()) {
        let events = entry.table.events.iter();
        let told: Vec<String> = events
            .filter(|(counter, _)| counters.of(**counter).is_value())
            .map(|(counter, event)| format!("{counter}: {}", event.name()))
            .collect();
        if !told.is_empty() {
            warnings.push(RunWarning::StandIn { events: told });
        }
    }
    for problem in &counters.problems {
        let is_given = given.iter().any(|own| own.counter == problem.counter);
        if is_given && !counters.of(problem.counter).is_value() {
            let why = problem.to_string();
            warnings.push(RunWarning::NotCounted { why });
        }
    }
    warnings
}

/// What was found for a job and is the same for others: where jobs are many, most call the same program.
#[derive(Default)]
struct Found {
    programs: RefCell<HashMap<Search, Option<PathBuf>>>,
    /// By the variables that are added to our own.
    environments: RefCell<HashMap<BTreeMap<String, String>, Arc<Environment>>>,
}

/// A name, the working directory and the value of `PATH`.
type Search = (OsString, Option<PathBuf>, Option<OsString>);

impl Found {
    fn program(&self, name: &OsStr, cwd: Option<&Path>, path: Option<&OsStr>) -> Option<PathBuf> {
        let key = (
            name.to_owned(),
            cwd.map(Path::to_owned),
            path.map(OsStr::to_owned),
        );
        self.programs
            .borrow_mut()
            .entry(key)
            .or_insert_with(|| find_program(name, cwd, path))
            .clone()
    }

    /// Our own environment with these variables.
    fn environment(
        &self,
        added: &BTreeMap<String, String>,
    ) -> Result<Arc<Environment>, std::io::Error> {
        if let Some(known) = self.environments.borrow().get(added) {
            return Ok(known.clone());
        }
        let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        for (name, value) in added {
            all.insert(name.into(), value.into());
        }
        let environment = Arc::new(Environment::new(all)?);
        self.environments
            .borrow_mut()
            .insert(added.clone(), environment.clone());
        Ok(environment)
    }
}

/// The program to start for a job. The name `cosched` means this same binary.
fn program(
    job: &Job,
    logs: &Path,
    own: &Arc<Environment>,
    found: &Found,
) -> anyhow::Result<Program> {
    let input = &job.input;
    let Some(command) = &input.command else {
        return Err(wrong(
            job,
            "has a program to simulate but no command to run; add one, as in command = [\"gzip\", \"a\"], or simulate it \
             with --on MACHINE (`cosched list machines`)",
        ));
    };
    let env = match input.env.is_empty() {
        true => own.clone(),
        false => found
            .environment(&input.env)
            .map_err(|error| wrong(job, format_args!("env {error}")))?,
    };
    let cwd = working_folder(job)?;
    let stdin = input.absolute_stdin();
    let (path, args) = match command {
        Command::Shell(line) => (line.program().to_owned(), line.words()),
        Command::Argv(words) => {
            let path = match words[0].as_os_str() {
                name if name == "cosched" => std::env::current_exe().ok(),
                name => found.program(name, cwd.as_deref(), env.get("PATH")),
            };
            let path = path.ok_or_else(|| missing_program(job, &words[0], cwd.as_deref()))?;
            (path, words.clone())
        }
    };
    if let Some(file) = &stdin {
        check_stdin(job, file)?;
    }
    let [stdout, stderr] = output_files(logs, &job.name);
    Ok(Program {
        path,
        args,
        env,
        cwd,
        stdin,
        stdout,
        stderr,
        again: false,
    })
}

/// An error of the input about a job.
fn wrong(job: &Job, what: impl std::fmt::Display) -> anyhow::Error {
    usage(format!("{}: job `{}`: {what}", job.input.place, job.name))
}

fn working_folder(job: &Job) -> anyhow::Result<Option<PathBuf>> {
    match job.input.absolute_cwd() {
        Some(cwd) if !cwd.is_dir() => {
            let name = told(cwd.as_os_str());
            Err(wrong(job, format_args!("cwd {name} is not a folder")))
        }
        cwd => Ok(cwd),
    }
}

/// The error for a program that cannot be started, with the exit code of the shell, `nice` and `time`.
fn missing_program(job: &Job, word: &OsStr, cwd: Option<&Path>) -> anyhow::Error {
    let input = &job.input;
    let name = told(word);
    let is_path = word.as_encoded_bytes().contains(&b'/');
    if let Some(why) = unfit(word, cwd).filter(|_| is_path) {
        let why = format!("{}: job `{}`: {why}", input.place, job.name);
        return no_program(126, input.is_only, why);
    }
    let within = if is_path { "" } else { " in PATH" };
    let remedy = if input.place == COMMAND_LINE {
        "check the name, or give its path, as in ./tool; a line for the shell is one word, as in 'wc -l {}', and several \
         commands are given with -f FILE"
    } else {
        "check the name, or give its path, as in command = [\"./tool\"]"
    };
    let why = format!(
        "{}: job `{}`: there is no program `{name}`{within}; {remedy}",
        input.place, job.name
    );
    no_program(127, input.is_only, why)
}

/// Why a file that is there is no program.
fn unfit(word: &OsStr, cwd: Option<&Path>) -> Option<String> {
    let name = told(word);
    match cwd.unwrap_or(Path::new("")).join(word).metadata() {
        Ok(there) if there.is_file() => Some(format!("{name} is not executable (chmod +x {name})")),
        Ok(_) => Some(format!(
            "{name} is a folder or a device, no program; check the name"
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => Some(format!("{name}: {error}; check the path")),
    }
}

/// Refuses standard input that can't be read, and a named pipe: opening it waits for its writer. The job may wait for that, the
/// run must not.
fn check_stdin(job: &Job, file: &Path) -> anyhow::Result<()> {
    let name = told(file);
    let fail = |error: std::io::Error| wrong(job, format_args!("stdin {name}: {error}"));
    if file.metadata().map_err(fail)?.file_type().is_fifo() {
        return Err(wrong(
            job,
            format_args!(
                "stdin {name} is a named pipe; let a shell read it, as in command = \"sort < {name}\""
            ),
        ));
    }
    std::fs::File::open(file).map(drop).map_err(fail)
}

/// The warning for a notice of the backend.
fn warning(notice: Notice) -> RunWarning {
    match notice {
        Notice::Mended(mended) => RunWarning::Mended {
            groups: mended.groups.len(),
            continued: mended.continued.len(),
        },
        Notice::StoppedItself { job } => RunWarning::StoppedItself { job },
        Notice::Continued { job } => RunWarning::Continued { job },
        Notice::Lingers { job, processes } => RunWarning::Lingers { job, processes },
        Notice::GuardianReplaced => RunWarning::GuardianReplaced,
        Notice::NoGuardian(why) => RunWarning::NoGuardian { why },
        Notice::NoList(why) => RunWarning::NoList { why },
        Notice::NoGroup { job, why } => RunWarning::NoGroup { job, why },
        Notice::FreezeFailed { job, why } => RunWarning::FreezeFailed { job, why },
        Notice::LeftScheduler { job, processes } => RunWarning::LeftScheduler { job, processes },
        Notice::NotTaken { job, why } => RunWarning::NotTaken { job, why },
        Notice::CountersFailed { job, why } => RunWarning::CountersFailed { job, why },
    }
}
