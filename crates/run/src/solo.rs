//! Solo profiles, learned before the run itself: from solo runs, from the platform, or from a file.

use super::answer::{exit_of, exited_ok};
use super::batch::{Batch, BatchResult};
use super::files::Files;
use super::plan::{Plan, require_solo};
use super::platform::{Platform, SoloWork};
use super::policy::Choice;
use super::prepare::{note_files, tell_solo};
use super::screen::Screen;
use super::session::Session;
use super::setting::setting;
use crate::exit::Exit;
use crate::input::told;
use crate::whole_file::{create_private, create_private_folder, write_private};
use anyhow::{Context as _, Result};
use cosched_core::{
    Actuation, Capability, Counter, EndedBy, Halt, Nanos, POLICIES, Params, PolicyEntry, Rate,
    Restart, RunConfig, SoloProfile, TaskResult, TaskSpec,
};
use cosched_report::{JobInfo, Record, RunWarning, SeriesFile, Solo, SoloFile, SoloSource, record};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Learns the solo profile of each job and notes it in the plan. Returns an exit if the user interrupted it.
///
/// # Errors
/// A solo run could not be made, or the policy needs more than could be learned.
pub(crate) fn learn<P: Platform>(
    session: &Session<'_, P>,
    plan: &mut Plan<P>,
) -> Result<Option<Exit>> {
    if plan.solo.alone {
        match session.platform.solo_work(trace_step(plan))? {
            SoloWork::Known { profiles, source } => {
                for (ix, profile) in profiles.into_iter().enumerate() {
                    if profile.time.is_none() {
                        plan.infos[ix].solo_failed = true;
                        let job = plan.specs[ix].name.clone();
                        session.screen.warn(RunWarning::SoloFailed { job });
                    }
                    plan.infos[ix].solo = profile.time.map(|time| Solo { time, source });
                    plan.specs[ix].solo = profile;
                }
            }
            SoloWork::RunEach => {
                if let Some(exit) = measure(session, plan)? {
                    return Ok(Some(exit));
                }
            }
        }
    }
    if let Some(known) = &plan.solo.known {
        for (spec, info) in plan.specs.iter_mut().zip(&mut plan.infos) {
            use_known(session.screen, known, spec, info);
        }
    }
    for (spec, info) in plan.specs.iter_mut().zip(&plan.infos) {
        spec.solo.time = info.solo.map(|solo| solo.time);
    }
    require_solo(&plan.choice, &plan.specs)?;
    Ok(None)
}

fn use_known(screen: &Screen, known: &SoloFile, spec: &mut TaskSpec, info: &mut JobInfo) {
    let Some(found) = known.profile(&info.name, info.command.as_deref(), &info.given) else {
        return screen.warn(RunWarning::SoloMissing {
            job: info.name.clone(),
            simulated: info.solo.is_some(),
        });
    };
    info.solo = found.time.map(|time| Solo {
        time,
        source: SoloSource::Record,
    });
    // A record has times only.
    spec.solo.mm_reads = found.mm_reads.or(spec.solo.mm_reads);
    spec.solo.trace = found.trace.or(spec.solo.trace.take());
}

/// The interval between the points of a solo trace; `None` if the policy needs no traces.
fn trace_step<P: Platform>(plan: &Plan<P>) -> Option<Nanos> {
    let choice = &plan.choice;
    let mut needs = (choice.entry.needs)(&choice.params).into_iter();
    let is_traced = needs.any(|need| need.capability == Capability::SoloTrace);
    is_traced.then_some(plan.config.quantum)
}

/// The position of each job's first copy, by the position of the job.
fn first_copies<P: Platform>(plan: &Plan<P>) -> Vec<usize> {
    let mut known = HashMap::new();
    let mut first_of = Vec::new();
    for (ix, (_, job)) in plan.jobs.iter().enumerate() {
        let job = &job.input;
        let same = (&job.command, &job.env, &job.cwd, &job.stdin, job.cpus);
        first_of.push(*known.entry(same).or_insert(ix));
    }
    first_of
}

/// Jobs that run alone, one after the other.
struct SoloJobs<J> {
    /// Their positions in the plan.
    positions: Vec<usize>,
    jobs: Vec<J>,
    specs: Vec<TaskSpec>,
    infos: Vec<JobInfo>,
}

impl<J> SoloJobs<J> {
    fn new<P: Platform<Job = J>>(
        platform: &P,
        plan: &Plan<P>,
        positions: Vec<usize>,
        folder: &Path,
    ) -> Result<SoloJobs<J>> {
        let mut all = SoloJobs {
            positions,
            jobs: Vec::new(),
            specs: Vec::new(),
            infos: Vec::new(),
        };
        for (number, &ix) in all.positions.iter().enumerate() {
            let job = platform.job(&plan.jobs[ix].1, folder)?;
            let mut info = plan.infos[ix].clone();
            note_files(&mut info, platform.view(), folder);
            all.infos.push(info);
            let spec = &plan.specs[ix];
            all.specs.push(TaskSpec {
                cpus: spec.cpus,
                width: spec.width,
                ..TaskSpec::new(number as u32, &spec.name)
            });
            all.jobs.push(job);
        }
        Ok(all)
    }
}

/// Runs each distinct job alone and notes its solo profile. Returns an exit if the user interrupted it.
fn measure<P: Platform>(session: &Session<'_, P>, plan: &mut Plan<P>) -> Result<Option<Exit>> {
    let folder = plan.logs.join("solo");
    // What an earlier run left has been put aside.
    create_private_folder(&folder).with_context(|| told(&folder))?;
    // Copies of a job share its solo time.
    let first_of = first_copies(plan);
    let positions: Vec<usize> = (0..first_of.len())
        .filter(|&ix| first_of[ix] == ix)
        .collect();
    let runs = positions.len();
    session.screen.say(&format!(
        "cosched: {runs} solo runs first, one after the other"
    ));
    let solo = SoloJobs::new(session.platform, plan, positions.clone(), &folder)?;
    let series = plan.logs.join("solo.series.jsonl");
    let BatchResult { result, mut info } = run_alone(session, plan, solo, &series)?;
    for disturbed in info.disturbances(true) {
        info.warnings.push(disturbed.clone());
        session.screen.warn(disturbed);
    }
    let record = record(&result, &info);
    write_private(&plan.logs.join("solo.json"), record.to_json().as_bytes())?;
    let profiles = profiles(&record, &series)?;
    let file = plan.logs.join("solo-profiles.json");
    write_private(&file, profiles.to_json().as_bytes())?;
    if let EndedBy::Signal(_) | EndedBy::Deadline | EndedBy::Drain = result.ended_by {
        return Ok(Some(exit_of(&result, &plan.config.halt, false)));
    }
    let deadline = &mut plan.config.deadline;
    *deadline = deadline.map(|end| end - result.turnaround);
    for (task, &first) in result.tasks.iter().zip(&positions) {
        let profile = profile_of(task, &profiles);
        if profile.is_none() {
            let job = task.spec.name.clone();
            session.screen.warn(RunWarning::SoloFailed { job });
        }
        for (ix, info) in plan.infos.iter_mut().enumerate() {
            if first_of[ix] != first {
                continue;
            }
            match &profile {
                Some(profile) => note(profile, &mut plan.specs[ix], info),
                None => info.solo_failed = true,
            }
        }
    }
    Ok(None)
}

/// Runs jobs one after the other, with their series in a new file.
fn run_alone<P: Platform>(
    session: &Session<'_, P>,
    plan: &Plan<P>,
    solo: SoloJobs<P::Job>,
    series: &Path,
) -> Result<BatchResult> {
    let view = session.platform.view();
    let entry = run_to_completion()?;
    let choice = Choice {
        entry,
        params: Params::resolve(entry.name, entry.params, &[])?,
        origins: BTreeMap::new(),
        profile: None,
        shortfalls: Vec::new(),
        lacks: plan.choice.lacks.clone(),
    };
    let config = RunConfig {
        jobs: 1,
        jobs_per_cpu: None,
        halt: Halt::default(),
        restart: Restart::Never,
        actuation: Actuation::Decisions,
        traffic: false,
        ..plan.config.clone()
    };
    let file = create_private(series).with_context(|| told(series))?;
    let mut known = Vec::new();
    for &ix in &solo.positions {
        known.push(plan.known[ix].clone());
    }
    let batch = Batch {
        entry,
        freezes: false,
        open: None,
        params: &choice.params,
        config: &config,
        capabilities: &view.capabilities,
        record_as: setting(
            session.options,
            view,
            &plan.input,
            &plan.files,
            &choice,
            &config,
        ),
        jobs: solo.jobs,
        folder: plan.logs.join("solo"),
        specs: &solo.specs,
        infos: solo.infos,
        known,
        earlier: Vec::new(),
        files: Files {
            series: Some(file),
            ..Files::default()
        },
        shows_output: false,
    };
    batch.run(session, &mut *(entry.build)(&choice.params))
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
    info.solo = profile.time.map(|time| Solo {
        time,
        source: SoloSource::Measured,
    });
    spec.solo = profile.clone();
    if let Some(time) = profile.time {
        tell_solo(spec, time);
    }
}

/// The solo profiles, from the series of the solo runs.
fn profiles(record: &Record, series: &Path) -> Result<SoloFile> {
    let name = told(series);
    let file = File::open(series).with_context(|| name.clone())?;
    let series = SeriesFile::open(file, &name)?;
    Ok(SoloFile::of_run(record, series)?)
}
