//! `--resume`: the jobs that succeeded in earlier runs, with their records.

use super::folder::JOBLOG;
use super::killed::{Before, settle};
use super::options::{Logs, Orphans, RunOptions};
use super::runs::{self, JobLine};
use crate::exit::usage;
use crate::input::{Command, Job, told};
use cosched_report::{
    Absences, EarlierJob, JobGiven, JobLog, JobLogEntry, JobRecord, RunWarning, read_joblog,
};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A batch, and what earlier runs have done of it.
#[derive(Default)]
pub(crate) struct Resumed {
    /// The jobs that are to run, with their numbers in the job log.
    pub(crate) left: Vec<(u64, Job)>,
    /// The jobs that are done.
    pub(crate) earlier: Vec<EarlierJob>,
    /// What was looked at.
    pub(crate) seen: JobLogState,
    pub(crate) warnings: Vec<RunWarning>,
}

/// What a job log was when it was looked at. Another run can come in between until this one has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct JobLogState {
    /// The length of the job log in bytes.
    length: u64,
    /// The runs that had entered themselves beside it.
    runs: Vec<String>,
}

impl JobLogState {
    /// What it is now.
    pub(crate) fn now(joblog: &Path) -> JobLogState {
        let length = std::fs::metadata(joblog).map_or(0, |meta| meta.len());
        let entered = runs::read(joblog).runs.into_iter();
        JobLogState {
            length,
            runs: entered.map(|run| run.run_id).collect(),
        }
    }
}

/// A start in the job log is that in a record if they differ by less, in seconds: both are rounded.
const SAME_START: f64 = 0.003;
/// Longest time from the note of a start to the start of the program, in seconds, however busy the machine is.
const LONGEST_START: f64 = 60.0;
/// Why no record tells more.
const NO_RECORD: &str = "no record of its run was found";

/// Skips jobs that succeeded before; without `--resume`, none.
///
/// A job is identified by its command, folder, variables and input. If several jobs of the batch are identical, as copies
/// are, a success counts only for the job with its number. A job log of GNU parallel has only the commands: its successes
/// count by command, and by number if several jobs share the command.
///
/// # Errors
/// The job log can't be read; or as [`settle`].
pub(crate) fn resume(options: &RunOptions, jobs: Vec<Job>) -> anyhow::Result<Resumed> {
    let mut resumed = Resumed::default();
    let numbered = (1..).zip(jobs);
    let Some((how, path)) = begun_log(options)? else {
        resumed.left = numbered.collect();
        return Ok(resumed);
    };
    resumed.seen = JobLogState::now(&path);
    let log = read_log(&path)?;
    let sought: Vec<Sought> = numbered.map(|(seq, job)| Sought::new(seq, job)).collect();
    if options.has_own_joblog() {
        check_batch(&log, &sought, &path)?;
    }
    let mut before = settle(options, how, &path)?;
    resumed.warnings = std::mem::take(&mut before.warnings);
    let alike = Alike::count(&sought);
    let mut done = Done::new(&log, &before);
    for job in &sought {
        if let Some(known) = done.take(job, &alike) {
            resumed.earlier.push(known);
        } else {
            resumed.left.push((job.seq, job.job.clone()));
        }
    }
    let succeeded = log.successes().count() as u64;
    if succeeded > 0 && resumed.earlier.is_empty() && !resumed.left.is_empty() {
        resumed.warnings.push(RunWarning::NoneResumed { succeeded });
    }
    Ok(resumed)
}

/// Whether there is something to resume. What is wrong is told later.
pub(crate) fn has_begun(options: &RunOptions) -> bool {
    !matches!(begun_log(options), Ok(None))
}

/// The job log to resume, if runs wrote to it. Where it was removed, jobs of a killed run may still be known.
///
/// # Errors
/// The user named a log folder that has none.
fn begun_log(options: &RunOptions) -> anyhow::Result<Option<(Orphans, PathBuf)>> {
    let Some(how) = options.resume else {
        return Ok(None);
    };
    let log = match (&options.output.joblog, &options.output.logs) {
        (Some(log), _) => log.clone(),
        (None, Logs::At(folder)) => folder.join(JOBLOG),
        (None, _) => return Ok(None),
    };
    let is_begun = log.exists() || runs::beside(&log).is_some_and(|runs| runs.exists());
    if !is_begun && options.has_own_joblog() {
        let name = told(&log);
        return Err(usage(format!(
            "--resume: there is no {name}; give the log folder of a run, and the run's --joblog FILE if it had one; nothing was started"
        )));
    }
    Ok(is_begun.then_some((how, log)))
}

fn read_log(path: &Path) -> anyhow::Result<JobLog> {
    let name = told(path);
    match File::open(path) {
        Ok(file) => {
            let log = read_joblog(BufReader::new(file), &name);
            log.map_err(|error| usage(error.to_string()))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(JobLog::default()),
        Err(error) => Err(usage(format!("{name}: {error}"))),
    }
}

/// A job of the batch.
struct Sought {
    seq: u64,
    job: Job,
    command: Option<String>,
    given: JobGiven,
}

impl Sought {
    fn new(seq: u64, job: Job) -> Sought {
        Sought {
            seq,
            command: job.input.command.as_ref().map(Command::line),
            given: job.input.given(),
            job,
        }
    }
}

/// Refuses to continue a log folder with another batch, before any job of its killed run is ended.
fn check_batch(log: &JobLog, sought: &[Sought], path: &Path) -> anyhow::Result<()> {
    let commands: HashSet<&str> = log.entries.iter().map(|entry| &*entry.command).collect();
    let mut wanted = sought.iter().filter_map(|job| job.command.as_deref());
    if commands.is_empty() || wanted.any(|command| commands.contains(command)) {
        return Ok(());
    }
    let name = told(path);
    Err(usage(format!(
        "--resume: no job of this command line is in {name}; give the same command line, and the same values on standard input; nothing was started"
    )))
}

/// How many jobs of the batch have a command, and how many were given the same as well.
#[derive(Default)]
struct Alike<'a> {
    commands: BTreeMap<&'a str, u32>,
    jobs: BTreeMap<(&'a str, &'a JobGiven), u32>,
}

impl<'a> Alike<'a> {
    fn count(jobs: &'a [Sought]) -> Alike<'a> {
        let mut alike = Alike::default();
        for job in jobs {
            if let Some(command) = &job.command {
                *alike.commands.entry(command).or_default() += 1;
                *alike.jobs.entry((command, &job.given)).or_default() += 1;
            }
        }
        alike
    }

    /// Whether a success can be that of a job, whatever its number.
    fn is_only(&self, command: &str, job: &Sought, start: Option<&JobLine>) -> bool {
        match start {
            Some(_) => self.jobs[&(command, &job.given)] == 1,
            None => self.commands[command] == 1,
        }
    }
}

/// A job in the record of an earlier run.
struct Recorded<'a> {
    run: &'a str,
    file: &'a Path,
    /// Since the epoch, in seconds.
    started: f64,
    job: &'a JobRecord,
    used: bool,
}

/// A job that succeeded.
struct Success<'a> {
    entry: &'a JobLogEntry,
    /// Its start, if that was noted.
    start: Option<&'a JobLine>,
}

/// The jobs that succeeded before, by their commands.
struct Done<'a> {
    successes: BTreeMap<&'a str, VecDeque<Success<'a>>>,
    /// Each command's in the order of their starts.
    recorded: BTreeMap<&'a str, Vec<Recorded<'a>>>,
}

impl<'a> Done<'a> {
    fn new(log: &'a JobLog, before: &'a Before) -> Done<'a> {
        let mut starts: BTreeMap<u64, Vec<&JobLine>> = BTreeMap::new();
        for line in &before.started {
            starts.entry(line.seq).or_default().push(line);
        }
        let mut successes: BTreeMap<&str, VecDeque<Success>> = BTreeMap::new();
        for entry in log.successes() {
            let starts = starts.get(&entry.seq);
            let start = starts.and_then(|starts| start_of(entry, starts));
            let same = successes.entry(&entry.command).or_default();
            same.push_back(Success { entry, start });
        }
        Done {
            successes,
            recorded: recorded(before),
        }
    }

    /// A success of this job.
    fn take(&mut self, job: &Sought, alike: &Alike<'_>) -> Option<EarlierJob> {
        let command = job.command.as_deref()?;
        let entries = self.successes.get_mut(command)?;
        let mut fitting = None;
        for (at, Success { entry, start }) in entries.iter().enumerate() {
            if start.is_some_and(|start| start.given != job.given) {
                continue;
            }
            if entry.seq == job.seq {
                fitting = Some(at);
                break;
            }
            if fitting.is_none() && alike.is_only(command, job, *start) {
                fitting = Some(at);
            }
        }
        let Success { entry, start } = entries.remove(fitting?)?;
        let all = self.recorded.get_mut(command);
        let found = all.and_then(|all| recorded_as(all, entry, start));
        Some(earlier_job(job, entry, found))
    }
}

/// The start of a success among the starts of its number: it is noted just before it, and a number is not started twice at a
/// time.
fn start_of<'a>(entry: &JobLogEntry, starts: &[&'a JobLine]) -> Option<&'a JobLine> {
    for line in starts.iter().rev() {
        let Some(at) = seconds(&line.started_at) else {
            continue;
        };
        let since = entry.start_s - at;
        if line.command == entry.command && since > -SAME_START && since < LONGEST_START {
            return Some(line);
        }
    }
    None
}

/// The jobs that succeeded in the records of earlier runs.
fn recorded(before: &Before) -> BTreeMap<&str, Vec<Recorded<'_>>> {
    let mut recorded: BTreeMap<&str, Vec<Recorded<'_>>> = BTreeMap::new();
    for run in &before.runs {
        let Some((file, record)) = &run.record else {
            continue;
        };
        let Some(began) = record.started_at.as_deref().and_then(seconds) else {
            continue;
        };
        for job in &record.jobs {
            let Some(command) = &job.command else {
                continue;
            };
            let Some(start) = job.end.start_s.filter(|_| job.end.exit == Some(0)) else {
                continue;
            };
            recorded.entry(command).or_default().push(Recorded {
                run: &run.line.run_id,
                file,
                started: began + start,
                job,
                used: false,
            });
        }
    }
    for all in recorded.values_mut() {
        all.sort_by(|a, b| a.started.total_cmp(&b.started));
    }
    recorded
}

/// Takes the job in a record that a success is, by its start.
fn recorded_as<'a, 'b>(
    all: &'b mut [Recorded<'a>],
    entry: &JobLogEntry,
    start: Option<&JobLine>,
) -> Option<&'b Recorded<'a>> {
    let from = all.partition_point(|found| found.started <= entry.start_s - SAME_START);
    for found in &mut all[from..] {
        if found.started >= entry.start_s + SAME_START {
            return None;
        }
        let is_same = start.is_none_or(|start| start.given == found.job.given);
        if is_same && !found.used {
            found.used = true;
            return Some(found);
        }
    }
    None
}

fn earlier_job(job: &Sought, entry: &JobLogEntry, found: Option<&Recorded<'_>>) -> EarlierJob {
    let mut absent = Absences::default();
    let started_at = instant(entry.start_s);
    let started_at = started_at.map(|at| humantime::format_rfc3339_millis(at).to_string());
    let run_id = found.map(|found| found.run.to_owned());
    let record = found.map(|found| found.file.display().to_string());
    let recorded = found.map(|found| beside(found.job, found.file));
    EarlierJob {
        seq: job.seq,
        name: job.job.name.clone(),
        command: job.command.clone(),
        started_at: absent.note_option("started_at", started_at, NO_RECORD),
        runtime_s: entry.runtime_s,
        exit: entry.exit,
        run_id: absent.note_option("run_id", run_id, NO_RECORD),
        record: absent.note_option("record", record, NO_RECORD),
        job: absent.note_option("job", recorded, NO_RECORD),
        absent,
    }
}

/// A job with its files where its record is now: they may have been put aside together.
fn beside(job: &JobRecord, record: &Path) -> JobRecord {
    let mut job = job.clone();
    for file in [&mut job.log, &mut job.log_stderr].into_iter().flatten() {
        let name = Path::new(file.as_str()).file_name();
        let now = name.map(|name| record.with_file_name(name));
        if let Some(now) = now
            && now.exists()
        {
            *file = now.display().to_string();
        }
    }
    job
}

/// Notes that the files of a job were moved from one folder to another.
pub(crate) fn moved(earlier: &mut EarlierJob, from: &Path, to: &Path) {
    let mut files = vec![&mut earlier.record];
    if let Some(job) = &mut earlier.job {
        files.extend([&mut job.log, &mut job.log_stderr]);
    }
    for file in files.into_iter().flatten() {
        move_file(file, from, to);
    }
}

/// The name of a file after files in one folder have been moved to another.
pub(crate) fn move_file(file: &mut String, from: &Path, to: &Path) {
    let path = Path::new(file.as_str());
    if path.parent() == Some(from)
        && !path.exists()
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
    let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64())
}
