//! Every policy on every machine that suits it, and results of the world that are not among its inputs.

use crate::support::*;
use cosched_core::model::bus;
use cosched_core::*;
use cosched_sim::*;
use std::collections::BTreeSet;
use std::sync::Arc;

fn named(name: &str) -> Arc<ProgramSpec> {
    Arc::new(builtin_program(name).unwrap_or_else(|| panic!("{name} is built in")))
}

fn built_in(name: &str) -> MachineSpec {
    builtin_machine(name).unwrap_or_else(|| panic!("{name} is built in"))
}

#[test]
fn every_policy_runs_on_every_machine_that_suits_it() {
    let programs = [
        "mcf",
        "libquantum",
        "gamess",
        "gcc",
        "lbm",
        "sphinx3",
        "workload-chase",
        "bus-50",
    ]
    .map(named);
    let mut ran = BTreeSet::new();
    for machine in MACHINES {
        let machine = built_in(machine.name);
        let cpus = machine.machine().cpus.len();
        // Twice as many jobs as CPUs, of which one needs two.
        let jobs = (0..2 * cpus).map(|n| SimJob {
            cpus: if n == 3 { 2 } else { 1 },
            ..job(
                &programs[n % programs.len()],
                if cpus > 64 { 250 } else { 700 },
            )
        });
        let config = SimConfig {
            variation: DEFAULT_VARIATION,
            ..config(&machine, jobs.collect())
        };
        let capabilities = Sim::new(config.clone()).unwrap().capabilities();
        for entry in POLICIES {
            let params = machine.params_for(entry).unwrap();
            let needs = entry.shortfalls(&params, &capabilities);
            if let Some(missing) = needs
                .iter()
                .find(|need| need.importance == Importance::Required)
            {
                // Here all counters count and all jobs are known, so only a second type of core can be missing.
                assert_eq!(
                    missing.capability,
                    Capability::CoreTypes,
                    "{} on {}",
                    entry.name,
                    machine.name
                );
                assert_eq!(machine.core_types.len(), 1);
                continue;
            }
            let (result, mut sim) = run_on(&config, entry.name);
            assert_eq!(
                result.policy_faults, 0,
                "{} on {}",
                entry.name, machine.name
            );
            for task in &result.tasks {
                assert_eq!(
                    task.exit,
                    Some(Exit::Code(0)),
                    "{} on {}: {}",
                    entry.name,
                    machine.name,
                    task.spec.name
                );
                let wanted = sim.solo_runs()[task.spec.id.0 as usize].instructions as f64;
                assert!((sim.executed(task.spec.id) - wanted).abs() <= 1e-9 * wanted);
            }
            ran.insert(entry.name);
        }
    }
    // Every policy ran on some machine.
    assert_eq!(ran.len(), POLICIES.len());
}

/// EFS, Figure 4: the throughput of four identical tasks against their solo utilisation of the bus. The figure follows
/// the paper's model within 10 %. The world has a measured latency curve in place of the model's queue. Up to half of
/// the peak the curve hardly queues, so the world lets more through there, by less than a quarter. Towards saturation
/// both agree.
#[test]
fn four_identical_tasks_share_the_bus_as_in_efs_figure_4() {
    let machine = built_in("i5-2500-1.6ghz");
    let mut last = f64::INFINITY;
    for share in (10..=100).step_by(10) {
        let program = named(&format!("bus-{share}"));
        let (result, _) = run_on(&config(&machine, vec![job(&program, 1_000); 4]), "fifo");
        let throughput = 4.0 / result.turnaround.as_s();
        let demand = f64::from(share) / 100.0;
        let model = bus::throughput(&[demand; 4]).unwrap();
        assert!(
            throughput > 0.99 * model && throughput < 1.25 * model,
            "{share} %: {throughput} {model}"
        );
        assert!(throughput < last, "{share} %");
        last = throughput;
    }
    assert!(last < 1.1, "{last}");
}

/// Programs that use the cache fall below the model, which knows only the bus: they evict each other's lines.
#[test]
fn programs_that_share_a_cache_fall_below_the_model() {
    let machine = built_in("i5-2500-1.6ghz");
    let mut below = 0;
    for name in [
        "mcf",
        "gcc",
        "omnetpp",
        "soplex",
        "sphinx3",
        "xalancbmk",
        "lbm",
        "astar",
    ] {
        let program = named(name);
        let config = config(&machine, vec![job(&program, 2_000); 4]);
        let (result, sim) = run_on(&config, "fifo");
        let throughput = 8.0 / result.turnaround.as_s();
        let writes = program.memory.writes_per_ki / program.memory.reads_per_ki;
        let demand = sim.solo_runs()[0].mm_reads.per_us() * (1.0 + writes) / 150.0;
        let model = bus::throughput(&[demand; 4]).unwrap();
        below += usize::from(throughput < 0.95 * model);
    }
    assert!(below >= 6, "{below} of 8");
}

/// Four walkers of 8 MB and four loops on two CPUs. With slices of a few ms the walkers read their working set again
/// and again; with quanta of 200 ms they do not. A real machine of this kind took 34 to 45 s against 18 to 23 s.
#[test]
fn on_the_small_virtual_machine_slices_cost_more_than_quanta() {
    let machine = built_in("epyc-2cpu");
    let mut jobs = vec![job(&named("workload-chase"), 2_000); 4];
    jobs.extend(vec![job(&named("workload-compute"), 2_000); 4]);
    let config = config(&machine, jobs);
    let took = |policy| run_on(&config, policy).0.turnaround.as_s();
    let (linux, quanta) = (took("linux"), took("round-robin"));
    assert!(linux > 1.3 * quanta, "{linux} {quanta}");
}

/// The power of k cores follows from the world's parts. EFS measured P_0 = 26.6 W, and 22.6, 12, 12.3 and 12.3 W for
/// each further core. The first core costs more than the others, because it wakes what they share.
#[test]
fn power_grows_with_the_first_core_most() {
    let machine = built_in("i5-2500");
    let mean = |copies: usize| {
        let watts = ["gcc", "hmmer", "milc", "povray"].map(|name| {
            let (result, _) = run_on(
                &config(&machine, vec![job(&named(name), 500); copies]),
                "fifo",
            );
            result.energy_j.value().unwrap() / result.turnaround.as_s()
        });
        watts.iter().sum::<f64>() / 4.0
    };
    let powers: Vec<f64> = (1..=4).map(mean).collect();
    let first = powers[0] - 26.6;
    let others: Vec<f64> = powers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(first > 15.0 && first < 30.0, "{first}");
    assert!(
        others
            .iter()
            .all(|&watts| watts > 4.0 && watts < 0.8 * first),
        "{others:?}"
    );
}
