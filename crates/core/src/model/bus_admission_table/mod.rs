//! The admission threshold (EFS, Eq. 16) for a scheduler that often adds and removes tasks: integers only, bounded
//! loops, no division, and the same cost for 4 or 512 busy CPUs.
//!
//! # The idea
//! The paper suggests look-up tables for many cores but does not work them out; this form is ours. Eq. 10 splits the
//! speed of a task into the time it uses the bus and the time it computes, `s = u + h`. With the odds `o = b / (1 - b)`
//! both depend on one ratio alone:
//!
//! ```text
//! h = 2 / (1 + sqrt(1 + 4 o / D))        u = o h
//! ```
//!
//! So demands are sorted into classes of equal steps in `log o` (64 per octave), the free share `D` into a grid of
//! equal steps in `log D` (2 per octave, 65 points), and one table of `h` over `log o - log D` covers all. A
//! [`BusLoad`] keeps the sums of `u` and `h` of the running tasks at each of the 65 points: adding or removing a task
//! changes nothing else. As they are integers, no rounding accumulates.
//!
//! The threshold takes two binary searches over the grid. The first finds the point where the tasks' utilisations fill
//! the bus, `sum u = 1 - D`, which gives the present throughput. The second finds the point where a task that uses the
//! rest of the bus would bring the throughput to the required one. Logarithms by look-up turn that task's utilisation
//! into a class.
//!
//! # Error
//! For up to [`MOST_TASKS`] tasks the throughput differs from the exact one (see [`bus`](super::bus)) by less than 1 %:
//! half a step of the odds, 0.54 %, moves the throughput by about as much at most, and the interpolation adds up to
//! 0.37 %. Likewise the exact throughput with a task at the threshold differs from the required one by less than 1 %.
//! The largest errors in about ten thousand mixtures chosen to be hard are 0.54 % and 0.39 %; the tests hold the 1 %.
//! Demands below 2^-42 count as 0, and demands above 1024/1025 = 0.99902 count as that value. So the limit in which
//! tasks with `b = 1` stop all others is not reproduced; no counter can tell such demands apart.

mod ceiling;
mod class;
mod gain;
mod load;
mod search;
mod state;
mod table;
#[cfg(test)]
mod tests;

pub use crate::model::fixed::Logarithms;
pub use class::DemandClass;
pub use gain::Gain;
pub use load::{BusLoad, MOST_TASKS};
pub use table::BusAdmissionTable;
