//! A policy that is shown true progress instead of its estimate, to find the price of wrong estimates.

use cosched_core::{Decision, Policy, Rng, Snapshot};

/// A policy that knows the true progress of its jobs, where there are solo traces.
pub(crate) struct KnowsProgress(pub(crate) Box<dyn Policy>);

impl Policy for KnowsProgress {
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision {
        let mut known = snapshot.clone();
        for task in &mut known.tasks {
            task.estimates.progress = task.estimates.trace_progress;
        }
        self.0.decide(&known, rng)
    }

    fn evens_progress(&self) -> bool {
        self.0.evens_progress()
    }

    fn wants_visible(&self) -> bool {
        self.0.wants_visible()
    }

    fn save(&self) -> serde_json::Value {
        self.0.save()
    }

    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
        self.0.load(state)
    }
}
