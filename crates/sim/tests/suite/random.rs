//! What holds in every world, however odd the machine, the programs, the jobs and what goes wrong.

use crate::random_world::*;
use cosched_core::*;
use cosched_sim::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const CASES: u32 = 200;

/// Runs a scene under a policy; `None` if the policy lacks what it needs.
fn run_scene(
    scene: &Scene,
    entry: &PolicyEntry,
    actuation: Actuation,
) -> Option<(Result<RunResult, String>, Watched)> {
    let mut params = Params::resolve(entry.name, entry.params, &[]).unwrap();
    let mut world = Watched::new(&scene.config);
    let mut tasks = scene.tasks.clone();
    for (task, solo) in tasks.iter_mut().zip(world.sim.solo_runs()) {
        task.solo = SoloProfile {
            time: Some(solo.time),
            mm_reads: Some(solo.mm_reads),
            trace: None,
        };
    }
    let shortfalls = entry.shortfalls(&params, &world.capabilities());
    if shortfalls
        .iter()
        .any(|shortfall| shortfall.importance == Importance::Required)
    {
        return None;
    }
    // Shorter quanta than the papers', so that much happens in little simulated time.
    let quick = [("quantum_s".to_owned(), "0.02".to_owned())];
    if let Ok(resolved) = Params::resolve(entry.name, entry.params, &quick) {
        params = resolved;
    }
    let mut policy = (entry.build)(&params);
    let settings = RunConfig {
        quantum: Nanos::from_ms(20),
        actuation,
        traffic: true,
        ..RunConfig::default()
    };
    let result = run(
        &mut world,
        &mut *policy,
        &mut NullRecorder,
        tasks,
        &settings,
    )
    .map_err(|error| error.to_string());
    Some((result, world))
}

fn holds(scene: &Scene, entry: &PolicyEntry, actuation: Actuation) -> Result<(), TestCaseError> {
    let Some((result, mut world)) = run_scene(scene, entry, actuation) else {
        return Ok(());
    };
    let name = entry.name;
    prop_assert!(world.wrong.is_empty(), "{}: {:?}", name, world.wrong);
    let result = match result {
        Ok(result) => result,
        // Jobs that need more CPUs than are left can't go on, and the simulation says so.
        Err(error)
            if scene
                .config
                .faults
                .iter()
                .any(|fault| matches!(fault.what, FaultKind::CpuOffline(_))) =>
        {
            prop_assert!(
                error.contains("nothing runs") || error.contains("CPUs at once"),
                "{}: {}",
                name,
                error
            );
            return Ok(());
        }
        Err(error) => return Err(TestCaseError::fail(format!("{name}: {error}"))),
    };
    let plans = result
        .plans
        .map(|plans| (plans.adopted == plans.installed, plans.given_up));
    prop_assert_eq!(
        plans,
        (actuation == Actuation::Plans).then_some((true, None)),
        "{}",
        name
    );
    let mut used = 0;
    for task in &result.tasks {
        let id = task.spec.id;
        let dies =
            |fault: &Fault| matches!(fault.what, FaultKind::JobDies { task, .. } if task == id);
        if task.exit != Some(Exit::Code(0)) {
            prop_assert!(scene.config.faults.iter().any(dies), "{}: {:?}", name, task);
        } else {
            let wanted = world.sim.solo_runs()[id.0 as usize].instructions as f64;
            let executed = world.sim.executed(id);
            prop_assert!(
                (executed - wanted).abs() <= 1e-9 * wanted,
                "{}: {} {}",
                name,
                executed,
                wanted
            );
        }
        if let (Some(turnaround), Some(cpu)) = (task.turnaround(), task.cpu_time.value()) {
            prop_assert!(
                cpu.0 <= u64::from(task.spec.cpus) * turnaround.0,
                "{}: {:?}",
                name,
                task
            );
            used += cpu.0;
        }
    }
    let cpus = scene.config.machine.machine().cpus.len() as u64;
    prop_assert!(
        used <= cpus * result.turnaround.0,
        "{}: {} of {:?}",
        name,
        used,
        result.turnaround
    );
    prop_assert!(
        result
            .energy_j
            .value()
            .is_none_or(|energy| energy.is_finite() && energy >= 0.0)
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::with_cases(CASES) })]

    #[test]
    fn the_same_inputs_give_the_same_bytes(scene in scene(), policy in 0..POLICIES.len(), by in actuation()) {
        let once = || run_scene(&scene, &POLICIES[policy], by).map(|(result, mut world)| {
            let energy = world.sim.energy_parts();
            (format!("{:?}", result.map(|result| (result.tasks, result.turnaround))), format!("{energy:?}"), world.wrong)
        });
        let first = once();
        prop_assert!(first.as_ref().is_none_or(|(_, _, wrong)| wrong.is_empty()), "{:?}", first);
        prop_assert_eq!(first, once());
    }

    #[test]
    fn any_order_of_calls_is_survived(scene in scene(), calls in proptest::collection::vec(call(), 1..60)) {
        let mut world = Watched::new(&scene.config);
        let tasks = scene.config.jobs.len() as u32;
        for call in calls {
            match call {
                Call::Wait(ns) => {
                    let until = world.now() + Nanos(ns);
                    match world.wait(Some(until), &mut Vec::new()) {
                        Ok(()) | Err(SimError::Stuck(_)) => prop_assert!(world.now() <= until),
                        Err(error) => return Err(TestCaseError::fail(error.to_string())),
                    }
                }
                Call::Read => world.read(&(0..tasks).map(TaskId).collect::<Vec<_>>(), &mut Vec::new()),
                Call::Kill(task) => world.kill(TaskId(task % tasks), Kill::Kill),
                Call::Restart(task) => drop(world.restart(TaskId(task % tasks))),
                Call::Apply(changes) => {
                    let changes: Vec<Change> = changes.iter().map(|change| change.of(tasks)).collect();
                    world.apply(&changes).unwrap();
                }
                Call::Install(generation, orders) => world.planner().expect("plans").install(&plan(generation, &orders, tasks)).unwrap(),
            }
            for task in 0..tasks {
                let wanted = world.sim.solo_runs()[task as usize].instructions as f64;
                let executed = world.sim.executed(TaskId(task));
                prop_assert!(executed <= wanted * (1.0 + 1e-9), "{} of {}", executed, wanted);
                prop_assert!(world.sim.cpus_of(TaskId(task)).is_subset(&scene.config.machine.machine().all_cpus()));
            }
        }
        prop_assert!(world.wrong.is_empty(), "{:?}", world.wrong);
    }

    #[test]
    fn every_policy_gets_every_job_through_every_world(scene in scene(), by in actuation()) {
        for entry in POLICIES {
            holds(&scene, entry, by)?;
        }
    }
}
