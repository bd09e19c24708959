//! `--resume`: which jobs earlier runs have done, and what their records tell of them.

use super::killed::{Before, settle};
use super::options::RunOptions;
use super::runs::{self, JobLine};
use crate::exit::usage;
use crate::input::{Command, Job, told};
use cosched_report::{
    Absences, EarlierJob, Entry, Given, Job as JobRecord, JobLog, RunWarning, read_joblog,
};
use std::collections::{BTreeMap, VecDeque};
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// A batch, and what earlier runs have done of it.
#[derive(Default)]
pub(crate) struct Resumed {
    /// The jobs that are to run, with their numbers in the job log.
    pub(crate) left: Vec<(u64, Job)>,
    /// The jobs that are done.
    pub(crate) earlier: Vec<EarlierJob>,
    /// Some of them were adopted just now, and no record tells of that yet.
    pub(crate) newly_adopted: bool,
    /// What was looked at.
    pub(crate) seen: Seen,
    pub(crate) warnings: Vec<RunWarning>,
}

/// What a job log was when it was looked at. Another run can come in between until this one has it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The length of the job log in bytes.
    length: u64,
    /// The runs that had entered themselves beside it.
    runs: Vec<String>,
}

impl Seen {
    /// What it is now.
    pub(crate) fn now(joblog: &Path) -> Seen {
        let length = std::fs::metadata(joblog).map_or(0, |meta| meta.len());
        Seen {
            length,
            runs: runs::read(joblog)
                .runs
                .into_iter()
                .map(|run| run.run_id)
                .collect(),
        }
    }
}

/// A start in the job log is that in a record if they differ by less, in seconds: both are rounded.
const SAME_START: f64 = 0.003;
/// A job becomes its program within this time after its start was noted, in seconds, however busy the machine is.
const LONGEST_START: f64 = 60.0;
/// Why no record tells more.
const NO_RECORD: &str = "no record of its run was found";

/// Leaves out jobs that succeeded before, or that were adopted. A job is its command and what else it was given. Of several
/// that are alike, as copies are, only a success with the job's own number counts for it. Of successes in logs of others it
/// is not known what else was given: they count by the command, and by the number where several jobs have it. Without
/// `--resume` all are left to run.
///
/// # Errors
/// The job log can't be read; or as [`settle`].
pub(crate) fn resume(options: &RunOptions, jobs: Vec<Job>) -> anyhow::Result<Resumed> {
    let numbered = (1u64..).zip(jobs);
    let wanted = options.resume.zip(options.output.joblog.as_deref());
    let Some((how, path)) = wanted.filter(|(_, log)| was_begun(log)) else {
        return Ok(Resumed {
            left: numbered.collect(),
            ..Resumed::default()
        });
    };
    let length = std::fs::metadata(path).map_or(0, |meta| meta.len());
    let log = match std::fs::File::open(path) {
        Ok(file) => read_joblog(std::io::BufReader::new(file), &told(path))
            .map_err(|error| usage(error.to_string()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => JobLog::default(),
        Err(error) => return Err(usage(format!("{}: {error}", told(path)))),
    };
    let mut before = settle(options, how, path)?;
    let warnings = std::mem::take(&mut before.warnings);
    let mut done = Done::new(&log, &before);
    let mut adopted = Adopted::new(&before);
    let here = runs::own_folder();
    let mut elsewhere: Option<String> = None;
    let seen = Seen {
        length,
        runs: before
            .runs
            .iter()
            .map(|run| run.line.run_id.clone())
            .collect(),
    };
    let mut resumed = Resumed {
        seen,
        warnings,
        ..Resumed::default()
    };
    let with_line = |(seq, job): (u64, Job)| {
        let command = job.input.command.as_ref().map(Command::line);
        let given = job.input.given();
        (seq, job, command, given)
    };
    let numbered: Vec<(u64, Job, Option<String>, Given)> = numbered.map(with_line).collect();
    // How many jobs have a command, and how many were given the same as well.
    let mut users: BTreeMap<&str, (u32, BTreeMap<&Given, u32>)> = BTreeMap::new();
    for (_, _, command, given) in &numbered {
        let Some(command) = command else { continue };
        let (all, alike) = users.entry(command).or_default();
        *all += 1;
        *alike.entry(given).or_default() += 1;
    }
    let kind = |command: &str, given: &Given| match &users[command] {
        (1, _) => Kind::OnlyOfItsCommand,
        (_, alike) if alike[given] == 1 => Kind::Only,
        _ => Kind::OneOfSeveral,
    };
    let kinds = numbered
        .iter()
        .map(|(_, _, command, given)| command.as_ref().map(|command| kind(command, given)));
    let kinds: Vec<Option<Kind>> = kinds.collect();
    for ((seq, job, command, given), kind) in numbered.into_iter().zip(kinds) {
        let known = command.as_ref().zip(kind).and_then(|(command, kind)| {
            let sought = Sought {
                seq,
                name: &job.name,
                command,
                given: &given,
                kind,
            };
            done.take(&sought).or_else(|| adopted.take(&sought))
        });
        match known {
            Some(known) => {
                resumed.newly_adopted |= known.newly_adopted;
                // One with a folder of its own is another job there.
                let there = known
                    .folder
                    .as_ref()
                    .filter(|there| given.cwd.is_none() && here.as_ref() != Some(there));
                elsewhere = elsewhere.or_else(|| there.cloned());
                resumed.earlier.push(known.record(seq, &job.name, command));
            }
            None => resumed.left.push((seq, job)),
        }
    }
    resumed
        .warnings
        .extend(elsewhere.map(|there| RunWarning::ResumedElsewhere { there }));
    let succeeded = log.successes().count() as u64;
    if succeeded > 0 && resumed.earlier.is_empty() && !resumed.left.is_empty() {
        resumed.warnings.push(RunWarning::NoneResumed { succeeded });
    }
    Ok(resumed)
}

/// Whether runs wrote to a job log. Where it was removed, jobs of a killed run may still be known.
fn was_begun(joblog: &Path) -> bool {
    joblog.exists() || runs::beside(joblog).is_some_and(|runs| runs.exists())
}

/// Whether there are several jobs of one kind in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// No other job has its command.
    OnlyOfItsCommand,
    /// Others have its command, and were given something else.
    Only,
    /// Others are alike.
    OneOfSeveral,
}

/// A job of the batch.
struct Sought<'a> {
    seq: u64,
    name: &'a str,
    command: &'a str,
    given: &'a Given,
    kind: Kind,
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
    /// The folder in which its run was started.
    folder: Option<String>,
    /// Its run, the file with its record, and the job in it.
    run: Option<(String, Option<String>)>,
    job: Option<JobRecord>,
}

impl Known {
    fn record(self, seq: u64, name: &str, command: Option<String>) -> EarlierJob {
        let mut absent = Absences::default();
        let (run_id, record) = self
            .run
            .map_or((None, None), |(run, record)| (Some(run), record));
        let started_at = self
            .started
            .and_then(instant)
            .map(|at| humantime::format_rfc3339_millis(at).to_string());
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

/// A success, and its start if that was noted.
type Success<'a> = (&'a Entry, Option<&'a JobLine>);

/// The jobs that succeeded before, by their commands.
struct Done<'a> {
    before: &'a Before,
    successes: BTreeMap<&'a str, VecDeque<Success<'a>>>,
    /// Each command's in the order of their starts.
    recorded: BTreeMap<&'a str, Vec<Recorded<'a>>>,
}

impl<'a> Done<'a> {
    fn new(log: &'a JobLog, before: &'a Before) -> Done<'a> {
        let mut starts: BTreeMap<u64, Vec<(f64, &JobLine)>> = BTreeMap::new();
        for line in &before.started {
            starts
                .entry(line.seq)
                .or_default()
                .extend(seconds(&line.started_at).map(|at| (at, line)));
        }
        // A start is noted just before it, and a number is not started twice at a time.
        let start = |entry: &Entry| {
            let is_it = |(at, line): &&(f64, &JobLine)| {
                let since = entry.start_s - at;
                line.command == entry.command && since > -SAME_START && since < LONGEST_START
            };
            starts
                .get(&entry.seq)?
                .iter()
                .rev()
                .find(is_it)
                .map(|&(_, line)| line)
        };
        let mut successes: BTreeMap<&str, VecDeque<Success<'_>>> = BTreeMap::new();
        for entry in log.successes() {
            successes
                .entry(&entry.command)
                .or_default()
                .push_back((entry, start(entry)));
        }
        let mut recorded: BTreeMap<&str, Vec<Recorded<'_>>> = BTreeMap::new();
        for run in &before.runs {
            let Some((file, record)) = &run.record else {
                continue;
            };
            let Some(began) = record.started_at.as_deref().and_then(seconds) else {
                continue;
            };
            let folder = file.parent().unwrap_or(Path::new(""));
            for job in record.jobs.iter().filter(|job| job.exit == Some(0)) {
                let (Some(command), Some(start)) = (&job.command, job.start_s) else {
                    continue;
                };
                let (file, started) = (file.display().to_string(), began + start);
                let found = Recorded {
                    run: &run.line.run_id,
                    file,
                    folder,
                    started,
                    job,
                    used: false,
                };
                recorded.entry(command).or_default().push(found);
            }
        }
        recorded
            .values_mut()
            .for_each(|all| all.sort_by(|a, b| a.started.total_cmp(&b.started)));
        Done {
            before,
            successes,
            recorded,
        }
    }

    /// A success of this job.
    fn take(&mut self, job: &Sought<'_>) -> Option<Known> {
        let entries = self.successes.get_mut(job.command)?;
        let position = |holds: &dyn Fn(&Success<'_>) -> bool| entries.iter().position(holds);
        let alike = |start: &JobLine| start.given == *job.given;
        let at = position(&|(entry, start)| entry.seq == job.seq && start.is_none_or(alike))
            .or_else(|| {
                position(&|(_, start)| job.kind != Kind::OneOfSeveral && start.is_some_and(alike))
            })
            .or_else(|| {
                position(&|(_, start)| job.kind == Kind::OnlyOfItsCommand && start.is_none())
            })?;
        let (entry, start) = entries.remove(at)?;
        let found = self.recorded.get_mut(job.command).and_then(|all| {
            let from = all.partition_point(|found| found.started <= entry.start_s - SAME_START);
            let near = all[from..]
                .iter_mut()
                .take_while(|found| found.started < entry.start_s + SAME_START);
            near.into_iter().find(|found| {
                !found.used && start.is_none_or(|start| start.given == found.job.given)
            })
        });
        let (run, job) = match found {
            Some(found) => {
                found.used = true;
                (
                    Some((found.run.to_owned(), Some(found.file.clone()))),
                    Some(beside(found.job, found.folder)),
                )
            }
            None => (None, None),
        };
        Some(Known {
            started: Some(entry.start_s),
            runtime_s: Some(entry.runtime_s),
            exit: Some(entry.exit),
            adopted: false,
            newly_adopted: false,
            folder: start.and_then(|start| self.before.folder_of(&start.run_id)),
            run,
            job,
        })
    }
}

/// Jobs that were adopted, by their commands.
struct Adopted<'a> {
    jobs: BTreeMap<&'a str, Vec<(&'a JobLine, Known)>>,
}

impl<'a> Adopted<'a> {
    fn new(before: &'a Before) -> Adopted<'a> {
        let mut jobs: BTreeMap<&str, Vec<(&JobLine, Known)>> = BTreeMap::new();
        let earlier = before.adopted.iter().map(|line| (line, false));
        for (line, newly_adopted) in
            earlier.chain(before.newly_adopted.iter().map(|line| (line, true)))
        {
            let run = before.run(&line.run_id).and_then(|run| run.record.as_ref());
            let job =
                run.and_then(|(_, record)| record.jobs.iter().find(|job| job.name == line.job));
            let folder = run
                .and_then(|(file, _)| file.parent())
                .unwrap_or(Path::new(""));
            let known = Known {
                started: seconds(&line.started_at),
                runtime_s: None,
                exit: None,
                adopted: true,
                newly_adopted,
                folder: before.folder_of(&line.run_id),
                run: Some((
                    line.run_id.clone(),
                    run.map(|(file, _)| file.display().to_string()),
                )),
                job: job.map(|job| beside(job, folder)),
            };
            jobs.entry(&line.command).or_default().push((line, known));
        }
        Adopted { jobs }
    }

    /// This job, if it was adopted.
    fn take(&mut self, job: &Sought<'_>) -> Option<Known> {
        let jobs = self.jobs.get_mut(job.command)?;
        let alike = |(line, _): &(&JobLine, Known)| line.given == *job.given;
        let own = jobs
            .iter()
            .position(|known| alike(known) && known.0.job == job.name);
        let any = || {
            jobs.iter()
                .rposition(|known| alike(known) && job.kind != Kind::OneOfSeveral)
        };
        Some(jobs.remove(own.or_else(any)?).1)
    }
}

/// A job with its files where its record is now: they may have been put aside together.
fn beside(job: &JobRecord, folder: &Path) -> JobRecord {
    let mut job = job.clone();
    for file in [&mut job.log, &mut job.log_stderr].into_iter().flatten() {
        let now = Path::new(file.as_str())
            .file_name()
            .map(|name| folder.join(name));
        if let Some(now) = now.filter(|now| now.exists()) {
            *file = now.display().to_string();
        }
    }
    job
}

/// Notes that the files of a job were moved from one folder to another.
pub(crate) fn moved(job: &mut EarlierJob, from: &Path, to: &Path) {
    let files = job
        .job
        .as_mut()
        .map(|job| [job.log.as_mut(), job.log_stderr.as_mut()]);
    let files = files.into_iter().flatten().flatten();
    job.record
        .as_mut()
        .into_iter()
        .chain(files)
        .for_each(|file| move_file(file, from, to));
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
    at.duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .map(|time| time.as_secs_f64())
}
