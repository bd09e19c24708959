//! A Slurm cluster of four nodes on this machine, for all tests of this program. `cluster.sh` explains it.

use crate::common::{command, skipped};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/slurm/cluster.sh");

/// It ends with this process: its standard input does.
static CLUSTER: Mutex<Option<Cluster>> = Mutex::new(None);

/// A cluster with the nodes node1 to node4.
pub(crate) struct Cluster {
    folder: PathBuf,
    _script: Child,
}

/// The cluster, for one test at a time; `None` where there can be none.
pub(crate) fn cluster() -> Option<Held> {
    if let Some(why) = why_not() {
        skipped(why);
        return None;
    }
    let mut cluster = CLUSTER.lock().unwrap_or_else(PoisonError::into_inner);
    cluster.get_or_insert_with(Cluster::start);
    Some(Held(cluster))
}

/// The cluster, locked.
pub(crate) struct Held(MutexGuard<'static, Option<Cluster>>);

impl std::ops::Deref for Held {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        self.0.as_ref().expect("it was started")
    }
}

fn why_not() -> Option<&'static str> {
    let succeeds = |line: &str| {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", line]).stdout(Stdio::null());
        let status = shell.stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    if !succeeds(
        "command -v sbatch && command -v slurmctld && command -v slurmd && command -v munged",
    ) {
        Some("Slurm is not installed")
    } else if !succeeds("unshare --uts --mount --pid --fork true") {
        Some("only root can start nodes of Slurm, and not in every container")
    } else {
        None
    }
}

impl Cluster {
    fn start() -> Cluster {
        let folder = std::env::temp_dir().join(format!("cosched-cluster-{}", std::process::id()));
        let mut script = Command::new(SCRIPT);
        script.args(["hold", "4"]).env("COSCHED_CLUSTER", &folder);
        let script = script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().expect("it starts");
        let mut line = String::new();
        let out = script.stdout.take().expect("a pipe");
        BufReader::new(out).read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "the cluster starts");
        Cluster {
            folder,
            _script: script,
        }
    }

    /// A call of cosched that finds the cluster.
    pub(crate) fn command(&self, folder: &Path, words: &[&str]) -> Command {
        let mut command = command(folder, words);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    /// Runs a client of Slurm, and returns its output.
    pub(crate) fn slurm(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        shell.env("SLURM_CONF", self.folder.join("slurm.conf"));
        text(&shell.output().expect("a shell"))
    }

    /// Kills a node with all of its processes.
    pub(crate) fn kill(&self, node: &str) {
        self.script(&["kill", node]);
    }

    /// Starts a node again.
    pub(crate) fn revive(&self, node: &str) {
        self.script(&["node", node]);
    }

    fn script(&self, words: &[&str]) {
        let mut script = Command::new(SCRIPT);
        script.args(words).env("COSCHED_CLUSTER", &self.folder);
        assert!(script.status().expect("it runs").success());
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
