//! Programs started while this process blocks signals, such as the runs of a comparison.

use crate::interrupts::{inherited, inherited_mask};
use crate::sys;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Gives a child the signal dispositions that this process inherited, although it blocks some signals now. The child
/// gets its own process group, so that Ctrl-C on the terminal reaches only this process, which decides what to do. It
/// gets SIGTERM when its parent thread ends, so that it does not outlive a killed process.
pub fn settle_child(command: &mut Command) {
    command.process_group(0);
    settle_helper(command);
}

/// The same for a child in this process's group: Ctrl-C on the terminal reaches both.
pub fn settle_helper(command: &mut Command) {
    sys::before_exec(command, inherited_mask(), inherited());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupts::Interrupts;
    use std::io::Read as _;
    use std::process::Stdio;

    #[test]
    fn a_child_has_no_signals_blocked() {
        let _signals = Interrupts::hold().expect("signals can be held");
        let masks = |settle: bool| {
            let mut command = Command::new("grep");
            command
                .args(["-E", "^Sig(Blk|Ign)", "/proc/self/status"])
                .stdout(Stdio::piped());
            if settle {
                settle_child(&mut command);
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
        // SIGINT would not do: a shell's background jobs ignore it, and ignored signals are not blocked.
        let ending = 1 << (libc::SIGTERM - 1);
        assert_eq!((with & ending, without & ending), (0, ending));
    }
}
