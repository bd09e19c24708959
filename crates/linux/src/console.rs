//! The processes that a run starts beside its jobs, so that it never waits for a terminal or for those who look at it; and the
//! one that a comparison puts between itself and each program that it runs.

use crate::sys;
use rustix::thread::set_name;

/// Makes this process a run's console: it has a name of its own in `ps`, and no signal but SIGKILL and SIGSTOP ends or stops
/// it. Signals from the terminal are meant for the run; a console that outlives the run ends by itself.
pub fn become_console() {
    sys::ignore_signals();
    let _ = set_name(c"cosched-console");
}

/// Makes this process a run's window, in the same way.
pub fn become_window() {
    sys::ignore_signals();
    let _ = set_name(c"cosched-window");
}

/// Makes this process the keeper of a program that a comparison runs: no signal but SIGKILL and SIGSTOP ends or stops it. Its name
/// does not contain that of cosched, so that `pkill cosched` does not end both at once. Call it when the signals are held that its
/// program is to have as they were.
pub fn become_keeper() {
    sys::ignore_signals();
    let _ = set_name(c"run-keeper");
}
