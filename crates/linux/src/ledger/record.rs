//! Reads lists back, for the guardian and for later starts.

use super::{ADOPTED, FIRST_LINE, HEAD_BYTES, LedgerHead, PREFIX, SLOT_BYTES};
use crate::identity;
use crate::process;
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use crate::runtime::PrivateFolder;
use crate::sys::RawPid;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Maximum number of bytes read from all lists in a folder: enough for a hundred thousand entries. Another user's lists
/// can have any length.
const MOST_BYTES: u64 = 64 << 20;

/// The content of a list.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) head: LedgerHead,
    boot: String,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) members: Vec<MemberRecord>,
    /// The number and the start of the run's guardian.
    pub(crate) guardian: Option<(RawPid, u64)>,
    /// Index of each job in `jobs`.
    places: HashMap<u32, usize>,
}

/// A job in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobRecord {
    pub(crate) task: u32,
    pub(crate) pid: RawPid,
    pub(crate) start: u64,
    pub(crate) name: String,
    /// Another run started it.
    pub(crate) adopted: bool,
}

/// A process in a list that belongs to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberRecord {
    pub(crate) task: u32,
    pub(crate) pid: RawPid,
    pub(crate) start: u64,
    pub(crate) session: RawPid,
}

impl Record {
    /// Reads the list of a live run, whatever its length.
    pub(super) fn read(file: &File) -> Option<Record> {
        let mut bytes = vec![0; file.metadata().ok()?.len() as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        Record::parse(&bytes)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Record> {
        let (head, slots) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut lines = head.split(|&byte| byte == b'\n');
        if lines.next()? != FIRST_LINE.as_bytes() {
            return None;
        }
        let run = RunId::parse(text(next_value(&mut lines, "run")?)?)?;
        let boot = text(next_value(&mut lines, "boot")?)?.to_owned();
        let cpus = text(next_value(&mut lines, "cpus")?)?.parse().ok()?;
        let group = next_value(&mut lines, "group")
            .map(|path| PathBuf::from(std::ffi::OsString::from_vec(path.to_vec())));
        let mut record = Record {
            head: LedgerHead { run, group, cpus },
            boot,
            jobs: Vec::new(),
            members: Vec::new(),
            guardian: None,
            places: HashMap::new(),
        };
        slots
            .chunks_exact(SLOT_BYTES)
            .for_each(|slot| record.enter(slot));
        Some(record)
    }

    fn enter(&mut self, slot: &[u8]) {
        let mut words = slot.splitn(6, |&byte| byte == b' ');
        let kind = words.next().unwrap_or_default();
        let [Some(task), Some(pid), Some(start), Some(last)] =
            std::array::from_fn(|_| number(words.next()?))
        else {
            return;
        };
        let (Ok(task), Ok(pid)) = (u32::try_from(task), RawPid::try_from(pid)) else {
            return;
        };
        match kind {
            b"job" | b"adopted" => {
                let name = words.next().unwrap_or_default();
                let name = &name[..name.len().min(last as usize)];
                self.places.entry(task).or_insert(self.jobs.len());
                self.jobs.push(JobRecord {
                    task,
                    pid,
                    start,
                    name: String::from_utf8_lossy(name).into_owned(),
                    adopted: kind == ADOPTED.as_bytes(),
                });
            }
            b"member" => self.members.push(MemberRecord {
                task,
                pid,
                start,
                session: last as RawPid,
            }),
            b"guardian" => self.guardian = Some((pid, start)),
            _ => {}
        }
    }

    /// The name of a job in the list.
    pub(crate) fn name_of(&self, task: u32) -> Option<&str> {
        self.places
            .get(&task)
            .map(|&place| self.jobs[place].name.as_str())
    }

    /// The listed processes: the number of the job, and the process's number and start.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, RawPid, u64)> {
        let jobs = self.jobs.iter().map(|job| (job.task, job.pid, job.start));
        jobs.chain(
            self.members
                .iter()
                .map(|member| (member.task, member.pid, member.start)),
        )
    }

    /// Whether any listed process still exists.
    pub(crate) fn any_lives(&self, root: &Root) -> bool {
        self.processes()
            .any(|(_, pid, start)| process::lives(root, pid, start))
    }
}

/// A list found in a runtime folder.
#[derive(Debug)]
pub(crate) struct FoundLedger {
    pub(crate) record: Record,
    /// The user of the run; only processes of this user may be acted upon.
    pub(crate) owner: u32,
}

/// The wanted runs' lists of this boot that the caller may act upon. Removes lists of earlier boots, and lists of dead
/// runs without a head: such a run was killed after creating its file, and had started nothing.
pub(crate) fn found(root: &Root, wanted: impl Fn(&RunId) -> bool) -> Vec<FoundLedger> {
    let boot = identity::boot(root);
    let mut all = Vec::new();
    for folder in PrivateFolder::all(root) {
        let mut left = MOST_BYTES;
        for name in folder.names(PREFIX) {
            let Some(run) = RunId::in_name(&name, PREFIX).filter(&wanted) else {
                continue;
            };
            let Some(file) = folder.open_file(&name) else {
                continue;
            };
            let mut bytes = Vec::new();
            if file.take(left).read_to_end(&mut bytes).is_err() {
                continue;
            }
            left -= bytes.len() as u64;
            match Record::parse(&bytes) {
                Some(record) if boot.as_ref().is_some_and(|boot| *boot != record.boot) => {
                    folder.remove(&name)
                }
                Some(record) if record.head.run == run => {
                    let owner = folder.owner;
                    all.push(FoundLedger { record, owner });
                }
                // If nothing is left, the list was not read to its end.
                None if left > 0 && bytes.len() < HEAD_BYTES && run.fate(root) == RunFate::Dead => {
                    folder.remove(&name)
                }
                _ => {}
            }
        }
    }
    all
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

fn number(word: &[u8]) -> Option<u64> {
    text(word)?.parse().ok()
}

/// The value in the next line of a head, which must have this name.
fn next_value<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, name: &str) -> Option<&'a [u8]> {
    lines
        .next()?
        .strip_prefix(name.as_bytes())?
        .strip_prefix(b" ")
}

/// Removes the file of a user's run from these folders. Other users may have different files with that name.
pub(crate) fn forget(folders: &[PrivateFolder], run: &RunId, owner: u32) {
    for folder in folders.iter().filter(|folder| folder.owner == owner) {
        folder.remove(OsStr::new(&format!("{PREFIX}{run}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn struck_entries_and_holes_are_passed_over() {
        let mut bytes = format!("{FIRST_LINE}\nrun 10-77-5\nboot b\ncpus 0\n").into_bytes();
        bytes.resize(HEAD_BYTES, b' ');
        // The guardian's slot is a hole until there is a guardian. A struck slot is blank.
        bytes.resize(HEAD_BYTES + SLOT_BYTES, 0);
        for text in ["job 0 10 1 1 a", "", "job 2 12 1 1 c", "job 2 13 1 1 d"] {
            bytes.extend(format!("{text:SLOT_BYTES$}").into_bytes());
        }
        bytes.extend(b"job 9 19 1 1 z");
        let record = Record::parse(&bytes).unwrap();
        let tasks: Vec<u32> = record.processes().map(|(task, ..)| task).collect();
        assert_eq!(tasks, [0, 2, 2]);
        let names = [0, 1, 2, 9].map(|task| record.name_of(task));
        assert_eq!(names, [Some("a"), None, Some("c"), None]);
    }
}
