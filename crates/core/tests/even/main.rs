//! `even` from decision to decision: its measurements, what it leaves idle to save energy, and who has the fast cores.

mod energy;
mod measurement;
mod play;
mod progress;
#[path = "../random/mod.rs"]
mod random;
