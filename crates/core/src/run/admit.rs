//! Tasks are admitted: they leave the queue, and the policy decides on them from then on.

use super::at_once::AtOnce;
use super::backend::Backend;
use super::state::Loop;
use crate::estimate::{InitialProgress, TaskEstimator};
use crate::policy::weights::{Weights, entitled};
use crate::snapshot::{Estimates, Snapshot, TaskView, Trigger};
use crate::task::{TaskId, TaskSpec};
use crate::topology::Machine;
use crate::units::{Nanos, Reading};

/// The least progress of the admitted tasks by weight over the least, by each known measure. A task that always runs
/// sets no example, as long as others do: it can't use more than its CPUs, so it may lag behind for ever.
#[derive(Default)]
struct LeastProgress {
    weights: Weights,
    estimated: Option<f64>,
    by_trace: Option<f64>,
    learnt: Option<f64>,
}

impl LeastProgress {
    fn of(snap: &Snapshot) -> LeastProgress {
        let entitled = entitled(snap);
        LeastProgress {
            weights: Weights::of(snap),
            estimated: least(snap, &entitled, |task| task.estimates.progress),
            by_trace: least(snap, &entitled, |task| task.estimates.trace_progress),
            learnt: least(snap, &entitled, |task| {
                task.estimates.learnt.as_ref().map(|learnt| learnt.progress)
            }),
        }
    }

    /// The initial progress of a task that arrives now.
    fn start(&self, task: &TaskView) -> InitialProgress {
        InitialProgress {
            progress: self.of_task(self.estimated, task),
            trace_progress: self.of_task(self.by_trace, task),
        }
    }

    fn of_task(&self, least: Option<f64>, task: &TaskView) -> f64 {
        least.map_or(0.0, |least| least * self.weights.over_least(task))
    }
}

/// The least known progress by weight of the tasks that are not entitled to run always, or if there are none, of the
/// lightest, which would be the first to lose that.
fn least(
    snap: &Snapshot,
    entitled: &[bool],
    progress: fn(&TaskView) -> Reading<f64>,
) -> Option<f64> {
    let weights = Weights::of(snap);
    let known = snap.tasks.iter().enumerate().filter_map(|(ix, task)| {
        let rank = if entitled.get(ix) == Some(&true) {
            task.weight
        } else {
            0.0
        };
        let progress = progress(task).value()?;
        Some((rank, progress / weights.over_least(task)))
    });
    let least = known.reduce(|one, other| if other < one { other } else { one });
    least.map(|(_, progress)| progress)
}

/// The CPUs that a task gets at the same time: as many as it needs, or all that it may use if there are fewer by now.
pub(super) fn fitting(spec: &TaskSpec, machine: &Machine) -> u32 {
    if spec.cpus == 1 {
        return 1;
    }
    let usable = match &spec.allowed {
        Some(mask) => machine.widest(&mask.intersection(&machine.all_cpus())),
        None => machine.widest(&machine.all_cpus()),
    };
    spec.cpus.min(usable.max(1) as u32)
}

impl<B: Backend> Loop<'_, B> {
    /// Admits due tasks, as far as the limits allow.
    pub(super) fn admit(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        self.room_retry = None;
        let mut admitted: Vec<TaskId> = Vec::new();
        self.put_in_order(now);
        self.begin_at_once();
        while self.ordered > 0 && self.snap.tasks.len() < self.most_live() {
            if self.config.delay > Nanos::ZERO
                && (self.some_task_is_new() || self.delay_end().is_some_and(|end| end > now))
            {
                break;
            }
            let Some(place) = self.place_of_next(now) else {
                break;
            };
            let Some(id) = self.pending.remove(place) else {
                break;
            };
            self.ordered = self.ordered.saturating_sub(1);
            let record = &self.records[id];
            let machine = &self.snap.machine;
            let view = TaskView {
                // A restarted task arrives again; a new task may have queued since its arrival.
                arrived: if record.is_again {
                    now
                } else {
                    record.spec.arrives
                },
                turn: record.turn.unwrap_or(self.turns),
                cpus: fitting(&record.spec, machine),
                ..TaskView::arriving(&record.spec, now, Estimates::default())
            };
            self.turns += 1;
            let pos = self.snap.tasks.partition_point(|task| task.id < id);
            self.snap.tasks.insert(pos, Box::new(view));
            admitted.push(id);
            triggers.push(Trigger::Arrived(id));
        }
        self.report_at_once(now, &admitted);
        // One pass for all arrivals: one pass for each would cost quadratic time.
        if !admitted.is_empty() {
            // The coordinator of several nodes does not know the progress of its tasks.
            let is_known = self.snap.machine.nodes.is_empty();
            let least = if is_known && self.policy.evens_progress() {
                LeastProgress::of(&self.snap)
            } else {
                LeastProgress::default()
            };
            admitted.iter().for_each(|&id| self.begin(id, &least));
        }
    }

    /// Begins the estimates of an admitted task.
    fn begin(&mut self, id: TaskId, least: &LeastProgress) {
        let Some(position) = self.snap.position(id) else {
            return;
        };
        let task = &mut self.snap.tasks[position];
        let record = &mut self.records[id];
        let spec = &record.spec;
        record.estimator = TaskEstimator::new(spec, self.config.quantum, least.start(task));
        let earlier = record.learnt.as_deref().or(spec.earlier.as_deref());
        let learnt = least.of_task(least.learnt, task);
        self.learner.begin(id, spec.cpus, learnt, earlier);
        task.estimates = record.estimator.initial();
        task.estimates.learnt = self.learner.known(id);
    }

    /// Maximum number of admitted tasks.
    pub(super) fn most_live(&self) -> usize {
        let learnt = self.at_once.as_ref().map(AtOnce::limit);
        self.jobs.or(learnt).unwrap_or_else(|| self.full_width())
    }

    /// The same before anything is learnt.
    pub(super) fn full_width(&self) -> usize {
        self.config.full_width(&self.snap.machine)
    }

    /// End of the delay after the last start; `None` before the first start, or without a delay.
    pub(super) fn delay_end(&self) -> Option<Nanos> {
        self.last_start
            .filter(|_| self.config.delay > Nanos::ZERO)
            .map(|last| last + self.config.delay)
    }

    /// Whether an admitted task has not been started. With a delay there is at most one, because the policy could start
    /// two at once.
    fn some_task_is_new(&self) -> bool {
        self.snap
            .tasks
            .iter()
            .any(|task| self.records[task.id].started.is_none())
    }
}
