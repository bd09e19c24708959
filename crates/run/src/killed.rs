//! The runs before a resumed one: their records, and what is left of those that were killed.

use super::folder::{EARLIER, lock};
use super::options::{Orphans, RunOptions};
use super::runs::{self, JobLine, RunLine, Runs};
use crate::exit::{Exit, Failure, usage};
use crate::input::told;
use crate::stderr;
use crate::whole_file::{open_own, read_own, write_whole};
use cosched_linux::identity::{boot, host_name};
use cosched_linux::mend::{Reach, mend};
use cosched_linux::orphans::{Orphan, await_orphans, end_orphans, orphans_within};
use cosched_linux::root::Root;
use cosched_linux::{Fate, fate_of};
use cosched_report::{NoRecord, OrphansDone, Record, RunWarning, SeriesReader, rebuild, visible};
use rustix::process::geteuid;
use std::convert::Infallible;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An earlier run, with its record if there is one.
pub(crate) struct EarlierRun {
    pub(crate) line: RunLine,
    /// Its record, and the file that holds it.
    pub(crate) record: Option<(PathBuf, Record)>,
}

impl EarlierRun {
    fn of(line: RunLine) -> EarlierRun {
        EarlierRun {
            record: record_of(&line),
            line,
        }
    }

    /// It did not write its own record; a later run may have written one for it. So it was killed, or goes on.
    fn has_not_ended(&self) -> bool {
        self.record
            .as_ref()
            .is_none_or(|(_, record)| record.rebuilt.is_some())
    }
}

/// What reaches the runs among these that did not end by themselves; `None` if there are none on this host. An identity
/// holds since the start of the machine only.
fn reach_of(root: &Root, runs: &[EarlierRun], owner: Option<u32>) -> Option<Reach> {
    let (this_host, this_boot) = (host_name(root), boot(root));
    let here = runs
        .iter()
        .filter(|run| run.line.host == this_host && run.line.boot == this_boot);
    let ids: Vec<String> = here
        .filter(|run| run.has_not_ended())
        .map(|run| run.line.run_id.clone())
        .collect();
    // All lines are from one file, whoever may have written into it.
    owner
        .filter(|_| !ids.is_empty())
        .map(|user| Reach::Runs(ids, user))
}

/// What was found of earlier runs, and done about it.
#[derive(Default)]
pub(crate) struct Before {
    pub(crate) runs: Vec<EarlierRun>,
    /// The starts of their jobs.
    pub(crate) started: Vec<JobLine>,
    /// Jobs of killed runs that were found running.
    pub(crate) found: Vec<Orphan>,
    /// Jobs that earlier runs waited for, and that are not to be started again.
    pub(crate) adopted: Vec<JobLine>,
    /// The same of this run.
    pub(crate) newly_adopted: Vec<JobLine>,
    pub(crate) warnings: Vec<RunWarning>,
}

impl Before {
    pub(crate) fn run(&self, run_id: &str) -> Option<&EarlierRun> {
        self.runs.iter().find(|run| run.line.run_id == run_id)
    }

    /// The folder in which a run was started.
    pub(crate) fn folder_of(&self, run_id: &str) -> Option<String> {
        self.run(run_id)?.line.cwd.clone()
    }
}

/// Looks at the runs that wrote to a job log, deals with jobs of killed ones as `how` says, and writes the records
/// that killed runs could not write. With `--dry-run` it only looks.
///
/// # Errors
/// One of the runs still goes on, or can't be seen from here; or jobs still run, and the user has not said what is to be
/// done with them. Nothing is started then.
pub(crate) fn settle(options: &RunOptions, how: Orphans, joblog: &Path) -> anyhow::Result<Before> {
    let root = Root::default();
    let Runs {
        runs,
        started,
        adopted,
        ignored,
        owner,
    } = runs::read(joblog);
    let runs = runs.into_iter().map(EarlierRun::of).collect();
    let mut before = Before {
        runs,
        started,
        adopted,
        ..Before::default()
    };
    let mut to_ignore = Vec::new();
    let mut killed: Vec<usize> = Vec::new();
    for (ix, run) in before
        .runs
        .iter()
        .enumerate()
        .filter(|(_, run)| run.record.is_none())
    {
        match fate(&root, &run.line) {
            Fate::Dead => killed.push(ix),
            Fate::Alive => {
                let why = "still goes on and writes to this job log; wait for its end, or end it, and then resume";
                return Err(refused(&format!("run {} {why}", visible(&run.line.run_id))));
            }
            Fate::Unknown if ignored.iter().any(|line| line.is(&run.line)) => {}
            Fate::Unknown if how == Orphans::Ignore => to_ignore.push(&run.line),
            Fate::Unknown => {
                let host = visible(run.line.host.as_deref().unwrap_or("another host"));
                if owner.is_some_and(|owner| owner != 0) && geteuid().is_root() {
                    let why = "was another user's, of whom root reads no records; resume as that user, or go on all the \
                               same with --orphans ignore";
                    return Err(refused(&format!(
                        "run {} on {host} {why}",
                        visible(&run.line.run_id)
                    )));
                }
                let why = "left no record and can't be seen from here, so its jobs may still run; look there with \
                           `cosched thaw`, or go on all the same with --orphans ignore";
                return Err(refused(&format!(
                    "run {} on {host} {why}",
                    visible(&run.line.run_id)
                )));
            }
        }
    }
    if !options.dry_run {
        let told = runs::ignore(joblog, &to_ignore);
        told.map_err(|error| refused(&format!("can't be noted: {error}")))?;
    }
    if let Some(reach) = reach_of(&root, &before.runs, owner) {
        if !options.dry_run {
            // Whatever becomes of them, none stays frozen.
            mend(&root, &reach);
        }
        let orphans = orphans_within(&root, &reach);
        if !orphans.is_empty() {
            before.found = orphans.clone();
            deal(options, how, joblog, (&root, &reach), orphans, &mut before)?;
        }
    }
    if !options.dry_run {
        for ix in killed {
            write_back(&mut before, ix);
        }
    }
    Ok(before)
}

fn refused(why: &str) -> anyhow::Error {
    usage(format!("--resume: {why}; nothing was started"))
}

/// What jobs of killed runs are, by the starts that were noted beside the job log.
///
/// # Errors
/// Of some it is not known.
fn adoptable(started: &[JobLine], orphans: &[Orphan]) -> anyhow::Result<Vec<JobLine>> {
    let mut jobs: Vec<JobLine> = Vec::new();
    for orphan in orphans {
        // An orphan can have several entries, one for each way in which its processes were found.
        if jobs.iter().any(|job| job.is(&orphan.run, &orphan.job)) {
            continue;
        }
        let Some(job) = started
            .iter()
            .rev()
            .find(|job| job.is(&orphan.run, &orphan.job))
        else {
            return Err(refused(&format!(
                "{} can't be adopted: no start of such a job was noted, as when it was measured alone, so it is not known \
                 which job it is; choose with --orphans: `wait` for it or `kill` it",
                orphan_text(orphan)
            )));
        };
        jobs.push(job.clone());
    }
    Ok(jobs)
}

/// Does with the jobs of killed runs what the user wants.
fn deal(
    options: &RunOptions,
    how: Orphans,
    joblog: &Path,
    (root, reach): (&Root, &Reach),
    orphans: Vec<Orphan>,
    before: &mut Before,
) -> anyhow::Result<()> {
    let list = || {
        orphans
            .iter()
            .map(orphan_text)
            .collect::<Vec<_>>()
            .join("; ")
    };
    let say = |what: &str| {
        if !options.output.quiet {
            stderr::say(format_args!("cosched: {what}: {}", list()));
        }
    };
    if options.dry_run {
        say("jobs of a killed run still run");
        return Ok(());
    }
    let done = match how {
        Orphans::Refuse => {
            return Err(refused(&format!(
                "jobs of a killed run still run, and would run a second time: {}; choose with --orphans: `wait` for them \
                 and run them again, `adopt` them (wait, and count them as done), `kill` them and run them again, or \
                 `ignore` them",
                list()
            )));
        }
        Orphans::Wait => {
            say("waiting for jobs of a killed run");
            let Ok(()) = await_orphans(root, reach, |_| Ok::<(), Infallible>(()));
            OrphansDone::Waited
        }
        Orphans::Adopt => {
            before.newly_adopted = adoptable(&before.started, &orphans)?;
            say("waiting for jobs of a killed run");
            let mut waiting = before.newly_adopted.clone();
            // Each is noted as soon as it has ended: the waiting can be long, and be interrupted.
            let noted = await_orphans(root, reach, |left| {
                let runs =
                    |job: &JobLine| left.iter().any(|orphan| job.is(&orphan.run, &orphan.job));
                let ended: Vec<JobLine> = waiting.extract_if(.., |job| !runs(job)).collect();
                runs::adopt(joblog, &ended)
            });
            noted.map_err(|error| {
                usage(format!(
                    "--joblog {}: {error}; nothing was started",
                    told(joblog)
                ))
            })?;
            OrphansDone::Adopted
        }
        Orphans::Kill => {
            say("ending jobs of a killed run");
            let (_, left) = end_orphans(root, reach, Duration::from_nanos(options.limits.grace.0));
            if !left.is_empty() {
                let left: Vec<String> = left.iter().map(orphan_text).collect();
                let message = format!(
                    "--orphans kill: could not end {}; nothing was started",
                    left.join("; ")
                );
                return Err(Failure {
                    exit: Exit::Failure,
                    message,
                }
                .into());
            }
            OrphansDone::Killed
        }
        Orphans::Ignore => OrphansDone::Ignored,
    };
    before.warnings.push(RunWarning::Orphans {
        jobs: orphans.len(),
        done,
    });
    Ok(())
}

/// Why a job log can't be begun anew; `None` if it can. A run goes on and writes to it, or jobs of a killed run go on.
pub(super) fn still_used(joblog: &Path) -> Option<String> {
    let root = Root::default();
    let Runs { runs, owner, .. } = runs::read(joblog);
    let runs: Vec<EarlierRun> = runs.into_iter().map(EarlierRun::of).collect();
    let lives = |run: &&EarlierRun| run.record.is_none() && fate(&root, &run.line) == Fate::Alive;
    if let Some(run) = runs.iter().find(lives) {
        let run = visible(&run.line.run_id);
        return Some(format!(
            "run {run} still goes on and writes to it; wait for its end, or choose another file"
        ));
    }
    let left = orphans_within(&root, &reach_of(&root, &runs, owner)?);
    let more = if left.len() > 1 { ", and more" } else { "" };
    left.first().map(|first| {
        format!(
            "jobs of a killed run that wrote to it still run ({}{more}); give --resume, or end them with `cosched thaw \
             --kill`, or choose another file",
            orphan_text(first)
        )
    })
}

/// Whether a run that left no record goes on.
fn fate(root: &Root, line: &RunLine) -> Fate {
    if line.host != host_name(root) {
        // Hosts can share a file system, and no other can be seen from here.
        return Fate::Unknown;
    }
    // Nothing outlives the machine.
    if line.boot != boot(root) {
        Fate::Dead
    } else {
        fate_of(root, &line.run_id)
    }
}

/// The folders in which files of a run can be: its log folder, and where a later run has put them aside.
fn places(line: &RunLine) -> Vec<PathBuf> {
    let Some(logs) = line.logs.as_ref().map(PathBuf::from) else {
        return Vec::new();
    };
    let earlier = (1..)
        .map(|number| logs.join(format!("{EARLIER}{number}")))
        .take_while(|folder| folder.symlink_metadata().is_ok_and(|meta| meta.is_dir()));
    std::iter::once(logs.clone()).chain(earlier).collect()
}

/// The runs that wrote to a job log, in their order, each by its `run_id` and the folders in which its files can be.
pub fn folders_of_batch(joblog: &Path) -> Vec<(String, Vec<PathBuf>)> {
    runs::read(joblog)
        .runs
        .iter()
        .map(|line| (line.run_id.clone(), places(line)))
        .collect()
}

/// The record that a run wrote, or that was written for it.
fn record_of(line: &RunLine) -> Option<(PathBuf, Record)> {
    places(line)
        .into_iter()
        .map(|folder| folder.join("run.json"))
        .find_map(|file| {
            let record = Record::from_json(&String::from_utf8(read_own(&file)?).ok()?).ok()?;
            let same =
                record.run_id.as_ref() == Some(&line.run_id) && record.setting.host == line.host;
            same.then_some((file, record))
        })
}

/// Writes the record of a run that was killed, from its series, if that is there.
fn write_back(before: &mut Before, ix: usize) {
    let line = &before.runs[ix].line;
    let found = places(line).into_iter().find_map(|folder| {
        let file = folder.join("series.jsonl");
        let series = SeriesReader::new(
            BufReader::new(open_own(&file)?),
            &file.display().to_string(),
        )
        .ok()?;
        let header = series.header();
        let same = header.run_id.as_ref() == Some(&line.run_id) && header.setting.host == line.host;
        same.then_some((folder, series))
    });
    let Some((folder, series)) = found else {
        return;
    };
    let log_of = |name: &str| {
        let file = |end: &str| {
            let file = folder.join(format!("{name}.{end}"));
            file.exists().then(|| file.display().to_string())
        };
        (file("out"), file("err"))
    };
    let ran = |name: &str| {
        before
            .found
            .iter()
            .any(|orphan| orphan.run == line.run_id && orphan.job == name)
    };
    let Ok(record) = rebuild(series, NoRecord::Killed, log_of, ran) else {
        return;
    };
    let logs = Path::new(line.logs.as_deref().unwrap_or_default());
    let own = lock(logs);
    if own
        .as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    {
        // A run that has begun to use the folder puts aside what it finds there.
        return;
    }
    let file = folder.join("run.json");
    // Another user's folder is left alone, and a disk may be full. The record is of use all the same.
    if own.is_ok() && write_whole(&file, record.to_json().as_bytes()).is_ok() {
        let lost = record.jobs.iter().filter(|job| job.lost).count();
        before.warnings.push(RunWarning::Rebuilt {
            file: file.display().to_string(),
            lost,
        });
    }
    before.runs[ix].record = Some((file, record));
}

/// A job that outlived its run, in words.
pub fn orphan_text(orphan: &Orphan) -> String {
    let name = if orphan.job.is_empty() {
        "a job".to_owned()
    } else {
        visible(&orphan.job)
    };
    let processes: Vec<String> = orphan
        .processes
        .iter()
        .take(8)
        .map(ToString::to_string)
        .collect();
    let more = if orphan.processes.len() > 8 {
        " and more"
    } else {
        ""
    };
    format!(
        "{name} of run {}, processes {}{more}",
        visible(&orphan.run),
        processes.join(" ")
    )
}
