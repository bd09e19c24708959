//! Progress: how it is measured, and how policies equalise it.

use super::support::{finish_ms, world};
use crate::memory::{Memory, Work, run_policy, run_specs};
use cosched_core::*;
use std::collections::BTreeMap;

#[test]
fn a_late_task_starts_at_the_least_progress() {
    struct Watch(Vec<f64>);
    impl Recorder for Watch {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact
                && let Some(task) = record.snapshot.task(TaskId(2))
                && task.estimates.executed == 0
            {
                let least = record.snapshot.tasks[..2]
                    .iter()
                    .map(|t| t.estimates.progress.value().unwrap());
                assert!(
                    task.estimates.progress.value().unwrap()
                        >= least.fold(f64::MAX, f64::min) - 1.0
                );
                self.0.push(task.estimates.progress.value().unwrap());
            }
        }
    }
    let mut world = world(1, vec![Work::ms(4_000), Work::ms(4_000), Work::ms(1_000)]);
    let mut specs = world.specs();
    specs[2].arrives = Nanos::from_ms(3_000);
    let mut watch = Watch(Vec::new());
    run_specs(
        &mut world,
        specs,
        "fair",
        &[],
        &RunConfig::default(),
        &mut watch,
    );
    assert!(watch.0[0] > 5.0, "{:?}", watch.0);
}

#[test]
fn for_the_mean_turnaround_progress_is_a_task_s_own_work() {
    struct Watch(Vec<f64>);
    impl Recorder for Watch {
        fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
            if let Fact::Decided(record) = fact {
                let late = record.snapshot.task(TaskId(1));
                let estimates = late.map(|task| &task.estimates);
                self.0.extend(estimates.and_then(
                    |estimates| match estimates.learnt.as_ref().value() {
                        Some(learnt) => Some(learnt.progress),
                        None => estimates.progress.value(),
                    },
                ));
            }
        }
    }
    let mut world = world(1, vec![Work::ms(4_000), Work::ms(1_000)]);
    let mut specs = world.specs();
    specs[1].arrives = Nanos::from_ms(3_000);
    let mut watch = Watch(Vec::new());
    let mean = [("objective", "mean")];
    run_specs(
        &mut world,
        specs,
        "even",
        &mean,
        &RunConfig::default(),
        &mut watch,
    );
    assert_eq!(watch.0[0], 0.0);
    let most = watch.0.iter().copied().fold(0.0, f64::max);
    assert!(most <= 5.0, "a second of work in quanta: {:?}", watch.0);
}

#[test]
fn fair_equalises_progress_and_bandwidth_does_not_starve() {
    let work = || {
        (0..6)
            .map(|i| Work::ms(4_000).reads(20 * i))
            .collect::<Vec<_>>()
    };
    let mut world = self::world(2, work());
    let result = run_policy(&mut world, "fair", &[], &RunConfig::default());
    let ends = finish_ms(&result);
    assert!(
        ends.iter().max().unwrap() - ends.iter().min().unwrap() < 1_500,
        "{ends:?}"
    );
    let mut world = self::world(2, work());
    let result = run_policy(&mut world, "bandwidth", &[], &RunConfig::default());
    let waited = result
        .tasks
        .iter()
        .map(|task| task.waited_max)
        .max()
        .unwrap();
    assert!(waited <= Nanos::from_ms(200 * 7), "{waited:?}");
}

#[test]
fn perf_fair_measures_everyone_alone_and_reports_progress() {
    let mut world = world(2, (0..6).map(|i| Work::ms(4_000).reads(20 * i)).collect());
    let result = run_policy(&mut world, "perf-fair", &[], &RunConfig::default());
    for task in &result.tasks {
        assert_eq!(task.progress_basis, ProgressBasis::Ipc);
        // No contention in this world: solo IPC equals IPC, and 4 s are 20 quanta.
        let progress = task.progress.value().unwrap();
        assert!((progress - 20.0).abs() < 0.1, "{progress}");
    }
}

#[test]
fn a_mask_of_half_a_core_keeps_nobody_from_being_measured() {
    for policy in ["fair", "perf-fair"] {
        let mut world = Memory::new(
            Machine::uniform("two by two", 2, 2),
            (0..7).map(|_| Work::ms(4_000).reads(50)).collect(),
        );
        let mut specs = world.specs();
        specs[0].allowed = Some("0".parse().unwrap());
        // There are not three cores, and no core for a gang with its mask.
        specs[1].cpus = 3;
        specs[2].allowed = Some("0,1".parse().unwrap());
        specs[2].cpus = 2;
        let result = run_specs(
            &mut world,
            specs,
            policy,
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        for task in &result.tasks {
            assert_eq!(
                task.progress_basis,
                ProgressBasis::Ipc,
                "{policy} {}",
                task.spec.name
            );
        }
    }
}

#[test]
fn what_cannot_be_stopped_is_measured_around() {
    let measured = |reads: u64| {
        let mut work: Vec<Work> = (0..7).map(|_| Work::ms(4_000).reads(50)).collect();
        work[0].reads_per_us = reads;
        work[0].needs = Nanos::from_ms(12_000);
        let mut world = Memory::new(Machine::uniform("two by two", 2, 2), work);
        let mut specs = world.specs();
        // It keeps one thread of a core, so the task that may only use the other thread cannot get a whole core.
        specs[0].control.freeze = false;
        specs[0].allowed = Some("0".parse().unwrap());
        specs[1].allowed = Some("2".parse().unwrap());
        let result = run_specs(
            &mut world,
            specs,
            "perf-fair",
            &[],
            &RunConfig::default(),
            &mut NullRecorder,
        );
        assert_eq!(result.policy_faults, 0);
        result.tasks[2..]
            .iter()
            .filter(|task| task.progress_basis == ProgressBasis::Ipc)
            .count()
    };
    assert_eq!(measured(1), 5);
    // Beside a heavy task that keeps running, no measurement would be valid; only the last task at the end runs alone.
    assert!(measured(50) <= 1);
}

#[test]
fn when_the_measured_task_ends_the_cpus_are_filled_at_once() {
    let mut work: Vec<Work> = (0..6).map(|_| Work::ms(1_000).reads(50)).collect();
    work[1] = Work::ms(1_000);
    work[0].needs = Nanos::from_ms(230);
    let mut world = world(3, work);
    run_policy(&mut world, "perf-fair", &[], &RunConfig::default());
    let at = |ms| {
        world
            .acts
            .iter()
            .filter(|(at, _)| *at == Nanos::from_ms(ms))
            .count()
    };
    // Three run, the other three replace them, then the first is measured beside the only light one.
    assert_eq!((at(0), at(200), at(400)), (3, 6, 5));
    assert_eq!(at(430), 2, "{:?}", world.acts);
}

/// The samples of each task.
#[derive(Default)]
struct Rates(BTreeMap<TaskId, Vec<Sample>>);

impl Recorder for Rates {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            for sample in record.samples {
                self.0.entry(sample.task).or_default().push(sample.clone());
            }
            for task in &record.snapshot.tasks {
                let Some(samples) = self.0.get(&task.id) else {
                    continue;
                };
                // After the first, an interval below a tenth of a quantum tells no rate (ours).
                let is_telling = |sample: &&Sample| sample.interval >= Nanos::from_ms(20);
                let last = samples.iter().rfind(is_telling).unwrap_or(&samples[0]);
                let rate = |counter: Counter| last.rate(last.counts[counter]);
                let known = &task.estimates;
                assert_eq!(known.mm_reads, rate(Counter::MmReads));
                assert_eq!(known.llc, rate(Counter::LlcAccesses));
                assert_eq!(known.l1, rate(Counter::L1Accesses));
                assert_eq!(known.ipc, last.counts.ipc());
                let reads = samples
                    .iter()
                    .map(|sample| sample.counts[Counter::MmReads].value().unwrap());
                let time = Nanos(samples.iter().map(|sample| sample.interval.0).sum());
                assert_eq!(
                    known.mm_reads_mean.value(),
                    Rate::from_count(reads.sum(), time)
                );
            }
        }
    }
}

#[test]
fn rates_are_those_of_the_last_interval_and_means_those_since_the_start() {
    let (mut changes, mut short) = (0, 0);
    for step in 90..100 {
        let work = (0..16).map(|i| Work::ms(1_000 + step * i).reads(20 * i));
        let mut world = world(3, work.collect());
        // The jobs slow each other down, so that rates change.
        world.bus_per_us = Some(60);
        let specs = world.specs();
        let (mut rates, config) = (Rates::default(), RunConfig::default());
        run_specs(&mut world, specs, "perf-fair", &[], &config, &mut rates);
        let reads = |sample: &Sample| sample.rate(sample.counts[Counter::MmReads]);
        for three in rates.0.values().flat_map(|samples| samples.windows(3)) {
            changes += usize::from(reads(&three[0]) != reads(&three[1]));
            short += usize::from(three[1].interval < Nanos::from_ms(20));
        }
    }
    assert!(changes > 100 && short > 5, "{changes} {short}");
}
