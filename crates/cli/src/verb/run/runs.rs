//! The runs that wrote to a job log, and their jobs: a file beside it, with a line for each start. By it `--resume` finds
//! the records of runs, tells jobs with one command apart, and knows what the jobs of killed runs are. The job log itself
//! has the format of GNU parallel, and no room for this.

use super::danger::danger_of_file;
use crate::input::told;
use crate::whole_file::{open_regular, write_regular};
use cosched_linux::identity::{boot, host_name};
use cosched_linux::root::Root;
use cosched_report::{Given, JobInfo, LineSink, RunFile, RunWarning};
use rustix::fs::OFlags;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The format's name and version.
pub(crate) const RUNS_SCHEMA: &str = "cosched.runs/1";

/// A run that wrote to a job log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLine {
    schema: String,
    /// Tells it from every other run on its host since that was started.
    pub(crate) run_id: String,
    /// Its host; null if the kernel does not tell it.
    pub(crate) host: Option<String>,
    /// Tells that start of the host from all others.
    pub(crate) boot: Option<String>,
    /// When it was started, RFC 3339 in UTC.
    pub(crate) started_at: String,
    /// Its log folder, absolute; null if the name is no UTF-8.
    pub(crate) logs: Option<String>,
    /// The folder in which it was started; null if the name is no UTF-8.
    pub(crate) cwd: Option<String>,
    /// The user whose file the line was read from. It says nothing about the processes of others.
    #[serde(skip)]
    pub(crate) told_by: Option<u32>,
}

/// The format's name and version for a job that was started.
const JOB_SCHEMA: &str = "cosched.job/1";

/// A start of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobLine {
    schema: String,
    /// Its run.
    pub(crate) run_id: String,
    /// Its number in the job log.
    pub(crate) seq: u64,
    /// Its name in that run.
    pub(crate) job: String,
    /// Its command, as in the job log.
    pub(crate) command: String,
    /// What else it was given.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub(crate) given: Given,
    /// When it was started, RFC 3339 in UTC.
    pub(crate) started_at: String,
}

/// Writes a line for each job that is started. Without a job log to resume from it writes nothing.
#[derive(Default)]
pub(crate) struct Journal {
    file: Option<(LineSink<File>, String)>,
}

impl Journal {
    /// Goes on with the file beside a job log, in which this run has entered itself.
    ///
    /// # Errors
    /// It can't be opened.
    pub(crate) fn open(joblog: &Path) -> std::io::Result<Journal> {
        let (Some(path), Some(run_id)) = (beside(joblog), cosched_linux::own_run(&Root::default())) else {
            return Ok(Journal::default());
        };
        let file = write_regular(&path, OFlags::APPEND).map_err(named(&path))?;
        Ok(Journal { file: Some((LineSink::lasting(file, RunFile::Runs), run_id)) })
    }

    /// Notes that a job was started.
    pub(crate) fn started(&mut self, job: &JobInfo, at: SystemTime) {
        let Some((sink, run_id)) = &mut self.file else { return };
        let line = JobLine {
            schema: JOB_SCHEMA.to_owned(),
            run_id: run_id.clone(),
            seq: job.seq,
            job: job.name.clone(),
            command: job.command_or_name().to_owned(),
            given: job.given.clone(),
            started_at: humantime::format_rfc3339_millis(at).to_string(),
        };
        sink.write(text(&line).as_bytes());
    }

    /// The warning that lines wait or are lost; each is returned once.
    pub(crate) fn take_warning(&mut self) -> Option<RunWarning> {
        self.file.as_mut()?.0.take_warning()
    }

    /// Tries a last time to write lines that wait.
    pub(crate) fn finish(&mut self) {
        if let Some((sink, _)) = &mut self.file {
            sink.finish();
        }
    }
}

/// The format's name and version for a job that was adopted.
const ADOPTED_SCHEMA: &str = "cosched.adopted/1";

/// A job of a killed run that was waited for, and counts as done. The record of the run that adopted it can be gone when
/// the batch is resumed again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AdoptedLine {
    schema: String,
    /// The run that was killed.
    pub(crate) run_id: String,
    /// The job's name in it.
    pub(crate) job: String,
    /// Its command, as in the job log.
    pub(crate) command: String,
    /// What else it was given.
    #[serde(default, skip_serializing_if = "Given::is_empty")]
    pub(crate) given: Given,
    /// When it was started, RFC 3339 in UTC.
    pub(crate) started_at: String,
}

impl AdoptedLine {
    pub(crate) fn of(job: &JobLine) -> AdoptedLine {
        let JobLine { run_id, job, command, given, started_at, .. } = job.clone();
        AdoptedLine { schema: ADOPTED_SCHEMA.to_owned(), run_id, job, command, given, started_at }
    }

    /// Whether it is that job of that run.
    pub(crate) fn is(&self, run_id: &str, job: &str) -> bool {
        (&*self.run_id, &*self.job) == (run_id, job)
    }
}

/// The format's name and version for a run that is to be ignored.
const IGNORED_SCHEMA: &str = "cosched.ignored/1";

/// A run that can't be seen from here, and about which the user has said that its jobs do not matter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IgnoredLine {
    schema: String,
    run_id: String,
    host: Option<String>,
    boot: Option<String>,
}

impl IgnoredLine {
    pub(crate) fn of(run: &RunLine) -> IgnoredLine {
        let RunLine { run_id, host, boot, .. } = run.clone();
        IgnoredLine { schema: IGNORED_SCHEMA.to_owned(), run_id, host, boot }
    }

    /// Whether it is about this run.
    pub(crate) fn is(&self, run: &RunLine) -> bool {
        (&self.run_id, &self.host, &self.boot) == (&run.run_id, &run.host, &run.boot)
    }
}

/// The file for a job log; `None` if the job log is a pipe, a device or a descriptor (`/dev/stdout`), which nobody resumes.
pub(super) fn beside(joblog: &Path) -> Option<PathBuf> {
    let is_descriptor = || danger_of_file(joblog).is_ok_and(|place| place.is_ok_and(|place| place.follows));
    if std::fs::metadata(joblog).is_ok_and(|meta| !meta.is_file()) || is_descriptor() {
        return None;
    }
    // Whatever links lead to it: all that write to the job log must find each other.
    let place = match danger_of_file(joblog) {
        Ok(Ok(place)) => place.path,
        _ => std::fs::canonicalize(joblog).unwrap_or_else(|_| joblog.to_owned()),
    };
    let mut name = place.file_name()?.to_owned();
    name.push(".runs");
    Some(place.with_file_name(name))
}

/// Enters this run, before it starts anything. With `fresh` the job log is begun anew, and so is this.
///
/// # Errors
/// The file can't be written.
pub(crate) fn enter(joblog: &Path, logs: &Path, fresh: bool) -> std::io::Result<()> {
    let root = Root::default();
    // Where this process can't be identified, nothing will be started.
    let (Some(path), Some(run_id)) = (beside(joblog), cosched_linux::own_run(&root)) else { return Ok(()) };
    let line = RunLine {
        schema: RUNS_SCHEMA.to_owned(),
        run_id,
        host: host_name(&root),
        boot: boot(&root),
        started_at: humantime::format_rfc3339_millis(SystemTime::now()).to_string(),
        logs: logs.to_str().map(str::to_owned),
        cwd: own_folder(),
        told_by: None,
    };
    write(&path, &[line], fresh)
}

/// The folder in which this run was started; `None` if its name is no UTF-8.
pub(crate) fn own_folder() -> Option<String> {
    std::env::current_dir().ok()?.to_str().map(str::to_owned)
}

/// Notes jobs that are adopted.
///
/// # Errors
/// The file can't be written.
pub(crate) fn adopt(joblog: &Path, jobs: &[AdoptedLine]) -> std::io::Result<()> {
    append(joblog, jobs)
}

/// Notes runs that are to be ignored from now on.
///
/// # Errors
/// The file can't be written.
pub(crate) fn ignore(joblog: &Path, runs: &[IgnoredLine]) -> std::io::Result<()> {
    append(joblog, runs)
}

fn append<T: Serialize>(joblog: &Path, lines: &[T]) -> std::io::Result<()> {
    match beside(joblog).filter(|_| !lines.is_empty()) {
        Some(path) => write(&path, lines, false),
        None => Ok(()),
    }
}

/// Writes lines to a file, at its end unless it is begun anew.
fn write<T: Serialize>(path: &Path, lines: &[T], fresh: bool) -> std::io::Result<()> {
    let text: String = lines.iter().map(text).collect();
    let written = write_regular(path, OFlags::APPEND).and_then(|mut file| {
        if fresh {
            file.set_len(0)?;
        }
        file.write_all(text.as_bytes())
    });
    written.map_err(named(path))
}

/// A line with its end. It begins with a line end as well: the line before can have been cut off.
fn text<T: Serialize>(line: &T) -> String {
    // Plain data with text keys can't fail to serialise.
    format!("\n{}\n", serde_json::to_string(line).unwrap_or_default())
}

/// An error with the file's name.
fn named(path: &Path) -> impl Fn(std::io::Error) -> std::io::Error {
    let path = told(path);
    move |error| std::io::Error::new(error.kind(), format!("{path}: {error}"))
}

/// The runs that wrote to a job log, the first one first. Lines that are not whole are left out.
pub(crate) fn read(joblog: &Path) -> Vec<RunLine> {
    let (owner, mut all) = lines_of::<RunLine>(joblog);
    all.retain(|line| line.schema == RUNS_SCHEMA);
    all.iter_mut().for_each(|line| line.told_by = owner);
    all
}

/// The jobs that were adopted since the job log was begun, the first one first.
pub(crate) fn adopted(joblog: &Path) -> Vec<AdoptedLine> {
    let mut all: Vec<AdoptedLine> = lines(joblog);
    all.retain(|line| line.schema == ADOPTED_SCHEMA);
    all
}

/// The jobs that were started.
pub(crate) fn started(joblog: &Path) -> Vec<JobLine> {
    let mut all: Vec<JobLine> = lines(joblog);
    all.retain(|line| line.schema == JOB_SCHEMA);
    all
}

/// The runs that are to be ignored.
pub(crate) fn ignored(joblog: &Path) -> Vec<IgnoredLine> {
    let mut all: Vec<IgnoredLine> = lines(joblog);
    all.retain(|line| line.schema == IGNORED_SCHEMA);
    all
}

/// The lines of one kind.
fn lines<T: DeserializeOwned>(joblog: &Path) -> Vec<T> {
    lines_of(joblog).1
}

/// The user who owns the file, and its lines of one kind.
fn lines_of<T: DeserializeOwned>(joblog: &Path) -> (Option<u32>, Vec<T>) {
    let Some(mut file) = beside(joblog).and_then(|path| open_regular(&path)) else { return (None, Vec::new()) };
    let owner = file.metadata().ok().map(|meta| meta.uid());
    let mut text = Vec::new();
    if file.read_to_end(&mut text).is_err() {
        return (owner, Vec::new());
    }
    (owner, String::from_utf8_lossy(&text).lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_back_until_the_job_log_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let joblog = dir.path().join("log");
        assert!(read(&joblog).is_empty());
        enter(&joblog, Path::new("/a"), true).unwrap();
        enter(&joblog, Path::new("/b"), false).unwrap();
        let folders = |joblog: &Path| read(joblog).into_iter().map(|run| run.logs.unwrap()).collect::<Vec<_>>();
        assert_eq!(folders(&joblog), ["/a", "/b"]);
        let own = cosched_linux::own_run(&Root::default()).unwrap();
        let user = rustix::process::geteuid().as_raw();
        assert!(read(&joblog).iter().all(|run| run.run_id == own && run.host.is_some() && run.told_by == Some(user)));
        // A run that was killed while it entered itself.
        let file = dir.path().join("log.runs");
        std::fs::write(&file, [std::fs::read(&file).unwrap(), b"{\"schema\":\"cosc".to_vec()].concat()).unwrap();
        enter(&joblog, Path::new("/c"), false).unwrap();
        assert_eq!(folders(&joblog), ["/a", "/b", "/c"]);
        let mut journal = Journal::open(&joblog).unwrap();
        let info = JobInfo { command: Some("sleep 1".to_owned()), ..JobInfo::of(&cosched_core::TaskSpec::new(2, "a")) };
        journal.started(&info, SystemTime::UNIX_EPOCH);
        let [started] = &started(&joblog)[..] else { panic!() };
        assert_eq!((&*started.run_id, started.seq, &*started.job, &*started.command), (&*own, 3, "a", "sleep 1"));
        assert_eq!(started.started_at, "1970-01-01T00:00:00.000Z");
        let job = AdoptedLine::of(started);
        assert!(job.is(&own, "a") && !job.is(&own, "b"));
        adopt(&joblog, &[job.clone(), job.clone()]).unwrap();
        assert_eq!((adopted(&joblog), folders(&joblog).len()), (vec![job.clone(), job], 3));
        let run = read(&joblog).remove(0);
        assert!(ignored(&joblog).is_empty());
        ignore(&joblog, &[IgnoredLine::of(&run)]).unwrap();
        assert!(ignored(&joblog)[0].is(&run) && read(&joblog).len() == 3 && adopted(&joblog).len() == 2);
        enter(&joblog, Path::new("/d"), true).unwrap();
        assert!(adopted(&joblog).is_empty());
        assert_eq!(folders(&joblog), ["/d"]);
        enter(Path::new("/dev/null"), Path::new("/e"), true).unwrap();
        assert!(!Path::new("/dev/null.runs").exists());
    }
}
