//! The loop's record of a task from before its arrival to after its end, besides the view that policies see.

use super::fact::Fact;
use super::recorder::Recorder;
use super::result::TaskResult;
use crate::estimate::{
    Crowding, EarlierPhases, InitialProgress, Pace, TaskEstimator, WidthEstimator,
};
use crate::placement::Purpose;
use crate::resources::Resources;
use crate::sample::{Counts, Usage};
use crate::snapshot::ProgressBasis;
use crate::task::{Exit, Origin, TaskId, TaskSpec, Width};
use crate::topology::CpuSet;
use crate::traffic::Traffic;
use crate::units::{Absence, Nanos, Reading};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Least share of a task's time for which its co-runners must have been noted.
const WHOLE: f64 = 0.95;

pub(super) struct TaskRecord {
    pub(super) spec: TaskSpec,
    pub(super) estimator: TaskEstimator,
    /// The number of threads that want a CPU; used only if the width is measured.
    pub(super) width: WidthEstimator,
    pub(super) crowding: Crowding,
    /// The CPUs that it may use since its last placement: its own and spare ones.
    pub(super) bound: CpuSet,
    pub(super) interval: Option<OpenInterval>,
    /// Usage at the end of its last interval.
    pub(super) used: Usage,
    /// Other resources used by its end.
    pub(super) resources: Option<Resources>,
    pub(super) started: Option<Nanos>,
    pub(super) finished: Option<Nanos>,
    pub(super) exit: Option<Exit>,
    pub(super) waited_max: Nanos,
    /// Time placed, over all intervals.
    pub(super) ran: Nanos,
    /// Whether it was placed on time-shared CPUs.
    pub(super) shared: bool,
    pub(super) progress_basis: ProgressBasis,
    pub(super) last_solo: Reading<f64>,
    pub(super) timed_out: bool,
    pub(super) told_to_end: bool,
    pub(super) ended_by_user: bool,
    pub(super) told_overdue: bool,
    pub(super) runs: u32,
    /// Whether its program has yet to begin, although it was started.
    pub(super) handed_over: bool,
    /// Whether a start was reported.
    pub(super) start_told: bool,
    /// The result of the first run, if it restarts.
    pub(super) first: Option<Box<TaskResult>>,
    /// The model learnt in its last run.
    pub(super) learnt: Option<Arc<EarlierPhases>>,
    /// Solo execution done in this run, by the learnt model.
    pub(super) progress_learnt: Reading<f64>,
    /// How long it ran beside tasks of each program, and for how long that was noted.
    pub(super) beside: BTreeMap<Arc<str>, Nanos>,
    pub(super) noted: Nanos,
    /// The pace of its visible progress.
    pub(super) pace: Pace,
}

/// The open interval of a placed task or a filler.
pub(super) struct OpenInterval {
    pub(super) since: Nanos,
    pub(super) planned_end: Option<Nanos>,
    pub(super) purpose: Purpose,
    pub(super) cpus: CpuSet,
    pub(super) whole_core: bool,
    pub(super) co_runners: Arc<[TaskId]>,
    pub(super) disturbed: bool,
    /// Traffic of the memory domains at its start; empty if it is not read.
    pub(super) traffic: Arc<[Traffic]>,
}

impl TaskRecord {
    pub(super) fn new(spec: TaskSpec, quantum: Nanos) -> TaskRecord {
        let used = Usage::zero(spec.id);
        TaskRecord {
            estimator: TaskEstimator::new(&spec, quantum, InitialProgress::default()),
            spec,
            width: WidthEstimator::new(),
            crowding: Crowding::default(),
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
            handed_over: false,
            start_told: false,
            first: None,
            learnt: None,
            progress_learnt: Reading::Absent(Absence::NotEnded),
            beside: BTreeMap::new(),
            noted: Nanos::ZERO,
            pace: Pace::default(),
        }
    }

    /// Resets the record for another run, except the result and the number of runs.
    pub(super) fn begin_anew(&mut self, quantum: Nanos) {
        let fresh = TaskRecord::new(self.spec.clone(), quantum);
        *self = TaskRecord {
            runs: self.runs,
            start_told: self.start_told,
            first: self.first.take(),
            learnt: self.learnt.take(),
            ..fresh
        };
    }

    /// Reports that its program began.
    pub(super) fn tell_start(&mut self, recorder: &mut dyn Recorder) {
        let Some(at) = self.started else {
            return;
        };
        let again = std::mem::replace(&mut self.start_told, true);
        let (task, run) = (&self.spec, self.runs);
        recorder.emit(at, Fact::Started { task, run, again });
    }

    /// Records the end of this run, and returns the exit that counts.
    pub(super) fn finish(&mut self, now: Nanos, exit: Exit, was_dying: bool) -> Exit {
        if matches!(exit, Exit::NotStarted(_)) && self.started.take().is_some() {
            self.runs -= 1;
        }
        self.interval = None;
        self.finished = Some(now);
        self.told_to_end = was_dying && !self.timed_out;
        // It may have saved its state and exited early, so it is not complete.
        if (self.told_to_end || self.timed_out) && exit.ok() {
            Exit::ToldToEnd
        } else {
            exit
        }
    }

    /// Whether its processes exist, or have existed.
    pub(super) fn has_begun(&self) -> bool {
        self.started.is_some() || self.spec.origin == Origin::Adopted
    }

    pub(super) fn has_ended_once(&self) -> bool {
        self.first.is_some() || self.finished.is_some()
    }

    /// Solo execution done in this run, in quanta, and its basis.
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
            None => self.estimator.earned(),
        };
        (progress, basis)
    }

    /// The result of the task; with restarts, of its first run.
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
            counts: if started {
                self.used.counts
            } else {
                Counts::absent(Absence::NotStarted)
            },
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
            beside: (self.noted.share_of(self.ran) >= WHOLE).then(|| self.beside.clone()),
        }
    }
}
