//! Faults in the simulated world must not end the loop.

use crate::support::*;
use cosched_core::*;
use cosched_sim::*;

fn with(faults: &[(u64, FaultKind)], policy: &str) -> (RunResult, Sim, SimConfig) {
    let jobs = vec![
        job(&compute(), 1_500),
        job(&stream(), 1_500),
        job(&chase(4.0), 1_500),
        job(&stream(), 1_500),
        job(&compute(), 1_500),
        SimJob {
            cpus: 2,
            ..job(&compute(), 1_000)
        },
    ];
    let faults = faults
        .iter()
        .map(|(ms, what)| Fault {
            at: Nanos::from_ms(*ms),
            what: what.clone(),
        })
        .collect();
    let config = SimConfig {
        faults,
        ..config(&machine(2, 2), jobs)
    };
    let (result, sim) = run_on(&config, policy);
    (result, sim, config)
}

fn all_done(result: &RunResult, policy: &str) {
    for task in &result.tasks {
        assert_eq!(
            task.exit,
            Some(Exit::Code(0)),
            "{policy}: {}",
            task.spec.name
        );
    }
}

#[test]
fn every_policy_survives_counters_that_vanish_wrap_or_lie() {
    for entry in POLICIES.iter().filter(|entry| suits(entry)) {
        for fault in [
            FaultKind::CountersVanish,
            FaultKind::CountersWrap,
            FaultKind::CountersLie { factor: 1_000.0 },
            FaultKind::CountersLie { factor: 0.0 },
        ] {
            let (result, ..) = with(&[(900, fault.clone())], entry.name);
            all_done(&result, entry.name);
            assert_eq!(result.policy_faults, 0, "{} {fault:?}", entry.name);
            if fault == FaultKind::CountersVanish {
                let counts = result
                    .tasks
                    .iter()
                    .map(|task| task.counts[Counter::Instructions]);
                assert!(
                    counts
                        .into_iter()
                        .any(|count| count == Reading::Absent(Absence::CountersLost))
                );
            }
        }
    }
}

#[test]
fn every_policy_survives_cpus_that_go_and_come_back() {
    for entry in POLICIES.iter().filter(|entry| suits(entry)) {
        let faults = [
            (500, FaultKind::CpuOffline(CpuId(1))),
            (700, FaultKind::CpuOffline(CpuId(3))),
            (1_450, FaultKind::CpuOnline(CpuId(1))),
        ];
        let (result, mut sim, _) = with(&faults, entry.name);
        all_done(&result, entry.name);
        assert_eq!(result.policy_faults, 0, "{}", entry.name);
        for task in &result.tasks {
            let wanted = sim.solo_runs()[task.spec.id.0 as usize].instructions as f64;
            assert!((sim.executed(task.spec.id) - wanted).abs() <= 1e-9 * wanted);
        }
        // The last of all CPUs stays online.
        let all = [0, 1, 2, 3].map(|cpu| (600, FaultKind::CpuOffline(CpuId(cpu))));
        let config = SimConfig {
            faults: all
                .iter()
                .map(|(ms, what)| Fault {
                    at: Nanos::from_ms(*ms),
                    what: what.clone(),
                })
                .collect(),
            ..config(&machine(2, 2), vec![job(&compute(), 800); 5])
        };
        all_done(&run_on(&config, entry.name).0, entry.name);
    }
}

#[test]
fn a_job_that_dies_takes_nobody_with_it() {
    for entry in POLICIES.iter().filter(|entry| suits(entry)) {
        let exit = Exit::Signal {
            signal: 11,
            oom: false,
        };
        let (result, mut sim, _) = with(
            &[(
                600,
                FaultKind::JobDies {
                    task: TaskId(1),
                    exit: exit.clone(),
                },
            )],
            entry.name,
        );
        for task in &result.tasks {
            let expected = if task.spec.id == TaskId(1) {
                exit.clone()
            } else {
                Exit::Code(0)
            };
            assert_eq!(
                task.exit,
                Some(expected),
                "{}: {}",
                entry.name,
                task.spec.name
            );
        }
        assert!(sim.executed(TaskId(1)) < sim.solo_runs()[1].instructions as f64);
    }
}

#[test]
fn a_policy_that_asks_for_nonsense_is_stood_in_for() {
    struct Nonsense(u32);
    impl Policy for Nonsense {
        fn decide(&mut self, snapshot: &Snapshot, rng: &mut Rng) -> Decision {
            self.0 += 1;
            let at = Some(snapshot.now + Nanos::from_ms(rng.below(50) + 1));
            let cpu: CpuSet = [CpuId(rng.below(9) as u32)].into_iter().collect();
            let placement = Placement::Exclusive {
                cpus: cpu,
                whole_core: rng.below(2) == 0,
            };
            let place = |task| Change::Place {
                task,
                placement: placement.clone(),
                lease_end: None,
                purpose: Purpose::Run,
            };
            let changes = snapshot
                .tasks
                .iter()
                .map(|task| task.id)
                .chain([TaskId(99)])
                .map(place)
                .collect();
            Decision {
                changes,
                next_wake: at,
                ..Decision::default()
            }
        }
        fn save(&self) -> serde_json::Value {
            serde_json::Value::Null
        }
        fn load(&mut self, _: &serde_json::Value) -> Result<(), serde_json::Error> {
            Ok(())
        }
    }
    let config = config(&machine(2, 2), vec![job(&compute(), 400); 7]);
    let mut sim = Sim::new(config.clone()).unwrap();
    let mut policy = Nonsense(0);
    let result = run(
        &mut sim,
        &mut policy,
        &mut NullRecorder,
        specs(&config),
        &RunConfig::default(),
    )
    .unwrap();
    assert!(result.policy_faults > 0 && policy.0 > 0);
    all_done(&result, "nonsense");
}

/// Keeps the greatest traffic of a domain that any sample shows, by task.
#[derive(Default)]
struct MostTraffic(Vec<(TaskId, Rate)>);

impl Recorder for MostTraffic {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        if let Fact::Decided(record) = fact {
            let lines =
                |sample: &Sample| Some((sample.task, sample.traffic.lines_of_each().value()?));
            self.0.extend(record.samples.iter().filter_map(lines));
        }
    }
}

#[test]
fn a_socket_that_goes_offline_lends_its_traffic_to_no_other() {
    // One stream on each of two sockets; on the second one also a loop, which reads nothing.
    let spec = MachineSpec {
        sockets: 2,
        ..machine(1, 2)
    };
    let mut jobs = vec![job(&compute(), 1_500), job(&stream(), 1_500)];
    jobs.swap(0, 1);
    let faults = vec![Fault {
        at: Nanos::from_ms(310),
        what: FaultKind::CpuOffline(CpuId(0)),
    }];
    let config = SimConfig {
        faults,
        ..config(&spec, jobs)
    };
    let mut sim = Sim::new(config.clone()).unwrap();
    assert_eq!(sim.machine().memory_domains.len(), 2);
    let entry = find_policy("round-robin").unwrap();
    let mut policy = (entry.build)(&Params::resolve("round-robin", entry.params, &[]).unwrap());
    let settings = RunConfig {
        traffic: true,
        ..RunConfig::default()
    };
    let mut seen = MostTraffic::default();
    let result = run(&mut sim, &mut *policy, &mut seen, specs(&config), &settings).unwrap();
    all_done(&result, "round-robin");
    // Once both share a socket they see the same traffic, and that is never more than one stream's.
    let alone = seen.0.iter().find(|(task, _)| task.0 == 0).unwrap().1;
    assert!(seen.0.len() > 4 && alone.0 > 0);
    assert!(
        seen.0
            .iter()
            .all(|(_, lines)| lines.0 <= alone.0 + alone.0 / 10),
        "{alone:?} {:?}",
        seen.0
    );
}
