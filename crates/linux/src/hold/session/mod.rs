//! Binds the threads of programs that run already, freezes their groups, and undoes all of it at the end.
//!
//! A session that ends in good order undoes its changes itself. Its guardian, which users see as `mask-keeper`, does it if the
//! session dies, and thaws the groups while it is silent.

mod masks;
mod restore;
mod threads;

pub use restore::Restored;

pub(crate) use masks::LeftAlone;
pub(crate) use restore::mend;
pub(crate) use threads::limit_of;

use crate::cgroup;
use crate::hold::guardian::{Beat, Guarded, Guardian};
use crate::hold::ledger::{Held, Ledger, LedgerEntry, Pin};
use crate::process::ProcessKey;
use crate::root::Root;
use crate::run_id::RunId;
use crate::runtime::NoFolder;
use cosched_core::CpuSet;
use masks::PRUNE;
use restore::{restore, thaw};
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shortest silence of a session after which its guardian thaws its groups.
const SILENCE: Duration = Duration::from_secs(10);
/// Number of looks that a session may miss.
const MISSED: u32 = 3;

/// All that a session changes in programs of others. When it is dropped, all of it is undone.
#[derive(Debug)]
pub(crate) struct SessionHold {
    root: Root,
    run: RunId,
    ledger: Ledger,
    guardian: Option<Guardian>,
    silence: Duration,
    /// The bound threads.
    pins: BTreeMap<ProcessKey, (LedgerEntry, Pin)>,
    /// The threads that are left alone, each with its entry if it has one.
    left: BTreeMap<ProcessKey, Option<LedgerEntry>>,
    /// The groups with bound threads.
    groups: BTreeMap<PathBuf, LedgerEntry>,
    /// All sets of CPUs that threads got.
    sets: Vec<(LedgerEntry, CpuSet)>,
    /// The groups that are frozen.
    frozen: BTreeMap<PathBuf, LedgerEntry>,
    /// Number of known threads at which dead ones are struck out.
    prune_at: usize,
}

impl SessionHold {
    /// Starts a session's list and its guardian.
    ///
    /// # Errors
    /// Out of memory, or no process could be made. Nothing is changed without a guardian.
    pub(crate) fn begin(root: &Root, run: RunId, interval: Duration) -> io::Result<SessionHold> {
        let silence = SILENCE.max(interval.saturating_mul(MISSED));
        let mut hold = SessionHold::without_guardian(root, run, silence)?;
        hold.start_guardian()?;
        Ok(hold)
    }

    fn without_guardian(root: &Root, run: RunId, silence: Duration) -> io::Result<SessionHold> {
        Ok(SessionHold {
            root: root.clone(),
            ledger: Ledger::of_session(root, run)?,
            run,
            guardian: None,
            silence,
            pins: BTreeMap::new(),
            left: BTreeMap::new(),
            groups: BTreeMap::new(),
            sets: Vec::new(),
            frozen: BTreeMap::new(),
            prune_at: PRUNE,
        })
    }

    fn start_guardian(&mut self) -> io::Result<()> {
        self.guardian = Some(Guardian::start(self, Beat::Tends)?);
        Ok(())
    }

    /// Tells the guardian that the session goes on. Starts another one if it was killed or stopped; returns whether it was.
    ///
    /// # Errors
    /// No process could be made.
    pub(crate) fn renew_guardian(&mut self) -> io::Result<bool> {
        match self.guardian.take() {
            Some(guardian) if guardian.is_there() => {
                guardian.tell(Beat::Tends);
                self.guardian = Some(guardian);
                return Ok(false);
            }
            Some(stopped_or_gone) => stopped_or_gone.dismiss(),
            None => {}
        }
        self.start_guardian()?;
        Ok(true)
    }

    /// Why there is no list in the runtime folder; returned once.
    pub(crate) fn take_lost(&self) -> Option<NoFolder> {
        self.ledger.take_lost()
    }

    /// Freezes a group. Returns `false`, and leaves it alone, if somebody else froze it.
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
        let entry = self.ledger.enter(&Held::Frozen(dir.into()))?;
        if cgroup::set_frozen(dir, true)? {
            self.frozen.insert(dir.to_owned(), entry);
        }
        // A group that is gone counts as frozen until its subject has ended.
        Ok(true)
    }

    /// Thaws a group that [`SessionHold::freeze`] froze.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn thaw(&mut self, dir: &Path) -> io::Result<()> {
        if self.frozen.contains_key(dir) {
            cgroup::set_frozen(dir, false)?;
            self.frozen.remove(dir);
        }
        Ok(())
    }

    /// Undoes all changes.
    pub(crate) fn undo(&mut self) -> Restored {
        let Some(list) = self.ledger.read() else {
            return Restored::default();
        };
        let done = restore(&self.root, &list, geteuid().as_raw());
        self.pins.clear();
        self.groups.clear();
        self.frozen.clear();
        done
    }
}

impl Guarded for SessionHold {
    const NAME: &'static CStr = c"mask-keeper";

    fn root(&self) -> &Root {
        &self.root
    }

    fn run(&self) -> RunId {
        self.run
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn silence(&self) -> Duration {
        self.silence
    }

    fn relieve(&self) {
        if let Some(list) = self.ledger.read() {
            thaw(&self.root, &list, geteuid().as_raw());
        }
    }

    fn free(&self) {
        if let Some(list) = self.ledger.read() {
            restore(&self.root, &list, geteuid().as_raw());
        }
        self.ledger.remove_file();
    }
}

impl Drop for SessionHold {
    fn drop(&mut self) {
        self.undo();
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}
