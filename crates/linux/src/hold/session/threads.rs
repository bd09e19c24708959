//! What the kernel tells of a thread's CPUs.

use crate::cgroup;
use crate::hold::ledger::Pin;
use crate::process::{self, Process, ProcessKey};
use crate::root::Root;
use crate::sys::RawPid;
use crate::topology;
use cosched_core::CpuSet;

/// The CPUs that a process may use by its group: the nearest one with a cpuset, else all that are online.
pub(crate) fn limit_of(root: &Root, pid: RawPid) -> CpuSet {
    let group = cgroup::directory_of(root, pid);
    let above = group.iter().flat_map(|dir| dir.ancestors());
    for dir in above {
        let text = std::fs::read_to_string(dir.join("cpuset.cpus.effective"));
        let cpus = text.ok().and_then(|text| text.parse::<CpuSet>().ok());
        if let Some(cpus) = cpus.filter(|cpus| !cpus.is_empty()) {
            return cpus;
        }
    }
    topology::online(root).unwrap_or_default()
}

/// A thread with its start, and the CPUs that it may use now; `None` if it is gone.
pub(super) fn thread_now(root: &Root, pid: RawPid, tid: RawPid) -> Option<(ProcessKey, CpuSet)> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let thread = Process::read_from(root, &format!("{folder}/stat"), tid)?;
    let present = process::allowed_cpus(root, &format!("{folder}/status"))?;
    Some((ProcessKey::from(&thread), present))
}

/// Whether these CPUs of a thread are what the kernel makes of a set, where the group has those of `limit`. It takes all
/// of them if the set has none of them.
pub(super) fn comes_from(present: &CpuSet, set: &CpuSet, limit: &CpuSet) -> bool {
    let both = set.intersection(limit);
    let effective = if both.is_empty() { limit } else { &both };
    present == set || present == effective
}

/// Whether a thread may have inherited its CPUs from the session; `None` if the session knows no process at or above it.
/// `since` tells when a process was bound: what had started before has inherited nothing. One that is left alone never was.
pub(super) fn may_inherit(
    root: &Root,
    pid: RawPid,
    thread: ProcessKey,
    since: impl Fn(ProcessKey) -> Option<u64>,
) -> Option<bool> {
    let mut started = thread.start;
    let mut next = Process::read(root, pid);
    while let Some(process) = next {
        if let Some(since) = since(ProcessKey::from(&process)) {
            return Some(started >= since);
        }
        started = process.start;
        next = Process::read(root, process.parent);
    }
    None
}

impl Pin {
    /// Whether the list gave the thread these CPUs, where it may use those of `limit` at most.
    pub(super) fn is_ours(&self, present: &CpuSet, limit: &CpuSet) -> bool {
        let was_moved = self.before != self.old;
        comes_from(present, &self.set, limit)
            || (was_moved && comes_from(present, &self.before, limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_is_ours_also_where_the_kernel_narrowed_it() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let pin = |before: &str| Pin {
            thread: ProcessKey { pid: 2, start: 1 },
            process: ProcessKey { pid: 1, start: 1 },
            old: set("0-3"),
            set: set("0-1"),
            before: set(before),
            since: 5,
        };
        for (before, present, limit, expected) in [
            ("0-3", "0-1", "0-3", true),
            ("0-3", "0-3", "0-3", false),
            ("0-3", "0", "0,2-3", true),
            ("0-3", "0", "0-3", false),
            ("2-3", "2-3", "0-3", true),
            ("2-3", "1-2", "0-3", false),
            ("0-3", "2-3", "2-3", true),
        ] {
            assert_eq!(
                pin(before).is_ours(&set(present), &set(limit)),
                expected,
                "{before} {present} {limit}"
            );
        }
    }
}
