//! The contract of [`cosched_core::Backend`], as scenarios that are written once and played on every backend: on this
//! machine with real processes, frozen by signals and by the cgroup freezer, with a scheduler in the kernel, with programs that
//! run already, in the simulation, and in a simulation of somebody else's in a process of its own.
//!
//! `checked.rs` stands between each scenario and its backend, and checks what the contract says about every call. The
//! scenarios are in `scenarios/`. The differences between the backends are in `host.rs`, `simulated.rs` and `world.rs`. A scenario
//! that a backend can't play says why.
//!
//! A backend of real processes must be the only thread of its process, so each scenario is played in a process of its
//! own: see `runner.rs`.

mod adopted;
mod checked;
mod fixture;
mod host;
mod in_kernel;
mod processes;
mod runner;
mod scenarios;
mod simulated;
mod world;

use cosched_linux::Freezing;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut cases = Vec::new();
    cases.extend(scenarios::on_fixture("simulation", || {
        Ok(simulated::Simulation::new())
    }));
    cases.extend(scenarios::on_fixture("world", world::QueueWorld::new));
    cases.extend(scenarios::on_fixture("signals", || {
        host::ThisMachine::new(Freezing::Signals)
    }));
    cases.extend(scenarios::on_fixture("cgroup", || {
        host::ThisMachine::new(Freezing::Cgroup)
    }));
    cases.extend(scenarios::on_fixture("sched-ext", in_kernel::InKernel::new));
    cases.extend(scenarios::on_fixture("adopted", || {
        Ok(adopted::Adopted::new())
    }));
    runner::main(&cases)
}
