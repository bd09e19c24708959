//! A run as far as its series has it: the fold of its rows.
//!
//! The series has the jobs that ended and how, those that ran, and all measurements.

use super::in_order::RowsInOrder;
use super::measured::Measured;
use super::replay::Replay;
use super::{SampleRow, SeriesError, SeriesHeader, SeriesReader, SeriesRow, SeriesTask};
use crate::record::WarningRecord;
use crate::warning::is_wish;
use cosched_core::{
    Absence, EndedBy, JobEnd, LeftOut, Nanos, Overhead, Reading, RunResult, TaskId, TaskResult,
    TaskSpec, Trigger,
};
use std::collections::BTreeMap;
use std::io::BufRead;

/// A run, as far as its series has it.
pub(crate) struct SeriesRun {
    pub(crate) header: SeriesHeader,
    /// Its jobs, in the order of the header.
    pub(crate) jobs: Vec<SeriesJob>,
    pub(crate) warnings: Vec<WarningRecord>,
    /// The last line was cut off.
    pub(crate) cut_off: bool,
    replay: Replay,
    overhead: Overhead,
    policy_faults: u64,
}

impl SeriesRun {
    /// Fold all rows of a series.
    ///
    /// # Errors
    /// It can't be read. A last line that was cut off is no error.
    pub(crate) fn read<R: BufRead>(mut series: SeriesReader<R>) -> Result<SeriesRun, SeriesError> {
        let header = series.header().clone();
        let mut run = SeriesRun {
            replay: Replay::new(&header),
            jobs: header.tasks.iter().map(SeriesJob::new).collect(),
            overhead: Overhead::default(),
            policy_faults: 0,
            warnings: Vec::new(),
            cut_off: false,
            header,
        };
        for row in RowsInOrder::new(&mut series) {
            let (at, row) = row?;
            run.apply(at, row);
        }
        run.cut_off = series.cut_off();
        Ok(run)
    }

    /// Return the time of its last row.
    pub(crate) fn until(&self) -> Nanos {
        self.replay.now
    }

    fn apply(&mut self, at: Nanos, row: SeriesRow) {
        let task = row.task().map(|task| task.0 as usize);
        let paused_since = task.and_then(|task| self.replay.jobs[task].paused_since());
        self.replay.apply(at, &row);
        let now = self.replay.now;
        match row {
            SeriesRow::Decided {
                triggers, stood_in, ..
            } => {
                self.overhead.decisions += 1;
                self.overhead.quanta += u64::from(triggers.contains(&Trigger::QuantumEnd));
                self.policy_faults += u64::from(stood_in);
            }
            SeriesRow::Warned { code, text, .. } if !is_wish(&code) => {
                self.warnings.push(WarningRecord { code, text });
            }
            SeriesRow::Warned { .. } => {}
            SeriesRow::Started(task) => self.job(task).start(now),
            SeriesRow::Placed { task, .. } => {
                if let Some(since) = paused_since {
                    self.job(task).wait(since, now);
                }
            }
            SeriesRow::Sampled(sample) => self.job(sample.task).sample(at, &sample),
            SeriesRow::Lacks { task, column, why } => {
                let name = if column == "cpu_ns" {
                    "cpu_s".to_owned()
                } else {
                    column
                };
                self.job(task).lacks.insert(name, why);
            }
            SeriesRow::Ended { task, end } => {
                self.job(task).end.get_or_insert(end);
            }
            SeriesRow::Stopped(_)
            | SeriesRow::Switched(_)
            | SeriesRow::Waits { .. }
            | SeriesRow::Came(_) => {}
        }
    }

    fn job(&mut self, task: TaskId) -> &mut SeriesJob {
        &mut self.jobs[task.0 as usize]
    }

    /// Return what its loop would return. Values that only the end of the run gives are absent.
    pub(crate) fn result(&self) -> RunResult {
        let jobs = self.jobs.iter().zip(&self.replay.jobs);
        RunResult {
            tasks: jobs.map(|(job, now)| job.result(now.starts)).collect(),
            left_out: LeftOut::default(),
            turnaround: self.replay.now,
            ended_by: EndedBy::Completion,
            overhead: self.overhead.clone(),
            policy_faults: self.policy_faults,
            plans: None,
            rates: Vec::new(),
            predictions: None,
            energy_j: Reading::Absent(Absence::NotYetMeasured),
        }
    }
}

/// The run of a job that counts: its first if that ended by itself, else its last attempt.
pub(crate) struct SeriesJob {
    spec: TaskSpec,
    pub(crate) started: Option<Nanos>,
    waited_max: Nanos,
    measured: Measured,
    /// Columns that its samples lack. The series says so once, for all attempts.
    lacks: BTreeMap<String, Absence>,
    pub(crate) end: Option<Box<JobEnd>>,
}

impl SeriesJob {
    fn new(task: &SeriesTask) -> SeriesJob {
        SeriesJob {
            spec: TaskSpec {
                cpus: task.cpus,
                width: task.width,
                weight: task.weight.unwrap_or(1.0),
                arrives: task.arrival_ns,
                ..TaskSpec::new(task.task, &task.name)
            },
            started: None,
            waited_max: Nanos::ZERO,
            measured: Measured::default(),
            lacks: BTreeMap::new(),
            end: None,
        }
    }

    fn start(&mut self, at: Nanos) {
        if self.end.is_none() {
            self.started = Some(at);
            self.waited_max = Nanos::ZERO;
            self.measured = Measured::default();
        }
    }

    /// Count a pause between two placements.
    fn wait(&mut self, since: Nanos, to: Nanos) {
        if self.end.is_none() && self.started.is_some_and(|start| start <= since) {
            self.waited_max = self.waited_max.max(to - since);
        }
    }

    fn sample(&mut self, at: Nanos, sample: &SampleRow) {
        // The last sample of an attempt can come after the start of the next.
        let begin = at - sample.interval;
        if self.end.is_none() && self.started.is_some_and(|start| start <= begin) {
            self.measured.add(sample);
        }
    }

    fn result(&self, runs: u32) -> TaskResult {
        let none = match (&self.end, self.started) {
            (Some(_), Some(_)) => Absence::NotTold,
            (None, Some(_)) => Absence::NotYetMeasured,
            (_, None) => Absence::NotStarted,
        };
        let end = match &self.end {
            Some(end) => (**end).clone(),
            None => self.so_far(),
        };
        let result = end.result(self.spec.clone(), |name| {
            *self.lacks.get(name).unwrap_or(&none)
        });
        TaskResult { runs, ..result }
    }

    /// What a job that has not ended has used so far.
    fn so_far(&self) -> JobEnd {
        let measured = &self.measured;
        JobEnd {
            start_s: self.started.map(Nanos::as_s),
            cpu_s: measured.cpu_time().map(Nanos::as_s),
            ran_s: Some(measured.interval.as_s()),
            waited_max_s: Some(self.waited_max.as_s()),
            counts: measured.counts(),
            multiplexed: measured.multiplexed,
            ..JobEnd::default()
        }
    }
}
