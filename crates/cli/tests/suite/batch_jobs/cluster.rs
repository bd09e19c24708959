//! A Slurm cluster on this machine, for all tests of this folder. `cluster.sh` explains it.

use crate::common::{command, skipped, until};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

const SCRIPT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/suite/batch_jobs/cluster.sh"
);

/// Number of nodes: enough for all tests at once, with those that two of them kill.
const NODES: &str = "16";

/// Time between two questions to Slurm, whose clients take much CPU time.
const PAUSE: Duration = Duration::from_millis(200);

/// It ends with this process: its standard input does.
static CLUSTER: OnceLock<Cluster> = OnceLock::new();

/// A cluster with the nodes node1 to node16.
pub(super) struct Cluster {
    folder: PathBuf,
    _script: Child,
}

/// The cluster; `None` where there can be none.
pub(super) fn cluster() -> Option<&'static Cluster> {
    if let Some(why) = why_not() {
        skipped(why);
        return None;
    }
    Some(CLUSTER.get_or_init(Cluster::start))
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
        script.args(["hold", NODES]).env("COSCHED_CLUSTER", &folder);
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
    pub(super) fn command(&self, folder: &Path, words: &[&str]) -> Command {
        let mut command = command(folder, words);
        command.env("SLURM_CONF", self.folder.join("slurm.conf"));
        command
    }

    /// Runs a client of Slurm, and returns its output.
    pub(super) fn slurm(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]);
        shell.env("SLURM_CONF", self.folder.join("slurm.conf"));
        text(&shell.output().expect("a shell"))
    }

    /// Waits until this holds of a job, as scontrol shows it.
    pub(super) fn until(&self, what: &str, id: &str, holds: impl Fn(&str) -> bool) {
        until(what, || {
            let job = self.job(id);
            let it_holds = holds(&job);
            if !it_holds {
                std::thread::sleep(PAUSE);
            }
            it_holds
        });
    }

    /// A job, as scontrol shows it.
    pub(super) fn job(&self, id: &str) -> String {
        self.slurm(&format!("scontrol show job -o {id}"))
    }

    /// Kills a node with all of its processes.
    pub(super) fn kill(&self, node: &str) {
        self.script(&["kill", node]);
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
