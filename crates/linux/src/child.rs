//! Programs that are started while this process holds signals back, such as the runs of a comparison.

use crate::interrupts::{Interrupts, inherited};
use crate::process::{Process, all_pids};
use crate::root::Root;
use crate::sys::{self, RawPid};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, child_subreaper, getpid, set_child_subreaper, waitid,
};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::{Duration, Instant};

/// Lets a program start as if it had been started in place of this one: signals do what they did then, though this process
/// holds some back. It gets a process group of its own, so that a Ctrl-C on the terminal reaches only this process, which
/// decides; and SIGTERM when the thread that starts it ends, so that it does not outlive a process that was killed.
pub fn settle_child(command: &mut Command, signals: &Interrupts) {
    command.process_group(0);
    sys::before_exec(command, signals.mask(), inherited());
}

/// Makes orphans of what this process starts its own children, so that [`Leftovers`] finds them in whatever session they are.
/// Call it before anything is started. A process that was begun with children, as by a shell's `exec`, leaves it: it could not
/// tell their orphans from its own.
pub fn adopt_orphans() {
    if descendants(&BTreeSet::new()).is_empty() {
        // Where it can't be had, what left the process group is not found.
        let _ = set_child_subreaper(Some(getpid()));
    }
}

/// What a program leaves behind, of programs that this process starts one after the other.
pub struct Leftovers {
    /// Who was there before; their children are not the program's.
    before: BTreeSet<Life>,
}

/// A process and when it started.
type Life = (RawPid, u64);

/// Longest wait for killed processes. One that waits for a device may never end.
const PATIENCE: Duration = Duration::from_secs(5);

impl Leftovers {
    /// Remembers who is there before the program starts.
    pub fn before() -> Leftovers {
        let all = descendants(&BTreeSet::new());
        reap(&all, None);
        Leftovers {
            before: all.iter().map(life).collect(),
        }
    }

    /// The processes of the program: its group, and, of a process that adopts orphans, whoever descends from it.
    fn now(&self, leader: RawPid) -> Vec<Process> {
        let mut all = if adopts() {
            descendants(&self.before)
        } else {
            Vec::new()
        };
        let known: BTreeSet<RawPid> = all.iter().map(|process| process.pid).collect();
        all.extend(
            everybody()
                .into_iter()
                .filter(|one| one.group == leader && !known.contains(&one.pid)),
        );
        all
    }

    /// Sends a signal to all processes of the program that `leader` leads, until no further ones are found.
    pub fn signal(&self, leader: RawPid, signal: Signal) {
        let root = Root::default();
        let mut told: BTreeSet<Life> = BTreeSet::new();
        loop {
            let now = self.now(leader);
            let new: Vec<&Process> = now
                .iter()
                .filter(|one| !is_gone(one) && !told.contains(&life(one)))
                .collect();
            if new.is_empty() {
                break;
            }
            for process in new {
                process.signal(&root, signal);
                told.insert(life(process));
            }
        }
    }

    /// Whether any process of the program is left that has not ended.
    pub fn any(&self, leader: RawPid) -> bool {
        self.now(leader).iter().any(|one| !is_gone(one))
    }

    /// Ends what the program has left, and tells how many processes that were. Its leader must have ended, and nobody may have
    /// waited for it yet: until then no other group has its number.
    pub fn end(&self, leader: RawPid) -> usize {
        let root = Root::default();
        let mut ended: BTreeSet<Life> = BTreeSet::new();
        let began = Instant::now();
        loop {
            let now = self.now(leader);
            reap(&now, Some(leader));
            let live: Vec<&Process> = now
                .iter()
                .filter(|one| one.pid != leader && !is_gone(one))
                .collect();
            if live.is_empty() || began.elapsed() > PATIENCE {
                return ended.len();
            }
            for process in live {
                process.signal(&root, Signal::KILL);
                ended.insert(life(process));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn life(process: &Process) -> Life {
    (process.pid, process.start)
}

/// Whether it has ended, with all of its threads.
fn is_gone(process: &Process) -> bool {
    process.is_dead() && process.threads <= 1
}

fn adopts() -> bool {
    child_subreaper().is_ok_and(|reaper| reaper.is_some())
}

fn everybody() -> Vec<Process> {
    let root = Root::default();
    all_pids(&root)
        .into_iter()
        .filter_map(|pid| Process::read(&root, pid))
        .collect()
}

/// The descendants of this process but for those in `without` and what descends from them.
fn descendants(without: &BTreeSet<Life>) -> Vec<Process> {
    let mut others = everybody();
    others.retain(|process| !without.contains(&life(process)));
    let mut parents: BTreeSet<RawPid> = BTreeSet::from([std::process::id() as RawPid]);
    let mut found = Vec::new();
    while !parents.is_empty() {
        let (children, rest) = others
            .into_iter()
            .partition(|one: &Process| parents.contains(&one.parent));
        others = rest;
        parents = children.iter().map(|one| one.pid).collect();
        found.extend(children);
    }
    found
}

/// Waits for the dead children of this process among these, but not for `keep`.
fn reap(all: &[Process], keep: Option<RawPid>) {
    let own = std::process::id() as RawPid;
    let dead = all
        .iter()
        .filter(|one| is_gone(one) && one.parent == own && Some(one.pid) != keep);
    for pid in dead.filter_map(|one| Pid::from_raw(one.pid)) {
        let _ = waitid(
            WaitId::Pid(pid),
            WaitIdOptions::EXITED | WaitIdOptions::NOHANG,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::process::Stdio;

    #[test]
    fn a_child_has_no_signals_blocked() {
        let signals = Interrupts::hold().expect("signals can be held");
        let masks = |settle: bool| {
            let mut command = Command::new("grep");
            command
                .args(["-E", "^Sig(Blk|Ign)", "/proc/self/status"])
                .stdout(Stdio::piped());
            if settle {
                settle_child(&mut command, &signals);
            }
            let mut child = command.spawn().expect("grep starts");
            let mut text = String::new();
            child
                .stdout
                .take()
                .expect("a pipe")
                .read_to_string(&mut text)
                .expect("text");
            assert!(child.wait().expect("it ends").success());
            text
        };
        let blocked = |text: &str| {
            let line = text
                .lines()
                .find(|line| line.starts_with("SigBlk"))
                .expect("a line")
                .to_owned();
            u64::from_str_radix(line.split_whitespace().last().expect("a mask"), 16)
                .expect("hexadecimal digits")
        };
        let (with, without) = (blocked(&masks(true)), blocked(&masks(false)));
        // SIGINT would not do: what a shell starts in the background ignores it, and what is ignored is not held.
        let ending = 1 << (libc::SIGTERM - 1);
        assert_eq!((with & ending, without & ending), (0, ending));
    }
}
