//! Plans, which a backend carries out by itself. A backend that does not carry out plans skips all of these.

use super::Entries;
use super::placing::{WATCHED, assert_share, assert_stands_still};
use super::policies::{assert_all_policies, batch};
use crate::checked::{Checked, exclusive, stop};
use crate::fixture::{Fixture, JobAction, ScenarioJob, ScenarioOutcome, job};
use cosched_core::{
    Actuation, Capability, CpuSet, Event, Filler, Nanos, Payload, Placement, Plan, Reading,
    Residency, Schedule, Seat, TaskId,
};

fn seat(task: u32, cpus: &CpuSet) -> Seat {
    let placement = Placement::Exclusive {
        cpus: cpus.clone(),
        whole_core: false,
    };
    Seat {
        task: TaskId(task),
        placement,
        until: None,
    }
}

fn filler(task: u32) -> Filler {
    Filler {
        task: TaskId(task),
        allowed: None,
    }
}

fn plan(generation: u64, seats: Vec<Seat>, fillers: Vec<Filler>) -> Plan {
    Plan {
        generation,
        payload: Payload::Schedule(Schedule {
            seats,
            fillers,
            ..Schedule::default()
        }),
    }
}

/// A backend that carries out plans, with two CPUs.
fn planner<F: Fixture>(
    fixture: &F,
    jobs: &[ScenarioJob],
) -> Result<(Checked<F>, [CpuSet; 2]), crate::fixture::ScenarioSkip> {
    let backend = Checked::new(fixture, jobs)?;
    backend.needs(Capability::Plans)?;
    backend.needs(Capability::CpuTime)?;
    let cpus = backend.two_cpus()?;
    Ok((backend, cpus))
}

/// Where a task's time went so far.
fn residency<F: Fixture>(backend: &mut Checked<F>, task: u32) -> Residency {
    match backend.usage(task).residency {
        Reading::Value(residency) => residency,
        Reading::Absent(why) => panic!("no residency of task {task}: {why}"),
    }
}

pub(super) fn a_plan_takes_the_place_of_what_was<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let jobs = [JobAction::Endless; 3].map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    // Seated tasks that have not begun are started; no other task is.
    backend.plan(&plan(1, vec![seat(0, &a), seat(1, &b)], vec![]));
    assert_eq!(backend.pass(20), [Event::PlanAdopted { generation: 1 }]);
    for (task, cpu) in [(0, &a), (1, &b)] {
        backend.until_it_works(task);
        assert_eq!(backend.cpus_of(task), *cpu);
    }
    assert_eq!(
        backend.usage(2).cpu_time,
        Reading::Absent(cosched_core::Absence::NotStarted)
    );
    // One task moves, one is started, and a task without a seat waits.
    backend.plan(&plan(2, vec![seat(1, &a), seat(2, &b)], vec![]));
    assert_stands_still::<F>(&mut backend, 0);
    let (used, elapsed) = backend.used_while(&[1, 2], WATCHED);
    assert_share::<F>(used, elapsed, 2);
    // The lease of one task ends; its CPU stays empty.
    let now = backend.time();
    let until = Some(now + Nanos::from_ms(30));
    backend.plan(&plan(
        3,
        vec![
            Seat {
                until,
                ..seat(1, &a)
            },
            seat(2, &b),
        ],
        vec![],
    ));
    backend.pass(31);
    assert_stands_still::<F>(&mut backend, 1);
    backend.until_it_works(2);
    Ok(())
}

pub(super) fn a_filler_takes_an_empty_seat_and_gives_it_back<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let jobs = [
        JobAction::Naps,
        JobAction::Endless,
        JobAction::Endless,
        JobAction::Work(30),
    ]
    .map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    // The two tasks that may fill in have begun before.
    backend.plan(&plan(1, vec![seat(1, &a), seat(2, &b)], vec![]));
    backend.until_it_works(1);
    backend.until_it_works(2);
    backend.plan(&plan(
        2,
        vec![seat(0, &a), seat(3, &b)],
        vec![filler(2), filler(1)],
    ));
    backend.until(|event| *event == Event::Slept(TaskId(0)));
    // The first in the order runs, on the CPU of the sleeping task; the other waits.
    let (used, elapsed) = backend.used_while(&[2], 20);
    assert_share::<F>(used, elapsed, 1);
    assert_eq!(backend.cpus_of(2), a);
    let before = residency(&mut backend, 0);
    backend.until(|event| *event == Event::Woke(TaskId(0)));
    backend.until_ended(0);
    // What the one that fills in uses would tell too little: once the seat is empty for good it has the CPU again.
    let after = residency(&mut backend, 0);
    let waited = after.waiting - before.waiting;
    assert!(
        waited <= F::AFTER_STOP,
        "it gets its CPU back at once: it waited for {waited:?}"
    );
    assert!(after.on_cpu > before.on_cpu, "it runs");
    // Both seats are empty for good now: the tasks that fill in keep them.
    backend.until_ended(3);
    let (used, elapsed) = backend.used_while(&[1, 2], WATCHED);
    assert_share::<F>(used, elapsed, 2);
    Ok(())
}

pub(super) fn nobody_fills_a_whole_core_or_beyond_its_mask<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let jobs = [JobAction::Work(20), JobAction::Work(20), JobAction::Endless].map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    backend.plan(&plan(1, vec![seat(2, &a)], vec![]));
    backend.until_it_works(2);
    let whole = Placement::Exclusive {
        cpus: a.clone(),
        whole_core: true,
    };
    let whole = Seat {
        task: TaskId(0),
        placement: whole,
        until: None,
    };
    let only_a = Filler {
        task: TaskId(2),
        allowed: Some(a),
    };
    backend.plan(&plan(2, vec![whole, seat(1, &b)], vec![only_a]));
    backend.until_ended(0);
    backend.until_ended(1);
    assert_stands_still::<F>(&mut backend, 2);
    Ok(())
}

/// Asserts that two times differ by no more than a backend's may.
fn assert_close<F: Fixture>(one: Nanos, other: Nanos) {
    let apart = one.0.abs_diff(other.0);
    assert!(apart <= F::CLOSE.0, "{one:?} and {other:?}");
}

pub(super) fn residency_is_what_happened<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let jobs = [JobAction::Naps, JobAction::Endless, JobAction::Endless].map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    backend.plan(&plan(1, vec![seat(1, &a)], vec![]));
    let began = backend.time();
    backend.pass(F::LONG);
    backend.plan(&plan(2, vec![seat(0, &a), seat(2, &b)], vec![filler(1)]));
    backend.until_ended(0);
    let elapsed = backend.time() - began;
    let (napper, first, second) = (
        residency(&mut backend, 0),
        residency(&mut backend, 1),
        residency(&mut backend, 2),
    );
    // One CPU was with the first task alone, then with the napper or the first, all the time.
    assert_close::<F>(napper.on_cpu + first.on_cpu, elapsed);
    assert_close::<F>(first.waiting, napper.on_cpu);
    assert_close::<F>(first.on_cpu + first.waiting, elapsed);
    assert_close::<F>(second.on_cpu + Nanos::from_ms(F::LONG), elapsed);
    let beside = |residency: &Residency, other: u32| {
        let found = residency
            .beside
            .iter()
            .find(|(task, _)| *task == TaskId(other));
        found.map_or(Nanos::ZERO, |(_, time)| *time)
    };
    assert_close::<F>(beside(&second, 0), napper.on_cpu);
    assert_close::<F>(beside(&second, 1), second.on_cpu - napper.on_cpu);
    assert_close::<F>(beside(&first, 2), first.on_cpu - Nanos::from_ms(F::LONG));
    assert!(
        beside(&first, 0) <= F::CLOSE && beside(&napper, 1) <= F::CLOSE,
        "they had one CPU: {first:?} {napper:?}"
    );
    assert!(
        first.alone + F::CLOSE >= Nanos::from_ms(F::LONG),
        "{first:?}"
    );
    for residency in [&napper, &first, &second] {
        assert!(
            residency.alone <= residency.on_cpu && residency.on_cpu <= elapsed + F::CLOSE,
            "{residency:?}"
        );
        assert!(
            residency
                .beside
                .iter()
                .all(|(_, time)| *time <= residency.on_cpu),
            "{residency:?}"
        );
    }
    let now = backend.time();
    assert!(
        second
            .last_on_cpu
            .is_some_and(|last| last <= now && last + F::CLOSE >= now),
        "{second:?}"
    );
    Ok(())
}

pub(super) fn an_old_plan_is_refused<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let jobs = [JobAction::Endless; 2].map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    backend.plan(&plan(7, vec![seat(0, &a)], vec![]));
    assert_eq!(backend.pass(5), [Event::PlanAdopted { generation: 7 }]);
    for old in [7, 3] {
        backend.refused_plan(&plan(old, vec![seat(1, &b)], vec![]));
        let events = backend.pass(20);
        assert!(
            matches!(&events[..], [Event::PlanRefused { generation, .. }] if *generation == old),
            "{events:?}"
        );
        // The plan before it stays in force.
        backend.until_it_works(0);
        assert_eq!(backend.cpus_of(1), CpuSet::new());
    }
    Ok(())
}

pub(super) fn changes_end_a_plan<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let jobs = [JobAction::Work(20), JobAction::Endless, JobAction::Endless].map(job);
    let (mut backend, [a, b]) = planner(fixture, &jobs)?;
    backend.plan(&plan(1, vec![seat(1, &a), seat(2, &b)], vec![]));
    backend.until_it_works(1);
    backend.plan(&plan(2, vec![seat(0, &a), seat(2, &b)], vec![filler(1)]));
    backend.pass(2);
    backend.change(&[exclusive(0, &a), stop(1), stop(2)]);
    backend.until_ended(0);
    assert_stands_still::<F>(&mut backend, 1);
    assert_stands_still::<F>(&mut backend, 2);
    Ok(())
}

pub(super) fn a_batch_completes_by_plans<F: Fixture>(
    fixture: &F,
    entries: &Entries,
) -> ScenarioOutcome {
    planner(fixture, &[])?;
    let mut jobs = batch(fixture)?;
    // One task sleeps, so that others can fill in.
    jobs.push(job(JobAction::Naps));
    assert_all_policies(fixture, entries, &jobs, Actuation::Plans)
}
