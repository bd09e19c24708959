//! Tasks of measured width use the spare CPUs, and no others.

use crate::memory::{Act, Memory, Work, run_policy, run_specs};
use crate::random::{after, moment, policy};
use cosched_core::*;
use proptest::prelude::{ProptestConfig, prop_assert, prop_assert_eq, proptest};

/// A world on cores with one thread each.
fn world(cores: u32, work: Vec<Work>) -> Memory {
    Memory::new(Machine::uniform("memory", cores, 1), work)
}

/// The tasks of a world, all of measured width.
fn measured(world: &Memory) -> Vec<TaskSpec> {
    world
        .specs()
        .into_iter()
        .map(|spec| TaskSpec {
            width: Width::Measured,
            ..spec
        })
        .collect()
}

fn run_measured(world: &mut Memory, policy: &str) -> RunResult {
    let specs = measured(world);
    run_specs(
        world,
        specs,
        policy,
        &[],
        &RunConfig::default(),
        &mut NullRecorder,
    )
}

fn finish_ms(result: &RunResult) -> Vec<u64> {
    result
        .tasks
        .iter()
        .map(|task| task.finished.unwrap().0 / 1_000_000)
        .collect()
}

/// The masks that were set at a given time.
fn moves(world: &Memory, ms: u64) -> Vec<(u32, String)> {
    let at = world
        .acts
        .iter()
        .filter(|(at, _)| *at == Nanos::from_ms(ms));
    at.filter_map(|(_, act)| {
        if let Act::Move(task, cpus) = act {
            Some((*task, cpus.clone()))
        } else {
            None
        }
    })
    .collect()
}

fn overlap(one: &CpuSet, other: &CpuSet) -> bool {
    !one.intersection(other).is_empty()
}

#[test]
fn a_single_task_has_the_whole_machine_under_every_policy() {
    for entry in POLICIES {
        // Longer than the quantum of any policy.
        let mut world = world(4, vec![Work::ms(16_000).threads(4)]);
        let result = run_measured(&mut world, entry.name);
        assert_eq!(finish_ms(&result), [4_000], "{}", entry.name);
        assert_eq!(result.tasks[0].width, Reading::Value(4), "{}", entry.name);
    }
}

#[test]
fn a_stated_width_is_all_that_a_task_gets() {
    for entry in POLICIES.iter().filter(|entry| !entry.kernel_shares) {
        let mut world = world(4, vec![Work::ms(1_000).threads(4)]);
        let result = run_policy(&mut world, entry.name, &[], &RunConfig::default());
        assert_eq!(finish_ms(&result), [1_000], "{}", entry.name);
        assert_eq!(result.tasks[0].width, Reading::Value(1), "{}", entry.name);
    }
}

#[test]
fn spare_cpus_are_lent_and_taken_back() {
    // The third task arrives later and ends before the others.
    let mut world = world(
        3,
        vec![Work::ms(2_000).threads(3), Work::ms(2_000), Work::ms(300)],
    );
    let mut specs = measured(&world);
    specs[2].arrives = Nanos::from_ms(500);
    let result = run_specs(
        &mut world,
        specs,
        "fifo",
        &[],
        &RunConfig::default(),
        &mut NullRecorder,
    );
    assert_eq!(
        world.acts[..2]
            .iter()
            .map(|(_, act)| act.clone())
            .collect::<Vec<_>>(),
        [Act::Start(0), Act::Start(1)]
    );
    assert_eq!(
        moves(&world, 500),
        [(0, "0".to_owned()), (1, "1".to_owned())],
        "the newcomer's CPU is its own"
    );
    assert_eq!(
        moves(&world, 800),
        [(0, "0,2".to_owned()), (1, "1-2".to_owned())],
        "it is lent again"
    );
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

#[test]
fn with_as_many_tasks_as_cpus_each_has_its_own() {
    for entry in POLICIES.iter().filter(|entry| !entry.kernel_shares) {
        let mut world = world(2, vec![Work::ms(1_000).threads(8), Work::ms(1_000)]);
        // Nothing is measured beside others, so no mask changes because of that.
        world
            .capabilities
            .missing
            .insert(Capability::Ipc, Absence::NoCounters);
        let result = run_measured(&mut world, entry.name);
        assert_eq!(finish_ms(&result), [1_000, 1_000], "{}", entry.name);
        assert_eq!(
            result.tasks[0].width,
            Reading::Value(8),
            "{}: it wanted more than it had",
            entry.name
        );
    }
}

#[test]
fn a_mask_is_kept() {
    let mut world = world(4, vec![Work::ms(1_000).threads(4)]);
    let mut specs = measured(&world);
    specs[0].allowed = Some("1,3".parse().unwrap());
    let result = run_specs(
        &mut world,
        specs,
        "fifo",
        &[],
        &RunConfig::default(),
        &mut NullRecorder,
    );
    assert_eq!(finish_ms(&result), [500]);
}

#[test]
fn a_task_that_ends_at_once_has_no_width() {
    let mut world = world(2, vec![Work::ms(50)]);
    let result = run_measured(&mut world, "fifo");
    assert_eq!(
        result.tasks[0].width,
        Reading::Absent(Absence::NotYetMeasured)
    );
}

#[test]
fn a_sample_names_all_cpus_that_the_task_had() {
    struct Cpus(Vec<(u32, String)>);
    impl Recorder for Cpus {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact {
                self.0.extend(
                    record
                        .samples
                        .iter()
                        .map(|sample| (sample.task.0, sample.cpus.to_string())),
                );
            }
        }
    }
    let mut world = world(2, vec![Work::ms(1_600), Work::ms(300)]);
    let mut specs = measured(&world);
    specs[1].arrives = Nanos::from_ms(500);
    let mut cpus = Cpus(Vec::new());
    run_specs(
        &mut world,
        specs,
        "fifo",
        &[],
        &RunConfig::default(),
        &mut cpus,
    );
    let of_first: Vec<&str> = cpus
        .0
        .iter()
        .filter(|(task, _)| *task == 0)
        .map(|(_, cpus)| cpus.as_str())
        .collect();
    assert_eq!(
        of_first[..4],
        ["0-1", "0-1", "0-1", "0"],
        "lent for two quanta and a half: {of_first:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_spare_is_nobodys_and_not_kept_idle_on_purpose(snap in moment()) {
        for entry in POLICIES {
            let decision = policy(entry, &[]).decide(&snap, &mut Rng::new(1));
            let spare = spare_cpus(&snap, &decision);
            let after = after(&snap, &decision);
            let placed = || after.iter().flatten();
            prop_assert!(placed().all(|placement| !overlap(placement.cpus(), &spare)), "{}", entry.name);
            let purposes = snap.tasks.iter().map(|task| {
                let change = decision.changes.iter().find(|change| change.task() == task.id);
                match change {
                    Some(Change::Place { purpose, .. }) => Some(*purpose),
                    Some(Change::Stop { .. }) => None,
                    None => task.running.as_ref().map(|running| running.purpose),
                }
            });
            let measures = purposes.flatten().any(|purpose| purpose != Purpose::Run)
                || placed().any(|placement| matches!(placement, Placement::Exclusive { whole_core: true, .. }));
            let on_purpose = decision.waits.iter().any(|wait| {
                matches!(
                    wait.reason,
                    WaitReason::BusFull { .. }
                        | WaitReason::Heavy { .. }
                        | WaitReason::Unmeasured
                        | WaitReason::Measuring { .. }
                        | WaitReason::Lead { .. }
                        | WaitReason::Outweighed { .. }
                )
            });
            if on_purpose || (measures && placed().count() > 1) {
                prop_assert!(spare.is_empty(), "{}", entry.name);
            } else {
                let mut free = snap.machine.all_cpus();
                placed().for_each(|placement| free.remove_all(placement.cpus()));
                prop_assert_eq!(spare, free, "{}", entry.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(48) })]

    /// The world rejects a task on a CPU that another task owns exclusively, so a completed run had no such placement.
    #[test]
    fn tasks_of_any_width_run_to_their_end_under_every_policy(
        cores in 1u32..5,
        tasks in proptest::collection::vec((50u64..900, 1u32..9, 0u64..1_500, 0u32..3, 0u64..30), 1..9),
    ) {
        for entry in POLICIES {
            let work = tasks.iter().map(|&(ms, threads, _, _, reads)| Work::ms(ms).threads(threads).reads(reads));
            let mut world = world(cores, work.collect());
            let mut specs = world.specs();
            for (spec, &(_, threads, arrives, kind, _)) in specs.iter_mut().zip(&tasks) {
                spec.arrives = Nanos::from_ms(arrives);
                match kind {
                    0 => spec.cpus = threads.min(cores),
                    _ => spec.width = Width::Measured,
                }
            }
            let result = run_specs(&mut world, specs, entry.name, &[], &RunConfig::default(), &mut NullRecorder);
            prop_assert_eq!(result.policy_faults, 0, "{}", entry.name);
            prop_assert!(result.tasks.iter().all(|task| task.exit == Some(Exit::Code(0))), "{}", entry.name);
        }
    }
}
