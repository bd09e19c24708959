//! What the chapters share: candidates run mixes on a machine with several seeds, and a chapter shows what came of it.

mod draft;
mod error;
mod figure;
pub mod findings;
mod grid;
mod lab;
mod machines;
mod measured;
mod mixes;
mod number;
mod pool;
mod trial;
mod truth;
mod watch;
mod words;

pub(super) use draft::Draft;
pub use error::{ReproduceError, Result};
pub(super) use figure::Series;
pub(super) use findings::{Chapter, FindingCell};
pub(super) use grid::{Grid, gain, lost, saved, share};
pub(super) use lab::Lab;
pub(super) use machines::{changed, fitted, machine, refitted, with_long_slices};
pub(super) use measured::{Figure, TrialMeasurements};
pub(super) use mixes::{ExperimentMix, of_folder, program, spec_programs};
pub(super) use number::plain;
pub use pool::Pool;
pub(super) use trial::{TrialCandidate, simulate};
