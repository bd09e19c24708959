//! What a service needs of this machine: a socket from systemd, a child that dies with it, other processes by number.

use crate::process::Process;
use crate::root::Root;
use crate::runtime::{NoFolder, PrivateFolder};
use crate::sys;
use std::io;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// The first descriptor that systemd passes, as `SD_LISTEN_FDS_START` in sd_listen_fds(3).
const FIRST_SOCKET: i32 = 3;

/// The variables by which systemd passes sockets.
pub const SOCKET_VARIABLES: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Takes the listening socket that systemd opened for this process; `None` without one. Call it once, at the start.
///
/// # Errors
/// The descriptor is not open.
pub fn socket_of_systemd() -> io::Result<Option<UnixListener>> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok();
    let is_ours = number("LISTEN_PID") == Some(std::process::id());
    if !is_ours || number("LISTEN_FDS") != Some(1) {
        return Ok(None);
    }
    Ok(Some(sys::take_descriptor(FIRST_SOCKET)?.into()))
}

/// Gives a child a process group of its own, and SIGKILL when the thread that starts it ends.
pub fn kill_with_parent(command: &mut Command) {
    command.process_group(0);
    sys::kill_with_parent(command);
}

/// The path of a file in the caller's own runtime folder, which is made if needed.
///
/// # Errors
/// There is no such folder.
pub fn runtime_file(root: &Root, name: &str) -> Result<PathBuf, NoFolder> {
    Ok(PrivateFolder::own(root)?.path_of(name))
}

/// Whether a signal has stopped this process.
pub fn is_stopped(root: &Root, pid: i32) -> bool {
    Process::read(root, pid).is_some_and(|process| process.is_stopped())
}

/// The start time of a process, in ticks since boot; `None` when it is gone.
pub fn start_time(root: &Root, pid: i32) -> Option<u64> {
    Some(Process::read(root, pid)?.start)
}
