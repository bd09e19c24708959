//! What jobs are credited with, against what they did: in a simulation the truth is known.

use crate::support::*;
use cosched_core::*;
use cosched_sim::program::ProgramPhase;
use cosched_sim::*;

/// Half of its instructions take twenty times as many cycles as the other half; each phase lasts for some 200 ms.
fn two_phases() -> ProgramSpec {
    let phase = |instructions, cpi| ProgramPhase {
        instructions,
        cpi,
        memory: 1.0,
        then_sleep_ms: 0.0,
        then_mb: Default::default(),
    };
    ProgramSpec {
        phases: vec![phase(1e9, 1.0), phase(5e7, 20.0)],
        ..compute()
    }
}

/// Six jobs for four CPUs, each of two seconds alone.
fn scene() -> SimConfig {
    let programs = [
        two_phases(),
        two_phases(),
        compute(),
        stream(),
        chase(4.0),
        stream(),
    ];
    config(
        &machine(2, 2),
        programs.iter().map(|program| job(program, 2_000)).collect(),
    )
}

/// A job's credit in seconds of solo execution; absent where it assumes that nothing slowed the job.
fn credit_s(task: &TaskResult, quantum_s: f64) -> Option<f64> {
    let measured = matches!(
        task.progress_basis,
        ProgressBasis::Ipc | ProgressBasis::Trace
    );
    task.progress
        .value()
        .filter(|_| measured)
        .map(|progress| progress * quantum_s)
}

#[test]
fn no_job_is_credited_with_more_than_its_own_time() {
    let mut measured = 0;
    for entry in POLICIES.iter().filter(|entry| suits(entry)) {
        let params = Params::resolve(entry.name, entry.params, &[]).unwrap();
        let quantum_s = params.number("quantum_s");
        let (result, _) = run_on(&scene(), entry.name);
        for task in &result.tasks {
            let cpu_s = task.cpu_time.value().unwrap().as_s();
            let Some(credit) = credit_s(task, quantum_s) else {
                continue;
            };
            assert!(
                credit <= cpu_s * (1.0 + 1e-9),
                "{}: {} of {cpu_s} s: {task:?}",
                entry.name,
                credit
            );
            measured += 1;
        }
    }
    assert!(measured > 12, "{measured}");
}

#[test]
fn where_the_kernel_time_shares_a_job_is_credited_with_its_work_and_not_with_its_turns() {
    // One job is alone on the machine for a while, which tells what it does alone; then others share its only CPU.
    let machine = machine(1, 1);
    let jobs = vec![job(&compute(), 3_000); 3];
    let config = config(&machine, jobs);
    let entry = find_policy("linux").unwrap();
    let params = Params::resolve("linux", entry.params, &[]).unwrap();
    let mut policy = (entry.build)(&params);
    let mut sim = Sim::new(config.clone()).unwrap();
    let mut tasks = specs(&config);
    for (task, at) in tasks.iter_mut().zip([0, 1_000, 1_000]) {
        task.arrives = Nanos::from_ms(at);
    }
    let result = run(
        &mut sim,
        &mut *policy,
        &mut NullRecorder,
        tasks,
        &RunConfig::default(),
    )
    .unwrap();
    let first = &result.tasks[0];
    assert_eq!(first.progress_basis, ProgressBasis::Ipc);
    // 3 s of work took some 7 s in turns with the others.
    assert!(first.turnaround().unwrap() > Nanos::from_ms(6_000));
    let credit = credit_s(first, 0.2).unwrap();
    assert!((credit - 3.0).abs() < 0.15, "{credit}");
}

#[test]
fn a_short_estimation_quantum_still_gives_estimates() {
    let config = config(&machine(2, 1), vec![job(&stream(), 4_000); 5]);
    let entry = find_policy("perf-fair").unwrap();
    let short = [("estimation_quantum_s".to_owned(), "0.01".to_owned())];
    let mut policy = (entry.build)(&Params::resolve("perf-fair", entry.params, &short).unwrap());
    let mut sim = Sim::new(config.clone()).unwrap();
    let result = run(
        &mut sim,
        &mut *policy,
        &mut NullRecorder,
        specs(&config),
        &RunConfig::default(),
    )
    .unwrap();
    assert!(
        result
            .tasks
            .iter()
            .all(|task| task.progress_basis == ProgressBasis::Ipc),
        "{:?}",
        result.tasks
    );
}
