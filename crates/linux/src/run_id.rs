//! The identity of a run: how its groups, processes and files are told from those of others, and its death from its
//! life.

use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::RawPid;
use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;

/// Identifies a run: the number and start time of its process, and the PID namespace in which that is its number.
///
/// Another process with the same number has another start time. A number means nothing in another namespace, so a run
/// of another container is not taken for a dead one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RunId {
    pub(crate) pid: RawPid,
    pub(crate) start: u64,
    namespace: u64,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Its process lives.
    Alive,
    /// Its process has ended.
    Dead,
    /// It can't be seen from here.
    Unknown,
}

/// The number of the machine's first PID namespace, fixed in the kernel (`PROC_PID_INIT_INO`).
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// Bits of a mark that hold the number of the job.
const TASK_BITS: u32 = 24;

impl RunId {
    /// The identity of a run that this process leads; `None` if `/proc` is not that of this process's namespace.
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
            namespace: namespace(root, "self")?,
        })
    }

    /// Reads an identity as it is written; `None` for anything else.
    pub(crate) fn parse(text: &str) -> Option<RunId> {
        let mut parts = text.split('-').map(parse_digits);
        let (pid, start, namespace) = (parts.next()??, parts.next()??, parts.next()??);
        let id = RunId {
            pid: RawPid::try_from(pid).ok().filter(|&pid| pid > 0)?,
            start,
            namespace,
        };
        // Nothing after it, and no leading zeros.
        (id.to_string() == text).then_some(id)
    }

    /// The identity of a run that another process of the same namespace leads, if it leads one.
    pub(crate) fn led_by(&self, process: &Process) -> RunId {
        RunId {
            pid: process.pid,
            start: process.start,
            namespace: self.namespace,
        }
    }

    /// Whether the numbers of this run's processes are those that are seen here.
    pub(crate) fn is_here(&self, root: &Root) -> bool {
        namespace(root, "self") == Some(self.namespace)
    }

    /// The mark of a job of this run that its programs do not clear, see [`crate::sys::set_mark`].
    pub(crate) fn mark(&self, task: u32) -> u64 {
        let mixed = self.start.rotate_left(20) ^ self.namespace.rotate_left(40) ^ self.pid as u64;
        // Thirty bits tell runs apart well enough: a mark only ever confirms what belongs to a run that is known.
        let run = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 34;
        crate::sys::LEAST_MARK | (run << TASK_BITS) | (u64::from(task) & ((1 << TASK_BITS) - 1))
    }

    /// The number of the job that a mark is for, if it is one of this run.
    pub(crate) fn marked_task(&self, mark: u64) -> Option<u32> {
        let task = mark & ((1 << TASK_BITS) - 1);
        (self.mark(task as u32) == mark).then_some(task as u32)
    }

    /// Whether the process that leads the run can be seen, and lives. For a process of the same user and namespace.
    pub(crate) fn is_seen(&self, root: &Root) -> bool {
        process::lives(root, self.pid, self.start)
    }

    /// Whether the process that leads the run still exists, as far as that can be told from here.
    pub(crate) fn fate(&self, root: &Root) -> Fate {
        Fates::new(root).of(self)
    }
}

/// A mark as it would be for the first job of its run.
pub(crate) fn without_task(mark: u64) -> u64 {
    mark & !((1 << TASK_BITS) - 1)
}

/// The fates of runs, each looked for once. What has to be asked of all processes is asked once for all runs.
pub(crate) struct Fates<'a> {
    root: &'a Root,
    known: RefCell<HashMap<RunId, Fate>>,
    others: OnceCell<Others>,
}

/// The processes of other PID namespaces.
#[derive(Default)]
struct Others {
    /// Their namespaces, their numbers there, and when they started, where that can be compared.
    members: HashMap<(u64, RawPid), Option<u64>>,
    /// The numbers of those whose namespace may not be asked for. Each may be in any of them.
    closed: HashSet<RawPid>,
    /// Some process can't be seen at all.
    is_part: bool,
}

impl<'a> Fates<'a> {
    pub(crate) fn new(root: &'a Root) -> Fates<'a> {
        Fates {
            root,
            known: RefCell::default(),
            others: OnceCell::new(),
        }
    }

    /// Whether the process that leads a run still exists, as far as that can be told from here.
    pub(crate) fn of(&self, run: &RunId) -> Fate {
        *self
            .known
            .borrow_mut()
            .entry(*run)
            .or_insert_with(|| self.look_for(run))
    }

    fn look_for(&self, run: &RunId) -> Fate {
        let root = self.root;
        let own = namespace(root, "self");
        if own == Some(run.namespace) {
            // Others' processes may be there and closed (`hidepid=1`), or be hidden, as the first one is then.
            let can_judge =
                || !root.exists(&format!("/proc/{}", run.pid)) && root.exists("/proc/1");
            return match Process::read(root, run.pid) {
                Some(process) if process.start == run.start && !process.is_dead() => Fate::Alive,
                Some(_) => Fate::Dead,
                None if can_judge() => Fate::Dead,
                None => Fate::Unknown,
            };
        }
        // From the first namespace every process can be seen.
        if own != Some(FIRST_NAMESPACE) {
            return Fate::Unknown;
        }
        let others = self.others.get_or_init(|| Others::look(root));
        match others.members.get(&(run.namespace, run.pid)) {
            // Numbers of namespaces, and those in them, are given again soon.
            Some(&start) if start.is_none_or(|start| start == run.start) => Fate::Alive,
            Some(_) => Fate::Dead,
            None if others.is_part || others.closed.contains(&run.pid) => Fate::Unknown,
            None => Fate::Dead,
        }
    }
}

impl Others {
    fn look(root: &Root) -> Others {
        let pids = process::all_pids(root);
        // Where others' processes are hidden, the first one is.
        let mut others = Others {
            is_part: !pids.contains(&1),
            ..Others::default()
        };
        for pid in pids {
            others.add(root, pid);
        }
        others
    }

    fn add(&mut self, root: &Root, pid: RawPid) {
        let namespace = namespace(root, &pid.to_string());
        if namespace == Some(FIRST_NAMESPACE) {
            return;
        }
        // Whoever may not ask for the namespace may read this, unless /proc is mounted otherwise.
        let (process, numbers) = (Process::read(root, pid), inner_numbers(root, pid));
        let (Some(process), Some(&number)) = (process, numbers.last()) else {
            // It may have ended meanwhile.
            return self.is_part |= root.exists(&format!("/proc/{pid}"));
        };
        // A single number is that in the namespace of /proc itself.
        if process.is_dead() || numbers.len() == 1 {
            return;
        }
        match namespace {
            Some(namespace) => {
                let start = has_our_clock(root, pid).then_some(process.start);
                self.members.insert((namespace, number), start);
            }
            None => drop(self.closed.insert(number)),
        }
    }
}

/// The identity of a run that this process leads, as in the variable `COSCHED_RUN` of its jobs; `None` if `/proc` is not
/// that of this process's namespace.
pub fn own_run(root: &Root) -> Option<String> {
    RunId::own(root).map(|run| run.to_string())
}

/// Whether the run of this identity goes on; unknown for what is no identity. It holds for this host since its start.
pub fn fate_of(root: &Root, run: &str) -> Fate {
    RunId::parse(run).map_or(Fate::Unknown, |run| run.fate(root))
}

/// The PID namespace of a process, as a number.
fn namespace(root: &Root, pid: &str) -> Option<u64> {
    let link = std::fs::read_link(root.path(&format!("/proc/{pid}/ns/pid"))).ok()?;
    link.to_str()?
        .strip_prefix("pid:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// The numbers of a process: first that in the namespace of /proc, last that in its own. None if it may not be looked at.
fn inner_numbers(root: &Root, pid: RawPid) -> Vec<RawPid> {
    let status = std::fs::read(root.path(&format!("/proc/{pid}/status"))).unwrap_or_default();
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"NSpid:"));
    line.map(process::numbers).unwrap_or_default()
}

/// Parses a number without a sign.
fn parse_digits(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok())?
}

/// Whether a process reads the same start times as this one. Time namespaces can shift them.
fn has_our_clock(root: &Root, pid: RawPid) -> bool {
    time_namespace(root, "self")
        .is_some_and(|own| time_namespace(root, &pid.to_string()) == Some(own))
}

/// The time namespace of a process; `None` inside if the kernel has none (before Linux 5.6), outside if it is hidden.
fn time_namespace(root: &Root, pid: &str) -> Option<Option<std::path::PathBuf>> {
    match std::fs::read_link(root.path(&format!("/proc/{pid}/ns/time"))) {
        Ok(namespace) => Some(Some(namespace)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.namespace)
    }
}

/// The run whose mark is in the environment of a process.
pub(crate) fn marked_run(root: &Root, pid: RawPid) -> Option<RunId> {
    RunId::parse(&process::variable(root, pid, process::RUN_VARIABLE)?)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Makes `/proc/self` of a small tree a member of a PID namespace.
    pub(crate) fn link_namespace(dir: &std::path::Path, process: &str, number: u64) {
        let ns = dir.join("proc").join(process).join("ns");
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
    fn marks_tell_jobs_and_runs_apart() {
        let (one, two) = (
            RunId::parse("10-77-5").unwrap(),
            RunId::parse("10-78-5").unwrap(),
        );
        for task in [0, 1, 99_999] {
            assert_eq!(one.marked_task(one.mark(task)), Some(task));
            assert_eq!(two.marked_task(one.mark(task)), None);
        }
        assert_eq!(one.marked_task(u64::MAX), None, "no limit");
    }

    #[test]
    fn a_run_is_alive_dead_or_out_of_sight() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        link_namespace(dir.path(), "self", 500);
        write_stat(dir.path(), 1, 'S', 0);
        write_stat(dir.path(), 10, 'S', 77);
        write_stat(dir.path(), 11, 'Z', 78);
        let fate = |text: &str| RunId::parse(text).unwrap().fate(&root);
        assert_eq!(fate("10-77-500"), Fate::Alive);
        assert_eq!(
            fate("10-78-500"),
            Fate::Dead,
            "another process of that number"
        );
        assert_eq!(fate("11-78-500"), Fate::Dead, "a zombie");
        assert_eq!(fate("99-1-500"), Fate::Dead);
        assert_eq!(fate("99-1-501"), Fate::Unknown, "another namespace");
        std::fs::create_dir(dir.path().join("proc/12")).unwrap();
        assert_eq!(
            fate("12-79-500"),
            Fate::Unknown,
            "somebody's process that can't be looked into"
        );
        std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
        assert_eq!(
            fate("99-1-500"),
            Fate::Unknown,
            "others' processes are hidden"
        );
        assert_eq!(fate("10-78-500"), Fate::Dead, "the number is one of ours");
    }

    /// A tree that is seen from the machine's first namespace. What only its `stat` and its `status` tell of a process
    /// is what somebody learns who may not look into it.
    fn first_namespace() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        link_namespace(dir.path(), "self", FIRST_NAMESPACE);
        write_process(dir.path(), 1, 'S', "1");
        let root = Root::new(dir.path());
        (dir, root)
    }

    fn write_process(dir: &std::path::Path, pid: RawPid, state: char, numbers: &str) {
        write_stat(dir, pid, state, 7);
        let status = [b"Name:\t\xd0\nNSpid:\t", numbers.as_bytes(), b"\n"].concat();
        std::fs::write(dir.join(format!("proc/{pid}/status")), status).unwrap();
    }

    #[test]
    fn the_first_namespace_sees_into_all_others() {
        let (dir, root) = first_namespace();
        write_process(dir.path(), 40, 'S', "40\t3");
        link_namespace(dir.path(), "40", 501);
        write_process(dir.path(), 41, 'Z', "41\t4");
        link_namespace(dir.path(), "41", 501);
        let fate = |text: &str| RunId::parse(text).unwrap().fate(&root);
        assert_eq!(fate("3-7-501"), Fate::Alive);
        assert_eq!(
            fate("3-6-501"),
            Fate::Dead,
            "another process of that number, perhaps in another namespace"
        );
        assert_eq!(fate("4-7-501"), Fate::Dead, "a zombie");
        assert_eq!(fate("5-7-501"), Fate::Dead);
        assert_eq!(fate("3-7-502"), Fate::Dead, "the namespace has gone");
        for (process, clock) in [("self", 1), ("40", 2)] {
            let link = dir.path().join(format!("proc/{process}/ns/time"));
            std::os::unix::fs::symlink(format!("time:[{clock}]"), link).unwrap();
        }
        assert_eq!(
            fate("3-6-501"),
            Fate::Alive,
            "it had another clock when it wrote that"
        );
    }

    #[test]
    fn who_may_not_be_looked_into_can_only_be_where_its_number_allows() {
        let (dir, root) = first_namespace();
        let fate = |text: &str| RunId::parse(text).unwrap().fate(&root);
        write_process(dir.path(), 41, 'S', "41");
        assert_eq!(
            fate("4-7-502"),
            Fate::Dead,
            "none of these can be in another namespace"
        );
        write_process(dir.path(), 42, 'S', "42\t9\t4");
        assert_eq!(fate("4-7-502"), Fate::Unknown, "this can be it");
        assert_eq!(fate("5-7-502"), Fate::Dead, "and not that");
        std::fs::create_dir(dir.path().join("proc/43")).unwrap();
        assert_eq!(fate("5-7-502"), Fate::Unknown, "nothing is known of one");
        std::fs::remove_dir(dir.path().join("proc/43")).unwrap();
        std::fs::remove_dir_all(dir.path().join("proc/1")).unwrap();
        assert_eq!(
            fate("5-7-502"),
            Fate::Unknown,
            "others' processes are hidden"
        );
    }

    #[test]
    fn this_process_has_an_identity_and_lives() {
        let root = Root::default();
        let own = RunId::own(&root).unwrap();
        assert_eq!(own.fate(&root), Fate::Alive);
        assert_eq!(RunId::parse(&own.to_string()), Some(own));
    }
}
