//! The simulated world by itself: what it must conserve, and what it must never do.

use crate::support::*;
use cosched_core::*;
use cosched_sim::*;
use std::sync::Arc;

const POLICIES_HERE: [&str; 4] = ["linux", "fifo", "round-robin", "perf-fair"];

#[test]
fn alone_the_rates_are_those_of_the_equations() {
    let machine = machine(2, 1);
    let sim = Sim::new(config(
        &machine,
        vec![job(&compute(), 1_000), job(&chase(4.0), 1_000)],
    ))
    .unwrap();
    let solo = sim.solo_runs();
    assert!((solo[0].ipc - 2.0).abs() < 1e-3, "{:?}", solo[0]);
    // The chase soon holds all it needs of a cache of 8 MB, and then always hits: 1 cycle and a tenth of 15 ns at 2 GHz.
    assert!((solo[1].ipc - 0.25).abs() < 0.01, "{:?}", solo[1]);
    assert_eq!(solo[0].time, Nanos::from_ms(1_000));
}

#[test]
fn no_instruction_is_lost_or_made() {
    let machine = machine(2, 2);
    let jobs = vec![
        job(&compute(), 700),
        job(&stream(), 900),
        job(&chase(6.0), 800),
        SimJob {
            cpus: 2,
            ..job(&chase(2.0), 500)
        },
        job(&stream(), 300),
        job(&compute(), 1_100),
    ];
    let config = config(&machine, jobs);
    for policy in POLICIES_HERE {
        let (result, mut sim) = run_on(&config, policy);
        for task in &result.tasks {
            assert_eq!(task.exit, Some(Exit::Code(0)), "{policy}");
            let wanted = sim.solo_runs()[task.spec.id.0 as usize].instructions as f64;
            let executed = sim.executed(task.spec.id);
            assert!(
                (executed - wanted).abs() <= 1e-9 * wanted,
                "{policy}: {executed} {wanted}"
            );
            // No task is faster than alone, except by the rounding of the solo run.
            let solo = sim.solo_runs()[task.spec.id.0 as usize].time;
            let took = task.turnaround().unwrap();
            assert!(
                took.0 as f64 >= 0.999 * solo.0 as f64,
                "{policy}: {took:?} {solo:?}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_another() {
    let machine = machine(2, 2);
    let jobs: Vec<SimJob> = (0..6)
        .map(|n| {
            if n % 2 == 0 {
                job(&stream(), 400)
            } else {
                job(&chase(3.0), 500)
            }
        })
        .collect();
    for policy in POLICIES_HERE {
        let with = |seed| {
            let config = SimConfig {
                seed,
                variation: 0.02,
                ..config(&machine, jobs.clone())
            };
            let (result, _) = run_on(&config, policy);
            format!("{:?}", result.tasks)
        };
        assert_eq!(with(1), with(1), "{policy}");
        assert_ne!(with(1), with(2), "{policy}");
    }
}

#[test]
fn energy_is_the_sum_of_its_parts_and_of_what_was_done() {
    let machine = machine(4, 1);
    let jobs = vec![
        job(&compute(), 500),
        job(&stream(), 1_500),
        job(&chase(6.0), 800),
    ];
    let config = config(&machine, jobs);
    let (result, mut sim) = run_on(&config, "fifo");
    let total = result.energy_j.value().unwrap();
    let parts = sim.energy_parts();
    assert!((parts.iter().map(|part| part.1).sum::<f64>() - total).abs() < 1e-9 * total);
    let seconds = result.turnaround.as_s();
    let instructions: f64 = (0..3).map(|id| sim.executed(TaskId(id))).sum();
    let ran: f64 = result
        .tasks
        .iter()
        .map(|task| task.turnaround().unwrap().as_s())
        .sum();
    let lines: f64 = result
        .tasks
        .iter()
        .map(|task| task.counts[Counter::MmReads].value().unwrap() as f64)
        .sum();
    let expected = [
        (20.0 + 4.0) * seconds,
        8.0 * seconds,
        5.0 * ran,
        instructions / 1e9,
        lines * 20.0 / 1e9,
    ];
    for ((name, part), expected) in parts.iter().zip(expected) {
        assert!(
            (part - expected).abs() <= 1e-6 * expected + 1e-6,
            "{name}: {part} {expected}"
        );
    }
}

#[test]
fn more_bandwidth_never_slows_a_mix() {
    let mut last = f64::INFINITY;
    for channels in 1..=4 {
        let mut machine = machine(4, 2);
        machine.memory.channels = channels;
        // The work is the same on all: a number of instructions.
        let work = |program: &ProgramSpec, millions: u64| SimJob {
            work: JobWork::Instructions(millions * 1_000_000),
            ..job(program, 1)
        };
        let jobs: Vec<SimJob> = (0..12)
            .map(|n| {
                if n % 3 == 0 {
                    work(&compute(), 4_000)
                } else {
                    work(&stream(), 1_500)
                }
            })
            .collect();
        let config = config(&machine, jobs);
        let took = ["linux", "fifo"].map(|policy| run_on(&config, policy).0.turnaround.as_s());
        let total = took[0] + took[1];
        assert!(
            total <= last * 1.005,
            "{channels} channels: {total} s after {last} s"
        );
        last = total;
    }
}

#[test]
fn siblings_share_a_core_and_streams_share_memory() {
    let slowdown = |machine: &MachineSpec, program: &ProgramSpec, copies: usize| {
        let config = config(machine, vec![job(program, 1_000); copies]);
        run_on(&config, "fifo").0.turnaround.as_s()
    };
    // Two threads of a core do more than one, and less than two cores.
    let smt = slowdown(&machine(1, 2), &compute(), 2);
    assert!(smt > 1.2 && smt < 1.9, "{smt}");
    assert!(slowdown(&machine(2, 1), &compute(), 2) < 1.001);
    // Four streams together ask for more than one channel has.
    let streams = slowdown(&machine(4, 1), &stream(), 4);
    assert!(streams > 1.5 && streams < 4.0, "{streams}");
}

#[test]
fn a_stream_empties_the_private_caches_below_an_inclusive_one() {
    // It hits its second level, and hardly ever the last one.
    let mut at_home = program("at-home", 0.5, 0.0, 0.0, 2.0);
    at_home.cache.l1_misses_per_ki = 60.0;
    let slowdown = |inclusive: bool| {
        let mut machine = machine(2, 1);
        machine.llc.inclusive = inclusive;
        let machine = Arc::new(machine);
        let [from, until] = [50, 150].map(Nanos::from_ms);
        let speed =
            |programs: &[Arc<ProgramSpec>]| speeds_beside(&machine, programs, from, until)[0];
        let own = Arc::new(at_home.clone());
        speed(std::slice::from_ref(&own)) / speed(&[own.clone(), Arc::new(stream())])
    };
    let (apart, inclusive) = (slowdown(false), slowdown(true));
    // A few of its accesses go to memory in any case.
    assert!(apart < 1.09, "{apart}");
    assert!(
        (1.05..1.3).contains(&(inclusive / apart)),
        "{inclusive} {apart}"
    );
}

#[test]
fn turbo_speeds_up_few_cores_and_costs_power() {
    let run = |jobs: usize, turbo: Vec<(u32, f64)>| {
        let mut machine = machine(2, 1);
        machine.core_types[0].turbo = turbo;
        let work = JobWork::Instructions(2_000_000_000);
        let jobs = vec![
            SimJob {
                work,
                ..job(&compute(), 1)
            };
            jobs
        ];
        let (result, _) = run_on(&config(&machine, jobs), "fifo");
        (result.turnaround.as_s(), result.energy_j.value().unwrap())
    };
    let turbo = vec![(1, 3.0)];
    let (nominal_s, nominal_j) = run(1, Vec::new());
    let (one_s, one_j) = run(1, turbo.clone());
    assert!(
        (nominal_s / one_s - 1.5).abs() < 0.01,
        "{nominal_s} {one_s}"
    );
    // 20 W of the machine, 8 W of the socket and 1 W of each core for the time; 5 W of the core, and its instructions.
    let expected = one_s * (20.0 + 8.0 + 2.0 + 5.0 * 3.375) + 2.0 * 2.25;
    assert!((one_j / expected - 1.0).abs() < 0.01, "{one_j} {expected}");
    assert!(
        (nominal_j / (nominal_s * 35.0 + 2.0) - 1.0).abs() < 0.01,
        "{nominal_j}"
    );
    let (two_s, _) = run(2, turbo);
    assert!((two_s / nominal_s - 1.0).abs() < 0.01, "{two_s}");
}

#[test]
fn short_slices_cost_a_cache_hungry_task_its_cache() {
    // Two walkers of 5 MB on one CPU with a cache of 8 MB: each finds what the other has left of its lines.
    let mut machine = machine(1, 1);
    let jobs = vec![job(&chase(7.0), 2_000); 2];
    let quanta = run_on(&config(&machine, jobs.clone()), "round-robin")
        .0
        .turnaround
        .as_s();
    let slices = run_on(&config(&machine, jobs.clone()), "linux")
        .0
        .turnaround
        .as_s();
    assert!(slices > 1.15 * quanta && quanta > 4.0, "{slices} {quanta}");
    // With room for both they lose nothing.
    machine.llc.mb = 64.0;
    let roomy = run_on(&config(&machine, jobs), "linux").0.turnaround.as_s();
    assert!(roomy < 1.05 * quanta, "{roomy} {quanta}");
}

#[test]
fn phases_change_what_a_program_does_and_sleep_gives_the_cpu_away() {
    let mut program = compute();
    let phase = |instructions, then_sleep_ms| program::ProgramPhase {
        instructions,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms,
        then_mb: Default::default(),
    };
    program.phases = vec![phase(4e7, 10.0)];
    let machine = machine(1, 1);
    // 10 ms of work, 10 ms of sleep, and again: while one sleeps, the other works.
    let one = run_on(&config(&machine, vec![job(&program, 1_000)]), "linux").0;
    assert!((one.tasks[0].cpu_time.value().unwrap().as_s() - 0.5).abs() < 0.02);
    let two = run_on(&config(&machine, vec![job(&program, 1_000); 2]), "linux").0;
    assert!(two.turnaround.as_s() < 1.5, "{}", two.turnaround.as_s());
}

#[test]
fn nice_is_a_share_of_the_cpu() {
    let machine = machine(1, 1);
    let jobs = vec![
        SimJob {
            nice: 5,
            ..job(&compute(), 1_000)
        },
        job(&compute(), 1_000),
    ];
    let (result, _) = run_on(&config(&machine, jobs), "linux");
    // The weights are 335 and 1,024: when the second ends, the first has done a third.
    let second = result.tasks[1].turnaround().unwrap().as_s();
    assert!((second - (1.0 + 335.0 / 1_024.0)).abs() < 0.03, "{second}");
}

#[test]
fn two_sockets_have_two_memories() {
    let mut machine = machine(2, 1);
    machine.sockets = 2;
    let config = config(&machine, vec![job(&stream(), 1_000); 2]);
    let (result, _) = run_on(&config, "linux");
    assert!(
        result.turnaround.as_s() < 1.01,
        "{}",
        result.turnaround.as_s()
    );
}

#[test]
fn nodes_are_machines_of_their_own() {
    let one = machine(2, 1);
    let four = MachineSpec {
        nodes: 4,
        ..one.clone()
    };
    let seen = four.machine();
    seen.validate().unwrap();
    let nodes: Vec<String> = seen
        .nodes
        .iter()
        .map(|node| node.cpus.to_string())
        .collect();
    assert_eq!(nodes, ["0-1", "2-3", "4-5", "6-7"]);
    let (alone, mut one) = run_on(&config(&one, vec![job(&stream(), 1_000)]), "place");
    let (result, mut four) = run_on(&config(&four, vec![job(&stream(), 1_000); 4]), "place");
    assert_eq!(
        (result.policy_faults, result.turnaround),
        (0, alone.turnaround)
    );
    let joules = |sim: &mut Sim| sim.energy_j().value().unwrap();
    let (one, four) = (joules(&mut one), joules(&mut four));
    assert!((four / one - 4.0).abs() < 0.001, "{four} {one}");
}

#[test]
fn smaller_steps_change_little() {
    let machine = machine(2, 2);
    let jobs: Vec<SimJob> = [
        chase(6.0),
        stream(),
        chase(3.0),
        compute(),
        chase(7.0),
        stream(),
    ]
    .iter()
    .cycle()
    .take(8)
    .map(|program| job(program, 1_500))
    .collect();
    // Without perf-fair: a small difference may change its choices and so the whole run.
    for policy in ["linux", "fifo", "round-robin"] {
        let with = |step| {
            let (result, _) = run_on(
                &SimConfig {
                    step,
                    ..config(&machine, jobs.clone())
                },
                policy,
            );
            result
                .tasks
                .iter()
                .map(|task| task.turnaround().unwrap().as_s())
                .collect::<Vec<f64>>()
        };
        for (coarse, fine) in with(DEFAULT_STEP).iter().zip(with(DEFAULT_STEP / 20.0)) {
            assert!(
                (coarse - fine).abs() < 0.02 * fine,
                "{policy}: {coarse} {fine}"
            );
        }
    }
}

#[test]
fn nothing_that_could_run_is_an_error_and_not_an_endless_run() {
    // A policy that never places a task: the loop's stand-in does, so the world goes on.
    struct Lazy;
    impl Policy for Lazy {
        fn decide(&mut self, _: &Snapshot, _: &mut Rng) -> Decision {
            Decision::default()
        }
        fn save(&self) -> serde_json::Value {
            serde_json::Value::Null
        }
        fn load(&mut self, _: &serde_json::Value) -> Result<(), serde_json::Error> {
            Ok(())
        }
    }
    let config = config(&machine(2, 1), vec![job(&compute(), 300); 3]);
    let mut sim = Sim::new(config.clone()).unwrap();
    let result = run(
        &mut sim,
        &mut Lazy,
        &mut NullRecorder,
        specs(&config),
        &RunConfig::default(),
    )
    .unwrap();
    assert!(result.policy_faults > 0);
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
    // No task was placed and no event is due: the simulation says that it is stuck.
    let mut sim = Sim::new(config).unwrap();
    assert!(matches!(
        sim.wait(None, &mut Vec::new()),
        Err(SimError::Stuck(_))
    ));
}

#[test]
fn a_job_may_come_days_later() {
    let config = config(&machine(2, 1), vec![job(&compute(), 300); 2]);
    let mut tasks = specs(&config);
    tasks[1].arrives = Nanos::from_ms(3 * 86_400_000);
    let mut sim = Sim::new(config).unwrap();
    let entry = find_policy("round-robin").unwrap();
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let settings = RunConfig::default();
    let result = run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut NullRecorder,
        tasks,
        &settings,
    )
    .unwrap();
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
}

/// Runs a job on two CPUs, of which the second goes offline after 100 ms.
fn without_the_second_cpu(
    job: SimJob,
    allowed: Option<CpuSet>,
) -> Result<RunResult, RunError<SimError>> {
    let config = config(&machine(2, 1), vec![job]);
    let faults = vec![Fault {
        at: Nanos::from_ms(100),
        what: FaultKind::CpuOffline(CpuId(1)),
    }];
    let mut tasks = specs(&config);
    tasks[0].allowed = allowed;
    let mut sim = Sim::new(SimConfig { faults, ..config }).unwrap();
    let entry = find_policy("round-robin").unwrap();
    let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    run(
        &mut sim,
        &mut *(entry.build)(&params),
        &mut NullRecorder,
        tasks,
        &RunConfig::default(),
    )
}

#[test]
fn what_can_never_run_ends_the_simulation() {
    let outcome = without_the_second_cpu(job(&compute(), 300), Some(CpuId(1).into()));
    let error = outcome.map(|result| result.turnaround);
    assert!(
        matches!(error, Err(RunError::Backend(SimError::Stuck(_)))),
        "{error:?}"
    );
}

#[test]
fn a_job_whose_cpus_become_fewer_goes_on_with_those_that_are_left() {
    let gang = SimJob {
        cpus: 2,
        ..job(&compute(), 300)
    };
    let result = without_the_second_cpu(gang, None).unwrap();
    // Each of its two threads has 200 ms to go when one CPU is left.
    assert!(
        result.turnaround.as_s() > 0.49 && result.turnaround.as_s() < 0.52,
        "{:?}",
        result.turnaround
    );
}

#[test]
fn slices_shorter_than_a_switch_do_not_stop_the_world() {
    let mut machine = machine(1, 1);
    (
        machine.kernel.period_ms,
        machine.kernel.min_slice_ms,
        machine.kernel.switch_us,
    ) = (0.1, 0.1, 1_000.0);
    let nice = SimJob {
        nice: 19,
        ..job(&compute(), 10)
    };
    let (result, _) = run_on(
        &config(
            &machine,
            vec![job(&compute(), 10), nice, job(&stream(), 10)],
        ),
        "linux",
    );
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.exit == Some(Exit::Code(0)))
    );
    assert!(
        result.turnaround < Nanos::from_ms(100),
        "{:?}",
        result.turnaround
    );
}

#[test]
fn a_gang_sleeps_again_when_its_last_awake_thread_ends() {
    let mut program = compute();
    program.phases = vec![program::ProgramPhase {
        instructions: 6e7,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 100.0,
        then_mb: Default::default(),
    }];
    let gang = SimJob {
        cpus: 2,
        work: JobWork::Instructions(160_000_000),
        ..job(&program, 1)
    };
    let mut sim = Sim::new(config(&machine(2, 1), vec![gang, job(&compute(), 1_000)])).unwrap();
    let set = |cpus: &[u32]| cpus.iter().map(|&cpu| CpuId(cpu)).collect::<CpuSet>();
    let place = |task, placement| Change::Place {
        task: TaskId(task),
        placement,
        lease_end: None,
        purpose: Purpose::Run,
    };
    // Its second thread shares its CPU, so it falls asleep later. It wakes when the first has done its work.
    let gang = place(
        0,
        Placement::Exclusive {
            cpus: set(&[0, 1]),
            whole_core: false,
        },
    );
    sim.apply(&[gang, place(1, Placement::Shared { mask: set(&[1]) })])
        .unwrap();
    let mut events = Vec::new();
    while sim.now() < Nanos::from_ms(400) {
        sim.wait(Some(Nanos::from_ms(400)), &mut events).unwrap();
    }
    let (task, slept, woke) = (TaskId(0), Event::Slept(TaskId(0)), Event::Woke(TaskId(0)));
    let ended = Event::Ended {
        task,
        exit: Exit::Code(0),
    };
    assert_eq!(events, [slept.clone(), woke.clone(), slept, woke, ended]);
}
