//! The loop survives lost counters and wrong decisions.

use super::support::world;
use crate::memory::{Work, run_policy};
use cosched_core::*;

#[test]
fn counters_that_vanish_are_survived() {
    for policy in ["bandwidth", "fair", "perf-fair"] {
        let mut world = world(2, (0..5).map(|i| Work::ms(2_000).reads(i)).collect());
        world.counters_until = Some(Nanos::from_ms(1_900));
        let result = run_policy(&mut world, policy, &[], &RunConfig::default());
        for task in &result.tasks {
            assert_eq!(task.exit, Some(Exit::Code(0)));
            assert_eq!(
                task.counts[Counter::Cycles],
                Reading::Absent(Absence::CountersLost)
            );
        }
    }
}

#[test]
fn a_policy_that_asks_for_nonsense_is_stood_in_for() {
    struct Nonsense(u32);
    impl Policy for Nonsense {
        fn decide(&mut self, snap: &Snapshot, _: &mut Rng) -> Decision {
            self.0 += 1;
            let cpu = |n: u32| [CpuId(n)].into_iter().collect::<CpuSet>();
            let place = |task, cpus| Change::Place {
                task,
                placement: Placement::Exclusive {
                    cpus,
                    whole_core: false,
                },
                lease_end: None,
                purpose: Purpose::Run,
            };
            let changes = match self.0 % 5 {
                0 => vec![place(TaskId(99), cpu(0))],
                1 => snap
                    .tasks
                    .iter()
                    .map(|task| place(task.id, cpu(0)))
                    .collect(),
                2 => vec![place(snap.tasks[0].id, cpu(77))],
                3 => vec![],
                _ => vec![place(snap.tasks[0].id, CpuSet::new())],
            };
            let stop = snap
                .tasks
                .iter()
                .filter(|t| t.running.is_some())
                .map(|t| Change::Stop { task: t.id });
            let changes = if self.0 % 5 == 3 {
                stop.collect()
            } else {
                changes
            };
            Decision {
                changes,
                next_wake: (self.0 % 5 != 3).then_some(snap.now + Nanos(1)),
                ..Decision::default()
            }
        }
        fn save(&self) -> serde_json::Value {
            self.0.into()
        }
        fn load(&mut self, _: &serde_json::Value) -> Result<(), serde_json::Error> {
            Ok(())
        }
    }
    let mut world = world(2, vec![Work::ms(500), Work::ms(500), Work::ms(500)]);
    let specs = world.specs();
    let result = run(
        &mut world,
        &mut Nonsense(0),
        &mut NullRecorder,
        specs,
        &RunConfig::default(),
    )
    .unwrap();
    assert!(result.policy_faults > 2);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}
