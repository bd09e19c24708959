//! A run that continues until it is ended, for tests of the verbs that show it.

use super::{command, ended, until};
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Stdio};
use tempfile::{TempDir, tempdir};

/// A run of jobs that go on while the file `going` is there, two at once, one of which has ended. It is killed with the test;
/// without its folder, no job goes on.
pub(crate) struct LoopingRun(Child, TempDir);

impl LoopingRun {
    pub(crate) fn start(more: &[&str]) -> LoopingRun {
        let folder = tempdir().expect("a folder");
        let mix = "[[job]]\nname = \"first\"\ncommand = \"exit 3\"\n[[job]]\nname = \"loop\"\ncopies = 4\ncommand = \"while [ -e going ]; do sleep 0.02; done\"\n";
        std::fs::write(folder.path().join("mix.toml"), mix).expect("a file");
        std::fs::write(folder.path().join("going"), "").expect("a file");
        let words = [
            "run",
            "mix.toml",
            "--policy",
            "round-robin",
            "--param",
            "quantum_s=0.02",
            "--jobs",
            "3",
            "--quiet",
        ];
        let mut command = command(folder.path(), &words);
        let child = command
            .args(more)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("a run");
        let run = LoopingRun(child, folder);
        // The job that ends may stand there as waiting while it does; who looks then finds no process of it.
        let settled = |status: Value| status["totals"]["done"] == 1 && waiting(&status).count() > 0;
        until("jobs run", || status(&run.pid()).is_some_and(settled));
        run
    }

    pub(crate) fn pid(&self) -> String {
        self.0.id().to_string()
    }

    pub(crate) fn folder(&self) -> &Path {
        self.1.path()
    }

    /// Waits for a run that was killed; its jobs end with its folder.
    pub(crate) fn reap(mut self) -> TempDir {
        let _ = self.0.wait();
        std::mem::replace(&mut self.1, tempdir().expect("a folder"))
    }

    /// Lets the jobs end, and waits for the run.
    pub(crate) fn end(self) {
        drop(self.end_and_keep());
    }

    /// The same; returns the folder with what the run has left.
    pub(crate) fn end_and_keep(mut self) -> TempDir {
        std::fs::remove_file(self.1.path().join("going")).expect("a file");
        assert_eq!(ended(&mut self.0).code(), Some(1), "one job failed");
        std::mem::replace(&mut self.1, tempdir().expect("a folder"))
    }
}

impl Drop for LoopingRun {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The state of a run, once it has answered.
pub(crate) fn status(name: &str) -> Option<Value> {
    let output = command(Path::new("."), &["status", name, "--format", "json"])
        .output()
        .ok()?;
    let told: Value = serde_json::from_slice(&output.stdout).ok()?;
    Some(told["runs"][0]["status"].clone()).filter(Value::is_object)
}

pub(crate) fn waiting(status: &Value) -> impl Iterator<Item = &Value> {
    status["jobs"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|job| job["state"] == "waiting")
}
