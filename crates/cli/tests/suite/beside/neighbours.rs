//! Runs on one machine divide the CPUs while they go on.

use crate::common::{command, ended, read, until};
use cosched_core::CpuSet;
use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::{TempDir, tempdir};

/// A run of one job that goes on while the file `going` is there. It is killed with the test; its job ends with the folder.
struct Run {
    folder: TempDir,
    child: Child,
}

/// A folder in which the runs of a test divide the CPUs. Users share it.
fn runs_dir() -> TempDir {
    let folder = tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o1777)).expect("a mode");
    folder
}

const AS_NOBODY: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];

/// The job writes the number of its process first.
const LINE: &str = "echo $$ > next; mv next pid; while [ -e going ]; do :; done";

impl Run {
    /// Starts it beside the runs of this folder; with a copy of the program as another user.
    fn start(runs_dir: &TempDir, words: &[&str], as_nobody: Option<&Path>) -> Run {
        let folder = tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).expect("a mode");
        crate::common::write(&folder, "going", "");
        let all = [&["run", "--logs", "L"], words, &["--", "sh", "-c", LINE]].concat();
        let mut run = command(folder.path(), &all);
        if let Some(program) = as_nobody {
            run = Command::new("setpriv");
            run.args(AS_NOBODY).arg(program).args(&all);
            crate::common::without_settings(run.current_dir(folder.path()));
        }
        let child = run
            .env_remove("COSCHED_CPUS")
            .env("COSCHED_RUNS_DIR", runs_dir.path())
            .stdin(Stdio::null())
            .stdout(File::create(folder.path().join("stdout")).expect("a file"))
            .stderr(File::create(folder.path().join("stderr")).expect("a file"))
            .spawn()
            .expect("a run");
        let run = Run { folder, child };
        until("the job runs", || run.folder.path().join("pid").exists());
        run
    }

    /// The CPUs that its job may use now.
    fn cpus(&self) -> CpuSet {
        let pid = read(&self.folder, "pid").trim().parse().expect("a number");
        cosched_linux::affinity(pid).expect("its CPUs")
    }

    /// Lets the job end; returns the folder with what the run has left.
    fn end(mut self) -> TempDir {
        std::fs::remove_file(self.folder.path().join("going")).expect("a file");
        let code = ended(&mut self.child).code();
        assert_eq!(code, Some(0));
        assert!(!read(&self.folder, "stdout").contains("cosched"));
        std::mem::replace(&mut self.folder, tempdir().expect("a folder"))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn are_apart(one: &Run, other: &Run) -> bool {
    one.cpus().intersection(&other.cpus()).is_empty()
}

fn has_two_cpus() -> bool {
    cosched_linux::affinity(0).is_ok_and(|cpus| cpus.len() > 1)
}

#[test]
fn a_run_narrows_for_another_and_widens_after_it() {
    if !has_two_cpus() {
        return;
    }
    let runs_dir = runs_dir();
    for policy in ["round-robin", "linux"] {
        let first = Run::start(&runs_dir, &["--policy", policy], None);
        let second = Run::start(&runs_dir, &["--policy", policy], None);
        until("they have CPUs of their own", || are_apart(&first, &second));
        let alone = first.cpus().len();
        drop(second.end());
        until("the first has more", || first.cpus().len() > alone);
        let folder = first.end();
        let stderr = read(&folder, "stderr");
        for line in [
            "cosched: another run is live (process ",
            "cosched: other runs have ended or use less: this run uses CPUs ",
        ] {
            assert_eq!(stderr.matches(line).count(), 1, "{policy}: {stderr}");
        }
        let series = read(&folder, "L/series.jsonl");
        let record = read(&folder, "L/run.json");
        assert!(record.contains("cpus-gained") && record.contains("cpus-shared"));
        assert!(series.lines().count() > 3);
        let why = command(folder.path(), &["report", "L"])
            .output()
            .expect("a report");
        assert!(why.status.success(), "{}", crate::common::err(&why));
    }
}

#[test]
fn a_job_that_needs_all_cpus_goes_on_with_fewer() {
    if !has_two_cpus() {
        return;
    }
    let runs_dir = runs_dir();
    let all = ["--policy", "round-robin", "--cpus-per-job", "all"];
    let first = Run::start(&runs_dir, &all, None);
    let second = Run::start(&runs_dir, &all, None);
    until("they have CPUs of their own", || are_apart(&first, &second));
    drop(second.end());
    drop(first.end());
}

#[test]
fn runs_of_two_users_divide_the_cpus() {
    let is_root = rustix::process::geteuid().is_root();
    // The other user may not reach the build folder.
    let folder = tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("a mode");
    let program = folder.path().join("cosched");
    std::fs::copy(env!("CARGO_BIN_EXE_cosched"), &program).expect("a copy");
    let can_start = Command::new("setpriv")
        .args(AS_NOBODY)
        .arg(&program)
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !has_two_cpus() || !is_root || !can_start {
        return;
    }
    let runs_dir = runs_dir();
    let first = Run::start(&runs_dir, &["--policy", "round-robin"], None);
    let others = ["--policy", "round-robin", "--freeze", "signals"];
    let second = Run::start(&runs_dir, &others, Some(&program));
    until("they have CPUs of their own", || are_apart(&first, &second));
    drop(second.end());
    drop(first.end());
}
