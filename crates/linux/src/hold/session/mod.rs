//! Binds the threads of programs that run already, freezes their groups, and undoes all of it at the end.

mod masks;
mod restore;
mod threads;

pub use restore::Restored;

pub(crate) use masks::LeftAlone;
pub(crate) use restore::mend;
pub(crate) use threads::limit_of;

use crate::cgroup;
use crate::hold::guardian::{Beat, Guarded, Guardian};
use crate::hold::ledger::{Held, Ledger, Pin};
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
use std::mem::take;
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
    /// The bound threads, each with its slot in the list.
    pins: BTreeMap<ProcessKey, (u64, Pin)>,
    /// The threads that are left alone, each with its slot in the list if it has one.
    left: BTreeMap<ProcessKey, Option<u64>>,
    /// The groups with bound threads, with their slots in the list.
    groups: BTreeMap<PathBuf, u64>,
    /// All sets of CPUs that threads got.
    sets: Vec<CpuSet>,
    /// The groups that are frozen, with their slots in the list.
    frozen: BTreeMap<PathBuf, u64>,
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
        if let Some(guardian) = self
            .guardian
            .as_ref()
            .filter(|guardian| guardian.is_there())
        {
            guardian.tell(Beat::Tends);
            return Ok(false);
        }
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
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
        let slot = self.ledger.enter(None, &Held::Frozen(dir.into()))?;
        let frozen = cgroup::set_frozen(dir, true);
        if matches!(frozen, Ok(true)) {
            self.frozen.insert(dir.to_owned(), slot);
        } else {
            self.ledger.strike(slot);
        }
        // A group that is gone counts as frozen until its subject has ended.
        frozen.map(|_| true)
    }

    /// Thaws a group that [`SessionHold::freeze`] froze.
    ///
    /// # Errors
    /// The kernel refuses.
    pub(crate) fn thaw(&mut self, dir: &Path) -> io::Result<()> {
        if let Some(&slot) = self.frozen.get(dir) {
            cgroup::set_frozen(dir, false)?;
            self.frozen.remove(dir);
            self.ledger.strike(slot);
        }
        Ok(())
    }

    /// Undoes all changes.
    pub(crate) fn undo(&mut self) -> Restored {
        let Some(list) = self.ledger.read() else {
            return Restored::default();
        };
        let done = restore(&self.root, &list, geteuid().as_raw());
        let pins = take(&mut self.pins).into_values().map(|(slot, _)| slot);
        let groups = take(&mut self.groups).into_values();
        let frozen = take(&mut self.frozen).into_values();
        for slot in pins.chain(groups).chain(frozen) {
            self.ledger.strike(slot);
        }
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
