//! The CPU time that the cgroups of this process allow, as `docker run --cpus` limits it.

use crate::cgroup;
use crate::root::{ReadError, Root};
use cosched_core::{CpuSet, Machine};
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

const ITEM: &str = "CPU quota";

/// The tightest limit on CPU time of this process's groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuQuota {
    /// CPU time in each period, in microseconds.
    time: u64,
    /// The period, in microseconds.
    period: u64,
    /// A number that differs from group to group.
    group: u64,
}

impl CpuQuota {
    /// Reads the limit; `None` if there is none.
    ///
    /// # Errors
    /// A file of a group contains no such limit.
    pub fn read(root: &Root) -> Result<Option<CpuQuota>, ReadError> {
        let mut all = Vec::new();
        for group in cgroup::own_and_above(root) {
            all.extend(read_v2(&group)?);
        }
        for group in cgroup::own_and_above_v1(root, "cpu") {
            all.extend(read_v1(&group)?);
        }
        Ok(all.into_iter().min_by_key(CpuQuota::millionths))
    }

    /// The quota of a group, if it is one.
    fn new(group: &Path, time: u64, period: u64) -> Option<CpuQuota> {
        let number = group.metadata().map_or(0, |metadata| metadata.ino());
        (period > 0).then_some(CpuQuota {
            time,
            period,
            group: number,
        })
    }

    /// Millionths of a CPU.
    fn millionths(&self) -> u128 {
        u128::from(self.time) * 1_000_000 / u128::from(self.period)
    }

    /// Number of CPUs that are needed to use up the time, at least 1.
    fn cpus(self) -> usize {
        self.time.div_ceil(self.period).max(1) as usize
    }

    /// The part of the machine to use; `None` if the time suffices for all of it. Each group starts at another core.
    pub fn part_of(self, machine: &Machine) -> Option<CpuSet> {
        part_of(machine, self.cpus(), self.group)
    }

    /// What a run uses of `all` CPUs because of the quota, in words.
    pub fn text(self, used: usize, all: usize) -> String {
        let s = if all == 1 { "" } else { "s" };
        format!("{used} of {all} CPU{s}: the cgroup's quota is {self}")
    }
}

/// So many CPUs of a machine, from the core `first` on: one of each core, then the others; `None` if all are so many.
///
/// Containers and allocations on one machine do not see each other, and must not all use the same CPUs.
pub(crate) fn part_of(machine: &Machine, count: usize, first: u64) -> Option<CpuSet> {
    if count >= machine.cpus.len() {
        return None;
    }
    let cores = machine.cores.len().max(1);
    let first = (first % cores as u64) as usize;
    let mut ranked = Vec::new();
    for (ix, core) in machine.cores.iter().enumerate() {
        let distance = (ix + cores - first) % cores;
        let siblings = core.iter().enumerate();
        ranked.extend(siblings.map(|(sibling, cpu)| (sibling, distance, cpu)));
    }
    ranked.sort();
    let ranked = ranked.into_iter().take(count);
    Some(ranked.map(|(_, _, cpu)| cpu).collect())
}

impl fmt::Display for CpuQuota {
    /// In CPUs, with one or two decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus = self.millionths() as f64 / 1e6;
        let two = format!("{cpus:.2}");
        f.write_str(two.strip_suffix('0').unwrap_or(&two))
    }
}

/// The quota of a v2 group: `max 100000` without a limit, else `150000 100000`.
fn read_v2(group: &Path) -> Result<Option<CpuQuota>, ReadError> {
    const FILE: &str = "/cpu.max";
    let files = Root::new(group);
    let Some(text) = files.text(FILE, ITEM)? else {
        return Ok(None);
    };
    let (time, period) = text.split_once(' ').unwrap_or((&text, ""));
    if time == "max" {
        return Ok(None);
    }
    match (time.parse(), period.parse()) {
        (Ok(time), Ok(period)) => Ok(CpuQuota::new(group, time, period)),
        _ => Err(files.malformed(FILE, ITEM, "two numbers, or `max` and a number", text)),
    }
}

/// The quota of a v1 group. Its time is negative without a limit.
fn read_v1(group: &Path) -> Result<Option<CpuQuota>, ReadError> {
    let files = Root::new(group);
    let time = files.parse::<i64>("/cpu.cfs_quota_us", ITEM, "a whole number")?;
    let period = files.number("/cpu.cfs_period_us", ITEM)?;
    let time = time.and_then(|time| u64::try_from(time).ok());
    let both = time.zip(period);
    Ok(both.and_then(|(time, period)| CpuQuota::new(group, time, period)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    const MOUNTS: &str = "proc/self/mountinfo";
    const OWN: &str = "proc/self/cgroup";
    const V2: &str = "31 30 0:27 / /g rw - cgroup2 cgroup2 rw";

    fn quota(files: &[(&str, &str)]) -> Option<(usize, String)> {
        let (_dir, root) = tree(files);
        let quota = CpuQuota::read(&root).unwrap();
        quota.map(|quota| (quota.cpus(), quota.to_string()))
    }

    fn is(cpus: usize, text: &str) -> Option<(usize, String)> {
        Some((cpus, text.to_owned()))
    }

    #[test]
    fn the_tightest_quota_of_the_own_group_and_those_above_counts() {
        let in_groups = |own: &str, above: &str, top: &str| {
            let files = [
                (MOUNTS, V2),
                (OWN, "4:memory:/x\n0::/a/b"),
                ("g/a/b/cpu.max", own),
                ("g/a/cpu.max", above),
                ("g/cpu.max", top),
                ("cpu.max", "1 100000"),
            ];
            quota(&files)
        };
        assert_eq!(in_groups("max 100000", "max 100000", "max 100000"), None);
        assert_eq!(
            in_groups("max 100000", "100000 100000", "max 100000"),
            is(1, "1.0")
        );
        assert_eq!(
            in_groups("150000 100000", "800000 100000", "max 100000"),
            is(2, "1.5")
        );
        assert_eq!(
            in_groups("400000 100000", "max 100000", "125000 50000"),
            is(3, "2.5")
        );
        assert_eq!(
            in_groups("25000 100000", "max 100000", "max 100000"),
            is(1, "0.25")
        );
    }

    #[test]
    fn without_files_there_is_no_quota_and_nonsense_is_an_error() {
        assert_eq!(quota(&[]), None);
        assert_eq!(quota(&[(MOUNTS, V2), (OWN, "0::/a")]), None);
        let (_dir, root) = tree(&[(MOUNTS, V2), (OWN, "0::/"), ("g/cpu.max", "lots")]);
        let error = CpuQuota::read(&root).unwrap_err().to_string();
        assert!(error.contains("g/cpu.max says `lots`"), "{error}");
    }

    /// In a container of Docker, the own group is the top of the mount.
    #[test]
    fn v1_counts_too() {
        let mounts =
            |top: &str| format!("32 30 0:28 {top} /g/cpu rw - cgroup cgroup rw,cpu,cpuacct");
        let of = |top: &str, own: &str, at: &str, time: &str| {
            let (time_file, period_file) = (
                format!("{at}/cpu.cfs_quota_us"),
                format!("{at}/cpu.cfs_period_us"),
            );
            let own = format!("3:cpuset:/other\n2:cpu,cpuacct:{own}");
            let files = [
                (MOUNTS, &*mounts(top)),
                (OWN, &*own),
                (&*time_file, time),
                (&*period_file, "100000"),
            ];
            quota(&files)
        };
        assert_eq!(of("/", "/a/b", "g/cpu/a", "200000"), is(2, "2.0"));
        assert_eq!(of("/", "/a/b", "g/cpu/a", "-1"), None);
        assert_eq!(
            of("/docker/12", "/docker/12", "g/cpu", "150000"),
            is(2, "1.5")
        );
    }

    #[test]
    fn distinct_cores_come_first_and_groups_start_at_different_ones() {
        let machine = Machine::uniform("four cores with two threads", 4, 2);
        let part = |group: u64, cpus: u64| {
            let quota = CpuQuota {
                time: cpus,
                period: 1,
                group,
            };
            quota.part_of(&machine)
        };
        let cores = |part: &CpuSet| {
            let touched = machine.cores.iter();
            touched
                .filter(|core| !core.intersection(part).is_empty())
                .count()
        };
        for group in 0..9 {
            for cpus in 1..8 {
                let part = part(group, cpus).unwrap();
                assert_eq!(part.len(), cpus as usize);
                assert_eq!(cores(&part), part.len().min(4), "{part}");
            }
        }
        assert_eq!((part(7, 8), part(7, 9)), (None, None));
        assert_ne!(part(0, 2), part(1, 2));
        assert_eq!(part(1, 2), part(5, 2));
    }
}
