//! The keeper: a small process that undoes a session's changes when the session dies, however it dies.
//!
//! It waits at the other end of a pipe, and for the session's process. A session that ends in good order undoes its
//! changes itself, and ends the keeper. It says at each look that it goes on. If it falls silent, because it is stopped or
//! its output blocks, the keeper thaws its groups. If somebody kills or stops the keeper, the session starts another. If both are
//! killed at once, a later start and `cosched thaw` undo the changes by the list in the runtime folder.

use super::restore::{restore, thaw};
use crate::hold::ledger::Ledger;
use crate::hold::sentinel;
use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::{self, RawPid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, geteuid, waitid};
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// The keeper's name in `ps`. It does not contain that of the program, so that `pkill cosched` does not end it.
const NAME: &std::ffi::CStr = c"mask-keeper";
/// Delay between two checks whether the session's process is gone. The pipe closes a little earlier.
const PAUSE: Duration = Duration::from_millis(1);

/// The session's end of the pipe to its keeper.
#[derive(Debug)]
pub(super) struct Keeper {
    pid: RawPid,
    line: OwnedFd,
}

impl Keeper {
    /// Starts a keeper of these ledger.
    ///
    /// # Errors
    /// No process or no pipe could be made.
    pub(super) fn start(
        root: &Root,
        run: &RunId,
        ledger: &Ledger,
        silence: Duration,
    ) -> io::Result<Keeper> {
        let (pid, line) = sentinel::start(|line| keep(root, run, ledger, line, silence))?;
        Ok(Keeper { pid, line })
    }

    /// Says that the session goes on.
    pub(super) fn tell(&self) {
        let _ = rustix::io::write(&self.line, b"b");
    }

    /// Whether it still waits. One that was stopped would not undo anything.
    pub(super) fn is_there(&self) -> bool {
        // It is not reaped here: its number must not be reused before it is dismissed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        let options = options | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = Pid::from_raw(self.pid).map(WaitId::Pid);
        pid.is_some_and(|pid| matches!(waitid(pid, options), Ok(None)))
    }

    /// Ends the keeper, whatever state it is in.
    pub(super) fn dismiss(self) {
        sentinel::dismiss(self.pid);
    }
}

/// The keeper's main function.
fn keep(root: &Root, run: &RunId, ledger: &Ledger, line: OwnedFd, silence: Duration) {
    sys::ignore_signals();
    if let Some(own) = Process::read(root, std::process::id() as RawPid) {
        ledger.guardian(&own);
    }
    let mut kept = ledger.descriptors();
    kept.push(line.as_raw_fd());
    sentinel::detach(NAME, kept);
    wait_for_end(root, run, ledger, &line, silence);
    while process::lives(root, run.pid, run.start) {
        std::thread::sleep(PAUSE);
    }
    if let Some(list) = ledger.read() {
        restore(root, &list, geteuid().as_raw());
    }
    ledger.remove_file();
}

/// Waits until the pipe closes, or the session's process ends. Thaws all groups when the session falls silent.
fn wait_for_end(root: &Root, run: &RunId, ledger: &Ledger, line: &OwnedFd, silence: Duration) {
    let session = Process::find(root, run.pid, run.start).and_then(|found| found.handle(root));
    let mut left = Timespec::try_from(silence).ok();
    loop {
        let mut watched = vec![PollFd::new(line, PollFlags::IN)];
        watched.extend(
            session
                .as_ref()
                .map(|session| PollFd::new(session, PollFlags::IN)),
        );
        match poll(&mut watched, left.as_ref()) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(0) => {
                if let Some(list) = ledger.read() {
                    thaw(root, &list, geteuid().as_raw());
                }
                // Until the session is heard again.
                left = None;
                continue;
            }
            Ok(_) => {}
        }
        let has_ended = watched.get(1).is_some_and(|end| !end.revents().is_empty());
        if has_ended || sentinel::hear(line, &mut [0; 64]).is_none() {
            return;
        }
        left = Timespec::try_from(silence).ok();
    }
}
