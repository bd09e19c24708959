//! The guardian: a small process that frees a run's jobs when the run dies, however it dies.
//!
//! It holds one end of a pipe, and the run holds the other. When the pipe closes or the run's process ends, and that process
//! is dead, the guardian thaws the run's groups, continues its stopped processes and gives them their CPUs back. It finds them by
//! the run's list ([`crate::hold::ledger`]), not by what a program can change. The jobs run on, unless they are to end with the run:
//! then the guardian kills them. It removes the groups and the list when the last of them has ended, and ends.
//!
//! A run with a scheduler in the kernel says through the pipe that it goes on ([`Beat`]). If it falls silent, the guardian gives its
//! jobs back to the ordinary scheduler.
//!
//! It lives in a session of its own and ignores all signals, so that a signal from the terminal that ends the run does
//! not end the guardian. Its name does not contain that of the program, so that `pkill cosched` does not end it
//! either. If somebody kills or stops it, the run sees that of its child, kills it if it is still there, and starts
//! another. If both are killed at once, each job's own process is continued by its parent-death signal; the next start
//! and `cosched thaw` free what remains.

use crate::cgroup;
use crate::hold::claim::RunClaim;
use crate::hold::ledger::{Ledger, LedgerHead, Record};
use crate::hold::process_scan::ProcessScan;
use crate::hold::sentinel;
use crate::process::{self, Process};
use crate::root::Root;
use crate::sys::{self, RawPid};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{Signal, geteuid};
use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

/// The run's end of the pipe to its guardian.
#[derive(Debug)]
pub(crate) struct Guardian {
    /// The guardian's process.
    pub(crate) pid: RawPid,
    line: OwnedFd,
}

/// A message from a run with a scheduler in the kernel to its guardian, a byte each.
///
/// Such a scheduler's processes come after ordinary ones. One that ordinary processes keep from its CPU may be in the middle of
/// something that others wait for: the kernel, for one, neither puts a process into a cgroup nor removes the scheduler before
/// all that read without a lock (RCU) have read. So the run itself may hang, and its end may. The guardian does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Beat {
    /// The run looks after its scheduler. It will say so again within [`HELD`].
    Tends = b'b',
    /// It is suspended, or has a scheduler no longer.
    Rests = b'r',
}

/// When a run that looked after its scheduler has not done so for this long, the guardian gives its processes back to the
/// ordinary scheduler. The kernel complains of a read that lasts for 21 s, and of a process that waits for 30 s.
pub(crate) const HELD: Duration = Duration::from_secs(10);

/// What a guardian must know.
#[derive(Clone, Debug)]
pub(crate) struct GuardedRun {
    pub(crate) root: Root,
    pub(crate) head: LedgerHead,
    /// The run's processes, now and later.
    pub(crate) ledger: Ledger,
    /// The jobs are killed when the run dies.
    pub(crate) ends_jobs: bool,
}

impl GuardedRun {
    fn run_lives(&self) -> bool {
        process::lives(&self.root, self.head.run.pid, self.head.run.start)
    }

    fn claim<'a>(&'a self, record: Option<&'a Record>) -> RunClaim<'a> {
        RunClaim {
            run: self.head.run,
            record,
            group: self.head.group.as_deref(),
            owner: geteuid().as_raw(),
            is_own_list: true,
        }
    }
}

/// The guardian's name in `ps`.
const NAME: &std::ffi::CStr = c"run-guardian";

/// Scans for stopped processes when the run has died. A signal may still be under way at the first.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Longest delay between two checks whether the jobs of the dead run have ended.
const PATIENCE: Duration = Duration::from_secs(1);

impl Guardian {
    /// Starts a guardian, for jobs that may be running already.
    ///
    /// # Errors
    /// No process or no pipe could be made.
    pub(crate) fn start(guarded: &GuardedRun) -> io::Result<Guardian> {
        let (pid, line) = sentinel::start(|read| guard(guarded, read))?;
        Ok(Guardian { pid, line })
    }

    /// Sends it a beat; a guardian that does not listen misses it.
    pub(crate) fn tell(&self, beat: Beat) {
        let _ = rustix::io::write(&self.line, &[beat as u8]);
    }

    /// Ends the guardian, whatever state it is in: the run has ended in good order, or another guardian takes over. One
    /// that was only let go could come back later and free the jobs of a live run.
    pub(crate) fn dismiss(self) {
        sentinel::dismiss(self.pid);
    }
}

/// The guardian's main function.
fn guard(guarded: &GuardedRun, line: OwnedFd) {
    sys::ignore_signals();
    // `cosched thaw` can find and continue a guardian that was stopped.
    if let Some(own) = Process::read(&guarded.root, std::process::id() as RawPid) {
        guarded.ledger.guardian(&own);
    }
    let mut kept = guarded.ledger.descriptors();
    kept.push(line.as_raw_fd());
    sentinel::detach(NAME, kept);
    let mut beats = Beats::default();
    listen(guarded, &line, &mut beats);
    // The pipe closes a little before the process is gone. A run that lives on has another guardian, or will have one.
    let mut pause = Duration::from_millis(1);
    while guarded.run_lives() {
        if beats.tends {
            // Its end may wait for one of them.
            give_back(&guarded.root);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
    if guarded.ends_jobs {
        end(guarded);
    } else {
        free(guarded);
    }
    stay(guarded);
}

/// Listens to the run until it ends or has no more use for this guardian.
fn listen(guarded: &GuardedRun, line: &OwnedFd, beats: &mut Beats) {
    // A job that is being started has a copy of the run's end of the pipe, and keeps it while the program's file system does
    // not answer. So the run's process is watched as well.
    let run = Process::find(&guarded.root, guarded.head.run.pid, guarded.head.run.start);
    let run = run.and_then(|run| run.handle(&guarded.root));
    while guarded.run_lives() {
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
            give_back(&guarded.root);
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
#[derive(Debug, Default)]
struct Beats {
    /// It has a scheduler, and looks after it.
    tends: bool,
    /// When it last said so. Nothing is done twice about its silence.
    last: Option<Instant>,
}

impl Beats {
    fn hear(&mut self, told: &[u8], now: Instant) {
        for &byte in told {
            self.tends = byte == Beat::Tends as u8;
            self.last = self.tends.then_some(now);
        }
    }

    /// For how long it may be silent.
    fn left(&self, now: Instant) -> Option<Duration> {
        Some((self.last? + HELD).saturating_duration_since(now))
    }
}

/// Gives the processes of the scheduler in the kernel, of which there is one at a time, back to the ordinary scheduler. What asks
/// for groups could wait itself here.
fn give_back(root: &Root) {
    // One that was started meanwhile has what its parent had.
    for _ in 0..LOOKS {
        process::for_threads(root, &process::all_pids(root), |tid| {
            if sys::is_loaded(tid) {
                let _ = sys::set_loaded_scheduler(tid, false);
            }
        });
        std::thread::sleep(BETWEEN_LOOKS);
    }
}

/// Frees all that the dead run stopped or froze.
fn free(guarded: &GuardedRun) {
    let GuardedRun {
        root, head, ledger, ..
    } = guarded;
    let group = head.group.as_deref();
    if let Some(group) = group {
        let _ = cgroup::thaw(group);
    }
    let record = ledger.read();
    // First the quick part: every job's own process, and its process group.
    for job in record.iter().flat_map(|record| &record.jobs) {
        // Also of one that has ended: its group may go on, and has the same number as long as that is kept.
        if let Some(main) = job.main.find(root)
            && main.signal(root, Signal::CONT)
        {
            let _ = sys::kill(-main.pid, libc::SIGCONT);
        }
    }
    let claim = guarded.claim(record.as_ref());
    for look in 0..LOOKS {
        let claimed = claim.processes(&ProcessScan::new(root));
        for member in &claimed {
            // A stop that is on its way is called off by the signal as well.
            if member.process.is_stopped() || (look == 0 && member.sure) {
                member.process.signal(root, Signal::CONT);
            }
        }
        let pids: Vec<RawPid> = claimed.iter().map(|member| member.process.pid).collect();
        process::bind(root, &pids, &head.cpus);
        std::thread::sleep(BETWEEN_LOOKS);
    }
    if let Some(group) = group {
        let _ = cgroup::thaw(group);
    }
}

/// Kills all processes of the dead run's jobs.
fn end(guarded: &GuardedRun) {
    let GuardedRun {
        root, head, ledger, ..
    } = guarded;
    let mut pause = Duration::from_millis(1);
    loop {
        // The kernel kills what is frozen as well.
        if let Some(group) = head.group.as_deref() {
            cgroup::kill(group);
            let _ = cgroup::thaw(group);
        }
        let record = ledger.read();
        let claim = guarded.claim(record.as_ref());
        let mut claimed = claim.processes(&ProcessScan::new(root));
        claimed.retain(|member| !member.process.is_dead());
        if claimed.is_empty() {
            return;
        }
        for member in claimed {
            member.process.signal(root, Signal::KILL);
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
}

/// Waits for the end of the jobs, and removes their groups and their list.
fn stay(guarded: &GuardedRun) {
    let GuardedRun {
        root, head, ledger, ..
    } = guarded;
    let mut pause = BETWEEN_LOOKS;
    loop {
        let gone = head.group.as_deref().is_none_or(cgroup::remove);
        let record = ledger.read();
        // Looking at all processes is left for the time when those in the list have gone.
        if gone && !record.as_ref().is_some_and(|record| record.any_lives(root)) {
            let claim = guarded.claim(record.as_ref());
            if claim.processes(&ProcessScan::new(root)).is_empty() {
                return ledger.remove_file();
            }
        }
        std::thread::sleep(pause);
        pause = (2 * pause).min(PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_tends_nothing_may_be_silent() {
        let begin = Instant::now();
        let at = |s| begin + Duration::from_secs(s);
        let mut beats = Beats::default();
        assert_eq!((beats.left(at(0)), beats.tends), (None, false));
        beats.hear(b"b", at(1));
        assert_eq!(beats.left(at(3)), Some(Duration::from_secs(8)));
        beats.hear(b"bbb", at(5));
        assert_eq!(beats.left(at(5)), Some(HELD));
        assert_eq!(beats.left(at(15)), Some(Duration::ZERO));
        assert_eq!(beats.left(at(99)), Some(Duration::ZERO));
        // Suspended, and continued.
        beats.hear(b"br", at(6));
        assert_eq!((beats.left(at(99)), beats.tends), (None, false));
        beats.hear(b"rb", at(100));
        assert_eq!(beats.left(at(101)), Some(Duration::from_secs(9)));
    }
}
