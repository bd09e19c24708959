//! What runs, in words, for a user who asks in the middle of a run (SIGUSR1).

use crate::text::{count, seconds, visible};
use cosched_core::{Doing, Nanos, TaskNow};

/// A line for each job that has arrived and not ended. `share` says how much of a job's work is done, where its solo
/// time is known.
pub(crate) fn status_lines(
    now: Nanos,
    tasks: &[TaskNow<'_>],
    share: impl Fn(&TaskNow<'_>) -> Option<f64>,
) -> Vec<String> {
    let have = if tasks.len() == 1 { "has" } else { "have" };
    let mut lines = vec![format!(
        "after {}: {} {have} not ended",
        seconds(now.as_s()),
        count(tasks.len() as u64, "job")
    )];
    for task in tasks {
        let doing = match task.doing {
            Doing::Runs(cpus) => format!("runs on CPU {cpus}"),
            Doing::Sleeps => "sleeps".to_owned(),
            Doing::Paused => "paused".to_owned(),
            Doing::Queued => "queued".to_owned(),
            Doing::Ending => "is to end".to_owned(),
        };
        let mut line = format!("{}: {doing}", visible(&task.spec.name));
        if let Some(started) = task.started {
            line.push_str(&format!(
                ", started {} ago",
                seconds((now - started).as_s())
            ));
        }
        if let Some(time) = task.cpu_time.value().filter(|_| task.started.is_some()) {
            line.push_str(&format!(", {} CPU time", seconds(time.as_s())));
        }
        if let Some(share) = share(task) {
            line.push_str(&format!(", {:.0} % done", 100.0 * share.clamp(0.0, 1.0)));
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::{Absence, CpuSet, Reading, TaskSpec};

    #[test]
    fn each_job_has_a_line_with_what_is_known() {
        let (one, two) = (TaskSpec::new(0, "one"), TaskSpec::new(1, "two"));
        let cpus: CpuSet = "3".parse().unwrap();
        let absent = Reading::Absent(Absence::NotStarted);
        let tasks = [
            TaskNow {
                spec: &one,
                doing: Doing::Runs(&cpus),
                started: Some(Nanos::from_s(1.0)),
                cpu_time: Reading::Value(Nanos::from_s(2.0)),
                progress: Reading::Value(4.0),
            },
            TaskNow {
                spec: &two,
                doing: Doing::Queued,
                started: None,
                cpu_time: absent.map(Nanos),
                progress: Reading::Absent(Absence::NotStarted),
            },
        ];
        let lines = status_lines(Nanos::from_s(6.0), &tasks, |task| {
            task.progress.value().map(|done| done / 8.0)
        });
        assert_eq!(
            lines,
            [
                "after 6.00 s: 2 jobs have not ended",
                "one: runs on CPU 3, started 5.00 s ago, 2.00 s CPU time, 50 % done",
                "two: queued",
            ]
        );
    }
}
