//! Groups of processes in the cgroup v2 hierarchy: one for the run, and in it one for each job.
//!
//! Freezing a group is one write, covers everything that the job ever started, and goes unnoticed by the job. It needs
//! a v2 hierarchy (pure, or beside v1 on hybrid hosts) in which this process may make groups below its own. No
//! controller is needed.

use crate::process;
use crate::root::Root;
use crate::sys::RawPid;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why cgroups can't be used; jobs are then frozen by signals.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// No cgroup v2 file system is mounted.
    #[error("no cgroup v2 hierarchy is mounted")]
    NoHierarchy,
    /// The kernel lacks the freezer (before Linux 5.2).
    #[error("the kernel's cgroup v2 has no freezer")]
    NoFreezer,
    /// This process may not make groups there, or may not move processes into them.
    #[error("may not make groups below {}: {source}", path.display())]
    NotWritable {
        /// The directory in which the group was to be made.
        path: PathBuf,
        /// The kernel's error.
        source: io::Error,
    },
}

impl GroupError {
    /// Whether only the permission is missing.
    pub fn is_permission(&self) -> bool {
        matches!(self, GroupError::NotWritable { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
    }
}

const PREFIX: &str = "cosched-";

/// The directory of the caller's own cgroup v2 group.
///
/// # Errors
/// [`GroupError::NoHierarchy`] when no v2 hierarchy is mounted.
pub(crate) fn own_directory(root: &Root) -> Result<PathBuf, GroupError> {
    let mount = mount_point(root).ok_or(GroupError::NoHierarchy)?;
    let own = std::fs::read_to_string(root.path("/proc/self/cgroup")).map_err(|_| GroupError::NoHierarchy)?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::")).ok_or(GroupError::NoHierarchy)?;
    Ok(root.path(&mount).join(path.trim_start_matches('/')))
}

/// The mount point of the v2 hierarchy.
fn mount_point(root: &Root) -> Option<String> {
    let mounts = std::fs::read_to_string(root.path("/proc/self/mountinfo")).ok()?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_v2 = after.split(' ').next() == Some("cgroup2");
        // The kernel writes blanks in paths as octal codes. No real hierarchy is mounted on such a path.
        is_v2.then(|| before.split(' ').nth(4).map(str::to_owned))?
    })
}

/// Why the cgroup freezer can't be used here; `None` if it can.
pub fn freezer_problem(root: &Root) -> Option<GroupError> {
    // Only making a group proves that groups can be made. The group is removed at once.
    let token = process::own_token(root).unwrap_or_else(|| "0-0".to_owned());
    RunGroup::create(root, &format!("{token}-probe")).err()
}

/// The group of one run. Dropping it removes it if it is empty.
#[derive(Debug)]
pub(crate) struct RunGroup {
    dir: PathBuf,
}

/// The group of one job. Dropping it thaws it, and removes it if it is empty.
#[derive(Debug)]
pub(crate) struct JobGroup {
    dir: PathBuf,
    freeze: File,
}

impl RunGroup {
    /// Makes the group of the run with this token, and proves that processes can be moved into such groups.
    ///
    /// # Errors
    /// As [`GroupError`].
    pub(crate) fn create(root: &Root, token: &str) -> Result<RunGroup, GroupError> {
        let own = own_directory(root)?;
        let not_writable = |path: &Path| {
            let path = path.to_owned();
            move |source| GroupError::NotWritable { path, source }
        };
        // Moving a process needs permission to write to the process list of the common ancestor.
        let procs = own.join("cgroup.procs");
        OpenOptions::new().write(true).open(&procs).map_err(not_writable(&own))?;
        let dir = own.join(format!("{PREFIX}{token}"));
        std::fs::create_dir(&dir).map_err(not_writable(&own))?;
        let group = RunGroup { dir };
        if group.dir.join("cgroup.freeze").exists() { Ok(group) } else { Err(GroupError::NoFreezer) }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Makes the group of a job.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn job(&self, id: u32) -> io::Result<JobGroup> {
        let dir = self.dir.join(format!("job{id}"));
        std::fs::create_dir(&dir)?;
        match OpenOptions::new().write(true).open(dir.join("cgroup.freeze")) {
            Ok(freeze) => Ok(JobGroup { dir, freeze }),
            Err(error) => {
                let _ = std::fs::remove_dir(&dir);
                Err(error)
            }
        }
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.dir);
    }
}

impl JobGroup {
    /// Moves a process into the group.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn add(&self, pid: RawPid) -> io::Result<()> {
        std::fs::write(self.dir.join("cgroup.procs"), pid.to_string())
    }

    /// Freezes or thaws all processes of the group. Returns before the last of them stands still.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn freeze(&self, frozen: bool) -> io::Result<()> {
        (&self.freeze).write_all(if frozen { b"1" } else { b"0" })
    }

    /// Whether the group holds any process; zombies do not count.
    pub(crate) fn is_populated(&self) -> bool {
        let events = std::fs::read_to_string(self.dir.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 1")
    }

    pub(crate) fn processes(&self) -> Vec<RawPid> {
        read_numbers(&self.dir.join("cgroup.procs"))
    }

    /// Ends all its processes at once, frozen or not; `false` if the kernel can't (before Linux 5.14).
    pub(crate) fn kill(&self) -> bool {
        std::fs::write(self.dir.join("cgroup.kill"), "1").is_ok()
    }

    /// CPU time of all processes that ever were in it, in microseconds.
    pub(crate) fn cpu_time_us(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(self.dir.join("cpu.stat")).ok()?;
        stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?.parse().ok()
    }

    /// How many of its processes the kernel killed because memory ran out; `None` if the memory controller is off.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        let events = std::fs::read_to_string(self.dir.join("memory.events")).ok()?;
        events.lines().find_map(|line| line.strip_prefix("oom_kill "))?.parse().ok()
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        if std::fs::remove_dir(&self.dir).is_err() {
            release(&self.dir);
        }
    }
}

fn read_numbers(path: &Path) -> Vec<RawPid> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

/// Thaws a group of ours and everything below it, moves its processes to the parent of the run's group, and removes it.
/// Returns the processes that were released, each once.
pub(crate) fn release(dir: &Path) -> Vec<RawPid> {
    let mut released = Vec::new();
    let is_run = |dir: &Path| dir.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with(PREFIX));
    let home = if is_run(dir) { dir.parent() } else { dir.parent().and_then(Path::parent) };
    let Some(home) = home else { return released };
    // Everything is thawed first: that must not depend on whether the rest works.
    let mut groups = vec![dir.to_owned()];
    if let Ok(entries) = std::fs::read_dir(dir) {
        groups.extend(entries.filter_map(|e| Some(e.ok()?.path())).filter(|path| path.is_dir()));
    }
    for group in &groups {
        let _ = std::fs::write(group.join("cgroup.freeze"), "0");
    }
    for group in groups.iter().rev() {
        // A process that forks while it is moved leaves its child behind, so look again.
        for _ in 0..100 {
            let pids = read_numbers(&group.join("cgroup.procs"));
            if pids.is_empty() {
                break;
            }
            for pid in pids {
                if std::fs::write(home.join("cgroup.procs"), pid.to_string()).is_ok() && !released.contains(&pid) {
                    released.push(pid);
                }
            }
        }
        let _ = std::fs::remove_dir(group);
    }
    released
}

/// Groups of runs whose leading process has died: those in a directory and, when `deep`, in all below it.
pub(crate) fn stale(root: &Root, dir: &Path, deep: bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    while let Some(dir) = todo.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| path.is_dir()) {
            let token = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_prefix(PREFIX));
            match token {
                Some(token) if !process::is_alive(root, token) => found.push(path),
                Some(_) => {}
                None if deep => todo.push(path),
                None => {}
            }
        }
    }
    found.sort();
    found
}

/// The top directory of the v2 hierarchy.
pub(crate) fn top_directory(root: &Root) -> Option<PathBuf> {
    mount_point(root).map(|mount| root.path(&mount))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(mountinfo: &str, own: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        std::fs::write(dir.path().join("proc/self/mountinfo"), mountinfo).unwrap();
        std::fs::write(dir.path().join("proc/self/cgroup"), own).unwrap();
        let root = Root::new(dir.path());
        (dir, root)
    }

    const HYBRID: &str = "30 25 0:26 / /sys/fs/cgroup ro,nosuid - tmpfs tmpfs ro,mode=755\n\
        31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate\n\
        32 30 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n";

    #[test]
    fn the_hierarchy_is_found_on_pure_and_hybrid_hosts() {
        let (dir, root) = tree(HYBRID, "5:freezer:/x\n0::/a/b\n");
        assert_eq!(own_directory(&root).unwrap(), dir.path().join("sys/fs/cgroup/unified/a/b"));
        let pure = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let (dir, root) = tree(pure, "0::/\n");
        assert_eq!(own_directory(&root).unwrap(), dir.path().join("sys/fs/cgroup"));
        let (_dir, root) = tree("32 30 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n", "5:freezer:/\n");
        assert!(matches!(own_directory(&root), Err(GroupError::NoHierarchy)));
    }

    #[test]
    fn a_kernel_without_freezer_and_a_missing_group_are_told_apart() {
        let (dir, root) = tree(HYBRID, "0::/\n");
        assert!(matches!(RunGroup::create(&root, "1-2"), Err(GroupError::NotWritable { .. })));
        let own = dir.path().join("sys/fs/cgroup/unified");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("cgroup.procs"), "").unwrap();
        assert!(matches!(RunGroup::create(&root, "1-2"), Err(GroupError::NoFreezer)));
        assert!(!own.join("cosched-1-2").exists());
    }

    #[test]
    fn only_groups_of_the_dead_are_stale() {
        let (dir, root) = tree(HYBRID, "0::/\n");
        let own = dir.path().join("sys/fs/cgroup/unified");
        for name in ["cosched-10-77", "cosched-10-78", "other", "other/cosched-11-1", "coschedule"] {
            std::fs::create_dir_all(own.join(name)).unwrap();
        }
        std::fs::create_dir_all(dir.path().join("proc/10")).unwrap();
        let stat = format!("10 (p) S 1 10 10{} 1 0 77 0", " 0".repeat(13));
        std::fs::write(dir.path().join("proc/10/stat"), stat).unwrap();
        assert_eq!(stale(&root, &own, false), [own.join("cosched-10-78")]);
        assert_eq!(stale(&root, &own, true), [own.join("cosched-10-78"), own.join("other/cosched-11-1")]);
    }

    #[test]
    fn release_thaws_and_moves_out() {
        let dir = tempfile::tempdir().unwrap();
        let run = dir.path().join("cosched-1-1");
        let job = run.join("job0");
        std::fs::create_dir_all(&job).unwrap();
        std::fs::write(dir.path().join("cgroup.procs"), "").unwrap();
        std::fs::write(job.join("cgroup.freeze"), "1").unwrap();
        std::fs::write(job.join("cgroup.procs"), "41\n42\n").unwrap();
        assert_eq!(release(&run), [41, 42]);
        assert_eq!(std::fs::read_to_string(job.join("cgroup.freeze")).unwrap(), "0");
    }
}
