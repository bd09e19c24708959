//! The groups that this process is in: its own, and those above it.

use super::GroupError;
use crate::root::Root;
use crate::sys::RawPid;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A mounted hierarchy of groups.
struct Mount {
    /// The group at its top, as `/proc/self/cgroup` names it.
    group: String,
    /// The directory of that group.
    top: PathBuf,
}

impl Mount {
    fn unified(root: &Root) -> Option<Mount> {
        Mount::find(root, |kind| kind.starts_with("cgroup2 "))
    }

    /// The v1 hierarchy of a controller.
    fn of(root: &Root, controller: &str) -> Option<Mount> {
        Mount::find(root, |kind| {
            kind.starts_with("cgroup ") && kind.split([' ', ',']).any(|word| word == controller)
        })
    }

    /// The first mount whose type and options `fits` accepts.
    fn find(root: &Root, fits: impl Fn(&str) -> bool) -> Option<Mount> {
        let mounts = std::fs::read(root.path("/proc/self/mountinfo")).ok()?;
        for line in lines(&mounts) {
            // Other mounts may have any name. No real hierarchy is mounted on a path with escaped blanks.
            let Ok(line) = std::str::from_utf8(line) else {
                continue;
            };
            if let Some((before, kind)) = line.split_once(" - ")
                && fits(kind)
            {
                let mut words = before.split(' ').skip(3);
                let group = words.next()?.to_owned();
                let top = root.path(words.next()?);
                return Some(Mount { group, top });
            }
        }
        None
    }

    /// The directory of the caller's group, as [`Mount::of_process`].
    fn own(&self, root: &Root, is_line: impl Fn(&[u8]) -> bool) -> Option<PathBuf> {
        self.of_process(root, "self", is_line)
    }

    /// The directory of the group that `/proc/PID/cgroup` names on the line whose controllers `is_line` accepts.
    fn of_process(
        &self,
        root: &Root,
        pid: &str,
        is_line: impl Fn(&[u8]) -> bool,
    ) -> Option<PathBuf> {
        // Group names are bytes: another program's name may be cut inside a character.
        let own = std::fs::read(root.path(&format!("/proc/{pid}/cgroup"))).ok()?;
        for line in lines(&own) {
            let mut parts = line.splitn(3, |&byte| byte == b':').skip(1);
            if parts.next().is_some_and(&is_line) {
                let path = Path::new(OsStr::from_bytes(parts.next()?));
                let below = path.strip_prefix(&self.group).unwrap_or(path);
                let dir = self.top.join(below.strip_prefix("/").unwrap_or(below));
                // Without the slash at the end that the top gets.
                return Some(dir.components().collect());
            }
        }
        None
    }

    fn own_and_above(&self, own: &Path) -> Vec<PathBuf> {
        let groups = own.ancestors().take_while(|dir| dir.starts_with(&self.top));
        groups.map(Path::to_owned).collect()
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|&byte| byte == b'\n')
}

/// The directory of the caller's own cgroup v2 group.
///
/// # Errors
/// [`GroupError::NoHierarchy`] when no v2 hierarchy is mounted.
pub(crate) fn own_directory(root: &Root) -> Result<PathBuf, GroupError> {
    let mount = Mount::unified(root).ok_or(GroupError::NoHierarchy)?;
    mount
        .own(root, <[u8]>::is_empty)
        .ok_or(GroupError::NoHierarchy)
}

/// The directory of a process's v2 group; `None` without a v2 hierarchy, or if the process is gone.
pub(crate) fn directory_of(root: &Root, pid: RawPid) -> Option<PathBuf> {
    Mount::unified(root)?.of_process(root, &pid.to_string(), <[u8]>::is_empty)
}

/// The top directory of the v2 hierarchy.
pub(crate) fn top_directory(root: &Root) -> Option<PathBuf> {
    Mount::unified(root).map(|mount| mount.top)
}

/// The directories of the caller's own v2 group and of those above it; none without a v2 hierarchy.
pub(crate) fn own_and_above(root: &Root) -> Vec<PathBuf> {
    match (Mount::unified(root), own_directory(root)) {
        (Some(mount), Ok(own)) => mount.own_and_above(&own),
        _ => Vec::new(),
    }
}

/// The same in the v1 hierarchy of a controller.
pub(crate) fn own_and_above_v1(root: &Root, controller: &str) -> Vec<PathBuf> {
    let Some(mount) = Mount::of(root, controller) else {
        return Vec::new();
    };
    let is_its = |names: &[u8]| {
        names
            .split(|&byte| byte == b',')
            .any(|name| name == controller.as_bytes())
    };
    let own = mount.own(root, is_its);
    own.map_or_else(Vec::new, |own| mount.own_and_above(&own))
}
