//! Programs that a comparison runs, one or several at a time, and how they are ended when the user interrupts it.

use anyhow::Context as _;
use cosched_linux::{Interrupts, Leftovers, settle_child};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use std::collections::{BTreeMap, VecDeque};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The programs that run now.
#[derive(Default)]
pub(super) struct Children {
    /// Their process groups; of commands that are not cosched what finds all of their processes. Each is in the list until just
    /// before its process is reaped, so that its number is its own. Whoever has the list keeps programs from starting.
    live: Mutex<BTreeMap<i32, Option<Arc<Leftovers>>>>,
    /// How often they were asked to end.
    asked: AtomicU32,
    /// How long all was suspended.
    suspended: Mutex<Duration>,
}

/// Whoever has been asked so often to end, and has not, is ended. `cosched run` hurries when it is asked a second time.
const PATIENCE: u32 = 3;

/// Whoever has not stopped after this time is not waited for any longer. `cosched run` stops when its jobs have.
const STOPS: Duration = Duration::from_secs(30);

/// How a program ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// From its start to its end, without the time for which it was suspended.
    pub(super) time: Duration,
    /// For how long it was suspended.
    pub(super) suspended: Duration,
    /// What it wrote to standard output and error output, as far as it was wanted.
    pub(super) out: String,
    pub(super) err: String,
    /// Processes that it had left behind. They were ended.
    pub(super) left: usize,
}

/// What is kept of a program's output.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// Both.
    Both,
    /// Only error output.
    Errors,
    /// The end of what it wrote to error output; and what it leaves behind does not go on beside the next one.
    LastErrors,
}

/// No more than this is kept of an output.
const MOST: u64 = 64 << 20;

/// So much is kept of the end of an error output.
const LAST: usize = 2048;

impl Children {
    /// Runs a program to its end.
    ///
    /// # Errors
    /// It could not be started.
    pub(super) fn run(&self, mut command: Command, keep: Keep, signals: &Interrupts) -> anyhow::Result<Ended> {
        let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(pipe(keep == Keep::Both)).stderr(Stdio::piped());
        settle_child(&mut command, signals);
        let leftovers = (keep == Keep::LastErrors).then(|| Arc::new(Leftovers::before()));
        let mut live = lock(&self.live);
        let before = *lock(&self.suspended);
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("can't start {:?}", command.get_program()))?;
        let group = child.id() as i32;
        live.insert(group, leftovers.clone());
        drop(live);
        let tail = (keep == Keep::LastErrors).then(|| Tail::of(child.stderr.take()));
        let (out, err) = read_both(&mut child);
        let gone =
            Pid::from_raw(group).map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let (passed, suspended) = {
            // Whoever suspends has it until the pause is counted.
            let suspended = lock(&self.suspended);
            (began.elapsed(), *suspended - before)
        };
        let left = leftovers.map_or(0, |leftovers| leftovers.end(group));
        let err = tail.map_or(err, Tail::end);
        lock(&self.live).remove(&group);
        if let Some(Err(error)) = gone {
            return Err(error).context("waiting for a program");
        }
        let status = child.wait().context("waiting for a program")?;
        Ok(Ended { status, time: passed.saturating_sub(suspended), suspended, out, err, left })
    }

    /// Pauses all that run, and this process, until somebody continues it. No program starts meanwhile.
    pub(super) fn suspend(&self) {
        let live = lock(&self.live);
        let mut suspended = lock(&self.suspended);
        let began = Instant::now();
        for (&group, leftovers) in live.iter() {
            match leftovers {
                // A run of cosched knows how to pause its jobs. Others may not hear SIGTSTP, or leave a part of them running.
                None => to_group(group, Signal::TSTP),
                Some(leftovers) => leftovers.signal(group, Signal::STOP),
            }
        }
        // One that was continued before it has stopped would stop afterwards, and for ever.
        live.keys().for_each(|&group| wait_for_stop(group));
        let _ = kill_process(rustix::process::getpid(), Signal::STOP);
        for (&group, leftovers) in live.iter() {
            match leftovers {
                None => to_group(group, Signal::CONT),
                Some(leftovers) => leftovers.signal(group, Signal::CONT),
            }
        }
        *suspended += began.elapsed();
    }

    /// Whether the user asked them to end.
    pub(super) fn were_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    /// Asks all that run to end by this signal. The user has asked for it as often as this was called.
    pub(super) fn signal(&self, number: i32) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let signal = if asked < PATIENCE { Signal::from_named_raw(number) } else { Some(Signal::KILL) };
        let Some(signal) = signal else { return };
        lock(&self.live).keys().for_each(|&group| to_group(group, signal));
    }
}

/// Waits until a process that was asked to has stopped, or has ended.
fn wait_for_stop(process: i32) {
    let Some(pid) = Pid::from_raw(process) else { return };
    let options = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let began = Instant::now();
    while matches!(waitid(WaitId::Pid(pid), options), Ok(None)) && began.elapsed() < STOPS {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn to_group(group: i32, signal: Signal) {
    if let Some(group) = Pid::from_raw(group) {
        // It may have ended.
        let _ = kill_process_group(group, signal);
    }
}

/// Whoever panicked left what is as good as before.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|broken| broken.into_inner())
}

/// The last that a program writes, read as long as somebody has it open.
struct Tail {
    last: Arc<Mutex<VecDeque<u8>>>,
    /// Says that nobody has it open any more.
    closed: Receiver<()>,
}

impl Tail {
    fn of(pipe: Option<impl Read + Send + 'static>) -> Tail {
        let last: Arc<Mutex<VecDeque<u8>>> = Arc::default();
        let (closing, closed) = channel();
        let end = last.clone();
        let mut pipe = pipe;
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(count) = pipe.as_mut().and_then(|pipe| pipe.read(&mut bytes).ok()).filter(|&count| count > 0)
            {
                let mut end = lock(&end);
                end.extend(&bytes[..count]);
                let more = end.len().saturating_sub(LAST);
                end.drain(..more);
            }
            // Nobody may wait for it any more.
            let _ = closing.send(());
        });
        Tail { last, closed }
    }

    /// What it was. Its writers have ended, or could not be ended, and are not waited for.
    fn end(self) -> String {
        let _ = self.closed.recv_timeout(Duration::from_secs(1));
        let last: Vec<u8> = lock(&self.last).iter().copied().collect();
        String::from_utf8_lossy(&last).into_owned()
    }
}

/// Reads what a program writes until it closes both. Errors are read on a thread of their own, so that neither pipe is full
/// while the other is waited for.
fn read_both(child: &mut Child) -> (String, String) {
    fn all(pipe: Option<impl std::io::Read>) -> String {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            let _ = pipe.by_ref().take(MOST).read_to_end(&mut bytes);
            // The rest is taken and dropped, or the program would wait for ever.
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
    let (out, err) = (child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        let err = scope.spawn(|| all(err));
        let out = all(out);
        (out, err.join().unwrap_or_default())
    })
}
