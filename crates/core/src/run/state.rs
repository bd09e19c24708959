//! The state of a run in progress. Its behaviour is in the other files: `main_loop` has the turns, `arrivals` takes
//! tasks in, `admit` says who may begin, `enter` lets them into scheduling, `lifecycle` ends them, `shutdown` ends them
//! early, `intervals` turns placements into samples, `actuation` carries out decisions.

use super::admit::Admission;
use super::backend::Backend;
use super::config::{Actuation, RunConfig};
use super::fact::Switch;
use super::intake::Intake;
use super::recorder::Recorder;
use super::result::{EndedBy, LeftOut, Overhead, PlanCounts, TaskResult};
use super::task_record::TaskRecord;
use crate::bus_admission::BusAdmission;
use crate::by_task::ByTask;
use crate::decision::Wait;
use crate::estimate::{IdealBandwidth, Learner};
use crate::model::contention::Contention;
use crate::policy::Policy;
use crate::rng::Rng;
use crate::sample::Sample;
use crate::snapshot::Snapshot;
use crate::task::TaskId;
use crate::traffic::Traffic;
use crate::units::{Nanos, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A run in progress.
pub(super) struct RunLoop<'a, B: Backend> {
    pub(super) backend: &'a mut B,
    pub(super) policy: &'a mut dyn Policy,
    pub(super) recorder: &'a mut dyn Recorder,
    pub(super) intake: &'a mut dyn Intake<B>,
    pub(super) config: &'a RunConfig,
    pub(super) rng: Rng,
    /// Who may begin, and why the others wait.
    pub(super) admission: Admission<'a>,
    /// Whether the backend holds all tasks.
    pub(super) is_paused: bool,
    /// Its tasks are those in scheduling: arrived, not ended, not dying.
    pub(super) snap: Snapshot,
    pub(super) records: ByTask<TaskRecord>,
    /// Number of tasks that have come.
    pub(super) taken: usize,
    /// The mean of the tasks that have come.
    pub(super) ideal: IdealBandwidth,
    /// Results of tasks that have ended for good.
    pub(super) results: Vec<TaskResult>,
    pub(super) left_out: LeftOut,
    /// Time of the last first end of a task.
    pub(super) last_end: Nanos,
    /// Whether any task has a measured width.
    pub(super) measures_widths: bool,
    /// Tasks that were asked to end, with the deadline of each.
    pub(super) dying: BTreeMap<TaskId, DyingTask>,
    pub(super) samples: Vec<Sample>,
    /// The learnt model of the tasks.
    pub(super) learner: Learner,
    pub(super) next_wake: Option<Nanos>,
    pub(super) early_end: Option<EarlyEnd>,
    pub(super) counts: EndCounts,
    pub(super) overhead: Overhead,
    pub(super) policy_faults: u64,
    /// The times placed of tasks that succeeded, in ascending order, if the time limit depends on them.
    pub(super) times: Vec<Nanos>,
    /// Energy until every task had ended once; `None` before, and without restarts.
    pub(super) energy_j: Option<Reading<f64>>,
    /// Time at which the next state is due.
    pub(super) next_state: Nanos,
    /// Whether a task has ended that the last state shows as live.
    pub(super) has_unshown_end: bool,
    /// Why each task waits, from the last decision.
    pub(super) waits: Vec<Wait>,
    /// Tasks placed on CPUs that are gone.
    pub(super) displaced: Vec<TaskId>,
    /// Switches later than the present [moment](RunLoop::moment).
    pub(super) switches: Vec<Switch>,
    /// Input of the next plan; `None` where decisions are carried out one by one.
    pub(super) planning: Option<PlanInput>,
    pub(super) plans: Option<PlanCounts>,
    /// The last reading of the memory domains' traffic, with its time.
    pub(super) traffic: (Nanos, Arc<[Traffic]>),
    /// Time up to which co-runners are noted.
    pub(super) co_runners_since: Nanos,
}

impl<'a, B: Backend> RunLoop<'a, B> {
    /// A run before its start.
    pub(super) fn new(
        backend: &'a mut B,
        policy: &'a mut dyn Policy,
        recorder: &'a mut dyn Recorder,
        intake: &'a mut dyn Intake<B>,
        config: &'a RunConfig,
    ) -> RunLoop<'a, B> {
        let machine = backend.machine();
        let by_plans = config.actuation == Actuation::Plans;
        RunLoop {
            backend,
            policy,
            recorder,
            intake,
            config,
            rng: Rng::new(config.seed),
            admission: Admission::new(config),
            is_paused: false,
            learner: Learner::new(&machine.core_types, config.quantum),
            snap: Snapshot {
                machine,
                now: Nanos::ZERO,
                triggers: Vec::new(),
                queued: 0,
                contention: Contention::default(),
                admits: None,
                ideal_bandwidth: IdealBandwidth::default().mean(),
                tasks: Vec::new(),
            },
            taken: 0,
            ideal: IdealBandwidth::default(),
            results: Vec::new(),
            left_out: LeftOut::default(),
            last_end: Nanos::ZERO,
            measures_widths: false,
            records: ByTask::default(),
            dying: BTreeMap::new(),
            samples: Vec::new(),
            next_wake: None,
            early_end: None,
            counts: EndCounts::default(),
            overhead: Overhead::default(),
            policy_faults: 0,
            times: Vec::new(),
            energy_j: None,
            next_state: Nanos::ZERO,
            has_unshown_end: false,
            waits: Vec::new(),
            displaced: Vec::new(),
            switches: Vec::new(),
            planning: by_plans.then(PlanInput::default),
            plans: by_plans.then(PlanCounts::default),
            co_runners_since: Nanos::ZERO,
            traffic: (Nanos::MAX, Arc::new([])),
        }
    }
}

/// Input of the next plan, besides the decision.
#[derive(Default)]
pub(super) struct PlanInput {
    /// The generation of the last plan; 0 before the first.
    pub(super) generation: u64,
    /// The last admission that the policy published.
    pub(super) admission: Option<BusAdmission>,
}

/// Numbers of failed and succeeded tasks. Only the first end of each task counts.
#[derive(Clone, Copy, Default)]
pub(super) struct EndCounts {
    pub(super) failed: u32,
    pub(super) succeeded: u32,
}

/// A task that was asked to end.
#[derive(Clone, Copy)]
pub(super) struct DyingTask {
    pub(super) kill_at: Nanos,
    pub(super) killed: bool,
}

/// The run is being ended early.
pub(super) struct EarlyEnd {
    pub(super) by: EndedBy,
    pub(super) interrupts: u32,
}
