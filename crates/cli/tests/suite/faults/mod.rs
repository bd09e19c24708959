//! Faults: whatever happens to a run, to its guardian or to its jobs, nothing stays frozen, no output is lost, and the
//! run leaves nothing behind. `docs/safety.md` names the kinds of faults.
//!
//! Every scenario drives the built program with more jobs than CPUs and a short quantum, so that freezing goes on all
//! the time, once with signals and once with the cgroup freezer where that works.

mod foreign;
mod guardian;
mod inherited;
mod jobs;
mod killed;
mod nested;
mod orphans;
mod reaped;
mod resources;
mod resumed;
#[path = "../../../../xtask/src/seen.rs"]
pub(crate) mod seen;
mod signals;
mod support;
mod unmarked;
mod watch;
