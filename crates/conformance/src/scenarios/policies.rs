//! The loop over each backend.

use super::Entries;
use crate::checked::Checked;
use crate::fixture::{
    Fixture, JobAction, ScenarioJob, ScenarioOutcome, ScenarioSkip, job, needs, specs,
};
use cosched_core::{
    Actuation, Capability, Change, CpuId, CpuSet, Decision, Exit, Fact, Importance, Nanos, Params,
    Placement, Policy, PolicyEntry, Purpose, Recorder, Rng, RunConfig, RunResult, Snapshot, TaskId,
    Warning, run,
};

/// Short, so that tasks take turns while a scenario lasts.
const QUANTUM: f64 = 0.02;

/// Checks that no task is placed on a CPU that it may not use, and that each decision can be carried out.
#[derive(Default)]
pub(super) struct Decisions {
    stood_in: u64,
    /// Whether decisions that can't be carried out are expected.
    may_be_wrong: bool,
}

impl Recorder for Decisions {
    fn emit(&mut self, now: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Decided(record) => {
                self.stood_in += u64::from(record.stood_in);
                for change in &record.decision.changes {
                    let Change::Place {
                        task, placement, ..
                    } = change
                    else {
                        continue;
                    };
                    let view = record.snapshot.task(*task).expect("a task that takes part");
                    let is_allowed = view
                        .allowed
                        .as_ref()
                        .is_none_or(|mask| placement.cpus().is_subset(mask));
                    assert!(is_allowed, "{change:?} of {view:?}");
                }
            }
            Fact::Warned(Warning::PolicyFault { why }) => {
                assert!(self.may_be_wrong, "at {} s: {why}", now.as_s());
            }
            _ => {}
        }
    }
}

/// Runs jobs under a policy whose decisions can all be carried out.
fn play<F: Fixture>(
    fixture: &F,
    jobs: &[ScenarioJob],
    policy: &mut dyn Policy,
) -> Result<RunResult, ScenarioSkip> {
    play_by(fixture, jobs, policy, Actuation::Decisions)
}

fn play_by<F: Fixture>(
    fixture: &F,
    jobs: &[ScenarioJob],
    policy: &mut dyn Policy,
    actuation: Actuation,
) -> Result<RunResult, ScenarioSkip> {
    run_checked(fixture, jobs, policy, actuation, Decisions::default())
}

/// Runs jobs under a policy. The backend and the tasks' masks are checked all the time.
fn run_checked<F: Fixture>(
    fixture: &F,
    jobs: &[ScenarioJob],
    policy: &mut dyn Policy,
    actuation: Actuation,
    mut decisions: Decisions,
) -> Result<RunResult, ScenarioSkip> {
    let mut backend = Checked::new(fixture, jobs)?;
    backend.two_cpus()?;
    let config = RunConfig {
        quantum: Nanos::from_s(QUANTUM),
        actuation,
        traffic: true,
        ..RunConfig::default()
    };
    let result = run(&mut backend, policy, &mut decisions, specs(jobs), &config);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(result.policy_faults, decisions.stood_in);
    Ok(result)
}

/// A policy of the table with a short quantum; or the reason why it can't run here.
fn build<F: Fixture>(fixture: &F, entry: &PolicyEntry) -> Result<Box<dyn Policy>, ScenarioSkip> {
    let mut settings = Vec::new();
    if entry.params.iter().any(|param| param.name == "quantum_s") {
        settings.push(("quantum_s".to_owned(), QUANTUM.to_string()));
    }
    let params = Params::resolve(entry.name, entry.params, &settings).expect("parameters");
    let backend = fixture.backend(&[])?;
    for need in (entry.needs)(&params) {
        if need.importance == Importance::Required {
            needs(&backend, need.capability)?;
        }
    }
    Ok((entry.build)(&params))
}

fn exits(result: &RunResult) -> Vec<Exit> {
    result
        .tasks
        .iter()
        .map(|task| task.exit.clone().expect("every task has ended"))
        .collect()
}

/// Five jobs; two may use only the first CPU, one only the second.
pub(super) fn batch<F: Fixture>(fixture: &F) -> Result<Vec<ScenarioJob>, ScenarioSkip> {
    let [a, b] = Checked::new(fixture, &[])?.two_cpus()?;
    let masks = [Some(a.clone()), None, Some(b), Some(a), None];
    Ok(masks
        .into_iter()
        .map(|allowed| ScenarioJob {
            allowed,
            ..job(JobAction::Work(30))
        })
        .collect())
}

pub(super) fn a_batch_completes_within_its_masks<F: Fixture>(
    fixture: &F,
    entries: &Entries,
) -> ScenarioOutcome {
    assert_all_policies(fixture, entries, &batch(fixture)?, Actuation::Decisions)
}

/// Every one of these policies that can run here completes these jobs, and each job ends well.
pub(super) fn assert_all_policies<F: Fixture>(
    fixture: &F,
    entries: &Entries,
    jobs: &[ScenarioJob],
    actuation: Actuation,
) -> ScenarioOutcome {
    let mut left_out = Vec::new();
    for entry in entries {
        let mut policy = match build(fixture, entry) {
            Ok(policy) => policy,
            Err(ScenarioSkip(why)) => {
                left_out.push(format!("{}: {why}", entry.name));
                continue;
            }
        };
        let result = play_by(fixture, jobs, &mut *policy, actuation)?;
        assert_eq!(
            exits(&result),
            vec![Exit::Code(0); jobs.len()],
            "{}",
            entry.name
        );
        if let Some(plans) = result.plans {
            assert!(
                plans.installed > 0 && plans.adopted == plans.installed && plans.given_up.is_none(),
                "{plans:?}"
            );
        }
        for task in &result.tasks {
            let is_read = task.cpu_time.value().is_some_and(|time| time > Nanos::ZERO);
            assert!(
                is_read || needs(&fixture.backend(&[])?, Capability::CpuTime).is_err(),
                "{}: {task:?}",
                entry.name
            );
        }
    }
    // The other policies were played.
    if left_out.is_empty() {
        Ok(())
    } else {
        Err(ScenarioSkip(format!(
            "not all policies can run here ({})",
            left_out.join("; ")
        )))
    }
}

pub(super) fn failures_leave_the_others_alone<F: Fixture>(
    fixture: &F,
    entries: &Entries,
) -> ScenarioOutcome {
    let jobs = [
        JobAction::Fails,
        JobAction::Crashes,
        JobAction::Work(30),
        JobAction::Work(30),
        JobAction::Work(30),
    ]
    .map(job);
    let expected = [
        Exit::Code(3),
        Exit::Signal {
            signal: 11,
            oom: false,
        },
        Exit::Code(0),
        Exit::Code(0),
        Exit::Code(0),
    ];
    for entry in entries {
        let mut policy = build(fixture, entry)?;
        let name = entry.name;
        assert_eq!(
            exits(&play(fixture, &jobs, &mut *policy)?),
            expected,
            "{name}"
        );
    }
    Ok(())
}

/// A policy whose decisions can't be carried out.
#[derive(Default)]
struct Nonsense(u64);

impl Policy for Nonsense {
    fn decide(&mut self, snapshot: &Snapshot, _rng: &mut Rng) -> Decision {
        self.0 += 1;
        let place = |task: TaskId, cpu: CpuId| Change::Place {
            task,
            placement: Placement::Exclusive {
                cpus: CpuSet::from_iter([cpu]),
                whole_core: false,
            },
            lease_end: None,
            purpose: Purpose::Run,
        };
        let cpu = snapshot.machine.cpus[0].id;
        let nowhere = CpuId(
            snapshot
                .machine
                .cpus
                .iter()
                .map(|cpu| cpu.id.0)
                .max()
                .unwrap_or(0)
                + 1,
        );
        let ids: Vec<TaskId> = snapshot.tasks.iter().map(|task| task.id).collect();
        let next_wake = Some(snapshot.now + Nanos::from_ms(20));
        match (self.0 % 5, &ids[..]) {
            (0, &[a, b, ..]) => Decision {
                changes: vec![place(a, cpu), place(b, cpu)],
                next_wake,
                ..Decision::default()
            },
            (1, &[a, ..]) => Decision {
                changes: vec![place(a, nowhere)],
                next_wake,
                ..Decision::default()
            },
            (2, &[a, ..]) => Decision {
                changes: vec![place(a, cpu)],
                next_wake: Some(Nanos::ZERO),
                ..Decision::default()
            },
            (3, &[a, ..]) => Decision {
                changes: vec![place(a, cpu), Change::Stop { task: a }],
                next_wake,
                ..Decision::default()
            },
            _ => Decision {
                changes: vec![place(TaskId(1_000), cpu)],
                next_wake,
                ..Decision::default()
            },
        }
    }

    fn save(&self) -> serde_json::Value {
        self.0.into()
    }

    fn load(&mut self, state: &serde_json::Value) -> Result<(), serde_json::Error> {
        self.0 = serde::Deserialize::deserialize(state)?;
        Ok(())
    }
}

pub(super) fn nonsense_is_replaced<F: Fixture>(fixture: &F) -> ScenarioOutcome {
    // The jobs end one after the other, so that the policy is asked often.
    let jobs = [5, 10, 15, 20, 25, 30, 35, 40].map(|ms| job(JobAction::Work(ms)));
    let mut nonsense = Nonsense::default();
    let wrong = Decisions {
        may_be_wrong: true,
        ..Decisions::default()
    };
    let by = Actuation::Decisions;
    let result = run_checked(fixture, &jobs, &mut nonsense, by, wrong)?;
    assert_eq!(exits(&result), vec![Exit::Code(0); 8]);
    assert!(result.policy_faults > 0);
    assert_eq!(result.policy_faults, result.overhead.decisions);
    Ok(())
}

pub(super) fn gangs_take_turns_with_others<F: Fixture>(
    fixture: &F,
    entries: &Entries,
) -> ScenarioOutcome {
    let gang = ScenarioJob {
        cpus: 2,
        ..job(JobAction::Work(40))
    };
    let jobs = [
        job(JobAction::Work(40)),
        gang.clone(),
        job(JobAction::Work(40)),
        gang,
    ];
    for entry in entries {
        let mut policy = build(fixture, entry)?;
        let name = entry.name;
        let result = play(fixture, &jobs, &mut *policy)?;
        assert_eq!(exits(&result), vec![Exit::Code(0); 4], "{name}");
    }
    Ok(())
}

pub(super) fn a_run_repeats_itself<F: Fixture>(fixture: &F, entries: &Entries) -> ScenarioOutcome {
    if let Some(why) = F::NOT_REPEATABLE {
        return Err(ScenarioSkip(why.to_owned()));
    }
    let mut jobs = batch(fixture)?;
    jobs.extend([
        job(JobAction::Crashes),
        ScenarioJob {
            cpus: 2,
            ..job(JobAction::Work(40))
        },
    ]);
    let naps = job(JobAction::Naps);
    if fixture.backend(std::slice::from_ref(&naps)).is_ok() {
        jobs.push(naps);
    }
    for entry in entries {
        let Ok(mut first) = build(fixture, entry) else {
            continue;
        };
        let Ok(mut second) = build(fixture, entry) else {
            continue;
        };
        let (first, second) = (
            play(fixture, &jobs, &mut *first)?,
            play(fixture, &jobs, &mut *second)?,
        );
        assert_eq!(
            format!("{:?}", first.tasks),
            format!("{:?}", second.tasks),
            "{}",
            entry.name
        );
        assert_eq!(first.energy_j, second.energy_j, "{}", entry.name);
    }
    Ok(())
}
