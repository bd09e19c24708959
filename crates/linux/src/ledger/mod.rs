//! The list of a run's processes, which outlives the run: the started jobs, and the processes outside a job's own group
//! that may be stopped. The guardian reads it when the run has died; `cosched thaw` and the next start read it when the
//! guardian has died as well.
//!
//! A process is entered before it is stopped for the first time. So every stopped process is in the list, or is in the
//! group or session of a listed process, or was forked by one. Stopping and continuing a job writes nothing: that
//! happens too often.
//!
//! There are two copies. The guardian reads the one in memory, which cannot fail on a full disk. The file in the user's
//! runtime folder is for the next start and `cosched thaw`. Both consist of a head and of slots of one length. Each
//! slot is written at once, so a killed run never leaves half an entry.

mod record;
mod slots;

pub(crate) use record::{FoundLedger, Record, forget, found};
pub(crate) use slots::{SLOT_BYTES, Slots};

use crate::identity;
use crate::process::Process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::NoFolder;
use crate::sys::RawPid;
use cosched_core::CpuSet;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Prefix of the file names.
const PREFIX: &str = "run-";
const FIRST_LINE: &str = "cosched run 1";
/// Size of the head: a path and a few numbers.
const HEAD_BYTES: usize = 8192;
/// The slot of the guardian. The run and its guardian know it, so that a new guardian can enter itself.
const GUARDIAN: u64 = 0;
/// The kind of an entry for a job that another run started.
const ADOPTED: &str = "adopted";
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

impl LedgerHead {
    fn bytes(&self, root: &Root) -> Vec<u8> {
        let LedgerHead { run, group, cpus } = self;
        let boot = identity::boot(root).unwrap_or_default();
        let text = format!("{FIRST_LINE}\nrun {run}\nboot {boot}\ncpus {cpus}\n");
        let mut bytes = text.into_bytes();
        if let Some(group) = group {
            bytes.extend_from_slice(b"group ");
            bytes.extend_from_slice(group.as_os_str().as_bytes());
            bytes.push(b'\n');
        }
        bytes.resize(HEAD_BYTES, b' ');
        bytes
    }
}

/// The list of a live run. Clones share it. The last of them removes the file.
#[derive(Clone, Debug)]
pub(crate) struct Ledger(Rc<RefCell<Inner>>);

#[derive(Debug)]
struct Inner {
    root: Root,
    slots: Slots,
    jobs: BTreeMap<u32, Entry>,
}

#[derive(Debug)]
struct Entry {
    slot: u64,
    members: HashMap<(RawPid, u64), u64>,
}

impl Ledger {
    /// Starts the list of a run.
    ///
    /// # Errors
    /// Out of memory. A missing file is no error.
    pub(crate) fn begin(root: &Root, head: &LedgerHead) -> io::Result<Ledger> {
        let name = format!("{PREFIX}{}", head.run);
        let slots = Slots::begin(root, name, &head.bytes(root), GUARDIAN + 1)?;
        let inner = Inner {
            root: root.clone(),
            slots,
            jobs: BTreeMap::new(),
        };
        Ok(Ledger(Rc::new(RefCell::new(inner))))
    }

    /// Enters a job, before its program starts.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn job(&self, task: u32, name: &str, main: &Process) -> io::Result<()> {
        self.enter("job", task, name, main)
    }

    /// Enters a job that another run started: it is this run's now.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn adopted(&self, task: u32, name: &str, main: &Process) -> io::Result<()> {
        self.enter(ADOPTED, task, name, main)
    }

    fn enter(&self, kind: &str, task: u32, name: &str, main: &Process) -> io::Result<()> {
        let mut inner = self.0.borrow_mut();
        let slot = inner.slots.take();
        let text = format!(
            "{kind} {task} {} {} {} {name}",
            main.pid,
            main.start,
            name.len()
        );
        inner.jobs.insert(
            task,
            Entry {
                slot,
                members: HashMap::new(),
            },
        );
        inner.slots.write(slot, text.as_bytes())
    }

    /// Enters the run's guardian, in place of an earlier one.
    pub(crate) fn guardian(&self, guardian: &Process) {
        let text = format!("guardian 0 {} {} 0", guardian.pid, guardian.start);
        let _ = self.0.borrow_mut().slots.write(GUARDIAN, text.as_bytes());
    }

    /// Enters a process that may not be found through its job's main process; called before it is stopped.
    pub(crate) fn member(&self, task: u32, process: &Process) {
        let mut inner = self.0.borrow_mut();
        let key = (process.pid, process.start);
        if inner
            .jobs
            .get(&task)
            .is_none_or(|entry| entry.members.contains_key(&key))
        {
            return;
        }
        inner.prune(task);
        let slot = inner.slots.take();
        let text = format!(
            "member {task} {} {} {}",
            process.pid, process.start, process.session
        );
        // Without memory the process can still be found by its family.
        let _ = inner.slots.write(slot, text.as_bytes());
        if let Some(entry) = inner.jobs.get_mut(&task) {
            entry.members.insert(key, slot);
        }
    }

    /// Strikes out a job that has ended.
    pub(crate) fn ended(&self, task: u32) {
        let mut inner = self.0.borrow_mut();
        let Some(entry) = inner.jobs.remove(&task) else {
            return;
        };
        for slot in entry.members.into_values().chain([entry.slot]) {
            inner.slots.strike(slot);
        }
    }

    /// The current list.
    pub(crate) fn read(&self) -> Option<Record> {
        Record::read(self.0.borrow().slots.memory())
    }

    /// Why there is no file; returned once.
    pub(crate) fn take_lost(&self) -> Option<NoFolder> {
        self.0.borrow_mut().slots.take_lost()
    }

    /// The descriptors that a guardian must keep.
    pub(crate) fn descriptors(&self) -> Vec<RawFd> {
        self.0.borrow().slots.descriptors()
    }

    /// Removes the file.
    pub(crate) fn remove_file(&self) {
        self.0.borrow_mut().slots.remove_file();
    }
}

impl Inner {
    /// Strikes out dead members now and then.
    fn prune(&mut self, task: u32) {
        let Some(entry) = self.jobs.get_mut(&task) else {
            return;
        };
        if entry.members.len() % PRUNE != PRUNE - 1 {
            return;
        }
        let mut gone = Vec::new();
        entry.members.retain(|&(pid, start), slot| {
            // A zombie that still has its number may lead a live session.
            let is_there = Process::find(&self.root, pid, start).is_some();
            if !is_there {
                gone.push(*slot);
            }
            is_there
        });
        for slot in gone {
            self.slots.strike(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::record::MemberRecord;
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};
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
        let all = found(&root, |_| true);
        assert_eq!(all.len(), 1);
        let record = &all[0].record;
        assert_eq!(record.head, head);
        assert_eq!(record.guardian, Some((22, 92)));
        let names: Vec<&str> = record.jobs.iter().map(|job| job.name.as_str()).collect();
        assert_eq!(names, ["a  b", &long]);
        assert_eq!(
            record.members,
            [MemberRecord {
                task: 1,
                pid: 13,
                start: 83,
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
            found(&root, |_| true).is_empty(),
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
        ledger.0.borrow_mut().slots.kept.as_mut().unwrap().file =
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
            found(&root, |_| true).is_empty(),
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
            members.iter().filter(|member| member.pid == 1_000).count(),
            1,
            "it is still there"
        );
    }

    #[test]
    fn lists_of_an_earlier_boot_are_removed() {
        let (dir, root, head) = tree();
        let ledger = Ledger::begin(&root, &head).unwrap();
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "two\n").unwrap();
        assert!(found(&root, |_| true).is_empty());
        std::fs::write(dir.path().join("proc/sys/kernel/random/boot_id"), "one\n").unwrap();
        assert!(found(&root, |_| true).is_empty());
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
        let all = found(&root, |_| true);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].record.name_of(0), Some("a"));
        assert!(
            own.join("run-9-9-5").exists(),
            "a list that was not read is kept"
        );
    }

    #[test]
    fn nonsense_is_no_list() {
        assert_eq!(Record::parse(b""), None);
        assert_eq!(Record::parse(&[b'x'; HEAD_BYTES]), None);
        let mut bytes = format!("{FIRST_LINE}\nrun 1-2-3\nboot b\ncpus 0\n").into_bytes();
        bytes.resize(HEAD_BYTES, b' ');
        bytes.extend_from_slice(&[0xff; SLOT_BYTES + 7]);
        let record = Record::parse(&bytes).unwrap();
        assert!(record.jobs.is_empty() && record.head.group.is_none());
    }
}
