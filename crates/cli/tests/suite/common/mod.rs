//! Runs the built binary in a folder, without the settings of whoever runs the tests, and apart from all other runs on the
//! machine.

pub(crate) mod looping;
pub(crate) mod schema;
pub(crate) mod simulated;

use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The folder in which the runs of these tests find each other. Other runs on the machine are elsewhere.
pub(crate) fn runs_dir() -> &'static Path {
    static DIR: LazyLock<PathBuf> = LazyLock::new(|| {
        remove_runs_dirs_of_ended_tests();
        let dir = std::env::temp_dir().join(format!("{RUNS_DIR_PREFIX}{}", std::process::id()));
        std::fs::create_dir(&dir).expect("a folder");
        // Some tests run cosched as another user.
        std::fs::set_permissions(&dir, Permissions::from_mode(0o1777)).expect("its mode");
        dir
    });
    &DIR
}

const RUNS_DIR_PREFIX: &str = "cosched-tests-";

/// A program of tests can't remove its own folder: nothing of it runs after the last test.
fn remove_runs_dirs_of_ended_tests() {
    for entry in std::fs::read_dir(std::env::temp_dir())
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let pid = name
            .to_str()
            .and_then(|name| name.strip_prefix(RUNS_DIR_PREFIX));
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// Takes the settings of whoever runs the tests from a command.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in
        std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("COSCHED_"))
    {
        command.env_remove(name);
    }
    command.env("COSCHED_RUNS_DIR", runs_dir());
    // Nor those of an allocation.
    command.env_remove("SLURM_JOB_ID");
    // Lines are for /bin/sh.
    command.env_remove("SHELL");
    // What the user's own runs know is none of the tests' business.
    command.env("COSCHED_HISTORY", "off");
    // Nor what was measured of this machine.
    command.env("XDG_DATA_HOME", "/nonexistent");
    // Many tests run at once, and their runs are not to divide the CPUs.
    command.env("COSCHED_CPUS", "all")
}

/// A command that is still to be named. Who runs the tests in the background may ignore signals. Its processes, and those of
/// its jobs, end after some minutes of CPU time: a test that is killed ends no job that spins.
pub(crate) fn bounded() -> Command {
    let mut command = Command::new("/usr/bin/prlimit");
    command.args([
        "--cpu=120",
        "/usr/bin/env",
        "--default-signal=INT,QUIT,HUP,TERM",
    ]);
    without_settings(&mut command);
    command
}

/// A call of cosched that reads nothing from standard input.
pub(crate) fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = bounded();
    command.arg(env!("CARGO_BIN_EXE_cosched"));
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command
}

pub(crate) fn cosched(folder: &TempDir, words: &[&str]) -> Output {
    command(folder.path(), words)
        .output()
        .expect("the binary runs")
}

pub(crate) fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(crate) fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub(crate) fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", out(output), err(output)))
}

/// Says that something can't be tested here. Not captured, so that it is counted.
pub(crate) fn skipped(why: &str) {
    drop(std::io::Write::write_fmt(
        &mut std::io::stderr(),
        format_args!("skipped, because {why}\n"),
    ));
}

/// A CPU that this process may use: the first is not 0 everywhere.
pub(crate) fn one_cpu() -> String {
    let cpus = cosched_linux::affinity(0).expect("the CPUs of this process");
    cpus.iter().next().expect("a CPU").0.to_string()
}

/// Writes a file, and makes its folder if there is none.
pub(crate) fn write(folder: &TempDir, name: &str, text: &str) {
    let path = folder.path().join(name);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, text).expect("a file");
}

pub(crate) fn read(folder: &TempDir, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// The limit of a wait. No condition takes nearly this long, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a run has ended, and ends it if it never does.
pub(crate) fn ended(run: &mut Child) -> ExitStatus {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(status) = run.try_wait().expect("a child") {
            return status;
        }
        if Instant::now() > end {
            let _ = run.kill();
            panic!("the run does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a condition holds; panics with its name if it never does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
