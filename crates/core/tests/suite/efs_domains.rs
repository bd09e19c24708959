//! `efs` on a machine with several memory domains, whose idle power counts once.

use cosched_core::model::bus::throughput;
use cosched_core::model::power::PowerModel;
use cosched_core::*;
use std::sync::Arc;

/// Assumed capacity of each bus in `efs`, in lines per microsecond.
const BUS: u64 = 150;

/// Two memory domains of two cores.
fn two_by_two() -> Machine {
    let mut machine = Machine::uniform("two by two", 4, 1);
    machine
        .cpus
        .iter_mut()
        .skip(2)
        .for_each(|cpu| cpu.memory_domain = 1);
    machine.memory_domains = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
    machine.validate().unwrap();
    machine
}

fn view(id: u32, cpu: Option<u32>, home: u32, demand: f64) -> TaskView {
    let spec = TaskSpec::new(id, "t");
    let reads = Rate((BUS as f64 * 1e3 * demand) as u64);
    let estimates = Estimates {
        executed: 1,
        mm_reads: Reading::Value(reads),
        ..Estimates::default()
    };
    let placement = |cpu| Placement::Exclusive {
        cpus: [CpuId(cpu)].into_iter().collect(),
        whole_core: false,
    };
    TaskView {
        running: cpu.map(|cpu| Running {
            placement: placement(cpu),
            purpose: Purpose::Run,
            since: Nanos::ZERO,
            lease_end: None,
        }),
        last_cpus: [CpuId(home)].into_iter().collect(),
        ..TaskView::arriving(&spec, Nanos::ZERO, estimates)
    }
}

#[test]
fn power_at_rest_counts_once_and_the_other_domain_counts_too() {
    // A compute-bound task runs on each memory domain, and a memory-bound task waits at its home on the first one.
    let (p0, step) = (100.0, 10.0);
    let settings = [
        ("p0_w", "100"),
        ("p1_w", "10"),
        ("p2_w", "10"),
        ("p_more_w", "10"),
    ];
    let entry = find_policy("efs").unwrap();
    let settings: Vec<(String, String)> = settings
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let mut policy = (entry.build)(&Params::resolve("efs", entry.params, &settings).unwrap());
    let demand = 0.9;
    let tasks = vec![
        view(0, Some(0), 0, 0.8),
        view(1, Some(2), 2, 0.0),
        view(2, None, 1, demand),
    ];
    // In the second domain only one CPU is free, and the waiting task may use only the first domain.
    let mut tasks = tasks;
    tasks[2].allowed = Some("0-1".parse().unwrap());
    let now = Nanos::from_ms(1_000);
    let snap = Snapshot {
        machine: Arc::new(two_by_two()),
        now,
        triggers: vec![Trigger::Arrived(TaskId(2))],
        queued: 0,
        ideal_bandwidth: Reading::Absent(Absence::NotYetMeasured),
        admits: None,
        contention: Default::default(),
        tasks: tasks.into_iter().map(Box::new).collect(),
    };
    let decision = policy.decide(&snap, &mut Rng::new(1));
    assert_eq!(check(&snap, &decision), Ok(()));
    let [
        Wait {
            reason:
                WaitReason::BusFull {
                    energy_with_mj,
                    energy_without_mj,
                    ..
                },
            ..
        },
    ] = decision.waits[..]
    else {
        panic!("{decision:?}")
    };
    let power = PowerModel::new([p0, step, step, step]).unwrap();
    assert_eq!(power.watts(1) + step, 120.0);
    // Two cores of two domains, with all running tasks of both.
    let without = 120.0 / (throughput(&[0.8]).unwrap() + 1.0);
    let with = 130.0 / (throughput(&[0.8, demand]).unwrap() + 1.0);
    let near = |mj: u64, exact: f64| (mj as f64 / 1e3 / exact - 1.0).abs() < 0.02;
    assert!(
        near(energy_without_mj, without),
        "{energy_without_mj} mJ, exactly {without} J"
    );
    assert!(
        near(energy_with_mj, with),
        "{energy_with_mj} mJ, exactly {with} J"
    );
}
