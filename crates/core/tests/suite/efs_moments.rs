//! `efs` at single moments: the inputs of its decisions.

use cosched_core::model::bus;
use cosched_core::model::power::PowerModel;
use cosched_core::*;
use std::sync::Arc;

const QUANTUM: Nanos = Nanos::from_ms(200);
/// 4 ms of the kernel's 18 ms.
const LEAST_SLICE: Nanos = Nanos(44_444_444);
/// Assumed capacity of the bus in `efs`, in lines per microsecond.
const BUS: u64 = 150;

fn four() -> Machine {
    Machine::uniform("four", 4, 1)
}

fn policy(settings: &[(&str, &str)]) -> Box<dyn Policy> {
    let entry = find_policy("efs").unwrap();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    (entry.build)(&Params::resolve("efs", entry.params, &settings).unwrap())
}

/// One task at a moment.
fn view(id: u32, runs_on: Option<u32>, waiting_since: Nanos) -> TaskView {
    let cpus: CpuSet = runs_on.map(CpuId).into_iter().collect();
    TaskView {
        id: TaskId(id),
        name: "t".into(),
        cpus: 1,
        allowed: None,
        weight: 1.0,
        origin: Origin::Spawned,
        control: Control::FULL,
        arrived: Nanos::ZERO,
        bus_use_milli: None,
        solo_reads: None,
        memory: None,
        turn: 0,
        expected: None,
        running: runs_on.map(|_| Running {
            placement: Placement::Exclusive {
                cpus: cpus.clone(),
                whole_core: false,
            },
            purpose: Purpose::Run,
            since: Nanos::ZERO,
            lease_end: None,
        }),
        asleep: false,
        waiting_since,
        overdue: false,
        home_cpu: None,
        last_cpus: cpus,
        estimates: Estimates {
            executed: 1,
            mm_reads: Reading::Value(Rate(1_000)),
            ..Estimates::default()
        },
    }
}

/// Number of waiting tasks, each with this demand, that run on a machine.
fn admitted(machine: Machine, tasks: u32, demand: f64) -> usize {
    machine.validate().unwrap();
    let mut tasks: Vec<TaskView> = (0..tasks).map(|id| view(id, None, Nanos::ZERO)).collect();
    let rate = Rate((BUS as f64 * 1e3 * demand) as u64);
    tasks
        .iter_mut()
        .for_each(|task| task.estimates.mm_reads = Reading::Value(rate));
    let now = Nanos::from_ms(1_000);
    let snap = Snapshot {
        machine: Arc::new(machine),
        now,
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: tasks.into_iter().map(Box::new).collect(),
    };
    let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
    assert_eq!(check(&snap, &decision), Ok(()));
    decision
        .changes
        .iter()
        .filter(|change| matches!(change, Change::Place { .. }))
        .count()
}

#[test]
fn the_objective_decides_between_energy_and_speed() {
    // Eight tasks that need a third of the bus each, with earlier measurements.
    let machine = Arc::new(Machine::uniform("eight", 8, 1));
    let runs = |settings: &[(&str, &str)]| {
        let mut tasks: Vec<TaskView> = (0..8).map(|id| view(id, None, Nanos::ZERO)).collect();
        tasks
            .iter_mut()
            .for_each(|task| task.estimates.mm_reads = Reading::Value(Rate(BUS * 1_000 / 3)));
        let now = Nanos::from_ms(1_000);
        let snap = Snapshot {
            machine: machine.clone(),
            now,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy(settings).decide(&snap, &mut Rng::new(1));
        decision
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Place { .. }))
            .count()
    };
    let [energy, edp, throughput] =
        ["energy", "edp", "throughput"].map(|objective| runs(&[("objective", objective)]));
    assert!(
        energy > 1 && energy < edp && edp < throughput && throughput == 8,
        "{energy} {edp} {throughput}"
    );
    // If the first core is cheap compared to the others, fewer tasks run; if the others are cheap, more.
    assert!(runs(&[("p0_w", "0")]) < energy && runs(&[("p2_w", "1"), ("p_more_w", "1")]) > energy);
}

#[test]
fn a_sleeper_that_wakes_comes_first_but_not_for_long() {
    let mut policy = policy(&[]);
    let machine = Arc::new(Machine::uniform("one", 1, 1));
    let mut decide = |now: Nanos, trigger: Trigger, tasks: Vec<TaskView>| {
        let snap = Snapshot {
            machine: machine.clone(),
            now,
            triggers: vec![trigger],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy.decide(&snap, &mut Rng::new(1));
        assert_eq!(check(&snap, &decision), Ok(()));
        let placed = decision
            .changes
            .iter()
            .find(|change| matches!(change, Change::Place { .. }))
            .map(Change::task);
        (placed, decision.next_wake.unwrap())
    };
    // Tasks 0 and 1 take turns for a minute, and task 2 sleeps.
    let (mut now, mut runs, mut since) = (Nanos::ZERO, None, [Nanos::ZERO; 3]);
    let sleeping = |now: Nanos, runs: Option<u32>, since: [Nanos; 3]| {
        let mut tasks: Vec<TaskView> = (0..3)
            .map(|id| view(id, runs.filter(|&r| r == id).map(|_| 0), since[id as usize]))
            .collect();
        tasks[2].asleep = true;
        tasks
            .iter_mut()
            .filter(|task| task.running.is_some())
            .for_each(|task| task.waiting_since = now);
        tasks
    };
    while now < Nanos::from_ms(60_000) {
        let (next, wake) = decide(now, Trigger::QuantumEnd, sleeping(now, runs, since));
        if let Some(last) = runs.filter(|&last| Some(TaskId(last)) != next) {
            since[last as usize] = now;
        }
        runs = next.map(|id| id.0);
        assert!(runs.is_some_and(|id| id < 2));
        now = wake;
    }
    // It wakes in the middle of a slice: no task is stopped at once, but soon.
    now = now - Nanos::from_ms(50);
    let awake = |now: Nanos, runs: Option<u32>, since: [Nanos; 3]| {
        let mut tasks = sleeping(now, runs, since);
        tasks[2].asleep = false;
        tasks
    };
    since[2] = now;
    let (placed, wake) = decide(now, Trigger::Woke(TaskId(2)), awake(now, runs, since));
    assert_eq!(placed, None);
    assert_eq!(wake, now + LEAST_SLICE);
    // Then it is first in line, although another task has waited longer ...
    let mut turns = Vec::new();
    now = wake;
    for _ in 0..12 {
        let (next, wake) = decide(now, Trigger::QuantumEnd, awake(now, runs, since));
        if let Some(last) = runs.filter(|&last| Some(TaskId(last)) != next) {
            since[last as usize] = now;
        }
        runs = next.map(|id| id.0);
        turns.extend(runs);
        now = wake;
    }
    // ... for at most a period, however long it slept; after that it is one of three.
    assert_eq!(turns[0], 2, "{turns:?}");
    let in_a_row = turns.iter().take_while(|&&id| id == 2).count();
    assert!((2..=5).contains(&in_a_row), "{turns:?}");
    assert!(
        turns[in_a_row..].iter().filter(|&&id| id == 2).count() <= 3,
        "{turns:?}"
    );
}

#[test]
fn a_starved_slice_is_kept_through_the_end_of_a_quantum_but_not_from_the_overdue() {
    let machine = Arc::new(Machine::uniform("two", 2, 1));
    let now = Nanos::from_ms(10_000);
    let end = now + Nanos::from_ms(120);
    for (overdue, kept) in [(false, true), (true, false)] {
        // A hog in its slice; two hogs and a light task have waited longer.
        let mut tasks = vec![view(0, Some(0), now)];
        tasks.extend((1..4).map(|id| view(id, None, now - Nanos::from_ms(1_000))));
        tasks[..3]
            .iter_mut()
            .for_each(|task| task.estimates.mm_reads = Reading::Value(Rate(BUS * 1_000)));
        tasks[0].running.as_mut().unwrap().lease_end = Some(end);
        tasks[1..3]
            .iter_mut()
            .for_each(|task| task.overdue = overdue);
        let snap = Snapshot {
            machine: machine.clone(),
            now,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
        assert_eq!(check(&snap, &decision), Ok(()));
        let stopped = decision.changes.contains(&Change::Stop { task: TaskId(0) });
        assert_eq!(stopped, !kept);
        let placed = |id| {
            decision
                .changes
                .iter()
                .any(|c| c.task() == TaskId(id) && matches!(c, Change::Place { .. }))
        };
        if kept {
            // It owns the bus; a task that does not need the bus runs beside it, and all CPUs are reallocated when the
            // slice ends.
            assert_eq!([0, 1, 2, 3].map(placed), [false, false, false, true]);
            assert!(decision.next_wake.unwrap() <= end);
        } else {
            assert_eq!([0, 1, 2, 3].map(placed), [false, true, true, false]);
        }
    }
}

/// EFS, section 4.3: each of two is the first of its CPU's queue, and has not run for longer than t_global, a second.
#[test]
fn of_the_starved_the_one_that_has_not_run_for_longest_has_the_slice() {
    let now = Nanos::from_ms(10_000);
    for (waits_s, longest) in [([3, 2], 1), ([2, 3], 2)] {
        let waiting = |id: u32| TaskView {
            running: None,
            ..view(
                id,
                Some(id - 1),
                now - Nanos::from_ms(1_000 * waits_s[id as usize - 1]),
            )
        };
        let mut tasks = vec![view(0, Some(0), now), waiting(1), waiting(2)];
        for task in &mut tasks {
            task.estimates.mm_reads = Reading::Value(Rate(BUS * 1_000));
        }
        let snap = Snapshot {
            machine: Arc::new(Machine::uniform("two", 2, 1)),
            now,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
        let has_slice = |change: &Change| {
            matches!(
                change,
                Change::Place {
                    lease_end: Some(_),
                    ..
                }
            )
        };
        let starved = decision.changes.iter().find(|change| has_slice(change));
        assert_eq!(starved.map(Change::task), Some(TaskId(longest)));
    }
}

/// EFS, section 4.3: the timeslices of a CPU's tasks make a period, which is a quantum for two.
#[test]
fn a_slice_is_the_part_of_the_period_that_the_weight_has() {
    for (weights, slice_ms) in [([1.0, 3.0], 50), ([1.0, 1.0], 100), ([3.0, 1.0], 150)] {
        let of = |id: u32| TaskView {
            weight: weights[id as usize],
            ..view(id, None, Nanos::ZERO)
        };
        let snap = Snapshot {
            machine: Arc::new(Machine::uniform("one", 1, 1)),
            now: QUANTUM,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: [0, 1].map(of).map(Box::new).to_vec(),
        };
        let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
        // The first runs.
        let slice = decision.next_wake.unwrap() - QUANTUM;
        assert!(
            slice.0.abs_diff(slice_ms * 1_000_000) < 1_000,
            "{weights:?}: {slice:?}"
        );
    }
}

#[test]
fn time_asleep_on_a_cpu_is_not_charged() {
    let mut policy = policy(&[]);
    let machine = Arc::new(Machine::uniform("two", 2, 1));
    let mut vruntimes = Vec::new();
    for quantum in 0..4 {
        let now = Nanos(QUANTUM.0 * quantum);
        let mut tasks = vec![view(0, Some(0), now), view(1, Some(1), now)];
        tasks[1].asleep = quantum >= 1;
        let snap = Snapshot {
            machine: machine.clone(),
            now,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        policy.decide(&snap, &mut Rng::new(1));
        let state = policy.save();
        vruntimes.push([0, 1].map(|task| state["tasks"][task]["vruntime"].as_u64().unwrap()));
    }
    assert_eq!(
        vruntimes,
        [
            [0, 0],
            [QUANTUM.0, 0],
            [2 * QUANTUM.0, 0],
            [3 * QUANTUM.0, 0]
        ]
    );
}

#[test]
fn a_second_thread_costs_no_core_and_each_memory_domain_has_its_bus() {
    // Four tasks that need half of the bus each: the third is not worth a core, but it is worth a thread.
    assert_eq!(admitted(four(), 4, 0.5), 2);
    assert_eq!(admitted(Machine::uniform("two by two", 2, 2), 4, 0.5), 4);
    // One hog per bus.
    assert_eq!(admitted(four(), 4, 0.95), 1);
    let mut two = four();
    two.cpus[2..]
        .iter_mut()
        .for_each(|cpu| cpu.memory_domain = 1);
    two.memory_domains = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
    assert_eq!(admitted(two, 4, 0.95), 2);
}

/// Where some waiting tasks are placed on four cores of two CPUs, beside tasks that stay on these CPUs.
fn joined(stay: &[u32], last: &[Option<u32>]) -> Vec<Option<String>> {
    let mut tasks: Vec<TaskView> = stay
        .iter()
        .zip(0..)
        .map(|(&cpu, id)| view(id, Some(cpu), Nanos::ZERO))
        .collect();
    tasks
        .iter_mut()
        .for_each(|task| task.control.freeze = false);
    for (last, id) in last.iter().zip(tasks.len() as u32..) {
        tasks.push(TaskView {
            running: None,
            ..view(id, *last, Nanos::ZERO)
        });
    }
    // The other CPU of core n is n + 4.
    let machine = Arc::new(Machine::uniform("four by two", 4, 2));
    let now = Nanos::from_ms(1_000);
    let snap = Snapshot {
        machine,
        now,
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: tasks.into_iter().map(Box::new).collect(),
    };
    let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
    assert_eq!(check(&snap, &decision), Ok(()));
    let place = |id: u32| {
        let change = decision
            .changes
            .iter()
            .find(|change| change.task() == TaskId(id))?;
        let Change::Place { placement, .. } = change else {
            return None;
        };
        Some(placement.cpus().to_string())
    };
    (stay.len() as u32..(stay.len() + last.len()) as u32)
        .map(place)
        .collect()
}

#[test]
fn a_core_is_woken_for_as_many_as_it_has_room_for() {
    // Six tasks on three cores: 73.5 W / 6 = 12.25 W per task. A core for one more costs 12.3 W, for two more 6.15 W
    // each.
    let full = [0, 1, 2, 4, 5, 6];
    assert_eq!(joined(&full, &[None]), [None]);
    let mut both: Vec<String> = joined(&full, &[None, None]).into_iter().flatten().collect();
    both.sort_unstable();
    assert_eq!(both, ["3", "7"]);
}

#[test]
fn nobody_shares_a_core_while_another_is_worth_waking() {
    // It ran beside the task on core 0 before.
    assert_eq!(joined(&[0], &[Some(4)]), [Some("5".to_owned())]);
    // If every core is busy, its home is as good as any other.
    assert_eq!(joined(&[0, 1, 2, 3], &[Some(6)]), [Some("6".to_owned())]);
}

/// By bisection, the largest demand with which a task beside these does not raise the energy per work.
fn threshold(running: &[f64], power: &PowerModel) -> f64 {
    let energy = |tasks: &[f64]| power.watts(tasks.len()) / bus::throughput(tasks).unwrap();
    if running.is_empty() {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = 0.5 * (low + high);
        if energy(&[running, &[middle]].concat()) <= energy(running) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[test]
fn who_runs_and_why_the_others_wait_is_what_the_exact_model_says() {
    // Various demands, all waiting equally long: chosen in the order of their numbers.
    let machine = four();
    let demands = [0.3, 0.55, 0.7, 0.2, 0.45];
    let mut tasks: Vec<TaskView> = (0..5).map(|id| view(id, None, Nanos::ZERO)).collect();
    for (task, demand) in tasks.iter_mut().zip(demands) {
        task.estimates.mm_reads = Reading::Value(Rate((BUS as f64 * 1e3 * demand) as u64));
    }
    let now = Nanos::from_ms(1_000);
    let snap = Snapshot {
        machine: Arc::new(machine),
        now,
        triggers: vec![Trigger::QuantumEnd],
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: tasks.into_iter().map(Box::new).collect(),
    };
    let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
    let power = PowerModel::new([26.6, 22.6, 12.0, 12.3]).unwrap();
    let (mut running, mut refused) = (Vec::new(), Vec::new());
    for (id, demand) in demands.into_iter().enumerate() {
        let exact = threshold(&running, &power);
        if running.len() < 4 && demand <= exact {
            running.push(demand);
        } else {
            refused.push(id as u32);
        }
    }
    assert!(running.len() > 1 && refused.len() > 1, "{running:?}");
    // They are told what they do not fit beside all that run, and not beside those that were chosen before them.
    let exact = threshold(&running, &power);
    for id in refused {
        let wait = decision
            .waits
            .iter()
            .find(|wait| wait.task == TaskId(id))
            .unwrap();
        let WaitReason::BusFull {
            demand_milli,
            threshold_milli,
            energy_with_mj,
            energy_without_mj,
            ..
        } = wait.reason
        else {
            panic!("{wait:?}")
        };
        let close = |ours: f64, exact: f64| (ours - exact).abs() < 0.02 * exact;
        let demand = demands[id as usize];
        let energy =
            |tasks: &[f64]| 1e3 * power.watts(tasks.len()) / bus::throughput(tasks).unwrap();
        assert!(
            close(f64::from(demand_milli) / 1e3, demand)
                && close(f64::from(threshold_milli) / 1e3, exact)
        );
        assert!(
            close(energy_without_mj as f64, energy(&running)),
            "{energy_without_mj}"
        );
        assert!(
            close(
                energy_with_mj as f64,
                energy(&[&running[..], &[demand]].concat())
            ),
            "{energy_with_mj}"
        );
    }
}

#[test]
fn writes_count_as_reads_do() {
    let runs = |reads: u64, writes: Reading<Rate>| {
        let mut tasks: Vec<TaskView> = (0..4).map(|id| view(id, None, Nanos::ZERO)).collect();
        for task in &mut tasks {
            task.estimates.mm_reads = Reading::Value(Rate(reads));
            task.estimates.mm_writes = writes;
        }
        let now = Nanos::from_ms(1_000);
        let snap = Snapshot {
            machine: Arc::new(four()),
            now,
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: None,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy(&[]).decide(&snap, &mut Rng::new(1));
        decision
            .changes
            .iter()
            .filter(|change| matches!(change, Change::Place { .. }))
            .count()
    };
    let half = BUS * 1_000 / 2;
    assert_eq!(runs(half, Reading::Absent(Absence::NoSuchEvent)), 2);
    assert_eq!(runs(half, Reading::Value(Rate(half - 1_000))), 1);
    assert_eq!(runs(half / 5, Reading::Value(Rate(half * 4 / 5))), 2);
}

#[test]
fn where_the_backend_admits_it_may_measure_too() {
    let mut policy = policy(&[]);
    let machine = Arc::new(four());
    let mut decide = |now: u64, measured: &[(u32, u16)]| {
        let demand = |&(task, class): &(u32, u16)| Demand {
            task: TaskId(task),
            class,
        };
        let snap = Snapshot {
            machine: machine.clone(),
            now: Nanos::from_ms(now),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits: Some(measured.iter().map(demand).collect()),
            contention: Default::default(),
            tasks: (0..2)
                .map(|id| Box::new(view(id, None, Nanos::ZERO)))
                .collect(),
        };
        let decision = policy.decide(&snap, &mut Rng::new(1));
        assert_eq!(check(&snap, &decision), Ok(()));
        decision.admission.map(|admission| {
            admission
                .demands
                .iter()
                .map(|demand| demand.class)
                .collect::<Vec<u16>>()
        })
    };
    // Nothing is measured yet: one over the number of cores, as everywhere.
    let first = decide(0, &[]).unwrap();
    assert!(first[0] == first[1] && first[0] > 0, "{first:?}");
    assert_eq!(decide(200, &[]), None);
    // Its measurements are adopted, and published, so that the next decision is the same.
    assert_eq!(decide(400, &[(1, 3_200)]).unwrap(), [first[0], 3_200]);
    assert_eq!(decide(600, &[(1, 3_200)]), None);
}

#[test]
fn where_the_backend_admits_it_has_all_tasks_and_their_demands() {
    let mut policy = policy(&[("demand", "given")]);
    let machine = Arc::new(four());
    let mut decide = |now: u64, admits: Option<Vec<Demand>>, tasks: Vec<TaskView>| {
        let snap = Snapshot {
            machine: machine.clone(),
            now: Nanos::from_ms(now),
            triggers: vec![Trigger::QuantumEnd],
            queued: 0,
            ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
            admits,
            contention: Default::default(),
            tasks: tasks.into_iter().map(Box::new).collect(),
        };
        let decision = policy.decide(&snap, &mut Rng::new(1));
        assert_eq!(check(&snap, &decision), Ok(()));
        decision
    };
    let of = |id: u32, milli: u16, mask: Option<&str>| {
        let allowed = mask.map(|mask| mask.parse().unwrap());
        TaskView {
            bus_use_milli: Some(milli),
            allowed,
            ..view(id, None, Nanos::ZERO)
        }
    };
    let mut tasks = vec![
        of(0, 1_000, None),
        of(1, 1_000, None),
        of(2, 200, Some("1-2")),
    ];
    let first = decide(0, Some(Vec::new()), tasks.clone());
    let placed: Vec<(TaskId, Placement)> = first
        .changes
        .iter()
        .filter_map(|change| match change {
            Change::Place {
                task, placement, ..
            } => Some((*task, placement.clone())),
            _ => None,
        })
        .collect();
    let shared = |task: u32, mask: &str| {
        (
            TaskId(task),
            Placement::Shared {
                mask: mask.parse().unwrap(),
            },
        )
    };
    assert_eq!(
        placed,
        [shared(0, "0-3"), shared(1, "0-3"), shared(2, "1-2")]
    );
    let admission = first.admission.unwrap();
    let classes: Vec<u16> = admission
        .demands
        .iter()
        .map(|demand| demand.class)
        .collect();
    assert!(
        classes[0] == classes[1] && classes[0] > classes[2] && classes[2] > 0,
        "{classes:?}"
    );
    assert_eq!(
        admission.gains.len(),
        3,
        "for the second, third and fourth core"
    );
    // Nothing has changed, so nothing is published.
    for (task, (_, placement)) in tasks.iter_mut().zip(placed) {
        task.running = Some(Running {
            placement,
            purpose: Purpose::Run,
            since: Nanos::ZERO,
            lease_end: None,
        });
    }
    let second = decide(200, Some(Vec::new()), tasks.clone());
    assert!(second.changes.is_empty() && second.admission.is_none() && second.next_wake.is_some());
    // When the kernel stops admitting, the policy decides by itself again: one of the two tasks that fill the bus
    // waits.
    let third = decide(400, None, tasks);
    assert!(
        third
            .changes
            .iter()
            .any(|change| matches!(change, Change::Stop { .. })),
        "{:?}",
        third.changes
    );
}
