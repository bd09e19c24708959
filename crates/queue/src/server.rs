//! The service: its socket, its clients, and the worker that it starts again when one dies.
//!
//! It can be killed at any moment, and handles no signal: to stop it is to kill it.

use crate::claim::ReaperFolder;
use crate::error::QueueError;
use crate::folder::QueueFolder;
use crate::notice::ServiceNotice;
use crate::protocol::{QueueAnswer, QueueRequest, read_request, write_line};
use crate::queue::{Describe, JobQueue};
use crate::worker;
use cosched_linux::service::socket_of_systemd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use std::ffi::OsString;
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of clients. With them the service stays below the usual limit of 1,024 open files.
const MOST_CLIENTS: usize = 1_000;

/// How long a client may take to read an answer.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may say nothing.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Stack of the thread of a client.
const STACK: usize = 512 << 10;

/// Least time between two starts of a worker, and between two attempts to do what failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Turns between two looks for jobs that ended long ago: an hour.
const FORGET_EVERY: u32 = 3_600;

/// What a service is started with.
pub struct ServiceConfig {
    /// Where it keeps its files.
    pub folder: QueueFolder,
    /// The path of its socket, unless systemd passes one.
    pub socket: PathBuf,
    /// The program of the worker: cosched.
    pub program: PathBuf,
    /// Options of the worker, which is a run.
    pub options: Vec<OsString>,
    /// Checks the line of a job.
    pub describe: Describe,
    /// The version of cosched.
    pub version: &'static str,
    /// Says something to who started the service.
    pub tell: fn(&ServiceNotice),
}

/// Serves the queue until it is drained.
///
/// # Errors
/// Another service has the queue, or its folder, its socket or its worker can't be used.
pub fn serve(config: ServiceConfig) -> Result<(), QueueError> {
    let ServiceConfig { folder, socket, .. } = &config;
    let _lock = folder.lock()?;
    let queue = JobQueue::open(folder, config.describe, config.version)?;
    let queue = Arc::new(queue);
    let run = folder.run();
    let worker = worker::words(&config.program, queue.folder(), &run, &config.options);
    let checked = worker::check(&worker);
    refused(checked.map_err(|error| QueueError::at(&config.program, error))?)?;
    tell_old_jobs(folder, &queue, config.tell);
    let passed = socket_of_systemd().map_err(|error| QueueError::at(socket, error))?;
    let is_own = passed.is_none();
    let listener = match passed {
        Some(listener) => listener,
        None => listen(socket)?,
    };
    (config.tell)(&ServiceNotice::Serving {
        socket: socket.clone(),
    });
    let (listening, tidying) = (Arc::clone(&queue), Arc::clone(&queue));
    thread::spawn(move || welcome(&listening, &listener));
    thread::spawn(move || {
        for turn in 0u32.. {
            if turn.is_multiple_of(FORGET_EVERY) {
                tidying.forget_old();
            }
            thread::sleep(PAUSE);
            tidying.tidy();
        }
    });
    work(&queue, &worker, &run)?;
    if is_own {
        let _ = std::fs::remove_file(socket);
    }
    Ok(())
}

/// Says which jobs of databases that were moved away still run.
fn tell_old_jobs(folder: &QueueFolder, queue: &JobQueue, tell: fn(&ServiceNotice)) {
    for other in folder.of_other_databases(queue.folder()) {
        let living = ReaperFolder::new(other.claims()).living();
        let reapers: Vec<i32> = living.iter().map(|reaper| reaper.pid).collect();
        if !reapers.is_empty() {
            let folder = other.path().to_owned();
            tell(&ServiceNotice::OldJobs { folder, reapers });
        }
    }
}

/// Keeps a worker running until the queue is drained.
fn work(queue: &Arc<JobQueue>, words: &[OsString], run: &Path) -> Result<(), QueueError> {
    let claims = queue.folder().claims();
    loop {
        let orders = queue
            .recover()
            .map_err(|error| QueueError::at(&claims, error))?;
        let Some(orders) = orders else {
            return Ok(());
        };
        // The log folder of the last worker would be kept inside that of the next.
        let _ = std::fs::remove_dir_all(run);
        let started = Instant::now();
        let end = worker::run(queue, words, orders);
        refused(end.map_err(|error| QueueError::at(Path::new(&words[0]), error))?)?;
        thread::sleep(PAUSE.saturating_sub(started.elapsed()));
    }
}

/// An error if a worker ended with this code because it refused its options, or this machine.
fn refused(code: Option<i32>) -> Result<(), QueueError> {
    match code {
        Some(code @ 2..=4) => Err(QueueError::Worker(code as u8)),
        _ => Ok(()),
    }
}

/// Listens at a path. A socket that a killed service has left there is replaced.
fn listen(path: &Path) -> Result<UnixListener, QueueError> {
    let bound = match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            if UnixStream::connect(path).is_ok() {
                return Err(QueueError::Served(format!(
                    "a service at {}",
                    path.display()
                )));
            }
            std::fs::remove_file(path).and_then(|()| UnixListener::bind(path))
        }
        bound => bound,
    };
    bound.map_err(|error| QueueError::at(path, error))
}

/// Gives each client a thread.
fn welcome(queue: &Arc<JobQueue>, listener: &UnixListener) {
    // Each client holds a reference.
    let clients = Arc::new(());
    for client in listener.incoming() {
        let Ok(client) = client else {
            // There are too many open files.
            thread::sleep(PAUSE / 10);
            continue;
        };
        let refusal = if !is_permitted(&client) {
            Some("the queue belongs to another user; start your own with `cosched serve`")
        } else if Arc::strong_count(&clients) > MOST_CLIENTS {
            Some("1,000 clients are connected; try again when one has left")
        } else {
            None
        };
        if let Some(why) = refusal {
            let error = why.to_owned();
            // A new socket has room for this.
            let _ = write_line(&client, &QueueAnswer::Error { error });
            continue;
        }
        let (queue, token) = (Arc::clone(queue), Arc::clone(&clients));
        let thread = thread::Builder::new().stack_size(STACK);
        let _ = thread.spawn(move || {
            // A client that is gone, or does not read, is its own affair.
            let _ = talk(&queue, &client);
            drop(token);
        });
    }
}

/// Whether it is the user of this process. Root becomes that user: its own variables are not for others.
fn is_permitted(client: &UnixStream) -> bool {
    let user = rustix::process::geteuid();
    socket_peercred(client).is_ok_and(|peer| peer.uid == user)
}

/// Answers a client until it leaves.
fn talk(queue: &JobQueue, client: &UnixStream) -> io::Result<()> {
    client.set_write_timeout(Some(WRITE_TIMEOUT))?;
    client.set_read_timeout(Some(READ_TIMEOUT))?;
    let mut reader = BufReader::new(client);
    while let Some(request) = read_request(&mut reader)? {
        match request {
            Ok(QueueRequest::Wait(ids)) => wait(queue, client, ids)?,
            Ok(request) => write_line(client, &queue.answer(request))?,
            Err(error) => write_line(client, &QueueAnswer::Error { error })?,
        }
    }
    Ok(())
}

/// Reports jobs as they end.
fn wait(queue: &JobQueue, client: &UnixStream, ids: Vec<u64>) -> io::Result<()> {
    let mut ids = match queue.awaited(ids) {
        Ok(ids) => ids,
        Err(error) => return write_line(client, &QueueAnswer::Error { error }),
    };
    while !ids.is_empty() {
        let over = match queue.over(&ids) {
            Ok(over) => over,
            Err(error) => return write_line(client, &QueueAnswer::Error { error }),
        };
        ids.retain(|id| over.iter().all(|job| job.id != *id));
        for ended in over {
            let ended = Box::new(ended);
            write_line(client, &QueueAnswer::Ended { ended })?;
        }
        if has_left(client) {
            return Err(ErrorKind::BrokenPipe.into());
        }
    }
    write_line(client, &QueueAnswer::Done { done: true })
}

/// Whether a client has closed its socket.
fn has_left(client: &UnixStream) -> bool {
    let mut fds = [PollFd::new(client, PollFlags::empty())];
    let polled = poll(&mut fds, Some(&Timespec::default()));
    polled.is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
