//! `fifo`: at most as many tasks as CPUs, each to its end, in the order of admission, like `parallel -j` and
//! `xargs -P`.

use super::apart::move_apart;
use super::linux::share_cpus;
use super::prelude::*;
use crate::decision::Wait;

pub(super) const ENTRY: PolicyEntry = PolicyEntry {
    name: "fifo",
    gist: "at most as many jobs as CPUs, each to its end, in order",
    source: "baseline (GNU parallel -j)",
    for_research: false,
    time_shares: false,
    kernel_shares: false,
    weighs: false,
    can_hand_over: false,
    for_nodes: false,
    params: &[QUANTUM_S],
    needs: &|_| vec![WANTS_BINDING],
    build: &|params| {
        each_quantum(params, Snapshot::is_quantum_end, |snap, end, _| {
            decide(snap, end)
        })
    },
};

fn decide(snap: &Snapshot, end: Nanos) -> Decision {
    if must_share(snap) {
        return share(snap, end);
    }
    let mut round = if snap.tasks.iter().any(|task| is_shared(task)) {
        Round::new(snap)
    } else {
        Round::between_quanta(snap)
    };
    // The order of admission, whatever happened to a task since. Handwritten events may lack that number.
    round.order.sort_by_key(|&ix| {
        let task = &snap.tasks[ix as usize];
        (task.turn, task.arrived, task.id)
    });
    // No task overtakes a gang that waits for its CPUs: otherwise the gang might wait for ever.
    round.choose_in_order(Purpose::Run, true);
    let mut decision = round.finish_in_order(end);
    if snap.is_quantum_end() && decision.changes.is_empty() && decision.waits.is_empty() {
        decision.changes = move_apart(snap);
    }
    decision
}

/// Whether tasks that have begun must share CPUs, since there are fewer CPUs than before: none of them pauses. They share
/// from the end of a quantum to the end of a quantum.
fn must_share(snap: &Snapshot) -> bool {
    let tasks = snap.tasks.iter().map(Box::as_ref);
    let begun: Vec<&TaskView> = tasks.filter(|task| has_begun(task)).collect();
    let needed: usize = begun.iter().map(|task| task.cpus as usize).sum();
    let is_wanted = if is_full(snap) {
        needed > snap.machine.cpus.len()
    } else {
        begun.iter().any(|task| is_shared(task))
    };
    is_wanted && begun.iter().all(|task| may_share(task, is_full(snap)))
}

fn may_share(task: &TaskView, may_move: bool) -> bool {
    let is_free = task.control.place && task.allowed.is_none();
    is_free && (may_move || is_shared(task) || task.running.is_none())
}

/// Lets the tasks that have begun share all CPUs.
fn share(snap: &Snapshot, end: Nanos) -> Decision {
    let all = snap.machine.all_cpus();
    let mut decision = Decision {
        next_wake: Some(end),
        ..Decision::default()
    };
    let mut ahead = 0;
    for task in &snap.tasks {
        if is_shared(task) || !task.control.place || (task.asleep && task.running.is_none()) {
            continue;
        }
        if has_begun(task) {
            decision.changes.push(share_cpus(task, &all));
            continue;
        }
        decision.waits.push(Wait {
            task: task.id,
            reason: WaitReason::Order { ahead },
        });
        ahead += 1;
    }
    decision
}

fn has_begun(task: &TaskView) -> bool {
    task.running.is_some() || task.estimates.ran > Nanos::ZERO
}

fn is_shared(task: &TaskView) -> bool {
    let placement = task.running.as_ref().map(|running| &running.placement);
    matches!(placement, Some(Placement::Shared { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::{Estimates, Running, Trigger};
    use crate::task::{Control, TaskSpec};
    use crate::topology::{CpuId, Machine};
    use crate::units::{Absence, Reading};
    use std::sync::Arc;

    fn on(cpus: u32, tasks: Vec<TaskView>) -> Snapshot {
        Snapshot {
            machine: Arc::new(Machine::uniform("m", cpus, 1)),
            now: Nanos::from_ms(900),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        }
    }

    /// A task that has run for so many milliseconds.
    fn task(id: u32, ran: u64) -> TaskView {
        let estimates = Estimates {
            ran: Nanos::from_ms(ran),
            ..Estimates::default()
        };
        TaskView::arriving(&TaskSpec::new(id, "t"), Nanos::ZERO, estimates)
    }

    /// Where the running tasks go on two cores of two threads: 0 and 2, 1 and 3. The `fixed` one must stay.
    fn apart(cpus: &[u32], fixed: Option<u32>) -> Vec<(TaskId, String)> {
        let tasks = cpus.iter().zip(0..).map(|(&cpu, id)| TaskView {
            running: Some(Running {
                placement: Placement::Exclusive {
                    cpus: CpuId(cpu).into(),
                    whole_core: false,
                },
                purpose: Purpose::Run,
                since: Nanos::ZERO,
                lease_end: None,
            }),
            turn: id,
            control: Control {
                freeze: fixed != Some(id),
                ..Control::FULL
            },
            ..task(id, 200)
        });
        let mut snap = on(4, tasks.collect());
        snap.machine = Arc::new(Machine::uniform("m", 2, 2));
        let decision = decide(&snap, Nanos::from_ms(1_000));
        assert_eq!(crate::check::check(&snap, &decision), Ok(()));
        let place = |change: &Change| match change {
            Change::Place {
                task, placement, ..
            } => (*task, placement.cpus().to_string()),
            Change::Stop { task } => panic!("{task} is stopped"),
        };
        decision.changes.iter().map(place).collect()
    }

    #[test]
    fn tasks_that_share_a_core_move_apart_to_an_idle_one() {
        assert_eq!(apart(&[0, 2], None), [(TaskId(1), "1".to_owned())]);
        assert_eq!(apart(&[0, 2], Some(1)), [(TaskId(0), "1".to_owned())]);
        for settled in [&[0, 1][..], &[0, 2, 3], &[0]] {
            assert_eq!(apart(settled, None), [], "{settled:?}");
        }
    }

    #[test]
    fn where_cpus_are_gone_tasks_that_have_begun_share_the_others() {
        let tasks = || vec![task(0, 200), task(1, 200), task(2, 0)];
        let end = Nanos::from_ms(1_000);
        let crowded = decide(&on(1, tasks()), end);
        let shared: Vec<TaskId> = crowded.changes.iter().map(Change::task).collect();
        assert_eq!(shared, [TaskId(0), TaskId(1)]);
        for change in &crowded.changes {
            let Change::Place { placement, .. } = change else {
                panic!("{change:?}");
            };
            assert!(matches!(placement, Placement::Shared { mask } if mask.len() == 1));
        }
        assert_eq!(crowded.waits.len(), 1, "the one that has not begun");
        let roomy = decide(&on(2, tasks()), end);
        for change in &roomy.changes {
            assert!(
                matches!(
                    change,
                    Change::Place {
                        placement: Placement::Exclusive { .. },
                        ..
                    }
                ),
                "{change:?}"
            );
        }
        assert_eq!((roomy.changes.len(), roomy.waits.len()), (2, 1));
    }
}
