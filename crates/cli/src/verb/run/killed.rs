//! The runs before a resumed one: their records, and what is left of those that were killed.

use super::args::{OrphansArg, RunArgs};
use super::folder::lock;
use super::runs::{self, IgnoredLine, RunLine};
use crate::exit::{Exit, Failure, usage};
use crate::stderr;
use crate::verb::thaw::words;
use crate::whole_file::{open_regular, read_regular, write_whole};
use cosched_linux::identity::{boot, host_name};
use cosched_linux::mend::{Reach, mend};
use cosched_linux::orphans::{Orphan, await_orphans, end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_linux::{Fate, fate_of};
use cosched_report::{OrphansDone, Record, RunWarning, SeriesReader, rebuild};
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An earlier run, with its record if there is one.
pub(crate) struct EarlierRun {
    pub(crate) line: RunLine,
    /// Its record, and the file that holds it.
    pub(crate) record: Option<(PathBuf, Record)>,
}

/// What was found of earlier runs, and done about it.
#[derive(Default)]
pub(crate) struct Before {
    pub(crate) runs: Vec<EarlierRun>,
    /// Jobs of killed runs that were found running.
    pub(crate) found: Vec<Orphan>,
    /// They are not to be started again.
    pub(crate) adopted: bool,
    pub(crate) warnings: Vec<RunWarning>,
}

/// Looks at the runs that wrote to a job log, deals with jobs of killed ones as `--orphans` says, and writes the records
/// that killed runs could not write. With `--dry-run` it only looks.
///
/// # Errors
/// One of the runs still goes on, or can't be seen from here; or jobs still run, and the user has not said what is to be
/// done with them. Nothing is started then.
pub(crate) fn settle(args: &RunArgs, joblog: &Path) -> anyhow::Result<Before> {
    let root = Root::default();
    let ignored = runs::ignored(joblog);
    let mut to_ignore = Vec::new();
    let runs = runs::read(joblog).into_iter().map(|line| EarlierRun { record: record_of(&line), line });
    let mut before = Before { runs: runs.collect(), ..Before::default() };
    let mut killed: Vec<usize> = Vec::new();
    for (ix, run) in before.runs.iter().enumerate().filter(|(_, run)| run.record.is_none()) {
        match fate(&root, &run.line) {
            Fate::Dead => killed.push(ix),
            Fate::Alive => {
                let why = "still goes on and writes to this job log; wait for its end, or end it, and then resume";
                return Err(refused(&format!("run {} {why}", run.line.run_id)));
            }
            Fate::Unknown if ignored.iter().any(|line| line.is(&run.line)) => {}
            Fate::Unknown if args.orphans == OrphansArg::Ignore => to_ignore.push(IgnoredLine::of(&run.line)),
            Fate::Unknown => {
                let host = run.line.host.as_deref().unwrap_or("another host");
                let why = "left no record and can't be seen from here, so its jobs may still run; look there with \
                           `cosched thaw`, or go on all the same with --orphans ignore";
                return Err(refused(&format!("run {} on {host} {why}", run.line.run_id)));
            }
        }
    }
    if !args.dry_run {
        let told = runs::ignore(joblog, &to_ignore);
        told.map_err(|error| refused(&format!("can't be noted: {error}")))?;
    }
    // An identity holds since the start of the machine only.
    let this_boot = boot(&root);
    let lines = killed.iter().map(|&ix| &before.runs[ix].line);
    let ids: Vec<String> = lines.filter(|line| line.boot == this_boot).map(|line| line.run_id.clone()).collect();
    if !ids.is_empty() {
        let reach = Reach::Runs(ids);
        if !args.dry_run {
            // Whatever becomes of them, none stays frozen.
            mend(&root, &reach);
        }
        let orphans = orphans_within(&root, &reach);
        if !orphans.is_empty() {
            before.found = orphans.clone();
            deal(args, &root, &reach, orphans, &mut before)?;
        }
    }
    if !args.dry_run {
        for ix in killed {
            write_back(&mut before, ix);
        }
    }
    Ok(before)
}

fn refused(why: &str) -> anyhow::Error {
    usage(format!("--resume: {why}; nothing was started"))
}

/// Does with the jobs of killed runs what the user wants.
fn deal(args: &RunArgs, root: &Root, reach: &Reach, orphans: Vec<Orphan>, before: &mut Before) -> anyhow::Result<()> {
    let list = || orphans.iter().map(words).collect::<Vec<_>>().join("; ");
    let say = |what: &str| {
        if !args.output.quiet {
            stderr::say(format_args!("cosched: {what}: {}", list()));
        }
    };
    if args.dry_run {
        say("jobs of a killed run still run");
        return Ok(());
    }
    let done = match args.orphans {
        OrphansArg::Refuse => {
            return Err(refused(&format!(
                "jobs of a killed run still run, and would run a second time: {}; choose with --orphans: `wait` for them \
                 and run them again, `adopt` them (wait, and count them as done), `kill` them and run them again, or \
                 `ignore` them",
                list()
            )));
        }
        OrphansArg::Wait | OrphansArg::Adopt => {
            say("waiting for jobs of a killed run");
            await_orphans(root, reach);
            if args.orphans == OrphansArg::Adopt { OrphansDone::Adopted } else { OrphansDone::Waited }
        }
        OrphansArg::Kill => {
            say("ending jobs of a killed run");
            let (_, left) = end_orphans(root, reach, Duration::from_nanos(args.limits.grace.0));
            if !left.is_empty() {
                let left: Vec<String> = left.iter().map(words).collect();
                let message = format!("--orphans kill: could not end {}; nothing was started", left.join("; "));
                return Err(Failure { exit: Exit::Failure, message }.into());
            }
            OrphansDone::Killed
        }
        OrphansArg::Ignore => OrphansDone::Ignored,
    };
    before.warnings.push(RunWarning::Orphans { jobs: orphans.len(), done });
    before.adopted = done == OrphansDone::Adopted;
    Ok(())
}

/// A run that goes on and writes to a job log.
pub(super) fn live_writer(joblog: &Path) -> Option<String> {
    let root = Root::default();
    let mut runs = runs::read(joblog).into_iter();
    runs.find(|line| record_of(line).is_none() && fate(&root, line) == Fate::Alive).map(|line| line.run_id)
}

/// Whether a run that left no record goes on.
fn fate(root: &Root, line: &RunLine) -> Fate {
    if line.host != host_name(root) {
        // Hosts can share a file system, and no other can be seen from here.
        return Fate::Unknown;
    }
    // Nothing outlives the machine.
    if line.boot != boot(root) { Fate::Dead } else { fate_of(root, &line.run_id) }
}

/// The folders in which files of a run can be: its log folder, and where a later run has put them aside.
fn places(line: &RunLine) -> Vec<PathBuf> {
    let Some(logs) = line.logs.as_ref().map(PathBuf::from) else { return Vec::new() };
    let earlier = (1..).map(|number| logs.join(format!("earlier-{number}"))).take_while(|folder| folder.is_dir());
    std::iter::once(logs.clone()).chain(earlier).collect()
}

/// The record that a run wrote, or that was written for it.
fn record_of(line: &RunLine) -> Option<(PathBuf, Record)> {
    places(line).into_iter().map(|folder| folder.join("run.json")).find_map(|file| {
        let record = Record::from_json(&String::from_utf8(read_regular(&file)?).ok()?).ok()?;
        let same = record.run_id.as_ref() == Some(&line.run_id) && record.setting.host == line.host;
        same.then_some((file, record))
    })
}

/// Writes the record of a run that was killed, from its series, if that is there.
fn write_back(before: &mut Before, ix: usize) {
    let line = &before.runs[ix].line;
    let found = places(line).into_iter().find_map(|folder| {
        let file = folder.join("series.jsonl");
        let series = SeriesReader::new(BufReader::new(open_regular(&file)?), &file.display().to_string()).ok()?;
        let header = series.header();
        let same = header.run_id.as_ref() == Some(&line.run_id) && header.setting.host == line.host;
        same.then_some((folder, series))
    });
    let Some((folder, series)) = found else { return };
    let log_of = |name: &str| {
        let file = |end: &str| {
            let file = folder.join(format!("{name}.{end}"));
            file.exists().then(|| file.display().to_string())
        };
        (file("out"), file("err"))
    };
    let ran = |name: &str| before.found.iter().any(|orphan| orphan.run == line.run_id && orphan.job == name);
    let Ok(record) = rebuild(series, log_of, ran) else { return };
    // A run that has begun to use the folder puts aside what it finds there.
    let Some(_lock) = lock(Path::new(line.logs.as_deref().unwrap_or_default())) else { return };
    let file = folder.join("run.json");
    // The folder can be full, or not writable any more. The record is of use all the same.
    if write_whole(&file, record.to_json().as_bytes()).is_ok() {
        let lost = record.jobs.iter().filter(|job| job.lost).count();
        before.warnings.push(RunWarning::Rebuilt { file: file.display().to_string(), lost });
    }
    before.runs[ix].record = Some((file, record));
}
