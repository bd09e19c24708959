//! Nodes as a backend. Each node has a worker, which runs the jobs that it is sent.
//!
//! To the loop a node is a memory domain with as many CPUs as its worker runs jobs at once. A task is sent to its node once
//! and stays there. A node that is gone loses its CPUs; its tasks start on others.

use crate::jobs::{Fate, Jobs, NodeJob};
use crate::link::{BEAT, Heard, Link};
use crate::machine::{first_cpus, machine_of, node_of};
use crate::node::{News, Node};
use crate::notice::{Notice, OutputPiece};
use crate::protocol::Order;
use crate::sink::Sink;
use cosched_core::{
    Absence, Backend, Began, Capabilities, Capability, Change, Counter, CpuSet, Device, Event,
    Exit, Kill, Machine, MayStart, Nanos, Planner, Reading, Resources, TaskId, TaskSpec, Traffic,
    Usage,
};
use cosched_linux::{Interrupt, Interrupts, Request, Requests, Settings};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a worker may take to answer at first.
const START: Duration = Duration::from_secs(60);

/// How long the workers may take to end after the last job.
const CLOSE: Duration = Duration::from_secs(30);

/// A node, and the command that leads to a worker on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The node's name. It is that of a folder.
    pub node: String,
    /// The command.
    pub words: Vec<OsString>,
}

/// Why a run over nodes can't go on.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// None is left.
    #[error("no node is left: {0}; with --resume a run starts what is left")]
    NoNode(String),
    /// The user interrupted it before it began.
    #[error("interrupted before all nodes had answered")]
    Interrupted(i32),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
}

/// The nodes of a run.
pub struct Cluster {
    nodes: Vec<Node>,
    /// The first CPU of each node. Nodes that never answered have none.
    first: Vec<u32>,
    /// All nodes that answered.
    whole: Machine,
    /// Those that are not gone.
    machine: Arc<Machine>,
    jobs: Jobs,
    /// Nodes that may die under a job before it is given up.
    retries_lost: u32,
    interrupts: Interrupts,
    requests: Option<Requests>,
    /// The input of jobs that come.
    input: Option<OwnedFd>,
    /// The next wait ends once the input is readable.
    wakes_at_input: bool,
    /// Reported by the next wait.
    queued: Vec<Event>,
    notices: Vec<Notice>,
    pieces: Vec<OutputPiece>,
    tell: Tell,
    /// Why the last node is gone.
    last_loss: String,
    began: Instant,
    buffer: Vec<u8>,
}

/// Takes a task and the name of its node.
pub type Sent = Box<dyn FnMut(TaskId, &str)>;

/// Where notices and output go.
pub struct Tell {
    /// Takes notices.
    pub notice: Box<dyn FnMut(Notice)>,
    /// Takes output, in its order.
    pub output: Box<dyn FnMut(OutputPiece)>,
    /// Takes the node of a task that is sent there.
    pub sent: Sent,
}

impl Default for Tell {
    fn default() -> Tell {
        Tell {
            notice: Box::new(drop),
            output: Box::new(drop),
            sent: Box::new(|_, _| {}),
        }
    }
}

impl Cluster {
    /// Starts a worker on each node, and waits until each has answered or failed.
    ///
    /// # Errors
    /// No node answered, or the user interrupted it.
    pub fn start(launches: Vec<Launch>, retries_lost: u32) -> Result<Cluster, ClusterError> {
        let interrupts = Interrupts::hold_all().map_err(|source| ClusterError::System {
            what: "taking signals",
            source,
        })?;
        let machine = machine_of(&[]);
        let mut cluster = Cluster {
            nodes: Vec::new(),
            first: Vec::new(),
            whole: machine.clone(),
            machine: Arc::new(machine),
            jobs: Jobs::default(),
            retries_lost,
            interrupts,
            requests: None,
            input: None,
            wakes_at_input: false,
            queued: Vec::new(),
            notices: Vec::new(),
            pieces: Vec::new(),
            tell: Tell::default(),
            last_loss: "there was none".to_owned(),
            began: Instant::now(),
            buffer: Vec::new(),
        };
        for launch in launches {
            cluster.launch(launch);
        }
        cluster.gather()?;
        Ok(cluster)
    }

    fn launch(&mut self, launch: Launch) {
        let Launch { node, words } = launch;
        match Link::start(&words, &self.interrupts) {
            Ok(link) => {
                let node = Node::new(self.nodes.len(), node, link);
                self.nodes.push(node);
            }
            Err(error) => {
                let program = words[0].display();
                let why = format!("{program}: {error}");
                self.last_loss = why.clone();
                self.notices.push(Notice::Absent { node, why });
            }
        }
    }

    /// Waits until each worker has answered or failed.
    fn gather(&mut self) -> Result<(), ClusterError> {
        let end = Instant::now() + START;
        while self.nodes.iter().any(Node::is_starting) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                self.give_up_silent();
                break;
            }
            let ready = self.poll(Some(left.min(BEAT)))?;
            if let Some(Interrupt::End(signal)) = ready.signal {
                return Err(ClusterError::Interrupted(signal));
            }
            self.hear(&ready, &mut Vec::new());
        }
        let told = self.nodes.iter();
        let told: Vec<_> = told
            .map(|node| (&*node.name, node.desk.told.as_ref()))
            .collect();
        self.whole = machine_of(&told);
        self.first = first_cpus(&told);
        self.machine = Arc::new(self.whole.clone());
        if self.machine.cpus.is_empty() {
            return Err(ClusterError::NoNode(self.last_loss.clone()));
        }
        self.queued.clear();
        self.began = Instant::now();
        Ok(())
    }

    /// Gives up the nodes that have not answered.
    fn give_up_silent(&mut self) {
        for index in 0..self.nodes.len() {
            if self.nodes[index].is_starting() {
                self.lose(index, "no answer in 60 s", &mut Vec::new());
            }
        }
    }

    /// All nodes that answered, as a machine.
    pub fn whole(&self) -> &Machine {
        &self.whole
    }

    /// The names of all nodes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| &*node.name)
    }

    /// From now on the nodes' files go into a folder for each node below this one.
    pub fn write_to(&mut self, folder: &Path) {
        for node in &mut self.nodes {
            node.desk.sink = Some(Sink::new(folder.join(&node.name)));
        }
    }

    /// From now on each task that is sent to a node is noted there.
    pub fn note_nodes(&mut self, sent: Sent) {
        self.tell.sent = sent;
    }

    /// From now on notices and output go there.
    pub fn tell(&mut self, tell: Tell) {
        self.tell = tell;
    }

    /// Takes requests from other processes to the run.
    pub fn take_requests(&mut self, requests: Option<Requests>) {
        self.requests = requests;
    }

    /// Adds a job, or why it can't be started.
    pub fn add(&mut self, task: TaskId, job: Result<NodeJob, String>) {
        self.jobs.add(task, job);
    }

    /// Ends a job of this name, or sees to it that it never starts.
    pub fn end(&mut self, task: TaskId, name: String) {
        self.queued.push(Event::EndTask { task, name });
    }

    /// The input of jobs that come, for [`Cluster::wake_at_input`].
    pub fn watch_input(&mut self, input: OwnedFd) {
        self.input = Some(input);
    }

    /// The next wait ends with [`Event::Arrivals`] once the input is readable or closed.
    pub fn wake_at_input(&mut self) {
        self.wakes_at_input = true;
    }

    /// Sends a task to the node that has these CPUs.
    fn send(&mut self, task: TaskId, cpus: &CpuSet) {
        let index = cpus.first().and_then(|cpu| node_of(&self.first, cpu));
        let Some(index) = index.filter(|&index| self.nodes[index].is_up()) else {
            return self.queued.push(Event::Lost(task));
        };
        let node = &mut self.nodes[index];
        match self.jobs.give(task, index) {
            Ok(Some(line)) => {
                (self.tell.sent)(task, &node.name);
                if let Some(link) = &mut node.link {
                    link.send_line(&line);
                }
            }
            Ok(None) => {}
            Err(why) => {
                let exit = Exit::NotStarted(why);
                self.queued.push(Event::Ended { task, exit });
            }
        }
    }

    fn beat(&mut self) {
        let now = Instant::now();
        for link in self.nodes.iter_mut().flat_map(|node| &mut node.link) {
            link.beat(now);
        }
    }

    /// Gives up nodes that are silent. What has come is read before: this process may have stood still itself.
    fn lose_silent(&mut self, events: &mut Vec<Event>) {
        let now = Instant::now();
        for index in 0..self.nodes.len() {
            let link = self.nodes[index].link.as_ref();
            if link.is_some_and(|link| link.is_silent(now)) {
                self.lose(index, "silent for 10 s", events);
            }
        }
    }

    /// Gives up a node. Its tasks start on others.
    fn lose(&mut self, index: usize, why: &str, events: &mut Vec<Event>) {
        let node = &mut self.nodes[index];
        let was_up = node.is_up();
        let Some(mut link) = node.link.take() else {
            return;
        };
        let how = link.end();
        let why = format!("{why} ({how})");
        let name = node.name.clone();
        self.last_loss = format!("{name}: {why}");
        let lost = self.jobs.lose(index, self.retries_lost);
        let (node, jobs) = (name, lost.len());
        self.notices.push(if was_up {
            Notice::Lost { node, why, jobs }
        } else {
            Notice::Absent { node, why }
        });
        if was_up {
            self.machine = Arc::new(self.whole.part(&self.cpus_left()));
            events.push(Event::MachineChanged);
        }
        for (task, fate) in lost {
            events.push(match fate {
                Fate::Again => Event::Lost(task),
                Fate::GivenUp(losses) => Event::Ended {
                    task,
                    exit: Exit::NotStarted(format!("{losses} nodes were lost under it")),
                },
            });
        }
    }

    /// The CPUs of the nodes that are not gone.
    fn cpus_left(&self) -> CpuSet {
        let all = self.whole.cpus.iter().map(|cpu| cpu.id);
        all.filter(|&cpu| node_of(&self.first, cpu).is_some_and(|index| self.nodes[index].is_up()))
            .collect()
    }

    /// Waits for something to do, at most so long.
    fn poll(&mut self, timeout: Option<Duration>) -> Result<Ready, ClusterError> {
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
    fn hear(&mut self, ready: &Ready, events: &mut Vec<Event>) {
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
        let mut news = News {
            jobs: &mut self.jobs,
            events,
            notices: &mut self.notices,
            pieces: &mut self.pieces,
            now,
        };
        match self.nodes[index].read(&mut self.buffer, &mut news) {
            Ok(Heard::Goes) => {}
            Ok(Heard::Ended) => self.lose(index, "its worker has ended", events),
            Err(error) => self.lose(index, &error.to_string(), events),
        }
    }

    fn take_news(&mut self, ready: &Ready, events: &mut Vec<Event>) {
        match ready.signal {
            Some(Interrupt::End(signal)) => events.push(Event::Interrupt { signal }),
            Some(Interrupt::Suspend) => self.notices.push(Notice::NotHere("Ctrl-Z")),
            None => {}
        }
        if ready.has_requests {
            let requests = self.requests.as_mut().map(Requests::take);
            for request in requests.into_iter().flatten() {
                self.grant(request, events);
            }
        }
        if ready.has_input && std::mem::take(&mut self.wakes_at_input) {
            events.push(Event::Arrivals);
        }
        self.hear(ready, events);
    }

    fn grant(&mut self, request: Request, events: &mut Vec<Event>) {
        match request {
            Request::End { end, name } => events.push(Event::EndTask {
                task: TaskId(end),
                name,
            }),
            Request::Set(Settings { jobs, pause }) => {
                if let Some(jobs) = jobs {
                    let limit = if jobs == 0 { usize::MAX } else { jobs as usize };
                    events.push(Event::JobLimit(limit));
                    self.notices.push(Notice::JobLimit(jobs));
                }
                if pause.is_some() {
                    self.notices.push(Notice::NotHere("pause"));
                }
            }
        }
    }

    fn pass_notices(&mut self) {
        for notice in self.notices.drain(..) {
            (self.tell.notice)(notice);
        }
    }

    fn elapsed(&self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    /// Lets the workers end, and takes their files.
    fn close(&mut self) {
        for node in &mut self.nodes {
            if let Some(link) = &mut node.link {
                link.send(&Order::End);
            }
        }
        let end = Instant::now() + CLOSE;
        while self.nodes.iter().any(|node| node.link.is_some()) && Instant::now() < end {
            let Ok(ready) = self.poll(Some(BEAT)) else {
                break;
            };
            if ready.signal.is_some() {
                break;
            }
            self.hear_last(&ready);
        }
        for node in &mut self.nodes {
            if let Some(mut link) = node.link.take() {
                link.end();
            }
        }
        self.pass_notices();
    }

    /// As [`Cluster::hear`]; a worker that ends now does so in good order.
    fn hear_last(&mut self, ready: &Ready) {
        for &index in &ready.unsent {
            if let Some(link) = &mut self.nodes[index].link {
                link.flush();
            }
        }
        for &index in &ready.nodes {
            let mut news = News {
                jobs: &mut self.jobs,
                events: &mut Vec::new(),
                notices: &mut self.notices,
                pieces: &mut Vec::new(),
                now: Nanos::ZERO,
            };
            let node = &mut self.nodes[index];
            if !matches!(node.read(&mut self.buffer, &mut news), Ok(Heard::Goes))
                && let Some(mut link) = node.link.take()
            {
                link.wait();
            }
        }
    }
}

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
struct Ready {
    has_signal: bool,
    signal: Option<Interrupt>,
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

/// What no backend of nodes can do: its workers schedule and count.
pub fn capabilities() -> Capabilities {
    let counters = Counter::ALL.into_iter().map(Capability::of);
    let others = [
        Capability::Freeze,
        Capability::Energy,
        Capability::Traffic,
        Capability::Device(Device::Disk),
        Capability::Device(Device::Net),
        Capability::SoloBandwidth,
        Capability::SoloTrace,
        Capability::CoreTypes,
        Capability::Plans,
    ];
    Capabilities {
        missing: counters
            .chain(others)
            .map(|lack| (lack, Absence::NotOffered))
            .collect(),
    }
}

impl Backend for Cluster {
    type Error = ClusterError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities()
    }

    fn now(&mut self) -> Nanos {
        self.elapsed()
    }

    fn stopwatch(&self) -> Option<Nanos> {
        Some(self.elapsed())
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), ClusterError> {
        // Events already in the caller's list do not end the wait.
        let before = events.len();
        loop {
            events.append(&mut self.queued);
            self.beat();
            let timeout = if events.len() > before {
                Duration::ZERO
            } else {
                let left = until.map(|until| until - self.elapsed());
                left.map_or(BEAT, |left| BEAT.min(Duration::from_nanos(left.0)))
            };
            let ready = self.poll(Some(timeout))?;
            self.take_news(&ready, events);
            self.lose_silent(events);
            self.pass_notices();
            if self.machine.cpus.is_empty() {
                return Err(ClusterError::NoNode(self.last_loss.clone()));
            }
            if events.len() > before || until.is_some_and(|until| self.elapsed() >= until) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        out.extend(tasks.iter().map(|&task| self.jobs.usage(task)));
    }

    fn device_time(&mut self, _usages: &mut [Usage]) {}

    fn wanting(&mut self, _task: TaskId) -> Reading<u32> {
        Reading::Absent(Absence::NotOffered)
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.jobs.resources(task)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), ClusterError> {
        for change in changes {
            if let Change::Place {
                task, placement, ..
            } = change
            {
                self.send(*task, placement.cpus());
            }
        }
        Ok(())
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::Later
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<ClusterError>> {
        None
    }

    /// A worker that is asked a second time kills the job.
    fn kill(&mut self, task: TaskId, _how: Kill) {
        let node = self.jobs.node(task);
        if let Some(link) = node.and_then(|index| self.nodes[index].link.as_mut()) {
            link.send(&Order::Cancel(task.0.to_string()));
        }
    }

    fn ending(&mut self) {}

    fn restart(&mut self, _task: TaskId) -> bool {
        true
    }

    fn forget(&mut self, task: TaskId) {
        self.jobs.forget(task);
    }

    /// Where there is room on which node is for the policy to say.
    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let domains = self.machine.memory_domains.len();
        out.extend(std::iter::repeat_n(
            Traffic::absent(Absence::NotOffered),
            domains,
        ));
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NotOffered)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}
