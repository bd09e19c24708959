//! Solo runs of real jobs: each distinct one alone, before the run itself.

use super::answer::exit_of;
use super::execute::{Batch, Run};
use super::files::{Files, write_whole};
use super::host::HostWorld;
use super::world::World;
use crate::exit::Exit;
use anyhow::Context as _;
use cosched_core::{Counter, EndedBy, Halt, Params, Rate, Restart, RunConfig, SoloProfile, TaskSpec, find_policy};
use cosched_report::{JobInfo, Record, SeriesReader, Solo, SoloFile, SoloSource, record};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Runs each distinct job alone and notes its time; an exit if the user has had enough.
pub(crate) fn measure(run: &mut Run<'_, HostWorld>) -> anyhow::Result<Option<Exit>> {
    let plan = &run.plan;
    let fifo = find_policy("fifo").context("the table of policies has no fifo")?;
    let params = Params::resolve(fifo.name, fifo.params, &[])?;
    let folder = plan.logs.join("solo");
    std::fs::create_dir_all(&folder).with_context(|| format!("{}", folder.display()))?;
    // One of each: copies of a job share its solo time.
    let mut firsts: Vec<usize> = Vec::new();
    let mut first_of: Vec<usize> = Vec::new();
    for (ix, (_, job)) in plan.jobs.iter().enumerate() {
        let same = |&&other: &&usize| {
            let a = &plan.jobs[other].1.input;
            let b = &job.input;
            a.command == b.command && a.env == b.env && a.cwd == b.cwd && a.stdin == b.stdin && a.cpus == b.cpus
        };
        let first = firsts.iter().find(same).copied();
        first_of.push(first.unwrap_or(ix));
        if first.is_none() {
            firsts.push(ix);
        }
    }
    run.screen.say(&format!("cosched: {} solo runs first, one after the other", firsts.len()));
    let mut jobs = Vec::new();
    let mut specs = Vec::new();
    let mut infos = Vec::new();
    for (number, &ix) in firsts.iter().enumerate() {
        let mut job = plan.tasks[ix].clone();
        let moved = |path: &PathBuf| path.file_name().map_or_else(|| folder.join("out"), |name| folder.join(name));
        job.program.stdout = moved(&job.program.stdout);
        job.program.stderr = moved(&job.program.stderr);
        infos.push(JobInfo {
            log: Some(job.program.stdout.display().to_string()),
            log_stderr: Some(job.program.stderr.display().to_string()),
            ..run.infos[ix].clone()
        });
        specs.push(TaskSpec { cpus: plan.specs[ix].cpus, ..TaskSpec::new(number as u32, &job.name) });
        jobs.push(job);
    }
    let config = RunConfig { jobs: 1, halt: Halt::default(), restart: Restart::Never, ..plan.config.clone() };
    let series = plan.logs.join("solo.series.jsonl");
    let file = File::create(&series).with_context(|| format!("{}", series.display()))?;
    let batch = Batch {
        policy: fifo.name,
        params: &params,
        config: &config,
        capabilities: &run.world.view().capabilities,
        jobs,
        specs: &specs,
        infos,
        files: Files { series: Some(file), ..Files::default() },
    };
    let mut policy = (fifo.build)(&params);
    let (result, info) = run.once(&mut *policy, batch)?;
    let record = record(&result, &info);
    write_whole(&plan.logs.join("solo.json"), &record.to_json())?;
    let profiles = profiles(&record, &series)?;
    write_whole(&plan.logs.join("solo-profiles.json"), &profiles.to_json())?;
    if let EndedBy::Signal(_) = result.ended_by {
        return Ok(Some(exit_of(&result)));
    }
    for (ix, &first) in first_of.iter().enumerate() {
        let Some(task) = firsts.iter().position(|&f| f == first).and_then(|number| result.tasks.get(number)) else {
            continue;
        };
        let ok = task.exit.as_ref().is_some_and(cosched_core::Exit::ok) && !task.timed_out;
        let (Some(started), Some(finished), true) = (task.started, task.finished, ok) else {
            if first == ix {
                let name = &run.infos[ix].name;
                run.screen.warn(&format!("job {name} failed alone: no solo time, no slowdown for it"));
            }
            continue;
        };
        let time = finished - started;
        run.infos[ix].solo = Some(Solo { time, source: SoloSource::Measured });
        let reads = task.counts[Counter::MmReads].value().and_then(|reads| Rate::from_count(reads, time));
        let found = profiles.jobs.iter().find(|job| job.name == run.infos[first].name);
        let trace = found.and_then(|job| job.trace.clone()).map(Arc::new);
        run.plan.specs[ix].solo = SoloProfile { time: Some(time), mm_reads: reads, trace };
    }
    Ok(None)
}

/// What each job did alone, from the series of the solo runs.
fn profiles(record: &Record, series: &Path) -> anyhow::Result<SoloFile> {
    let name = series.display().to_string();
    let file = File::open(series).with_context(|| name.clone())?;
    Ok(SoloFile::of_run(record, SeriesReader::new(BufReader::new(file), &name)?)?)
}
