//! The Linux backend of cosched. It reads this machine's topology, counters, energy and memory traffic, starts real
//! processes, freezes them, pins them to CPUs and waits for them. A guardian frees them if the run dies.
//!
//! All readers of `/proc`, `/sys` and cgroups take a [`root::Root`]. Unsafe code is in `sys`, `spawn`,
//! `hold::sentinel` and `counters::sys`.
#![warn(clippy::undocumented_unsafe_blocks)]

pub mod accounts;
mod allocation;
pub mod attached;
mod cgroup;
mod child;
mod console;
pub mod counters;
mod disk;
mod division;
pub mod energy;
pub mod events;
mod hold;
mod host;
pub mod identity;
mod in_dir;
mod inherited;
mod interrupts;
mod limits;
pub mod load;
pub mod meminfo;
mod neighbours;
mod offsets;
pub mod orphans;
mod polite;
mod pressure;
mod process;
pub mod processor;
mod quota;
mod reaped;
mod reaper;
mod resident;
pub mod root;
mod run_id;
mod runtime;
mod screen;
pub mod service;
mod shared_folder;
mod spawn;
mod stat;
mod sys;
pub mod topology;
pub mod traffic;
mod wanting;
mod watch;

pub use allocation::{Allocation, slurm_hosts};
pub use cgroup::{GroupError, freezer_problem};
pub use child::{settle_child, settle_helper};
pub use console::become_helper;
pub use hold::mend;
pub use host::{
    Adoption, Clock, Freezing, HeadroomLimits, Host, HostConfig, HostError, HostJob, HostNotice,
    JobBegin, KernelScheduler, ProgressPattern, capabilities, cpus_of_job, own_cpu_time,
};
pub use inherited::InheritedAttributes;
pub use interrupts::{Interrupt, Interrupts, settle_signals};
pub use limits::{TooLow, check_open_files};
pub use neighbours::{Neighbour, PlaceAmongRuns, Share};
pub use quota::CpuQuota;
pub use reaped::{ReapedEnd, Reaper};
pub use reaper::reap;
pub use resident::Residents;
pub use run_id::{RunFate, fate_of, is_run_id, own_run};
pub use runtime::{NoFolder, folder_problem};
pub use screen::{ScreenSignal, ScreenSignals};
pub use spawn::{Environment, JobProgram, find_program};
pub use sys::{affinity, pin_thread, prefer_huge_pages, same_open_file, time_of_day, unix_time};
pub use watch::{
    LiveRun, LiveSettings, PublishedState, RunRequest, RunRequests, WatchFiles, live_runs,
};
