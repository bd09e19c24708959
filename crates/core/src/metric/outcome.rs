//! The input of the metrics.

use crate::run::{RunResult, TaskResult};
use crate::units::{Absence, Nanos, Reading};

/// The figures of one task.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Time from its arrival to its end; absent if it did not end, or failed.
    pub turnaround: Reading<Nanos>,
    /// Its time alone on the machine.
    pub solo: Reading<Nanos>,
    /// Instructions per cycle over its whole life.
    pub ipc: Reading<f64>,
    /// Longest time without a CPU between two placements.
    pub waited_max: Nanos,
}

impl Outcome {
    /// The outcome of a task, with its solo time.
    ///
    /// The turnaround of a task is absent unless it exited with code 0. Otherwise a task that failed after a second
    /// would look like the fastest of all.
    pub fn of(task: &TaskResult, solo: Reading<Nanos>) -> Outcome {
        let turnaround = match (&task.exit, task.turnaround()) {
            (Some(exit), Some(turnaround)) if exit.ok() => Reading::Value(turnaround),
            (Some(exit), _) if !exit.ok() => Reading::Absent(Absence::Failed),
            _ if task.started.is_none() => Reading::Absent(Absence::NotStarted),
            _ => Reading::Absent(Absence::NotEnded),
        };
        Outcome {
            turnaround,
            solo,
            ipc: task.counts.ipc(),
            waited_max: task.waited_max,
        }
    }

    /// Turnaround / solo time, above 0; 1 is solo speed (the slowdown in the unfairness of Perf&Fair, section 6).
    ///
    /// Absent when either time is absent or zero.
    pub fn slowdown(&self) -> Reading<f64> {
        self.turnaround.and_then(|turnaround| {
            self.solo.and_then(|solo| {
                if solo == Nanos::ZERO {
                    Reading::Absent(Absence::NoSoloTime)
                } else if turnaround == Nanos::ZERO {
                    Reading::Absent(Absence::NotYetMeasured)
                } else {
                    Reading::Value(turnaround.0 as f64 / solo.0 as f64)
                }
            })
        })
    }
}

/// The figures of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    /// Every task, in the order of submission.
    pub tasks: Vec<Outcome>,
    /// Time from launch to the end of the last task.
    pub turnaround: Nanos,
    /// Energy of the package in joules.
    pub energy_j: Reading<f64>,
}

impl Outcomes {
    /// The outcomes of a run, with the solo times of the tasks' profiles.
    pub fn of(result: &RunResult) -> Outcomes {
        Outcomes::with_solo(result, |task| {
            Reading::from_option(task.spec.solo.time, Absence::NoSoloTime)
        })
    }

    /// The outcomes of a run, with the results of `solo` as solo times.
    pub fn with_solo(result: &RunResult, solo: impl Fn(&TaskResult) -> Reading<Nanos>) -> Outcomes {
        Outcomes {
            tasks: result
                .tasks
                .iter()
                .map(|task| Outcome::of(task, solo(task)))
                .collect(),
            turnaround: result.turnaround,
            energy_j: result.energy_j,
        }
    }

    /// Every task's slowdown; absent if any task lacks it.
    pub fn slowdowns(&self) -> Reading<Vec<f64>> {
        all(self.tasks.iter().map(Outcome::slowdown))
    }
}

/// All values, if none is absent. If all are absent for one reason, that reason; otherwise
/// [`Absence::SomeTasksLackIt`].
///
/// Without any task the reason is [`Absence::NotStarted`].
pub(super) fn all(readings: impl Iterator<Item = Reading<f64>>) -> Reading<Vec<f64>> {
    let mut values = Vec::new();
    let mut reasons = Vec::new();
    for reading in readings {
        match reading {
            Reading::Value(value) => values.push(value),
            Reading::Absent(why) => reasons.push(why),
        }
    }
    match (values.is_empty(), reasons.first()) {
        (true, None) => Reading::Absent(Absence::NotStarted),
        (false, None) => Reading::Value(values),
        (true, Some(&why)) if reasons.iter().all(|&other| other == why) => Reading::Absent(why),
        _ => Reading::Absent(Absence::SomeTasksLackIt),
    }
}
