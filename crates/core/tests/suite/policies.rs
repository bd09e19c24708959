//! Properties of every policy in the table, at random moments on random machines.

use crate::random::*;
use cosched_core::*;
use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, prop_assume, proptest};
use std::collections::BTreeSet;

fn is_whole_core(placement: &Placement) -> bool {
    matches!(
        placement,
        Placement::Exclusive {
            whole_core: true,
            ..
        }
    )
}

/// Number of idle CPUs that no task keeps idle on purpose.
fn idle_cpus(machine: &Machine, after: &[Option<Placement>]) -> usize {
    let mut idle = machine.all_cpus();
    for placement in after.iter().flatten() {
        for cpu in placement.cpus().iter() {
            idle.remove(cpu);
            if is_whole_core(placement) {
                let core = &machine.cores[machine.cpus[machine.index_of(cpu).unwrap()].core];
                core.iter().for_each(|cpu| {
                    idle.remove(cpu);
                });
            }
        }
    }
    idle.len()
}

fn is_simple(task: &TaskView) -> bool {
    task.cpus == 1 && task.allowed.is_none() && task.control.place && !task.asleep
}

/// Settings of a policy.
type Settings = &'static [(&'static str, &'static str)];

/// All policies with default settings, and some with others.
fn variants() -> impl Iterator<Item = (&'static PolicyEntry, Settings)> {
    let others: [(&str, Settings); 2] = [
        ("even", &[("objective", "energy")]),
        (
            "lucky",
            &[
                ("coefficients", "learnt"),
                ("ticket_inflation", "3"),
                ("memory", "shared"),
                ("consolidation", "on"),
            ],
        ),
    ];
    let others = others.map(|(name, settings)| (find_policy(name).unwrap(), settings));
    POLICIES
        .iter()
        .map(|entry| (entry, &[] as Settings))
        .chain(others)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_decision_can_be_carried_out_and_says_why_each_waits(snap in moment(), seed in any::<u64>()) {
        for (entry, settings) in variants() {
            let decision = policy(entry, settings).decide(&snap, &mut Rng::new(seed));
            prop_assert_eq!(check(&snap, &decision), Ok(()), "{}", entry.name);
            let after = after(&snap, &decision);
            for (task, place) in snap.tasks.iter().zip(&after) {
                let reasons = decision.waits.iter().filter(|wait| wait.task == task.id).count();
                // A frozen task cannot show that it wakes, so a task that is stopped while asleep waits like the
                // others.
                let ready = task.control.place && (!task.asleep || task.running.is_some());
                let expected = usize::from(ready && place.is_none());
                prop_assert_eq!(reasons, expected, "{}: reasons of {}", entry.name, task.id);
                if task.asleep && task.running.is_none() && entry.name != "linux" {
                    prop_assert!(place.is_none(), "{} places a sleeper", entry.name);
                }
            }
        }
    }

    #[test]
    fn a_fill_round_neither_stops_nor_moves(snap in moment()) {
        prop_assume!(!is_full(&snap));
        for (entry, settings) in variants() {
            let decision = policy(entry, settings).decide(&snap, &mut Rng::new(1));
            for change in &decision.changes {
                let task = snap.task(change.task()).unwrap();
                prop_assert!(matches!(change, Change::Place { .. }) && task.running.is_none(), "{}", entry.name);
            }
        }
    }

    #[test]
    fn no_cpu_idles_while_a_single_task_waits(snap in moment()) {
        for (entry, settings) in variants().filter(|(entry, _)| !entry.kernel_shares) {
            // A CPU may be idle to save energy. For throughput, it may be idle only if one more task would lower
            // throughput; then each task waits for the bus.
            let settings = if entry.name == "efs" { &[("objective", "throughput")] } else { settings };
            let decision = policy(entry, settings).decide(&snap, &mut Rng::new(1));
            if decision.basis.measures.is_some() {
                continue;
            }
            let after = after(&snap, &decision);
            let waits = |wanted: &dyn Fn(&TaskView) -> bool| {
                snap.tasks.iter().zip(&after).any(|(task, place)| place.is_none() && wanted(task))
            };
            // In order of arrival, no task overtakes a gang.
            let gang_first = entry.name == "fifo" && waits(&|task| task.cpus > 1);
            let full = |task: &TaskView| {
                let reason = decision.waits.iter().find(|wait| wait.task == task.id).map(|wait| &wait.reason);
                matches!(reason, Some(WaitReason::BusFull { demand_milli, threshold_milli, .. })
                    if demand_milli > threshold_milli)
                    // `even` leaves a CPU idle rather than let a task run ahead, or cost others more than it gains.
                    || matches!(reason, Some(WaitReason::Lead { .. } | WaitReason::Outweighed { .. }))
            };
            if waits(&|task| is_simple(task) && !full(task)) && !gang_first {
                prop_assert_eq!(idle_cpus(&snap.machine, &after), 0, "{}", entry.name);
            }
        }
    }

    #[test]
    fn the_overdue_come_first(snap in moment()) {
        prop_assume!(is_full(&snap));
        for entry in sharing() {
            let decision = policy(entry, &[]).decide(&snap, &mut Rng::new(1));
            let after = after(&snap, &decision);
            let stays = |task: &TaskView| task.running.is_some() && !(task.control.freeze && task.control.place);
            let placed = || snap.tasks.iter().zip(&after).filter(|(task, place)| place.is_some() && !stays(task));
            let waits = snap.tasks.iter().zip(&after).filter(|(task, place)| place.is_none() && task.overdue);
            if waits.clone().any(|(task, _)| is_simple(task)) {
                prop_assert!(placed().all(|(task, _)| task.overdue), "{}: {:?}", entry.name, decision);
            }
            // The first overdue task runs whatever its need, unless an immovable task holds its CPUs.
            let mut overdue: Vec<&Box<TaskView>> =
                snap.tasks.iter().filter(|task| task.overdue && !task.asleep && task.control.place).collect();
            // Of equal waits, the task that has run least.
            overdue.sort_by_key(|task| (task.waiting_since, task.estimates.ran, task.id));
            if let Some(first) = overdue.first() && !snap.tasks.iter().any(|task| stays(task)) {
                prop_assert!(placed().any(|(task, _)| task.id == first.id), "{}: {} waits", entry.name, first.id);
            }
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    #[test]
    fn the_same_moments_give_the_same_decisions_also_from_a_saved_state(snaps in moments(), cut in 0usize..8) {
        for (entry, settings) in variants() {
            let (mut first, mut second) = (policy(entry, settings), policy(entry, settings));
            let (mut rng, mut other_rng) = (Rng::new(3), Rng::new(3));
            for (n, snap) in snaps.iter().enumerate() {
                if n == cut {
                    // State passes through text, as in a replay.
                    let text = serde_json::to_string(&second.save()).unwrap();
                    second = policy(entry, settings);
                    second.load(&serde_json::from_str(&text).unwrap()).unwrap();
                    other_rng = Rng::restore(other_rng.state());
                }
                let text = serde_json::to_string(snap).unwrap();
                let read: Snapshot = serde_json::from_str(&text).unwrap();
                let decision = first.decide(snap, &mut rng);
                prop_assert_eq!(&second.decide(&read, &mut other_rng), &decision, "{}", entry.name);
                let text = serde_json::to_string(&decision).unwrap();
                prop_assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), decision);
            }
        }
    }

    #[test]
    fn equal_weights_of_any_size_change_nothing(snaps in moments(), weight in 0.001..1_000.0) {
        let with = |snap: &Snapshot, weight: f64| {
            let mut snap = snap.clone();
            snap.tasks.iter_mut().for_each(|task| task.weight = weight);
            snap
        };
        for (entry, settings) in variants() {
            let (mut plain, mut weighted) = (policy(entry, settings), policy(entry, settings));
            let (mut rng, mut other_rng) = (Rng::new(3), Rng::new(3));
            for snap in &snaps {
                let decision = plain.decide(&with(snap, 1.0), &mut rng);
                let other = weighted.decide(&with(snap, weight), &mut other_rng);
                prop_assert_eq!(other, decision, "{}", entry.name);
            }
        }
    }

    #[test]
    fn only_the_order_of_numbers_counts(snap in moment(), step in 2u32..50, first in 0u32..1_000) {
        let new = |id: TaskId| TaskId(id.0 * step + first);
        let mut renamed = snap.clone();
        renamed.tasks.iter_mut().for_each(|task| task.id = new(task.id));
        for (entry, settings) in variants() {
            let mut decision = policy(entry, settings).decide(&snap, &mut Rng::new(1));
            for change in &mut decision.changes {
                let (Change::Place { task, .. } | Change::Stop { task }) = change;
                *task = new(*task);
            }
            for wait in &mut decision.waits {
                wait.task = new(wait.task);
                if let WaitReason::Measuring { task } = &mut wait.reason {
                    *task = new(*task);
                }
            }
            decision.basis.measures = decision.basis.measures.map(new);
            for demand in decision.admission.iter_mut().flat_map(|admission| &mut admission.demands) {
                demand.task = new(demand.task);
            }
            prop_assert_eq!(policy(entry, settings).decide(&renamed, &mut Rng::new(1)), decision, "{}", entry.name);
        }
    }

    /// If no two tasks tie, their order in the list does not matter.
    #[test]
    fn who_is_chosen_does_not_depend_on_the_order_of_tasks(snap in moment(), turn in 1usize..30) {
        let mut snap = snap;
        for (task, at) in snap.tasks.iter_mut().zip(1u64..) {
            task.arrived = Nanos::from_ms(at);
            task.estimates.ran += Nanos(at);
            if task.running.is_none() {
                task.waiting_since = task.waiting_since - Nanos(at);
            } else {
                task.waiting_since = snap.now - Nanos(at);
            }
        }
        // The numbers would break ties between equal waits.
        let waits: BTreeSet<Nanos> = snap.tasks.iter().map(|task| task.waiting_since).collect();
        prop_assume!(waits.len() == snap.tasks.len());
        // The same tasks with other numbers, so that their order differs.
        let count = snap.tasks.len();
        prop_assume!(count > 1);
        let new = |id: TaskId| TaskId(((id.0 as usize * (count - 1) + turn) % count) as u32);
        let mut other = snap.clone();
        other.tasks.iter_mut().for_each(|task| task.id = new(task.id));
        other.tasks.sort_by_key(|task| task.id);
        // `efs` assigns homes, and `bias`, `big-fair` and `lucky` break ties, in the order of numbers.
        for name in ["linux", "spread", "fifo", "round-robin", "bandwidth", "fair", "perf-fair", "oracle"] {
            let entry = find_policy(name).unwrap();
            let chosen = |snap: &Snapshot, number: &dyn Fn(TaskId) -> TaskId| {
                let decision = policy(entry, &[]).decide(snap, &mut Rng::new(1));
                let after = after(snap, &decision);
                let placed = snap.tasks.iter().zip(&after).filter(|(_, place)| place.is_some());
                let mut ids: Vec<TaskId> = placed.map(|(task, _)| number(task.id)).collect();
                ids.sort_unstable();
                ids
            };
            prop_assert_eq!(chosen(&snap, &new), chosen(&other, &|id| id), "{}", name);
        }
    }
}
