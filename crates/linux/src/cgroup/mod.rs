//! Process groups in the cgroup v2 hierarchy: one for the run, and below it one for each job.
//!
//! Freezing a group is one write, covers all descendants of a job, and is invisible to the job. It needs a v2 hierarchy
//! (pure, or beside v1 on hybrid hosts) in which this process may create groups below its own. No controller is needed.
//! A job may create groups in its own, as a nested run does, so every operation on a group includes all groups below
//! it.

mod own;
mod stale;
mod subtree;

pub(crate) use own::{directory_of, own_and_above, own_and_above_v1, own_directory, top_directory};
pub(crate) use stale::{Stale, holds_frozen, is_frozen, stale, thaw};
pub(crate) use subtree::{
    groups_named, is_populated, kill, processes, processes_within, remove, subgroups,
};

use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::RawPid;
use cosched_core::Nanos;
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Why cgroups cannot be used; jobs are then frozen by signals.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// No cgroup v2 file system is mounted.
    #[error("no cgroup v2 hierarchy is mounted")]
    NoHierarchy,
    /// The kernel lacks the freezer (before Linux 5.2).
    #[error("the kernel's cgroup v2 has no freezer")]
    NoFreezer,
    /// This process may not create groups there, or may not move processes into them.
    #[error("may not make groups below {}: {source}", path.display())]
    NotWritable {
        /// The parent directory of the new group.
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

const FREEZE: &str = "cgroup.freeze";
const PREFIX: &str = "cosched-";
/// Maximum number of groups of one job that earlier starts left in use.
const MOST_STARTS: u32 = 100;
/// Suffix of the name of a group that tests whether groups can be created.
const PROBE: &str = "-probe";

/// The run of a group with this name; `None` if no run created the group.
pub(crate) fn run_of(name: &OsStr) -> Option<RunId> {
    let name = name.to_str()?.strip_prefix(PREFIX)?;
    RunId::parse(name.strip_suffix(PROBE).unwrap_or(name))
}

/// Whether a directory named by a list can be the group of this run.
pub(crate) fn is_group_of(root: &Root, dir: &Path, run: &RunId) -> bool {
    dir.file_name().and_then(run_of) == Some(*run) && is_group(root, dir)
}

/// Whether a directory named by a list is a group. Any user can write any list of their own, and root reads it. So the
/// directory must be in the hierarchy itself, which contains neither links nor files of users.
pub(crate) fn is_group(root: &Root, dir: &Path) -> bool {
    let Some(top) = top_directory(root) else {
        return false;
    };
    // Checked before the directory is accessed: it could be on a file system that never answers.
    let is_below = dir.strip_prefix(&top).is_ok_and(|below| {
        below
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    });
    is_below && device(dir).is_some_and(|of| Some(of) == device(&top))
}

/// The device of a directory; `None` if it is not a directory.
fn device(dir: &Path) -> Option<u64> {
    let metadata = std::fs::symlink_metadata(dir).ok()?;
    metadata.is_dir().then(|| metadata.dev())
}

/// A time from `cpu.stat`, which is in microseconds there.
fn stat_time(stat: &str, name: &str) -> Option<Nanos> {
    let time = stat
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    Some(Nanos(time.parse::<u64>().ok()? * 1_000))
}

/// Writes to a control file of a group. Such a file exists and is no link, so this neither creates, truncates nor
/// follows anything.
fn control(group: &Path, file: &str, value: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NOFOLLOW)
        .open(group.join(file))?;
    io::Write::write_all(&mut file, value)
}

/// Freezes or thaws a group. Returns whether it is frozen then, before all of its processes have stopped. A group that was
/// removed contains nothing frozen.
///
/// # Errors
/// An error of the kernel.
pub(crate) fn set_frozen(group: &Path, frozen: bool) -> io::Result<bool> {
    match control(group, FREEZE, if frozen { b"1" } else { b"0" }) {
        Ok(()) => Ok(frozen),
        Err(_) if !group.exists() => Ok(false),
        Err(error) => Err(error),
    }
}

/// Why the cgroup freezer cannot be used here; `None` if it can.
pub fn freezer_problem(root: &Root) -> Option<GroupError> {
    // Only creating a group proves that groups can be created. The group is removed at once.
    let Some(run) = RunId::own(root) else {
        return Some(GroupError::NoHierarchy);
    };
    RunGroup::make(root, &format!("{run}{PROBE}")).err()
}

/// The group of one run. Dropping it removes it if it is empty.
pub(crate) struct RunGroup {
    dir: PathBuf,
}

/// The group of one job. Dropping it thaws it, and removes it if it is empty.
#[derive(Debug)]
pub(crate) struct JobGroup {
    dir: PathBuf,
}

/// CPU time of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuTimes {
    pub total: Nanos,
    pub user: Nanos,
    pub system: Nanos,
}

fn directory(group: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECTORY)
        .open(group)
}

fn not_writable(dir: &Path, source: io::Error) -> GroupError {
    let path = dir.to_owned();
    GroupError::NotWritable { path, source }
}

impl RunGroup {
    /// Creates the group of a run, and checks that processes can be moved into such groups.
    ///
    /// # Errors
    /// As [`GroupError`].
    pub(crate) fn create(root: &Root, run: &RunId) -> Result<RunGroup, GroupError> {
        RunGroup::make(root, &run.to_string())
    }

    fn make(root: &Root, name: &str) -> Result<RunGroup, GroupError> {
        let own = own_directory(root)?;
        // Moving a process needs write permission on the process list of the common ancestor.
        let procs = own.join("cgroup.procs");
        OpenOptions::new()
            .write(true)
            .open(&procs)
            .map_err(|source| not_writable(&own, source))?;
        let dir = own.join(format!("{PREFIX}{name}"));
        match std::fs::create_dir(&dir) {
            // This process created it for an earlier batch.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => made.map_err(|source| not_writable(&own, source))?,
        }
        let group = RunGroup { dir };
        if group.dir.join(FREEZE).exists() {
            Ok(group)
        } else {
            Err(GroupError::NoFreezer)
        }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// A descriptor of its directory, to create processes in it.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn directory(&self) -> io::Result<File> {
        directory(&self.dir)
    }

    /// Creates the group of a job.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn job(&self, id: u32) -> io::Result<JobGroup> {
        let mut dir = self.dir.join(format!("job{id}"));
        let mut made = std::fs::create_dir(&dir);
        // The group of an earlier start of the job may still be in use.
        for again in 1..MOST_STARTS {
            match &made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                _ => break,
            }
            dir = self.dir.join(format!("job{id}.{again}"));
            made = std::fs::create_dir(&dir);
        }
        made.map(|()| JobGroup { dir })
    }
}

impl Drop for RunGroup {
    fn drop(&mut self) {
        remove(&self.dir);
    }
}

impl JobGroup {
    /// Moves a process into the group.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn add(&self, pid: RawPid) -> io::Result<()> {
        control(&self.dir, "cgroup.procs", pid.to_string().as_bytes())
    }

    /// A descriptor of its directory, to create processes in it.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn directory(&self) -> io::Result<File> {
        directory(&self.dir)
    }

    /// Freezes or thaws all processes of the group, as [`set_frozen`].
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn set_frozen(&self, frozen: bool) -> io::Result<bool> {
        set_frozen(&self.dir, frozen)
    }

    /// The group of a job in a small tree.
    #[cfg(test)]
    pub(crate) fn at(dir: &Path) -> JobGroup {
        JobGroup {
            dir: dir.to_owned(),
        }
    }

    /// Whether it contains any process; zombies do not count.
    pub(crate) fn is_populated(&self) -> bool {
        is_populated(&self.dir)
    }

    /// All its processes.
    pub(crate) fn processes(&self) -> Vec<RawPid> {
        processes(&self.dir)
    }

    /// Kills all its processes at once, frozen or not; `false` if the kernel cannot (before Linux 5.14).
    pub(crate) fn kill(&self) -> bool {
        kill(&self.dir)
    }

    /// CPU time of all processes that were ever in it.
    pub(crate) fn cpu_times(&self) -> Option<CpuTimes> {
        let stat = std::fs::read_to_string(self.dir.join("cpu.stat")).ok()?;
        Some(CpuTimes {
            total: stat_time(&stat, "usage_usec")?,
            user: stat_time(&stat, "user_usec")?,
            system: stat_time(&stat, "system_usec")?,
        })
    }
}

impl Drop for JobGroup {
    fn drop(&mut self) {
        let _ = self.set_frozen(false);
        remove(&self.dir);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

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
        assert_eq!(
            own_directory(&root).unwrap(),
            dir.path().join("sys/fs/cgroup/unified/a/b")
        );
        let pure = "31 30 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let (dir, root) = tree(pure, "0::/\n");
        assert_eq!(
            own_directory(&root).unwrap(),
            dir.path().join("sys/fs/cgroup")
        );
        let (dir, root) = tree(pure, "");
        let cut = dir.path().join("proc/self");
        std::fs::write(cut.join("cgroup"), b"0::/\xd0\n").unwrap();
        std::fs::write(
            cut.join("mountinfo"),
            [b"9 9 0:1 / /\xd0 rw - tmpfs x rw\n", pure.as_bytes()].concat(),
        )
        .unwrap();
        let own = dir
            .path()
            .join("sys/fs/cgroup")
            .join(OsStr::from_bytes(b"\xd0"));
        assert_eq!(own_directory(&root).unwrap(), own, "names are bytes");
        let (_dir, root) = tree(
            "32 30 0:28 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n",
            "5:freezer:/\n",
        );
        assert!(matches!(own_directory(&root), Err(GroupError::NoHierarchy)));
    }

    #[test]
    fn a_listed_group_counts_only_in_the_hierarchy_and_by_its_name() {
        let (dir, root) = tree("31 30 0:27 / /groups rw - cgroup2 cgroup2 rw\n", "0::/\n");
        let run = RunId::parse("10-78-500").unwrap();
        let at = |path: &str| dir.path().join(path);
        for path in [
            "groups/a/cosched-10-78-500",
            "groups/cosched-10-79-500",
            "groups/plain",
            "evil/cosched-10-78-500",
        ] {
            std::fs::create_dir_all(at(path)).unwrap();
        }
        std::os::unix::fs::symlink(at("evil/cosched-10-78-500"), at("groups/cosched-10-78-500"))
            .unwrap();
        let is_its = |path: &str| is_group_of(&root, &at(path), &run);
        assert!(is_its("groups/a/cosched-10-78-500"));
        assert!(!is_its("groups/cosched-10-79-500"), "another run");
        assert!(
            !is_its("groups/plain")
                && !is_its("groups")
                && !is_group_of(&root, Path::new("/"), &run)
        );
        assert!(!is_its("evil/cosched-10-78-500"), "no group");
        assert!(
            !is_its("groups/a/../../evil/cosched-10-78-500"),
            "a way out"
        );
        assert!(!is_its("groups/cosched-10-78-500"), "a link");
        assert!(!is_its("groups/b/cosched-10-78-500"), "it has gone");
        let is_any = |path: &str| is_group(&root, &at(path));
        assert!(is_any("groups/plain") && !is_any("evil") && !is_any("groups/plain/../../evil"));
    }

    #[test]
    fn control_files_are_neither_made_nor_cut_nor_reached_by_links() {
        let dir = tempfile::tempdir().unwrap();
        assert!(!kill(dir.path()) && !dir.path().join("cgroup.kill").exists());
        let other = dir.path().join("other");
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, dir.path().join("cgroup.kill")).unwrap();
        assert!(!kill(dir.path()));
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
        std::fs::write(dir.path().join(FREEZE), "1\n").unwrap();
        control(dir.path(), FREEZE, b"0").unwrap();
        assert_eq!(
            std::fs::read_to_string(dir.path().join(FREEZE)).unwrap(),
            "0\n"
        );
    }

    #[test]
    fn the_cpu_time_of_a_group_is_told_by_its_kinds() {
        let dir = tempfile::tempdir().unwrap();
        let times = |stat: &str| {
            let job = dir.path().join("job");
            std::fs::create_dir_all(&job).unwrap();
            std::fs::write(job.join("cpu.stat"), stat).unwrap();
            JobGroup::at(&job).cpu_times()
        };
        let all = times("usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnice_usec 3\n").unwrap();
        let us = |us: u64| Nanos(us * 1_000);
        assert_eq!(
            all,
            CpuTimes {
                total: us(1_500),
                user: us(1_000),
                system: us(500)
            }
        );
        assert_eq!(times("user_usec 7\n"), None);
    }

    #[test]
    fn a_kernel_without_freezer_and_a_missing_group_are_told_apart() {
        let (dir, root) = tree(HYBRID, "0::/\n");
        assert!(matches!(
            RunGroup::make(&root, "1-2-3"),
            Err(GroupError::NotWritable { .. })
        ));
        let own = dir.path().join("sys/fs/cgroup/unified");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("cgroup.procs"), "").unwrap();
        assert!(matches!(
            RunGroup::make(&root, "1-2-3"),
            Err(GroupError::NoFreezer)
        ));
        assert!(!own.join("cosched-1-2-3").exists());
    }
}
