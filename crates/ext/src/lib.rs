//! The policies of cosched inside the kernel: `sched_ext` schedulers for a [`Host`](cosched_linux::Host). One carries out plans;
//! the other is EFS, which decides by itself at each event.
//!
//! A job that a plan does not name is runnable and is not dispatched, so nothing is ever stopped. When the scheduler is
//! removed, because cosched has died, by the kernel's watchdog or by SysRq-S, all jobs belong to the ordinary scheduler again.
//!
//! `bpf/` has the program in C, `bpf/intf.h` what it exchanges with this crate, which `intf` mirrors. Without the feature `bpf` nothing of it is
//! compiled, and [`SUPPORTED`] is false.

#[cfg(all(test, feature = "bpf"))]
mod cost_tests;
#[cfg(feature = "bpf")]
mod counting;
// Without the program nothing calls them, and their tests do.
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod demands;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod image;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod intf;
#[cfg(feature = "bpf")]
mod scheduler;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod slots;
mod support;
#[cfg(feature = "bpf")]
mod switches;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod tables;
#[cfg_attr(not(feature = "bpf"), allow(dead_code))]
mod traffic;

#[cfg(feature = "bpf")]
pub use scheduler::{ExtError, Scheduler, SchedulerWork};

pub use support::{Lack, lack};

/// Whether this crate was compiled with the program for the kernel.
pub const SUPPORTED: bool = cfg!(feature = "bpf");
