//! The process that shows a run's output, so that the run itself never waits for a terminal.

use crate::sys;

/// Makes this process a run's console: it has a name of its own in `ps`, and no signal but SIGKILL and SIGSTOP ends or stops
/// it. Signals from the terminal are meant for the run; a console that outlives the run ends by itself.
pub fn become_console() {
    sys::ignore_signals();
    sys::set_name(c"cosched-console");
}
