//! Admitted tasks enter scheduling: the policy decides on them from then on.

use super::admit::{AdmissionAnswer, AdmissionInput, AdmittedTask};
use super::backend::Backend;
use super::state::RunLoop;
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

impl<B: Backend> RunLoop<'_, B> {
    /// Asks who may begin now, and lets those into scheduling.
    pub(super) fn admit(&mut self, now: Nanos, triggers: &mut Vec<Trigger>) {
        let answer = self.ask_admission(now);
        for news in &answer.news {
            self.recorder.emit(now, news.fact());
        }
        for &task in &answer.admitted {
            self.enter(now, task);
            triggers.push(Trigger::Arrived(task.id));
        }
        if answer.admitted.is_empty() {
            return;
        }
        // One pass for all arrivals: one pass for each would cost quadratic time.
        let least = self.least_progress();
        for task in &answer.admitted {
            self.begin(task.id, &least);
        }
    }

    fn ask_admission(&mut self, now: Nanos) -> AdmissionAnswer {
        let is_open = self.is_open();
        self.admission.who_may_begin(&mut AdmissionInput {
            now,
            machine: &self.snap.machine,
            records: &self.records,
            live: self.snap.tasks.iter().map(|task| task.id).collect(),
            some_end: !self.dying.is_empty(),
            is_open,
            may_start: &mut |task| self.backend.may_start(task),
        })
    }

    /// Adds an admitted task to the snapshot.
    fn enter(&mut self, now: Nanos, task: AdmittedTask) {
        let spec = &self.records[task.id].spec;
        let view = TaskView {
            arrived: task.arrived,
            turn: task.turn,
            cpus: fitting(spec, &self.snap.machine),
            ..TaskView::arriving(spec, now, Estimates::default())
        };
        let tasks = &mut self.snap.tasks;
        let position = tasks.partition_point(|other| other.id < task.id);
        tasks.insert(position, Box::new(view));
    }

    fn least_progress(&self) -> LeastProgress {
        // The coordinator of several nodes does not know the progress of its tasks.
        let is_known = self.snap.machine.nodes.is_empty();
        if is_known && self.policy.evens_progress() {
            LeastProgress::of(&self.snap)
        } else {
            LeastProgress::default()
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
}
