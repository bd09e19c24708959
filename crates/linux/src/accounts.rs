//! How this machine spent its CPU time, by the kernel's accounts: on this process and its children, on others, on the
//! hypervisor's other guests. Readings before and after a run show how much of its CPUs the run had.

use crate::process;
use crate::root::Root;
use crate::stat::{Stat, tick_time};
use crate::sys::RawPid;
use cosched_core::{CpuId, CpuSet, Nanos};
use std::collections::BTreeMap;
use std::ops::Add;

/// CPU time since the machine was started, at one instant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuAccounts {
    /// Total time of these CPUs: busy, idle or stolen.
    total: Nanos,
    /// Time in which they executed something.
    busy: Nanos,
    /// Time in which they were ready, and the hypervisor ran others.
    stolen: Nanos,
    /// CPU time of this process, of its ended children, and of their waited-for descendants.
    own: Nanos,
}

/// How the CPUs spent their time between two instants.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CpuUse {
    /// Total time of the CPUs: their number x the time that passed.
    pub total: Nanos,
    /// Time stolen by the hypervisor.
    pub stolen: Nanos,
    /// Time spent on other processes than this one and its ended children.
    pub foreign: Nanos,
}

/// Reads the accounts of these CPUs; `None` if the kernel lacks them for any of these CPUs.
pub fn read(root: &Root, cpus: &CpuSet) -> Option<CpuAccounts> {
    with_own(root, cpus, ticks_with_children(root, "self")?)
}

/// The same, with all live descendants of this process as its own.
pub(crate) fn read_with_family(root: &Root, cpus: &CpuSet) -> Option<CpuAccounts> {
    let family = process::descendants(root, std::process::id() as RawPid);
    let each = family.iter().filter_map(|member| {
        let pid = member.pid.to_string();
        ticks_with_children(root, &pid)
    });
    with_own(root, cpus, each.sum())
}

/// Time in which these CPUs executed anything, since the machine was started; `None` if the kernel does not count it.
pub fn busy(root: &Root, cpus: &CpuSet) -> Option<Nanos> {
    Some(with_own(root, cpus, 0)?.busy)
}

fn with_own(root: &Root, cpus: &CpuSet, own: u64) -> Option<CpuAccounts> {
    let mut each = each(root)?;
    each.retain(|cpu, _| cpus.contains(*cpu));
    let sum = |part: fn(&CpuSpent) -> Nanos| each.values().map(part).fold(Nanos::ZERO, Add::add);
    let total = sum(|spent| spent.total);
    // A sandbox may show the file and count nothing.
    if each.len() != cpus.len() || total == Nanos::ZERO {
        return None;
    }
    Some(CpuAccounts {
        total,
        busy: sum(|spent| spent.busy),
        stolen: sum(|spent| spent.stolen),
        own: tick_time(own),
    })
}

/// CPU time of one CPU since the machine was started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuSpent {
    pub total: Nanos,
    /// Time in which it executed something.
    pub busy: Nanos,
    /// Time in which the hypervisor ran others.
    pub stolen: Nanos,
}

/// The time of each online CPU; `None` if the kernel does not report it.
pub(crate) fn each(root: &Root) -> Option<BTreeMap<CpuId, CpuSpent>> {
    let stat = root.text("/proc/stat", "CPU time").ok()??;
    let mut all = BTreeMap::new();
    for line in stat.lines() {
        if let Some((cpu, ticks)) = cpu_line(line) {
            all.insert(cpu, spent(ticks)?);
        }
    }
    Some(all)
}

/// Parses the numbers of a CPU's line.
fn spent(ticks: &str) -> Option<CpuSpent> {
    let mut all = [0; FIELDS];
    for (field, ticks) in all.iter_mut().zip(ticks.split_ascii_whitespace()) {
        *field = ticks.parse().ok()?;
    }
    let [user, nice, system, idle, iowait, irq, softirq, stolen] = all;
    let busy = user + nice + system + irq + softirq;
    Some(CpuSpent {
        total: tick_time(busy + idle + iowait + stolen),
        busy: tick_time(busy),
        stolen: tick_time(stolen),
    })
}

/// The CPU of a line, and its numbers; `None` for any other line.
fn cpu_line(line: &str) -> Option<(CpuId, &str)> {
    let (number, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
    Some((CpuId(number.parse().ok()?), ticks))
}

/// Number of fields of a line of `/proc/stat` without double counting: guest time is part of user time.
const FIELDS: usize = 8;

/// CPU time of a process and its ended children, in ticks.
fn ticks_with_children(root: &Root, process: &str) -> Option<u64> {
    let stat = Stat::read(root, &format!("/proc/{process}/stat"))?;
    Some(stat.ticks + stat.child_ticks)
}

fn elapsed(now: Nanos, before: Nanos) -> Option<Nanos> {
    now.0.checked_sub(before.0).map(Nanos)
}

impl CpuAccounts {
    /// The time spent since `earlier`; `None` if no time has passed, or if a count went backwards.
    pub fn since(&self, earlier: &CpuAccounts) -> Option<CpuUse> {
        let total = elapsed(self.total, earlier.total).filter(|&total| total > Nanos::ZERO)?;
        let (busy, own) = (
            elapsed(self.busy, earlier.busy)?,
            elapsed(self.own, earlier.own)?,
        );
        let stolen = elapsed(self.stolen, earlier.stolen)?;
        // The kernel accounts processes more exactly than CPUs, so the difference can be slightly negative.
        Some(CpuUse {
            total,
            stolen,
            foreign: Nanos(busy.0.saturating_sub(own.0)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(stat: &str, own: [u64; 4]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/stat"), stat).unwrap();
        let [user, system, children, kernel] = own;
        let line = format!(
            "9 (a) b) S 1 9 9 0 -1 4194304 1 2 3 4 {user} {system} {children} {kernel} 20 0 1 0 7"
        );
        std::fs::write(dir.path().join("proc/self/stat"), line).unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    fn cpus(text: &str) -> CpuSet {
        text.parse().unwrap()
    }

    /// The kernel reports ticks of 10 ms to programs.
    fn ticks(count: u64) -> Nanos {
        Nanos(count * 1_000_000_000 / rustix::param::clock_ticks_per_second())
    }

    #[test]
    fn what_others_and_the_hypervisor_took_is_told() {
        let before = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 100 0 10 500 5 1 1 10 50 0\ncpu1 7 7 7 7 7 7 7 7 7 7\ncpu2 1 1 1 1 1 1 1 1 1 1\nintr 5\n";
        let after = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 160 0 20 520 5 1 1 20 90 0\ncpu1 9 7 7 57 7 7 7 47 7 7\ncpu2 900 1 1 1 1 1 1 1 1 1\nintr 5\n";
        let (_before, root) = tree(before, [1, 1, 10, 2]);
        let first = read(&root, &cpus("0-1")).unwrap();
        let (_after, root) = tree(after, [3, 2, 40, 9]);
        let second = read(&root, &cpus("0-1")).unwrap();
        let used = second.since(&first).unwrap();
        // CPU 0: 70 busy, 20 idle, 10 stolen; CPU 1: 2 busy, 50 idle, 40 stolen; 40 of the busy ticks were our own.
        assert_eq!(
            used,
            CpuUse {
                total: ticks(192),
                stolen: ticks(50),
                foreign: ticks(32)
            }
        );
        assert_eq!(first.since(&first), None, "no time has passed");
        assert_eq!(first.since(&second), None, "it went backwards");
    }

    #[test]
    fn what_is_not_counted_is_absent() {
        let line = "cpu0 1 1 1 1 1 1 1 1 0 0\n";
        let (_dir, root) = tree(line, [1, 1, 1, 1]);
        assert!(read(&root, &cpus("0")).is_some());
        assert_eq!(read(&root, &cpus("0-1")), None, "a CPU is not there");
        let (_dir, root) = tree("cpu  0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\n", [1, 1, 1, 1]);
        assert_eq!(read(&root, &cpus("0")), None, "a sandbox");
        let (dir, root) = tree(line, [1, 1, 1, 1]);
        std::fs::remove_file(dir.path().join("proc/self/stat")).unwrap();
        assert_eq!(read(&root, &cpus("0")), None);
        assert_eq!(read(&Root::new(dir.path().join("none")), &cpus("0")), None);
    }

    #[test]
    fn own_work_is_not_foreign() {
        let (root, all) = (Root::default(), crate::affinity(0).unwrap());
        let first = read(&root, &all).unwrap();
        let mut shell = std::process::Command::new("sh");
        shell
            .args(["-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"])
            .status()
            .unwrap();
        let second = read(&root, &all).unwrap();
        assert!(second.own > first.own, "the child is counted");
        let mut busy = std::process::Command::new("sh");
        let mut busy = busy
            .args(["-c", "ulimit -t 60; while :; do :; done"])
            .spawn()
            .unwrap();
        let before = read_with_family(&root, &all).unwrap();
        while read_with_family(&root, &all).unwrap().own == before.own {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        busy.kill().unwrap();
        busy.wait().unwrap();
        assert!(
            second
                .since(&first)
                .is_some_and(|used| used.foreign <= used.total)
        );
    }
}
