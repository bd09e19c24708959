//! Metrics of speed: turnaround, throughput, mean slowdown, instructions per cycle.

use super::outcome::{Outcomes, all};
use crate::units::{Absence, Reading};

/// Turnaround of the whole run in seconds, >= 0: from launch to the end of the last task (Perf&Fair, section 6).
pub fn turnaround(run: &Outcomes) -> Reading<f64> {
    Reading::Value(run.turnaround.as_s())
}

/// System throughput, in (0, n] when no task is faster than alone: STP = sum 1 / s_i (Eyerman and Eeckhout, 2008).
///
/// In the paper all tasks share the machine all the time, so STP is the speed at one moment, and at most the number of
/// CPUs. Here a slowdown counts from the task's arrival and includes the wait for a CPU, and the sum also covers tasks
/// that ran one after another. With n tasks in a queue for C CPUs and no contention, s_i = 1, 1, ..., 2, 2, ..., and
/// the sum is C (1 + 1/2 + 1/3 + ...), which exceeds C. So here STP compares runs of the same batch; it is not a number
/// of busy CPUs.
pub fn stp(run: &Outcomes) -> Reading<f64> {
    run.slowdowns()
        .map(|slowdowns| slowdowns.iter().map(|s| 1.0 / s).sum())
}

/// Average normalised turnaround time: ANTT = (1/n) sum s_i (Eyerman and Eeckhout, 2008).
pub fn antt(run: &Outcomes) -> Reading<f64> {
    run.slowdowns()
        .map(|slowdowns| slowdowns.iter().sum::<f64>() / slowdowns.len() as f64)
}

/// Arithmetic mean of the tasks' instructions per cycle (Feliu et al.).
pub fn mean_ipc(run: &Outcomes) -> Reading<f64> {
    let ipcs = match all(run.tasks.iter().map(|task| task.ipc)) {
        // Ignore tasks that did not start: the others' reason for absence applies to them too.
        Reading::Absent(Absence::SomeTasksLackIt) => {
            let started = |ipc: &Reading<f64>| *ipc != Reading::Absent(Absence::NotStarted);
            let why = all(run.tasks.iter().map(|task| task.ipc).filter(started)).absence();
            Reading::Absent(why.unwrap_or(Absence::SomeTasksLackIt))
        }
        ipcs => ipcs,
    };
    ipcs.map(|ipcs| ipcs.iter().sum::<f64>() / ipcs.len() as f64)
}
