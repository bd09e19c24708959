//! What every backend must do, and every policy, as scenarios that are written once and played on each of them.
//!
//! `checked` stands between each scenario and its backend, and checks what the contract of [`cosched_core::Backend`] says about
//! every call. A scenario that a backend can't play says why. One that fails panics.
//!
//! - `fixture`: what differs between backends, and the jobs of the scenarios
//! - `simulated`: the built-in simulation; `world`: a world in a process of its own
//! - `scenarios`: the scenarios
//! - `played`: plays them within this process

mod checked;
mod fixture;
mod played;
mod scenarios;
mod simulated;
mod world;

pub use fixture::{Fixture, JobAction, ScenarioJob, ScenarioOutcome, ScenarioSkip, job, name};
pub use played::{Played, ScenarioVerdict, play};
pub use scenarios::{Case, of_policy, on_fixture};
pub use simulated::Simulation;
pub use world::{ForeignFixture, WorldJobs, WorldJobsError};
