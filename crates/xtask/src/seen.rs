//! Processes, as in /proc. What can't be read has gone. The fault tests use this file too; each user takes a part of it.
#![allow(dead_code, unreachable_pub)]

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};

/// One process.
#[derive(Clone, Copy, Debug)]
pub struct SeenProcess {
    pub pid: i32,
    pub state: char,
    pub parent: i32,
    pub session: i32,
    pub cpu_ticks: u64,
    pub start: u64,
}

pub fn seen(pid: i32) -> Option<SeenProcess> {
    // Names may be cut inside a character.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    Some(SeenProcess {
        pid,
        state: fields.first()?.chars().next()?,
        parent: number(&fields, 1)? as i32,
        session: number(&fields, 3)? as i32,
        cpu_ticks: number(&fields, 11)? + number(&fields, 12)?,
        start: number(&fields, 19)?,
    })
}

fn number(fields: &[&str], at: usize) -> Option<u64> {
    fields.get(at)?.parse().ok()
}

/// All processes.
pub fn with_zombies() -> Vec<SeenProcess> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.parse().ok());
        all.extend(pid.and_then(seen));
    }
    all
}

/// All processes but zombies.
pub fn all() -> Vec<SeenProcess> {
    let mut all = with_zombies();
    all.retain(|process| process.state != 'Z');
    all
}

/// The processes that work in a folder. No job of an attack or a fault test leaves its folder, and none can hide this as
/// it can hide the mark of its run.
pub fn in_folder(folder: &Path) -> Vec<SeenProcess> {
    let mut found = all();
    found.retain(|process| {
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", process.pid));
        cwd.is_ok_and(|cwd| cwd.starts_with(folder))
    });
    found
}

/// Whether a process has this name.
pub fn is_named(pid: i32, name: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/comm"))
        .is_ok_and(|comm| comm.trim_ascii_end() == name.as_bytes())
}

/// The guardian of a run.
pub fn guardian(of: i32) -> Option<i32> {
    let mut all = all().into_iter();
    all.find(|process| process.parent == of && is_named(process.pid, "run-guardian"))
        .map(|process| process.pid)
}

/// The file with the list of a run's processes, by the folder in which runs find each other and the run's token.
pub fn list(runs_dir: &Path, token: &str) -> PathBuf {
    runtime_folder(runs_dir).join(format!("run-{token}"))
}

/// The folder for the files of this user's live runs.
pub fn runtime_folder(runs_dir: &Path) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    runs_dir.join(format!("cosched-{user}"))
}

/// What a run of this process calls itself, and its folders and groups: number, start time and PID namespace. The
/// process must not have been reaped.
pub fn token(pid: i32) -> Option<String> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let mut namespace = namespace.to_str()?.to_owned();
    namespace.retain(|c| c.is_ascii_digit());
    let start = seen(pid)?.start;
    Some(format!("{pid}-{start}-{namespace}"))
}

/// Sends a signal; a process that has gone needs none.
pub fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// The mount point of the cgroup v2 hierarchy.
pub fn mount() -> Option<String> {
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    let mounts = String::from_utf8_lossy(&mounts);
    let mut mounts = mounts.lines();
    let mount = mounts.find(|line| line.contains(" - cgroup2 "))?;
    mount.split(' ').nth(4).map(str::to_owned)
}
