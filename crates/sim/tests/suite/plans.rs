//! Plans in the simulation: what filling in gains, when it is refused, and what happens to a run whose scheduler is
//! ejected.

use crate::support::*;
use cosched_core::model::bus_admission_table::DemandClass;
use cosched_core::*;
use cosched_sim::program::ProgramPhase;
use cosched_sim::*;

/// A program that computes for some 10 ms and then sleeps for 10 ms, again and again.
fn sleepy() -> ProgramSpec {
    let phase = ProgramPhase {
        instructions: 5e7,
        cpi: 1.0,
        memory: 1.0,
        then_sleep_ms: 10.0,
        then_mb: Default::default(),
    };
    ProgramSpec {
        phases: vec![phase],
        ..compute()
    }
}

#[derive(Default)]
struct Told {
    warnings: Vec<(Nanos, Warning)>,
    adopted: Vec<u64>,
    observed: usize,
}

impl Recorder for Told {
    fn emit(&mut self, now: Nanos, fact: Fact<'_>) {
        match fact {
            Fact::Decided(record) => {
                self.observed += record
                    .samples
                    .iter()
                    .filter(|sample| sample.observed)
                    .count();
            }
            Fact::PlanAdopted(generation) => {
                self.adopted.push(generation);
            }
            Fact::Warned(warning) => {
                self.warnings.push((now, warning.clone()));
            }
            _ => {}
        }
    }
}

fn run_by(config: &SimConfig, policy: &str, actuation: Actuation) -> (RunResult, Told) {
    let entry = find_policy(policy).unwrap();
    let params = config.machine.params_for(entry).unwrap();
    let mut policy = (entry.build)(&params);
    let mut sim = Sim::new(config.clone()).unwrap();
    let quantum = Nanos::from_s(params.number("quantum_s"));
    let settings = RunConfig {
        quantum,
        actuation,
        traffic: true,
        ..RunConfig::default()
    };
    let mut told = Told::default();
    let result = run(&mut sim, &mut *policy, &mut told, specs(config), &settings).unwrap();
    (result, told)
}

#[test]
fn a_cpu_whose_task_sleeps_is_not_lost() {
    // Each sleeper leaves its CPU for half of the time.
    let mut jobs = vec![job(&sleepy(), 2_000); 4];
    jobs.extend(vec![job(&compute(), 2_000); 2]);
    let config = config(&machine(2, 1), jobs);
    for policy in ["round-robin", "fair", "perf-fair", "bandwidth"] {
        let (by_decisions, _) = run_by(&config, policy, Actuation::Decisions);
        let (by_plans, told) = run_by(&config, policy, Actuation::Plans);
        let (slow, fast) = (by_decisions.turnaround.as_s(), by_plans.turnaround.as_s());
        assert!(
            fast < 0.85 * slow,
            "{policy}: {fast} s by plans, {slow} s by decisions"
        );
        assert!(
            by_plans
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{policy}"
        );
        let plans = by_plans.plans.unwrap();
        assert_eq!(
            (plans.adopted, plans.given_up),
            (plans.installed, None),
            "{policy}"
        );
        assert_eq!(
            told.adopted,
            (1..=plans.installed).collect::<Vec<u64>>(),
            "{policy}"
        );
        assert!(
            told.observed > 0,
            "{policy}: intervals go by what was observed"
        );
        assert_eq!(by_decisions.plans, None);
    }
}

#[test]
fn an_ejected_scheduler_is_told_and_the_run_goes_on() {
    let mut jobs = vec![job(&sleepy(), 1_000); 3];
    jobs.extend(vec![job(&stream(), 1_000); 3]);
    let at = Nanos::from_ms(700);
    let what = FaultKind::SchedulerEjected {
        why: "a watchdog removed it".to_owned(),
    };
    let config = SimConfig {
        faults: vec![Fault { at, what }],
        ..config(&machine(2, 2), jobs)
    };
    for entry in POLICIES.iter().filter(|entry| suits(entry)) {
        let (result, told) = run_by(&config, entry.name, Actuation::Plans);
        assert!(
            result
                .tasks
                .iter()
                .all(|task| task.exit == Some(Exit::Code(0))),
            "{}",
            entry.name
        );
        let plans = result.plans.unwrap();
        assert!(
            plans.given_up.is_some_and(|given_up| given_up >= at),
            "{}: {plans:?}",
            entry.name
        );
        let given_up = told
            .warnings
            .iter()
            .filter(|(_, warning)| matches!(warning, Warning::PlansGivenUp { .. }));
        assert_eq!(given_up.count(), 1, "{}: {:?}", entry.name, told.warnings);
        assert_eq!(result.policy_faults, 0, "{}", entry.name);
    }
}

#[test]
fn plans_are_refused_after_an_ejection() {
    let what = FaultKind::SchedulerEjected {
        why: "an error".to_owned(),
    };
    let faults = vec![Fault {
        at: Nanos::from_ms(1),
        what,
    }];
    let mut sim = Sim::new(SimConfig {
        faults,
        ..config(&machine(2, 1), vec![job(&compute(), 100)])
    })
    .unwrap();
    let plan = Plan {
        generation: 1,
        payload: Payload::Schedule(Schedule::default()),
    };
    let mut events = Vec::new();
    sim.wait(Some(Nanos::from_ms(2)), &mut events).unwrap();
    assert_eq!(
        events,
        [Event::SchedulerEjected {
            why: "an error".to_owned()
        }]
    );
    sim.install(&plan).unwrap();
    events.clear();
    sim.wait(Some(Nanos::from_ms(3)), &mut events).unwrap();
    let [Event::PlanRefused { generation: 1, why }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(why.contains("ejected: an error"), "{why}");
}

#[test]
fn a_filler_must_fit_the_memory_bus() {
    let seat = |task: u32, cpu: u32| Seat {
        task: TaskId(task),
        placement: Placement::Exclusive {
            cpus: [CpuId(cpu)].into_iter().collect(),
            whole_core: false,
        },
        until: None,
    };
    let demand = |task: u32, class: DemandClass| Demand {
        task: TaskId(task),
        class: class.number(),
    };
    // Task 0 uses all of the bus, task 1 sleeps now and then, and task 2 is to fill in.
    let filled = |class: DemandClass| {
        let jobs = vec![
            job(&stream(), 1_000),
            job(&sleepy(), 1_000),
            job(&stream(), 1_000),
        ];
        let mut sim = Sim::new(config(&machine(2, 1), jobs)).unwrap();
        let install = |sim: &mut Sim, generation, schedule| {
            sim.install(&Plan {
                generation,
                payload: Payload::Schedule(schedule),
            })
            .unwrap();
        };
        // A task can fill in only after it has started.
        install(
            &mut sim,
            1,
            Schedule {
                seats: vec![seat(2, 1)],
                ..Schedule::default()
            },
        );
        sim.wait(Some(Nanos::from_ms(1)), &mut Vec::new()).unwrap();
        let demands = vec![
            demand(0, DemandClass::HIGHEST),
            demand(1, DemandClass::ZERO),
            demand(2, class),
        ];
        // A second core costs a quarter more power.
        let admission = Some(BusAdmission {
            demands,
            gains: vec![5 << 18],
        });
        let fillers = vec![Filler {
            task: TaskId(2),
            allowed: None,
        }];
        install(
            &mut sim,
            2,
            Schedule {
                seats: vec![seat(0, 0), seat(1, 1)],
                fillers,
                admission,
                spare: None,
            },
        );
        while sim.now() < Nanos::from_ms(100) {
            sim.wait(Some(Nanos::from_ms(100)), &mut Vec::new())
                .unwrap();
        }
        let mut usages = Vec::new();
        sim.read(&[TaskId(2)], &mut usages);
        usages[0].cpu_time.value().unwrap() > Nanos::from_ms(2)
    };
    assert!(!filled(DemandClass::HIGHEST));
    assert!(filled(DemandClass::ZERO));
}

/// A simulation that carries out no plans, or tells each millisecond of a switch.
struct Other {
    sim: Sim,
    has_plans: bool,
    told: Nanos,
}

impl Backend for Other {
    type Error = SimError;
    fn machine(&self) -> std::sync::Arc<Machine> {
        self.sim.machine()
    }
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.sim.capabilities();
        if !self.has_plans {
            capabilities
                .missing
                .insert(Capability::Plans, Absence::NotOffered);
        }
        capabilities
    }
    fn now(&mut self) -> Nanos {
        self.sim.now()
    }
    fn stopwatch(&self) -> Option<Nanos> {
        None
    }
    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), SimError> {
        self.sim.wait(until, events)
    }
    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        self.sim.read(tasks, out);
    }
    fn device_time(&mut self, usages: &mut [Usage]) {
        self.sim.device_time(usages)
    }

    fn visible(&mut self, tasks: &[TaskId], out: &mut Vec<(TaskId, Reading<Visible>)>) {
        self.sim.visible(tasks, out);
    }

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        self.sim.wanting(task)
    }
    fn apply(&mut self, changes: &[Change]) -> Result<(), SimError> {
        self.sim.apply(changes)
    }
    fn began(&self, task: TaskId) -> Began {
        self.sim.began(task)
    }
    fn planner(&mut self) -> Option<&mut dyn Planner<SimError>> {
        if self.has_plans { Some(self) } else { None }
    }
    fn kill(&mut self, task: TaskId, how: Kill) {
        self.sim.kill(task, how);
    }
    fn ending(&mut self) {
        self.sim.ending();
    }
    fn restart(&mut self, task: TaskId) -> bool {
        self.sim.restart(task)
    }
    fn forget(&mut self, task: TaskId) {
        self.sim.forget(task);
    }

    fn resources(&mut self, task: TaskId) -> Resources {
        self.sim.resources(task)
    }
    fn may_start(&mut self, task: &TaskSpec) -> MayStart {
        self.sim.may_start(task)
    }
    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        self.sim.traffic(out);
    }

    fn energy_j(&mut self) -> Reading<f64> {
        self.sim.energy_j()
    }
}

impl Planner<SimError> for Other {
    fn install(&mut self, plan: &Plan) -> Result<(), SimError> {
        assert!(self.has_plans, "a plan, and this backend carries out none");
        self.sim.install(plan)
    }

    fn switches(&mut self, out: &mut Vec<Switch>) {
        // The kernel tells of all CPUs at once, and goes on telling while it is asked.
        let until = self.sim.now() + Nanos::from_ms(2);
        let times = (self.told.0 / 1_000_000..until.0 / 1_000_000)
            .rev()
            .map(Nanos::from_ms);
        out.extend(times.map(|at| Switch {
            at,
            what: Switched::To {
                cpu: CpuId(0),
                task: None,
            },
        }));
        self.told = until;
    }

    fn occupation(&mut self) -> Option<Occupation> {
        self.sim.occupation()
    }

    fn admits(&mut self) -> Option<Vec<Demand>> {
        self.sim.admits()
    }
}

#[test]
fn switches_are_told_before_what_happens_after_them() {
    #[derive(Default)]
    struct Told {
        switches: Vec<Nanos>,
        last: Nanos,
        others: u32,
    }
    impl Told {
        fn other(&mut self, now: Nanos) {
            assert!(now >= self.last, "{now:?} after {:?}", self.last);
            self.last = now;
            self.others += 1;
            // All of them up to now, but none later.
            let told = self.switches.last().copied().unwrap_or_default();
            assert!(
                told <= now && told + Nanos::from_ms(1) > now,
                "{told:?} before {now:?}"
            );
        }
    }
    impl Recorder for Told {
        fn emit(&mut self, now: Nanos, fact: Fact<'_>) {
            match fact {
                Fact::Decided(record) => {
                    self.other(record.snapshot.now);
                }
                Fact::Ended(_) => {
                    self.other(now);
                }
                Fact::Switched(switches) => {
                    self.switches
                        .extend(switches.iter().map(|switch| switch.at));
                }
                _ => {}
            }
        }
    }
    let config = config(
        &machine(2, 1),
        vec![
            job(&compute(), 1_500),
            job(&sleepy(), 500),
            job(&compute(), 700),
        ],
    );
    let mut sim = Other {
        sim: Sim::new(config.clone()).unwrap(),
        has_plans: true,
        told: Nanos::ZERO,
    };
    let entry = find_policy("round-robin").unwrap();
    let mut policy = (entry.build)(&config.machine.params_for(entry).unwrap());
    let settings = RunConfig {
        actuation: Actuation::Plans,
        ..RunConfig::default()
    };
    let mut told = Told::default();
    run(&mut sim, &mut *policy, &mut told, specs(&config), &settings).unwrap();
    assert!(told.others > 6, "{}", told.others);
    // Each once, to the last.
    let all: Vec<Nanos> = (0..sim.told.0 / 1_000_000).map(Nanos::from_ms).collect();
    assert_eq!(told.switches, all);
}

#[test]
fn plans_are_asked_for_only_where_they_are_carried_out() {
    let config = config(&machine(2, 1), vec![job(&compute(), 100)]);
    let mut without = Other {
        sim: Sim::new(config.clone()).unwrap(),
        has_plans: false,
        told: Nanos::ZERO,
    };
    let entry = find_policy("fifo").unwrap();
    let mut policy = (entry.build)(&Params::resolve("fifo", entry.params, &[]).unwrap());
    let settings = RunConfig {
        actuation: Actuation::Plans,
        ..RunConfig::default()
    };
    let result = run(
        &mut without,
        &mut *policy,
        &mut NullRecorder,
        specs(&config),
        &settings,
    );
    assert!(
        matches!(result, Err(RunError::NoPlans(Absence::NotOffered))),
        "{result:?}"
    );
}

#[test]
fn a_timeout_counts_the_time_with_a_cpu() {
    // By plans: a job that waits for a gap is not placed, and one that sleeps on its CPU is.
    let jobs = vec![
        job(&sleepy(), 2_000),
        job(&compute(), 1_000),
        job(&compute(), 1_000),
    ];
    let config = config(&machine(1, 1), jobs);
    let timed_out = |timeout_ms: u64| {
        let entry = find_policy("round-robin").unwrap();
        let mut policy = (entry.build)(&config.machine.params_for(entry).unwrap());
        let settings = RunConfig {
            timeout: Some(TimeLimit::Fixed(Nanos::from_ms(timeout_ms))),
            actuation: Actuation::Plans,
            ..RunConfig::default()
        };
        let mut sim = Sim::new(config.clone()).unwrap();
        let result = run(
            &mut sim,
            &mut *policy,
            &mut NullRecorder,
            specs(&config),
            &settings,
        )
        .unwrap();
        result
            .tasks
            .iter()
            .map(|task| (task.timed_out, task.ran.as_s()))
            .collect::<Vec<_>>()
    };
    // The sleeper has its CPU for 2 s, and works for half of that. The others fill in for longer than they are placed.
    let [(sleeper, ran), (filler, _), (other, _)] = timed_out(1_400)[..] else {
        panic!()
    };
    assert!((sleeper, filler, other) == (true, false, false), "{ran} s");
    assert!((1.4..1.7).contains(&ran), "{ran} s");
    assert!(timed_out(3_000).iter().all(|(timed_out, _)| !timed_out));
}
