//! The files by which reapers say that a job started and how it ended. They outlive the service and its worker.

use cosched_linux::root::Root;
use cosched_linux::{ReapedEnd, Reaper, identity};
use serde::de::DeserializeOwned;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::thread::sleep;
use std::time::Duration;

/// The folder with the files of reapers.
#[derive(Debug)]
pub(crate) struct ReaperFolder {
    folder: PathBuf,
    root: Root,
    /// The identity of this boot of the machine; `None` if unknown.
    pub(crate) boot: Option<String>,
}

/// What the files say of a job.
#[derive(Debug, PartialEq)]
pub(crate) enum JobClaim {
    /// No reaper started it.
    Free,
    /// Its reaper lives.
    Running(Reaper),
    /// It ended.
    Ended(Box<ReapedEnd>),
    /// Its reaper is dead, and did not write how the job ended.
    Killed,
    /// It was started before the machine restarted.
    OtherBoot,
}

/// How often, and with what pause, a file is read again that is just being written.
const LOOKS: u32 = 10;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

const START: &str = ".start";
const END: &str = ".end";
/// What a killed reaper did not finish.
const UNFINISHED: &str = ".new";

impl ReaperFolder {
    pub(crate) fn new(folder: PathBuf) -> ReaperFolder {
        let root = Root::default();
        let boot = identity::boot(&root);
        ReaperFolder { folder, root, boot }
    }

    /// What the files say of a job.
    ///
    /// # Errors
    /// They can't be read.
    pub(crate) fn look(&self, key: &str) -> io::Result<JobClaim> {
        if let Some(Content::Whole(ended)) = self.read(key, END)? {
            return Ok(JobClaim::Ended(ended));
        }
        let started: Reaper = match self.read(key, START)? {
            None => return Ok(JobClaim::Free),
            Some(Content::Whole(started)) => started,
            // The reaper was killed while it wrote this, or its disk is full. It did not start the job.
            Some(Content::Broken) => return Ok(JobClaim::Killed),
        };
        if self.boot.as_ref().is_some_and(|boot| *boot != started.boot) {
            return Ok(JobClaim::OtherBoot);
        }
        if started.lives(&self.root) {
            return Ok(JobClaim::Running(started));
        }
        // It may have ended since.
        Ok(match self.read(key, END)? {
            Some(Content::Whole(ended)) => JobClaim::Ended(ended),
            _ => JobClaim::Killed,
        })
    }

    fn read<T: DeserializeOwned>(&self, key: &str, end: &str) -> io::Result<Option<Content<T>>> {
        for _ in 0..LOOKS {
            let content = match std::fs::read(self.path(key, end)) {
                Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
                content => content?,
            };
            if let Ok(whole) = serde_json::from_slice(&content) {
                return Ok(Some(Content::Whole(whole)));
            }
            sleep(BETWEEN_LOOKS);
        }
        Ok(Some(Content::Broken))
    }

    fn path(&self, key: &str, end: &str) -> PathBuf {
        self.folder.join(format!("{key}{end}"))
    }

    /// Forgets a job that is over. With `keeps_start` a reaper that comes late still finds that it was started.
    pub(crate) fn forget(&self, key: &str, keeps_start: bool) {
        let _ = std::fs::remove_file(self.path(key, END));
        let _ = std::fs::remove_file(self.path(key, UNFINISHED));
        if !keeps_start {
            let _ = std::fs::remove_file(self.path(key, START));
        }
    }

    /// The jobs whose end is written.
    pub(crate) fn ended(&self) -> Vec<String> {
        self.keys(END)
    }

    /// The reapers that live, whose jobs no database may know.
    pub(crate) fn living(&self) -> Vec<Reaper> {
        let mut living = Vec::new();
        for key in self.keys(START) {
            if let Ok(JobClaim::Running(reaper)) = self.look(&key) {
                living.push(reaper);
            }
        }
        living
    }

    /// Forgets the starts before the machine restarted, except of the jobs that are `kept`.
    pub(crate) fn forget_old(&self, kept: impl Fn(&str) -> bool) {
        for key in self.keys(START).iter().filter(|key| !kept(key)) {
            if self
                .look(key)
                .is_ok_and(|claim| claim == JobClaim::OtherBoot)
            {
                self.forget(key, false);
            }
        }
    }

    fn keys(&self, end: &str) -> Vec<String> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten();
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names
            .filter_map(|name| name.strip_suffix(end).map(str::to_owned))
            .collect()
    }
}

/// What was read of a file.
enum Content<T> {
    Whole(T),
    Broken,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use cosched_linux::service;
    use std::path::Path;

    /// When reapers say that their jobs started.
    pub(crate) const START_AT: f64 = 1_000_000_001.5;

    /// The text of `KEY.start`, for this process unless another is meant.
    pub(crate) fn start_text(pid: u32, boot: Option<&str>) -> String {
        let root = Root::default();
        let start = service::start_time(&root, pid as i32).unwrap_or(1);
        let own = identity::boot(&root).unwrap();
        let boot = boot.unwrap_or(&own);
        format!(r#"{{"pid":{pid},"start_time":{start},"boot":"{boot}","at":{START_AT}}}"#)
    }

    pub(crate) const END_TEXT: &str = r#"{"exit":3,"exit_text":"exit 3","cpu_s":0.75,"user_s":0.5,"system_s":0.25,"max_rss_bytes":null,"read_bytes":0,"written_bytes":0,"started_at":1000000001.5,"ended_at":1000000002.5}"#;

    pub(crate) fn write(folder: &Path, name: &str, text: &str) {
        std::fs::write(folder.join(name), text).unwrap();
    }

    #[test]
    fn what_the_files_say() {
        let dir = tempfile::tempdir().unwrap();
        let claims = ReaperFolder::new(dir.path().to_owned());
        let look = |key: &str| claims.look(key).unwrap();
        assert_eq!(look("1-1"), JobClaim::Free);
        let own = std::process::id();
        write(dir.path(), "1-1.start", &start_text(own, None));
        assert!(matches!(look("1-1"), JobClaim::Running(started) if started.pid == own as i32));
        let reused = start_text(own, None).replace(r#""start_time":"#, r#""start_time":9"#);
        write(dir.path(), "2-1.start", &reused);
        assert_eq!(look("2-1"), JobClaim::Killed, "the number was reused");
        write(dir.path(), "3-1.start", &start_text(own, Some("other")));
        assert_eq!(look("3-1"), JobClaim::OtherBoot);
        write(dir.path(), "3-1.end", END_TEXT);
        let JobClaim::Ended(ended) = look("3-1") else {
            panic!("{:?}", look("3-1"))
        };
        assert_eq!(ended.end.exit, Some(3), "an end counts from any boot");
        write(dir.path(), "4-1.start", "{");
        assert_eq!(look("4-1"), JobClaim::Killed);
        assert_eq!(claims.ended(), ["3-1"]);
        claims.forget("3-1", true);
        assert_eq!(look("3-1"), JobClaim::OtherBoot);
        claims.forget_old(|key| key == "3-1");
        assert_eq!(look("3-1"), JobClaim::OtherBoot);
        claims.forget_old(|_| false);
        assert_eq!(look("3-1"), JobClaim::Free);
        assert!(matches!(look("1-1"), JobClaim::Running(_)));
    }
}
