//! Reads ledgers back, for the guardian and for later starts.

use super::entry::{GroupPath, Held, JobRecord, MemberRecord, Pin};
use super::slots::{SLOT_BYTES, padded};
use super::{HEAD_BYTES, LedgerHead};
use crate::identity;
use crate::process::{self, ProcessKey};
use crate::root::Root;
use crate::run_id::{RunFate, RunId};
use crate::runtime::PrivateFolder;
use cosched_core::CpuSet;
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Maximum number of bytes read from all ledgers in a folder: enough for a hundred thousand entries. Another user's
/// ledgers can have any length.
const MOST_BYTES: u64 = 64 << 20;
/// The format of a ledger.
const FORMAT: u32 = 1;

/// The content of a ledger.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) head: LedgerHead,
    /// The boot of the machine in which it was written.
    pub(crate) boot: String,
    pub(crate) guardian: Option<ProcessKey>,
    pub(crate) jobs: Vec<JobRecord>,
    pub(crate) members: Vec<MemberRecord>,
    pub(crate) pins: Vec<Pin>,
    /// Threads that are left alone.
    pub(crate) alone: BTreeSet<ProcessKey>,
    /// All sets of CPUs that threads got.
    pub(crate) sets: Vec<CpuSet>,
    /// Groups with bound threads, and the ticks since boot when the first was bound.
    pub(crate) groups: Vec<(u64, PathBuf)>,
    /// Groups of others that were frozen.
    pub(crate) frozen: Vec<PathBuf>,
    /// Index of each job in `jobs`.
    places: HashMap<u32, usize>,
}

/// The head of a ledger as JSON.
#[derive(Serialize, Deserialize)]
struct HeadLine {
    format: u32,
    run: RunId,
    boot: String,
    cpus: CpuSet,
    group: Option<GroupPath>,
}

/// The head of a ledger that is written now, as JSON.
///
/// # Errors
/// Its path is too long.
pub(super) fn head_line(root: &Root, head: &LedgerHead) -> io::Result<Vec<u8>> {
    let line = HeadLine {
        format: FORMAT,
        run: head.run,
        boot: identity::boot(root).unwrap_or_default(),
        cpus: head.cpus.clone(),
        group: head.group.as_deref().map(GroupPath::from),
    };
    padded(serde_json::to_vec(&line)?, HEAD_BYTES)
}

impl Record {
    /// Reads the ledger of a live run, whatever its length.
    pub(super) fn read(file: &File) -> Option<Record> {
        let mut bytes = vec![0; file.metadata().ok()?.len() as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        Record::parse(&bytes)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<Record> {
        let (head, slots) = bytes.split_at_checked(HEAD_BYTES)?;
        let mut record = Record::with_head(serde_json::from_slice(head).ok()?)?;
        for slot in slots.chunks_exact(SLOT_BYTES) {
            // A free slot is blank, and one that was never written is a hole.
            if let Ok(held) = serde_json::from_slice(slot) {
                record.add(held);
            }
        }
        Some(record)
    }

    fn with_head(head: HeadLine) -> Option<Record> {
        if head.format != FORMAT {
            return None;
        }
        Some(Record {
            head: LedgerHead {
                run: head.run,
                group: head.group.map(PathBuf::from),
                cpus: head.cpus,
            },
            boot: head.boot,
            guardian: None,
            jobs: Vec::new(),
            members: Vec::new(),
            pins: Vec::new(),
            alone: BTreeSet::new(),
            sets: Vec::new(),
            groups: Vec::new(),
            frozen: Vec::new(),
            places: HashMap::new(),
        })
    }

    fn add(&mut self, held: Held) {
        match held {
            Held::Guardian(guardian) => self.guardian = Some(guardian),
            Held::Job(job) => {
                self.places.entry(job.task).or_insert(self.jobs.len());
                self.jobs.push(job);
            }
            Held::Member(member) => self.members.push(member),
            Held::Pin(pin) => self.pins.push(pin),
            Held::Alone(thread) => drop(self.alone.insert(thread)),
            Held::Set(set) => self.sets.push(set),
            Held::Group(since, dir) => self.groups.push((since, dir.into())),
            Held::Frozen(dir) => self.frozen.push(dir.into()),
        }
    }

    /// The name of a job in the ledger.
    pub(crate) fn name_of(&self, task: u32) -> Option<&str> {
        let &place = self.places.get(&task)?;
        Some(&self.jobs[place].name)
    }

    /// The listed processes of jobs, each with the number of its job.
    pub(crate) fn processes(&self) -> impl Iterator<Item = (u32, ProcessKey)> {
        let jobs = self.jobs.iter().map(|job| (job.task, job.main));
        let members = self.members.iter();
        jobs.chain(members.map(|member| (member.task, member.process)))
    }

    /// Whether any listed process of a job still exists.
    pub(crate) fn any_lives(&self, root: &Root) -> bool {
        self.processes().any(|(_, process)| process.lives(root))
    }
}

/// A ledger found in a runtime folder.
#[derive(Debug)]
pub(crate) struct FoundLedger {
    pub(crate) record: Record,
    /// The user of the run; only what is this user's may be acted upon.
    pub(crate) owner: u32,
}

impl FoundLedger {
    /// Ends the guardian of a dead run, whatever state it is in. Anybody can write any ledger of their own, so it must be
    /// the owner's.
    pub(crate) fn end_guardian(&self, root: &Root) {
        let guardian = self.record.guardian;
        if let Some(guardian) = guardian.and_then(|guardian| guardian.find(root))
            && process::users(root, guardian.pid).contains(&self.owner)
        {
            guardian.signal(root, Signal::KILL);
        }
    }
}

/// The wanted ledgers of this boot that the caller may act upon, by the prefix of their files. Removes ledgers of earlier
/// boots, and those of the dead without a head: they were killed after creating the file, and had changed nothing.
pub(crate) fn found(
    root: &Root,
    prefix: &str,
    wanted: impl Fn(&RunId) -> bool,
) -> Vec<FoundLedger> {
    let boot = identity::boot(root);
    let mut all = Vec::new();
    for folder in PrivateFolder::all(root) {
        let mut left = MOST_BYTES;
        for name in folder.names(prefix) {
            let Some(run) = RunId::in_name(&name, prefix).filter(&wanted) else {
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
                // If nothing is left, the ledger was not read to its end.
                None if left > 0 && bytes.len() < HEAD_BYTES && run.fate(root) == RunFate::Dead => {
                    folder.remove(&name)
                }
                _ => {}
            }
        }
    }
    all
}

/// Removes the file of a user's run from these folders. Other users may have different files with that name.
pub(crate) fn forget(folders: &[PrivateFolder], prefix: &str, run: &RunId, owner: u32) {
    for folder in folders.iter().filter(|folder| folder.owner == owner) {
        folder.remove(OsStr::new(&format!("{prefix}{run}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = r#"{"format":1,"run":"10-77-5","boot":"b","cpus":"0","group":null}"#;

    #[test]
    fn struck_entries_and_holes_are_passed_over() {
        let mut bytes = HEAD.as_bytes().to_vec();
        bytes.resize(HEAD_BYTES, b' ');
        // The guardian's slot is a hole until there is a guardian. A struck slot is blank.
        bytes.resize(HEAD_BYTES + SLOT_BYTES, 0);
        let job = |task: u32, pid: u32, name: &str| {
            let main = format!(r#"{{"pid":{pid},"start":1}}"#);
            format!(r#"{{"Job":{{"task":{task},"main":{main},"name":"{name}","adopted":false}}}}"#)
        };
        let slots = [
            job(0, 10, "a"),
            String::new(),
            job(2, 12, "c"),
            job(2, 13, "d"),
        ];
        for text in slots {
            bytes.extend(format!("{text:SLOT_BYTES$}").into_bytes());
        }
        bytes.extend(job(9, 19, "z").into_bytes());
        let record = Record::parse(&bytes).unwrap();
        let tasks: Vec<u32> = record.processes().map(|(task, _)| task).collect();
        assert_eq!(tasks, [0, 2, 2]);
        let names = [0, 1, 2, 9].map(|task| record.name_of(task));
        assert_eq!(names, [Some("a"), None, Some("c"), None]);
    }

    #[test]
    fn nonsense_is_no_ledger() {
        assert_eq!(Record::parse(b""), None);
        assert_eq!(Record::parse(&[b'x'; HEAD_BYTES]), None);
        let mut bytes = HEAD.as_bytes().to_vec();
        bytes.resize(HEAD_BYTES, b' ');
        bytes.extend_from_slice(&[0xff; SLOT_BYTES + 7]);
        let record = Record::parse(&bytes).unwrap();
        assert!(record.jobs.is_empty() && record.head.group.is_none());
        let later = HEAD.replace("\"format\":1", "\"format\":2");
        let mut bytes = later.into_bytes();
        bytes.resize(HEAD_BYTES, b' ');
        assert_eq!(Record::parse(&bytes), None, "a later format");
    }
}
