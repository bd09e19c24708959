//! Who is told what happens in a run.

use super::fact::Fact;
use super::now::RunNow;
use crate::snapshot::Snapshot;
use crate::units::Nanos;

/// Records a run. All methods do nothing by default.
pub trait Recorder {
    /// Whether the recorder wants the policy's state with each decision, which costs time.
    fn wants_policy_state(&self) -> bool {
        false
    }
    /// Something happened.
    fn emit(&mut self, _at: Nanos, _fact: Fact<'_>) {}
    /// Called after every wait, at least once a quantum.
    fn tick(&mut self, _snapshot: &Snapshot, _queued: usize) {}
    /// Whether it holds what a slow reader has not taken. It is then [asked](Recorder::tick) again soon, even if nothing
    /// happens.
    fn is_behind(&self) -> bool {
        false
    }
    /// Whether the recorder wants the state of the run, at most once a second.
    fn wants_state(&self) -> bool {
        false
    }
    /// The state of the run: after its first decision, then at most once a second, and at its end.
    fn state(&mut self, _now: &RunNow<'_>) {}
}

/// Records nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullRecorder;

impl Recorder for NullRecorder {}
