//! Runs over the nodes of an allocation.

use super::batch::{column, submit};
use super::cluster::{Cluster, cluster};
use crate::common::{err, read, until, write};
use std::collections::BTreeSet;
use tempfile::{TempDir, tempdir};

/// A job that notes its begin and waits for the file `go`.
fn waiting(name: &str) -> String {
    format!("touch begun.{name}; until test -e go; do sleep 0.1; done; echo {name} $(hostname)\n")
}

/// Writes a list of jobs that wait; the names are numbers from 1.
fn write_list(folder: &TempDir, jobs: usize) {
    let lines: String = (1..=jobs).map(|job| waiting(&job.to_string())).collect();
    write(folder, "list", &lines);
}

/// Waits until so many jobs have begun.
fn await_begun(folder: &TempDir, jobs: usize) {
    until("the jobs begin", || {
        let files = folder.path().read_dir().expect("a folder").flatten();
        let begun = files.filter(|file| file.file_name().to_string_lossy().starts_with("begun."));
        begun.count() == jobs
    });
}

/// The hosts in a job log, each once for each success there, sorted.
fn hosts(folder: &TempDir) -> Vec<String> {
    assert!(column(folder, "L/joblog", 6).iter().all(|exit| exit == "0"));
    let mut hosts = column(folder, "L/joblog", 1);
    hosts.sort();
    hosts
}

/// The word after this in what scontrol says of a job.
fn word(job: &str, before: &str) -> String {
    let (_, rest) = job.split_once(before).unwrap_or_default();
    rest.split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

fn await_end(cluster: &Cluster, id: &str) {
    cluster.until("the batch job ends", id, |job| {
        assert!(!job.contains("JobState=FAILED"), "{job}");
        job.contains("JobState=COMPLETED")
    });
}

#[test]
fn all_nodes_of_a_batch_job_run_jobs_at_once() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    write_list(&folder, 8);
    let mut run = cluster.command(
        folder.path(),
        &["slurm", "-N4", "-c2", "--wait", "-f", "list"],
    );
    let run = run
        .args(["--logs", "L", "-k"])
        .stderr(std::process::Stdio::piped());
    let run = run
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("it starts");
    await_begun(&folder, 8);
    write(&folder, "go", "");
    let output = run.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let hosts = hosts(&folder);
    let of_two_jobs: BTreeSet<&[String]> = hosts.chunks(2).collect();
    assert!(of_two_jobs.iter().all(|pair| pair[0] == pair[1]));
    assert_eq!(of_two_jobs.len(), 4, "each node has two jobs: {hosts:?}");
    let shown = read(&folder, "L/slurm.out");
    let of_jobs = shown.lines().filter_map(|line| line.split_once(" node"));
    let numbers = of_jobs.map(|(job, _)| job).filter(|job| job.len() == 1);
    let order: Vec<&str> = numbers.collect();
    assert_eq!(order, ["1", "2", "3", "4", "5", "6", "7", "8"], "{shown}");
}

/// Slurm does not know yet that the node is dead when the run goes on without it.
#[test]
fn the_jobs_of_a_dead_node_run_on_others() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    write_list(&folder, 8);
    let id = submit(
        cluster,
        &folder,
        &["-N4", "-c2", "-f", "list", "--logs", "L"],
    );
    await_begun(&folder, 8);
    let of_script = word(&cluster.job(&id), "BatchHost=");
    let nodes = cluster.slurm(&format!(
        "squeue -h -j {id} -o %N | xargs scontrol show hostnames"
    ));
    let victim = nodes.lines().find(|node| *node != of_script);
    let victim = victim.expect("a node without the script");
    cluster.kill(victim);
    until("the run notices it", || {
        read(&folder, "L/slurm.out").contains(&format!("node {victim} is lost"))
    });
    write(&folder, "go", "");
    await_end(cluster, &id);
    let hosts = hosts(&folder);
    assert_eq!(hosts.len(), 8);
    assert!(!hosts.iter().any(|host| host == victim), "{hosts:?}");
    let mut numbers = column(&folder, "L/joblog", 0);
    numbers.sort();
    assert_eq!(numbers, ["1", "2", "3", "4", "5", "6", "7", "8"]);
}

/// Slurm lets the job run on without the script's node, until a worker requeues the job.
#[test]
fn a_batch_job_whose_script_is_dead_is_requeued() {
    let Some(cluster) = cluster() else { return };
    let folder = tempdir().expect("a folder");
    write_list(&folder, 4);
    let id = submit(
        cluster,
        &folder,
        &["-N2", "-c2", "-f", "list", "--logs", "L"],
    );
    await_begun(&folder, 4);
    let of_script = word(&cluster.job(&id), "BatchHost=");
    cluster.kill(&of_script);
    cluster.until("Slurm takes the node away", &id, |job| {
        !word(job, " NodeList=").contains(['[', ','])
    });
    cluster.until("a worker requeues the job", &id, |job| {
        job.contains("JobState=PENDING")
    });
    write(&folder, "go", "");
    cluster.slurm(&format!("scontrol update jobid={id} StartTime=now"));
    await_end(cluster, &id);
    assert_eq!(hosts(&folder).len(), 4);
}
