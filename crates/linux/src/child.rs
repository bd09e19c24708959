//! Programs that are started while this process holds signals back, such as the runs of a comparison.

use crate::interrupts::{Interrupts, inherited};
use crate::process::{Process, all_pids};
use crate::root::Root;
use crate::sys::{self, RawPid};
use rustix::process::{Pid, Signal, kill_process_group};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Lets a program start as if it had been started in place of this one: signals do what they did then, though this process
/// holds some back. It gets a process group of its own, so that a Ctrl-C on the terminal reaches only this process, which
/// decides; and SIGTERM when the thread that starts it ends, so that it does not outlive a process that was killed.
pub fn settle_child(command: &mut Command, signals: &Interrupts) {
    command.process_group(0);
    sys::before_exec(command, signals.mask(), inherited());
}

/// Ends what a program that [`settle_child`] settled has left in its process group, and tells how many processes that were.
/// The program itself must have ended, and nobody may have waited for it yet: until then no other group has its number.
pub fn end_rest(leader: RawPid) -> usize {
    let root = Root::default();
    let is_left = |process: &Process| process.group == leader && process.pid != leader && !process.is_dead();
    let left = all_pids(&root).into_iter().filter_map(|pid| Process::read(&root, pid)).filter(is_left).count();
    if let Some(group) = Pid::from_raw(leader).filter(|_| left > 0) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    use std::io::Read as _;
    use std::process::Stdio;

    #[test]
    fn what_a_program_leaves_is_ended() {
        let signals = Interrupts::hold().expect("signals can be held");
        for (line, left) in [("exec sleep 0", 0), ("sleep 1000 & sleep 1000 & exit 0", 2)] {
            let mut command = Command::new("/bin/sh");
            command.args(["-c", line]);
            settle_child(&mut command, &signals);
            let mut child = command.spawn().expect("a shell starts");
            let pid = child.id() as RawPid;
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            waitid(WaitId::Pid(Pid::from_raw(pid).expect("a process")), options).expect("it ends");
            assert_eq!(end_rest(pid), left, "{line}");
            assert!(child.wait().expect("it is there").success());
            let root = Root::default();
            let is_in = |process: &Process| process.group == pid && !process.is_dead();
            while all_pids(&root).into_iter().filter_map(|pid| Process::read(&root, pid)).any(|one| is_in(&one)) {
                std::thread::yield_now();
            }
        }
    }

    #[test]
    fn a_child_has_no_signals_blocked() {
        let signals = Interrupts::hold().expect("signals can be held");
        let masks = |settle: bool| {
            let mut command = Command::new("grep");
            command.args(["-E", "^Sig(Blk|Ign)", "/proc/self/status"]).stdout(Stdio::piped());
            if settle {
                settle_child(&mut command, &signals);
            }
            let mut child = command.spawn().expect("grep starts");
            let mut text = String::new();
            child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
            assert!(child.wait().expect("it ends").success());
            text
        };
        let blocked = |text: &str| {
            let line = text.lines().find(|line| line.starts_with("SigBlk")).expect("a line").to_owned();
            u64::from_str_radix(line.split_whitespace().last().expect("a mask"), 16).expect("hexadecimal digits")
        };
        let (with, without) = (blocked(&masks(true)), blocked(&masks(false)));
        // SIGINT would not do: what a shell starts in the background ignores it, and what is ignored is not held.
        let ending = 1 << (libc::SIGTERM - 1);
        assert_eq!((with & ending, without & ending), (0, ending));
    }
}
