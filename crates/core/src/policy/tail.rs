//! The tail of a batch: a task with at least as much work left as there is left per CPU must not pause. Otherwise the
//! other CPUs idle while it ends last.
//!
//! The time left is that of earlier runs of a task, minus its time so far, so this needs the history. The bound is the
//! one below which preemptible tasks can be packed without idle CPUs (McNaughton, "Scheduling with Deadlines and Loss
//! Functions", Management Science 6, 1959). Ours. It applies only while weights are equal.

use crate::expected::ExpectedFrom;
use crate::snapshot::{Snapshot, TaskView};

/// Expected time left for a task, in ns.
fn left(task: &TaskView) -> Option<f64> {
    Some(task.expected?.time.0.saturating_sub(task.estimates.ran.0) as f64)
}

/// Whether that comes from runs of this very command.
fn is_sure(task: &TaskView) -> bool {
    task.expected
        .is_some_and(|expected| expected.from != ExpectedFrom::Program)
}

/// Whether each task of the snapshot is critical; empty if none is.
pub(super) fn critical(snap: &Snapshot) -> Vec<bool> {
    // Queued tasks will fill the CPUs that become free.
    if snap.queued > 0 {
        return Vec::new();
    }
    // CPU time left, number of CPUs of the tasks with a known time, and of the others.
    let (mut sum, mut known, mut unknown) = (0.0, 0.0, 0.0);
    for task in &snap.tasks {
        let cpus = f64::from(task.cpus);
        match left(task) {
            Some(left) => {
                known += cpus;
                sum += left * cpus;
            }
            None => unknown += cpus,
        }
    }
    if known == 0.0 {
        return Vec::new();
    }
    // Tasks of unknown time count like the others.
    let all = sum * (1.0 + unknown / known);
    let bound = all / snap.machine.cpus.len().max(1) as f64;
    let is_critical = |task: &TaskView| {
        is_sure(task) && left(task).is_some_and(|left| left > 0.0 && left >= bound)
    };
    let critical: Vec<bool> = snap.tasks.iter().map(|task| is_critical(task)).collect();
    if critical.contains(&true) {
        critical
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expected::Expected;
    use crate::snapshot::{Estimates, Trigger};
    use crate::task::TaskSpec;
    use crate::topology::Machine;
    use crate::units::{Absence, Nanos, Reading};
    use std::sync::Arc;

    /// Tasks with these numbers of seconds expected and run.
    fn snapshot(tasks: &[(Option<u64>, u64)]) -> Snapshot {
        let view = |(id, &(expected, ran)): (u32, &(Option<u64>, u64))| {
            let mut spec = TaskSpec::new(id, &format!("t{id}"));
            spec.expected =
                expected.map(|s| Expected::of(Nanos::from_ms(1_000 * s), ExpectedFrom::Same));
            let estimates = Estimates {
                ran: Nanos::from_ms(1_000 * ran),
                ..Estimates::default()
            };
            TaskView::arriving(&spec, Nanos::ZERO, estimates)
        };
        Snapshot {
            machine: Arc::new(Machine::uniform("two", 2, 1)),
            now: Nanos::from_ms(100_000),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: (0..).zip(tasks).map(view).map(Box::new).collect(),
        }
    }

    #[test]
    fn a_task_is_critical_when_the_others_would_be_done_before_it() {
        let of = |tasks: &[(Option<u64>, u64)]| critical(&snapshot(tasks));
        // 40 s on two CPUs: the one of 20 s must run all the time.
        assert_eq!(
            of(&[(Some(20), 0), (Some(10), 0), (Some(10), 0)]),
            [true, false, false]
        );
        // It has had its share.
        assert_eq!(
            of(&[(Some(20), 12), (Some(10), 0), (Some(10), 0)]),
            [] as [bool; 0]
        );
        // Two tasks alone.
        assert_eq!(of(&[(Some(20), 5), (Some(20), 5)]), [true, true]);
        // Tasks of unknown time count like the others, and are never critical; the same for tasks that took longer than
        // expected.
        assert_eq!(of(&[(Some(20), 0), (None, 0), (None, 0)]), [] as [bool; 0]);
        assert_eq!(
            of(&[(Some(20), 0), (Some(4), 0), (None, 0)]),
            [true, false, false]
        );
        assert_eq!(of(&[(None, 0), (Some(3), 9)]), [] as [bool; 0]);
        assert_eq!(of(&[]), [] as [bool; 0]);
    }

    #[test]
    fn gangs_count_by_their_cpus() {
        let mut snap = snapshot(&[(Some(30), 0), (None, 0), (None, 0), (None, 0), (None, 0)]);
        snap.machine = Arc::new(Machine::uniform("sixteen", 16, 1));
        snap.tasks[0].cpus = 8;
        // 240 s and four times 30 s on 16 CPUs.
        assert_eq!(critical(&snap), [true, false, false, false, false]);
        snap.tasks.iter_mut().skip(1).for_each(|task| task.cpus = 4);
        assert_eq!(critical(&snap), [] as [bool; 0]);
    }

    #[test]
    fn while_others_wait_to_be_let_in_none_is_critical() {
        let mut snap = snapshot(&[(Some(20), 0), (Some(10), 0), (Some(10), 0)]);
        snap.queued = 1;
        assert_eq!(critical(&snap), [] as [bool; 0]);
    }

    #[test]
    fn what_other_commands_of_a_program_took_makes_none_critical() {
        let mut snap = snapshot(&[(Some(20), 0), (Some(1), 0)]);
        assert_eq!(critical(&snap), [true, false]);
        snap.tasks[0].expected = Some(Expected::of(Nanos::from_ms(20_000), ExpectedFrom::Program));
        assert_eq!(critical(&snap), [] as [bool; 0]);
    }
}
