//! The list of runs beside a job log: a file with a line for each run and each start of a job. `--resume` uses it to find
//! the records of runs, to tell jobs with the same command apart, and to find jobs of killed runs. The job log itself has
//! the format of GNU parallel, without room for this.

use crate::input::told;
use crate::whole_file::{append_regular, is_descriptor, open_regular, resolve_links};
use cosched_linux::identity::{boot, host_name};
use cosched_linux::root::Root;
use cosched_linux::{Allocation, own_run};
use cosched_report::{JobGiven, JobInfo, LineSink, RunFile, RunWarning};
use humantime::format_rfc3339_millis;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// A line of the file. The name and version of its format come first.
#[derive(Serialize, Deserialize)]
#[serde(tag = "schema")]
enum Line {
    /// A run that wrote to the job log.
    #[serde(rename = "cosched.runs/1")]
    Run(RunLine),
    /// A start of a job.
    #[serde(rename = "cosched.job/1")]
    Started(JobLine),
}

/// A run that wrote to a job log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunLine {
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
    /// The job of Slurm in which it ran; left out outside of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) slurm: Option<SlurmJob>,
}

/// A job of Slurm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SlurmJob {
    /// Its number.
    pub(crate) job: String,
    /// How often Slurm had started it again.
    pub(crate) restarts: u32,
}

/// A start of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobLine {
    /// Its run.
    pub(crate) run_id: String,
    /// Its number in the job log.
    pub(crate) seq: u64,
    /// Its name in that run.
    pub(crate) job: String,
    /// Its command, as in the job log.
    pub(crate) command: String,
    /// What else it was given.
    #[serde(default, skip_serializing_if = "JobGiven::is_empty")]
    pub(crate) given: JobGiven,
    /// The last moment before it was started, RFC 3339 in UTC.
    pub(crate) started_at: String,
}

/// The content of the file beside a job log, each kind of line in its order.
#[derive(Default)]
pub(crate) struct Runs {
    /// The runs that wrote to the job log since it was begun.
    pub(crate) runs: Vec<RunLine>,
    pub(crate) started: Vec<JobLine>,
    /// The user whose file it is; `None` if there is none. It says nothing about the processes of others.
    pub(crate) owner: Option<u32>,
}

/// Writes a line before each start of a job. Without a job log to resume from it writes nothing.
#[derive(Default)]
pub(crate) struct Journal {
    file: Option<(LineSink<File>, String)>,
}

impl Journal {
    /// Enters this run beside a job log, before it starts anything. With `fresh` the job log is begun anew, and so is this.
    ///
    /// # Errors
    /// The file can't be written.
    pub(crate) fn begin(joblog: &Path, logs: &Path, fresh: bool) -> io::Result<Journal> {
        let root = Root::default();
        let mut journal = Journal::default();
        // Where this process can't be identified, nothing will be started.
        if let Some(path) = beside(joblog)
            && let Some(run_id) = own_run(&root)
        {
            let line = RunLine {
                run_id: run_id.clone(),
                host: host_name(&root),
                boot: boot(&root),
                started_at: format_rfc3339_millis(SystemTime::now()).to_string(),
                logs: logs.to_str().map(str::to_owned),
                slurm: Allocation::here().map(|allocation| SlurmJob {
                    job: allocation.job,
                    restarts: allocation.restarts,
                }),
            };
            let file = begin_file(&path, &Line::Run(line), fresh);
            let file = file.map_err(|error| {
                let path = told(&path);
                io::Error::new(error.kind(), format!("{path}: {error}"))
            })?;
            let sink = LineSink::lasting(file, RunFile::Runs);
            journal.file = Some((sink, run_id));
        }
        Ok(journal)
    }

    /// Notes that a job is about to be started. Noted afterwards, a run that is killed would leave jobs that nobody knows.
    pub(crate) fn starting(&mut self, job: &JobInfo, at: SystemTime) {
        let Some((sink, run_id)) = &mut self.file else {
            return;
        };
        let line = JobLine {
            run_id: run_id.clone(),
            seq: job.seq,
            job: job.name.clone(),
            command: job.command_or_name().to_owned(),
            given: job.given.clone(),
            started_at: format_rfc3339_millis(at).to_string(),
        };
        sink.write(text(&Line::Started(line)).as_bytes());
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

/// The file for a job log; `None` if the job log is a pipe, a device or a descriptor (`/dev/stdout`), which nobody resumes.
pub(super) fn beside(joblog: &Path) -> Option<PathBuf> {
    if std::fs::metadata(joblog).is_ok_and(|meta| !meta.is_file()) {
        return None;
    }
    // Whatever links lead to it: all that write to the job log must find each other.
    let place = resolve_links(joblog).unwrap_or_else(|_| joblog.to_owned());
    if is_descriptor(&place) {
        return None;
    }
    let mut name = place.file_name()?.to_owned();
    name.push(".runs");
    Some(place.with_file_name(name))
}

/// Opens a file, and writes a line at its end.
fn begin_file(path: &Path, line: &Line, fresh: bool) -> io::Result<File> {
    let mut file = append_regular(path)?;
    if fresh {
        file.set_len(0)?;
    }
    file.write_all(text(line).as_bytes())?;
    Ok(file)
}

/// A line with its end. It begins with a line end as well: the line before can have been cut off.
fn text(line: &Line) -> String {
    // Plain data with text keys can't fail to serialise.
    format!("\n{}\n", serde_json::to_string(line).unwrap_or_default())
}

/// Reads what stands beside a job log. Lines that are not whole, or of no known kind, are left out.
pub(crate) fn read(joblog: &Path) -> Runs {
    let mut all = Runs::default();
    let Some(mut file) = beside(joblog).and_then(|path| open_regular(&path)) else {
        return all;
    };
    all.owner = file.metadata().ok().map(|meta| meta.uid());
    let mut text = Vec::new();
    if file.read_to_end(&mut text).is_err() {
        return all;
    }
    for line in String::from_utf8_lossy(&text).lines() {
        match serde_json::from_str(line) {
            Ok(Line::Run(run)) => all.runs.push(run),
            Ok(Line::Started(job)) => all.started.push(job),
            Err(_) => {}
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_read_back_until_the_job_log_is_begun_anew() {
        let dir = tempfile::tempdir().unwrap();
        let joblog = dir.path().join("log");
        assert!(read(&joblog).runs.is_empty());
        Journal::begin(&joblog, Path::new("/a"), true).unwrap();
        Journal::begin(&joblog, Path::new("/b"), false).unwrap();
        let folders = |joblog: &Path| {
            read(joblog)
                .runs
                .into_iter()
                .map(|run| run.logs.unwrap())
                .collect::<Vec<_>>()
        };
        assert_eq!(folders(&joblog), ["/a", "/b"]);
        let own = own_run(&Root::default()).unwrap();
        assert_eq!(
            read(&joblog).owner,
            Some(rustix::process::geteuid().as_raw())
        );
        assert!(
            read(&joblog)
                .runs
                .iter()
                .all(|run| run.run_id == own && run.host.is_some())
        );
        // A run that was killed while it entered itself.
        let file = dir.path().join("log.runs");
        std::fs::write(
            &file,
            [
                std::fs::read(&file).unwrap(),
                b"{\"schema\":\"cosc".to_vec(),
            ]
            .concat(),
        )
        .unwrap();
        let mut journal = Journal::begin(&joblog, Path::new("/c"), false).unwrap();
        assert_eq!(folders(&joblog), ["/a", "/b", "/c"]);
        let info = JobInfo {
            command: Some("sleep 1".to_owned()),
            ..JobInfo::of(&cosched_core::TaskSpec::new(2, "a"))
        };
        journal.starting(&info, SystemTime::UNIX_EPOCH);
        let [job] = &read(&joblog).started[..] else {
            panic!()
        };
        assert_eq!(
            (&*job.run_id, job.seq, &*job.job, &*job.command),
            (&*own, 3, "a", "sleep 1")
        );
        assert_eq!(job.started_at, "1970-01-01T00:00:00.000Z");
        Journal::begin(&joblog, Path::new("/d"), true).unwrap();
        assert_eq!(folders(&joblog), ["/d"]);
        Journal::begin(Path::new("/dev/null"), Path::new("/e"), true).unwrap();
        assert!(!Path::new("/dev/null.runs").exists());
    }
}
