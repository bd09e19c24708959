//! The helper process that a run starts beside its jobs, so that the run never waits for a terminal.

use crate::sys;
use rustix::thread::set_name;
use std::ffi::CStr;

/// Makes this process a helper of a run: it has its own name in `ps`, and only SIGKILL and SIGSTOP can end or stop it.
/// Signals from the terminal are for the run; a helper that outlives the run ends by itself.
///
/// A name without "cosched" prevents `pkill cosched` from ending both at once.
pub fn become_helper(name: &CStr) {
    sys::ignore_signals();
    let _ = set_name(name);
}
