//! Traffic of memory domains reaches the estimates of tasks, and `efs` uses it.

use crate::memory::{Memory, Work, run_specs};
use cosched_core::*;

/// The last estimates of each task in a decision, and the number of running tasks after each decision.
#[derive(Default)]
struct Seen {
    estimates: Vec<(TaskId, Estimates)>,
    running: Vec<usize>,
}

impl Recorder for Seen {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let mut running = record
                .snapshot
                .tasks
                .iter()
                .filter(|task| task.running.is_some())
                .count();
            for change in &record.decision.changes {
                let was = record
                    .snapshot
                    .task(change.task())
                    .is_some_and(|task| task.running.is_some());
                match change {
                    Change::Stop { .. } => running -= 1,
                    Change::Place { .. } => running += usize::from(!was),
                }
            }
            self.running.push(running);
            for task in record
                .snapshot
                .tasks
                .iter()
                .filter(|task| task.estimates.executed > 0)
            {
                self.estimates.retain(|(id, _)| *id != task.id);
                self.estimates.push((task.id, task.estimates.clone()));
            }
        }
    }
}

impl Seen {
    fn of(&self, task: u32) -> &Estimates {
        &self
            .estimates
            .iter()
            .find(|(id, _)| id.0 == task)
            .unwrap()
            .1
    }
}

fn watch(world: &mut Memory, policy: &str, traffic: bool) -> Seen {
    let mut seen = Seen::default();
    let config = RunConfig {
        traffic,
        ..RunConfig::default()
    };
    let specs = world.specs();
    run_specs(world, specs, policy, &[], &config, &mut seen);
    seen
}

fn close(reading: Reading<Rate>, per_us: f64) -> bool {
    (reading.value().unwrap().per_us() - per_us).abs() < 0.01 * per_us.max(1.0)
}

#[test]
fn a_domains_writes_are_put_down_to_its_readers() {
    // No task is slowed down here: 30 + 10 lines are read per microsecond, and 20 + 0 written.
    let work = || {
        vec![
            Work::ms(1_000).reads(30).writes(20),
            Work::ms(1_000).reads(10),
        ]
    };
    let mut world = Memory::new(Machine::uniform("two", 2, 1), work());
    let seen = watch(&mut world, "fifo", true);
    assert!(
        close(seen.of(0).mm_writes, 15.0) && close(seen.of(1).mm_writes, 5.0),
        "{:?}",
        seen.estimates
    );
    for task in 0..2 {
        assert!(
            close(seen.of(task).domain_lines, 60.0),
            "{:?}",
            seen.of(task)
        );
    }
    // Not requested.
    let mut world = Memory::new(Machine::uniform("two", 2, 1), work());
    let seen = watch(&mut world, "fifo", false);
    assert_eq!(seen.of(0).mm_writes, Reading::Absent(Absence::NoSuchEvent));
    assert_eq!(
        seen.of(0).domain_lines,
        Reading::Absent(Absence::NotRequested)
    );
    // Requested, but not available.
    let mut world = Memory::new(Machine::uniform("two", 2, 1), work());
    world
        .capabilities
        .missing
        .insert(Capability::Traffic, Absence::NoPermission);
    let seen = watch(&mut world, "fifo", true);
    assert_eq!(seen.of(0).mm_writes, Reading::Absent(Absence::NoSuchEvent));
    assert_eq!(
        seen.of(0).domain_lines,
        Reading::Absent(Absence::NoPermission)
    );
}

#[test]
fn each_task_sees_its_own_memory_domain() {
    let mut machine = Machine::uniform("two sockets", 2, 1);
    machine.cpus[1].memory_domain = 1;
    machine.memory_domains = ["0", "1"].map(|cpus| cpus.parse().unwrap()).into();
    let mut world = Memory::new(
        machine,
        vec![
            Work::ms(1_000).reads(30).writes(6),
            Work::ms(1_000).reads(5),
        ],
    );
    let seen = watch(&mut world, "fifo", true);
    assert!(
        close(seen.of(0).mm_writes, 6.0) && close(seen.of(0).domain_lines, 36.0),
        "{:?}",
        seen.of(0)
    );
    assert!(
        close(seen.of(1).mm_writes, 0.0) && close(seen.of(1).domain_lines, 5.0),
        "{:?}",
        seen.of(1)
    );
}

/// The smallest number of tasks that `efs` ran at once after its first measurement.
fn fewest(work: &Work, foreign: (u64, u64), traffic: bool) -> usize {
    let mut world = Memory::new(Machine::uniform("four", 4, 1), vec![work.clone(); 4]);
    world.bus_per_us = Some(150);
    world.foreign_per_us = foreign;
    let seen = watch(&mut world, "efs", traffic);
    *seen.running[1..]
        .iter()
        .filter(|&&running| running > 0)
        .min()
        .unwrap()
}

#[test]
fn efs_keeps_writers_apart_where_it_sees_that_they_write() {
    // Alone, each keeps the bus busy for 80 % of its time; its reads alone would take less than a quarter.
    let writer = Work::ms(4_000).reads(35).writes(85);
    assert_eq!(fewest(&writer, (0, 0), true), 1);
    assert!(fewest(&writer, (0, 0), false) > 1);
}

#[test]
fn efs_counts_what_other_programs_move_as_load() {
    // The tasks together demand half of the bus. If other programs leave them little, their demand seems larger,
    // because measured use is less than demand (EFS, Eq. 9).
    let calm = Work::ms(4_000).reads(19);
    assert_eq!(fewest(&calm, (0, 0), true), 4);
    assert!(fewest(&calm, (60, 10), true) < 4);
    assert_eq!(fewest(&calm, (60, 10), false), 4);
}

/// A domain's meter fails for a while.
#[test]
fn a_gap_in_the_traffic_leaves_demands_as_they_were() {
    // By reads alone, all four tasks would seem to fit.
    let writer = Work::ms(4_000).reads(35).writes(85);
    let mut world = Memory::new(Machine::uniform("four", 4, 1), vec![writer; 4]);
    world.bus_per_us = Some(150);
    world.traffic_gap = (Nanos::from_ms(2_000), Nanos::from_ms(9_000));
    let seen = watch(&mut world, "efs", true);
    let most = seen.running[5..].iter().max().unwrap();
    assert!(*most <= 2, "{:?}", seen.running);
}
