//! Waits for the nodes, the user and others, and takes what they say.

use super::{Cluster, ClusterError};
use crate::link::{BEAT, WorkerRead};
use crate::node::FrameNews;
use crate::protocol::NodeOrder;
use cosched_core::{Event, Nanos, TaskId};
use cosched_linux::{Interrupt, LiveSettings, RunRequest, RunRequests};
use cosched_report::RunWarning;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// How long the workers may take to end after the last job.
const CLOSE: Duration = Duration::from_secs(30);

/// What a descriptor is.
#[derive(Clone, Copy)]
enum Source {
    Signals,
    Requests,
    Input,
    Node(usize),
    Unsent(usize),
}

/// What there is to do.
#[derive(Default)]
pub(super) struct Ready {
    has_signal: bool,
    pub(super) signal: Option<Interrupt>,
    has_requests: bool,
    has_input: bool,
    /// Nodes that have said something.
    nodes: Vec<usize>,
    /// Nodes that take more.
    unsent: Vec<usize>,
}

fn wait_for(
    sources: &[(Source, BorrowedFd<'_>, PollFlags)],
    timeout: Option<Duration>,
) -> Result<Ready, ClusterError> {
    let mut polled: Vec<PollFd> = sources
        .iter()
        .map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags))
        .collect();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(Ready::default()),
        Err(error) => {
            return Err(ClusterError::System {
                what: "waiting for the nodes",
                source: error.into(),
            });
        }
    }
    let mut ready = Ready::default();
    for ((source, ..), polled) in sources.iter().zip(&polled) {
        if polled.revents().is_empty() {
            continue;
        }
        match *source {
            Source::Signals => ready.has_signal = true,
            Source::Requests => ready.has_requests = true,
            Source::Input => ready.has_input = true,
            Source::Unsent(index) => ready.unsent.push(index),
            Source::Node(index) if ready.nodes.last() == Some(&index) => {}
            Source::Node(index) => ready.nodes.push(index),
        }
    }
    Ok(ready)
}

impl Cluster {
    /// Waits for something to do, at most so long.
    pub(super) fn poll(&mut self, timeout: Option<Duration>) -> Result<Ready, ClusterError> {
        let mut sources = vec![(Source::Signals, self.interrupts.as_fd(), PollFlags::IN)];
        if let Some(requests) = &self.requests {
            sources.push((Source::Requests, requests.as_fd(), PollFlags::IN));
        }
        if let Some(input) = self.input.as_ref().filter(|_| self.wakes_at_input) {
            sources.push((Source::Input, input.as_fd(), PollFlags::IN));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            let Some(link) = &node.link else { continue };
            for output in link.outputs() {
                sources.push((Source::Node(index), output, PollFlags::IN));
            }
            if let Some(input) = link.unsent() {
                sources.push((Source::Unsent(index), input, PollFlags::OUT));
            }
        }
        let mut ready = wait_for(&sources, timeout)?;
        if ready.has_signal {
            ready.signal = self.interrupts.next_signal();
        }
        Ok(ready)
    }

    /// Reads the workers that have said something, and writes to those that take more.
    pub(super) fn hear(&mut self, ready: &Ready, events: &mut Vec<Event>) {
        for &index in &ready.unsent {
            if let Some(link) = &mut self.nodes[index].link {
                link.flush();
            }
        }
        for &index in &ready.nodes {
            self.hear_node(index, events);
        }
        for piece in self.pieces.drain(..) {
            (self.tell.output)(piece);
        }
    }

    fn hear_node(&mut self, index: usize, events: &mut Vec<Event>) {
        let now = self.elapsed();
        let mut news = FrameNews {
            jobs: &mut self.jobs,
            events,
            infos: &self.infos,
            warnings: &mut self.warnings,
            pieces: &mut self.pieces,
            now,
        };
        match self.nodes[index].read(&mut self.buffer, &mut news) {
            Ok(WorkerRead::Goes) => {}
            Ok(WorkerRead::Ended) if self.is_closing => self.nodes[index].leave(),
            Ok(WorkerRead::Ended) => self.lose(index, "its worker has ended", events),
            Err(error) => self.lose(index, &error.to_string(), events),
        }
    }

    pub(super) fn take_news(&mut self, ready: &Ready, events: &mut Vec<Event>) {
        match ready.signal {
            Some(Interrupt::End(signal)) => events.push(Event::Interrupt { signal }),
            Some(Interrupt::Suspend) => self.warn_without("Ctrl-Z"),
            None => {}
        }
        if ready.has_requests {
            let requests = self.requests.as_mut().map(RunRequests::take);
            for request in requests.into_iter().flatten() {
                self.grant(request, events);
            }
        }
        if ready.has_input && std::mem::take(&mut self.wakes_at_input) {
            events.push(Event::Arrivals);
        }
        self.hear(ready, events);
    }

    fn grant(&mut self, request: RunRequest, events: &mut Vec<Event>) {
        match request {
            RunRequest::End { end, name } => events.push(Event::EndTask {
                task: TaskId(end),
                name,
            }),
            RunRequest::Set(LiveSettings { jobs, pause }) => {
                if let Some(jobs) = jobs {
                    let limit = if jobs == 0 { usize::MAX } else { jobs as usize };
                    events.push(Event::JobLimit(limit));
                    self.warnings.push(RunWarning::JobLimit { jobs });
                }
                if pause.is_some() {
                    self.warn_without("pause");
                }
            }
        }
    }

    fn warn_without(&mut self, what: &str) {
        let what = what.to_owned();
        self.warnings.push(RunWarning::NotOverNodes { what });
    }

    pub(super) fn pass_warnings(&mut self) {
        self.warnings.drain(..).for_each(&mut self.tell.warning);
    }

    pub(super) fn elapsed(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Lets the workers end, and takes their files.
    pub(super) fn close(&mut self) {
        self.is_closing = true;
        for link in self.nodes.iter_mut().flat_map(|node| &mut node.link) {
            link.send(&NodeOrder::End);
        }
        let end = Instant::now() + CLOSE;
        while self.nodes.iter().any(|node| node.link.is_some()) && Instant::now() < end {
            let Ok(ready) = self.poll(Some(BEAT)) else {
                break;
            };
            if ready.signal.is_some() {
                break;
            }
            self.hear(&ready, &mut Vec::new());
        }
        for node in &mut self.nodes {
            if let Some(mut link) = node.link.take() {
                link.end();
            }
        }
        self.pass_warnings();
    }
}
