//! What the kernel tells of a thread's CPUs.

use crate::attached::Member;
use crate::cgroup;
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::RawPid;
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
    let online = root.cpus("/sys/devices/system/cpu/online", "online CPUs");
    online.ok().flatten().unwrap_or_default()
}

/// A thread with its start, and the CPUs that it may use now; `None` if it is gone.
pub(super) fn thread_now(root: &Root, pid: RawPid, tid: RawPid) -> Option<(Member, CpuSet)> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let start = Process::read_from(root, &format!("{folder}/stat"), tid)?.start;
    let present = process::allowed_cpus(root, &format!("{folder}/status"))?;
    Some((Member { pid: tid, start }, present))
}
