//! A batch of jobs that follow the law, run by cosched.

use crate::truth::{self, TrueJob, TrueMachine};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// Who runs cosched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum User {
    Root,
    Ordinary,
}

/// A user that owns nothing.
const ORDINARY: u32 = 1000;

/// A job: a shell that runs programs of the law.
#[derive(Clone, Debug)]
pub(crate) struct LawJob {
    pub(crate) name: String,
    pub(crate) line: String,
}

/// A job that runs one program of the law for so many instructions.
pub(crate) fn job(name: &str, program: &str, instructions: &str) -> LawJob {
    LawJob {
        name: name.to_owned(),
        line: format!("echo {program} {instructions} {name} >/dev/law"),
    }
}

/// Six jobs of about 3 s each alone.
pub(crate) fn six_jobs() -> Vec<LawJob> {
    vec![
        job("stream", "stream", "5e9"),
        job("chase", "chase", "2e9"),
        job("compute", "compute", "18e9"),
        job("turns", "turns", "9e9"),
        job("reuse", "reuse", "7e9"),
        job("copy", "copy", "6e9"),
    ]
}

/// Ten jobs of about 4 s each alone, on eight CPUs.
pub(crate) fn ten_jobs() -> Vec<LawJob> {
    vec![
        job("stream-1", "stream", "7e9"),
        job("stream-2", "stream", "6e9"),
        job("chase-1", "chase", "26e8"),
        job("chase-2", "chase", "22e8"),
        job("compute", "compute", "24e9"),
        job("copy", "copy", "8e9"),
        job("reuse", "reuse", "9e9"),
        job("fit", "fit", "18e9"),
        job("turns", "turns", "12e9"),
        job("waves", "waves", "8e9"),
    ]
}

/// A call of cosched as a user.
pub(crate) fn cosched(user: User, folder: &TempDir) -> Command {
    let program = std::env::var_os("COSCHED_UNDER_TEST")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_cosched").into());
    // All that this shell's successor starts is a job whose truth the law keeps.
    let mut command = Command::new("sh");
    command
        .args(["-c", r#"echo follow >/dev/law; exec "$0" "$@""#])
        .arg(program);
    command.current_dir(folder.path()).stdin(Stdio::null());
    command
        .env("COSCHED_RUNS_DIR", folder.path())
        .env("COSCHED_HISTORY", "off");
    command
        .env("HOME", folder.path())
        .env("COSCHED_CPUS", "all");
    if user == User::Ordinary {
        command.uid(ORDINARY).gid(ORDINARY);
    }
    command
}

/// A run that goes on.
pub(crate) struct RunningRun {
    folder: TempDir,
    child: Child,
    /// The machine before it.
    before: TrueMachine,
}

/// An ended run.
pub(crate) struct EndedRun {
    pub(crate) record: Value,
    pub(crate) truth: BTreeMap<String, TrueJob>,
    /// The truth about the machine from the start to the end of cosched.
    pub(crate) machine: TrueMachine,
    /// What it printed.
    pub(crate) said: String,
    pub(crate) folder: TempDir,
}

pub(crate) fn folder() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o1777))
        .expect("its mode");
    folder
}

/// Writes the jobs as `mix.toml` into a folder.
pub(crate) fn write_mix(jobs: &[LawJob], folder: &TempDir) {
    let mut mix = String::new();
    for LawJob { name, line } in jobs {
        writeln!(mix, "[[job]]\nname = \"{name}\"\ncommand = '{line}'").expect("a string");
    }
    std::fs::write(folder.path().join("mix.toml"), mix).expect("a file");
}

/// Starts a run with more options.
pub(crate) fn start(user: User, jobs: &[LawJob], options: &[&str]) -> RunningRun {
    let folder = folder();
    write_mix(jobs, &folder);
    let mut command = cosched(user, &folder);
    command.args(["run", "-q", "mix.toml", "--record", "run.json", "--no-logs"]);
    command.args(options);
    let said = std::fs::File::create(folder.path().join("said")).expect("a file");
    command.stderr(said).stdout(Stdio::null());
    let before = truth::of_machine();
    let child = command.spawn().expect("it starts");
    RunningRun {
        folder,
        child,
        before,
    }
}

impl RunningRun {
    /// Waits for the end of the run.
    pub(crate) fn end(mut self) -> EndedRun {
        let status = self.child.wait().expect("a child");
        let machine = truth::of_machine().since(self.before);
        let read =
            |name| std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default();
        let said = read("said");
        assert!(status.success(), "{status}: {said}");
        let record = serde_json::from_str(&read("run.json"));
        EndedRun {
            record: record.unwrap_or_else(|error| panic!("{error}: {said}")),
            truth: truth::of_jobs(),
            machine,
            said,
            folder: self.folder,
        }
    }
}
