//! The tests of the simulated machine, as one program, which builds sooner than many.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

#[allow(dead_code)]
#[path = "../../examples/validate/champsim.rs"]
mod champsim;
#[allow(dead_code)]
#[path = "../../examples/validate/measurements.rs"]
mod measurements;
#[allow(dead_code)]
#[path = "../../examples/validate/pbbcache.rs"]
mod pbbcache;

mod absurd_machines;
mod again;
mod devices;
mod faults;
mod fit;
mod held_out;
mod least_solo;
mod oracle;
mod plans;
mod progress;
mod properties;
mod random;
mod random_world;
mod scenarios;
mod support;
mod table;
mod weights;
mod world;
