//! The processes that a run starts beside its jobs, so that it never waits for a terminal or for those who look at it.

use crate::sys;

/// Makes this process a run's console: it has a name of its own in `ps`, and no signal but SIGKILL and SIGSTOP ends or stops
/// it. Signals from the terminal are meant for the run; a console that outlives the run ends by itself.
pub fn become_console() {
    sys::ignore_signals();
    sys::set_name(c"cosched-console");
}

/// Makes this process a run's window, in the same way.
pub fn become_window() {
    sys::ignore_signals();
    sys::set_name(c"cosched-window");
}
