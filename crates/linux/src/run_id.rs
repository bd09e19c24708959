//! The identity of a run. It distinguishes its groups, processes and files from those of others, and shows whether the
//! run is alive.

use crate::process::{self, Process};
use crate::root::{RUNS_DIR, Root};
use crate::sys::RawPid;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

/// Identifies a run: the number and start time of its process, and the PID namespace of that number.
///
/// Another process with the same number has another start time. A number means nothing in another namespace, so a run
/// in another container is not mistaken for a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RunId {
    pub pid: RawPid,
    pub start: u64,
    namespace: u64,
}

/// Whether a run is alive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFate {
    /// Its process lives.
    Alive,
    /// Its process has ended.
    Dead,
    /// Invisible from here: in another PID namespace, or hidden by `/proc`.
    Unknown,
}

impl RunId {
    /// In place of an identity that cannot be read.
    pub(crate) const NOBODY: RunId = RunId {
        pid: 0,
        start: 0,
        namespace: 0,
    };

    /// The identity of a run led by this process; `None` if `/proc` is not of this process's namespace.
    pub(crate) fn own(root: &Root) -> Option<RunId> {
        let pid = std::process::id() as RawPid;
        // The link holds the number in the namespace of the mounted /proc.
        let shown = std::fs::read_link(root.path("/proc/self")).ok()?;
        if shown.to_str()?.parse() != Ok(pid) {
            return None;
        }
        let own = Process::read(root, pid)?;
        Some(RunId {
            pid,
            start: own.start,
            namespace: own_namespace(root)?,
        })
    }

    /// Parses an identity; `None` unless the form is exact.
    pub(crate) fn parse(text: &str) -> Option<RunId> {
        let mut parts = text.split('-').map(parse_digits);
        let (pid, start, namespace) = (parts.next()??, parts.next()??, parts.next()??);
        let id = RunId {
            pid: RawPid::try_from(pid).ok().filter(|&pid| pid > 0)?,
            start,
            namespace,
        };
        // Nothing may follow it, and there are no leading zeros.
        (id.to_string() == text).then_some(id)
    }

    /// The run that a file or group is named after, behind `prefix`.
    pub(crate) fn in_name(name: &OsStr, prefix: &str) -> Option<RunId> {
        RunId::parse(name.to_str()?.strip_prefix(prefix)?)
    }

    /// The identity of a run led by another process of the same namespace, if it leads one.
    pub(crate) fn led_by(&self, process: &Process) -> RunId {
        RunId {
            pid: process.pid,
            start: process.start,
            namespace: self.namespace,
        }
    }

    /// Whether this run's process numbers are valid here.
    pub(crate) fn is_here(&self, root: &Root) -> bool {
        own_namespace(root) == Some(self.namespace)
    }

    /// Whether its process is visible here and belongs to others than `owner`, who can name any process in a file.
    pub(crate) fn is_forged(&self, root: &Root, owner: u32) -> bool {
        let users = process::users(root, self.pid);
        self.is_here(root) && !users.is_empty() && !users.contains(&owner)
    }

    /// Whether the process of the run still exists.
    pub(crate) fn fate(&self, root: &Root) -> RunFate {
        if !self.is_here(root) {
            return RunFate::Unknown;
        }
        match Process::read(root, self.pid) {
            Some(process) if process.start == self.start && !process.is_dead() => RunFate::Alive,
            Some(_) => RunFate::Dead,
            // With `hidepid`, other users' processes are unreadable, or hidden like the first one.
            None if root.exists(&format!("/proc/{}", self.pid)) || !root.exists("/proc/1") => {
                RunFate::Unknown
            }
            None => RunFate::Dead,
        }
    }
}

/// The identity of a run led by this process, as in the variable `COSCHED_RUN` of its jobs; `None` if `/proc` is not of
/// this process's namespace.
pub fn own_run(root: &Root) -> Option<String> {
    RunId::own(root).map(|run| run.to_string())
}

/// Whether a text has the form of an identity.
pub fn is_run_id(text: &str) -> bool {
    RunId::parse(text).is_some()
}

/// Whether the run with this identity is alive; unknown for an invalid identity. Valid for this host since its boot.
pub fn fate_of(root: &Root, run: &str) -> RunFate {
    RunId::parse(run).map_or(RunFate::Unknown, |run| run.fate(root))
}

/// The PID namespace of this process, as a number.
fn own_namespace(root: &Root) -> Option<u64> {
    let link = std::fs::read_link(root.path("/proc/self/ns/pid")).ok()?;
    link.to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Parses a number without a sign.
fn parse_digits(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.namespace)
    }
}

impl Serialize for RunId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RunId, D::Error> {
        let text = String::deserialize(deserializer)?;
        RunId::parse(&text).ok_or_else(|| D::Error::custom("no identity of a run"))
    }
}

/// What the variables of a run say in the environment of a process.
pub(crate) struct RunMark {
    pub run: RunId,
    /// The name of the job.
    pub job: Option<String>,
}

/// The mark of a process. It is read at once: the process may end between two reads.
pub(crate) fn mark(root: &Root, pid: RawPid) -> Option<RunMark> {
    let environ = process::environ(root, pid).ok()?;
    Some(RunMark {
        run: RunId::parse(&process::variable_in(&environ, process::RUN_VARIABLE)?)?,
        job: process::variable_in(&environ, process::JOB_VARIABLE),
    })
}

/// Whether the runs of a process find each other where the runs of this root do.
pub(crate) fn is_among_us(root: &Root, pid: RawPid) -> bool {
    let dir = process::variable(root, pid, RUNS_DIR).map(PathBuf::from);
    dir.filter(|dir| dir.is_absolute()).as_deref() == root.runs_dir()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes `/proc/self` of a small tree a member of a PID namespace.
    pub(crate) fn link_namespace(dir: &std::path::Path, number: u64) {
        let ns = dir.join("proc/self/ns");
        std::fs::create_dir_all(&ns).unwrap();
        std::os::unix::fs::symlink(format!("pid:[{number}]"), ns.join("pid")).unwrap();
    }

    pub(crate) fn write_stat(dir: &std::path::Path, pid: RawPid, state: char, start: u64) {
        let process = dir.join(format!("proc/{pid}"));
        std::fs::create_dir_all(&process).unwrap();
        let stat = format!(
            "{pid} (p) {state} 1 {pid} {pid}{} 1 0 {start} 0",
            " 0".repeat(13)
        );
        std::fs::write(process.join("stat"), stat).unwrap();
    }

    #[test]
    fn a_process_tells_where_its_runs_find_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let process = dir.path().join("proc/7");
        std::fs::create_dir_all(&process).unwrap();
        let here = Root::new(dir.path());
        let there = Root::new(dir.path()).with_runs_dir("/there");
        let marks = |environ: &str| {
            std::fs::write(process.join("environ"), environ).unwrap();
            [&here, &there].map(|root| is_among_us(root, 7))
        };
        let run = "COSCHED_RUN=10-78-500\0";
        assert_eq!(marks(run), [true, false]);
        assert_eq!(marks(&format!("{run}COSCHED_RUNS_DIR=\0")), [true, false]);
        assert_eq!(
            marks(&format!("{run}COSCHED_RUNS_DIR=/there\0")),
            [false, true]
        );
        assert_eq!(
            marks("COSCHED_RUNS_DIR=there\0"),
            [true, false],
            "not absolute"
        );
    }

    #[test]
    fn only_the_exact_form_is_an_identity() {
        let id = RunId::parse("10-77-4026531836").unwrap();
        assert_eq!(id.to_string(), "10-77-4026531836");
        for text in [
            "nightly",
            "10-77",
            "10-77-1-probe",
            "010-77-1",
            "+10-77-1",
            "10-77-",
            "0-1-1",
            "-1-2-3",
            "",
        ] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_run_is_alive_dead_or_out_of_sight() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        link_namespace(dir.path(), 500);
        write_stat(dir.path(), 1, 'S', 0);
        write_stat(dir.path(), 10, 'S', 77);
        write_stat(dir.path(), 11, 'Z', 78);
        let fate = |text: &str| RunId::parse(text).unwrap().fate(&root);
        assert_eq!(fate("10-77-500"), RunFate::Alive);
        assert_eq!(
            fate("10-78-500"),
            RunFate::Dead,
            "another process of that number"
        );
        assert_eq!(fate("11-78-500"), RunFate::Dead, "a zombie");
        assert_eq!(fate("99-1-500"), RunFate::Dead);
        assert_eq!(fate("99-1-501"), RunFate::Unknown, "another namespace");
        std::fs::create_dir(dir.path().join("proc/12")).unwrap();
        assert_eq!(
            fate("12-79-500"),
            RunFate::Unknown,
            "somebody's process that can't be looked into"
        );
        std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
        assert_eq!(
            fate("99-1-500"),
            RunFate::Unknown,
            "others' processes are hidden"
        );
        assert_eq!(
            fate("10-78-500"),
            RunFate::Dead,
            "the number is one of ours"
        );
    }

    #[test]
    fn this_process_has_an_identity_and_lives() {
        let root = Root::default();
        let own = RunId::own(&root).unwrap();
        assert_eq!(own.fate(&root), RunFate::Alive);
        assert_eq!(RunId::parse(&own.to_string()), Some(own));
    }
}
