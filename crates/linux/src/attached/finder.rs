//! Finds the subjects of a selection, look after look.

use super::census::Census;
use super::error::SelectError;
use super::groups::Groups;
use super::jobs::UserProcessGroups;
use super::pattern::Pattern;
use super::selection::{Selection, Subject};
use super::trees::Trees;
use crate::process::ProcessKey;
use crate::root::Root;
use crate::sys::RawPid;
use std::collections::BTreeSet;

/// Maximum number of subjects.
const MOST_SUBJECTS: usize = 512;
/// Maximum number of their processes.
const MOST_PROCESSES: usize = 4_096;

/// Finds the subjects of selections. It remembers what it has read, so that a look costs little.
pub(super) struct Finder {
    root: Root,
    census: Census,
    parts: Vec<Part>,
}

/// What a look has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FoundSubjects {
    /// The subjects, in the order of the selections. A process belongs to the first one that selects it.
    pub subjects: Vec<Subject>,
    /// Processes that were left out because there are too many.
    pub left_out: usize,
}

/// One selection.
enum Part {
    Trees(Trees),
    Groups(Groups),
    Jobs(UserProcessGroups),
}

impl Finder {
    /// A finder for these selections.
    ///
    /// # Errors
    /// A named process, group or user does not exist. A pattern may match later.
    pub(super) fn new(root: &Root, selections: &[Selection]) -> Result<Finder, SelectError> {
        let mut finder = Finder {
            root: root.clone(),
            census: Census::new(root),
            parts: Vec::new(),
        };
        finder.census.look();
        for selection in selections {
            let part = finder.part(selection)?;
            finder.parts.push(part);
        }
        Ok(finder)
    }

    fn part(&mut self, selection: &Selection) -> Result<Part, SelectError> {
        let (root, census) = (&self.root, &mut self.census);
        Ok(match selection {
            Selection::Pids(pids) => {
                check_pids(census, pids)?;
                Part::Trees(Trees::new(root, census, pids, None))
            }
            Selection::Match(pattern) => {
                let pattern = Some(Pattern::within(pattern));
                Part::Trees(Trees::new(root, census, &[], pattern))
            }
            Selection::Cgroup(path) => Part::Groups(Groups::at(root, path)?),
            Selection::Unit(name) => Part::Groups(Groups::of_units(root, name)?),
            Selection::User(name) => Part::Jobs(UserProcessGroups::of_user(root, name)?),
        })
    }

    /// Looks at the machine.
    pub(super) fn find(&mut self) -> FoundSubjects {
        self.look();
        let (root, census) = (&self.root, &mut self.census);
        let mut subjects = Vec::new();
        for part in &mut self.parts {
            subjects.extend(match part {
                Part::Trees(trees) => trees.subjects(root, census),
                Part::Groups(groups) => groups.subjects(census),
                Part::Jobs(jobs) => jobs.subjects(root, census),
            });
        }
        let mut found = bounded(subjects);
        found.left_out += self.census.unread;
        found
    }

    /// Forgets a process that has ended, so that a later one with its number is read anew.
    pub(super) fn forget(&mut self, pid: RawPid) {
        self.census.forget(pid);
    }

    /// Groups list their processes themselves; all other selections need all processes of the machine.
    fn look(&mut self) {
        let mut listed = Vec::new();
        let mut needs_all = false;
        for part in &mut self.parts {
            match part {
                Part::Groups(groups) => listed.extend(groups.pids()),
                Part::Trees(_) | Part::Jobs(_) => needs_all = true,
            }
        }
        if needs_all {
            self.census.look();
        } else {
            self.census.look_at(&listed);
        }
    }
}

fn check_pids(census: &Census, pids: &[RawPid]) -> Result<(), SelectError> {
    for &pid in pids {
        if let Some(what) = census.never(pid) {
            return Err(SelectError::Never { pid, what });
        }
        if census.process(pid).is_none() {
            return Err(SelectError::NoProcess(pid));
        }
    }
    Ok(())
}

/// Gives each process to the first subject that has it, and keeps to the bounds.
fn bounded(all: Vec<Subject>) -> FoundSubjects {
    let mut found = FoundSubjects::default();
    let mut taken: BTreeSet<ProcessKey> = BTreeSet::new();
    for mut subject in all {
        subject.members.retain(|member| !taken.contains(member));
        let room = if found.subjects.len() < MOST_SUBJECTS {
            MOST_PROCESSES - taken.len()
        } else {
            0
        };
        found.left_out += subject.members.len().saturating_sub(room);
        subject.members.truncate(room);
        taken.extend(&subject.members);
        if !subject.members.is_empty() {
            found.subjects.push(subject);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// A small machine with these processes: number, parent, process group, user, command line.
    fn machine(processes: &[(RawPid, RawPid, RawPid, u32, &str)]) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        for group in ["a.slice/db@1.service/inner", "a.slice/web.service"] {
            fs::create_dir_all(at(&format!("groups/{group}"))).unwrap();
        }
        for group in ["", "a.slice", "a.slice/db@1.service", "a.slice/web.service"] {
            fs::write(at(&format!("groups/{group}/cgroup.procs")), "").unwrap();
        }
        fs::create_dir_all(at("proc/self")).unwrap();
        let mounts = "31 30 0:27 / /groups rw - cgroup2 cgroup2 rw\n";
        fs::write(at("proc/self/mountinfo"), mounts).unwrap();
        fs::create_dir_all(at("etc")).unwrap();
        fs::write(at("etc/passwd"), "root:x:0:0::/:\nalice:x:1000:1000::/:\n").unwrap();
        for process in processes {
            write(dir.path(), *process);
        }
        let root = Root::new(dir.path());
        (dir, root)
    }

    fn write(dir: &Path, (pid, parent, group, user, command): (RawPid, RawPid, RawPid, u32, &str)) {
        let proc = dir.join(format!("proc/{pid}"));
        fs::create_dir_all(&proc).unwrap();
        let start = pid + 1_000;
        let stat = format!(
            "{pid} (x) S {parent} {group} {group}{} 1 0 {start}",
            " 0".repeat(13)
        );
        fs::write(proc.join("stat"), stat).unwrap();
        fs::write(proc.join("cmdline"), command.replace(' ', "\0")).unwrap();
        fs::write(
            proc.join("status"),
            format!("Uid:\t{user}\t{user}\t{user}\t{user}\n"),
        )
        .unwrap();
        fs::write(proc.join("cgroup"), "0::/a.slice\n").unwrap();
    }

    /// The names of the subjects, each with the numbers of its processes.
    fn rows(found: &FoundSubjects) -> Vec<(String, Vec<RawPid>)> {
        let row = |subject: &Subject| {
            let pids = subject.members.iter().map(|member| member.pid);
            (subject.name.clone(), pids.collect())
        };
        found.subjects.iter().map(row).collect()
    }

    fn row(name: &str, pids: &[RawPid]) -> (String, Vec<RawPid>) {
        (name.to_owned(), pids.to_vec())
    }

    const FAMILY: [(RawPid, RawPid, RawPid, u32, &str); 7] = [
        (1, 0, 1, 0, "init"),
        (2, 0, 0, 0, ""),
        (3, 2, 0, 0, ""),
        (10, 1, 10, 1000, "/bin/make -j"),
        (11, 10, 10, 1000, "cc a.c"),
        (12, 11, 10, 1000, "cc1 a.c"),
        (20, 1, 20, 0, "server"),
    ];

    #[test]
    fn a_process_comes_with_its_descendants() {
        let (dir, root) = machine(&FAMILY);
        let mut finder = Finder::new(&root, &[Selection::Pids(vec![10, 20])]).unwrap();
        let found = finder.find();
        assert_eq!(
            rows(&found),
            [row("make 10", &[10, 11, 12]), row("server 20", &[20])]
        );
        assert_eq!(found.subjects[0].command.as_deref(), Some("/bin/make -j"));
        assert!(
            found.subjects[0]
                .group
                .as_ref()
                .unwrap()
                .ends_with("groups/a.slice")
        );
        // Its root and a parent end; what they left stays in the tree, and so does what that forks.
        for pid in ["10", "11", "20"] {
            fs::remove_dir_all(dir.path().join("proc").join(pid)).unwrap();
        }
        write(dir.path(), (13, 12, 10, 1000, "as"));
        assert_eq!(rows(&finder.find()), [row("make 10", &[12, 13])]);
        // Another process gets the number of one that has ended.
        finder.forget(13);
        let stat = "13 (x) S 1 13 13 0 0 0 0 0 0 0 0 0 0 0 0 0 1 0 9999";
        fs::write(dir.path().join("proc/13/stat"), stat).unwrap();
        assert_eq!(rows(&finder.find()), [row("make 10", &[12])]);
        fs::remove_dir_all(dir.path().join("proc/12")).unwrap();
        assert_eq!(finder.find(), FoundSubjects::default());
    }

    #[test]
    fn a_named_process_below_another_is_a_subject_of_its_own() {
        let (_dir, root) = machine(&FAMILY);
        let mut finder = Finder::new(&root, &[Selection::Pids(vec![10, 12])]).unwrap();
        let expected = [row("make 10", &[10, 11]), row("cc1 12", &[12])];
        assert_eq!(rows(&finder.find()), expected);
    }

    #[test]
    fn matching_processes_come_with_their_descendants() {
        let (dir, root) = machine(&FAMILY);
        let mut finder = Finder::new(&root, &[Selection::Match("cc*a.c".to_owned())]).unwrap();
        assert_eq!(rows(&finder.find()), [row("cc 11", &[11, 12])]);
        // A new process executes its program after it was seen.
        write(dir.path(), (30, 1, 30, 0, "sh"));
        assert_eq!(finder.find().subjects.len(), 1);
        write(dir.path(), (30, 1, 30, 0, "cc b/a.c"));
        assert_eq!(finder.find().subjects.len(), 2);
    }

    #[test]
    fn the_processes_of_a_user_are_divided_by_process_group() {
        let (dir, root) = machine(&FAMILY);
        write(dir.path(), (15, 10, 15, 1000, "sleep 9"));
        let expected = [row("make 10", &[10, 11, 12]), row("sleep 15", &[15])];
        for name in ["alice", "1000"] {
            let selection = [Selection::User(name.to_owned())];
            let mut finder = Finder::new(&root, &selection).unwrap();
            assert_eq!(rows(&finder.find()), expected);
        }
        let root_user = [Selection::User("root".to_owned())];
        let mut finder = Finder::new(&root, &root_user).unwrap();
        assert_eq!(
            rows(&finder.find()),
            [row("server 20", &[20])],
            "no kernel thread, no init"
        );
    }

    #[test]
    fn groups_and_units_list_their_own_processes() {
        let (dir, root) = machine(&FAMILY);
        let db = dir.path().join("groups/a.slice/db@1.service");
        fs::write(db.join("cgroup.procs"), "20\n1\n").unwrap();
        fs::write(db.join("inner/cgroup.procs"), "11\n12\n").unwrap();
        for name in ["db@1", "db@1.service", "db*", "db@*.service"] {
            let mut finder = Finder::new(&root, &[Selection::Unit(name.to_owned())]).unwrap();
            let expected = [row("db@1.service", &[11, 12, 20])];
            assert_eq!(rows(&finder.find()), expected, "{name}");
        }
        let absolute = "/groups/a.slice/db@1.service";
        for path in ["a.slice/db@1.service", "/a.slice/db@1.service", absolute] {
            let mut finder = Finder::new(&root, &[Selection::Cgroup(path.to_owned())]).unwrap();
            let expected = [row("/a.slice/db@1.service", &[11, 12, 20])];
            assert_eq!(rows(&finder.find()), expected, "{path}");
            fs::write(db.join("cgroup.procs"), "20\n").unwrap();
        }
        let mut waits = Finder::new(&root, &[Selection::Unit("web".to_owned())]).unwrap();
        assert_eq!(waits.find(), FoundSubjects::default());
    }

    #[test]
    fn what_cannot_be_selected_is_refused_with_its_reason() {
        let (_dir, root) = machine(&FAMILY);
        let refused = |selection: Selection| Finder::new(&root, &[selection]).err().unwrap();
        let pids = |pid: RawPid| refused(Selection::Pids(vec![pid])).to_string();
        assert_eq!(pids(99), SelectError::NoProcess(99).to_string());
        for (pid, what) in [
            (1, "init"),
            (2, "the kernel"),
            (3, "a thread of the kernel"),
        ] {
            assert!(pids(pid).contains(what), "{}", pids(pid));
        }
        let text = refused(Selection::Cgroup("b.slice".to_owned())).to_string();
        assert!(
            text.starts_with("cgroup b.slice does not exist below "),
            "{text}"
        );
        let around = refused(Selection::Cgroup(
            "a.slice/../a.slice/web.service".to_owned(),
        ));
        assert!(matches!(around, SelectError::NoGroup { .. }));
        let nobody = refused(Selection::User("no-such-user".to_owned()));
        assert_eq!(nobody, SelectError::NoUser("no-such-user".to_owned()));
        let bare = tempfile::tempdir().unwrap();
        let unit = Finder::new(&Root::new(bare.path()), &[Selection::Unit("x".to_owned())]);
        assert_eq!(unit.err(), Some(SelectError::NoHierarchy));
    }

    #[test]
    fn a_machine_with_very_many_new_processes_is_read_in_parts() {
        let (dir, root) = machine(&FAMILY);
        let first = 10_000;
        for pid in first..first + 4_200 {
            write(dir.path(), (pid, 1, pid, 0, "fork"));
        }
        let mut finder = Finder::new(&root, &[Selection::Pids(vec![10])]).unwrap();
        // The first look is that of the constructor.
        assert_eq!(finder.census.unread, 4_200 + 7 - 4_096);
        assert_eq!(
            finder.find().left_out,
            0,
            "they are read at the second look"
        );
    }

    #[test]
    fn a_process_belongs_to_one_subject_and_there_are_bounds() {
        let (_dir, root) = machine(&FAMILY);
        let all = [
            Selection::Pids(vec![11]),
            Selection::User("alice".to_owned()),
        ];
        let found = Finder::new(&root, &all).unwrap().find();
        assert_eq!(
            rows(&found),
            [row("cc 11", &[11, 12]), row("make 10", &[10])]
        );
        let mut many = found.subjects[0].clone();
        many.members = (0..5_000).map(|pid| ProcessKey { pid, start: 1 }).collect();
        let found = bounded(vec![many.clone(), many]);
        assert_eq!(found.subjects.len(), 1);
        assert_eq!(
            (found.subjects[0].members.len(), found.left_out),
            (MOST_PROCESSES, 904 + 904)
        );
    }
}
