//! `even` from decision to decision: its measurements, the cores that it leaves idle, its use of the fast
//! cores, and where jobs first run.

mod energy;
mod homes;
mod measurement;
mod play;
mod progress;
