//! Processes as `/proc` shows them: state, family, start time, and the variables of their run.

use crate::root::Root;
use crate::stat::{Stat, tick_time};
use crate::sys::{self, RawPid};
use cosched_core::Nanos;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};

/// Environment variable in every process of a run; its value is the run's token.
pub(crate) const RUN_VARIABLE: &str = "COSCHED_RUN";
/// Environment variable in every process of a job; its value is the job's name.
pub(crate) const JOB_VARIABLE: &str = "COSCHED_JOB";
/// Environment variable with the number of the slot in which a job runs, as GNU parallel calls it.
pub(crate) const SLOT_VARIABLE: &str = "PARALLEL_JOBSLOT";

/// One process, as read from `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub pid: RawPid,
    /// State letter: R, S, D, T (stopped), Z (zombie) etc.
    pub state: char,
    pub parent: RawPid,
    pub group: RawPid,
    pub session: RawPid,
    pub threads: u32,
    /// Start time in clock ticks since boot. A later process with the same number has another one.
    pub start: u64,
}

/// A process or a thread, whether it still exists or not. A later one with the same number has another start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProcessKey {
    /// Its number.
    pub pid: RawPid,
    /// Its start, in clock ticks since boot.
    pub start: u64,
}

impl From<&Process> for ProcessKey {
    fn from(process: &Process) -> ProcessKey {
        ProcessKey {
            pid: process.pid,
            start: process.start,
        }
    }
}

impl ProcessKey {
    /// The process, if it still exists, as [`Process::find`].
    pub(crate) fn find(&self, root: &Root) -> Option<Process> {
        Process::find(root, self.pid, self.start)
    }

    /// Whether it exists and has not ended.
    pub(crate) fn lives(&self, root: &Root) -> bool {
        lives(root, self.pid, self.start)
    }
}

/// Size of the buffer for a list of numbers that is read at once.
const LIST_BYTES: usize = 4096;

impl Process {
    /// Reads one process; `None` if none has this number.
    pub(crate) fn read(root: &Root, pid: RawPid) -> Option<Process> {
        Process::read_from(root, &format!("/proc/{pid}/stat"), pid)
    }

    /// A process that has ended, of which only this is known.
    pub(crate) fn gone(pid: RawPid, start: u64) -> Process {
        Process {
            pid,
            state: 'X',
            parent: 0,
            group: pid,
            session: pid,
            threads: 0,
            start,
        }
    }

    /// Reads a process, or one of its threads, from its `stat`.
    pub(crate) fn read_from(root: &Root, stat: &str, pid: RawPid) -> Option<Process> {
        Some(Process::of(pid, &Stat::read(root, stat)?))
    }

    /// The process with this number, by its line of `stat`.
    pub(crate) fn of(pid: RawPid, stat: &Stat) -> Process {
        Process {
            pid,
            state: stat.state,
            parent: stat.parent,
            group: stat.group,
            session: stat.session,
            threads: stat.threads,
            start: stat.start,
        }
    }

    /// Whether it, or its first thread, runs or waits for a CPU.
    pub(crate) fn wants_cpu(&self) -> bool {
        self.state == 'R'
    }

    /// Whether a signal has stopped it. A traced process shows `t`.
    pub(crate) fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether it has ended, and its parent has not reaped it.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// The process with this number and start time, if it still exists. A zombie does, because its number is not reused
    /// before it is reaped.
    pub(crate) fn find(root: &Root, pid: RawPid, start: u64) -> Option<Process> {
        Process::read(root, pid).filter(|now| now.start == start)
    }

    /// Whether its number has not been reused.
    pub(crate) fn is_same(&self, root: &Root) -> bool {
        Process::find(root, self.pid, self.start).is_some()
    }

    /// A handle (pidfd) that never refers to a later process with the same number; `None` when the process is gone.
    pub(crate) fn handle(&self, root: &Root) -> Option<OwnedFd> {
        let fd = pidfd_open(Pid::from_raw(self.pid)?, PidfdFlags::empty()).ok()?;
        self.is_same(root).then_some(fd)
    }

    /// Sends a signal to this process alone; `false` if it is gone or may not be signalled.
    pub(crate) fn signal(&self, root: &Root, signal: Signal) -> bool {
        match self.handle(root) {
            Some(fd) => pidfd_send_signal(&fd, signal).is_ok(),
            None => false,
        }
    }
}

/// Whether the process with this number and start time exists and has not ended.
pub(crate) fn lives(root: &Root, pid: RawPid, start: u64) -> bool {
    Process::find(root, pid, start).is_some_and(|process| !process.is_dead())
}

/// The numbers of all processes.
pub(crate) fn all_pids(root: &Root) -> Vec<RawPid> {
    let mut pids = numbers_in(root, "/proc");
    pids.retain(|pid| *pid > 0);
    pids.sort_unstable();
    pids
}

/// The threads of a process.
pub(crate) fn threads(root: &Root, pid: RawPid) -> Vec<RawPid> {
    numbers_in(root, &format!("/proc/{pid}/task"))
}

/// The numbers that name entries of a folder.
pub(crate) fn numbers_in(root: &Root, folder: &str) -> Vec<RawPid> {
    let Ok(entries) = std::fs::read_dir(root.path(folder)) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect()
}

/// Numbers in a text, separated by blanks.
pub(crate) fn numbers(text: &[u8]) -> Vec<RawPid> {
    let words = text.split(u8::is_ascii_whitespace);
    words
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
        .collect()
}

/// The children that one thread of a process has forked.
pub(crate) fn children_of_thread(root: &Root, pid: RawPid, tid: RawPid) -> Vec<RawPid> {
    let list = root.path(&format!("/proc/{pid}/task/{tid}/children"));
    let mut text = Vec::with_capacity(LIST_BYTES);
    // `std::fs::read` would start with 32 bytes, because the kernel reports no length.
    if let Ok(list) = File::open(list) {
        let _ = list.take(u64::MAX).read_to_end(&mut text);
    }
    numbers(&text)
}

/// The children of a process, forked by any of its threads.
fn children(root: &Root, process: &Process) -> Vec<RawPid> {
    // The next scan finds a thread that starts meanwhile.
    if process.threads == 1 {
        return children_of_thread(root, process.pid, process.pid);
    }
    let mut children = Vec::new();
    for tid in threads(root, process.pid) {
        children.extend(children_of_thread(root, process.pid, tid));
    }
    children
}

/// A process and its descendants, each once.
pub(crate) fn descendants(root: &Root, of: RawPid) -> Vec<Process> {
    let mut found: Vec<Process> = Process::read(root, of).into_iter().collect();
    let mut next = 0;
    while next < found.len() {
        for child in children(root, &found[next]) {
            if !found.iter().any(|known| known.pid == child) {
                found.extend(Process::read(root, child));
            }
        }
        next += 1;
    }
    found
}

/// Resident memory of a process in bytes; `None` if it cannot be read.
pub(crate) fn resident(root: &Root, pid: RawPid) -> Option<u64> {
    let text = std::fs::read_to_string(root.path(&format!("/proc/{pid}/statm"))).ok()?;
    let pages: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Resident memory of a process in bytes, without files and without what it shares; `None` if it cannot be read.
pub(crate) fn own_memory(root: &Root, pid: RawPid) -> Option<u64> {
    let text = std::fs::read_to_string(root.path(&format!("/proc/{pid}/statm"))).ok()?;
    let mut pages = text.split_whitespace().skip(1);
    let resident: u64 = pages.next()?.parse().ok()?;
    let shared: u64 = pages.next()?.parse().ok()?;
    let own = resident.saturating_sub(shared);
    Some(own.saturating_mul(rustix::param::page_size() as u64))
}

/// Bytes that a process and its waited-for descendants have moved from and to disks. A write counts when the process
/// makes it, however late it reaches the disk.
///
/// # Errors
/// The kernel does not tell, or not this user.
pub(crate) fn disk_bytes(root: &Root, pid: RawPid) -> io::Result<u64> {
    let text = std::fs::read_to_string(root.path(&format!("/proc/{pid}/io")))?;
    let value = |line: &str| {
        let bytes = line
            .strip_prefix("read_bytes: ")
            .or_else(|| line.strip_prefix("write_bytes: "))?;
        bytes.parse::<u64>().ok()
    };
    Ok(text.lines().filter_map(value).sum())
}

/// CPU time of a process and its waited-for descendants, to the kernel's clock tick; zero if it is gone.
pub(crate) fn cpu_time(root: &Root, pid: RawPid) -> Nanos {
    let stat = Stat::read(root, &format!("/proc/{pid}/stat"));
    stat.map_or(Nanos::ZERO, |stat| tick_time(stat.ticks + stat.child_ticks))
}

/// The initial environment of a process, each variable with a zero byte behind it.
///
/// # Errors
/// Of kind `PermissionDenied` if the process is another user's.
pub(crate) fn environ(root: &Root, pid: RawPid) -> io::Result<Vec<u8>> {
    std::fs::read(root.path(&format!("/proc/{pid}/environ")))
}

/// The value of a variable in the initial environment of a process.
pub(crate) fn variable(root: &Root, pid: RawPid, name: &str) -> Option<String> {
    variable_in(&environ(root, pid).ok()?, name)
}

/// The value of a variable in an environment.
pub(crate) fn variable_in(environ: &[u8], name: &str) -> Option<String> {
    environ.split(|&byte| byte == 0).find_map(|entry| {
        let value = entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// The command line of a process, its words joined by blanks; its name in brackets where it has none.
pub(crate) fn command_line(root: &Root, pid: RawPid) -> Option<String> {
    let mut line = Vec::new();
    let file = File::open(root.path(&format!("/proc/{pid}/cmdline"))).ok()?;
    file.take(LIST_BYTES as u64).read_to_end(&mut line).ok()?;
    let words: Vec<_> = line
        .split(|&byte| byte == 0)
        .map(String::from_utf8_lossy)
        .collect();
    let line = words.join(" ").trim_end().to_owned();
    if !line.is_empty() {
        return Some(line);
    }
    Some(format!("[{}]", name(root, pid)?))
}

/// The name of a process's main thread.
pub(crate) fn name(root: &Root, pid: RawPid) -> Option<String> {
    let name = std::fs::read(root.path(&format!("/proc/{pid}/comm"))).ok()?;
    Some(String::from_utf8_lossy(&name).trim_end().to_owned())
}

/// The users of a process: its real and its saved one.
pub(crate) fn users(root: &Root, pid: RawPid) -> Vec<u32> {
    let status = std::fs::read(root.path(&format!("/proc/{pid}/status"))).unwrap_or_default();
    // The name of the program, on a line of its own, may be cut inside a character.
    let status = String::from_utf8_lossy(&status);
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // The first and the third number; the second is the effective user.
    let words = line.unwrap_or_default().split_whitespace().step_by(2);
    words.take(2).filter_map(|user| user.parse().ok()).collect()
}

/// The CPUs that a process or one of its threads may use, from its `status`; `None` if it is gone.
pub(crate) fn allowed_cpus(root: &Root, status: &str) -> Option<cosched_core::CpuSet> {
    let status = std::fs::read(root.path(status)).ok()?;
    let status = String::from_utf8_lossy(&status);
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line?.parse().ok()
}

/// Pins all threads of these processes, including threads that start meanwhile. Returns false if these CPUs are offline.
pub(crate) fn bind(root: &Root, pids: &[RawPid], cpus: &cosched_core::CpuSet) -> bool {
    let mut are_online = true;
    for_threads(root, pids, |tid| {
        // A thread that is gone needs no CPU. A thread that may not be pinned stays where it is; `doctor` reports that.
        if let Err(error) = sys::set_affinity(tid, cpus)
            && error.raw_os_error() == Some(libc::EINVAL)
        {
            are_online = false;
        }
    });
    are_online
}

/// Applies `act` to all threads of these processes, including threads that start meanwhile.
pub(crate) fn for_threads(root: &Root, pids: &[RawPid], mut act: impl FnMut(RawPid)) {
    for &pid in pids {
        let mut done: Vec<RawPid> = Vec::new();
        // A thread that starts meanwhile inherits the old state, so scan again until there is no new one.
        for _ in 0..8 {
            let mut new: Vec<RawPid> = threads(root, pid);
            new.retain(|tid| !done.contains(tid));
            if new.is_empty() {
                break;
            }
            for tid in new {
                act(tid);
                done.push(tid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pid: RawPid, line: &[u8]) -> Option<Process> {
        Some(Process::of(pid, &Stat::parse(line)?))
    }

    #[test]
    fn bytes_from_and_to_disks_are_read_or_refused() {
        let dir = tempfile::tempdir().unwrap();
        let proc = dir.path().join("proc/5");
        std::fs::create_dir_all(&proc).unwrap();
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 512\ncancelled_write_bytes: 7\n";
        std::fs::write(proc.join("io"), text).unwrap();
        let root = Root::new(dir.path());
        assert_eq!(disk_bytes(&root, 5).unwrap(), 4_608);
        assert!(disk_bytes(&root, 6).is_err());
    }

    #[test]
    fn names_with_parentheses_are_read() {
        let cut = b"5 (\xd0\xbf\xd1) S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 1";
        assert_eq!(
            parse(5, cut).map(|process| process.start),
            Some(4242),
            "cut inside a character"
        );
        let tail = "S 7 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 99 1";
        for name in ["x", "a b", "a) R 1 (", ") Z 0 0"] {
            let process = parse(5, format!("5 ({name}) {tail}").as_bytes()).unwrap();
            let expected = Process {
                pid: 5,
                state: 'S',
                parent: 7,
                group: 8,
                session: 9,
                threads: 1,
                start: 4242,
            };
            assert_eq!(process, expected, "{name}");
        }
        assert_eq!(parse(5, b"5 (x"), None);
        assert_eq!(parse(5, b"5 (x) S 1"), None);
    }

    #[test]
    fn trees_are_read_under_a_root() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        let stat = |pid: i32, parent: i32| {
            format!(
                "{pid} (p) S {parent} {pid} {pid}{} 1 0 77 0",
                " 0".repeat(13)
            )
        };
        for (pid, parent, kids) in [
            (10, 1, "11 12"),
            (11, 10, ""),
            (12, 10, "13"),
            (13, 12, ""),
            (20, 1, ""),
        ] {
            let task = dir.path().join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("children"), kids).unwrap();
            std::fs::write(
                dir.path().join(format!("proc/{pid}/stat")),
                stat(pid, parent),
            )
            .unwrap();
        }
        std::fs::write(
            dir.path().join("proc/13/environ"),
            b"A=1\0COSCHED_RUN=10-77\0COSCHED_RUNNER=x\0",
        )
        .unwrap();
        let pids: Vec<RawPid> = descendants(&root, 10)
            .iter()
            .map(|process| process.pid)
            .collect();
        assert_eq!(pids, [10, 11, 12, 13]);
        assert_eq!(all_pids(&root), [10, 11, 12, 13, 20]);
        assert_eq!(variable(&root, 13, RUN_VARIABLE).as_deref(), Some("10-77"));
        assert_eq!(variable(&root, 13, "B"), None);
        assert!(descendants(&root, 99).is_empty());
        assert!(lives(&root, 13, 77) && !lives(&root, 13, 78) && !lives(&root, 14, 77));
        std::fs::write(
            dir.path().join("proc/13/stat"),
            stat(13, 12).replace(" S ", " Z "),
        )
        .unwrap();
        assert!(
            !lives(&root, 13, 77) && Process::find(&root, 13, 77).is_some(),
            "it has ended and keeps its number"
        );
    }

    #[test]
    fn a_reused_number_is_not_signalled() {
        let root = Root::default();
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::read(&root, child.id() as RawPid).unwrap();
        // A stale record of an earlier process with the same number and another start time.
        let stale = Process {
            start: process.start + 1,
            ..process
        };
        assert!(stale.handle(&root).is_none());
        assert!(!stale.signal(&root, Signal::KILL));
        assert!(child.try_wait().unwrap().is_none(), "it was left alone");
        assert!(process.signal(&root, Signal::KILL));
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()),
            Some(9)
        );
        assert!(!process.signal(&root, Signal::KILL), "it has gone");
    }
}
