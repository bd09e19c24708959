//! Binds the threads of programs that run already, freezes their groups, and undoes all of it at the end.

mod changes;
mod keeper;
mod masks;
mod restore;
mod threads;

pub use restore::Restored;

pub(crate) use masks::{Left, Skipped};
pub(crate) use restore::mend;
pub(crate) use threads::limit_of;

use super::selection::Subject;
use crate::cgroup;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::NoFolder;
use changes::{Changes, Entry};
use cosched_core::CpuSet;
use keeper::Keeper;
use masks::Masks;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shortest silence of a session after which its keeper thaws its groups.
const SILENCE: Duration = Duration::from_secs(10);
/// Number of looks that a session may miss.
const MISSED: u32 = 3;

/// All that a session changes in programs of others. When it is dropped, all of it is undone.
#[derive(Debug)]
pub(crate) struct Hold {
    root: Root,
    run: RunId,
    masks: Masks,
    keeper: Option<Keeper>,
    silence: Duration,
    /// The groups that are frozen, with their slots in the list.
    frozen: BTreeMap<PathBuf, u64>,
}

impl Hold {
    /// Starts a session's list and its keeper.
    ///
    /// # Errors
    /// Out of memory, or no process could be made. Nothing is changed without a keeper.
    pub(crate) fn begin(root: &Root, run: RunId, interval: Duration) -> io::Result<Hold> {
        let mut changes = Changes::begin(root, &run)?;
        let silence = SILENCE.max(interval.saturating_mul(MISSED));
        let keeper = Keeper::start(root, &run, &mut changes, silence)?;
        Ok(Hold {
            root: root.clone(),
            run,
            masks: Masks::new(root, changes),
            keeper: Some(keeper),
            silence,
            frozen: BTreeMap::new(),
        })
    }

    /// Tells the keeper that the session goes on. Starts another one if it was killed or stopped; returns whether it was.
    ///
    /// # Errors
    /// No process could be made.
    pub(crate) fn renew_keeper(&mut self) -> io::Result<bool> {
        if let Some(keeper) = self.keeper.as_ref().filter(|keeper| keeper.is_there()) {
            keeper.tell();
            return Ok(false);
        }
        if let Some(keeper) = self.keeper.take() {
            keeper.dismiss();
        }
        let changes = self.masks.changes();
        let keeper = Keeper::start(&self.root, &self.run, changes, self.silence)?;
        self.keeper = Some(keeper);
        Ok(true)
    }

    /// The CPUs of the subjects' threads.
    pub(crate) fn bind(&mut self, subject: &Subject, cpus: &CpuSet) -> Skipped {
        self.masks.bind(subject, cpus)
    }

    /// Whether a thread of a subject is bound.
    pub(crate) fn binds(&self, subject: &Subject) -> bool {
        self.masks.binds(subject)
    }

    /// As [`Hold::bind`], for threads that are new.
    pub(crate) fn bind_new(&mut self, subject: &Subject, cpus: &CpuSet) -> Skipped {
        self.masks.bind_new(subject, cpus)
    }

    /// Why there is no list in the runtime folder; returned once.
    pub(crate) fn take_lost(&mut self) -> Option<NoFolder> {
        self.masks.changes().take_lost()
    }

    /// Freezes a group; returns whether it is this session's to thaw. One that somebody else froze is left alone.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn freeze(&mut self, dir: &Path) -> io::Result<bool> {
        if self.frozen.contains_key(dir) {
            return Ok(true);
        }
        if cgroup::is_frozen(dir) {
            return Ok(false);
        }
        let slot = self
            .masks
            .changes()
            .enter(None, &Entry::Frozen(dir.into()))?;
        let frozen = cgroup::set_frozen(dir, true);
        if frozen.is_err() {
            self.masks.changes().strike(slot);
        } else {
            self.frozen.insert(dir.to_owned(), slot);
        }
        frozen.map(|()| true)
    }

    /// Thaws a group that this session froze.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn thaw(&mut self, dir: &Path) -> io::Result<()> {
        let Some(&slot) = self.frozen.get(dir) else {
            return Ok(());
        };
        let thawed = cgroup::set_frozen(dir, false);
        if thawed.is_ok() || !dir.exists() {
            self.frozen.remove(dir);
            self.masks.changes().strike(slot);
            return Ok(());
        }
        thawed
    }

    /// Undoes all changes.
    pub(crate) fn undo(&mut self) -> Restored {
        let Some(list) = self.masks.list() else {
            return Restored::default();
        };
        let done = restore::restore(&self.root, &list, geteuid().as_raw());
        self.masks.forget_all();
        let slots: Vec<u64> = std::mem::take(&mut self.frozen).into_values().collect();
        slots
            .into_iter()
            .for_each(|slot| self.masks.changes().strike(slot));
        done
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.undo();
        if let Some(keeper) = self.keeper.take() {
            keeper.dismiss();
        }
    }
}
