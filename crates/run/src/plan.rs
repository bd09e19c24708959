//! What a run is going to do, checked as far as it can be before anything is started.

use super::batch::Batch;
use super::bus_rate::measured_bus_rate;
use super::folder::stamp;
use super::limits::JobLimit;
use super::memory::Memory;
use super::options::{JobSource, Logs, RunOptions};
use super::platform::{MachineView, Platform};
use super::policy::{PolicyChoice, choose};
use super::prepare::{Prepared, Preparer, is_srun, tell_solo};
use super::resume::{JobLogState, Resumed, resume};
use super::screen::Screen;
use super::signals::Signals;
use super::solo::SoloWish;
use super::source::{OpenInput, RunJobs, noted_file};
use super::temporary;
use crate::input::{Arriving, Job, absolute, program_name};
use anyhow::Result;
use cosched_core::{Absence, Capabilities, Capability, JobKind, Nanos, RunConfig};
use cosched_memory::LockPatience;
use cosched_report::{RunInput, RunWarning, SettingFile};
use std::path::{Path, PathBuf};

/// A run that is ready to be started.
pub(crate) struct RunPlan<P: Platform> {
    /// All jobs, under the policy.
    pub(crate) batch: Batch<P>,
    /// The jobs with their numbers in the job log.
    pub(crate) jobs: Vec<(u64, Job)>,
    /// Takes what is to be kept of them.
    pub(crate) memory: Memory,
    pub(crate) solo: SoloWish,
    /// What the job log was, if this run resumes it.
    pub(crate) seen: JobLogState,
    /// What the user is to know of earlier runs, and of the file of solo times.
    pub(crate) warnings: Vec<RunWarning>,
    /// Where the jobs come from.
    pub(crate) input: RunInput,
    /// Standard input held the jobs or their values, or a job reads it.
    pub(crate) reads_input: bool,
    /// What else it reads: the files of the simulated machine, of programs, `--profile` and `--solo`.
    pub(crate) files: Vec<SettingFile>,
}

/// The sources of solo times, the machine's capabilities with them, and the policy. `jobs` is the kind of the jobs, `remote` that some job does its work on other machines.
pub(crate) fn choose_policy<P: Platform>(
    options: &RunOptions,
    platform: &P,
    jobs: JobKind,
    remote: bool,
) -> Result<(SoloWish, Capabilities, PolicyChoice)> {
    let view = platform.view();
    let solo = SoloWish::new(&options.solo, view.is_simulated(), &view.machine.name)?;
    let mut capabilities = view.capabilities.clone();
    solo.capabilities(&mut capabilities);
    if remote && !view.is_simulated() {
        let missing = &mut capabilities.missing;
        missing.insert(Capability::Freeze, Absence::OnlyClient);
    }
    let has_nodes = !view.machine.nodes.is_empty();
    let choice = choose(options, &capabilities, &view.params, jobs, has_nodes)?;
    Ok((solo, capabilities, choice))
}

/// What is known of these jobs, or of those that will come.
fn kind_of(
    options: &RunOptions,
    cpus: usize,
    jobs: &[(u64, Job)],
    open: Option<&OpenInput>,
) -> JobKind {
    if options.output.frames {
        // The coordinator has chosen them for this node.
        return JobKind::Any;
    }
    // `-j 8 sleep` means eight sleepers at once.
    let asked = options.limits.jobs.map_or(0, |limit| limit.on(cpus));
    let most = match open {
        None => jobs.len(),
        // Nobody knows how many jobs `-j 0` asks for.
        Some(_) if asked == usize::MAX => 0,
        Some(_) => asked,
    };
    if asked.min(most) > cpus {
        return JobKind::Crowd;
    }
    // A dry run has read all that would come.
    let would_come = options.dry_run
        && matches!(&options.jobs, JobSource::List(file) if Arriving::may_come(file));
    let come = open.map(|open| open.arriving.is_of_one_command());
    if come == Some(false) || would_come {
        return JobKind::Arriving;
    }
    // Jobs of one program that the user has named differ.
    let mut names = jobs
        .iter()
        .map(|(_, job)| (program_name(&job.input), &job.input.name));
    let first = names.next();
    if come == Some(true) || names.all(|name| Some(name) == first) {
        JobKind::Alike
    } else {
        JobKind::Any
    }
}

impl<P: Platform> RunPlan<P> {
    /// Leaves out what a resumed run has done, chooses the policy, and makes the jobs ready.
    pub(crate) fn new(options: &RunOptions, platform: &P, run: RunJobs) -> Result<RunPlan<P>> {
        let open = run.open;
        let Resumed {
            left: jobs,
            earlier,
            seen,
            mut warnings,
        } = resume(options, run.jobs)?;
        let view = platform.view();
        let cpus = view.machine.cpus.len();
        let kind = kind_of(options, cpus, &jobs, open.as_ref());
        let is_remote = jobs.iter().any(|(_, job)| is_srun(job));
        let (mut solo, capabilities, choice) = choose_policy(options, platform, kind, is_remote)?;
        warnings.append(&mut solo.warnings);
        let files = read_files(options, view, &choice, &solo);
        let logs = log_folder(options)?;
        let preparer = Preparer {
            options,
            platform,
            logs: &logs,
            choice: &choice,
        };
        let mut prepared = Vec::new();
        for (ix, (_, job)) in jobs.iter().enumerate() {
            prepared.push(preparer.prepare(ix, job)?);
        }
        if let Some(policy) = preparer.without_weights()
            && jobs.iter().any(|(_, job)| job.input.weight.is_some())
        {
            warnings.push(RunWarning::WeightsUnused { policy });
        }
        let mut memory = Memory::new(options.history.clone());
        let all = jobs.iter().map(|(_, job)| job);
        let mut all: Vec<_> = all.zip(&mut prepared).collect();
        let (known, no_history) = preparer.recall(&mut memory, LockPatience::Some, &mut all);
        warnings.extend(no_history);
        let (mut tasks, mut specs, mut infos) = (Vec::new(), Vec::new(), Vec::new());
        for ((seq, job), Prepared { task, mut spec }) in jobs.iter().zip(prepared) {
            let info = preparer.info(*seq, job, &spec);
            if let Some(time) = solo.known_time(&info) {
                tell_solo(&mut spec, time);
            }
            infos.push(info);
            tasks.push(task);
            specs.push(spec);
        }
        let count = open.is_none().then_some(jobs.len());
        let mut config = config(options, &choice, cpus, count);
        config.restart = run.restart;
        if learns_at_once(options, kind) {
            config.at_once = Some(memory.recall_rates(&known));
            config.at_once_asked = options.limits.jobs.is_some();
        }
        Ok(RunPlan {
            batch: Batch {
                choice,
                capabilities,
                config,
                open,
                tasks,
                specs,
                infos,
                known,
                earlier,
                logs,
                alone: false,
            },
            jobs,
            memory,
            solo,
            seen,
            warnings,
            input: run.input,
            reads_input: run.reads_input,
            files,
        })
    }
}

impl<P: Platform> RunPlan<P> {
    /// Whether earlier runs did all jobs.
    pub(crate) fn is_done(&self) -> bool {
        self.jobs.is_empty() && self.batch.open.is_none()
    }

    /// Measures the rate of this machine's memory if the policy would judge by another machine's, and chooses it anew.
    ///
    /// # Errors
    /// As [`measured_bus_rate`].
    pub(crate) fn measure_bus_rate(
        &mut self,
        options: &RunOptions,
        view: &MachineView,
        signals: &Signals,
    ) -> Result<()> {
        if view.is_simulated() || self.is_done() || !self.batch.choice.lacks_bus_rate() {
            return Ok(());
        }
        let params = measured_bus_rate(&Screen::new(options.output.quiet), signals)?;
        let has_nodes = !view.machine.nodes.is_empty();
        let capabilities = &self.batch.capabilities;
        self.batch.choice = choose(options, capabilities, &params, JobKind::Any, has_nodes)?;
        Ok(())
    }
}

/// The files that the run reads beside its jobs.
fn read_files(
    options: &RunOptions,
    view: &MachineView,
    choice: &PolicyChoice,
    solo: &SoloWish,
) -> Vec<SettingFile> {
    let mut files = view.files.clone();
    if let (Some(path), Some(content)) = (&options.policy.profile, &choice.profile) {
        files.push(noted_file("profile", path, content.as_bytes()));
    }
    files.extend(solo.file.clone());
    files
}

/// Results that a run keeps of jobs that come while it goes on: there may be millions.
const RESULTS: usize = 3_000;

/// Live jobs of an open list under `-j 0`.
const MOST_LIVE: usize = 5_000;

/// Live jobs a CPU under policies that share time, unless `--jobs` says otherwise. More would use more memory.
const LIVE_PER_CPU: usize = 2;

/// The same over nodes, where some of the short ones are sent ahead. The loop admits fewer to many nodes.
const LIVE_PER_SLOT: usize = 16;

/// Whether to learn how many jobs are best at once: if the user asks for it, and where `auto` chooses for jobs of one program.
fn learns_at_once(options: &RunOptions, kind: JobKind) -> bool {
    match options.limits.jobs {
        None => options.policy.name.is_none() && kind == JobKind::Alike,
        Some(limit) => limit == JobLimit::Auto,
    }
}

fn config(
    options: &RunOptions,
    choice: &PolicyChoice,
    cpus: usize,
    jobs: Option<usize>,
) -> RunConfig {
    let is_open = jobs.is_none();
    let jobs = jobs.unwrap_or(MOST_LIVE);
    let limits = &options.limits;
    let given = limits.jobs.filter(|limit| *limit != JobLimit::Auto);
    let live = match given {
        Some(limit) => limit.on(cpus),
        None if choice.entry.for_nodes => LIVE_PER_SLOT * cpus,
        None if choice.entry.time_shares => LIVE_PER_CPU * cpus,
        None => cpus,
    };
    RunConfig {
        quantum: Nanos::from_s(choice.params.number("quantum_s")),
        // `--jobs 0` sets no limit.
        jobs: if live == usize::MAX {
            jobs.max(1)
        } else {
            live
        },
        jobs_per_cpu: given.is_none().then_some(live / cpus.max(1)),
        at_once: None,
        seed: options.policy.seed,
        actuation: options.machine.actuation(),
        traffic: choice.entry.needs_traffic(&choice.params),
        results_max: if is_open { RESULTS } else { usize::MAX },
        devices: choice.entry.needs_devices(&choice.params),
        ..limits.config()
    }
}

/// The absolute path of the run's log folder.
fn log_folder(options: &RunOptions) -> Result<PathBuf> {
    let logs = match &options.output.logs {
        Logs::At(folder) => folder.clone(),
        Logs::Nowhere => temporary::folder()?,
        Logs::New => Path::new(DEFAULT_LOGS).join(stamp()),
    };
    Ok(absolute(&logs))
}

/// The folder for the log folders of runs that were given none.
const DEFAULT_LOGS: &str = "cosched-logs";
