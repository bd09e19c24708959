//! The runs before a resumed one: their records, and what is left of those that were killed.

use super::folder::{EARLIER, lock, output_files};
use super::options::{Orphans, RunOptions};
use super::runs::{self, JobLine, RunLine, Runs, SlurmJob};
use crate::exit::{Exit, Failure, usage};
use crate::stderr;
use crate::whole_file::{open_own, read_own, write_private};
use anyhow::Result;
use cosched_linux::identity::{boot, host_name};
use cosched_linux::mend::{Reach, mend};
use cosched_linux::orphans::{Orphan, await_orphans, end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_linux::{Allocation, RunFate, fate_of};
use cosched_report::{
    NoRecord, OrphansDone, RunRecord, RunWarning, SeriesFile, record_of_series, visible,
};
use rustix::process::geteuid;
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An earlier run, with its record if there is one.
pub(crate) struct EarlierRun {
    pub(crate) line: RunLine,
    /// Its record, and the file that holds it.
    pub(crate) record: Option<(PathBuf, RunRecord)>,
}

impl EarlierRun {
    fn of(line: RunLine) -> EarlierRun {
        EarlierRun {
            record: record_of(&line),
            line,
        }
    }
}

/// What reaches the runs among these that did not end by themselves; `None` if there are none on this host. An identity
/// holds since the start of the machine only.
fn reach_of(root: &Root, runs: &[EarlierRun], owner: Option<u32>) -> Option<Reach> {
    let this_host = host_name(root);
    let this_boot = boot(root);
    let mut ids = Vec::new();
    for EarlierRun { line, record } in runs {
        // A run that did not write its own record was killed, or goes on.
        let has_ended = matches!(record, Some((_, record)) if record.rebuilt.is_none());
        if !has_ended && line.host == this_host && line.boot == this_boot {
            ids.push(line.run_id.clone());
        }
    }
    if ids.is_empty() {
        return None;
    }
    // All lines are from one file, whoever may have written into it.
    Some(Reach::Runs(ids, owner?))
}

/// What was found of earlier runs, and done about it.
#[derive(Default)]
pub(crate) struct Before {
    pub(crate) runs: Vec<EarlierRun>,
    /// The starts of their jobs.
    pub(crate) started: Vec<JobLine>,
    /// Jobs of killed runs that were found running.
    pub(crate) found: Vec<Orphan>,
    pub(crate) warnings: Vec<RunWarning>,
}

/// Looks at the runs that wrote to a job log, deals with jobs of killed ones as `how` says, and writes the records
/// that killed runs could not write. With `--dry-run` it only looks.
///
/// # Errors
/// One of the runs still goes on, or can't be seen from here; or jobs still run, and the user has not said what is to be
/// done with them. Nothing is started then.
pub(crate) fn settle(options: &RunOptions, how: Orphans, joblog: &Path) -> Result<Before> {
    let root = Root::default();
    let Runs {
        runs,
        started,
        owner,
    } = runs::read(joblog);
    let mut before = Before {
        runs: runs.into_iter().map(EarlierRun::of).collect(),
        started,
        ..Before::default()
    };
    let mut killed: Vec<usize> = Vec::new();
    for (ix, run) in before.runs.iter().enumerate() {
        if run.record.is_none() && is_killed(&root, &run.line, how, owner)? {
            killed.push(ix);
        }
    }
    if let Some(reach) = reach_of(&root, &before.runs, owner) {
        if !options.dry_run {
            // Whatever becomes of them, none stays frozen.
            mend(&root, &reach);
        }
        let orphans = orphans_within(&root, &reach);
        if !orphans.is_empty() {
            let done = deal(options, how, (&root, &reach), &orphans)?;
            let jobs = orphans.len();
            let warning = done.map(|done| RunWarning::Orphans { jobs, done });
            before.warnings.extend(warning);
            before.found = orphans;
        }
    }
    if !options.dry_run {
        for ix in killed {
            write_back(&mut before, ix);
        }
    }
    Ok(before)
}

/// Whether a run that left no record was killed; if not, it is ignored.
fn is_killed(root: &Root, run: &RunLine, how: Orphans, owner: Option<u32>) -> Result<bool> {
    let id = visible(&run.run_id);
    match fate(root, run) {
        RunFate::Dead => Ok(true),
        RunFate::Alive => Err(refused(&format!(
            "run {id} still goes on and writes to this job log; wait for its end"
        ))),
        RunFate::Unknown if how == Orphans::Ignore => Ok(false),
        RunFate::Unknown => {
            let host = visible(run.host.as_deref().unwrap_or("another host"));
            let is_of_other = owner.is_some_and(|owner| owner != 0) && geteuid().is_root();
            let why = if is_of_other {
                "was another user's; resume as that user"
            } else {
                "left no record and can't be seen from here, so its jobs may still run"
            };
            Err(refused(&format!(
                "run {id} on {host} {why}, or continue with --orphans ignore"
            )))
        }
    }
}

fn refused(why: &str) -> anyhow::Error {
    usage(format!("--resume: {why}; nothing was started"))
}

/// Does with the jobs of killed runs what the user wants; with `--dry-run` it only lists them.
fn deal(
    options: &RunOptions,
    how: Orphans,
    (root, reach): (&Root, &Reach),
    orphans: &[Orphan],
) -> Result<Option<OrphansDone>> {
    let list = texts(orphans);
    let is_quiet = options.output.quiet;
    if options.dry_run {
        say(is_quiet, "jobs of a killed run still run", &list);
        return Ok(None);
    }
    Ok(Some(match how {
        Orphans::Refuse => {
            return Err(refused(&format!(
                "jobs of a killed run still run, and would run a second time: {list}; choose with --orphans: `wait`, `kill` or `ignore`"
            )));
        }
        Orphans::Wait => {
            say(is_quiet, "waiting for jobs of a killed run", &list);
            await_orphans(root, reach);
            OrphansDone::Waited
        }
        Orphans::Kill => {
            say(is_quiet, "ending jobs of a killed run", &list);
            let (_, left) = end_orphans(root, reach, Duration::from_nanos(options.limits.grace.0));
            if !left.is_empty() {
                let left = texts(&left);
                let message = format!("--orphans kill: could not end {left}; nothing was started");
                let exit = Exit::Failure;
                return Err(Failure { exit, message }.into());
            }
            OrphansDone::Killed
        }
        Orphans::Ignore => OrphansDone::Ignored,
    }))
}

fn texts(orphans: &[Orphan]) -> String {
    let texts: Vec<String> = orphans.iter().map(orphan_text).collect();
    texts.join("; ")
}

fn say(is_quiet: bool, what: &str, list: &str) {
    if !is_quiet {
        stderr::say(format_args!("cosched: {what}: {list}"));
    }
}

/// Why a job log can't be begun anew; `None` if it can. A run goes on and writes to it, or jobs of a killed run go on.
pub(super) fn still_used(joblog: &Path) -> Option<String> {
    let root = Root::default();
    let Runs { runs, owner, .. } = runs::read(joblog);
    let runs: Vec<EarlierRun> = runs.into_iter().map(EarlierRun::of).collect();
    let mut unended = runs.iter().filter(|run| run.record.is_none());
    if let Some(run) = unended.find(|run| fate(&root, &run.line) == RunFate::Alive) {
        let run = visible(&run.line.run_id);
        return Some(format!(
            "run {run} still goes on and writes to it; choose another file"
        ));
    }
    let left = orphans_within(&root, &reach_of(&root, &runs, owner)?);
    let first = orphan_text(left.first()?);
    let more = if left.len() > 1 { ", and more" } else { "" };
    let end = ending_command(&left);
    Some(format!(
        "jobs of a killed run that wrote to it still run ({first}{more}); give --resume, or end them with `{end}`"
    ))
}

/// Whether a run that left no record goes on.
fn fate(root: &Root, line: &RunLine) -> RunFate {
    if line.host != host_name(root) {
        // Hosts can share a file system, and no other can be seen from here. Slurm ends a job before it starts it again.
        let here = Allocation::here();
        let has_ended = line.slurm.as_ref().zip(here).is_some_and(|(slurm, here)| {
            let SlurmJob { job, restarts } = slurm;
            here.has_ended(job, *restarts)
        });
        if has_ended {
            RunFate::Dead
        } else {
            RunFate::Unknown
        }
    } else if line.boot != boot(root) {
        // Nothing outlives the machine.
        RunFate::Dead
    } else {
        fate_of(root, &line.run_id)
    }
}

/// The folders in which files of a run can be: its log folder, and where a later run has put them aside.
fn places(line: &RunLine) -> Vec<PathBuf> {
    let Some(logs) = &line.logs else {
        return Vec::new();
    };
    let logs = Path::new(logs);
    let mut places = vec![logs.to_owned()];
    for number in 1.. {
        let earlier = logs.join(format!("{EARLIER}{number}"));
        let meta = earlier.symlink_metadata();
        if !meta.is_ok_and(|meta| meta.is_dir()) {
            break;
        }
        places.push(earlier);
    }
    places
}

/// The record that a run wrote, or that was written for it.
fn record_of(line: &RunLine) -> Option<(PathBuf, RunRecord)> {
    for folder in places(line) {
        let file = folder.join("run.json");
        if let Some(record) = read_record(&file)
            && record.run_id.as_ref() == Some(&line.run_id)
            && record.setting.host == line.host
        {
            return Some((file, record));
        }
    }
    None
}

fn read_record(file: &Path) -> Option<RunRecord> {
    let text = String::from_utf8(read_own(file)?).ok()?;
    RunRecord::from_json(&text).ok()
}

/// The series of a run, and the folder that it is in.
fn series_of(line: &RunLine) -> Option<(PathBuf, SeriesFile)> {
    for folder in places(line) {
        let path = folder.join("series.jsonl");
        let Some(file) = open_own(&path) else {
            continue;
        };
        let name = path.display().to_string();
        let Ok(series) = SeriesFile::open(file, &name) else {
            continue;
        };
        let header = series.header();
        let is_its = header.run_id.as_ref() == Some(&line.run_id);
        if is_its && header.setting.host == line.host {
            return Some((folder, series));
        }
    }
    None
}

/// The files of a job's output, as far as they are there.
fn logs_of(folder: &Path, job: &str) -> (Option<String>, Option<String>) {
    let files = output_files(folder, job);
    let [out, err] = files.map(|file| file.exists().then(|| file.display().to_string()));
    (out, err)
}

/// Writes the record of a run that was killed, from its series, if that is there.
fn write_back(before: &mut Before, ix: usize) {
    let line = &before.runs[ix].line;
    let Some((folder, series)) = series_of(line) else {
        return;
    };
    let mut running = Vec::new();
    for orphan in &before.found {
        if orphan.run == line.run_id {
            running.push(&*orphan.job);
        }
    }
    let rebuilt = record_of_series(
        series,
        NoRecord::Killed,
        |job| logs_of(&folder, job),
        |job| running.contains(&job),
    );
    let Ok(record) = rebuilt else {
        return;
    };
    let logs = Path::new(line.logs.as_deref().unwrap_or_default());
    let file = folder.join("run.json");
    match lock(logs) {
        // A run that has begun to use the folder puts aside what it finds there.
        Err(error) if error.kind() == ErrorKind::WouldBlock => return,
        // Another user's folder is left alone. The record is of use all the same.
        Err(_) => {}
        Ok(_lock) => {
            // A disk may be full.
            if write_private(&file, record.to_json().as_bytes()).is_ok() {
                let lost = record.jobs.iter().filter(|job| job.lost).count();
                let file = file.display().to_string();
                before.warnings.push(RunWarning::Rebuilt { file, lost });
            }
        }
    }
    before.runs[ix].record = Some((file, record));
}

/// A job that outlived its run, in words.
pub fn orphan_text(orphan: &Orphan) -> String {
    const MOST: usize = 8;
    let name = match &*orphan.job {
        "" => "a job".to_owned(),
        job => visible(job),
    };
    let shown = orphan.processes.iter().take(MOST);
    let shown: Vec<String> = shown.map(ToString::to_string).collect();
    let shown = shown.join(" ");
    let more = if orphan.processes.len() > MOST {
        " and more"
    } else {
        ""
    };
    let run = visible(&orphan.run);
    let mut text = format!("{name} of run {run}, processes {shown}{more}");
    if orphan.user != geteuid().as_raw() {
        text += &format!(", of user {}", orphan.user);
    }
    if orphan.has_reaper {
        text += "; the next `cosched serve` takes it over";
    }
    text
}

/// The command that ends jobs that outlived their runs, and no others.
pub fn ending_command(orphans: &[Orphan]) -> String {
    let runs: BTreeSet<&str> = orphans.iter().map(|orphan| &*orphan.run).collect();
    let mut command = "cosched thaw --kill".to_owned();
    for run in runs {
        command += " --run ";
        command += &visible(run);
    }
    command
}
