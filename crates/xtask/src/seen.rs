//! Processes, as in /proc. What can't be read has gone.

use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;

/// One process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) start: u64,
}

pub(crate) fn seen(pid: i32) -> Option<Seen> {
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    let number = |ix: usize| fields.get(ix)?.parse::<u64>().ok();
    Some(Seen { pid, state: fields.first()?.chars().next()?, parent: number(1)? as i32, start: number(19)? })
}

/// All processes but zombies.
pub(crate) fn all() -> Vec<Seen> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let all = entries.filter_map(|entry| seen(entry.file_name().to_str()?.parse().ok()?));
    all.filter(|process| process.state != 'Z').collect()
}

/// The processes that work in a folder. No job of an attack leaves its folder, and none can hide this.
pub(crate) fn in_folder(folder: &Path) -> Vec<Seen> {
    let is_in = |process: &Seen| {
        std::fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    all().into_iter().filter(is_in).collect()
}

/// The guardian of a run.
pub(crate) fn guardian(of: i32) -> Option<i32> {
    let is_named = |pid: i32| std::fs::read(format!("/proc/{pid}/comm")).is_ok_and(|name| name == b"run-guardian\n");
    all().into_iter().find(|process| process.parent == of && is_named(process.pid)).map(|process| process.pid)
}

/// Sends a signal; a process that has gone needs none.
pub(crate) fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// The mount point of the cgroup v2 hierarchy.
pub(crate) fn mount() -> Option<String> {
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4).map(str::to_owned)
}
