//! The processes of a user, by process group: a shell gives each of its jobs such a group, and a daemon leads its own.

use super::census::Census;
use super::error::SelectError;
use super::selection::{Subject, SubjectKey, process_name};
use crate::cgroup;
use crate::process::{Process, ProcessKey};
use crate::root::Root;
use crate::sys::RawPid;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

/// The process groups of a user.
pub(super) struct UserProcessGroups {
    user: u32,
    /// The look of each group, without its processes, as it was found first.
    named: BTreeMap<RawPid, Subject>,
}

impl UserProcessGroups {
    /// The process groups of a user.
    ///
    /// # Errors
    /// There is no such user.
    pub(super) fn of_user(root: &Root, name: &str) -> Result<UserProcessGroups, SelectError> {
        let user = number_of(root, name).ok_or_else(|| SelectError::NoUser(name.to_owned()))?;
        Ok(UserProcessGroups {
            user,
            named: BTreeMap::new(),
        })
    }

    /// The process groups in which the user has a process.
    pub(super) fn subjects(&mut self, root: &Root, census: &mut Census) -> Vec<Subject> {
        let all: Vec<Process> = census.processes().copied().collect();
        let mut groups: BTreeMap<RawPid, Vec<ProcessKey>> = BTreeMap::new();
        for process in all {
            if census.user(process.pid) == Some(self.user) {
                let members = groups.entry(process.group).or_default();
                members.push(ProcessKey::from(&process));
            }
        }
        self.named.retain(|group, _| groups.contains_key(group));
        let mut subjects = Vec::new();
        for (group, members) in groups {
            let mut subject = self.named(root, census, group, &members);
            subject.members = members;
            subjects.push(subject);
        }
        subjects
    }

    /// A group as it is named, after its leader or else its first process.
    fn named(
        &mut self,
        root: &Root,
        census: &mut Census,
        group: RawPid,
        members: &[ProcessKey],
    ) -> Subject {
        let user = self.user;
        let subject = self.named.entry(group).or_insert_with(|| {
            let leads = members.iter().any(|member| member.pid == group);
            let first = if leads { group } else { members[0].pid };
            let command = census.command(first).unwrap_or_default().to_owned();
            Subject {
                key: SubjectKey::Job { group, user },
                name: process_name(first, &command),
                command: Some(command),
                group: cgroup::directory_of(root, first),
                members: Vec::new(),
            }
        });
        subject.clone()
    }
}

/// The number of a user: given, from the file of users, or from the system's directory of users.
fn number_of(root: &Root, name: &str) -> Option<u32> {
    if let Ok(number) = name.parse() {
        return Some(number);
    }
    let file = std::fs::read_to_string(root.path("/etc/passwd")).unwrap_or_default();
    let mut fields = file.lines().map(|line| line.split(':'));
    let found = fields.find_map(|mut line| (line.next() == Some(name)).then(|| line.nth(1))?);
    match found {
        Some(number) => number.parse().ok(),
        None => number_by_id(name),
    }
}

/// The number of a user by `id`, which also asks network directories.
fn number_by_id(name: &str) -> Option<u32> {
    let output = Command::new("id")
        .args(["-u", "--", name])
        .stderr(Stdio::null())
        .output();
    String::from_utf8(output.ok()?.stdout)
        .ok()?
        .trim()
        .parse()
        .ok()
}
