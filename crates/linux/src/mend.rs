//! Frees what a dead run left behind: frozen groups and stopped processes. Used by the guardian when its run dies, by
//! every start, and by `cosched thaw`.

use crate::cgroup;
use crate::process::{self, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::sys::RawPid;
use cosched_core::CpuSet;
use rustix::process::Signal;
use std::path::PathBuf;

/// What was freed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mended {
    /// Groups that were thawed and removed.
    pub groups: Vec<PathBuf>,
    /// Processes that were in these groups; they run on in the group above.
    pub released: Vec<RawPid>,
    /// Stopped processes that were continued.
    pub continued: Vec<RawPid>,
}

impl Mended {
    /// Whether there was nothing to do.
    pub fn is_empty(&self) -> bool {
        *self == Mended::default()
    }
}

/// How far to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Groups beside the caller's own.
    Near,
    /// The whole hierarchy.
    Everywhere,
}

/// Frees what dead runs left behind, as far as the caller may.
pub fn mend(root: &Root, reach: Reach) -> Mended {
    let dir = match reach {
        Reach::Near => cgroup::own_directory(root).ok(),
        Reach::Everywhere => cgroup::top_directory(root),
    };
    let mut mended = Mended::default();
    if let Some(dir) = dir {
        mended.groups = cgroup::stale(root, &dir, reach == Reach::Everywhere);
        for group in &mended.groups {
            mended.released.extend(cgroup::release(group));
        }
        mended.groups.retain(|group| !group.exists());
    }
    let all = root.path("/proc/self");
    let dead = |token: &str| !process::is_alive(root, token);
    if all.exists() {
        for process in stopped(root, dead) {
            if process.signal(root, Signal::CONT) {
                mended.continued.push(process.pid);
            }
        }
    }
    mended
}

/// Stopped processes with a token that meets a condition.
fn stopped(root: &Root, wanted: impl Fn(&str) -> bool) -> Vec<Process> {
    let stopped = process::all_pids(root).into_iter().filter_map(|pid| Process::read(root, pid));
    stopped
        .filter(|process| process.state == 'T')
        .filter(|process| process::variable(root, process.pid, RUN_VARIABLE).is_some_and(|token| wanted(&token)))
        .collect()
}

/// Continues every stopped process with this token, and gives all processes with it their CPUs back.
pub(crate) fn free_marked(root: &Root, token: &str, cpus: &CpuSet) {
    // A signal that is still under way may stop a process between two looks.
    for _ in 0..3 {
        let marked: Vec<RawPid> = process::all_pids(root)
            .into_iter()
            .filter(|&pid| process::variable(root, pid, RUN_VARIABLE).as_deref() == Some(token))
            .collect();
        process::bind(root, &marked, cpus);
        for process in marked.iter().filter_map(|&pid| Process::read(root, pid)) {
            if process.state == 'T' {
                process.signal(root, Signal::CONT);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
