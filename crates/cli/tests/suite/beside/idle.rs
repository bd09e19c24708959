//! A run that waits for jobs leaves its CPUs to others.

use super::Killed;
use crate::common::{command, ended, until};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use tempfile::tempdir;

/// The number of runs that publish their CPUs in this folder.
fn published(runs_dir: &Path) -> usize {
    let files = std::fs::read_dir(runs_dir.join("cosched-cpus"));
    files.into_iter().flatten().count()
}

#[test]
fn only_a_run_with_jobs_publishes_its_cpus() {
    let folder = tempdir().expect("a folder");
    let words = ["run", "-f", "-", "--no-logs", "--quiet"];
    let run = command(folder.path(), &words)
        .env_remove("COSCHED_CPUS")
        .env("COSCHED_RUNS_DIR", folder.path())
        .stdin(Stdio::piped())
        .spawn()
        .expect("a run");
    let mut run = Killed(run);
    let mut input = run.0.stdin.take().expect("a pipe");
    for job in ["1", "2"] {
        let line = format!("touch began-{job}; until [ -e go-{job} ]; do sleep 0.02; done\n");
        input.write_all(line.as_bytes()).expect("sent");
        until("the job begins", || {
            folder.path().join(format!("began-{job}")).exists()
        });
        assert_eq!(published(folder.path()), 1, "job {job} runs");
        std::fs::write(folder.path().join(format!("go-{job}")), "").expect("a file");
        until("the run publishes nothing while it waits", || {
            published(folder.path()) == 0
        });
        assert!(run.0.try_wait().expect("a child").is_none(), "it goes on");
    }
    drop(input);
    assert!(ended(&mut run.0).success());
}
