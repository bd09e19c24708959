//! The list of what a run or a session holds. It outlives both.
//!
//! A run enters the started jobs, and the processes outside a job's own group that may be stopped. A process is entered
//! before it is stopped for the first time. So every stopped process is in the list, or is in the group or session of a
//! listed process, or was forked by one. Stopping and continuing a job writes nothing: that happens too often.
//!
//! A session enters each change of a program of others before it makes the change: what the program had, and what it gets.
//! So a killed session leaves no change without an entry.
//!
//! There are two copies. The guardian reads the one in memory, which cannot fail on a full disk. The file in the user's
//! runtime folder is for the next start and `cosched thaw`. Both consist of a head and of slots of one length. Each
//! slot is written at once, so a killed run never leaves half an entry.

mod entry;
mod found;
mod slots;

pub(crate) use entry::{Held, MemberRecord, Pin};
pub(crate) use found::{FoundLedger, Record, forget, found};

use crate::process::{Process, ProcessKey};
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::NoFolder;
use cosched_core::CpuSet;
use entry::JobRecord;
use slots::Slots;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::rc::Rc;

/// Prefix of the files of runs.
pub(crate) const RUNS: &str = "run-";
/// Prefix of the files of sessions.
pub(crate) const SESSIONS: &str = "masks-";
/// Size of the head: a path and a few numbers.
const HEAD_BYTES: usize = 8192;
/// The slot of the guardian. A new guardian enters itself in place of the earlier one.
const GUARDIAN: u64 = 0;
/// Number of new members of a job after which dead ones are struck out.
const PRUNE: usize = 256;

/// The constant data of a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LedgerHead {
    pub(crate) run: RunId,
    /// The run's group, if it has one.
    pub(crate) group: Option<PathBuf>,
    /// The CPUs of the run, which the guardian gives back to jobs.
    pub(crate) cpus: CpuSet,
}

/// The list of a live run or session. Clones share it. When the last of them and of its entries is dropped, the file is
/// removed.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    root: Root,
    slots: Rc<RefCell<Slots>>,
    jobs: Rc<RefCell<BTreeMap<u32, JobEntries>>>,
}

/// An entry of a live ledger. When it is dropped, it is struck out: what it says is held no longer.
#[derive(Debug)]
pub(crate) struct LedgerEntry {
    slots: Rc<RefCell<Slots>>,
    slot: u64,
}

impl LedgerEntry {
    /// Replaces the entry at once.
    ///
    /// # Errors
    /// As [`Ledger::enter`]. The entry stays as it was.
    pub(crate) fn replace(&self, held: &Held) -> io::Result<()> {
        let text = serde_json::to_vec(held)?;
        let mut slots = self.slots.borrow_mut();
        slots.write(Some(self.slot), text).map(drop)
    }
}

impl Drop for LedgerEntry {
    fn drop(&mut self) {
        self.slots.borrow_mut().strike(self.slot);
    }
}

/// The entries of a job.
#[derive(Debug)]
struct JobEntries {
    _job: LedgerEntry,
    members: HashMap<ProcessKey, LedgerEntry>,
}

impl Ledger {
    /// Starts the list of a run.
    ///
    /// # Errors
    /// Out of memory. A missing file is no error.
    pub(crate) fn begin(root: &Root, head: &LedgerHead) -> io::Result<Ledger> {
        Ledger::begin_in(root, RUNS, head)
    }

    /// Starts the list of a session.
    ///
    /// # Errors
    /// Out of memory. A missing file is no error.
    pub(crate) fn of_session(root: &Root, run: RunId) -> io::Result<Ledger> {
        let head = LedgerHead {
            run,
            group: None,
            cpus: CpuSet::new(),
        };
        Ledger::begin_in(root, SESSIONS, &head)
    }

    fn begin_in(root: &Root, prefix: &str, head: &LedgerHead) -> io::Result<Ledger> {
        let name = format!("{prefix}{}", head.run);
        let line = found::head_line(root, head)?;
        let slots = Slots::begin(root, name, &line, GUARDIAN + 1)?;
        Ok(Ledger {
            root: root.clone(),
            slots: Rc::new(RefCell::new(slots)),
            jobs: Rc::default(),
        })
    }

    /// Enters what is held next.
    ///
    /// # Errors
    /// Out of memory, or its masks or its path are too long for a slot.
    pub(crate) fn enter(&self, held: &Held) -> io::Result<LedgerEntry> {
        let text = serde_json::to_vec(held)?;
        let slot = self.slots.borrow_mut().write(None, text)?;
        let slots = self.slots.clone();
        Ok(LedgerEntry { slots, slot })
    }

    /// Enters a job, before its program starts.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn job(&self, task: u32, name: &str, main: &Process) -> io::Result<()> {
        self.enter_job(task, name, main, false)
    }

    /// Enters a job that another run started: it is this run's now.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn adopted(&self, task: u32, name: &str, main: &Process) -> io::Result<()> {
        self.enter_job(task, name, main, true)
    }

    fn enter_job(&self, task: u32, name: &str, main: &Process, adopted: bool) -> io::Result<()> {
        let held = Held::Job(JobRecord {
            task,
            main: main.into(),
            name: name.to_owned(),
            adopted,
        });
        let entries = JobEntries {
            _job: self.enter(&held)?,
            members: HashMap::new(),
        };
        self.jobs.borrow_mut().insert(task, entries);
        Ok(())
    }

    /// Enters the guardian, in place of an earlier one.
    pub(crate) fn guardian(&self, guardian: &Process) {
        if let Ok(text) = serde_json::to_vec(&Held::Guardian(guardian.into())) {
            let _ = self.slots.borrow_mut().write(Some(GUARDIAN), text);
        }
    }

    /// Enters a process that may not be found through its job's main process; called before it is stopped.
    pub(crate) fn member(&self, task: u32, process: &Process) {
        let mut jobs = self.jobs.borrow_mut();
        let Some(JobEntries { members, .. }) = jobs.get_mut(&task) else {
            return;
        };
        let key = ProcessKey::from(process);
        if members.contains_key(&key) {
            return;
        }
        // Dead ones are struck out now and then. A zombie that still has its number may lead a live session.
        if members.len() % PRUNE == PRUNE - 1 {
            members.retain(|process, _| process.find(&self.root).is_some());
        }
        // Without memory the process can still be found by its family.
        if let Ok(entry) = self.enter(&Held::Member(MemberRecord::new(task, process))) {
            members.insert(key, entry);
        }
    }

    /// Strikes out a job that has ended.
    pub(crate) fn ended(&self, task: u32) {
        self.jobs.borrow_mut().remove(&task);
    }

    /// The current list.
    pub(crate) fn read(&self) -> Option<Record> {
        Record::read(self.slots.borrow().memory())
    }

    /// Why there is no file; returned once.
    pub(crate) fn take_lost(&self) -> Option<NoFolder> {
        self.slots.borrow_mut().take_lost()
    }

    /// The descriptors that a guardian must keep.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.slots.borrow().descriptors()
    }

    /// Removes the file.
    pub(crate) fn remove_file(&self) {
        self.slots.borrow_mut().remove_file();
    }
}

#[cfg(test)]
mod tests {
    use super::entry::GroupPath;
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};
    use crate::sys::RawPid;
    use std::fs::File;
    use std::os::unix::ffi::OsStringExt;

    fn process(pid: RawPid) -> Process {
        Process {
            pid,
            state: 'S',
            parent: 1,
            group: pid,
            session: pid,
            threads: 1,
            start: 70 + pid as u64,
        }
    }

    fn key(pid: RawPid) -> ProcessKey {
        ProcessKey::from(&process(pid))
    }

    fn tree() -> (tempfile::TempDir, Root, LedgerHead) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/sys/kernel/random")).unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "one\n").unwrap();
        // The run itself is dead here.
        link_namespace(dir.path(), 5);
        write_stat(dir.path(), 1, 'S', 0);
        let group = Some(PathBuf::from(std::ffi::OsString::from_vec(
            b"/groups/\xd0 x".to_vec(),
        )));
        let head = LedgerHead {
            run: RunId::parse("10-77-5").unwrap(),
            group,
            cpus: "0-3".parse().unwrap(),
        };
        let root = Root::new(dir.path());
        (dir, root, head)
    }

    #[test]
    fn what_is_entered_is_read_back_until_it_is_struck_out() {
        let (_dir, root, head) = tree();
        let ledger = Ledger::begin(&root, &head).unwrap();
        let long = "long ".repeat(51);
        ledger.job(0, "a  b", &process(11)).unwrap();
        ledger.job(1, &long, &process(12)).unwrap();
        ledger.member(1, &process(13));
        ledger.member(1, &process(13));
        ledger.member(7, &process(14));
        ledger.guardian(&process(21));
        ledger.guardian(&process(22));
        let all = found(&root, RUNS, |_| true);
        assert_eq!(all.len(), 1);
        let record = &all[0].record;
        assert_eq!(record.head, head);
        assert_eq!(record.guardian, Some(key(22)));
        let names: Vec<&str> = record.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a  b", &long]);
        assert_eq!(
            record.members,
            [MemberRecord {
                task: 1,
                process: key(13),
                session: 13
            }]
        );
        assert_eq!(ledger.read().as_ref(), Some(record));
        ledger.ended(1);
        ledger.job(2, "c", &process(15)).unwrap();
        let record = ledger.read().unwrap();
        assert!(record.members.is_empty() && record.name_of(1).is_none());
        assert_eq!(
            (record.name_of(0), record.name_of(2)),
            (Some("a  b"), Some("c"))
        );
        drop(ledger);
        assert!(
            found(&root, RUNS, |_| true).is_empty(),
            "a run that ends in good order leaves nothing"
        );
    }

    #[test]
    fn a_file_that_can_not_be_had_is_told_once() {
        let (dir, root, head) = tree();
        let own = dir.path().join(format!(
            "tmp/cosched-{}",
            rustix::process::geteuid().as_raw()
        ));
        std::fs::write(&own, "").unwrap();
        let ledger = Ledger::begin(&root, &head).unwrap();
        assert!(
            ledger
                .take_lost()
                .unwrap()
                .to_string()
                .ends_with("is no folder")
                && ledger.take_lost().is_none()
        );
        std::fs::remove_file(&own).unwrap();
        let ledger = Ledger::begin(&root, &head).unwrap();
        assert!(ledger.take_lost().is_none());
        // Writing fails as on a full disk.
        ledger.slots.borrow_mut().kept.as_mut().unwrap().file =
            File::options().write(true).open("/dev/full").unwrap();
        ledger.job(0, "a", &process(11)).unwrap();
        assert!(
            ledger
                .take_lost()
                .unwrap()
                .to_string()
                .contains("run-10-77-5: No space left")
        );
        assert!(
            found(&root, RUNS, |_| true).is_empty(),
            "no list is better than one with a hole"
        );
    }

    #[test]
    fn members_that_have_gone_are_struck_out() {
        let (dir, root, head) = tree();
        let ledger = Ledger::begin(&root, &head).unwrap();
        ledger.job(0, "storm", &process(11)).unwrap();
        write_stat(dir.path(), 1_000, 'S', 1_070);
        for pid in 1_000..11_000 {
            ledger.member(0, &process(pid));
        }
        let members = ledger.read().unwrap().members;
        assert!(members.len() <= PRUNE + 1, "{}", members.len());
        assert_eq!(
            members
                .iter()
                .filter(|member| member.process.pid == 1_000)
                .count(),
            1,
            "it is still there"
        );
    }

    #[test]
    fn lists_of_an_earlier_boot_are_removed() {
        let (dir, root, head) = tree();
        let ledger = Ledger::begin(&root, &head).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "two\n").unwrap();
        assert!(found(&root, RUNS, |_| true).is_empty());
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "one\n").unwrap();
        assert!(found(&root, RUNS, |_| true).is_empty());
        assert!(ledger.read().is_some(), "the guardian has its own");
    }

    #[test]
    fn a_list_is_read_no_further_than_a_run_needs() {
        let (dir, root, head) = tree();
        let ledger = Ledger::begin(&root, &head).unwrap();
        ledger.job(0, "a", &process(11)).unwrap();
        let own = dir.path().join(format!(
            "tmp/cosched-{}",
            rustix::process::geteuid().as_raw()
        ));
        // Holes that do not fit into memory.
        let lengthen = |file: File| file.set_len(1 << 40);
        let made = lengthen(File::create(own.join("run-9-9-5")).unwrap()).and_then(|()| {
            lengthen(
                File::options()
                    .write(true)
                    .open(own.join("run-10-77-5"))
                    .unwrap(),
            )
        });
        if let Err(error) = made {
            return eprintln!("skipped, because a file can't be that long here: {error}");
        }
        let all = found(&root, RUNS, |_| true);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].record.name_of(0), Some("a"));
        assert!(
            own.join("run-9-9-5").exists(),
            "a list that was not read is kept"
        );
    }

    #[test]
    fn what_a_session_changed_is_read_back_until_it_is_struck_out() {
        let (_dir, root, head) = tree();
        let ledger = Ledger::of_session(&root, head.run).unwrap();
        let pin = Pin {
            thread: key(12),
            process: key(11),
            old: "0-3".parse().unwrap(),
            set: "0,2".parse().unwrap(),
            before: "0-3".parse().unwrap(),
            since: 85,
        };
        let entry = ledger.enter(&Held::Pin(pin.clone())).unwrap();
        let odd = head.group.unwrap();
        let path = || GroupPath::from(odd.as_path());
        let others = [
            Held::Set(pin.set.clone()),
            Held::Group(90, path()),
            Held::Frozen(path()),
            Held::Alone(key(14)),
        ];
        let _others = others.map(|held| ledger.enter(&held).unwrap());
        let all = found(&root, SESSIONS, |_| true);
        let record = &all[0].record;
        assert_eq!(ledger.read().as_ref(), Some(record));
        assert_eq!(record.pins, std::slice::from_ref(&pin));
        assert_eq!(record.sets, std::slice::from_ref(&pin.set));
        assert_eq!(record.groups, [(90, odd.clone())]);
        assert_eq!(record.alone, [key(14)].into());
        assert_eq!((record.head.run, &record.frozen), (head.run, &vec![odd]));
        let slot = entry.slot;
        drop(entry);
        assert!(ledger.read().unwrap().pins.is_empty());
        let moved = Pin {
            thread: key(13),
            ..pin
        };
        let again = ledger.enter(&Held::Pin(moved.clone())).unwrap();
        assert_eq!(again.slot, slot);
        let pins = ledger.read().unwrap().pins;
        assert_eq!(pins, std::slice::from_ref(&moved));
        let long = Pin {
            old: (0..1_000).step_by(2).map(cosched_core::CpuId).collect(),
            ..ledger.read().unwrap().pins.remove(0)
        };
        let long = Held::Pin(long);
        assert!(ledger.enter(&long).is_err(), "a cut mask is none");
        assert!(again.replace(&long).is_err());
        assert_eq!(ledger.read().unwrap().pins, [moved], "it stays");
    }
}
