//! A process of its own for those who look at a run.
//!
//! The run has one thread and must never wait for anybody, and whoever looks may be slow, send garbage or vanish. So the
//! run only keeps a socket, which costs nothing while nobody connects. When somebody does, it starts a second process,
//! the window, and leaves the socket to that. The window asks the run for its state on a line on which neither waits for
//! the other; the run answers with a file in memory. When nobody has looked for a while the window ends, and the run
//! watches the socket itself again; so it does when the window was killed.

mod answer;
mod clients;
mod http;
mod line;
mod process;
mod serve;
mod stream;

pub use answer::WINDOW_SCHEMA;
pub use clients::Request;
pub use process::main;

use super::metrics::MetricsSocket;
use cosched_core::{Event, TaskId};
use cosched_linux::root::Root;
use cosched_linux::{Inbox, NoFolder, WindowPlace};
use cosched_report::Status;
use line::{Came, Door, Line, Told, Wish};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, BufWriter};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

/// After so many windows that died none is started any more.
const MOST_DEATHS: u32 = 3;
/// Messages of the window that are taken at once.
const MOST_WISHES: usize = 64;

/// A run's side of its window. Clones are the same window.
#[derive(Clone)]
pub(crate) struct Window {
    inner: Rc<Inner>,
}

struct Inner {
    /// Where others connect; nothing once nobody can.
    doors: RefCell<Rc<Doors>>,
    /// The place of the socket, which goes with the run.
    place: RefCell<Option<WindowPlace>>,
    /// That of metrics, which goes with it as well.
    metrics: RefCell<Option<MetricsSocket>>,
    open: RefCell<Option<Open>>,
    deaths: Cell<u32>,
    /// Why nobody can look any more, until somebody has asked.
    lost: RefCell<Option<String>>,
}

type Doors = Vec<(Door, OwnedFd)>;

/// A window that goes on.
struct Open {
    line: Rc<Line>,
    child: Child,
}

impl Window {
    /// Makes the socket; and why there is none, if it can't be made. No process is started before somebody connects, there or
    /// to the socket for metrics.
    pub(crate) fn new(root: &Root, metrics: Option<MetricsSocket>) -> (Window, Option<NoFolder>) {
        let (place, listener, problem) = match WindowPlace::make(root) {
            Ok((place, listener)) => (Some(place), Some(listener), None),
            Err(problem) => (None, None, Some(problem)),
        };
        let window = listener.map(|listener| (Door::Window, OwnedFd::from(listener)));
        let asked = metrics.as_ref().and_then(|metrics| match metrics {
            MetricsSocket::Tcp(listener) => Some((
                Door::MetricsTcp,
                listener.as_fd().try_clone_to_owned().ok()?,
            )),
            MetricsSocket::Unix(listener, _) => Some((
                Door::MetricsUnix,
                listener.as_fd().try_clone_to_owned().ok()?,
            )),
        });
        let inner = Inner {
            doors: RefCell::new(Rc::new(window.into_iter().chain(asked).collect())),
            place: RefCell::new(place),
            metrics: RefCell::new(metrics),
            open: RefCell::new(None),
            deaths: Cell::new(0),
            lost: RefCell::new(None),
        };
        (
            Window {
                inner: Rc::new(inner),
            },
            problem,
        )
    }

    /// What a run watches while it waits.
    pub(crate) fn inbox(&self) -> Box<dyn Inbox> {
        Box::new(Watched::of(&self.inner))
    }

    /// Answers the window. If it has not taken the answer before, this one is left out.
    pub(crate) fn show(&self, status: &Status) {
        let open = self.inner.open.borrow();
        let Some(open) = &*open else { return };
        // Without memory or descriptors whoever looks sees an older state, with its age.
        let _ = in_memory(status).and_then(|file| open.line.send(&Told::Status, &[file.as_fd()]));
    }

    /// Why nobody can look any more; told once.
    pub(crate) fn take_lost(&self) -> Option<String> {
        self.inner.lost.borrow_mut().take()
    }
}

/// The state as a file in memory.
fn in_memory(status: &Status) -> io::Result<File> {
    let mut file = BufWriter::new(File::from(memfd_create(
        "cosched-status",
        MemfdFlags::CLOEXEC,
    )?));
    serde_json::to_writer(&mut file, status)?;
    file.into_inner().map_err(io::IntoInnerError::into_error)
}

impl Inner {
    /// Starts a window. Those who have connected wait in the sockets until it takes them.
    fn open(&self) {
        match self.start() {
            Ok(open) => drop(self.open.replace(Some(open))),
            Err(error) => self.died(&format!("no process could be started for it: {error}")),
        }
    }

    fn start(&self) -> io::Result<Open> {
        let (line, theirs) = Line::pair()?;
        let doors = self.doors.borrow().clone();
        let fds: Vec<BorrowedFd<'_>> = doors.iter().map(|(_, fd)| fd.as_fd()).collect();
        line.send(
            &Told::Serve(doors.iter().map(|(door, _)| *door).collect()),
            &fds,
        )?;
        let mut command = Command::new("/proc/self/exe");
        // It keeps no folder from being removed, and is taken for no job.
        command
            .arg0("cosched")
            .arg("window")
            .env_clear()
            .current_dir("/");
        command
            .stdin(theirs)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn()?;
        Ok(Open {
            line: Rc::new(line),
            child,
        })
    }

    /// A window has died, or could not be started.
    fn died(&self, why: &str) {
        self.deaths.set(self.deaths.get() + 1);
        if self.deaths.get() == MOST_DEATHS {
            self.lost
                .replace(Some(format!("{why}, {MOST_DEATHS} times")));
            self.doors.replace(Rc::default());
            self.place.replace(None);
            self.metrics.replace(None);
        }
    }

    /// Takes what the window wishes. Returns whether it goes on.
    fn hear(&self, line: &Line, events: &mut Vec<Event>) -> bool {
        let mut is_wanted = false;
        let mut goes_on = true;
        for _ in 0..MOST_WISHES {
            match line.take() {
                Came::Message(Wish::Status, _) => is_wanted = true,
                Came::Message(Wish::End { job, name }, _) => {
                    events.push(Event::EndTask {
                        task: TaskId(job),
                        name,
                    });
                }
                Came::Message(Wish::Leaving, _) => goes_on = false,
                Came::Nonsense => {}
                Came::Nothing => break,
                Came::End => {
                    if goes_on {
                        self.died("the process that serves those who look died");
                    }
                    goes_on = false;
                }
            }
            if !goes_on {
                break;
            }
        }
        if is_wanted && goes_on {
            events.push(Event::Watched);
        }
        goes_on
    }
}

/// What a run watches: the window's line while there is a window, else the sockets.
struct Watched {
    inner: Rc<Inner>,
    doors: Rc<Doors>,
    line: Option<Rc<Line>>,
}

impl Watched {
    fn of(inner: &Rc<Inner>) -> Watched {
        let line = inner.open.borrow().as_ref().map(|open| open.line.clone());
        Watched {
            inner: inner.clone(),
            doors: inner.doors.borrow().clone(),
            line,
        }
    }
}

impl Inbox for Watched {
    fn lines(&self) -> Vec<BorrowedFd<'_>> {
        match &self.line {
            Some(line) => vec![line.as_fd()],
            None => self.doors.iter().map(|(_, fd)| fd.as_fd()).collect(),
        }
    }

    fn take(&mut self, events: &mut Vec<Event>) {
        let open = self.inner.open.take();
        match open {
            None => self.inner.open(),
            Some(mut open) => {
                if self.inner.hear(&open.line, events) {
                    self.inner.open.replace(Some(open));
                } else {
                    // One that has not ended by now is reaped with other children.
                    let _ = open.child.try_wait();
                }
            }
        }
        *self = Watched::of(&self.inner);
    }
}
