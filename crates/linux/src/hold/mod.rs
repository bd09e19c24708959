//! What cosched freezes and binds, and how that is freed, however cosched dies.
//!
//! A *run* holds its jobs; a *session* (`cosched attach --manage`) holds programs of others. Both enter what they hold in a
//! [`ledger`] before they change it. Both have a [`guardian`], a process that frees what is held if they die. If the guardian
//! dies as well, [`mend`] frees it by the ledger's file, at the next start and in `cosched thaw`.
//!
//! They differ in what freeing means. A run's processes are its own: they are thawed and continued and may use all CPUs of
//! the run, or they are ended ([`jobs`]). A program of others gets the CPUs that it had, thread by thread, unless somebody has
//! changed them since; it is never signalled ([`session`]).

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
