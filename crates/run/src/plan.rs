//! What a run is going to do, checked as far as it can be before anything is started.

use super::limits::JobLimit;
use super::memory::{Known, Memory};
use super::options::{Logs, RunOptions, SoloSource, Source};
use super::platform::Platform;
use super::policy::{Choice, choose};
use super::prepare::{Prepared, Preparer, is_srun, tell_solo};
use super::resume::{Resumed, Seen};
use super::setting;
use super::stamp::stamp;
use super::stream::Open;
use super::temporary;
use crate::exit::{incapable, usage};
use crate::input::{Arriving, Job, absolute, program_name, told};
use anyhow::Result;
use cosched_core::{
    Absence, Capabilities, Capability, Counter, Importance, JobKind, Nanos, RunConfig, TaskSpec,
};
use cosched_memory::LockPatience;
use cosched_report::{
    EarlierJob, JobInfo, RECORD_SCHEMA, Record, RunInput, RunWarning, SOLO_SCHEMA, SettingFile,
    SoloFile, schema_of,
};
use std::path::{Path, PathBuf};

/// A run that is ready to be started.
pub(crate) struct Plan<P: Platform> {
    pub(crate) choice: Choice,
    /// The machine's capabilities, and those that solo runs or a file of solo profiles provide.
    pub(crate) capabilities: Capabilities,
    pub(crate) config: RunConfig,
    /// Jobs that come while the run goes on. There are no others then.
    pub(crate) open: Option<Open>,
    /// The jobs with their numbers in the job log.
    pub(crate) jobs: Vec<(u64, Job)>,
    /// The jobs in the platform's own form.
    pub(crate) tasks: Vec<P::Job>,
    pub(crate) specs: Vec<TaskSpec>,
    /// What is known about the jobs before the run.
    pub(crate) infos: Vec<JobInfo>,
    /// What is known of each job from earlier runs; `None` where nothing is kept of it.
    pub(crate) known: Vec<Option<Known>>,
    /// Takes what is to be kept of them.
    pub(crate) memory: Memory,
    pub(crate) logs: PathBuf,
    pub(crate) solo: SoloWish,
    /// Jobs that earlier runs did.
    pub(crate) earlier: Vec<EarlierJob>,
    /// What the job log was, if this run resumes it.
    pub(crate) seen: Seen,
    /// What the user is to know of earlier runs, and of the file of solo times.
    pub(crate) warnings: Vec<RunWarning>,
    /// Where the jobs come from.
    pub(crate) input: RunInput,
    /// Standard input held the jobs or their values, or a job reads it.
    pub(crate) reads_input: bool,
    /// What else it reads: the files of the simulated machine, of programs, `--profile` and `--solo`.
    pub(crate) files: Vec<SettingFile>,
}

/// Where solo times come from.
#[derive(Default)]
pub(crate) struct SoloWish {
    /// Whether each job runs alone first.
    pub(crate) alone: bool,
    /// Solo profiles of an earlier run. They replace those of solo runs.
    pub(crate) known: Option<SoloFile>,
    /// The file that they are from.
    file: Option<SettingFile>,
    /// Why the file's times may not be those of this run.
    warnings: Vec<RunWarning>,
}

impl SoloWish {
    /// The sources that the command line asks for, for a run on `machine`. In a simulation jobs run alone first even if it
    /// asks for nothing: that takes almost no time.
    fn new(given: &SoloSource, is_simulated: bool, machine: &str) -> Result<SoloWish> {
        let is_measured = matches!(given, SoloSource::Measured | SoloSource::OnlyMeasured);
        let alone = is_simulated || is_measured;
        let SoloSource::File(name) = given else {
            return Ok(SoloWish {
                alone,
                ..SoloWish::default()
            });
        };
        let text = crate::input::read_text(name)?;
        let known = read_solo(&text)
            .map_err(|problem| usage(format!("--solo {}: {problem}", told(name))))?;
        let mut warnings = Vec::new();
        if known.disturbed {
            let why = "others used the CPUs, or heat slowed them, when the --solo file was made";
            let why = why.to_owned();
            warnings.push(RunWarning::SoloDisturbed { why });
        }
        if known.machine != machine {
            warnings.push(RunWarning::SoloOtherMachine {
                there: known.machine.clone(),
                here: machine.to_owned(),
            });
        }
        Ok(SoloWish {
            alone,
            known: Some(known),
            file: Some(setting::file("solo", name, text.as_bytes())),
            warnings,
        })
    }

    /// The time that a job took alone, by the file.
    fn known_time(&self, info: &JobInfo) -> Option<Nanos> {
        let known = self.known.as_ref()?;
        let profile = known.profile(&info.name, info.command.as_deref(), &info.given)?;
        profile.time
    }

    /// Sets the capabilities for solo bandwidths and solo traces. They are there if solo runs or a file of solo
    /// profiles will supply them; whether they do so for every job is checked later.
    fn capabilities(&self, capabilities: &mut Capabilities) {
        // A backend knows nothing about earlier runs.
        let missing = &mut capabilities.missing;
        missing
            .entry(Capability::SoloTrace)
            .or_insert(Absence::NoSoloTrace);
        let is_profiled = self.known.as_ref().is_some_and(SoloFile::has_counters);
        for (solo, counted) in SOLO_CAPABILITIES {
            let lack = missing.get(&counted).copied();
            if is_profiled || self.alone && lack.is_none() {
                missing.remove(&solo);
            } else if self.alone
                && let Some(why) = lack
            {
                missing.insert(solo, why);
            }
        }
    }
}

/// What is measured alone, and what must be counted for it.
const SOLO_CAPABILITIES: [(Capability, Capability); 2] = [
    (
        Capability::SoloBandwidth,
        Capability::Counter(Counter::MmReads),
    ),
    (Capability::SoloTrace, Capability::Ipc),
];

/// Parses solo profiles, or a record for the solo times that it has.
fn read_solo(text: &str) -> Result<SoloFile, String> {
    let expected =
        format!("expected solo profiles (`{SOLO_SCHEMA}`) or a run record (`{RECORD_SCHEMA}`)");
    let schema = schema_of(text).map_err(|error| format!("{error}; {expected}"))?;
    let schema = schema.ok_or_else(|| format!("{expected}; found no `schema`"))?;
    let known = if schema.starts_with("cosched.solo/") {
        SoloFile::from_json(text)
    } else if schema.starts_with("cosched.run/") {
        Record::from_json(text).map(|record| SoloFile::of_record(&record))
    } else {
        return Err(format!("{expected}; found `{schema}`"));
    };
    let known = known.map_err(|error| error.to_string())?;
    if known.jobs.is_empty() {
        return Err("it has no solo time; make one with `cosched run --solo measure`".to_owned());
    }
    Ok(known)
}

/// Checks that the solo profile of each job has what the policy needs.
pub(crate) fn require_solo(choice: &Choice, specs: &[TaskSpec]) -> Result<()> {
    for need in (choice.entry.needs)(&choice.params) {
        let mut lacking = Vec::new();
        for spec in specs {
            let has = match need.capability {
                Capability::SoloBandwidth => spec.solo.mm_reads.is_some(),
                Capability::SoloTrace => spec.solo.trace.is_some(),
                _ => true,
            };
            if !has {
                lacking.push(spec.name.as_str());
            }
        }
        if need.importance == Importance::Required && !lacking.is_empty() {
            let policy = choice.entry.name;
            let need = need.capability.text();
            let more = lacking.len().saturating_sub(5);
            lacking.truncate(5);
            let jobs = lacking.join(", ");
            let more = match more {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return Err(incapable(format!(
                "policy {policy} needs the {need}, which is missing for {jobs}{more}; give --solo measure"
            )));
        }
    }
    Ok(())
}

/// The sources of solo times, the machine's capabilities with them, and the policy. `jobs` is the kind of the jobs, `remote` that some job does its work on other machines.
pub(crate) fn policy<P: Platform>(
    options: &RunOptions,
    platform: &P,
    jobs: JobKind,
    remote: bool,
) -> Result<(SoloWish, Capabilities, Choice)> {
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
fn kind_of(options: &RunOptions, jobs: &[(u64, Job)], open: Option<&Open>) -> JobKind {
    // A dry run has read all that would come.
    let would_come =
        options.dry_run && matches!(&options.jobs, Source::List(file) if Arriving::may_come(file));
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

impl<P: Platform> Plan<P> {
    pub(crate) fn new(
        options: &RunOptions,
        platform: &P,
        resumed: Resumed,
        input: RunInput,
        open: Option<Open>,
    ) -> Result<Plan<P>> {
        let Resumed {
            left: jobs,
            earlier,
            seen,
            mut warnings,
        } = resumed;
        let view = platform.view();
        let machine = &view.machine;
        let cpus = machine.cpus.len();
        // `-j 8 sleep` means eight sleepers at once.
        let asked = options.limits.jobs.map_or(0, |limit| limit.on(cpus));
        let count = open.is_none().then_some(jobs.len());
        // Of an open list nobody knows how many jobs `-j 0` asks for.
        let most = count.unwrap_or(if asked == usize::MAX { 0 } else { asked });
        let kind = if options.output.frames {
            // The coordinator has chosen them for this node.
            JobKind::Any
        } else if asked.min(most) > cpus {
            JobKind::Crowd
        } else {
            kind_of(options, &jobs, open.as_ref())
        };
        let is_remote = jobs.iter().any(|(_, job)| is_srun(job));
        let (mut solo, capabilities, choice) = policy(options, platform, kind, is_remote)?;
        warnings.append(&mut solo.warnings);
        let mut files = view.files.clone();
        if let (Some(path), Some(content)) = (&options.policy.profile, &choice.profile) {
            files.push(setting::file("profile", path, content.as_bytes()));
        }
        files.extend(solo.file.clone());
        let logs = log_folder(options)?;
        let preparer = Preparer {
            options,
            platform,
            logs: &logs,
            policy: choice.entry,
            freezes: choice.freezes(),
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
        let mut config = config(options, &choice, cpus, count);
        if learns_at_once(options, kind) {
            config.at_once = Some(memory.recall_rates(&known));
            config.at_once_asked = options.limits.jobs.is_some();
        }
        Ok(Plan {
            choice,
            capabilities,
            config,
            open,
            jobs,
            tasks,
            specs,
            infos,
            known,
            memory,
            logs,
            solo,
            earlier,
            seen,
            warnings,
            input,
            reads_input: false,
            files,
        })
    }
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

fn config(options: &RunOptions, choice: &Choice, cpus: usize, jobs: Option<usize>) -> RunConfig {
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
        order: limits.order,
        max_pause: limits.max_pause,
        halt: limits.halt,
        timeout: limits.timeout,
        deadline: limits.deadline,
        delay: limits.delay,
        attempts: limits.attempts,
        grace: limits.grace,
        seed: options.policy.seed,
        actuation: options.machine.actuation(),
        traffic: choice.entry.needs_traffic(&choice.params),
        results_max: if is_open { RESULTS } else { usize::MAX },
        devices: choice.entry.needs_devices(&choice.params),
        ..RunConfig::default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Params, Rate, SoloProfile, SoloTrace, find_policy};

    fn choice(policy: &str) -> Choice {
        let entry = find_policy(policy).expect("a policy of the table");
        let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
        Choice {
            entry,
            params,
            origins: Default::default(),
            profile: None,
            shortfalls: Vec::new(),
            lacks: None,
        }
    }

    #[test]
    fn jobs_without_a_solo_trace_are_named() {
        let trace = SoloTrace::new(vec![(1_000, 1.0)]).expect("a trace");
        let known = SoloProfile {
            time: None,
            mm_reads: Some(Rate(1)),
            trace: Some(trace.into()),
        };
        let mut specs: Vec<TaskSpec> = (0..8)
            .map(|id| TaskSpec::new(id, &format!("job-{id}")))
            .collect();
        specs.iter_mut().for_each(|spec| spec.solo = known.clone());
        assert!(require_solo(&choice("oracle"), &specs).is_ok());
        specs[5].solo.trace = None;
        let error = require_solo(&choice("oracle"), &specs)
            .expect_err("job-5 lacks it")
            .to_string();
        assert!(
            error.contains("solo trace of each job, which is missing for job-5;"),
            "{error}"
        );
        specs.iter_mut().for_each(|spec| spec.solo.trace = None);
        let error = require_solo(&choice("oracle"), &specs)
            .expect_err("all lack it")
            .to_string();
        assert!(error.contains("job-4 and 3 more;"), "{error}");
        // Another policy needs no trace.
        assert!(require_solo(&choice("perf-fair"), &specs).is_ok());
    }

    #[test]
    fn solo_runs_feed_what_can_be_counted() {
        let capabilities = |missing: &[Capability], alone: bool| {
            let mut capabilities = Capabilities::default();
            for &capability in missing.iter().chain(&[Capability::SoloBandwidth]) {
                capabilities.missing.insert(capability, Absence::NoCounters);
            }
            let given = match alone {
                true => SoloSource::Measured,
                false => SoloSource::Nothing,
            };
            SoloWish::new(&given, false, "m")
                .expect("no file is read")
                .capabilities(&mut capabilities);
            (
                capabilities.why_missing(Capability::SoloTrace),
                capabilities.why_missing(Capability::SoloBandwidth),
            )
        };
        let no = Some(Absence::NoCounters);
        assert_eq!(capabilities(&[], false), (Some(Absence::NoSoloTrace), no));
        assert_eq!(capabilities(&[], true), (None, None));
        assert_eq!(capabilities(&[Capability::Ipc], true), (no, None));
        assert_eq!(
            capabilities(&[Capability::Counter(Counter::MmReads)], true),
            (None, no)
        );
    }
}
