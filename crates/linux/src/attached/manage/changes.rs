//! What a session has changed in programs of others, and must undo. The list outlives the session: the keeper reads it in
//! memory, later starts and `cosched thaw` read the file.
//!
//! An entry is written before the change that it describes, so a killed session leaves no change without an entry.

use super::threads::comes_from;
use crate::attached::Member;
use crate::identity;
use crate::ledger::{SLOT_BYTES, Slots};
use crate::process::Process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::NoFolder;
use cosched_core::CpuSet;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Prefix of the file names.
pub(super) const PREFIX: &str = "masks-";
const FIRST_LINE: &str = "cosched masks 1";
/// The slot of the keeper.
const KEEPER: u64 = 0;

/// An entry of the list: a slot contains it as JSON.
#[derive(Serialize, Deserialize)]
pub(super) enum ChangeEntry {
    /// The session's keeper.
    Keeper(Member),
    /// A thread whose CPUs were changed.
    Pin(Pin),
    /// A thread that is left alone, although its CPUs may be the same as those of bound ones.
    Alone(Member),
    /// CPUs that threads get, and that those which they start inherit.
    Set(CpuSet),
    /// A group whose threads are bound from this tick since boot on.
    Group(u64, Name),
    /// A group that is frozen next.
    Frozen(Name),
}

/// The path of a group with a character for each byte: it need not be UTF-8.
#[derive(Serialize, Deserialize)]
pub(super) struct Name(String);

impl From<&Path> for Name {
    fn from(path: &Path) -> Name {
        let bytes = path.as_os_str().as_bytes().iter();
        Name(bytes.map(|&byte| char::from(byte)).collect())
    }
}

impl From<Name> for PathBuf {
    fn from(name: Name) -> PathBuf {
        let bytes = name.0.chars().map(|byte| byte as u8);
        OsString::from_vec(bytes.collect()).into()
    }
}

/// A thread whose CPUs were changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pin {
    /// The thread.
    pub thread: Member,
    /// Its process.
    pub process: Member,
    /// Its CPUs before all changes.
    pub old: CpuSet,
    /// Its CPUs after the last change.
    pub set: CpuSet,
    /// Its CPUs before the last change, which may not have happened yet.
    pub before: CpuSet,
    /// Time of the first change, in ticks since boot.
    pub since: u64,
}

impl Pin {
    /// Whether the list gave the thread these CPUs, where it may use those of `limit` at most.
    pub(super) fn is_ours(&self, present: &CpuSet, limit: &CpuSet) -> bool {
        let was_moved = self.before != self.old;
        comes_from(present, &self.set, limit)
            || (was_moved && comes_from(present, &self.before, limit))
    }
}

/// The list of a live session.
#[derive(Debug)]
pub(super) struct Changes {
    slots: Slots,
}

impl Changes {
    /// Starts the list of a session.
    ///
    /// # Errors
    /// Out of memory. A missing file is no error.
    pub(super) fn begin(root: &Root, run: &RunId) -> io::Result<Changes> {
        let boot = identity::boot(root).unwrap_or_default();
        let mut head = format!("{FIRST_LINE}\nrun {run}\nboot {boot}\n").into_bytes();
        head.resize(SLOT_BYTES, b' ');
        let slots = Slots::begin(root, format!("{PREFIX}{run}"), &head, KEEPER + 1)?;
        Ok(Changes { slots })
    }

    /// Writes an entry, in the slot that it had or in a new one.
    ///
    /// # Errors
    /// Out of memory, or its masks or its path are too long for a slot.
    pub(super) fn enter(&mut self, slot: Option<u64>, entry: &ChangeEntry) -> io::Result<u64> {
        let text = serde_json::to_vec(entry)?;
        if text.len() > SLOT_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slot = slot.unwrap_or_else(|| self.slots.take());
        self.slots.write(slot, &text)?;
        Ok(slot)
    }

    /// Strikes out a change that is undone, or whose subject has ended.
    pub(super) fn strike(&mut self, slot: u64) {
        self.slots.strike(slot);
    }

    /// Enters the session's keeper.
    pub(super) fn keeper(&mut self, keeper: &Process) {
        let _ = self.enter(Some(KEEPER), &ChangeEntry::Keeper(keeper.into()));
    }

    /// The current list.
    pub(super) fn read(&self) -> Option<List> {
        List::read(self.slots.memory())
    }

    /// Why there is no file; returned once.
    pub(super) fn take_lost(&mut self) -> Option<NoFolder> {
        self.slots.take_lost()
    }

    /// The descriptors that the keeper must keep.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        self.slots.descriptors()
    }

    /// Removes the file.
    pub(super) fn remove_file(&mut self) {
        self.slots.remove_file();
    }
}

/// The content of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    /// The session.
    pub run: Option<RunId>,
    /// The boot of the machine in which it was written.
    pub boot: String,
    pub keeper: Option<Member>,
    pub pins: Vec<Pin>,
    /// Threads that are left alone.
    pub kept: BTreeSet<Member>,
    /// All sets of CPUs that threads got.
    pub sets: Vec<CpuSet>,
    /// Groups with bound threads, and the ticks since boot when the first was bound.
    pub groups: Vec<(u64, PathBuf)>,
    /// Groups that the session froze.
    pub frozen: Vec<PathBuf>,
}

impl List {
    fn read(file: &File) -> Option<List> {
        let mut bytes = vec![0; file.metadata().ok()?.len() as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        List::parse(&bytes)
    }

    pub(super) fn parse(bytes: &[u8]) -> Option<List> {
        let (head, slots) = bytes.split_at_checked(SLOT_BYTES)?;
        let mut lines = std::str::from_utf8(head).ok()?.lines();
        if lines.next()? != FIRST_LINE {
            return None;
        }
        let run = RunId::parse(lines.next()?.strip_prefix("run ")?)?;
        let boot = lines.next()?.strip_prefix("boot ")?.to_owned();
        let mut list = List {
            run: Some(run),
            boot,
            ..List::default()
        };
        for slot in slots.chunks_exact(SLOT_BYTES) {
            // A free slot is blank.
            if let Ok(entry) = serde_json::from_slice(slot) {
                list.add(entry);
            }
        }
        Some(list)
    }

    fn add(&mut self, entry: ChangeEntry) {
        match entry {
            ChangeEntry::Keeper(keeper) => self.keeper = Some(keeper),
            ChangeEntry::Pin(pin) => self.pins.push(pin),
            ChangeEntry::Alone(thread) => drop(self.kept.insert(thread)),
            ChangeEntry::Set(set) => self.sets.push(set),
            ChangeEntry::Group(since, dir) => self.groups.push((since, dir.into())),
            ChangeEntry::Frozen(dir) => self.frozen.push(dir.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_id::tests::{link_namespace, write_stat};

    #[test]
    fn what_is_entered_is_read_back_until_it_is_struck_out() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("tmp")).unwrap();
        link_namespace(dir.path(), 5);
        write_stat(dir.path(), 1, 'S', 0);
        let root = Root::new(dir.path());
        let run = RunId::parse("10-77-5").unwrap();
        let mut changes = Changes::begin(&root, &run).unwrap();
        let pin = Pin {
            thread: Member { pid: 12, start: 80 },
            process: Member { pid: 11, start: 79 },
            old: "0-3".parse().unwrap(),
            set: "0,2".parse().unwrap(),
            before: "0-3".parse().unwrap(),
            since: 85,
        };
        let slot = changes.enter(None, &ChangeEntry::Pin(pin.clone())).unwrap();
        let odd = PathBuf::from(OsString::from_vec(b"/groups/\xd0 x\n y".to_vec()));
        changes
            .enter(None, &ChangeEntry::Set(pin.set.clone()))
            .unwrap();
        changes
            .enter(None, &ChangeEntry::Group(90, odd.as_path().into()))
            .unwrap();
        changes
            .enter(None, &ChangeEntry::Frozen(odd.as_path().into()))
            .unwrap();
        let list = changes.read().unwrap();
        assert_eq!(list.pins, std::slice::from_ref(&pin));
        assert_eq!(list.sets, std::slice::from_ref(&pin.set));
        assert_eq!(list.groups, [(90, odd.clone())]);
        assert_eq!(
            (list.run, &list.frozen[..]),
            (Some(run), &[odd.clone()][..])
        );
        changes.strike(slot);
        let moved = Pin {
            thread: Member { pid: 13, start: 81 },
            ..pin
        };
        assert_eq!(
            changes
                .enter(None, &ChangeEntry::Pin(moved.clone()))
                .unwrap(),
            slot
        );
        assert_eq!(changes.read().unwrap().pins, [moved]);
        let long = Pin {
            old: (0..1_000).step_by(2).map(cosched_core::CpuId).collect(),
            ..changes.read().unwrap().pins.remove(0)
        };
        assert!(
            changes.enter(None, &ChangeEntry::Pin(long)).is_err(),
            "a cut mask is none"
        );
    }

    #[test]
    fn a_mask_is_ours_also_where_the_kernel_narrowed_it() {
        let set = |text: &str| text.parse::<CpuSet>().unwrap();
        let pin = |before: &str| Pin {
            thread: Member { pid: 2, start: 1 },
            process: Member { pid: 1, start: 1 },
            old: set("0-3"),
            set: set("0-1"),
            before: set(before),
            since: 5,
        };
        for (before, present, limit, expected) in [
            ("0-3", "0-1", "0-3", true),
            ("0-3", "0-3", "0-3", false),
            ("0-3", "0", "0,2-3", true),
            ("0-3", "0", "0-3", false),
            ("2-3", "2-3", "0-3", true),
            ("2-3", "1-2", "0-3", false),
            ("0-3", "2-3", "2-3", true),
        ] {
            assert_eq!(
                pin(before).is_ours(&set(present), &set(limit)),
                expected,
                "{before} {present} {limit}"
            );
        }
    }
}
