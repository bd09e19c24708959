//! Programs that are started while this process holds signals back, such as the runs of a comparison.

use crate::interrupts::{Interrupts, inherited};
use crate::sys;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Lets a program start as if it had been started in place of this one: signals do what they did then, though this process
/// holds some back. It gets a process group of its own, so that a Ctrl-C on the terminal reaches only this process, which
/// decides; and SIGTERM when the thread that starts it ends, so that it does not outlive a process that was killed.
pub fn settle_child(command: &mut Command, signals: &Interrupts) {
    command.process_group(0);
    sys::before_exec(command, signals.mask(), inherited());
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
