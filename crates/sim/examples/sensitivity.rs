//! How much the results depend on each assumed number: the thirteen mixes of `mixes/perf-fair` on `xeon-e5645`, with one
//! number changed at a time. Prints the table of docs/simulator.md. `cargo run --release -p cosched-sim --example
//! sensitivity`, in the repository's root.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

use cosched_core::*;
use cosched_sim::machine::Replacement;
use cosched_sim::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

/// Work of each job: what it does alone in this time.
const WORK_MS: u64 = 20_000;

type Change = (&'static str, Box<dyn Fn(&mut SimConfig)>);

fn machine(change: impl Fn(&mut MachineSpec) + 'static) -> Box<dyn Fn(&mut SimConfig)> {
    Box::new(move |config| {
        let mut machine = (*config.machine).clone();
        change(&mut machine);
        config.machine = Arc::new(machine);
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let changes: Vec<Change> = vec![
        ("as it is", machine(|_| ())),
        ("seed 2", Box::new(|config| config.seed = 2)),
        ("seed 3", Box::new(|config| config.seed = 3)),
        ("1 channel", machine(|m| m.memory.channels = 1)),
        ("2 channels", machine(|m| m.memory.channels = 2)),
        ("idle latency 60 ns", machine(|m| m.memory.idle_latency_ns = 60.0)),
        ("idle latency 95 ns", machine(|m| m.memory.idle_latency_ns = 95.0)),
        ("LLC hit 7.8 ns", machine(|m| m.llc.hit_ns *= 0.5)),
        ("LLC hit 31 ns", machine(|m| m.llc.hit_ns *= 2.0)),
        ("any line replaced", machine(|m| m.llc.replacement = Replacement::Random)),
        ("stream loss 0", machine(|m| m.memory.stream_loss = 0.0)),
        ("stream loss 5 %", machine(|m| m.memory.stream_loss = 0.05)),
        ("LLC 8 MB", machine(|m| m.llc.mb = 8.0)),
        ("LLC 18 MB", machine(|m| m.llc.mb = 18.0)),
        ("issue share 0.2", machine(|m| m.smt.issue_share = 0.2)),
        ("issue share 0.6", machine(|m| m.smt.issue_share = 0.6)),
        ("L1 wait 0", machine(|m| m.smt.l1_wait_cycles = 0.0)),
        ("L1 wait 2", machine(|m| m.smt.l1_wait_cycles = 2.0)),
        ("L1 ports 2", machine(|m| m.core_types[0].l1_ports = 2.0)),
        ("CPI factor 0.9", machine(|m| m.core_types[0].cpi_factor = 0.9)),
        ("CPI factor 1.3", machine(|m| m.core_types[0].cpi_factor = 1.3)),
        ("period 6 ms", machine(|m| m.kernel.period_ms = 6.0)),
        ("period 48 ms", machine(|m| m.kernel.period_ms = 48.0)),
        ("balance 8 ms", machine(|m| m.kernel.balance_ms = 8.0)),
        ("balance 128 ms", machine(|m| m.kernel.balance_ms = 128.0)),
        ("switch 10 us", machine(|m| m.kernel.switch_us = 10.0)),
        ("migration 200 us", machine(|m| m.kernel.migration_us = 200.0)),
        ("noise 0", machine(|m| m.counters.noise = 0.0)),
        ("noise 5 %", machine(|m| m.counters.noise = 0.05)),
        ("variation 0", Box::new(|config| config.variation = 0.0)),
        ("variation 10 %", Box::new(|config| config.variation = 0.1)),
    ];
    let mixes: Vec<Vec<Arc<ProgramSpec>>> = (1..=13).map(read_mix).collect::<Result<_, _>>()?;
    println!("| changed | linux s | reads/us | unfairness | perf | unf. | fair | unf. | perf-fair | unf. |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (name, change) in changes {
        let mut all: BTreeMap<&str, Vec<Outcome>> = BTreeMap::new();
        for mix in &mixes {
            let job = |program: &Arc<ProgramSpec>| SimJob {
                program: program.clone(),
                work: Work::SoloTime(Nanos::from_ms(WORK_MS)),
                cpus: 1,
                nice: 0,
            };
            let machine = builtin_machine("xeon-e5645").ok_or("no such machine")?;
            let mut config = SimConfig::new(Arc::new(machine), mix.iter().map(job).collect(), 1);
            change(&mut config);
            for policy in ["linux", "bandwidth", "fair", "perf-fair"] {
                all.entry(policy).or_default().push(run_on(&config, policy)?);
            }
        }
        let mean = |policy: &str, of: &dyn Fn(usize, &Outcome) -> f64| {
            all[policy].iter().enumerate().map(|(mix, outcome)| of(mix, outcome)).sum::<f64>() / mixes.len() as f64
        };
        // The papers give geometric means of the per cent values.
        let unfairness = |policy: &str| {
            let logs = all[policy].iter().map(|outcome| outcome.unfairness.max(0.1).ln());
            (logs.sum::<f64>() / mixes.len() as f64).exp()
        };
        let gain = |policy: &str| {
            mean(policy, &|mix, outcome| (all["linux"][mix].turnaround / outcome.turnaround - 1.0) * 100.0)
        };
        print!(
            "| {name} | {:.0} | {:.0} | {:.0} % |",
            mean("linux", &|_, outcome| outcome.turnaround),
            mean("linux", &|_, outcome| outcome.reads),
            unfairness("linux")
        );
        for policy in ["bandwidth", "fair", "perf-fair"] {
            print!(" {:+.1} % | {:.0} % |", gain(policy), unfairness(policy));
        }
        println!();
    }
    Ok(())
}

/// The result of a run: seconds, lines read per microsecond, and unfairness in per cent above 1.
struct Outcome {
    turnaround: f64,
    reads: f64,
    unfairness: f64,
}

fn run_on(config: &SimConfig, policy: &str) -> Result<Outcome, Box<dyn Error>> {
    let entry = find_policy(policy).ok_or("no such policy")?;
    let params = config.machine.params_for(entry)?;
    let mut sim = Sim::new(config.clone())?;
    let tasks = (0..config.jobs.len() as u32).map(|id| TaskSpec::new(id, &format!("job-{id}"))).collect();
    let result = run(&mut sim, &mut *(entry.build)(&params), &mut NullRecorder, tasks, &RunConfig::default())?;
    let slowdowns: Vec<f64> = (result.tasks.iter().zip(sim.solo_runs()))
        .filter_map(|(task, solo)| task.turnaround().map(|took| took.share_of(solo.time)))
        .collect();
    let least = slowdowns.iter().copied().fold(f64::INFINITY, f64::min);
    let most = slowdowns.iter().copied().fold(0.0, f64::max);
    let reads: u64 = result.tasks.iter().filter_map(|task| task.counts[Counter::MmReads].value()).sum();
    Ok(Outcome {
        turnaround: result.turnaround.as_s(),
        reads: reads as f64 / result.turnaround.as_us(),
        unfairness: (most / least - 1.0) * 100.0,
    })
}

/// The programs of a mix file that this repository holds.
fn read_mix(number: u32) -> Result<Vec<Arc<ProgramSpec>>, Box<dyn Error>> {
    let text = std::fs::read_to_string(format!("mixes/perf-fair/mix{number:02}.toml"))?;
    let table: toml::Table = text.parse()?;
    let mut programs = Vec::new();
    for job in table.get("job").and_then(|jobs| jobs.as_array()).into_iter().flatten() {
        let name = job.get("program").and_then(|name| name.as_str()).ok_or("a job without a program")?;
        let copies = job.get("copies").and_then(|copies| copies.as_integer()).unwrap_or(1);
        let program = Arc::new(builtin_program(name).ok_or("no such program")?);
        (0..copies).for_each(|_| programs.push(program.clone()));
    }
    Ok(programs)
}
