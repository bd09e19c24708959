//! `cosched slurm`: a run as a batch job.

use super::cluster::{Cluster, cluster};
use crate::common::{ended, err, out, read, until, write};
use std::process::{Output, Stdio};
use tempfile::{TempDir, tempdir};

/// Submits a run, and returns the job's number.
pub(super) fn submit(cluster: &Cluster, folder: &TempDir, words: &[&str]) -> String {
    let output = call(cluster, folder, words);
    assert!(output.status.success(), "{}", err(&output));
    out(&output).trim_end().to_owned()
}

fn call(cluster: &Cluster, folder: &TempDir, words: &[&str]) -> Output {
    let mut command = cluster.command(folder.path(), &["slurm"]);
    command.args(words).output().expect("the binary runs")
}

/// The values of a column in a job log, without its title.
pub(super) fn column(folder: &TempDir, log: &str, ix: usize) -> Vec<String> {
    let log = read(folder, log);
    let values = log
        .lines()
        .skip(1)
        .filter_map(|line| line.split('\t').nth(ix));
    values.map(str::to_owned).collect()
}

#[test]
fn a_batch_job_is_followed_to_its_end() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    write(&folder, "list", "echo \"it's\"\nexit 3\n");
    let list = std::fs::File::open(folder.path().join("list")).expect("the list");
    let mut command = cluster.command(folder.path(), &["slurm", "-c2", "-t", "5m", "-f", "-"]);
    command.args(["--logs", "logs %j 'x'", "--retries", "2", "--wait"]);
    let output = command.stdin(Stdio::from(list)).output();
    let output = output.expect("the binary runs");
    let told = err(&output);
    assert_eq!(output.status.code(), Some(1), "{told}");
    let id = out(&output).trim_end().to_owned();
    assert!(
        told.contains(&format!("job {id}: FAILED on node")),
        "{told}"
    );
    let written = read(&folder, "logs %j 'x'/slurm.out");
    assert!(
        written.contains("it's\n") && written.contains("1 succeeded, 1 failed"),
        "{written}"
    );
    assert_eq!(column(&folder, "logs %j 'x'/joblog", 6).len(), 3);

    let again = call(cluster, &folder, &["-f", "list", "--logs", "logs %j 'x'"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(
        err(&again).contains("another job has this folder"),
        "{}",
        err(&again)
    );
}

#[test]
fn a_batch_job_that_is_cancelled_ends_in_good_order() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    let line = "trap 'exit 7' TERM; touch begun; sleep 100 & wait";
    let id = submit(cluster, &folder, &["--logs", "L", "--", line]);
    until("the job starts", || folder.path().join("begun").exists());
    cluster.slurm(&format!("scancel {id}"));
    until("there is a record", || {
        folder.path().join("L/run.json").exists()
    });
    assert_eq!(column(&folder, "L/joblog", 6), ["7"]);
}

/// The node of the batch job dies. Slurm starts the script again on another node, after a delay that the test leaves out.
#[test]
fn a_requeued_batch_job_does_what_is_left() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    let work = "echo b >> begun; until test -e go; do sleep 0.1; done; echo b >> done";
    write(&folder, "list", &format!("echo a >> done\n{work}\n"));
    let told = std::fs::File::create(folder.path().join("told")).expect("a file");
    let mut follower = cluster.command(folder.path(), &["slurm", "--wait", "-f", "list"]);
    let follower = follower.args(["--logs", "L"]).stdout(Stdio::piped());
    let mut follower = follower.stderr(told).spawn().expect("it starts");
    until("a job ends, and one goes on", || {
        let ended =
            folder.path().join("L/joblog").exists() && !column(&folder, "L/joblog", 6).is_empty();
        ended && folder.path().join("begun").exists()
    });
    let told = read(&folder, "told");
    let (_, id) = told.split_once("cosched: job ").expect("its number");
    let (id, _) = id.split_once(',').expect("its number");
    let node = cluster.slurm(&format!("squeue -h -j {id} -o %N"));
    cluster.kill(node.trim());
    until("the job waits again", || {
        read(&folder, "told").contains("PENDING (BeginTime), waits until 2")
    });
    write(&folder, "go", "");
    cluster.slurm(&format!("scontrol update jobid={id} StartTime=now"));
    assert!(ended(&mut follower).success(), "{}", read(&folder, "told"));
    assert_eq!(read(&folder, "begun"), "b\nb\n");
    assert_eq!(read(&folder, "done"), "a\nb\n");
    assert_eq!(column(&folder, "L/joblog", 0), ["1", "2"]);
}
