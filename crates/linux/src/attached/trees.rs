//! Processes with their descendants. A process that lost its parent stays in its tree.

use super::census::Census;
use super::pattern::Pattern;
use super::selection::{Subject, SubjectKey, process_name};
use crate::cgroup;
use crate::process::ProcessKey;
use crate::root::Root;
use crate::sys::RawPid;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Trees of processes.
pub(super) struct Trees {
    /// Which new processes become the root of a tree.
    pattern: Option<Pattern>,
    /// The roots, numbered in the order in which they were found.
    roots: BTreeMap<u64, TreeRoot>,
    planted: u64,
    /// The processes of all trees: the start of each, and the number of its root.
    placed: BTreeMap<RawPid, (u64, u64)>,
}

struct TreeRoot {
    member: ProcessKey,
    name: String,
    command: String,
    group: Option<PathBuf>,
}

impl Trees {
    /// The trees of these processes, and from now on of those whose command line fits a pattern.
    pub(super) fn new(
        root: &Root,
        census: &mut Census,
        pids: &[RawPid],
        pattern: Option<Pattern>,
    ) -> Trees {
        let mut trees = Trees {
            pattern,
            roots: BTreeMap::new(),
            planted: 0,
            placed: BTreeMap::new(),
        };
        for &pid in pids {
            trees.plant(root, census, pid);
        }
        trees
    }

    /// Brings the trees up to date with a look, and returns those that live.
    pub(super) fn subjects(&mut self, root: &Root, census: &mut Census) -> Vec<Subject> {
        self.placed.retain(|pid, (start, _)| {
            let now = census.process(*pid);
            now.is_some_and(|process| process.start == *start)
        });
        self.plant_matching(root, census);
        self.grow(census);
        self.drop_dead();
        self.rows()
    }

    fn plant(&mut self, root: &Root, census: &mut Census, pid: RawPid) {
        let Some(member) = census.process(pid).map(ProcessKey::from) else {
            return;
        };
        let command = census.command(pid).unwrap_or_default().to_owned();
        let tree = TreeRoot {
            member,
            name: process_name(pid, &command),
            command,
            group: cgroup::directory_of(root, pid),
        };
        self.placed.insert(pid, (member.start, self.planted));
        self.roots.insert(self.planted, tree);
        self.planted += 1;
    }

    /// Plants a tree for each matching process that has no matching process above it.
    fn plant_matching(&mut self, root: &Root, census: &mut Census) {
        let Some(pattern) = self.pattern.clone() else {
            return;
        };
        // The command lines of this process, and of the shell that started it, contain the pattern too.
        let own = census.own_line();
        let pids: Vec<RawPid> = census.processes().map(|process| process.pid).collect();
        let mut matching: Vec<RawPid> = Vec::new();
        for pid in pids {
            let fits = census.command(pid).is_some_and(|line| pattern.fits(line));
            if fits && !own.contains(&pid) {
                matching.push(pid);
            }
        }
        for &pid in &matching {
            let above = census.ancestors(pid);
            let is_below = above.iter().any(|above| matching.contains(above));
            if !is_below && !self.placed.contains_key(&pid) {
                self.plant(root, census, pid);
            }
        }
    }

    /// Adds the children of the trees' processes, and theirs.
    fn grow(&mut self, census: &Census) {
        let mut children: BTreeMap<RawPid, Vec<ProcessKey>> = BTreeMap::new();
        for process in census.processes() {
            let siblings = children.entry(process.parent).or_default();
            siblings.push(process.into());
        }
        let mut open: Vec<RawPid> = self.placed.keys().copied().collect();
        while let Some(parent) = open.pop() {
            let (_, tree) = self.placed[&parent];
            for child in children.get(&parent).into_iter().flatten() {
                if let Entry::Vacant(place) = self.placed.entry(child.pid) {
                    place.insert((child.start, tree));
                    open.push(child.pid);
                }
            }
        }
    }

    /// Drops the roots of trees that have ended.
    fn drop_dead(&mut self) {
        let live: BTreeSet<u64> = self.placed.values().map(|(_, tree)| *tree).collect();
        self.roots.retain(|tree, _| live.contains(tree));
    }

    fn rows(&self) -> Vec<Subject> {
        let each = self.roots.iter();
        let mut rows: BTreeMap<u64, Subject> =
            each.map(|(&tree, root)| (tree, root.subject())).collect();
        for (&pid, &(start, tree)) in &self.placed {
            if let Some(row) = rows.get_mut(&tree) {
                row.members.push(ProcessKey { pid, start });
            }
        }
        rows.into_values().collect()
    }
}

impl TreeRoot {
    /// Its subject, without processes.
    fn subject(&self) -> Subject {
        Subject {
            key: SubjectKey::Tree {
                pid: self.member.pid,
                start: self.member.start,
            },
            name: self.name.clone(),
            command: Some(self.command.clone()),
            group: self.group.clone(),
            members: Vec::new(),
        }
    }
}
