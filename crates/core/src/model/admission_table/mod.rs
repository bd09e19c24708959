//! The admission threshold (EFS, Eq. 16) for a scheduler that adds and removes tasks all the time: integers only,
//! bounded loops, no division, and the same cost whether 4 or 512 CPUs are busy.
//!
//! # The idea
//! The paper suggests look-up tables for many cores but does not work them out; this form is ours. Eq. 10 splits the
//! speed of a task into the time it uses the bus and the time it computes, `s = u + h`, and with the odds `o = b / (1 -
//! b)` both depend on one ratio alone:
//!
//! ```text
//! h = 2 / (1 + sqrt(1 + 4 o / D))        u = o h
//! ```
//!
//! So demands are sorted into classes of equal steps in `log o` (64 to the octave), the free share `D` into a grid of
//! equal steps in `log D` (2 to the octave, 65 points), and one table of `h` over `log o - log D` holds everything. A
//! [`BusLoad`] keeps the sums of `u` and `h` of the running tasks at each of the 65 points: adding or removing a task
//! touches these and nothing else. As they are integers, no rounding ever accumulates.
//!
//! The threshold takes two binary searches over the grid. The first finds the point where the tasks' utilisations fill
//! the bus, `sum u = 1 - D`, which gives the present throughput. The second finds the point where a task that uses up
//! the rest of the bus would bring the throughput to what is needed. Logarithms by look-up turn that task's utilisation
//! into a class.
//!
//! # Error
//! For up to [`MOST_TASKS`] tasks the throughput differs from the exact one (see [`bus`](super::bus)) by less than 1 %:
//! half a step of the odds, 0.54 %, moves the throughput by no more than about as much, and the interpolation adds up
//! to 0.37 %. Likewise the exact throughput with a task at the threshold differs from the needed one by less than 1 %.
//! The largest errors in some ten thousand mixtures that were chosen to be hard are 0.54 % and 0.39 %; the tests hold
//! the 1 %. Demands below 2^-42 count as 0, and demands above 1024/1025 = 0.99902 count as that value. So the limit in
//! which tasks with `b = 1` stop all others is not reproduced; no counter can tell such demands apart.

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
pub use table::AdmissionTable;
