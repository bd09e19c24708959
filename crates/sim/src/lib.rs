//! A simulated multicore behind the loop's backend seam: the same policies, mixes, records and reports as on a real
//! machine, on a machine that you need not own.
//!
//! Deterministic: the same inputs and seed give the same bytes on every machine, in every build. To ensure this,
//! floating-point code uses only `+ - * /` and `sqrt`, and no order depends on a hash.
#![cfg_attr(test, allow(clippy::disallowed_methods))] // The rules are the library's.

mod backend;
mod config;
pub mod curve;
pub mod data;
mod error;
mod fault;
mod fit;
pub mod machine;
pub mod program;
mod reported;
mod residency;
mod schedule;
mod sim;
mod solo;
mod world;

pub use config::{DEFAULT_STEP, DEFAULT_VARIATION, JobWork, SimConfig, SimJob};
pub use data::{
    BuiltIn, MACHINES, PROGRAMS, SpecError, builtin_machine, builtin_program, parse_machine,
    parse_machine_with, parse_program,
};
pub use error::SimError;
pub use fault::{Fault, FaultKind};
pub use fit::{CoreTypesFit, FIT_LENGTH, LightFit, MachineFit, Rates, fit, rates, speeds_beside};
pub use machine::MachineSpec;
pub use program::ProgramSpec;
pub use sim::Sim;
pub use solo::{SoloRun, least_solo_s};
