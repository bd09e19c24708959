//! Free memory, on the machine and in the cgroups of this process.

use crate::cgroup;
use crate::root::{ReadError, Root};

/// Memory that can be used without swapping, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Memory {
    /// Total memory of the machine.
    pub total: u64,
    /// Memory available to new work without swapping, by the kernel's estimate (`MemAvailable`).
    pub available: u64,
    /// The lowest limit of this process's cgroups (v2); `None` without any limit.
    pub cgroup_limit: Option<u64>,
    /// Memory left below the tightest of these limits.
    pub cgroup_left: Option<u64>,
}

impl Memory {
    /// Memory that this process may use: the machine's, or less by a limit.
    pub fn allowed(&self) -> u64 {
        match self.cgroup_limit {
            Some(limit) => limit.min(self.total),
            None => self.total,
        }
    }

    /// Memory available to new work: the minimum of what the machine and the cgroups have left.
    pub fn usable(&self) -> u64 {
        match self.cgroup_left {
            Some(left) => left.min(self.available),
            None => self.available,
        }
    }
}

const MEMINFO: &str = "/proc/meminfo";
const ITEM: &str = "memory";
const BYTES: &str = "a whole number of bytes";

/// Error of the kernel's resident memory counters, which it sums over CPUs now and then.
pub(crate) const RSS_ERROR: u64 = 1 << 20;

/// Peak resident memory of this program since it was executed, in bytes; `None` if the kernel does not report it.
///
/// `getrusage` does not serve: its figure includes the program that executed this one, which may be large.
pub(crate) fn own_peak(root: &Root) -> Option<u64> {
    let text = root.text("/proc/self/status", ITEM).ok()??;
    let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Reads the free memory.
///
/// # Errors
/// [`ReadError`] when `/proc/meminfo` lacks a line that every kernel since 3.14 writes, or a cgroup's file contains no
/// number.
pub fn read(root: &Root) -> Result<Memory, ReadError> {
    let Some(text) = root.text(MEMINFO, ITEM)? else {
        return Err(root.missing(MEMINFO, ITEM, EXPECTED));
    };
    let mut memory = Memory {
        total: line_bytes(root, &text, "MemTotal")?,
        available: line_bytes(root, &text, "MemAvailable")?,
        cgroup_limit: None,
        cgroup_left: None,
    };
    for dir in cgroup::own_and_above(root) {
        // Group names are bytes, names of their files are not.
        if let Some((limit, left)) = group_limit(&Root::new(dir))? {
            memory.cgroup_limit = memory.cgroup_limit.into_iter().chain([limit]).min();
            memory.cgroup_left = memory.cgroup_left.into_iter().chain([left]).min();
        }
    }
    Ok(memory)
}

const EXPECTED: &str = "lines `MemTotal:` and `MemAvailable:` in kB";

/// The value of a line of `/proc/meminfo`, in bytes.
fn line_bytes(root: &Root, text: &str, name: &str) -> Result<u64, ReadError> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kb = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kb.and_then(|kb| kb.checked_mul(1024)).ok_or_else(|| {
        let found = line.map_or("no such line", str::trim);
        root.malformed(MEMINFO, ITEM, EXPECTED, found)
    })
}

/// Number of processes that the kernel has killed since boot because memory ran out; `None` if unknown.
pub(crate) fn oom_kills(root: &Root) -> Option<u64> {
    let text = root.text("/proc/vmstat", "out-of-memory kills").ok()??;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill "))?;
    line.trim().parse().ok()
}

/// The limit of one group, and the memory left below it; `None` if it has no limit.
///
/// Inactive page cache counts as left: the kernel drops it before the limit takes effect.
fn group_limit(group: &Root) -> Result<Option<(u64, u64)>, ReadError> {
    const LIMIT: &str = "/memory.max";
    const USED: &str = "/memory.current";
    let Some(limit) = group.text(LIMIT, ITEM)?.filter(|limit| limit != "max") else {
        return Ok(None);
    };
    let Ok(limit) = limit.parse::<u64>() else {
        let expected = "a whole number of bytes, or `max`";
        return Err(group.malformed(LIMIT, ITEM, expected, limit));
    };
    let Some(used) = group.parse::<u64>(USED, ITEM, BYTES)? else {
        return Err(group.missing(USED, ITEM, BYTES));
    };
    let stat = group.text("/memory.stat", ITEM)?.unwrap_or_default();
    let cache: Option<u64> = stat
        .lines()
        .find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok());
    let held = used.saturating_sub(cache.unwrap_or(0));
    Ok(Some((limit, limit.saturating_sub(held))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    const PLENTY: (&str, &str) = (
        "proc/meminfo",
        "MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable:    8 kB\n",
    );

    const MOUNTED: (&str, &str) = (
        "proc/self/mountinfo",
        "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
    );

    #[test]
    fn the_own_peak_is_that_of_the_program() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        assert_eq!(own_peak(&root), None);
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        let text = "Name:\tcosched\nVmHWM:\t   12345 kB\nVmRSS:\t 99 kB\n";
        std::fs::write(dir.path().join("proc/self/status"), text).unwrap();
        assert_eq!(own_peak(&root), Some(12_345 << 10));
    }

    #[test]
    fn the_machine_alone() {
        let (_dir, root) = tree(&[PLENTY]);
        let memory = read(&root).unwrap();
        assert_eq!(
            memory,
            Memory {
                total: 16 << 10,
                available: 8 << 10,
                cgroup_limit: None,
                cgroup_left: None
            }
        );
        assert_eq!(memory.allowed(), 16 << 10);
        assert_eq!(memory.usable(), 8 << 10);
    }

    #[test]
    fn the_tightest_cgroup_counts_and_idle_page_cache_does_not() {
        for base in ["sys/fs/cgroup", "sys/fs/cgroup/unified"] {
            let file = |path: &str| format!("{base}/{path}");
            let (_dir, root) = tree(&[
                PLENTY,
                (
                    "proc/self/mountinfo",
                    &format!("31 30 0:27 / /{base} rw - cgroup2 cgroup2 rw\n"),
                ),
                ("proc/self/cgroup", "4:memory:/x\n0::/a/b\n"),
                (&file("a/b/memory.max"), "max\n"),
                (&file("a/b/memory.current"), "10\n"),
                (&file("a/memory.max"), "5000\n"),
                (&file("a/memory.current"), "4500\n"),
                (&file("a/memory.stat"), "anon 1\ninactive_file 700\n"),
                (&file("memory.max"), "6000\n"),
                (&file("memory.current"), "4000\n"),
            ]);
            let memory = read(&root).unwrap();
            assert_eq!(memory.cgroup_left, Some(1200), "{base}");
            assert_eq!((memory.usable(), memory.allowed()), (1200, 5000));
        }
    }

    #[test]
    fn a_group_may_have_any_name() {
        let (dir, root) = tree(&[PLENTY, MOUNTED, ("sys/fs/cgroup/memory.max", "6000\n")]);
        std::fs::write(dir.path().join("sys/fs/cgroup/memory.current"), "0\n").unwrap();
        let cut = std::ffi::OsStr::from_bytes(b"\xd0");
        let own = dir.path().join("sys/fs/cgroup").join(cut);
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("memory.max"), "10\n").unwrap();
        std::fs::write(own.join("memory.current"), "3\n").unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), b"0::/\xd0\n").unwrap();
        assert_eq!(read(&root).unwrap().cgroup_left, Some(7));
    }

    #[test]
    fn a_process_above_its_limit_has_nothing_left() {
        let (_dir, root) = tree(&[
            PLENTY,
            MOUNTED,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "10\n"),
            ("sys/fs/cgroup/memory.current", "20\n"),
        ]);
        assert_eq!(read(&root).unwrap().usable(), 0);
    }

    #[test]
    fn what_is_missing_or_odd_is_named() {
        let (_dir, root) = tree(&[("proc/meminfo", "MemTotal: 1 kB\n")]);
        assert!(
            read(&root)
                .unwrap_err()
                .to_string()
                .contains("says `no such line`")
        );
        let (_dir, root) = tree(&[("proc/meminfo", "MemTotal: many kB\n")]);
        assert!(
            read(&root)
                .unwrap_err()
                .to_string()
                .contains("says `many kB`")
        );
        let (_dir, root) = tree(&[]);
        assert!(
            read(&root)
                .unwrap_err()
                .to_string()
                .contains("proc/meminfo does not exist")
        );
        let (_dir, root) = tree(&[
            PLENTY,
            MOUNTED,
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "lots\n"),
        ]);
        assert!(read(&root).unwrap_err().to_string().contains("says `lots`"));
    }

    #[test]
    fn this_machine_has_memory() {
        let memory = read(&Root::default()).unwrap();
        assert!(memory.available > 0 && memory.available <= memory.total);
    }
}
