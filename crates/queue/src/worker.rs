//! The worker: a child of the service that runs the jobs.

use crate::folder::JobsFolder;
use crate::queue::{JobQueue, WorkerOrder};
use cosched_linux::service::{SOCKET_VARIABLES, kill_with_parent};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::ffi::OsString;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread;

/// The command of the worker: a run whose jobs come through its standard input, each with a reaper. `run` is its log folder.
pub(crate) fn words(
    program: &Path,
    folder: &JobsFolder,
    run: &Path,
    options: &[OsString],
) -> Vec<OsString> {
    let fixed = ["run", "-f", "-", "--progress-to", "1", "--output", "none"];
    let mut words = vec![program.into()];
    words.extend(fixed.map(OsString::from));
    words.extend(["--quiet".into(), "--reaper".into(), folder.claims().into()]);
    words.extend(["--logs".into(), run.into()]);
    words.extend_from_slice(options);
    words
}

/// Starts a worker, and waits until it has ended. It dies with the thread that calls this. Returns its exit code; `None`
/// if a signal ended it.
///
/// # Errors
/// It can't be started.
pub(crate) fn run(
    queue: &Arc<JobQueue>,
    words: &[OsString],
    orders: Receiver<WorkerOrder>,
) -> io::Result<Option<i32>> {
    let mut child = command(words).stdout(Stdio::piped()).spawn()?;
    let pid = child.id();
    queue.set_worker(Some(pid));
    if let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) {
        let (feeding, following) = (Arc::clone(queue), Arc::clone(queue));
        thread::spawn(move || feed(&feeding, &orders, input));
        thread::spawn(move || follow(&following, pid, output));
    }
    let end = wait(pid as i32);
    queue.set_worker(None);
    end
}

/// Lets a worker plan a job and start none. Returns its exit code, which says whether its options are right; `None` if a
/// signal ended it.
///
/// # Errors
/// It can't be started.
pub(crate) fn check(words: &[OsString]) -> io::Result<Option<i32>> {
    let mut command = command(words);
    let mut child = command.arg("--dry-run").stdout(Stdio::null()).spawn()?;
    if let Some(mut input) = child.stdin.take() {
        // One that refuses its options reads nothing.
        let _ = writeln!(input, r#"{{"id": "0", "command": "true"}}"#);
    }
    Ok(child.wait()?.code())
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::piped());
    for variable in SOCKET_VARIABLES {
        command.env_remove(variable);
    }
    kill_with_parent(&mut command);
    command
}

/// Writes the orders, until none will come or the worker is gone.
fn feed(queue: &JobQueue, orders: &Receiver<WorkerOrder>, mut input: ChildStdin) {
    for order in orders {
        if let Some(line) = queue.order_line(&order)
            && writeln!(input, "{line}").is_err()
        {
            return;
        }
    }
}

/// Notes what the worker says.
fn follow(queue: &JobQueue, pid: u32, output: ChildStdout) {
    for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
        queue.note(pid, &line);
    }
}

/// Waits for the worker. It is continued if something stops it.
fn wait(pid: i32) -> io::Result<Option<i32>> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    loop {
        let what = WaitIdOptions::EXITED | WaitIdOptions::STOPPED;
        match waitid(WaitId::Pid(pid), what) {
            Ok(Some(status)) if status.stopped() => {
                let _ = kill_process(pid, Signal::CONT);
            }
            Ok(Some(status)) => return Ok(status.exit_status()),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
