//! Cgroups, named by their path or by the unit of systemd that they belong to.

use super::census::Census;
use super::error::SelectError;
use super::pattern::Pattern;
use super::selection::{Subject, SubjectKey};
use crate::cgroup;
use crate::process::ProcessKey;
use crate::root::Root;
use crate::sys::RawPid;
use std::path::{Path, PathBuf};

/// Looks between two searches for units, which visit every group of the machine.
const SEARCH_EVERY: u32 = 5;
/// Suffixes of the units that have processes.
const KINDS: [&str; 5] = [".service", ".scope", ".slice", ".socket", ".mount"];

/// Cgroups, each with everything below it.
pub(super) struct Groups {
    top: PathBuf,
    pattern: Option<Pattern>,
    dirs: Vec<PathBuf>,
    looks: u32,
}

impl Groups {
    /// The group at a path.
    ///
    /// # Errors
    /// There is no such group.
    pub(super) fn at(root: &Root, path: &str) -> Result<Groups, SelectError> {
        let top = top(root)?;
        let below = root.path(path);
        let below = below.strip_prefix(&top).unwrap_or(Path::new(path));
        let dir = top.join(below.strip_prefix("/").unwrap_or(below));
        // Without the slash at the end that the top gets.
        let dir: PathBuf = dir.components().collect();
        if !cgroup::is_group(root, &dir) || !dir.join("cgroup.procs").exists() {
            return Err(SelectError::NoGroup {
                path: path.to_owned(),
                top: top.display().to_string(),
            });
        }
        Ok(Groups {
            top,
            pattern: None,
            dirs: vec![dir],
            looks: 0,
        })
    }

    /// The groups of units whose names fit a pattern.
    ///
    /// # Errors
    /// There is no hierarchy.
    pub(super) fn of_units(root: &Root, name: &str) -> Result<Groups, SelectError> {
        let is_full = name.ends_with('*') || KINDS.iter().any(|kind| name.ends_with(kind));
        let pattern = if is_full {
            Pattern::whole(name)
        } else {
            Pattern::whole(&format!("{name}.service"))
        };
        Ok(Groups {
            top: top(root)?,
            pattern: Some(pattern),
            dirs: Vec::new(),
            looks: 0,
        })
    }

    /// The processes of all groups. It searches for new groups now and then.
    pub(super) fn pids(&mut self) -> Vec<RawPid> {
        if let Some(pattern) = &self.pattern
            && self.looks.is_multiple_of(SEARCH_EVERY)
        {
            self.dirs = cgroup::groups_named(&self.top, |name| pattern.fits(name));
        }
        self.looks = self.looks.wrapping_add(1);
        let each = self.dirs.iter().map(|dir| cgroup::processes(dir));
        each.flatten().collect()
    }

    /// The groups that contain a process.
    pub(super) fn subjects(&self, census: &Census) -> Vec<Subject> {
        let each = self.dirs.iter().map(|dir| self.subject(dir, census));
        each.filter(|subject| !subject.members.is_empty()).collect()
    }

    fn subject(&self, dir: &Path, census: &Census) -> Subject {
        let mut members = Vec::new();
        for pid in cgroup::processes(dir) {
            let known = census.process(pid).filter(|_| census.never(pid).is_none());
            members.extend(known.map(ProcessKey::from));
        }
        members.sort_unstable();
        Subject {
            key: SubjectKey::Group(dir.to_owned()),
            name: self.name(dir),
            command: None,
            group: Some(dir.to_owned()),
            members,
        }
    }

    /// The name of a unit, or the path of a group.
    fn name(&self, dir: &Path) -> String {
        let below = dir.strip_prefix(&self.top).unwrap_or(dir);
        let unit = dir.file_name().filter(|_| self.pattern.is_some());
        match unit {
            Some(unit) => unit.to_string_lossy().into_owned(),
            None => format!("/{}", below.display()),
        }
    }
}

fn top(root: &Root) -> Result<PathBuf, SelectError> {
    cgroup::top_directory(root).ok_or(SelectError::NoHierarchy)
}
