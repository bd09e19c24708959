//! Tasks run where they are placed, while they are placed.

use crate::checked::{Checked, allowed, exclusive, stop};
use crate::fixture::{Fixture, JobAction, ScenarioJob, ScenarioOutcome, ScenarioSkip, job};
use cosched_core::{Absence, Backend as _, Capability, CpuSet, Nanos, Reading};

/// How long a task is watched, in ms: long enough that a running task is seen to have run, even if it shares its CPU
/// with other programs.
pub(super) const WATCHED: u64 = 60;

/// Tolerance: CPU time and the clock are read one after the other, and CPU time may come in ticks of up to 10 ms.
fn with_slack(elapsed: Nanos) -> Nanos {
    Nanos(elapsed.0 + elapsed.0 / 50 + 12_000_000)
}

/// Asserts that `used` is at most the time of `cpus` CPUs, and at least the fixture's least share of it.
pub(super) fn assert_share<F: Fixture>(used: Nanos, elapsed: Nanos, cpus: u64) {
    let most = Nanos(elapsed.0 * cpus);
    assert!(
        used <= with_slack(most),
        "{used:?} in {elapsed:?} on {cpus} CPUs"
    );
    assert!(
        used.share_of(most) >= F::LEAST_SHARE,
        "{} s of CPU time in {} s; {cpus} CPUs of its own give more",
        used.as_s(),
        elapsed.as_s()
    );
}

pub(super) fn what_is_placed_starts_and_nothing_else<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    if let Some(why) = F::RUNS_BEFORE {
        return Err(ScenarioSkip(why.to_owned()));
    }
    let mut backend = Checked::new(fixture, &[job(JobAction::Endless), job(JobAction::Endless)])?;
    backend.needs(Capability::CpuTime)?;
    let [cpu, _] = backend.two_cpus()?;
    assert_eq!(
        backend.pass(20),
        [],
        "nothing happens before anything is placed"
    );
    for task in [0, 1] {
        assert_eq!(backend.cpus_of(task), CpuSet::new());
    }
    backend.change(&[exclusive(0, &cpu)]);
    backend.until_it_works(0);
    backend.until_it_works(0);
    let (used, elapsed) = backend.used_while(&[0], WATCHED);
    assert_share::<F>(used, elapsed, 1);
    assert_eq!(backend.cpus_of(0), cpu);

    assert_eq!(backend.cpus_of(1), CpuSet::new(), "it was never placed");
    let usage = backend.usage(1);
    assert_eq!(usage.cpu_time, Reading::Absent(Absence::NotStarted));
    assert!(
        usage.counts.iter().all(|(_, count)| !count.is_value()),
        "{usage:?}"
    );
    Ok(())
}

pub(super) fn a_gang_runs_on_all_of_its_cpus<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[ScenarioJob {
            cpus: 2,
            ..job(JobAction::Endless)
        }],
    )?;
    backend.needs(Capability::CpuTime)?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    let both: CpuSet = a.iter().chain(b.iter()).collect();
    for _ in 0..2 {
        backend.change(&[exclusive(0, &both)]);
        backend.until_it_works(0);
        // Where it is seen where its processes are, and not where they may be, the second one may not have come onto a CPU yet.
        let end = backend.now() + F::CLOSE;
        let mut cpus = backend.cpus_of(0);
        while cpus != both && backend.now() < end {
            backend.pass(10);
            cpus = backend.cpus_of(0);
        }
        assert_eq!(cpus, both);
        let (used, elapsed) = backend.used_while(&[0], WATCHED);
        assert_share::<F>(used, elapsed, 2);
        backend.change(&[stop(0)]);
        assert_stands_still::<F>(&mut backend, 0);
    }
    Ok(())
}

/// Asserts that a task that was stopped uses no more CPU time. On a real machine a process stops when it is interrupted,
/// which can take longer than one look where a hypervisor takes CPUs away; what it uses until then is a few slices at most.
pub(super) fn assert_stands_still<F: Fixture>(backend: &mut Checked<F>, task: u32) {
    let (looks, in_a_row) = if F::AFTER_STOP == Nanos::ZERO {
        (2, 2)
    } else {
        (50, 3)
    };
    let (mut still, mut in_all) = (0, Nanos::ZERO);
    for _ in 0..looks {
        let (used, _) = backend.used_while(&[task], WATCHED);
        in_all += used;
        assert!(
            in_all <= Nanos::from_ms(200),
            "it went on for {in_all:?} when it was stopped"
        );
        still = if used <= F::AFTER_STOP { still + 1 } else { 0 };
        if still == in_a_row {
            return;
        }
    }
    panic!("it went on when it was stopped, {in_all:?} in all");
}

pub(super) fn what_is_stopped_does_nothing_until_it_is_placed_again<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Endless), job(JobAction::Endless)])?;
    backend.needs(Capability::CpuTime)?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), exclusive(1, &b)]);
    for where_next in [&a, &b, &b] {
        backend.until_it_works(0);
        backend.change(&[stop(0)]);
        assert_stands_still::<F>(&mut backend, 0);
        // Stopping it again changes nothing.
        backend.change(&[stop(0)]);
        assert_stands_still::<F>(&mut backend, 0);
        backend.until_it_works(1);
        // The second task may have to share with it.
        backend.change(&[exclusive(0, where_next)]);
    }
    backend.until_it_works(0);
    // A task that is placed where it already is goes on.
    backend.change(&[exclusive(0, &b)]);
    backend.until_it_works(0);
    assert_eq!(backend.cpus_of(0), b);
    Ok(())
}

pub(super) fn stops_and_starts_in_quick_succession_are_no_news<F: Fixture>(
    fixture: &F,
) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Endless),
            ScenarioJob {
                cpus: 2,
                ..job(JobAction::Endless)
            },
        ],
    )?;
    backend.needs(Capability::CpuTime)?;
    backend.needs(Capability::Freeze)?;
    let [a, b] = backend.two_cpus()?;
    let both: CpuSet = a.iter().chain(b.iter()).collect();
    backend.change(&[exclusive(0, &a)]);
    for turn in 0..60 {
        backend.change(&[stop(0), exclusive(1, &both)]);
        if turn % 3 == 0 {
            assert_eq!(backend.pass(1), [], "turn {turn}");
        }
        backend.change(&[exclusive(0, if turn % 4 < 2 { &a } else { &b }), stop(1)]);
        if turn % 2 == 0 {
            assert_eq!(backend.pass(1), [], "turn {turn}");
        }
    }
    backend.until_it_works(0);
    assert_stands_still::<F>(&mut backend, 1);
    assert_eq!(backend.pass(20), []);
    Ok(())
}

pub(super) fn tasks_go_where_they_are_placed<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Endless)])?;
    backend.needs(Capability::CpuTime)?;
    let [a, b] = backend.two_cpus()?;
    let both: CpuSet = a.iter().chain(b.iter()).collect();
    for change in [
        exclusive(0, &a),
        exclusive(0, &b),
        allowed(0, &a),
        allowed(0, &both),
        exclusive(0, &b),
    ] {
        // Every change asserts that it is nowhere else.
        backend.change(&[change]);
        backend.until_it_works(0);
        assert!(!backend.cpus_of(0).is_empty());
    }
    assert_eq!(backend.cpus_of(0), b);
    // A task that is moved while it is stopped goes on there.
    backend.needs(Capability::Freeze)?;
    backend.change(&[stop(0)]);
    backend.change(&[exclusive(0, &a)]);
    backend.until_it_works(0);
    assert_eq!(backend.cpus_of(0), a);
    Ok(())
}

pub(super) fn tasks_with_one_cpu_share_it<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(fixture, &[job(JobAction::Endless), job(JobAction::Endless)])?;
    backend.needs(Capability::CpuTime)?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[allowed(0, &a), allowed(1, &a)]);
    for task in [0, 1] {
        backend.until_it_works(task);
    }
    let (used, elapsed) = backend.used_while(&[0, 1], 2 * WATCHED);
    assert_share::<F>(used, elapsed, 1);
    backend.change(&[exclusive(1, &b)]);
    let (used, elapsed) = backend.used_while(&[0, 1], WATCHED);
    assert_share::<F>(used, elapsed, 2);
    Ok(())
}

pub(super) fn changes_are_carried_out_as_one<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    let mut backend = Checked::new(
        fixture,
        &[
            job(JobAction::Endless),
            job(JobAction::Endless),
            job(JobAction::Endless),
        ],
    )?;
    backend.needs(Capability::CpuTime)?;
    let [a, b] = backend.two_cpus()?;
    backend.change(&[exclusive(0, &a), exclusive(1, &b)]);
    // A swap.
    backend.change(&[exclusive(0, &b), exclusive(1, &a)]);
    for (task, cpu) in [(0, &b), (1, &a)] {
        backend.until_it_works(task);
        assert_eq!(backend.cpus_of(task), *cpu);
    }
    backend.needs(Capability::Freeze)?;
    // The starting task takes the CPU of the stopping one, in either order of the changes; the other task moves.
    backend.change(&[exclusive(2, &b), exclusive(1, &a), stop(0)]);
    assert_stands_still::<F>(&mut backend, 0);
    for (task, cpu) in [(2, &b), (1, &a)] {
        backend.until_it_works(task);
        assert_eq!(backend.cpus_of(task), *cpu);
    }
    // One task stops, one moves, one is thawed, all at once.
    backend.change(&[exclusive(0, &a), stop(2), exclusive(1, &b)]);
    assert_stands_still::<F>(&mut backend, 2);
    for (task, cpu) in [(0, &a), (1, &b)] {
        backend.until_it_works(task);
        assert_eq!(backend.cpus_of(task), *cpu);
    }
    // An empty list of changes is valid, too.
    backend.change(&[]);
    backend.until_it_works(1);
    Ok(())
}
