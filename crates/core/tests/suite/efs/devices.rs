//! Devices beside the memory bus: a task runs only if it fits all of them. Memory, and gangs on a device.

use super::log::{BUS, Log, four, hogs, run_log};
use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;

/// Runs tasks on a disk that delivers `BUS` bytes per microsecond; their use of the memory bus is given: none.
fn on_disk(work: Vec<Work>, change: impl Fn(&mut Vec<TaskSpec>)) -> (Log, RunResult) {
    let mut world = Memory::new(four(), work);
    world.disk_per_us = Some(BUS);
    let mut specs = world.specs();
    change(&mut specs);
    specs
        .iter_mut()
        .for_each(|spec| spec.bus_use_milli = Some(0));
    let mut log = Log::default();
    let settings = [("demand", "given"), ("disk", "on")];
    let config = RunConfig {
        devices: true,
        ..RunConfig::default()
    };
    let result = run_specs(&mut world, specs, "efs", &settings, &config, &mut log);
    assert_eq!(result.policy_faults, 0);
    (log, result)
}

#[test]
fn a_disk_is_shared_as_the_bus_is() {
    let mut rng = Rng::new(5);
    for _ in 0..20 {
        let rates: Vec<u64> = (0..7).map(|_| rng.below(BUS)).collect();
        let tasks = |of: fn(Work, u64) -> Work| {
            let all = rates.iter().map(|&rate| of(Work::ms(3_000).reads(0), rate));
            all.collect::<Vec<Work>>()
        };
        let (on_bus, _) = run_log(
            four(),
            tasks(Work::reads),
            |_| {},
            &[],
            &RunConfig::default(),
            None,
        );
        let (on_disk, _) = on_disk(tasks(Work::disk), |_| {});
        assert_eq!(on_disk.sets(), on_bus.sets(), "{rates:?}");
        let mut refused = on_disk.turns.iter().flat_map(|turn| &turn.waits);
        assert!(
            refused.any(|wait| matches!(
                wait.reason,
                WaitReason::BusFull {
                    device: Some(Device::Disk),
                    ..
                }
            )),
            "{rates:?}"
        );
    }
}

#[test]
fn a_task_has_to_fit_the_bus_and_the_disk() {
    // One that fills the disk and one that fills the bus run together; two of a kind do not.
    let mut work = hogs(2, 4_000);
    work.extend((0..2).map(|_| Work::ms(4_000).disk(BUS)));
    let mut world = Memory::new(four(), work);
    (world.bus_per_us, world.disk_per_us) = (Some(BUS), Some(BUS));
    let (mut log, specs) = (Log::default(), world.specs());
    let config = RunConfig {
        devices: true,
        ..RunConfig::default()
    };
    let settings = [("disk", "on")];
    run_specs(&mut world, specs, "efs", &settings, &config, &mut log);
    let sets = log.sets();
    let pairs = |set: &[u32]| set.len() == 2 && set[0] < 2 && set[1] >= 2;
    // At first nothing is measured, and at the end one kind is left.
    let mixed = sets.iter().filter(|set| pairs(set)).count();
    assert!(mixed * 10 >= sets.len() * 8, "{sets:?}");
}

#[test]
fn a_gang_is_admitted_to_a_disk_whole_or_not_at_all() {
    let work = (0..3).map(|_| Work::ms(3_000).disk(BUS)).collect();
    let gangs = |specs: &mut Vec<TaskSpec>| specs[..2].iter_mut().for_each(|spec| spec.cpus = 2);
    let (log, result) = on_disk(work, gangs);
    assert!(result.tasks.iter().all(|task| task.finished.is_some()));
    for turn in &log.turns {
        for (task, cpus) in &turn.runs {
            assert_eq!(cpus.len(), if task.0 < 2 { 2 } else { 1 });
        }
    }
    let together = log.turns[1..].iter().filter(|turn| turn.runs.len() > 1);
    assert_eq!(together.count(), 0, "{:?}", log.sets());
}

#[test]
fn a_task_starts_only_if_its_memory_is_there() {
    let mut world = Memory::new(four(), (0..4).map(|_| Work::ms(1_000)).collect());
    world.memory = Some(10);
    let mut specs = world.specs();
    for spec in &mut specs {
        spec.expected = Some(Expected {
            memory: Some(4),
            ..Expected::of(Nanos::from_ms(1_000), ExpectedFrom::Same)
        });
    }
    let mut log = Log::default();
    let config = RunConfig::default();
    run_specs(&mut world, specs, "efs", &[], &config, &mut log);
    let sizes: Vec<usize> = log.sets().iter().map(Vec::len).collect();
    assert_eq!(sizes.iter().max(), Some(&2), "{sizes:?}");
}

#[test]
fn a_device_is_required_and_then_counters_are_wanted() {
    let entry = find_policy("efs").unwrap();
    let setting = ("disk".to_owned(), "on".to_owned());
    let params = Params::resolve("efs", entry.params, &[setting]).unwrap();
    let importance = |capability| {
        let mut capabilities = Capabilities::default();
        capabilities.missing.insert(capability, Absence::NotTold);
        entry.shortfalls(&params, &capabilities)[0].importance
    };
    let disk = importance(Capability::Device(Device::Disk));
    assert_eq!(disk, Importance::Required);
    let reads = importance(Capability::Counter(Counter::MmReads));
    assert!(matches!(reads, Importance::Wanted(_)));
}
