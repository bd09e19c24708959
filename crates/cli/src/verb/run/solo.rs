//! Solo profiles, learned before the run itself: from solo runs, from the platform, or from a file.

use super::answer::exit_of;
use super::batch::{Batch, BatchResult, Session};
use super::files::Files;
use super::plan::{Plan, require_solo};
use super::platform::{Platform, SoloWork};
use crate::exit::Exit;
use crate::input::told;
use crate::whole_file::write_whole;
use anyhow::Context as _;
use cosched_core::{
    Actuation, Capability, Counter, EndedBy, Halt, Nanos, Params, Rate, Restart, RunConfig,
    SoloProfile, TaskSpec, find_policy,
};
use cosched_report::{
    JobInfo, Record, RunWarning, SeriesReader, Solo, SoloFile, SoloSource, record,
};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Learns the solo profile of each job and notes it in the plan and in `infos`. Returns an exit if the user interrupted
/// it.
///
/// # Errors
/// A solo run could not be made, or the policy needs more than could be learned.
pub(crate) fn learn<P: Platform>(
    session: &Session<'_, P>,
    plan: &mut Plan<P>,
    infos: &mut [JobInfo],
) -> anyhow::Result<Option<Exit>> {
    if plan.solo.alone {
        match session.platform.solo_work(trace_step(plan))? {
            SoloWork::Known { profiles, source } => {
                for ((profile, spec), info) in profiles
                    .into_iter()
                    .zip(&mut plan.specs)
                    .zip(infos.iter_mut())
                {
                    info.solo = profile.time.map(|time| Solo { time, source });
                    spec.solo = profile;
                }
            }
            SoloWork::RunEach => {
                if let Some(exit) = measure(session, plan, infos)? {
                    return Ok(Some(exit));
                }
            }
        }
    }
    if let Some(profiles) = &plan.solo.profiles {
        for (spec, info) in plan.specs.iter_mut().zip(&*infos) {
            if let Some(profile) =
                profiles.profile(&info.name, info.command.as_deref(), &info.given)
            {
                spec.solo = profile;
            }
        }
    }
    if let Some(times) = &plan.solo.known {
        for info in infos.iter_mut() {
            match times.get(&info.name, info.command.as_deref(), &info.given) {
                Some(s) => {
                    info.solo = Some(Solo {
                        time: Nanos::from_s(s),
                        source: SoloSource::Record,
                    })
                }
                None => session.screen.warn(RunWarning::SoloMissing {
                    job: info.name.clone(),
                    simulated: info.solo.is_some(),
                }),
            }
        }
    }
    for (spec, info) in plan.specs.iter_mut().zip(&*infos) {
        spec.solo.time = info.solo.map(|solo| solo.time);
    }
    require_solo(&plan.choice, &plan.specs)?;
    Ok(None)
}

/// The interval between the points of a solo trace; `None` if the policy needs no traces.
fn trace_step<P: Platform>(plan: &Plan<P>) -> Option<Nanos> {
    let needs = (plan.choice.entry.needs)(&plan.choice.params);
    let traced = needs
        .iter()
        .any(|need| need.capability == Capability::SoloTrace);
    traced.then_some(plan.config.quantum)
}

/// The positions of the first copies of all distinct jobs; and for every job the position of its first copy.
fn distinct<P: Platform>(plan: &Plan<P>) -> (Vec<usize>, Vec<usize>) {
    let mut firsts: Vec<usize> = Vec::new();
    let mut first_of: Vec<usize> = Vec::new();
    let mut known = HashMap::new();
    for (ix, (_, job)) in plan.jobs.iter().enumerate() {
        let job = &job.input;
        let first = *known
            .entry((&job.command, &job.env, &job.cwd, &job.stdin, job.cpus))
            .or_insert(ix);
        first_of.push(first);
        if first == ix {
            firsts.push(ix);
        }
    }
    (firsts, first_of)
}

/// Runs each distinct job alone, one after the other, and notes its solo profile. Returns an exit if the user
/// interrupted it.
fn measure<P: Platform>(
    session: &Session<'_, P>,
    plan: &mut Plan<P>,
    infos: &mut [JobInfo],
) -> anyhow::Result<Option<Exit>> {
    let Session {
        args,
        platform,
        screen,
        ..
    } = session;
    let fifo = find_policy("fifo").context("the table of policies has no fifo")?;
    let params = Params::resolve(fifo.name, fifo.params, &[])?;
    let folder = plan.logs.join("solo");
    std::fs::create_dir_all(&folder).with_context(|| told(&folder))?;
    // Copies of a job share its solo time.
    let (firsts, first_of) = distinct(plan);
    screen.say(&format!(
        "cosched: {} solo runs first, one after the other",
        firsts.len()
    ));
    let mut jobs = Vec::new();
    let mut specs = Vec::new();
    let mut solo_infos = Vec::new();
    for (number, &ix) in firsts.iter().enumerate() {
        let job = platform.job(&plan.jobs[ix].1, &folder)?;
        let (log, log_stderr) = P::files(&job).unzip();
        let text = |path: PathBuf| path.display().to_string();
        solo_infos.push(JobInfo {
            log: log.map(text),
            log_stderr: log_stderr.map(text),
            ..infos[ix].clone()
        });
        let TaskSpec {
            cpus,
            width,
            ref name,
            ..
        } = plan.specs[ix];
        specs.push(TaskSpec {
            cpus,
            width,
            ..TaskSpec::new(number as u32, name)
        });
        jobs.push(job);
    }
    let config = RunConfig {
        jobs: 1,
        halt: Halt::default(),
        restart: Restart::Never,
        actuation: Actuation::Decisions,
        traffic: false,
        ..plan.config.clone()
    };
    let series = plan.logs.join("solo.series.jsonl");
    // What an earlier run left has been put aside.
    let file = File::create_new(&series).with_context(|| told(&series))?;
    let batch = Batch {
        policy: fifo.name,
        params: &params,
        config: &config,
        capabilities: &platform.view().capabilities,
        record_as: super::setting::setting(
            args,
            platform.view(),
            (&plan.input, &plan.files),
            (&params, &BTreeMap::new()),
            &config,
        ),
        jobs,
        specs: &specs,
        infos: solo_infos,
        known: firsts.iter().map(|&ix| plan.known[ix].clone()).collect(),
        earlier: Vec::new(),
        files: Files {
            series: Some(file),
            ..Files::default()
        },
        shows_output: false,
    };
    let mut policy = (fifo.build)(&params);
    let BatchResult { result, mut info } = batch.run(session, &mut *policy)?;
    for disturbed in info.disturbances(true) {
        info.warnings.push(disturbed.clone());
        screen.warn(disturbed);
    }
    let record = record(&result, &info);
    write_whole(&plan.logs.join("solo.json"), record.to_json().as_bytes())?;
    let profiles = profiles(&record, &series)?;
    write_whole(
        &plan.logs.join("solo-profiles.json"),
        profiles.to_json().as_bytes(),
    )?;
    if let EndedBy::Signal(_) = result.ended_by {
        return Ok(Some(exit_of(&result, &plan.config.halt, false)));
    }
    for (ix, &first) in first_of.iter().enumerate() {
        let Some(task) = firsts
            .iter()
            .position(|&f| f == first)
            .and_then(|number| result.tasks.get(number))
        else {
            continue;
        };
        let ok = task.exit.as_ref().is_some_and(cosched_core::Exit::ok) && !task.timed_out;
        let (Some(started), Some(finished), true) = (task.started, task.finished, ok) else {
            infos[ix].solo_failed = true;
            if first == ix {
                screen.warn(RunWarning::SoloFailed {
                    job: infos[ix].name.clone(),
                });
            }
            continue;
        };
        let time = finished - started;
        infos[ix].solo = Some(Solo {
            time,
            source: SoloSource::Measured,
        });
        let reads = task.counts[Counter::MmReads]
            .value()
            .and_then(|reads| Rate::from_count(reads, time));
        let found = profiles
            .jobs
            .iter()
            .find(|job| job.name == infos[first].name);
        let trace = found.and_then(|job| job.trace.clone()).map(Arc::new);
        plan.specs[ix].solo = SoloProfile {
            time: Some(time),
            mm_reads: reads,
            trace,
        };
    }
    Ok(None)
}

/// The solo profiles, from the series of the solo runs.
fn profiles(record: &Record, series: &Path) -> anyhow::Result<SoloFile> {
    let name = told(series);
    let file = File::open(series).with_context(|| name.clone())?;
    Ok(SoloFile::of_run(
        record,
        SeriesReader::new(BufReader::new(file), &name)?,
    )?)
}
