//! Random machines and random moments of a run, for properties over all policies.
#![allow(unreachable_pub)]

use cosched_core::*;
use proptest::prelude::{Just, Strategy, any, prop_oneof};
use std::sync::Arc;

/// A machine of one to eight cores with one to three threads each; some threads are offline, and there are one or more
/// last-level caches and types of core.
pub fn machine() -> impl Strategy<Value = Machine> {
    let cores = proptest::collection::vec((1u8..8, 0usize..3, 0usize..3), 1..8);
    (cores, 1u32..=3, 1usize..=3, 1usize..=3).prop_map(|(cores, threads, llcs, types)| {
        let count = cores.len();
        let mut cpus = Vec::new();
        for thread in 0..threads {
            for (core, &(online, llc, kind)) in cores.iter().enumerate() {
                // The first thread of each core is always online, so that no core is empty.
                if thread == 0 || online & (1 << thread) != 0 {
                    let id = CpuId(thread * count as u32 + core as u32);
                    cpus.push(Cpu {
                        id,
                        core,
                        llc: llc % llcs,
                        memory_domain: 0,
                        core_type: kind % types,
                    });
                }
            }
        }
        let set = |of: &dyn Fn(&Cpu) -> bool| {
            cpus.iter()
                .filter(|cpu| of(cpu))
                .map(|cpu| cpu.id)
                .collect()
        };
        let machine = Machine {
            name: "random".to_owned(),
            cores: (0..count).map(|ix| set(&|cpu| cpu.core == ix)).collect(),
            llcs: (0..llcs).map(|ix| set(&|cpu| cpu.llc == ix)).collect(),
            memory_domains: vec![set(&|_| true)],
            core_types: (0..types)
                .map(|kind| CoreType {
                    name: format!("type-{kind}"),
                    capacity: None,
                    max_khz: None,
                })
                .collect(),
            llc_bytes: Reading::Absent(Absence::NotRequested),
            nodes: Vec::new(),
            cpus,
        };
        machine.validate().unwrap();
        machine
    })
}

/// A task's activity at the moment of the snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Runs, if there is room.
    Runs,
    /// Runs and sleeps.
    RunsAsleep,
    /// Runs with whole cores, if there is room.
    RunsAlone,
    /// Waits.
    Waits,
    /// Waits beyond its bound.
    Overdue,
    /// Sleeps and holds no CPU.
    Sleeps,
}

/// One task, before it is put on a machine.
#[derive(Clone, Debug)]
pub struct Job {
    cpus: u32,
    mask: Option<u32>,
    doing: Doing,
    waited_ms: u64,
    last: u32,
    control: Control,
    estimates: Estimates,
    /// Expected time from earlier runs, in s.
    expected_s: Option<u64>,
    weight: f64,
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        6 => Just(Doing::Runs),
        1 => Just(Doing::RunsAsleep),
        1 => Just(Doing::RunsAlone),
        8 => Just(Doing::Waits),
        2 => Just(Doing::Overdue),
        1 => Just(Doing::Sleeps),
    ]
}

fn rate(below: u64) -> impl Strategy<Value = Reading<Rate>> {
    // Few distinct values, so that ties are common.
    prop_oneof![
        1 => Just(Reading::Absent(Absence::NotYetMeasured)),
        4 => (0..below).prop_map(|rate| Reading::Value(Rate(rate * 1_000))),
    ]
}

fn learnt() -> impl Strategy<Value = Reading<Learnt>> {
    // Few distinct values, so that ties are common.
    let asks = (1u32..5, 0u32..4, 0u32..4, 0u32..6, 0u32..5).prop_map(
        |(own, penalty, l1, reads, steepness)| {
            let reads = f64::from(reads) / 200.0;
            model::contention::PhaseDemand {
                own: f64::from(own) / 4.0,
                penalty: f64::from(penalty) * 40.0,
                l1: f64::from(l1) / 8.0,
                llc: 2.0 * reads,
                reads,
                steepness: f64::from(steepness) / 4.0,
                ghz: 2.4,
                ..Default::default()
            }
        },
    );
    let measured = [
        Measured::Phase,
        Measured::OtherPhase,
        Measured::Alike,
        Measured::EarlierRun,
        Measured::Never,
    ];
    let known = (asks, 0u32..4, 0usize..5, 0u32..12, 0usize..3, 0u32..4).prop_map(
        move |(asks, error, how, progress, slower, last)| {
            Reading::Value(Learnt {
                asks,
                solo_cpi: asks.solo_cpi(&Default::default()),
                error: f64::from(error) / 100.0,
                measured: measured[how],
                progress: f64::from(progress) / 2.0,
                phase: 0,
                last: (last > 0).then(|| LastCpi {
                    counted: f64::from(last) * asks.solo_cpi(&Default::default()),
                    modelled: 2.0 * asks.solo_cpi(&Default::default()),
                    core_type: last as usize % 2,
                }),
                slower: vec![
                    model::contention::PhaseDemand {
                        own: 1.5 * asks.own,
                        ghz: 1.2,
                        ..asks
                    };
                    slower
                ],
            })
        },
    );
    prop_oneof![1 => Just(Reading::Absent(Absence::NoCounters)), 4 => known]
}

fn estimates() -> impl Strategy<Value = Estimates> {
    let solo = prop_oneof![
        Just(Reading::Absent(Absence::NoSoloEstimate)),
        Just(Reading::Absent(Absence::CountersLost)),
        (1u32..8).prop_map(|ipc| Reading::Value(f64::from(ipc) / 4.0)),
    ];
    (
        rate(12),
        rate(12),
        rate(30),
        rate(9),
        solo,
        0u32..60,
        0u32..12,
        0u32..4,
        learnt(),
    )
        .prop_map(
            |(reads, mean, llc, l1, solo_ipc, solo_age, progress, executed, learnt)| {
                let known = executed > 0;
                let or_not = |reading: Reading<Rate>| match reading {
                    Reading::Value(_) if !known => Reading::Absent(Absence::NotYetMeasured),
                    reading => reading,
                };
                Estimates {
                    mm_reads: or_not(reads),
                    mm_reads_mean: or_not(mean),
                    llc: or_not(llc),
                    l1: or_not(l1),
                    ipc: if known {
                        Reading::Value(0.5)
                    } else {
                        Reading::Absent(Absence::NotYetMeasured)
                    },
                    cpu_instructions: or_not(llc).map(|rate| rate.0 * 50),
                    cpu_mm_reads: or_not(reads),
                    solo_ipc: if known {
                        solo_ipc
                    } else {
                        Reading::Absent(Absence::NoSoloEstimate)
                    },
                    solo_age,
                    progress: Reading::Value(f64::from(progress) / 2.0),
                    trace_progress: match solo_ipc {
                        Reading::Value(_) => Reading::Value(f64::from(progress) / 3.0),
                        Reading::Absent(_) => Reading::Absent(Absence::NoSoloTrace),
                    },
                    learnt: if known {
                        learnt
                    } else {
                        Reading::Absent(Absence::NotYetMeasured)
                    },
                    executed,
                    ran: Nanos::from_ms(u64::from(executed) * 200),
                    ..Estimates::default()
                }
            },
        )
}

/// Random tasks; with `simple` they are all single, unmasked and may be frozen.
pub fn jobs(count: std::ops::Range<usize>, simple: bool) -> impl Strategy<Value = Vec<Job>> {
    let cpus = if simple {
        Just(1u32).boxed()
    } else {
        prop_oneof![5 => Just(1u32), 1 => 2u32..5].boxed()
    };
    let mask = if simple {
        Just(None).boxed()
    } else {
        prop_oneof![4 => Just(None), 1 => any::<u32>().prop_map(Some)].boxed()
    };
    let control = if simple {
        Just(Control::FULL).boxed()
    } else {
        prop_oneof![
            12 => Just(Control::FULL),
            1 => Just(Control { freeze: false, ..Control::FULL }),
            1 => Just(Control { place: false, ..Control::FULL }),
        ]
        .boxed()
    };
    let expected = if simple {
        Just(None).boxed()
    } else {
        prop_oneof![4 => Just(None), 1 => (1u64..60).prop_map(Some)].boxed()
    };
    let job = (
        cpus,
        mask,
        doing(),
        0u64..6,
        any::<u32>(),
        control,
        estimates(),
        expected,
        prop_oneof![4 => Just(1.0), 1 => 0.001..1_000.0],
    )
        .prop_map(
            |(cpus, mask, doing, waited, last, control, estimates, expected_s, weight)| Job {
                cpus,
                mask,
                doing,
                waited_ms: waited * 200,
                last,
                control,
                estimates,
                expected_s,
                weight,
            },
        );
    proptest::collection::vec(job, count)
}

/// Random triggers; half of the time the quantum ends.
pub fn triggers() -> impl Strategy<Value = Vec<Trigger>> {
    let some = prop_oneof![
        5 => Just(Trigger::QuantumEnd),
        1 => Just(Trigger::LoadFell),
        1 => (0u32..30).prop_map(|id| Trigger::Arrived(TaskId(id))),
        1 => (0u32..30).prop_map(|id| Trigger::Ended(TaskId(id))),
        1 => (0u32..30).prop_map(|id| Trigger::Woke(TaskId(id))),
        1 => (0u32..30).prop_map(|id| Trigger::Starved(TaskId(id))),
    ];
    proptest::collection::vec(some, 1..3)
}

/// Puts jobs on a machine: running jobs take free CPUs in turn, while CPUs last.
pub fn snapshot(
    machine: &Arc<Machine>,
    jobs: &[Job],
    triggers: &[Trigger],
    now: Nanos,
) -> Snapshot {
    let mut free = machine.all_cpus();
    let all: Vec<CpuId> = free.iter().collect();
    let mut tasks = Vec::new();
    for (ix, job) in jobs.iter().enumerate() {
        let allowed = job.mask.map(|bits| {
            let mut mask: CpuSet = all
                .iter()
                .enumerate()
                .filter(|(n, _)| bits >> (n % 32) & 1 != 0)
                .map(|(_, &cpu)| cpu)
                .collect();
            // A task that could never run is rejected before the run.
            all.iter()
                .cycle()
                .skip(bits as usize % all.len())
                .take(all.len())
                .for_each(|&cpu| {
                    if mask.len() < job.cpus as usize {
                        mask.insert(cpu);
                    }
                });
            mask
        });
        let cpus = job.cpus.min(all.len() as u32);
        let core_of =
            |cpu: CpuId| &machine.cores[machine.cpus[machine.index_of(cpu).unwrap()].core];
        let whole_core = job.doing == Doing::RunsAlone;
        let usable = |cpu: &CpuId| {
            let may = allowed.as_ref().is_none_or(|mask| mask.contains(*cpu));
            may && free.contains(*cpu) && (!whole_core || core_of(*cpu).is_subset(&free))
        };
        let mut here: CpuSet = free.iter().filter(usable).take(cpus as usize).collect();
        let runs = matches!(
            job.doing,
            Doing::Runs | Doing::RunsAsleep | Doing::RunsAlone
        );
        if !runs || here.len() < cpus as usize {
            here = CpuSet::new();
        }
        for cpu in here.iter() {
            if whole_core {
                core_of(cpu).iter().for_each(|cpu| {
                    free.remove(cpu);
                })
            } else {
                {
                    free.remove(cpu);
                }
            }
        }
        let running = (!here.is_empty()).then(|| Running {
            placement: Placement::Exclusive {
                cpus: here.clone(),
                whole_core,
            },
            purpose: if whole_core {
                Purpose::MeasureAlone
            } else {
                Purpose::Run
            },
            since: now - Nanos::from_ms(100),
            lease_end: None,
        });
        let waits = running.is_none();
        let asleep = job.doing == Doing::Sleeps || (job.doing == Doing::RunsAsleep && !waits);
        let overdue = waits && job.doing == Doing::Overdue;
        let waited = Nanos::from_ms(job.waited_ms + if overdue { 30_000 } else { 0 });
        tasks.push(TaskView {
            id: TaskId(ix as u32),
            name: format!("t{ix}").into(),
            cpus,
            allowed,
            weight: job.weight,
            origin: Origin::Spawned,
            control: job.control,
            arrived: Nanos::ZERO,
            bus_use_milli: None,
            solo_reads: None,
            memory: None,
            turn: 0,
            expected: job
                .expected_s
                .map(|s| Expected::of(Nanos::from_ms(1_000 * s), ExpectedFrom::Same)),
            home_cpu: None,
            last_cpus: if waits {
                [all[job.last as usize % all.len()]].into_iter().collect()
            } else {
                here
            },
            waiting_since: if waits { now - waited } else { now },
            running,
            asleep,
            overdue,
            estimates: job.estimates.clone(),
        });
    }
    Snapshot {
        machine: machine.clone(),
        now,
        triggers: triggers.to_vec(),
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: tasks.into_iter().map(Box::new).collect(),
    }
}

/// Random moments.
pub fn moment() -> impl Strategy<Value = Snapshot> {
    (machine(), jobs(0..30, false), triggers()).prop_map(|(machine, jobs, triggers)| {
        snapshot(
            &Arc::new(machine),
            &jobs,
            &triggers,
            Nanos::from_ms(100_000),
        )
    })
}

/// Random moments at most a quantum apart, on one machine, with the same number of tasks.
pub fn moments() -> impl Strategy<Value = Vec<Snapshot>> {
    moments_on(machine().prop_map(Arc::new))
}

/// The same on these machines.
pub fn moments_on(
    machines: impl Strategy<Value = Arc<Machine>>,
) -> impl Strategy<Value = Vec<Snapshot>> {
    let moment = (jobs(0..16, false), triggers(), 1u64..300);
    (machines, proptest::collection::vec(moment, 2..8)).prop_map(|(machine, moments)| {
        let mut now = Nanos::from_ms(100_000);
        let at = |(jobs, triggers, ms): (Vec<Job>, Vec<Trigger>, u64)| {
            now += Nanos::from_ms(ms);
            snapshot(&machine, &jobs, &triggers, now)
        };
        moments.into_iter().map(at).collect()
    })
}

/// A policy with parameters as on the command line.
pub fn policy(entry: &PolicyEntry, settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let entry = find_policy(entry.name).unwrap();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    (entry.build)(&Params::resolve(entry.name, entry.params, &settings).unwrap())
}

/// Policies that take CPUs from one task to give them to another.
pub fn sharing() -> impl Iterator<Item = &'static PolicyEntry> {
    POLICIES
        .iter()
        .filter(|entry| entry.time_shares && !entry.kernel_shares)
}

/// Each task's placement after the decision.
pub fn after(snap: &Snapshot, decision: &Decision) -> Vec<Option<Placement>> {
    let mut after: Vec<Option<Placement>> = snap
        .tasks
        .iter()
        .map(|task| {
            task.running
                .as_ref()
                .map(|running| running.placement.clone())
        })
        .collect();
    for change in &decision.changes {
        let ix = snap
            .tasks
            .iter()
            .position(|task| task.id == change.task())
            .unwrap();
        after[ix] = match change {
            Change::Place { placement, .. } => Some(placement.clone()),
            Change::Stop { .. } => None,
        };
    }
    after
}

/// Whether all CPUs are reallocated.
pub fn is_full(snap: &Snapshot) -> bool {
    snap.is_quantum_end() || snap.tasks.iter().all(|task| task.running.is_none())
}
