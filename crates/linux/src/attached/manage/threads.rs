//! What the kernel tells of a thread's CPUs.

use crate::attached::Member;
use crate::cgroup;
use crate::process::{self, Process};
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
pub(super) fn thread_now(root: &Root, pid: RawPid, tid: RawPid) -> Option<(Member, CpuSet)> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let thread = Process::read_from(root, &format!("{folder}/stat"), tid)?;
    let present = process::allowed_cpus(root, &format!("{folder}/status"))?;
    Some((Member::from(&thread), present))
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
    thread: Member,
    since: impl Fn(Member) -> Option<u64>,
) -> Option<bool> {
    let mut started = thread.start;
    let mut next = Process::read(root, pid);
    while let Some(process) = next {
        if let Some(since) = since(Member::from(&process)) {
            return Some(started >= since);
        }
        started = process.start;
        next = Process::read(root, process.parent);
    }
    None
}
