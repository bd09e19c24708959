//! Nodes as a backend. Each node has a worker, which runs the jobs that it is sent.
//!
//! To the loop a node is a memory domain with as many CPUs as its worker runs jobs at once. A task is sent to its node once
//! and stays there. A node that is gone loses its CPUs; its tasks start on others.

mod backend;
mod listening;

pub use backend::capabilities;

use crate::jobs::{ClusterJobs, NodeJob};
use crate::link::{BEAT, WorkerLink};
use crate::machine::{first_cpus, machine_of, node_of};
use crate::node::ClusterNode;
use crate::protocol::NodeOrder;
use crate::sink::{OutputPiece, Sink};
use cosched_core::{CpuSet, Event, Exit, Machine, TaskId};
use cosched_linux::{Interrupt, Interrupts, RunRequests};
use cosched_report::{JobInfos, RunWarning};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the first worker may take to answer.
const START: Duration = Duration::from_secs(60);

/// How long the others may take after it.
const LATE: Duration = Duration::from_secs(10);

/// A job that has not begun so long after it was sent is stuck behind others. Jobs are sent ahead by less.
const STUCK: Duration = Duration::from_millis(500);

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
    /// None has answered.
    #[error("no node answers: {0}")]
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
    nodes: Vec<ClusterNode>,
    /// The first CPU of each node. Nodes that never answered have none.
    first: Vec<u32>,
    /// All nodes that answered.
    whole: Machine,
    /// Those that are not gone.
    machine: Arc<Machine>,
    jobs: ClusterJobs,
    /// Nodes that may die under a job before it is given up.
    retries_lost: u32,
    interrupts: Interrupts,
    requests: Option<RunRequests>,
    /// The input of jobs that come.
    input: Option<OwnedFd>,
    /// The next wait ends once the input is readable.
    wakes_at_input: bool,
    /// Reported by the next wait.
    queued: Vec<Event>,
    warnings: Vec<RunWarning>,
    pieces: Vec<OutputPiece>,
    tell: ClusterOutput,
    infos: JobInfos,
    /// No job will come: a worker that ends does so in good order.
    is_closing: bool,
    /// Why the last node is gone.
    last_loss: String,
    began: Instant,
    /// When stuck jobs were last looked for.
    looked: Instant,
    buffer: Vec<u8>,
}

/// Where warnings and output go.
pub struct ClusterOutput {
    /// Takes warnings.
    pub warning: Box<dyn FnMut(RunWarning)>,
    /// Takes output, in its order.
    pub output: Box<dyn FnMut(OutputPiece)>,
}

impl Default for ClusterOutput {
    fn default() -> ClusterOutput {
        ClusterOutput {
            warning: Box::new(drop),
            output: Box::new(drop),
        }
    }
}

impl Cluster {
    /// Starts a worker on each node, and waits until each has answered, failed, or is late.
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
            jobs: ClusterJobs::default(),
            retries_lost,
            interrupts,
            requests: None,
            input: None,
            wakes_at_input: false,
            queued: Vec::new(),
            warnings: Vec::new(),
            pieces: Vec::new(),
            tell: ClusterOutput::default(),
            infos: JobInfos::default(),
            is_closing: false,
            last_loss: "there was none".to_owned(),
            began: Instant::now(),
            looked: Instant::now(),
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
        match WorkerLink::start(&words) {
            Ok(link) => {
                let node = ClusterNode::new(self.nodes.len(), node, link);
                self.nodes.push(node);
            }
            Err(error) => {
                let program = words[0].display();
                let why = format!("{program}: {error}");
                self.last_loss = why.clone();
                self.warnings.push(RunWarning::NodeAbsent { node, why });
            }
        }
    }

    /// Waits until each worker has answered, failed, or is late.
    fn gather(&mut self) -> Result<(), ClusterError> {
        let mut end = Instant::now() + START;
        while self.nodes.iter().any(ClusterNode::is_starting) {
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
            if self.nodes.iter().any(ClusterNode::is_up) {
                end = end.min(Instant::now() + LATE);
            }
        }
        let told = self.nodes.iter();
        let told: Vec<_> = told.map(|node| (&*node.name, node.answer())).collect();
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
                self.lose(index, "no answer in time", &mut Vec::new());
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

    /// From now on the node of each job, and what it has learnt of the job, is noted there.
    pub fn note_in(&mut self, infos: JobInfos) {
        self.infos = infos;
    }

    /// From now on warnings and output go there.
    pub fn tell(&mut self, tell: ClusterOutput) {
        self.tell = tell;
    }

    /// Takes requests from other processes to the run.
    pub fn take_requests(&mut self, requests: Option<RunRequests>) {
        self.requests = requests;
    }

    /// Adds a job, or why it can't be started.
    pub fn add(&mut self, task: TaskId, job: Result<NodeJob, String>) {
        self.jobs.add(task, job);
    }

    /// Reports an event with the next wait.
    pub fn post(&mut self, event: Event) {
        self.queued.push(event);
    }

    /// The input of jobs that come, for [`Cluster::wake_at_input`].
    pub fn watch_input(&mut self, input: OwnedFd) {
        self.input = Some(input);
    }

    /// The next wait ends with [`Event::Arrivals`] once the input is readable or closed.
    pub fn wake_at_input(&mut self) {
        self.wakes_at_input = true;
    }

    /// Gives a task to the node that has these CPUs, with the next flush.
    fn send(&mut self, task: TaskId, cpus: &CpuSet) {
        let index = cpus.first().and_then(|cpu| node_of(&self.first, cpu));
        let Some(index) = index.filter(|&index| self.nodes[index].is_up()) else {
            return self.queued.push(Event::Lost(task));
        };
        let node = &mut self.nodes[index];
        match self.jobs.give(task, index) {
            Ok(Some(line)) => {
                if let Some(info) = self.infos.borrow_mut().get_mut(task) {
                    info.host = Some(node.name.clone());
                }
                if let Some(link) = &mut node.link {
                    link.add_line(&line);
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

    /// Asks the node with most stuck jobs to give half of them back, if another node has CPUs to spare.
    fn even_out(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.looked) < STUCK {
            return;
        }
        let before = std::mem::replace(&mut self.looked, now);
        let (mut fullest, mut some_idles) = ((0, Vec::new()), false);
        let jobs = self.jobs.by_node(self.nodes.len(), before);
        for (index, (count, stuck)) in jobs.into_iter().enumerate() {
            some_idles |= count < self.nodes[index].slots();
            if stuck.len() > fullest.1.len() {
                fullest = (index, stuck);
            }
        }
        let (index, mut stuck) = fullest;
        let Some(link) = self.nodes[index].link.as_mut().filter(|_| some_idles) else {
            return;
        };
        for task in stuck.split_off(stuck.len() / 2) {
            self.jobs.withdraw(task);
            link.send(&NodeOrder::GiveBack(task.0.to_string()));
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
        let was_used = node.is_up() && !self.whole.cpus.is_empty();
        let Some(mut link) = node.link.take() else {
            return;
        };
        let how = link.end();
        let why = format!("{why} ({how})");
        self.last_loss = format!("{}: {why}", node.name);
        let lost = self.jobs.lose(index, self.retries_lost);
        let node = node.name.clone();
        if !was_used {
            return self.warnings.push(RunWarning::NodeAbsent { node, why });
        }
        let again = lost.iter().filter(|event| matches!(event, Event::Lost(_)));
        let jobs = again.count();
        self.warnings.push(RunWarning::NodeLost { node, why, jobs });
        self.machine = Arc::new(self.whole.part(&self.cpus_left()));
        events.push(Event::MachineChanged);
        events.extend(lost);
        if self.machine.cpus.is_empty() {
            self.warnings.push(RunWarning::NoNodeLeft);
            events.push(Event::Drain);
        }
    }

    /// The CPUs of the nodes that are not gone.
    fn cpus_left(&self) -> CpuSet {
        let all = self.whole.cpus.iter().map(|cpu| cpu.id);
        all.filter(|&cpu| node_of(&self.first, cpu).is_some_and(|index| self.nodes[index].is_up()))
            .collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.close();
    }
}
