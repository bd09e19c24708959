//! Programs that a comparison runs, one or several at a time, and how they are ended when the user interrupts it.

use anyhow::Context as _;
use cosched_linux::{Interrupts, end_rest, settle_child};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The programs that run now.
#[derive(Default)]
pub(super) struct Children {
    /// Their process groups. Each is in the list until just before its process is reaped, so that its number is its own.
    live: Mutex<BTreeSet<i32>>,
    /// How often they were asked to end.
    asked: AtomicU32,
}

/// Whoever has been asked so often to end, and has not, is ended. `cosched run` hurries when it is asked a second time.
const PATIENCE: u32 = 3;

/// How a program ended.
pub(super) struct Ended {
    pub(super) status: ExitStatus,
    /// From its start to its end.
    pub(super) time: Duration,
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
    /// Nothing; and what it leaves behind does not go on beside the next one.
    Nothing,
}

/// No more than this is kept of an output.
const MOST: u64 = 64 << 20;

impl Children {
    /// Runs a program to its end.
    ///
    /// # Errors
    /// It could not be started.
    pub(super) fn run(&self, mut command: Command, keep: Keep, signals: &Interrupts) -> anyhow::Result<Ended> {
        let pipe = |wanted: bool| if wanted { Stdio::piped() } else { Stdio::null() };
        command.stdin(Stdio::null()).stdout(pipe(keep == Keep::Both)).stderr(pipe(keep != Keep::Nothing));
        settle_child(&mut command, signals);
        let began = Instant::now();
        let mut child = command.spawn().with_context(|| format!("can't start {:?}", command.get_program()))?;
        let group = child.id() as i32;
        self.change(|live| live.insert(group));
        let (out, err) = read_both(&mut child);
        let gone =
            Pid::from_raw(group).map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
        let time = began.elapsed();
        let left = if keep == Keep::Nothing { end_rest(group) } else { 0 };
        self.change(|live| live.remove(&group));
        if let Some(Err(error)) = gone {
            return Err(error).context("waiting for a program");
        }
        let status = child.wait().context("waiting for a program")?;
        Ok(Ended { status, time, out, err, left })
    }

    fn change(&self, change: impl FnOnce(&mut BTreeSet<i32>) -> bool) {
        // Whoever panicked left a list that is as good as before.
        let mut live = self.live.lock().unwrap_or_else(|broken| broken.into_inner());
        change(&mut live);
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
        let live = self.live.lock().unwrap_or_else(|broken| broken.into_inner());
        for group in live.iter().filter_map(|&group| Pid::from_raw(group)) {
            let _ = kill_process_group(group, signal);
        }
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
