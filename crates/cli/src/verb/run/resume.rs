//! `--resume`: which jobs earlier runs have done, and what their records tell of them.

use super::args::RunArgs;
use super::killed::{Before, settle};
use super::runs::{self, AdoptedLine};
use crate::exit::usage;
use crate::input::{Command, Job, told};
use cosched_report::{Absences, EarlierJob, Entry, Job as JobRecord, JobLog, RunWarning, SIMULATED_HOST, read_joblog};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A batch, and what earlier runs have done of it.
pub(crate) struct Resumed {
    /// The jobs that are to run, with their numbers in the job log.
    pub(crate) left: Vec<(u64, Job)>,
    /// The jobs that are done.
    pub(crate) earlier: Vec<EarlierJob>,
    /// Some of them were adopted just now, and no record tells of that yet.
    pub(crate) newly_adopted: bool,
    pub(crate) warnings: Vec<RunWarning>,
}

/// A start in the job log is that in a record if they differ by less, in seconds: both are rounded.
const SAME_START: f64 = 0.003;
/// Why no record tells more.
const NO_RECORD: &str = "no record of its run was found";

/// Leaves out jobs whose command succeeded before, or that were adopted. Where several jobs have the same command (copies,
/// or jobs that differ in their environment or folder) only a success with the job's own number counts for it. Without
/// `--resume` all are left to run.
///
/// # Errors
/// The job log can't be read; or as [`settle`].
pub(crate) fn resume(args: &RunArgs, jobs: Vec<Job>) -> anyhow::Result<Resumed> {
    let numbered = (1u64..).zip(jobs);
    let log = args.output.joblog.as_ref().filter(|log| args.resume && log.exists());
    let Some(path) = log else {
        return Ok(Resumed { left: numbered.collect(), earlier: vec![], newly_adopted: false, warnings: vec![] });
    };
    let file = std::fs::File::open(path).map_err(|error| usage(format!("{}: {error}", told(path))))?;
    let log = read_joblog(std::io::BufReader::new(file), &told(path));
    let log = log.map_err(|error| usage(error.to_string()))?;
    let mut before = settle(args, path)?;
    let warnings = std::mem::take(&mut before.warnings);
    let mut done = Done::new(&log, &before);
    let mut adopted = Adopted::new(&before, runs::adopted(path));
    if !args.dry_run {
        let noted = runs::adopt(path, &std::mem::take(&mut adopted.fresh));
        noted.map_err(|error| usage(format!("--joblog {}: {error}; nothing was started", told(path))))?;
    }
    let mut resumed = Resumed { left: vec![], earlier: vec![], newly_adopted: false, warnings };
    let with_line = |(seq, job): (u64, Job)| {
        let command = job.input.command.as_ref().map(Command::line);
        (seq, job, command)
    };
    let numbered: Vec<(u64, Job, Option<String>)> = numbered.map(with_line).collect();
    let mut users: BTreeMap<String, u32> = BTreeMap::new();
    for command in numbered.iter().filter_map(|(_, _, command)| command.clone()) {
        *users.entry(command).or_default() += 1;
    }
    for (seq, job, command) in numbered {
        let known = command.as_ref().and_then(|command| {
            let is_only = users.get(command) == Some(&1);
            done.take(seq, command, is_only).or_else(|| adopted.take(&job.name, command, is_only))
        });
        match known {
            Some(known) => {
                resumed.newly_adopted |= known.newly_adopted;
                resumed.earlier.push(known.record(seq, &job.name, command));
            }
            None => resumed.left.push((seq, job)),
        }
    }
    let succeeded = log.entries.iter().filter(|entry| entry.ok()).count() as u64;
    if succeeded > 0 && resumed.earlier.is_empty() && !resumed.left.is_empty() {
        resumed.warnings.push(RunWarning::NoneResumed { succeeded });
    }
    Ok(resumed)
}

/// What is known of a job that was done before.
struct Known {
    /// When it was started, since the epoch, and how long it ran, both in seconds.
    started: Option<f64>,
    runtime_s: Option<f64>,
    exit: Option<i32>,
    /// It was adopted, by this run or an earlier one.
    adopted: bool,
    newly_adopted: bool,
    /// Its run, the file with its record, and the job in it.
    run: Option<(String, Option<String>)>,
    job: Option<JobRecord>,
}

impl Known {
    fn record(self, seq: u64, name: &str, command: Option<String>) -> EarlierJob {
        let mut absent = Absences::default();
        let (run_id, record) = self.run.map_or((None, None), |(run, record)| (Some(run), record));
        let started_at = self.started.and_then(instant).map(|at| humantime::format_rfc3339_millis(at).to_string());
        let lost = "it was adopted from a killed run";
        EarlierJob {
            seq,
            name: name.to_owned(),
            command: absent.note_option("command", command, "not given"),
            started_at: absent.note_option("started_at", started_at, NO_RECORD),
            runtime_s: absent.note_option("runtime_s", self.runtime_s, lost),
            exit: absent.note_option("exit", self.exit, lost),
            adopted: self.adopted,
            run_id: absent.note_option("run_id", run_id, NO_RECORD),
            record: absent.note_option("record", record, NO_RECORD),
            job: absent.note_option("job", self.job, NO_RECORD),
            absent,
        }
    }
}

/// A job in the record of an earlier run.
struct Recorded<'a> {
    run: &'a str,
    file: String,
    folder: &'a Path,
    /// Since the epoch, in seconds.
    started: f64,
    job: &'a JobRecord,
    used: bool,
}

/// The jobs that succeeded before, by their commands.
struct Done<'a> {
    successes: BTreeMap<&'a str, VecDeque<&'a Entry>>,
    /// Each command's in the order of their starts.
    recorded: BTreeMap<&'a str, Vec<Recorded<'a>>>,
}

impl<'a> Done<'a> {
    fn new(log: &'a JobLog, before: &'a Before) -> Done<'a> {
        let mut successes: BTreeMap<&str, VecDeque<&Entry>> = BTreeMap::new();
        for entry in log.entries.iter().filter(|entry| entry.ok() && entry.host != SIMULATED_HOST) {
            successes.entry(&entry.command).or_default().push_back(entry);
        }
        let mut recorded: BTreeMap<&str, Vec<Recorded<'_>>> = BTreeMap::new();
        for run in &before.runs {
            let Some((file, record)) = &run.record else { continue };
            let Some(began) = record.started_at.as_deref().and_then(seconds) else { continue };
            let folder = file.parent().unwrap_or(Path::new(""));
            for job in record.jobs.iter().filter(|job| job.exit == Some(0)) {
                let (Some(command), Some(start)) = (&job.command, job.start_s) else { continue };
                let (file, started) = (file.display().to_string(), began + start);
                let found = Recorded { run: &run.line.run_id, file, folder, started, job, used: false };
                recorded.entry(command).or_default().push(found);
            }
        }
        recorded.values_mut().for_each(|all| all.sort_by(|a, b| a.started.total_cmp(&b.started)));
        Done { successes, recorded }
    }

    /// A success of the job with this number and this command; of any with this command, if the job is the only one.
    fn take(&mut self, seq: u64, command: &str, is_only: bool) -> Option<Known> {
        let entries = self.successes.get_mut(command)?;
        let own = entries.iter().position(|entry| entry.seq == seq);
        let entry = entries.remove(own.or(is_only.then_some(0))?)?;
        let found = self.recorded.get_mut(command).and_then(|all| {
            let from = all.partition_point(|found| found.started <= entry.start_s - SAME_START);
            let near = all[from..].iter_mut().take_while(|found| found.started < entry.start_s + SAME_START);
            near.into_iter().find(|found| !found.used)
        });
        let (run, job) = match found {
            Some(found) => {
                found.used = true;
                (Some((found.run.to_owned(), Some(found.file.clone()))), Some(beside(found.job, found.folder)))
            }
            None => (None, None),
        };
        Some(Known {
            started: Some(entry.start_s),
            runtime_s: Some(entry.runtime_s),
            exit: Some(entry.exit),
            adopted: false,
            newly_adopted: false,
            run,
            job,
        })
    }
}

/// Jobs that were adopted, by their commands.
struct Adopted {
    /// Each with its name.
    jobs: BTreeMap<String, Vec<(String, Known)>>,
    /// Those that were adopted just now.
    fresh: Vec<AdoptedLine>,
}

impl Adopted {
    fn new(before: &Before, earlier: Vec<AdoptedLine>) -> Adopted {
        let mut lines = Vec::new();
        let mut jobs: BTreeMap<String, Vec<(String, Known)>> = BTreeMap::new();
        let mut known: BTreeSet<(&str, &str)> = BTreeSet::new();
        // An orphan can have several entries, one for each way in which its processes were found.
        let found = before.found.iter().filter(|_| before.adopted);
        let distinct = found.filter(|orphan| known.insert((&orphan.run, &orphan.job)));
        for orphan in distinct {
            let run = before.runs.iter().find(|run| run.line.run_id == orphan.run);
            let Some((file, record)) = run.and_then(|run| run.record.as_ref()) else { continue };
            // A job that had ended well, and left processes, is done without that.
            let lost = record.jobs.iter().find(|job| job.name == orphan.job && job.exit != Some(0));
            let Some((job, command)) = lost.and_then(|job| Some((job, job.command.clone()?))) else { continue };
            let started = record.started_at.as_deref().and_then(seconds).zip(job.start_s).map(|(run, job)| run + job);
            lines.push(AdoptedLine::new(&orphan.run, &job.name, &command, started.and_then(instant)));
            let known = Known {
                started,
                runtime_s: None,
                exit: None,
                adopted: true,
                newly_adopted: true,
                run: Some((orphan.run.clone(), Some(file.display().to_string()))),
                job: Some(beside(job, file.parent().unwrap_or(Path::new("")))),
            };
            jobs.entry(command).or_default().push((job.name.clone(), known));
        }
        for line in earlier {
            let run = before.runs.iter().find(|run| run.line.run_id == line.run_id).and_then(|run| run.record.as_ref());
            let job = run.and_then(|(_, record)| record.jobs.iter().find(|job| job.name == line.job));
            let folder = run.and_then(|(file, _)| file.parent()).unwrap_or(Path::new(""));
            let known = Known {
                started: line.started_at.as_deref().and_then(seconds),
                runtime_s: None,
                exit: None,
                adopted: true,
                newly_adopted: false,
                run: Some((line.run_id, run.map(|(file, _)| file.display().to_string()))),
                job: job.map(|job| beside(job, folder)),
            };
            jobs.entry(line.command).or_default().push((line.job, known));
        }
        Adopted { jobs, fresh: lines }
    }

    /// The job of this name and this command; any with this command, if the job is the only one.
    fn take(&mut self, name: &str, command: &str, is_only: bool) -> Option<Known> {
        let jobs = self.jobs.get_mut(command)?;
        let own = jobs.iter().position(|(known, _)| known == name);
        let last = jobs.len().checked_sub(1).filter(|_| is_only);
        Some(jobs.remove(own.or(last)?).1)
    }
}

/// A job with its files where its record is now: they may have been put aside together.
fn beside(job: &JobRecord, folder: &Path) -> JobRecord {
    let mut job = job.clone();
    for file in [&mut job.log, &mut job.log_stderr].into_iter().flatten() {
        let now = Path::new(file.as_str()).file_name().map(|name| folder.join(name));
        if let Some(now) = now.filter(|now| now.exists()) {
            *file = now.display().to_string();
        }
    }
    job
}

/// Notes that the files of a job were moved from one folder to another.
pub(crate) fn moved(job: &mut EarlierJob, from: &Path, to: &Path) {
    let files = job.job.as_mut().map(|job| [job.log.as_mut(), job.log_stderr.as_mut()]);
    let files = files.into_iter().flatten().flatten();
    job.record.as_mut().into_iter().chain(files).for_each(|file| move_file(file, from, to));
}

/// The name of a file after everything in one folder has been moved to another.
pub(crate) fn move_file(file: &mut String, from: &Path, to: &Path) {
    let path = Path::new(file.as_str());
    if path.parent() == Some(from)
        && let Some(name) = path.file_name()
    {
        *file = to.join(name).display().to_string();
    }
}

/// The instant so many seconds after the epoch.
fn instant(seconds: f64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::try_from_secs_f64(seconds).ok()?)
}

/// An instant since the epoch, in seconds.
fn seconds(at: &str) -> Option<f64> {
    let at = humantime::parse_rfc3339(at).ok()?;
    at.duration_since(SystemTime::UNIX_EPOCH).ok().map(|time| time.as_secs_f64())
}
