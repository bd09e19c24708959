//! The guardian: a small process that frees what a run holds when the run dies, however it dies. A session is a run here.
//!
//! It holds one end of a pipe, and the run holds the other. When the pipe closes or the run's process ends, and that process
//! is dead, the guardian frees all that the run held. It finds it by the run's list ([`Ledger`]), not by what a program can
//! change. What freeing is, each [`Guarded`] says for itself.
//!
//! A run that others could wait for says through the pipe that it goes on ([`Beat`]). If it falls silent, because it is stopped
//! or its output blocks, the guardian frees what they wait for.
//!
//! It lives in a session of its own and ignores all signals, so that a signal from the terminal that ends the run does
//! not end the guardian. Its name does not contain that of the program, so that `pkill cosched` does not end it
//! either. If somebody kills or stops it, the run starts another. If both are killed at once, the next start and `cosched thaw`
//! free what remains ([`mend`](super::mend)).

use super::ledger::Ledger;
use super::sentinel;
use crate::process::{self, Process};
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::{self, RawPid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::ffi::CStr;
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// What a guardian guards.
pub(crate) trait Guarded {
    /// The guardian's name in `ps`.
    const NAME: &'static CStr;

    fn root(&self) -> &Root;

    fn run(&self) -> RunId;

    /// What the run holds, now and later.
    fn ledger(&self) -> &Ledger;

    /// How long a run that [tends](Beat::Tends) something may be silent.
    fn silence(&self) -> Duration;

    /// Frees what others may wait for: the run tends something, and is silent or ends.
    fn relieve(&self);

    /// Frees all that the dead run held.
    fn free(&self);
}

/// The run's end of the pipe to its guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// The guardian's process.
    pub(crate) pid: RawPid,
    line: OwnedFd,
}

/// A message from a run to its guardian, a byte each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Beat {
    /// The run looks after something that others may wait for. It will say so again within its silence.
    Tends = b'b',
    /// It is suspended, or has nothing of that kind.
    Rests = b'r',
}

/// Longest delay between two checks whether something has ended.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);

impl Guardian {
    /// Starts a guardian of what may be held already, as if it had heard this beat.
    ///
    /// # Errors
    /// No process or no pipe could be made.
    pub(crate) fn start(guarded: &impl Guarded, beat: Beat) -> io::Result<Guardian> {
        let mut beats = Beats::new(guarded.silence());
        beats.hear(&[beat as u8], Instant::now());
        let (pid, line) = sentinel::start(|read| guard(guarded, read, beats))?;
        Ok(Guardian { pid, line })
    }

    /// Sends it a beat; a guardian that does not listen misses it.
    pub(crate) fn tell(&self, beat: Beat) {
        let _ = rustix::io::write(&self.line, &[beat as u8]);
    }

    /// Whether it still waits. One that was stopped would not free anything.
    pub(crate) fn is_there(&self) -> bool {
        // It is not reaped here: its number must not be reused before it is dismissed.
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        let options = options | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let pid = Pid::from_raw(self.pid).map(WaitId::Pid);
        pid.is_some_and(|pid| matches!(waitid(pid, options), Ok(None)))
    }

    /// Ends the guardian, whatever state it is in: the run has ended in good order, or another guardian takes over. One
    /// that was only let go could come back later and free what a live run holds.
    pub(crate) fn dismiss(self) {
        sentinel::dismiss(self.pid);
    }
}

fn lives(guarded: &impl Guarded) -> bool {
    let run = guarded.run();
    process::lives(guarded.root(), run.pid, run.start)
}

/// The guardian's main function.
fn guard<G: Guarded>(guarded: &G, line: OwnedFd, mut beats: Beats) {
    sys::ignore_signals();
    // `cosched thaw` can find a guardian that was stopped.
    if let Some(own) = Process::read(guarded.root(), std::process::id() as RawPid) {
        guarded.ledger().guardian(&own);
    }
    let mut kept = guarded.ledger().descriptors();
    kept.push(line.as_raw_fd());
    sentinel::detach(G::NAME, kept);
    listen(guarded, &line, &mut beats);
    // The pipe closes a little before the process is gone. A run that lives on has another guardian, or will have one.
    let mut pause = Duration::from_millis(1);
    while lives(guarded) {
        if beats.tends {
            // Its own end may wait for what it tends.
            guarded.relieve();
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
    guarded.free();
}

/// Listens to the run until it ends or has no more use for this guardian.
fn listen(guarded: &impl Guarded, line: &OwnedFd, beats: &mut Beats) {
    // A job that is being started has a copy of the run's end of the pipe, and keeps it while the program's file system does
    // not answer. So the run's process is watched as well.
    let run = Process::find(guarded.root(), guarded.run().pid, guarded.run().start);
    let run = run.and_then(|run| run.handle(guarded.root()));
    while lives(guarded) {
        let mut watched = vec![PollFd::new(line, PollFlags::IN)];
        watched.extend(run.as_ref().map(|run| PollFd::new(run, PollFlags::IN)));
        let left = beats
            .left(Instant::now())
            .and_then(|left| left.try_into().ok());
        match poll(&mut watched, left.as_ref()) {
            Err(Errno::INTR) => continue,
            Err(_) => return,
            Ok(_) => {}
        }
        if watched.get(1).is_some_and(|run| !run.revents().is_empty()) {
            return;
        }
        if !watched[0].revents().is_empty() && !hear(line, beats) {
            return;
        }
        if beats.left(Instant::now()) == Some(Duration::ZERO) {
            guarded.relieve();
            // Until the run is heard again.
            beats.last = None;
        }
    }
}

/// Reads what the run has said; returns whether the pipe is still open.
fn hear(line: &OwnedFd, beats: &mut Beats) -> bool {
    let mut told = [0; 64];
    let length = sentinel::hear(line, &mut told);
    beats.hear(&told[..length.unwrap_or(0)], Instant::now());
    length.is_some()
}

/// The last beats of the run.
#[derive(Debug)]
struct Beats {
    silence: Duration,
    /// It looks after something that others may wait for.
    tends: bool,
    /// When it last said so. Nothing is done twice about its silence.
    last: Option<Instant>,
}

impl Beats {
    fn new(silence: Duration) -> Beats {
        Beats {
            silence,
            tends: false,
            last: None,
        }
    }

    fn hear(&mut self, told: &[u8], now: Instant) {
        for &byte in told {
            self.tends = byte == Beat::Tends as u8;
            self.last = self.tends.then_some(now);
        }
    }

    /// For how long it may be silent.
    fn left(&self, now: Instant) -> Option<Duration> {
        Some((self.last? + self.silence).saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_tends_nothing_may_be_silent() {
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut beats = Beats::new(Duration::from_secs(10));
        assert_eq!((beats.left(at(0)), beats.tends), (None, false));
        beats.hear(b"b", at(1));
        assert_eq!(beats.left(at(3)), Some(Duration::from_secs(8)));
        beats.hear(b"bbb", at(5));
        assert_eq!(beats.left(at(5)), Some(Duration::from_secs(10)));
        assert_eq!(beats.left(at(15)), Some(Duration::ZERO));
        assert_eq!(beats.left(at(99)), Some(Duration::ZERO));
        // Suspended, and continued.
        beats.hear(b"br", at(6));
        assert_eq!((beats.left(at(99)), beats.tends), (None, false));
        beats.hear(b"rb", at(100));
        assert_eq!(beats.left(at(101)), Some(Duration::from_secs(9)));
    }
}
