//! The scenarios of `cosched-conformance` on every backend: on this machine with real processes, frozen by signals and by the
//! cgroup freezer, with a scheduler in the kernel, with programs that run already, in the simulation, and in an example world.
//!
//! A backend of real processes must be the only thread of its process, so each scenario is played in a process of its
//! own: see `runner.rs`.

mod adopted;
mod host;
mod in_kernel;
mod processes;
mod runner;

use cosched_conformance::{ForeignFixture, ScenarioSkip, Simulation, WorldJobs, on_fixture};
use cosched_foreign::Command;
use cosched_linux::Freezing;
use std::path::Path;
use std::process::{ExitCode, Stdio};

fn main() -> ExitCode {
    let mut cases = Vec::new();
    cases.extend(on_fixture("simulation", || Ok(Simulation::default())));
    cases.extend(on_fixture("world", queue_world));
    cases.extend(on_fixture("signals", || {
        host::ThisMachine::new(Freezing::Signals)
    }));
    cases.extend(on_fixture("cgroup", || {
        host::ThisMachine::new(Freezing::Cgroup)
    }));
    cases.extend(on_fixture("sched-ext", in_kernel::InKernel::new));
    cases.extend(on_fixture("adopted", || Ok(adopted::Adopted::new())));
    runner::main(&cases)
}

/// The world of `examples/foreign/queue_world.py`.
fn queue_world() -> Result<ForeignFixture, ScenarioSkip> {
    let mut python = std::process::Command::new("python3");
    python.arg("--version").stdout(Stdio::null());
    if !python.status().is_ok_and(|status| status.success()) {
        return Err(ScenarioSkip("there is no python3".to_owned()));
    }
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/foreign");
    let world = examples.join("queue_world.py");
    let word = format!("cmd:python3 '{}'", world.display());
    let command = Command::of(&word).expect("a command");
    let jobs = WorldJobs::read(&examples.join("queue_jobs.toml")).expect("what jobs are given");
    Ok(ForeignFixture::new(command, jobs))
}
