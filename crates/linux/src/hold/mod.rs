//! What cosched freezes and binds, and how that is freed, however cosched dies.
//!
//! A *run* holds its jobs; a *session* (`cosched attach --manage`) holds programs of others. Both enter what they hold in a
//! [`ledger`] before they change it. Both have a [`guardian`], a process that frees what is held if they die. If the guardian
//! dies as well, [`mend`] frees it by the ledger's file, at the next start and in `cosched thaw`.
//!
//! They differ where jobs and programs of others differ:
//!
//! | | run | session |
//! | --- | --- | --- |
//! | freezes | the group of a job, or its processes by signals | groups of others, with permission; it never signals |
//! | binds | all threads of a job | threads that nobody has narrowed, and remembers their CPUs one by one |
//! | if it dies | jobs run on with the CPUs of the run, or end ([`jobs`]) | each thread gets the CPUs that it had ([`session`]) |
//! | without a guardian | goes on, warns, and tries again | changes nothing |
//!
//! [`mend`]: crate::mend

pub(crate) mod claim;
pub(crate) mod guardian;
pub(crate) mod jobs;
pub(crate) mod ledger;
pub mod mend;
pub(crate) mod process_scan;
mod sentinel;
pub(crate) mod session;
pub(crate) mod stop;
pub(crate) mod tree;
