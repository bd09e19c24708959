//! `even` from decision to decision: its measurements, the cores that it leaves idle, and its use of the fast cores.

mod energy;
mod measurement;
mod play;
mod progress;
