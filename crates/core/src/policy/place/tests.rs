//! Tests of `place`.

use super::*;
use crate::check::{InvalidDecision, check};
use crate::snapshot::{Running, Trigger};
use crate::task::TaskSpec;
use crate::topology::Node;
use crate::units::{Absence, Rate, Reading};
use std::sync::Arc;

/// Nodes of two CPUs each, with this much memory.
fn nodes(memory: &[Option<u64>]) -> Machine {
    let mut machine = Machine::uniform("nodes", 2 * memory.len() as u32, 1);
    let node = |(ix, &memory)| Node {
        name: format!("node{ix}"),
        cpus: format!("{}-{}", 2 * ix, 2 * ix + 1).parse().unwrap(),
        width: None,
        memory,
    };
    machine.nodes = memory.iter().enumerate().map(node).collect();
    machine
}

/// A run in which the test ends tasks.
struct Play {
    policy: Box<dyn Policy>,
    snap: Snapshot,
    last: Decision,
    came: u32,
}

impl Play {
    fn new(machine: Machine, by: &str) -> Play {
        let settings = [("by".to_owned(), by.to_owned())];
        let params = Params::resolve("place", ENTRY.params, &settings).unwrap();
        let snap = Snapshot {
            machine: Arc::new(machine),
            now: Nanos::ZERO,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            contention: Default::default(),
            admits: None,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            tasks: Vec::new(),
        };
        let policy = (ENTRY.build)(&params);
        let last = Decision::default();
        Play {
            policy,
            snap,
            last,
            came: 0,
        }
    }

    /// A task arrives that reads so many lines per us.
    fn comes(&mut self, per_us: u64, cpus: u32, memory: Option<u64>) {
        let mut spec = TaskSpec::new(self.came, "t");
        spec.solo.mm_reads = Some(Rate(per_us * 1_000));
        (spec.cpus, spec.memory) = (cpus, memory);
        let mut view = TaskView::arriving(&spec, self.snap.now, Default::default());
        view.turn = self.came;
        self.came += 1;
        self.snap.triggers.push(Trigger::Arrived(spec.id));
        self.snap.tasks.push(Box::new(view));
    }

    /// A task ends, two seconds after the last event.
    fn ends(&mut self, id: u32) {
        self.snap.now += Nanos::from_ms(2_000);
        self.snap.tasks.retain(|task| task.id != TaskId(id));
        self.snap.triggers.push(Trigger::Ended(TaskId(id)));
    }

    /// Decides, and returns the new placements as `task: node`.
    fn decide(&mut self) -> Vec<String> {
        let decision = self.policy.decide(&self.snap, &mut Rng::new(1));
        assert_eq!(check(&self.snap, &decision), Ok(()));
        let mut placed = Vec::new();
        for change in &decision.changes {
            let Change::Place {
                task, placement, ..
            } = change
            else {
                panic!("{change:?}");
            };
            let cpus = placement.cpus().clone();
            let first = cpus.first().unwrap();
            let mut nodes = self.snap.machine.nodes.iter();
            let node = nodes.position(|node| node.cpus.contains(first)).unwrap();
            placed.push(format!("{}: {node}", task.0));
            let position = self.snap.position(*task).unwrap();
            let view = &mut self.snap.tasks[position];
            view.last_cpus = cpus;
            view.running = Some(Running {
                placement: placement.clone(),
                purpose: Purpose::Run,
                since: self.snap.now,
                lease_end: None,
            });
        }
        self.snap.triggers.clear();
        self.last = decision;
        placed
    }

    fn reasons(&self) -> Vec<WaitReason> {
        self.last.waits.iter().map(|wait| wait.reason).collect()
    }
}

#[test]
fn demands_are_evened_out_and_slots_alone_do_not_see_them() {
    for (by, expected) in [
        ("known", ["0: 0", "2: 1", "3: 1", "1: 0"]),
        ("slots", ["0: 0", "1: 1", "2: 0", "3: 1"]),
    ] {
        let mut play = Play::new(nodes(&[None, None]), by);
        for per_us in [100, 1, 90, 2] {
            play.comes(per_us, 1, None);
        }
        assert_eq!(play.decide(), expected, "{by}");
    }
}

#[test]
fn a_free_slot_goes_to_the_task_that_fits_until_too_many_have_passed_the_first() {
    let mut play = Play::new(nodes(&[None, None]), "known");
    for per_us in [100, 100, 0, 0] {
        play.comes(per_us, 1, None);
    }
    play.decide();
    // A heavy task stays on each node: light ones fit better, until 16 have passed the heavy one since the first did.
    play.comes(100, 1, None);
    (0..40).for_each(|_| play.comes(0, 1, None));
    let mut light = 2;
    for passed in 0..18 {
        play.ends(light);
        let next = if passed < 17 { 5 + passed } else { 4 };
        let placed = play.decide();
        assert!(
            placed[0].starts_with(&format!("{next}: ")) && placed.len() == 1,
            "{placed:?}"
        );
        if passed < 17 {
            assert!(matches!(play.reasons()[0], WaitReason::Fitness { .. }));
        }
        light = next;
    }
}

#[test]
fn a_wide_task_reserves_a_node_and_narrow_ones_pass_on_the_others() {
    let mut play = Play::new(nodes(&[None, None]), "known");
    (0..4).for_each(|_| play.comes(1, 1, None));
    play.decide();
    for cpus in [2, 1, 1] {
        play.comes(1, cpus, None);
    }
    let on_first = |play: &Play| {
        play.snap
            .tasks
            .iter()
            .position(|task| task.last_cpus == "0-1".parse().unwrap())
    };
    let first = on_first(&play).map(|ix| play.snap.tasks[ix].id.0).unwrap();
    play.ends(first);
    assert_eq!(play.decide(), Vec::<String>::new());
    assert_eq!(play.reasons()[0], WaitReason::Gang { needs: 2, free: 1 });
    let other = play
        .snap
        .tasks
        .iter()
        .find(|task| task.last_cpus == "2-3".parse().unwrap());
    let other = other.unwrap().id.0;
    play.ends(other);
    assert_eq!(play.decide(), ["5: 1"], "on the other node");
    let first = on_first(&play).map(|ix| play.snap.tasks[ix].id.0).unwrap();
    play.ends(first);
    assert_eq!(play.decide(), ["4: 0"]);
}

#[test]
fn memory_bounds_a_node_unless_it_is_empty() {
    let mut play = Play::new(nodes(&[Some(100), Some(100)]), "known");
    for bytes in [60, 60, 60, 30] {
        play.comes(1, 1, Some(bytes));
    }
    assert_eq!(play.decide(), ["0: 0", "1: 1", "3: 0"]);
    assert_eq!(play.decide(), Vec::<String>::new());
    let needs_memory = WaitReason::Memory {
        needs: 60,
        free: 40,
    };
    assert_eq!(play.reasons(), [needs_memory]);
    play.comes(1, 1, None);
    assert_eq!(play.decide(), Vec::<String>::new(), "that node is reserved");
    play.ends(1);
    assert_eq!(play.decide(), ["2: 1", "4: 1"]);
    let mut large = Play::new(nodes(&[Some(100)]), "known");
    large.comes(1, 1, Some(101));
    assert_eq!(large.decide(), ["0: 0"]);
}

#[test]
fn short_tasks_are_sent_ahead_and_long_ones_are_not() {
    for (ms, ahead) in [(10, 6), (50, 2), (100, 1), (101, 0), (1_000, 0)] {
        let mut play = Play::new(nodes(&[None]), "known");
        (0..9).for_each(|_| play.comes(1, 1, None));
        assert_eq!(play.decide().len(), 2, "nothing is known yet");
        play.ends(0);
        play.snap.now = Nanos::from_ms(ms);
        assert_eq!(play.decide().len(), 1 + ahead, "{ms} ms");
    }
}

#[test]
fn a_wide_task_is_not_sent_ahead_to_a_narrow_node() {
    let mut machine = Machine::uniform("nodes", 4, 1);
    let node = |(name, cpus): (&str, &str)| Node {
        name: name.to_owned(),
        cpus: cpus.parse().unwrap(),
        width: Some(if name == "wide" { 2 } else { 1 }),
        memory: None,
    };
    machine.nodes = [("wide", "0-1"), ("narrow", "2-3")].map(node).to_vec();
    let mut play = Play::new(machine, "known");
    (0..3).for_each(|_| play.comes(1, 1, None));
    assert_eq!(play.decide().len(), 3);
    play.ends(2);
    play.snap.now = Nanos::from_ms(1);
    (0..8).for_each(|_| play.comes(1, 2, None));
    let placed = play.decide();
    assert!(
        !placed.is_empty() && placed.iter().all(|place| place.ends_with(": 0")),
        "{placed:?}"
    );
}

#[test]
fn what_is_kept_is_what_the_snapshot_says() {
    let mut rng = Rng::new(7);
    let mut play = Play::new(nodes(&[Some(500); 5]), "known");
    for _ in 0..400 {
        for _ in 0..rng.below(4) {
            play.comes(rng.below(90), 1 + rng.below(2) as u32, Some(rng.below(300)));
        }
        for _ in 0..rng.below(4) {
            let count = play.snap.tasks.len() as u64;
            if count > 0 {
                let ix = rng.below(count) as usize;
                play.ends(play.snap.tasks[ix].id.0);
            }
        }
        play.decide();
        let kept: PlaceState = serde_json::from_value(play.policy.save()).unwrap();
        let mut fresh = PlacePolicy {
            by: By::Known,
            window: 16,
            ahead: Nanos::ZERO,
            mu_per_us: 1.0,
            quantum: Nanos::from_ms(1),
            state: PlaceState::default(),
        };
        fresh.rebuild(&play.snap);
        let of = |state: &PlaceState| {
            serde_json::to_value((&state.nodes, &state.tasks, &state.waiting, state.known))
        };
        assert_eq!(of(&kept).unwrap(), of(&fresh.state).unwrap());
    }
}

#[test]
fn a_task_stays_on_one_node() {
    let mut play = Play::new(nodes(&[None, None]), "known");
    play.comes(1, 1, None);
    play.decide();
    for mask in ["1-2", "2-3"] {
        let placement = Placement::Shared {
            mask: mask.parse().unwrap(),
        };
        let decision = Decision {
            changes: vec![Change::Place {
                task: TaskId(0),
                placement,
                lease_end: None,
                purpose: Purpose::Run,
            }],
            ..Decision::default()
        };
        assert_eq!(
            check(&play.snap, &decision),
            Err(InvalidDecision::Nodes(TaskId(0)))
        );
    }
}
