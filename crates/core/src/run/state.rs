//! The state of a run in progress. Its behaviour is in the files beside: `main_loop` has the turns, `lifecycle` lets
//! tasks come and go, `shutdown` ends them, `intervals` turns placements into samples, `actuation` carries out what was
//! decided.

use super::backend::Backend;
use super::config::{Actuation, RunConfig};
use super::order::classes;
use super::recorder::{EndedBy, Overhead, PlanCounts, Recorder, Switch};
use super::task_record::TaskRecord;
use crate::admission::Admission;
use crate::decision::Wait;
use crate::estimate::Learner;
use crate::model::contention::Contention;
use crate::policy::Policy;
use crate::rng::Rng;
use crate::sample::Sample;
use crate::snapshot::Snapshot;
use crate::task::{TaskId, TaskSpec, Width};
use crate::traffic::Traffic;
use crate::units::{Nanos, Reading};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A run in progress.
pub(super) struct Loop<'a, B: Backend> {
    pub(super) backend: &'a mut B,
    pub(super) policy: &'a mut dyn Policy,
    pub(super) recorder: &'a mut dyn Recorder,
    pub(super) config: &'a RunConfig,
    pub(super) rng: Rng,
    /// Its tasks are those that take part in scheduling: arrived, not ended, not dying.
    pub(super) snap: Snapshot,
    pub(super) records: Vec<TaskRecord>,
    pub(super) pending: VecDeque<TaskId>,
    /// Number of tasks at the front of `pending` that are in order of admission.
    pub(super) ordered: usize,
    /// The [class](super::order::classes) of each task.
    pub(super) classes: Vec<u32>,
    /// Tasks that were let in.
    pub(super) turns: u32,
    /// Already warned that tasks wait for memory.
    pub(super) told_memory: bool,
    /// Already warned that a task may exceed free memory.
    pub(super) told_short: bool,
    /// Whether the width of any task is measured.
    pub(super) measures_widths: bool,
    /// Tasks that were asked to end, and when each is killed.
    pub(super) dying: BTreeMap<TaskId, Dying>,
    pub(super) samples: Vec<Sample>,
    /// What is learnt of the tasks beside each other.
    pub(super) learner: Learner,
    pub(super) next_wake: Option<Nanos>,
    pub(super) drain: Option<Drain>,
    pub(super) counts: Tally,
    pub(super) overhead: Overhead,
    pub(super) policy_faults: u64,
    pub(super) room_retry: Option<Nanos>,
    /// When a task was started last.
    pub(super) last_start: Option<Nanos>,
    /// The times for which the tasks that ended well were placed, in rising order, if the time limit goes by them.
    pub(super) times: Vec<Nanos>,
    /// Energy up to the moment when every task had ended once; `None` until then, and where tasks are not started
    /// again.
    pub(super) energy_j: Option<Reading<f64>>,
    /// When the recorder is shown the next state.
    pub(super) next_state: Nanos,
    /// Why each task waits since the last decision.
    pub(super) waits: Vec<Wait>,
    /// Tasks that were placed on CPUs that are gone.
    pub(super) displaced: Vec<TaskId>,
    /// Switches after the [moment](Loop::moment) that is told of.
    pub(super) switches: Vec<Switch>,
    /// What the next plan needs; `None` where decisions are carried out one by one.
    pub(super) planning: Option<Planning>,
    pub(super) plans: Option<PlanCounts>,
    /// What the memory domains had moved at the instant at which that was read last.
    pub(super) traffic: (Nanos, Arc<[Traffic]>),
}

impl<'a, B: Backend> Loop<'a, B> {
    /// A run that is about to begin.
    pub(super) fn new(
        backend: &'a mut B,
        policy: &'a mut dyn Policy,
        recorder: &'a mut dyn Recorder,
        tasks: Vec<TaskSpec>,
        config: &'a RunConfig,
    ) -> Loop<'a, B> {
        let machine = backend.machine();
        let by_plans = config.actuation == Actuation::Plans;
        let mut pending: Vec<TaskId> = tasks.iter().map(|task| task.id).collect();
        pending.sort_by_key(|id| (tasks[id.0 as usize].arrives, *id));
        Loop {
            backend,
            policy,
            recorder,
            config,
            rng: Rng::new(config.seed),
            learner: Learner::new(&machine.core_types, config.quantum),
            snap: Snapshot {
                machine,
                now: Nanos::ZERO,
                triggers: Vec::new(),
                queued: 0,
                contention: Contention::default(),
                admits: None,
                tasks: Vec::new(),
            },
            classes: classes(&tasks, config),
            measures_widths: tasks.iter().any(|task| task.width == Width::Measured),
            records: tasks
                .into_iter()
                .map(|spec| TaskRecord::new(spec, config.quantum))
                .collect(),
            pending: pending.into(),
            ordered: 0,
            turns: 0,
            told_memory: false,
            told_short: false,
            dying: BTreeMap::new(),
            samples: Vec::new(),
            next_wake: None,
            drain: None,
            counts: Tally::default(),
            overhead: Overhead::default(),
            policy_faults: 0,
            room_retry: None,
            last_start: None,
            times: Vec::new(),
            energy_j: None,
            next_state: Nanos::ZERO,
            waits: Vec::new(),
            displaced: Vec::new(),
            switches: Vec::new(),
            planning: by_plans.then(Planning::default),
            plans: by_plans.then(PlanCounts::default),
            traffic: (Nanos::MAX, Arc::new([])),
        }
    }
}

/// What goes into the next plan besides the decision.
#[derive(Default)]
pub(super) struct Planning {
    /// The generation of the last plan; 0 before the first.
    pub(super) generation: u64,
    /// The admission that the policy published last.
    pub(super) admission: Option<Admission>,
}

/// How many tasks have failed and succeeded. Only the first end of each task counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Tally {
    pub(super) failed: u32,
    pub(super) succeeded: u32,
}

/// A task that was asked to end.
#[derive(Clone, Copy)]
pub(super) struct Dying {
    pub(super) kill_at: Nanos,
    pub(super) killed: bool,
}

/// The run is being ended early.
pub(super) struct Drain {
    pub(super) by: EndedBy,
    pub(super) interrupts: u32,
}
