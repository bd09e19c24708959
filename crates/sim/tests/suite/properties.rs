//! Random runs in the simulated world under every policy of the table: where each decision leads, how long tasks wait,
//! and that the same seed gives the same run. Nothing here uses the loop's own check of decisions.

use crate::support::*;
use cosched_core::*;
use cosched_sim::program::{ProgramPhase, ProgramSpec};
use cosched_sim::*;
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use proptest::test_runner::RngSeed;

const QUANTUM: Nanos = Nanos::from_ms(200);

/// A job: its program, its work in ms, its CPUs, a mask as the bits of a number, its arrival, and its weight.
type Job = (u8, u64, u32, Option<u32>, u64, f64);

fn any_job() -> impl Strategy<Value = Job> {
    let cpus = prop_oneof![3 => Just(1u32), 2 => 2u32..=3];
    let mask = prop_oneof![Just(None), any::<u32>().prop_map(Some)];
    let weight = prop_oneof![4 => Just(1.0), 1 => 0.001..1_000.0];
    (0u8..5, 200u64..2_000, cpus, mask, 0u64..1_500, weight)
}

fn program_of(number: u8) -> ProgramSpec {
    match number {
        0 => compute(),
        1 => stream(),
        2 => chase(5.0),
        3 => chase(2.0),
        _ => {
            let phase = |cpi: f64, memory: f64| ProgramPhase {
                instructions: 3e8,
                cpi,
                memory,
                then_sleep_ms: 0.0,
                then_mb: Default::default(),
            };
            ProgramSpec {
                phases: vec![phase(1.0, 0.2), phase(2.0, 1.8)],
                ..stream()
            }
        }
    }
}

/// Checks every decision.
#[derive(Default)]
struct Watch {
    started: Vec<TaskId>,
    longest: Nanos,
    log: Vec<(Nanos, Vec<Change>, Vec<Wait>)>,
    wrong: Vec<String>,
}

impl Watch {
    fn expect(&mut self, right: bool, what: impl FnOnce() -> String) {
        if !right {
            self.wrong.push(what());
        }
    }
}

impl Recorder for Watch {
    fn emit(&mut self, _at: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Decided(record) => {
                let (snap, decision) = (record.snapshot, record.decision);
                self.expect(!record.stood_in, || "round-robin stood in".to_owned());
                self.log
                    .push((snap.now, decision.changes.clone(), decision.waits.clone()));
                let online = snap.machine.all_cpus();
                let mut taken = CpuSet::new();
                for task in &snap.tasks {
                    if task.running.is_none() && self.started.contains(&task.id) {
                        self.longest = self.longest.max(snap.now - task.waiting_since);
                    }
                    let changes: Vec<&Change> = decision
                        .changes
                        .iter()
                        .filter(|change| change.task() == task.id)
                        .collect();
                    self.expect(changes.len() <= 1, || format!("{} is named twice", task.id));
                    let place = match changes.first() {
                        Some(Change::Place { placement, .. }) => Some(placement),
                        Some(Change::Stop { .. }) => None,
                        None => task.running.as_ref().map(|running| &running.placement),
                    };
                    let reasons = decision
                        .waits
                        .iter()
                        .filter(|wait| wait.task == task.id)
                        .count();
                    let Some(place) = place else {
                        let ready = !task.asleep || task.running.is_some();
                        self.expect(reasons == usize::from(ready), || {
                            format!("{} waits for {reasons} reasons", task.id)
                        });
                        continue;
                    };
                    self.expect(reasons == 0, || {
                        format!("{} runs and has a reason to wait", task.id)
                    });
                    let cpus = place.cpus();
                    self.expect(cpus.is_subset(&online), || {
                        format!("{} on {cpus}, of {online}", task.id)
                    });
                    let allowed = task
                        .allowed
                        .as_ref()
                        .is_none_or(|mask| cpus.is_subset(mask));
                    self.expect(allowed, || {
                        format!("{} on {cpus}, and may use {:?}", task.id, task.allowed)
                    });
                    if let Placement::Exclusive { cpus, .. } = place {
                        self.expect(cpus.len() == task.cpus as usize, || {
                            format!("{} of {} CPUs on {cpus}", task.id, task.cpus)
                        });
                        for cpu in cpus.iter() {
                            self.expect(taken.insert(cpu), || format!("two on CPU {}", cpu.0));
                        }
                    } else {
                        self.expect(cpus.len() >= task.cpus as usize, || {
                            format!("{} on {cpus}", task.id)
                        });
                    }
                }
            }
            Fact::Started {
                task, again: false, ..
            } => {
                self.started.push(task.id);
            }
            _ => {}
        }
    }
}

/// A machine; its cores are of two types for the policies that need two.
fn machine_for(entry: &PolicyEntry, cores: u32, threads: u32) -> MachineSpec {
    let mut spec = machine(cores, threads);
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let mut needs = (entry.needs)(&params).into_iter();
    if needs.any(|need| need.capability == Capability::CoreTypes) {
        let mut small = spec.core_types[0].clone();
        small.name = "small".to_owned();
        small.ghz = 0.5;
        spec.core_types.push(small);
    }
    spec
}

/// Runs these jobs with faults; returns what was seen.
fn watched(
    entry: &'static PolicyEntry,
    (cores, threads): (u32, u32),
    jobs: &[Job],
    faults: Vec<Fault>,
    max_pause: Nanos,
    seed: u64,
) -> (Watch, RunResult, u32) {
    let spec = machine_for(entry, cores, threads);
    let all: Vec<CpuId> = spec.machine().cpus.iter().map(|cpu| cpu.id).collect();
    let cpus = |job: &Job| job.2.min(all.len() as u32);
    let sim_jobs = jobs
        .iter()
        .map(|of| SimJob {
            cpus: cpus(of),
            ..job(&program_of(of.0), of.1)
        })
        .collect();
    let config = SimConfig {
        faults,
        seed,
        ..config(&spec, sim_jobs)
    };
    let mut sim = Sim::new(config.clone()).unwrap();
    let mut tasks = specs(&config);
    let known = sim
        .solo_runs()
        .to_vec()
        .into_iter()
        .zip(sim.solo_traces(QUANTUM, &mut |_| false).unwrap());
    for ((task, of), (solo, trace)) in tasks.iter_mut().zip(jobs).zip(known) {
        task.arrives = Nanos::from_ms(of.4);
        task.weight = of.5;
        task.solo = SoloProfile {
            time: Some(solo.time),
            mm_reads: Some(solo.mm_reads),
            trace: trace.map(Into::into),
        };
        task.allowed = of.3.map(|bits| {
            let some = all
                .iter()
                .enumerate()
                .filter(|(n, _)| bits >> n & 1 != 0)
                .map(|(_, &cpu)| cpu);
            // CPU 0 never goes offline, and a mask has room for its gang.
            some.chain(all.iter().copied().take(task.cpus as usize))
                .collect()
        });
    }
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let mut watch = Watch::default();
    let settings = RunConfig {
        max_pause,
        seed,
        traffic: true,
        ..RunConfig::default()
    };
    let result = run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut watch,
        tasks,
        &settings,
    )
    .unwrap();
    (watch, result, all.len() as u32)
}

fn config_with(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config_with(24))]

    #[test]
    fn every_decision_of_every_policy_can_be_carried_out_and_is_the_same_again(
        cores in 1u32..=4,
        threads in 1u32..=2,
        jobs in proptest::collection::vec(any_job(), 1..12),
        gone in (1u32..8, 100u64..2_000, 100u64..1_000),
        seed in any::<u64>(),
    ) {
        // A CPU goes offline and comes back, unless a gang or a mask might need all of a small machine.
        let fits = jobs.iter().all(|job| job.2 == 1 && job.3.is_none());
        let cpu = CpuId(gone.0);
        let at = |ms: u64, what: FaultKind| Fault { at: Nanos::from_ms(ms), what };
        let faults = if fits || cores * threads > 4 {
            vec![at(gone.1, FaultKind::CpuOffline(cpu)), at(gone.1 + gone.2, FaultKind::CpuOnline(cpu))]
        } else {
            Vec::new()
        };
        for entry in POLICIES {
            let once = || watched(entry, (cores, threads), &jobs, faults.clone(), RunConfig::default().max_pause, seed);
            let (watch, result, _) = once();
            prop_assert!(watch.wrong.is_empty(), "{}: {:?}", entry.name, watch.wrong);
            prop_assert_eq!(result.policy_faults, 0);
            prop_assert!(result.tasks.iter().all(|task| task.exit == Some(Exit::Code(0))), "{}", entry.name);
            let (again, second, _) = once();
            prop_assert_eq!(&again.log, &watch.log, "{}", entry.name);
            prop_assert_eq!(&second.tasks, &result.tasks, "{}", entry.name);
        }
    }
}

proptest! {
    #![proptest_config(config_with(32))]

    /// The bounds that the table of policies states: for single tasks, for gangs, and for masks.
    #[test]
    fn nobody_who_has_begun_waits_longer_than_the_stated_bound(
        cores in 1u32..=3,
        threads in 1u32..=2,
        kind in 0u8..3,
        jobs in proptest::collection::vec(any_job(), 2..14),
        max_pause in prop_oneof![Just(0u64), 200u64..3_000],
        seed in any::<u64>(),
    ) {
        let jobs: Vec<Job> = jobs
            .into_iter()
            .map(|(program, ms, cpus, mask, arrives, weight)| match kind {
                0 => (program, ms, 1, None, arrives, weight),
                1 => (program, ms, cpus, None, arrives, weight),
                _ => (program, ms, 1, mask, arrives, weight),
            })
            .collect();
        let max_pause = Nanos::from_ms(max_pause);
        for entry in POLICIES {
            let (watch, _, cpus) = watched(entry, (cores, threads), &jobs, Vec::new(), max_pause, seed);
            prop_assert!(watch.wrong.is_empty(), "{}: {:?}", entry.name, watch.wrong);
            let wanted: u32 = jobs.iter().map(|job| job.2.min(cpus)).sum();
            let rounds = match kind {
                _ if entry.kernel_shares || !entry.time_shares => {
                    prop_assert_eq!(watch.longest, Nanos::ZERO, "{} stops nobody", entry.name);
                    continue;
                }
                0 => jobs.len().div_ceil(cpus as usize),
                1 => 2 * wanted.div_ceil(cpus) as usize,
                _ => jobs.len(),
            };
            let bound = max_pause + Nanos(QUANTUM.0 * rounds as u64);
            prop_assert!(watch.longest <= bound, "{}: {:?}, bound {:?}", entry.name, watch.longest, bound);
        }
    }
}

/// Decisions in words, reduced to a number (FNV-1a): it is the same on every machine and with every compiler.
fn digest(watch: &Watch) -> u64 {
    let mut digest = 0xcbf2_9ce4_8422_2325u64;
    for decision in &watch.log {
        for byte in format!("{decision:?}").bytes() {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    digest
}

/// What each policy decides, when, and why others wait. A change of a policy changes its line; no other change may.
#[test]
fn decisions_stay_the_same() {
    let mut table = String::new();
    for entry in POLICIES {
        for (machine, count) in [((2, 1), 6), ((4, 2), 14)] {
            let mut lots = Rng::new(3);
            let jobs: Vec<Job> = (0..count)
                .map(|_| {
                    let work_ms = 300 + lots.below(1_500);
                    let cpus = 1 + u32::from(lots.below(5) == 0);
                    (
                        lots.below(5) as u8,
                        work_ms,
                        cpus,
                        None,
                        lots.below(900),
                        1.0,
                    )
                })
                .collect();
            let max_pause = RunConfig::default().max_pause;
            let (watch, _, cpus) = watched(entry, machine, &jobs, Vec::new(), max_pause, 5);
            let decisions = watch.log.len();
            let digest = digest(&watch);
            table += &format!("{} on {cpus}: {decisions} {digest:016x}\n", entry.name);
        }
    }
    insta::assert_snapshot!(table);
}
