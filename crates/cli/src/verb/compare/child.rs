//! Programs that a comparison runs, one or several at a time, and how they are ended when the user interrupts it.

use super::keeper::{CONTINUE, Kept, Kind, SIGNAL, STOP, STOPPED, STOPS, wait_for_stop};
use anyhow::Context as _;
use cosched_linux::{Interrupts, Leftovers, settle_child};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// The programs that run now, of the comparison in this folder.
pub(super) struct Children<'a> {
    folder: &'a Path,
    /// Their process groups, and how each is told something. Each is in the list until just before its process is reaped, so
    /// that its number is its own. Whoever has the list keeps programs from starting.
    live: Mutex<BTreeMap<i32, Reach>>,
    /// How often they were asked to end.
    asked: AtomicU32,
}

/// How a program is told something.
enum Reach {
    /// By signals to its group.
    Signals,
    /// By its keeper, which says when it has stopped.
    Keeper(ChildStdin, Receiver<()>),
}

/// Whoever has been asked so often to end, and has not, is ended. `cosched run` hurries when it is asked a second time.
const PATIENCE: u32 = 3;

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
    /// Processes that a command had left behind. They were ended.
    pub(super) left: usize,
    /// Jobs of a run that was killed, which went on: those that were ended, and those that could not be.
    pub(super) ended_jobs: Vec<String>,
    pub(super) live_jobs: Vec<String>,
}

/// What a program is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A `cosched run` that only says what it would do; all that it writes is kept.
    Plan,
    /// A `cosched run` of a simulation; its errors are kept.
    Simulation,
    /// A `cosched run` of real jobs; its errors are kept.
    Run,
    /// A command of the user; the end of what it writes to error output is kept.
    Command,
}

/// No more than this is kept of an output.
const MOST: u64 = 64 << 20;

/// So much is kept of the end of an error output.
const LAST: usize = 2048;

impl Children<'_> {
    pub(super) fn new(folder: &Path) -> Children<'_> {
        Children {
            folder,
            live: Mutex::default(),
            asked: AtomicU32::new(0),
        }
    }

    /// Runs a program to its end.
    ///
    /// # Errors
    /// It could not be started.
    pub(super) fn run(
        &self,
        command: Command,
        what: What,
        signals: &Interrupts,
    ) -> anyhow::Result<Ended> {
        match what {
            What::Plan | What::Simulation => self.run_directly(command, what, signals),
            What::Run => self.run_by_keeper(&command, Kind::Run, signals),
            What::Command => self.run_by_keeper(&command, Kind::Command, signals),
        }
    }

    /// Runs a program that has no processes of its own.
    fn run_directly(
        &self,
        mut command: Command,
        what: What,
        signals: &Interrupts,
    ) -> anyhow::Result<Ended> {
        let out = if what == What::Plan {
            Stdio::piped()
        } else {
            Stdio::null()
        };
        command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(Stdio::piped());
        settle_child(&mut command, signals);
        let mut live = lock(&self.live);
        let began = Instant::now();
        let mut child = spawn(&mut command)?;
        let group = child.id() as i32;
        live.insert(group, Reach::Signals);
        drop(live);
        let (out, err) = read_both(&mut child);
        let status = self.wait(&mut child, |_| ())?;
        let (ended_jobs, live_jobs) = Default::default();
        Ok(Ended {
            status,
            time: began.elapsed(),
            suspended: Duration::ZERO,
            out,
            err,
            left: 0,
            ended_jobs,
            live_jobs,
        })
    }

    /// Runs a program by a keeper, which lives longer than this process if it must.
    fn run_by_keeper(
        &self,
        command: &Command,
        kind: Kind,
        signals: &Interrupts,
    ) -> anyhow::Result<Ended> {
        let mut keeper = keeper_of(command, kind, self.folder);
        keeper
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        settle_child(&mut keeper, signals);
        // Only what a keeper that was killed has left is found by them.
        let leftovers = Leftovers::before();
        let (stopping, stopped) = channel();
        let mut live = lock(&self.live);
        let mut child = spawn(&mut keeper)?;
        let line = child.stdin.take().context("a pipe to the keeper")?;
        live.insert(child.id() as i32, Reach::Keeper(line, stopped));
        drop(live);
        let (answers, errors) = (child.stdout.take(), child.stderr.take());
        let tail = Tail::of(
            errors,
            if kind == Kind::Command {
                LAST
            } else {
                MOST as usize
            },
        );
        let mut kept: Option<Kept> = None;
        for line in answers
            .into_iter()
            .flat_map(|pipe| BufReader::new(pipe).lines())
            .map_while(Result::ok)
        {
            if line == STOPPED {
                let _ = stopping.send(());
            } else {
                kept = serde_json::from_str(&line).ok();
            }
        }
        let status = self.wait(&mut child, |group| {
            if kind == Kind::Command && kept.is_none() {
                leftovers.end(group);
            }
        })?;
        let err = tail.end();
        let Some(Kept {
            status,
            passed,
            suspended,
            left,
            ended_jobs,
            live_jobs,
        }) = kept
        else {
            let told = if err.trim().is_empty() {
                status.to_string()
            } else {
                err.trim().to_owned()
            };
            anyhow::bail!(
                "the process that runs {:?} has not done so: {told}",
                command.get_program()
            );
        };
        let status = ExitStatus::from_raw(status);
        let time = passed.saturating_sub(suspended);
        Ok(Ended {
            status,
            time,
            suspended,
            out: String::new(),
            err,
            left,
            ended_jobs,
            live_jobs,
        })
    }

    /// Waits for a program; `before` is called when it has ended, and its group is still its own.
    fn wait(&self, child: &mut Child, before: impl FnOnce(i32)) -> anyhow::Result<ExitStatus> {
        let pid = Pid::from_child(child);
        let gone = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOWAIT,
        );
        let group = child.id() as i32;
        before(group);
        lock(&self.live).remove(&group);
        gone.context("waiting for a program")?;
        child.wait().context("waiting for a program")
    }

    /// Pauses all that run, and this process, until somebody continues it. No program starts meanwhile.
    pub(super) fn suspend(&self) {
        let mut live = lock(&self.live);
        for (&group, reach) in live.iter_mut() {
            match reach {
                Reach::Signals => to_group(group, Signal::TSTP),
                Reach::Keeper(line, _) => tell(line, STOP),
            }
        }
        // One that was continued before it has stopped would stop afterwards, and for ever.
        for (&group, reach) in live.iter() {
            match reach {
                Reach::Signals => Pid::from_raw(group).into_iter().for_each(wait_for_stop),
                Reach::Keeper(_, stopped) => drop(stopped.recv_timeout(STOPS)),
            }
        }
        let _ = kill_process(rustix::process::getpid(), Signal::STOP);
        for (&group, reach) in live.iter_mut() {
            match reach {
                Reach::Signals => to_group(group, Signal::CONT),
                Reach::Keeper(line, _) => tell(line, CONTINUE),
            }
        }
    }

    /// Whether the user asked them to end.
    pub(super) fn were_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed) > 0
    }

    /// Asks all that run to end by this signal. The user has asked for it as often as this was called.
    pub(super) fn signal(&self, number: i32) {
        let asked = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let signal = if asked < PATIENCE {
            Signal::from_named_raw(number)
        } else {
            Some(Signal::KILL)
        };
        let Some(signal) = signal else { return };
        for (&group, reach) in lock(&self.live).iter_mut() {
            match reach {
                Reach::Signals => to_group(group, signal),
                Reach::Keeper(line, _) => tell(line, &format!("{SIGNAL}{}", signal.as_raw())),
            }
        }
    }
}

/// The keeper that runs a command.
fn keeper_of(command: &Command, kind: Kind, folder: &Path) -> Command {
    let mut keeper = Command::new("/proc/self/exe");
    let kind = if kind == Kind::Run { "run" } else { "command" };
    keeper
        .arg0("run-keeper")
        .args(["keep", kind])
        .arg(folder)
        .arg("--");
    keeper.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => keeper.env(name, value),
            None => keeper.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        keeper.current_dir(folder);
    }
    keeper
}

fn spawn(command: &mut Command) -> anyhow::Result<Child> {
    command
        .spawn()
        .with_context(|| format!("can't start {:?}", command.get_program()))
}

fn tell(line: &mut ChildStdin, order: &str) {
    // Its program may have ended, and the keeper with it.
    let _ = line.write_all(format!("{order}\n").as_bytes());
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
    /// Of what it writes to this pipe so many bytes are kept.
    fn of(pipe: Option<impl Read + Send + 'static>, most: usize) -> Tail {
        let last: Arc<Mutex<VecDeque<u8>>> = Arc::default();
        let (closing, closed) = channel();
        let end = last.clone();
        let mut pipe = pipe;
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Some(count) = pipe
                .as_mut()
                .and_then(|pipe| pipe.read(&mut bytes).ok())
                .filter(|&count| count > 0)
            {
                let mut end = lock(&end);
                end.extend(&bytes[..count]);
                let more = end.len().saturating_sub(most);
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
