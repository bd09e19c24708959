//! What the loop keeps of a task from before its arrival to after its end, besides the view that policies see.

use super::recorder::TaskResult;
use crate::estimate::{Earlier, Start, TaskEstimator, WidthEstimator};
use crate::placement::Purpose;
use crate::resources::Resources;
use crate::sample::Usage;
use crate::snapshot::ProgressBasis;
use crate::task::{Exit, TaskId, TaskSpec, Width};
use crate::topology::CpuSet;
use crate::traffic::Traffic;
use crate::units::{Absence, Nanos, Reading};
use std::sync::Arc;

pub(super) struct TaskRecord {
    pub(super) spec: TaskSpec,
    pub(super) estimator: TaskEstimator,
    /// How many of its threads want a CPU; only if its width is measured.
    pub(super) width: WidthEstimator,
    /// The CPUs that it may use since its last placement: its own, and those that were spare.
    pub(super) bound: CpuSet,
    pub(super) interval: Option<Interval>,
    /// What it had used when its last interval ended.
    pub(super) used: Usage,
    /// What else it had used when it ended.
    pub(super) resources: Option<Resources>,
    pub(super) started: Option<Nanos>,
    pub(super) finished: Option<Nanos>,
    pub(super) exit: Option<Exit>,
    pub(super) waited_max: Nanos,
    /// Time placed, in all its intervals.
    pub(super) ran: Nanos,
    /// It was placed on CPUs that the kernel shares out.
    pub(super) shared: bool,
    pub(super) progress_basis: ProgressBasis,
    pub(super) last_solo: Reading<f64>,
    pub(super) timed_out: bool,
    pub(super) told_to_end: bool,
    pub(super) ended_by_user: bool,
    pub(super) told_overdue: bool,
    pub(super) runs: u32,
    /// The result of the first run, where tasks are started again.
    pub(super) first: Option<Box<TaskResult>>,
    /// What was learnt of it in its last run.
    pub(super) learnt: Option<Arc<Earlier>>,
    /// What was learnt of what it has done in this run.
    pub(super) progress_learnt: Reading<f64>,
}

/// The open interval of a task that is placed, or that may fill in for one.
pub(super) struct Interval {
    pub(super) since: Nanos,
    pub(super) planned_end: Option<Nanos>,
    pub(super) purpose: Purpose,
    pub(super) cpus: CpuSet,
    pub(super) whole_core: bool,
    pub(super) co_runners: Arc<[TaskId]>,
    pub(super) disturbed: bool,
    /// What the memory domains had moved when it began; empty where that is not read.
    pub(super) traffic: Arc<[Traffic]>,
}

impl TaskRecord {
    pub(super) fn new(spec: TaskSpec, quantum: Nanos) -> TaskRecord {
        let used = Usage::zero(spec.id);
        TaskRecord {
            estimator: TaskEstimator::new(&spec, quantum, Start::default()),
            spec,
            width: WidthEstimator::new(),
            bound: CpuSet::new(),
            interval: None,
            used,
            resources: None,
            started: None,
            finished: None,
            exit: None,
            waited_max: Nanos::ZERO,
            ran: Nanos::ZERO,
            shared: false,
            progress_basis: ProgressBasis::Provisional,
            last_solo: Reading::Absent(Absence::NoSoloEstimate),
            timed_out: false,
            told_to_end: false,
            ended_by_user: false,
            told_overdue: false,
            runs: 0,
            first: None,
            learnt: None,
            progress_learnt: Reading::Absent(Absence::NotEnded),
        }
    }

    /// Forgets the run that has ended, except its result and the number of runs.
    pub(super) fn begin_anew(&mut self, quantum: Nanos) {
        let fresh = TaskRecord::new(self.spec.clone(), quantum);
        *self = TaskRecord {
            runs: self.runs,
            first: self.first.take(),
            learnt: self.learnt.take(),
            ..fresh
        };
    }

    /// Notes the end of this run, and returns how it counts.
    pub(super) fn finish(&mut self, now: Nanos, exit: Exit, was_dying: bool) -> Exit {
        if matches!(exit, Exit::NotStarted(_)) {
            self.started = None;
            self.runs = self.runs.saturating_sub(1);
        }
        self.interval = None;
        self.finished = Some(now);
        self.told_to_end = was_dying && !self.timed_out;
        // It may have saved its state and left the rest for another time: it is not done.
        if (self.told_to_end || self.timed_out) && exit.ok() {
            Exit::ToldToEnd
        } else {
            exit
        }
    }

    pub(super) fn has_ended_once(&self) -> bool {
        self.first.is_some() || self.finished.is_some()
    }

    /// Quanta' worth of solo execution done in this run of it, and what that is based on.
    pub(super) fn earned(&self) -> (Reading<f64>, ProgressBasis) {
        let traced = self.estimator.earned_by_trace();
        let basis = if traced.is_some() {
            ProgressBasis::Trace
        } else {
            self.progress_basis
        };
        let progress = match traced {
            _ if self.started.is_none() => Reading::Absent(Absence::NotStarted),
            Some(progress) => Reading::Value(progress),
            None if basis == ProgressBasis::Provisional => {
                Reading::Absent(self.last_solo.absence().unwrap_or(Absence::NoSoloEstimate))
            }
            None => Reading::Value(self.estimator.earned()),
        };
        (progress, basis)
    }

    /// The result of the task; of its first run, if it was started again.
    pub(super) fn result(&self) -> TaskResult {
        if let Some(first) = &self.first {
            return TaskResult {
                runs: self.runs,
                ..(**first).clone()
            };
        }
        let started = self.started.is_some();
        let (progress, progress_basis) = self.earned();
        TaskResult {
            spec: self.spec.clone(),
            started: self.started,
            finished: self.finished,
            exit: self.exit.clone(),
            timed_out: self.timed_out,
            told_to_end: self.told_to_end,
            ended_by_user: self.ended_by_user,
            cpu_time: if started {
                self.used.cpu_time
            } else {
                Reading::Absent(Absence::NotStarted)
            },
            waited_max: self.waited_max,
            ran: self.ran,
            shared: self.shared,
            counts: self.used.counts,
            multiplexed: self.used.multiplexed,
            resources: self.resources.unwrap_or_else(|| {
                Resources::absent(if started {
                    Absence::NotEnded
                } else {
                    Absence::NotStarted
                })
            }),
            progress,
            progress_basis,
            progress_learnt: if started {
                self.progress_learnt
            } else {
                Reading::Absent(Absence::NotStarted)
            },
            runs: self.runs,
            width: match self.spec.width {
                Width::Stated => Reading::Value(self.spec.cpus),
                Width::Measured if !started => Reading::Absent(Absence::NotStarted),
                Width::Measured => self.width.found(),
            },
            learnt: self.learnt.clone(),
        }
    }
}
