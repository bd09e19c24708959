//! Several nodes as the platform of a run. Each runs a worker, itself a run of cosched that decides for its node. This run
//! decides which job goes to which node.

use super::keys::Keys;
use super::launch::launches;
use super::program::Programs;
use super::{Arrivals, BackendOf, MachineView, Platform, SoloWork};
use crate::exit::{Exit, Failure, incapable, usage};
use crate::input::{Job, job_line, wrong};
use crate::options::{NodeOptions, PolicyOptions, RunOptions, SoloTimes};
use crate::policy::named_policy;
use anyhow::{Context as _, Result};
use cosched_core::{Event, Nanos, TaskId};
use cosched_linux::Allocation;
use cosched_linux::identity::machine_kind;
use cosched_linux::root::Root;
use cosched_memory::CommandKey;
use cosched_nodes::{Cluster, ClusterError, ClusterOutput, NodeJob, capabilities};
use cosched_report::{BackendKind, EnergySource};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The policy that chooses the nodes.
const POLICY: &str = "place";

/// The nodes of a run.
pub(crate) struct NodesPlatform {
    view: MachineView,
    programs: Programs,
    keys: Keys,
    /// CPUs of the largest node.
    widest: usize,
    /// Empty once the run has it.
    cluster: RefCell<Option<Cluster>>,
}

/// The options of the run that chooses nodes. Those of the policy and the machine are for the workers.
pub(crate) fn own_options(options: &RunOptions) -> RunOptions {
    let mut own = options.clone();
    own.policy = PolicyOptions {
        name: Some(POLICY.to_owned()),
        seed: options.policy.seed,
        ..PolicyOptions::default()
    };
    own.limits.jobs = None;
    own.machine = Default::default();
    own
}

/// Refuses what has no meaning over nodes, and what each node would refuse.
fn check_options(options: &RunOptions) -> Result<()> {
    named_policy(options)?;
    let given = [
        ("--on", options.machine.on.is_some()),
        ("--solo", options.solo != SoloTimes::Nothing),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(usage(format!(
            "{option} has no meaning with --nodes; leave one of them out"
        ))),
        None => Ok(()),
    }
}

impl NodesPlatform {
    /// Starts a worker on each node, and asks it for its CPUs.
    pub(crate) fn open(options: &RunOptions, nodes: &NodeOptions) -> Result<NodesPlatform> {
        check_options(options)?;
        let launches = launches(&nodes.which, &nodes.worker)?;
        let cluster = Cluster::start(launches, nodes.retries_lost).map_err(Self::failure)?;
        let machine = Arc::new(cluster.whole().clone());
        let view = MachineView {
            kind: BackendKind::Nodes,
            whole: machine.clone(),
            quota: None,
            by_slurm: Vec::new(),
            allocation: Allocation::here(),
            memory: None,
            counters: None,
            capabilities: capabilities(),
            params: Vec::new(),
            freezing: "by the run on each node".to_owned(),
            energy: EnergySource::Absent,
            measures_width: false,
            refused: None,
            world: None,
            files: Vec::new(),
            folders: cluster.names().map(str::to_owned).collect(),
            warnings: Vec::new(),
            machine: machine.clone(),
        };
        Ok(NodesPlatform {
            view,
            programs: Programs::new()?,
            keys: Keys::new(machine_kind(&Root::default(), "node")),
            widest: machine.widest(&machine.all_cpus()),
            cluster: RefCell::new(Some(cluster)),
        })
    }
}

impl Platform for NodesPlatform {
    type Job = NodeJob;
    type Backend = Cluster;

    fn view(&self) -> &MachineView {
        &self.view
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn job(&self, job: &Job, _logs: &Path) -> Result<NodeJob> {
        if let Some(cpus) = job.input.cpus
            && cpus as usize > self.widest
        {
            let widest = self.widest;
            let why = format!("needs {cpus} CPUs at once, and the largest node has {widest}");
            return Err(incapable(wrong(job, why).to_string()));
        }
        let mut line = job_line(job)?;
        // A worker may have been started elsewhere.
        if !line.contains_key("cwd") {
            let folder = std::env::current_dir()?;
            line.insert("cwd".to_owned(), serde_json::to_value(folder)?);
        }
        Ok(NodeJob {
            name: job.name.clone(),
            line: serde_json::to_string(&line)?,
        })
    }

    fn reads(&self, _jobs: &[(u64, Job)], _tasks: &[NodeJob]) -> Vec<PathBuf> {
        Vec::new()
    }

    /// By the files that are there on this node: the others have the same, or their own.
    fn key(&self, job: &Job, _task: &NodeJob) -> Option<CommandKey> {
        let cwd = job.input.absolute_cwd();
        let cwd = cwd.as_deref();
        let path = std::env::var_os("PATH");
        let find = |name: &OsStr| self.programs.find(name, cwd, path.as_deref());
        self.keys.of(job, cwd, find)
    }

    fn shown(&self, job: &Job) -> String {
        let command = job.input.command.as_ref();
        command.map(crate::input::Command::line).unwrap_or_default()
    }

    fn backend(&self, of: BackendOf<'_, NodeJob>) -> Result<Cluster> {
        let cluster = self.cluster.take();
        let mut cluster = cluster.context("a run over nodes runs only once")?;
        let (warned, shown) = (of.screen.clone(), of.screen.clone());
        cluster.tell(ClusterOutput {
            warning: Box::new(move |warning| warned.warn(warning)),
            output: Box::new(move |piece| shown.piece(piece)),
        });
        cluster.write_to(of.logs);
        cluster.take_requests(of.requests);
        cluster.note_in(of.infos.clone());
        for (job, task) in of.jobs.into_iter().zip(0..) {
            cluster.add(TaskId(task), Ok(job));
        }
        Ok(cluster)
    }

    fn arrivals(backend: &mut Cluster) -> Option<&mut dyn Arrivals<NodeJob>> {
        Some(backend)
    }

    fn look_anew(&self) {
        self.programs.forget();
        self.keys.forget();
    }

    fn solo_work(&self, _trace_step: Option<Nanos>) -> Result<SoloWork> {
        unreachable!("--solo is refused before")
    }

    fn late_failure(_backend: &mut Cluster) -> Option<ClusterError> {
        None
    }

    fn failure(error: ClusterError) -> anyhow::Error {
        match error {
            ClusterError::Interrupted(signal) => Failure {
                exit: Exit::Signal(signal),
                message: error.to_string(),
            }
            .into(),
            ClusterError::NoNode(_) => incapable(error.to_string()),
            ClusterError::System { what, source } => anyhow::Error::new(source).context(what),
        }
    }
}

impl Arrivals<NodeJob> for Cluster {
    fn add(&mut self, task: TaskId, job: Result<NodeJob, String>) {
        Cluster::add(self, task, job);
    }

    fn post(&mut self, event: Event) {
        Cluster::post(self, event);
    }

    fn watch_input(&mut self, input: OwnedFd) {
        Cluster::watch_input(self, input);
    }

    fn wake_at_input(&mut self) {
        Cluster::wake_at_input(self);
    }
}
