//! Jobs of the simulation that run again, and what they do alone, by instructions executed.

use crate::support::*;
use cosched_core::*;
use cosched_sim::program::{ProgramPhase, ProgramSpec};
use cosched_sim::*;

fn until_last(config: &SimConfig, policy: &str) -> (RunResult, Sim) {
    let entry = find_policy(policy).unwrap();
    let params = config.machine.params_for(entry).unwrap();
    let mut policy = (entry.build)(&params);
    let mut sim = Sim::new(config.clone()).unwrap();
    let settings = RunConfig {
        restart: Restart::UntilLast,
        ..RunConfig::default()
    };
    let result = run(
        &mut sim,
        &mut *policy,
        &mut NullRecorder,
        specs(config),
        &settings,
    )
    .unwrap();
    (result, sim)
}

#[test]
fn what_ends_begins_anew_with_all_its_work() {
    let machine = machine(3, 1);
    let config = config(
        &machine,
        vec![
            job(&compute(), 400),
            job(&chase(2.0), 1_900),
            job(&compute(), 900),
        ],
    );
    for policy in ["linux", "fifo", "round-robin"] {
        let (result, sim) = until_last(&config, policy);
        assert_eq!(sim.threads(), 3, "what has ended takes no memory");
        let runs: Vec<u32> = result.tasks.iter().map(|task| task.runs).collect();
        // Each job has a core to itself. The longest one takes a little more than 4 times 400 ms.
        assert_eq!(runs, [5, 1, 3], "{policy}");
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0)))
        );
        assert_eq!(result.tasks[1].finished, Some(result.turnaround));
        // The result tells of the first run, whatever came later.
        let first = result.tasks[0].finished.unwrap();
        assert!(first < Nanos::from_ms(420), "{policy}: {first:?}");
        let (once, _) = run_on(&config, policy);
        assert_eq!(
            result.tasks[0].counts[Counter::Instructions],
            once.tasks[0].counts[Counter::Instructions]
        );
        // Jobs that start again take power as long as the longest runs.
        assert!(result.energy_j.value().unwrap() > once.energy_j.value().unwrap());
    }
}

/// A simulated job fails only by its time limit. Each attempt does the same work from the beginning.
#[test]
fn what_runs_out_of_its_time_is_attempted_again() {
    let machine = machine(2, 1);
    let config = config(
        &machine,
        vec![
            job(&compute(), 1_000),
            job(&compute(), 200),
            job(&compute(), 200),
        ],
    );
    let timeout = Some(TimeLimit::Fixed(Nanos::from_ms(500)));
    for entry in POLICIES
        .iter()
        .filter(|entry| ["linux", "fifo", "round-robin", "fair"].contains(&entry.name))
    {
        for actuation in [Actuation::Decisions, Actuation::Plans] {
            let params = config.machine.params_for(entry).unwrap();
            let delay = Nanos::from_ms(50);
            let settings = RunConfig {
                attempts: 3,
                timeout,
                delay,
                actuation,
                ..RunConfig::default()
            };
            let go = || {
                let mut sim = Sim::new(config.clone()).unwrap();
                run(
                    &mut sim,
                    &mut *(entry.build)(&params),
                    &mut NullRecorder,
                    specs(&config),
                    &settings,
                )
                .unwrap()
            };
            let result = go();
            let runs: Vec<u32> = result.tasks.iter().map(|task| task.runs).collect();
            assert_eq!(
                (runs, result.ended_by),
                (vec![3, 1, 1], EndedBy::Completion),
                "{}",
                entry.name
            );
            assert!(result.tasks[0].timed_out && result.tasks[1].exit == Some(Exit::Code(0)));
            assert!(
                result.tasks[0].ran <= Nanos::from_ms(510),
                "its last attempt alone: {:?}",
                result.tasks[0].ran
            );
            assert_eq!(go().tasks, result.tasks);
        }
    }
}

#[test]
fn traces_are_of_the_solo_runs() {
    let phases = |mut program: ProgramSpec| {
        let phase = |memory: f64| ProgramPhase {
            instructions: 4e8,
            cpi: 1.0,
            memory,
            then_sleep_ms: 0.0,
            then_mb: Default::default(),
        };
        program.phases = vec![phase(0.0), phase(1.0)];
        program
    };
    let machine = machine(2, 1);
    let jobs = vec![
        job(&compute(), 1_000),
        job(&phases(stream()), 1_500),
        SimJob {
            cpus: 2,
            ..job(&chase(2.0), 500)
        },
    ];
    let sim = Sim::new(config(&machine, jobs)).unwrap();
    let traces = sim
        .solo_traces(Nanos::from_ms(100), &mut |_| false)
        .unwrap();
    for (trace, solo) in traces.iter().zip(sim.solo_runs()) {
        let trace = trace.as_ref().unwrap();
        let apart = trace.instructions().abs_diff(solo.instructions);
        assert!(
            apart as f64 <= 1e-6 * solo.instructions as f64,
            "{} {}",
            trace.instructions(),
            solo.instructions
        );
        let ipc = trace.ipc_over(0, trace.instructions());
        assert!((ipc / solo.ipc - 1.0).abs() < 1e-6, "{ipc} {}", solo.ipc);
    }
    assert_eq!(traces[0].as_ref().unwrap().points().len(), 10);
    let ipcs = |trace: &Option<SoloTrace>| -> Vec<f64> {
        trace
            .as_ref()
            .unwrap()
            .points()
            .iter()
            .map(|point| point.ipc)
            .collect()
    };
    assert!(ipcs(&traces[0]).iter().all(|ipc| (ipc - 2.0).abs() < 1e-3));
    let (least, most) = ipcs(&traces[1])
        .iter()
        .fold((f64::MAX, 0.0f64), |(a, b), &ipc| (a.min(ipc), b.max(ipc)));
    assert!(most > 1.5 * least, "phases are seen: {least} {most}");
}

#[test]
fn with_traces_the_oracle_knows_how_far_everybody_is() {
    let machine = machine(2, 1);
    let jobs: Vec<SimJob> = (0..6)
        .map(|n| {
            if n % 2 == 0 {
                job(&stream(), 1_000)
            } else {
                job(&compute(), 1_000)
            }
        })
        .collect();
    let config = config(&machine, jobs);
    let mut sim = Sim::new(config.clone()).unwrap();
    let mut tasks = specs(&config);
    let known = sim.solo_runs().to_vec().into_iter().zip(
        sim.solo_traces(Nanos::from_ms(200), &mut |_| false)
            .unwrap(),
    );
    for (spec, (solo, trace)) in tasks.iter_mut().zip(known) {
        spec.solo = SoloProfile {
            time: Some(solo.time),
            mm_reads: Some(solo.mm_reads),
            trace: trace.map(Into::into),
        };
    }
    let entry = find_policy("oracle").unwrap();
    let mut policy = (entry.build)(&config.machine.params_for(entry).unwrap());
    let result = run(
        &mut sim,
        &mut *policy,
        &mut NullRecorder,
        tasks,
        &RunConfig::default(),
    )
    .unwrap();
    for task in &result.tasks {
        assert_eq!(task.progress_basis, ProgressBasis::Trace);
        // One second alone is 5 quanta, however long it took here. Switches cost cycles that do no work.
        let progress = task.progress.value().unwrap();
        assert!(
            (progress - 5.0).abs() < 0.1,
            "{}: {progress}",
            task.spec.name
        );
    }
}

#[test]
fn solo_runs_can_be_broken_off() {
    let machine = machine(2, 1);
    // Far more phases than anybody would wait for.
    let phase = |cpi: f64| ProgramPhase {
        instructions: 1e3,
        cpi,
        memory: 1.0,
        then_sleep_ms: 0.0,
        then_mb: Default::default(),
    };
    let restless = ProgramSpec {
        phases: vec![phase(1.0), phase(2.0)],
        ..compute()
    };
    let endless = SimJob {
        work: JobWork::Instructions(u64::MAX / 4),
        ..job(&restless, 1)
    };
    let config = config(&machine, vec![job(&compute(), 100), endless]);
    let mut asked = Vec::new();
    let mut stop = |done| {
        asked.push(done);
        asked.len() > 5
    };
    assert_eq!(
        Sim::watched(config, &mut stop).err(),
        Some(SimError::Interrupted)
    );
    assert_eq!(asked, [0, 1, 1, 1, 1, 1]);
}
