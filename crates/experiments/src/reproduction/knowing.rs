//! A policy that is shown true progress in place of estimated progress: what wrong estimates cost is found by replacing
//! them alone.

use cosched_core::{Decision, Policy, Rng, Snapshot};

/// A policy that knows the true progress of its jobs, where there are solo traces.
pub(crate) struct Knowing(pub(crate) Box<dyn Policy>);

impl Policy for Knowing {
    fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision {
        let mut known = snapshot.clone();
        for task in &mut known.tasks {
            task.estimates.progress = task.estimates.trace_progress;
            if let (cosched_core::Reading::Value(learnt), Some(truth)) = (
                &mut task.estimates.learnt,
                task.estimates.trace_progress.value(),
            ) {
                learnt.progress = truth;
            }
        }
        self.0.decide(&known, rng)
    }

    fn save(&self) -> serde_json::Value {
        self.0.save()
    }

    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
        self.0.load(state)
    }
}
