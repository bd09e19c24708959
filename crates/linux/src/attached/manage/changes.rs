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

/// A thread whose CPUs were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    fn text(&self) -> String {
        let Pin {
            thread,
            process,
            old,
            set,
            before,
            since,
        } = self;
        format!(
            "thread {} {} {} {} {old} {set} {before} {since} ",
            thread.pid, thread.start, process.pid, process.start
        )
    }

    fn parse(words: &[&[u8]]) -> Option<Pin> {
        let [tid, tid_start, pid, start, old, set, before, since, ..] = words else {
            return None;
        };
        Some(Pin {
            thread: member(&[tid, tid_start])?,
            process: member(&[pid, start])?,
            old: parse(old)?,
            set: parse(set)?,
            before: parse(before)?,
            since: parse(since)?,
        })
    }

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

    /// Enters a thread, in the slot that it had or in a new one.
    ///
    /// # Errors
    /// Out of memory, or its masks are too long for a slot.
    pub(super) fn pin(&mut self, slot: Option<u64>, pin: &Pin) -> io::Result<u64> {
        self.enter(slot, pin.text().as_bytes())
    }

    /// Enters a thread that is left alone, although its CPUs may be the same as those of bound ones.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn keep(&mut self, thread: Member) -> io::Result<u64> {
        let text = format!("alone {} {} ", thread.pid, thread.start);
        self.enter(None, text.as_bytes())
    }

    /// Enters CPUs that threads get, and that those which they start inherit.
    ///
    /// # Errors
    /// As [`Changes::pin`].
    pub(super) fn set(&mut self, set: &CpuSet) -> io::Result<u64> {
        self.enter(None, format!("set {set} ").as_bytes())
    }

    /// Enters a group whose threads are bound from now on.
    ///
    /// # Errors
    /// As [`Changes::pin`].
    pub(super) fn group(&mut self, dir: &Path, since: u64) -> io::Result<u64> {
        self.enter_path(&format!("group {since} "), dir)
    }

    /// Enters a group that is frozen next.
    ///
    /// # Errors
    /// As [`Changes::pin`].
    pub(super) fn frozen(&mut self, dir: &Path) -> io::Result<u64> {
        self.enter_path("frozen - ", dir)
    }

    fn enter_path(&mut self, words: &str, dir: &Path) -> io::Result<u64> {
        let mut text = words.as_bytes().to_vec();
        text.extend_from_slice(dir.as_os_str().as_bytes());
        text.push(b'\n');
        self.enter(None, &text)
    }

    fn enter(&mut self, slot: Option<u64>, text: &[u8]) -> io::Result<u64> {
        if text.len() > SLOT_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let slot = slot.unwrap_or_else(|| self.slots.take());
        self.slots.write(slot, text)?;
        Ok(slot)
    }

    /// Strikes out a change that is undone, or whose subject has ended.
    pub(super) fn strike(&mut self, slot: u64) {
        self.slots.strike(slot);
    }

    /// Enters the session's keeper.
    pub(super) fn keeper(&mut self, keeper: &Process) {
        let text = format!("keeper {} {} ", keeper.pid, keeper.start);
        let _ = self.slots.write(KEEPER, text.as_bytes());
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
        slots
            .chunks_exact(SLOT_BYTES)
            .for_each(|slot| list.enter(slot));
        Some(list)
    }

    fn enter(&mut self, slot: &[u8]) {
        let words: Vec<&[u8]> = slot.split(|&byte| byte == b' ').collect();
        match *words[0] {
            [b't', ..] => self.pins.extend(Pin::parse(&words[1..])),
            [b'k', ..] => self.keeper = member(&words[1..]),
            [b'a', ..] => self.kept.extend(member(&words[1..])),
            [b's', ..] => self.sets.extend(words.get(1).and_then(|set| parse(set))),
            [b'g', ..] => {
                let since = words.get(1).and_then(|since| parse(since));
                self.groups.extend(since.zip(path(slot)));
            }
            [b'f', ..] => self.frozen.extend(path(slot)),
            _ => {}
        }
    }
}

fn member(words: &[&[u8]]) -> Option<Member> {
    Some(Member {
        pid: parse(words.first()?)?,
        start: parse(words.get(1)?)?,
    })
}

/// The path behind the second blank, up to the end of the line.
fn path(slot: &[u8]) -> Option<PathBuf> {
    let path = slot.splitn(3, |&byte| byte == b' ').nth(2)?;
    let end = path.iter().rposition(|&byte| byte == b'\n')?;
    Some(OsString::from_vec(path[..end].to_vec()).into())
}

fn parse<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
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
        let slot = changes.pin(None, &pin).unwrap();
        let odd = PathBuf::from(OsString::from_vec(b"/groups/\xd0 x\n y".to_vec()));
        changes.set(&pin.set).unwrap();
        changes.group(&odd, 90).unwrap();
        changes.frozen(&odd).unwrap();
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
        assert_eq!(changes.pin(None, &moved).unwrap(), slot);
        assert_eq!(changes.read().unwrap().pins, [moved]);
        let long = Pin {
            old: (0..1_000).step_by(2).map(cosched_core::CpuId).collect(),
            ..changes.read().unwrap().pins.remove(0)
        };
        assert!(changes.pin(None, &long).is_err(), "a cut mask is none");
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
