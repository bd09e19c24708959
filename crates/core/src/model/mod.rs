//! The equations of two scheduling papers, and one model of our own, as a small library without state, I/O, clock or
//! randomness.
//!
//! # Primer
//! Programs that run together on a multicore share the memory bus. While it serves one of them, the others that need it
//! wait, on cores that go on using power. The damage depends on one figure per program: the share of its time for which
//! it keeps the bus busy when it runs alone, its solo utilisation or demand `b`.
//!
//! 1. Counters measure another figure, the utilisation `u` under contention. [`bus`] turns the `u` of all running
//!    programs into their `b` (EFS, Eq. 9), and the `b` of any set of programs into the speed of each and the
//!    throughput of all (Eqs. 10-12).
//! 2. [`window`] predicts the demand in the next interval from past ones (Eq. 20).
//! 3. [`power`] gives the power of a number of active cores and, with the throughput, the energy per work (Eqs. 13-15).
//! 4. [`bus_admission_table`] answers the inverse question: how great may the demand of one more program be before the core
//!    that it wakes costs more than it brings (Eq. 16)? It needs bounded time and integers only, so that a scheduler in
//!    a kernel can do the same. [`objective`] defines what must not become worse.
//! 5. A refused program must not wait for ever: [`starvation`] defines when it has waited too long (Eqs. 21-24).
//!
//! On processors with big and small cores the question is which thread gets a big one. [`cross_core`] predicts the
//! speed and efficiency of a thread on the other type; [`lottery`] draws the winner in proportion to that.
//!
//! [`contention`] is ours: the slowdown of jobs in cores, caches and memory, fitted while they run.
//!
//! ```
//! use cosched_core::model::{bus, power::{PowerModel, energy_per_work}};
//! // A quad-core (EFS, Eq. 25) runs two programs that need the bus 60 % of the time each.
//! let power = PowerModel::new([26.6, 22.6, 12.0, 12.3])?;
//! let two = bus::throughput(&[0.6, 0.6])?;
//! assert!((two - 1.396).abs() < 1e-3);
//! // A third one of the same kind had better wait: with it each piece of work would cost 47.9 J and not 43.8 J.
//! let three = bus::throughput(&[0.6, 0.6, 0.6])?;
//! assert!(energy_per_work(power.watts(3), three)? > energy_per_work(power.watts(2), two)?);
//! # Ok::<(), cosched_core::model::ModelError>(())
//! ```
//!
//! # Conventions
//! Demands, utilisations and speeds are shares from 0 to 1. Times are whole nanoseconds, powers watts. Input outside
//! the stated range is refused with a [`ModelError`], never corrected silently. Figures of [`contention`] are fitted,
//! not given, and bounded by the fit. Only sums, differences, products, quotients, square roots and functions of `libm`
//! are used, which every machine computes to the same last digit.
//!
//! # Sources
//! - EFS: Energy-Friendly Scheduler for memory-bandwidth-constrained systems (2016).
//! - lucky: Lucky scheduling for energy-efficient heterogeneous multi-core systems.

pub mod bus;
pub mod bus_admission_table;
pub mod contention;
pub mod cross_core;
mod error;
mod fixed;
mod inverse_power;
pub mod lottery;
pub mod objective;
pub mod power;
#[cfg(test)]
mod samples;
pub mod starvation;
pub mod window;

pub use error::ModelError;
