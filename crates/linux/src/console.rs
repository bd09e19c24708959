//! The process that a run starts beside its jobs, so that it never waits for a terminal.

use crate::sys;
use rustix::thread::set_name;
use std::ffi::CStr;

/// Makes this process a helper of a run: it has a name of its own in `ps`, and no signal but SIGKILL and SIGSTOP ends or
/// stops it. Signals from the terminal are meant for the run; a helper that outlives the run ends by itself.
///
/// A name that does not contain that of cosched keeps `pkill cosched` from ending both at once.
pub fn become_helper(name: &CStr) {
    sys::ignore_signals();
    let _ = set_name(name);
}
