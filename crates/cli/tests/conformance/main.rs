//! The contract of [`cosched_core::Backend`], as scenarios that are written once and played in every world: on this
//! machine with real processes, frozen by signals and by the cgroup freezer, and in the simulation.
//!
//! What every call must keep to is in `checked.rs`, which stands between each scenario and its backend; what a
//! scenario is about is in `scenarios/`; what differs between the worlds is in `host.rs` and `simulated.rs`. A scenario
//! that a world can't play says why.
//!
//! A backend of real processes must be the only thread of its process, so each scenario is played in a process of its
//! own: see `runner.rs`.

mod checked;
mod host;
mod processes;
mod runner;
mod scenarios;
mod simulated;
mod world;

use cosched_linux::Freezing;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    cases.extend(scenarios::in_world("simulation", || Ok(simulated::Simulation::new())));
    cases.extend(scenarios::in_world("signals", || host::ThisMachine::new(Freezing::Signals)));
    cases.extend(scenarios::in_world("cgroup", || host::ThisMachine::new(Freezing::Cgroup)));
    runner::main(&cases)
}
