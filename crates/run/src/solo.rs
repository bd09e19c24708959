//! Solo profiles, learned before the run itself: from solo runs, from the platform, or from a file.

use super::answer::{exit_of, exited_ok};
use super::batch::{Batch, BatchResult};
use super::context::RunContext;
use super::files::RunFiles;
use super::options::SoloTimes;
use super::platform::{Platform, SoloWork};
use super::policy::PolicyChoice;
use super::prepare::{note_files, tell_solo};
use super::screen::Screen;
use super::source::noted_file;
use crate::exit::{Exit, incapable, usage};
use crate::input::{Job, told};
use crate::whole_file::{create_private, create_private_folder, write_private};
use anyhow::{Context as _, Result};
use cosched_core::{
    Absence, Actuation, Capabilities, Capability, Counter, EndedBy, Halt, Importance, Nanos,
    POLICIES, Params, PolicyEntry, Rate, Restart, RunConfig, SoloProfile, TaskResult, TaskSpec,
};
use cosched_report::{
    JobInfo, RECORD_SCHEMA, RunRecord, RunWarning, SOLO_SCHEMA, SeriesFile, SettingFile, SoloFile,
    SoloSource, SoloTime, record, schema_of,
};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where solo times come from.
#[derive(Default)]
pub(crate) struct SoloWish {
    /// Whether each job runs alone first.
    pub(crate) alone: bool,
    /// Solo profiles of an earlier run. They replace those of solo runs.
    pub(crate) known: Option<SoloFile>,
    /// The file that they are from.
    pub(crate) file: Option<SettingFile>,
    /// Why the file's times may not be those of this run.
    pub(crate) warnings: Vec<RunWarning>,
}

impl SoloWish {
    /// The sources that the command line asks for, for a run on `machine`. In a simulation jobs run alone first even if it
    /// asks for nothing: that takes almost no time.
    pub(crate) fn new(given: &SoloTimes, is_simulated: bool, machine: &str) -> Result<SoloWish> {
        let is_measured = matches!(given, SoloTimes::Measured | SoloTimes::OnlyMeasured);
        let alone = is_simulated || is_measured;
        let SoloTimes::File(name) = given else {
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
            file: Some(noted_file("solo", name, text.as_bytes())),
            warnings,
        })
    }

    /// The time that a job took alone, by the file.
    pub(crate) fn known_time(&self, info: &JobInfo) -> Option<Nanos> {
        let known = self.known.as_ref()?;
        let profile = known.profile(&info.name, info.command.as_deref(), &info.given)?;
        profile.time
    }

    /// Sets the capabilities for solo bandwidths and solo traces. They are there if solo runs or a file of solo
    /// profiles will supply them; whether they do so for every job is checked later.
    pub(crate) fn capabilities(&self, capabilities: &mut Capabilities) {
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
        RunRecord::from_json(text).map(|record| SoloFile::of_record(&record))
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
fn require_solo(choice: &PolicyChoice, specs: &[TaskSpec]) -> Result<()> {
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

/// Learns the solo profile of each job and notes it in the batch. Returns an exit if the user interrupted it.
///
/// # Errors
/// A solo run could not be made, or the policy needs more than could be learned.
pub(crate) fn learn<P: Platform>(
    run: &RunContext<'_, P>,
    wish: &SoloWish,
    jobs: &[(u64, Job)],
    batch: &mut Batch<P>,
) -> Result<Option<Exit>> {
    if wish.alone {
        match run.platform.solo_work(trace_step(batch))? {
            SoloWork::Known { profiles, source } => {
                for (ix, profile) in profiles.into_iter().enumerate() {
                    if profile.time.is_none() {
                        batch.infos[ix].solo_failed = true;
                        let job = batch.specs[ix].name.clone();
                        run.screen.warn(RunWarning::SoloFailed { job });
                    }
                    batch.infos[ix].solo = profile.time.map(|time| SoloTime { time, source });
                    batch.specs[ix].solo = profile;
                }
            }
            SoloWork::RunEach => {
                if let Some(exit) = measure(run, jobs, batch)? {
                    return Ok(Some(exit));
                }
            }
        }
    }
    if let Some(known) = &wish.known {
        for (spec, info) in batch.specs.iter_mut().zip(&mut batch.infos) {
            use_known(run.screen, known, spec, info);
        }
    }
    for (spec, info) in batch.specs.iter_mut().zip(&batch.infos) {
        spec.solo.time = info.solo.map(|solo| solo.time);
    }
    require_solo(&batch.choice, &batch.specs)?;
    Ok(None)
}

fn use_known(screen: &Screen, known: &SoloFile, spec: &mut TaskSpec, info: &mut JobInfo) {
    let Some(found) = known.profile(&info.name, info.command.as_deref(), &info.given) else {
        return screen.warn(RunWarning::SoloMissing {
            job: info.name.clone(),
            simulated: info.solo.is_some(),
        });
    };
    info.solo = found.time.map(|time| SoloTime {
        time,
        source: SoloSource::Record,
    });
    // A record has times only.
    spec.solo.mm_reads = found.mm_reads.or(spec.solo.mm_reads);
    spec.solo.trace = found.trace.or(spec.solo.trace.take());
}

/// The interval between the points of a solo trace; `None` if the policy needs no traces.
fn trace_step<P: Platform>(batch: &Batch<P>) -> Option<Nanos> {
    let choice = &batch.choice;
    let mut needs = (choice.entry.needs)(&choice.params).into_iter();
    let is_traced = needs.any(|need| need.capability == Capability::SoloTrace);
    is_traced.then_some(batch.config.quantum)
}

/// The position of each job's first copy, by the position of the job.
fn first_copies(jobs: &[(u64, Job)]) -> Vec<usize> {
    let mut known = HashMap::new();
    let mut first_of = Vec::new();
    for (ix, (_, job)) in jobs.iter().enumerate() {
        let job = &job.input;
        let same = (&job.command, &job.env, &job.cwd, &job.stdin, job.cpus);
        first_of.push(*known.entry(same).or_insert(ix));
    }
    first_of
}

/// The jobs at these positions of a batch as a batch of their own, which run one after the other with their output in `folder`.
fn solo_batch<P: Platform>(
    platform: &P,
    jobs: &[(u64, Job)],
    batch: &Batch<P>,
    positions: &[usize],
    folder: PathBuf,
) -> Result<Batch<P>> {
    let entry = run_to_completion()?;
    let mut solo = Batch {
        choice: PolicyChoice {
            entry,
            params: Params::resolve(entry.name, entry.params, &[])?,
            origins: BTreeMap::new(),
            profile: None,
            shortfalls: Vec::new(),
            lacks: batch.choice.lacks.clone(),
        },
        capabilities: platform.view().capabilities.clone(),
        config: RunConfig {
            jobs: 1,
            jobs_per_cpu: None,
            halt: Halt::default(),
            restart: Restart::Never,
            actuation: Actuation::Decisions,
            traffic: false,
            ..batch.config.clone()
        },
        open: None,
        tasks: Vec::new(),
        specs: Vec::new(),
        infos: Vec::new(),
        known: Vec::new(),
        earlier: Vec::new(),
        logs: folder,
        alone: true,
    };
    for (number, &ix) in positions.iter().enumerate() {
        let (_, job) = &jobs[ix];
        solo.tasks.push(platform.job(job, &solo.logs)?);
        let mut info = batch.infos[ix].clone();
        note_files(&mut info, platform.view(), &solo.logs);
        solo.infos.push(info);
        let spec = &batch.specs[ix];
        solo.specs.push(TaskSpec {
            cpus: spec.cpus,
            width: spec.width,
            ..TaskSpec::new(number as u32, &spec.name)
        });
        solo.known.push(batch.known[ix].clone());
    }
    Ok(solo)
}

/// Runs each distinct job alone and notes its solo profile. Returns an exit if the user interrupted it.
fn measure<P: Platform>(
    run: &RunContext<'_, P>,
    jobs: &[(u64, Job)],
    batch: &mut Batch<P>,
) -> Result<Option<Exit>> {
    let folder = run.logs.join("solo");
    // What an earlier run left has been put aside.
    create_private_folder(&folder).with_context(|| told(&folder))?;
    // Copies of a job share its solo time.
    let first_of = first_copies(jobs);
    let positions: Vec<usize> = (0..first_of.len())
        .filter(|&ix| first_of[ix] == ix)
        .collect();
    let runs = positions.len();
    run.screen.say(&format!(
        "cosched: {runs} solo runs first, one after the other"
    ));
    let solo = solo_batch(run.platform, jobs, batch, &positions, folder)?;
    let series = run.logs.join("solo.series.jsonl");
    let files = RunFiles {
        series: Some(create_private(&series).with_context(|| told(&series))?),
        ..RunFiles::default()
    };
    let BatchResult { result, mut info } = solo.run(run, files)?;
    for disturbed in info.disturbances(true) {
        info.warnings.push(disturbed.clone());
        run.screen.warn(disturbed);
    }
    let record = record(&result, &info);
    write_private(&run.logs.join("solo.json"), record.to_json().as_bytes())?;
    let profiles = profiles(&record, &series)?;
    let file = run.logs.join("solo-profiles.json");
    write_private(&file, profiles.to_json().as_bytes())?;
    if let EndedBy::Signal(_) | EndedBy::Deadline | EndedBy::Drain = result.ended_by {
        return Ok(Some(exit_of(&result, &batch.config.halt, false)));
    }
    let deadline = &mut batch.config.deadline;
    *deadline = deadline.map(|end| end - result.turnaround);
    for (task, &first) in result.tasks.iter().zip(&positions) {
        let profile = profile_of(task, &profiles);
        if profile.is_none() {
            let job = task.spec.name.clone();
            run.screen.warn(RunWarning::SoloFailed { job });
        }
        for (ix, info) in batch.infos.iter_mut().enumerate() {
            if first_of[ix] != first {
                continue;
            }
            match &profile {
                Some(profile) => note(profile, &mut batch.specs[ix], info),
                None => info.solo_failed = true,
            }
        }
    }
    Ok(None)
}

/// The policy that lets each job run to its end.
fn run_to_completion() -> Result<&'static PolicyEntry> {
    let entry = POLICIES.iter().find(|entry| !entry.time_shares);
    entry.context("each policy of the table shares time")
}

/// The solo profile of a job that ran alone; `None` if it failed.
fn profile_of(task: &TaskResult, profiles: &SoloFile) -> Option<SoloProfile> {
    let succeeded = exited_ok(task) && !task.timed_out;
    if !succeeded {
        return None;
    }
    let time = task.finished? - task.started?;
    let reads = task.counts[Counter::MmReads].value();
    let name = &task.spec.name;
    let found = profiles.jobs.iter().find(|job| job.name == *name);
    let trace = found.and_then(|job| job.trace.clone());
    Some(SoloProfile {
        time: Some(time),
        mm_reads: reads.and_then(|reads| Rate::from_count(reads, time)),
        trace: trace.map(Arc::new),
    })
}

fn note(profile: &SoloProfile, spec: &mut TaskSpec, info: &mut JobInfo) {
    info.solo = profile.time.map(|time| SoloTime {
        time,
        source: SoloSource::Measured,
    });
    spec.solo = profile.clone();
    if let Some(time) = profile.time {
        tell_solo(spec, time);
    }
}

/// The solo profiles, from the series of the solo runs.
fn profiles(record: &RunRecord, series: &Path) -> Result<SoloFile> {
    let name = told(series);
    let file = File::open(series).with_context(|| name.clone())?;
    let series = SeriesFile::open(file, &name)?;
    Ok(SoloFile::of_run(record, series)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{SoloTrace, find_policy};

    fn choice(policy: &str) -> PolicyChoice {
        let entry = find_policy(policy).expect("a policy of the table");
        let params = Params::resolve(entry.name, entry.params, &[]).expect("its defaults");
        PolicyChoice {
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
                true => SoloTimes::Measured,
                false => SoloTimes::Nothing,
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
