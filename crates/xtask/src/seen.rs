//! Processes, as in /proc. What can't be read has gone. The fault tests use this file too; each user takes a part of it.
#![allow(dead_code)]

use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};

/// One process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) pid: i32,
    pub(crate) state: char,
    pub(crate) parent: i32,
    pub(crate) session: i32,
    pub(crate) cpu_ticks: u64,
    pub(crate) start: u64,
}

pub(crate) fn seen(pid: i32) -> Option<Seen> {
    // Names may be cut inside a character.
    let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
    Some(Seen {
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
pub(crate) fn with_zombies() -> Vec<Seen> {
    let entries = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    entries
        .filter_map(|entry| seen(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// All processes but zombies.
pub(crate) fn all() -> Vec<Seen> {
    with_zombies()
        .into_iter()
        .filter(|process| process.state != 'Z')
        .collect()
}

/// The processes that work in a folder. No job of an attack or a fault test leaves its folder, and none can hide this as
/// it can hide the mark of its run.
pub(crate) fn in_folder(folder: &Path) -> Vec<Seen> {
    let mut found = all();
    found.retain(|process| {
        let cwd = std::fs::read_link(format!("/proc/{}/cwd", process.pid));
        cwd.is_ok_and(|cwd| cwd.starts_with(folder))
    });
    found
}

/// Whether a process has this name.
pub(crate) fn is_named(pid: i32, name: &str) -> bool {
    std::fs::read(format!("/proc/{pid}/comm"))
        .is_ok_and(|comm| comm.trim_ascii_end() == name.as_bytes())
}

/// The guardian of a run.
pub(crate) fn guardian(of: i32) -> Option<i32> {
    let mut all = all().into_iter();
    all.find(|process| process.parent == of && is_named(process.pid, "run-guardian"))
        .map(|process| process.pid)
}

/// The files that can hold the list of a run's processes, by the run's token.
pub(crate) fn lists(token: &str) -> impl Iterator<Item = PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(|dir| Path::new(&dir).join("cosched"));
    let usual = [
        format!("/run/user/{user}/cosched"),
        format!("/tmp/cosched-{user}"),
    ]
    .map(PathBuf::from);
    let name = format!("run-{token}");
    named
        .into_iter()
        .chain(usual)
        .map(move |folder| folder.join(&name))
}

/// What a run of this process calls itself, and its folders and groups: number, start time and PID namespace. The
/// process must not have been reaped.
pub(crate) fn token(pid: i32) -> Option<String> {
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    let namespace: String = namespace
        .to_str()?
        .chars()
        .filter(char::is_ascii_digit)
        .collect();
    Some(format!("{pid}-{}-{namespace}", seen(pid)?.start))
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
    mounts
        .lines()
        .find(|line| line.contains(" - cgroup2 "))?
        .split(' ')
        .nth(4)
        .map(str::to_owned)
}
