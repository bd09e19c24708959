//! How tasks end, and how the backend reports it.

use crate::checked::{Checked, allowed, exclusive, stop};
use crate::fixture::{Fixture, JobAction, ScenarioJob, ScenarioOutcome, job};
use cosched_core::{Backend as _, Capability, Event, Exit, Kill, Nanos, TaskId};

/// Much longer than any wait in a scenario.
const FAR: Nanos = Nanos::from_ms(3_000_000);

pub(super) fn an_end_is_told_once_and_its_usage_can_be_read<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Work(5)),
            job(JobAction::Work(30)),
            job(JobAction::Endless),
        ],
    )?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), allowed(1, &b), allowed(2, &b)]);
    for task in [0, 1] {
        assert_eq!(backend.until_ended(task), Exit::Code(0));
        // Every reading asserts that it is at least what was read before.
        let usage = backend.usage(task);
        if backend.needs(Capability::CpuTime).is_ok() {
            assert!(
                usage
                    .cpu_time
                    .value()
                    .is_some_and(|time| time > Nanos::ZERO),
                "{usage:?}"
            );
        }
        assert!(backend.cpus_of(task).is_empty());
    }
    // Every wait asserts that nothing is reported twice.
    assert_eq!(backend.pass(100), []);
    Ok(())
}

pub(super) fn what_cannot_be_started_has_ended<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Unstartable),
            job(JobAction::Work(5)),
            job(JobAction::Unstartable),
        ],
    )?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), exclusive(1, &b)]);
    // The wait returns at once, since the end is known already.
    let mut events = Vec::new();
    backend
        .wait(None, &mut events)
        .expect("the backend can wait");
    assert!(
        matches!(&events[..], [Event::Ended { task: TaskId(0), exit: Exit::NotStarted(why) }, ..] if !why.is_empty()),
        "{events:?}"
    );
    assert_eq!(backend.until_ended(1), Exit::Code(0));
    // The next task, on the CPU of the last one.
    backend.change(&[exclusive(2, &b)]);
    assert!(matches!(backend.until_ended(2), Exit::NotStarted(_)));
    assert_eq!(backend.pass(50), []);
    for task in [0, 2] {
        assert!(
            !backend.usage(task).cpu_time.is_value(),
            "nothing was used by what never was"
        );
    }
    Ok(())
}

pub(super) fn failures_are_told_as_they_are<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Fails),
            job(JobAction::Crashes),
            job(JobAction::Work(20)),
        ],
    )?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), allowed(1, &b), allowed(2, &b)]);
    assert_eq!(backend.until_ended(0), Exit::Code(3));
    assert_eq!(
        backend.until_ended(1),
        Exit::Signal {
            signal: 11,
            oom: false
        }
    );
    assert_eq!(backend.until_ended(2), Exit::Code(0));
    assert_eq!(backend.pass(50), []);
    Ok(())
}

pub(super) fn what_is_killed_ends_by_its_signal<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let gang = ScenarioJob {
        cpus: 2,
        ..job(JobAction::Endless)
    };
    let jobs = [
        job(JobAction::Endless),
        job(JobAction::Endless),
        gang.clone(),
        job(JobAction::Endless),
        job(JobAction::Endless),
        gang,
    ];
    let mut backend = Checked::new(fixture, &jobs)?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    let both = a.iter().chain(b.iter()).collect();
    let changes: Vec<_> = (0..6).map(|task| allowed(task, &both)).collect();
    backend.change(&changes);
    backend.pass(20);
    for (first, how, signal) in [(0, Kill::Term, 15), (3, Kill::Kill, 9)] {
        // A running task, a stopped task, and a stopped gang.
        backend.change(&[stop(first + 1), stop(first + 2)]);
        for task in first..first + 3 {
            backend.kill(TaskId(task), how);
            assert_eq!(
                backend.until_ended(task),
                Exit::Signal { signal, oom: false },
                "{how:?} of {task}"
            );
            assert!(backend.cpus_of(task).is_empty());
            // An ended task can't be killed.
            backend.kill(TaskId(task), how);
        }
        assert_eq!(backend.pass(50), []);
    }
    Ok(())
}

pub(super) fn what_never_started_cannot_be_killed<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Work(5)), job(JobAction::Work(5))])?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a)]);
    backend.kill(TaskId(1), Kill::Term);
    backend.kill(TaskId(1), Kill::Kill);
    // Every wait asserts that no task ends that was not started.
    assert_eq!(backend.until_ended(0), Exit::Code(0));
    assert_eq!(backend.pass(50), []);
    backend.change(&[exclusive(1, &b)]);
    assert_eq!(backend.until_ended(1), Exit::Code(0));
    Ok(())
}

pub(super) fn waiting_ends_at_its_time_or_at_news<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[job(JobAction::Endless), job(JobAction::Work(20))],
    )?;
    let [a, b] = backend.two_cpus()?;
    let wait = |backend: &mut Checked<F>, until| {
        // `wait` appends: earlier events stay.
        let mut events = vec![Event::Interrupt { signal: 0 }];
        backend
            .wait(until, &mut events)
            .expect("the backend can wait");
        assert_eq!(events.remove(0), Event::Interrupt { signal: 0 });
        events
    };
    for placed in [false, true] {
        if placed {
            backend.change(&[exclusive(0, &a)]);
        }
        for ms in [0, 1, 20] {
            // Every wait asserts that it does not return too early.
            let now = backend.now();
            assert_eq!(wait(&mut backend, Some(now + Nanos::from_ms(ms))), []);
        }
        // A time that has passed needs no wait.
        assert_eq!(wait(&mut backend, Some(Nanos::ZERO)), []);
    }
    // Events come first, whether the time limit is far away, infinite or already over.
    backend.change(&[exclusive(1, &b)]);
    let begun = backend.now();
    let events = wait(&mut backend, Some(begun + FAR));
    assert_eq!(
        events,
        [Event::Ended {
            task: TaskId(1),
            exit: Exit::Code(0)
        }]
    );
    assert!(backend.now() < begun + FAR);
    backend.kill(TaskId(0), Kill::Kill);
    let events = wait(&mut backend, None);
    assert_eq!(
        events,
        [Event::Ended {
            task: TaskId(0),
            exit: Exit::Signal {
                signal: 9,
                oom: false
            }
        }]
    );
    Ok(())
}

pub(super) fn a_task_that_sleeps_is_told_of_and_wakes<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Naps), job(JobAction::Endless)])?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), exclusive(1, &b)]);
    let mut events = Vec::new();
    while !matches!(events.last(), Some(Event::Ended { .. })) {
        let long = backend.now() + FAR;
        backend
            .wait(Some(long), &mut events)
            .expect("the backend can wait");
    }
    let task = TaskId(0);
    assert_eq!(
        events,
        [
            Event::Slept(task),
            Event::Woke(task),
            Event::Ended {
                task,
                exit: Exit::Code(0)
            }
        ]
    );
    Ok(())
}

pub(super) fn a_task_that_sleeps_can_be_stopped<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Naps), job(JobAction::Endless)])?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), exclusive(1, &b)]);
    let mut events = Vec::new();
    backend
        .wait(None, &mut events)
        .expect("the backend can wait");
    assert_eq!(events, [Event::Slept(TaskId(0))]);
    backend.change(&[stop(0)]);
    // Its sleep was over long before, but it has not been placed again.
    let events = backend.pass(200);
    assert!(
        !events
            .iter()
            .any(|event| matches!(event, Event::Ended { .. })),
        "{events:?}"
    );
    backend.change(&[exclusive(0, &a)]);
    assert_eq!(backend.until_ended(0), Exit::Code(0));
    Ok(())
}

pub(super) fn nothing_stands_still_when_the_backend_is_dropped<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let gang = ScenarioJob {
        cpus: 2,
        ..job(JobAction::Endless)
    };
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Endless),
            gang,
            job(JobAction::Endless),
            job(JobAction::Endless),
        ],
    )?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    let both = a.iter().chain(b.iter()).collect();
    backend.change(&[exclusive(0, &a), exclusive(2, &b)]);
    backend.pass(20);
    backend.change(&[stop(0), stop(2), exclusive(1, &both)]);
    backend.pass(20);
    backend.change(&[stop(1), exclusive(2, &b)]);
    backend.pass(20);
    // Two tasks are stopped, one runs, and one has never started.
    drop(backend);
    fixture.nothing_stands_still();
    Ok(())
}
