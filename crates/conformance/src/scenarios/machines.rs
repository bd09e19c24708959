//! A policy on the built-in machines, with more jobs than CPUs.

use super::policies::Decisions;
use crate::fixture::{ScenarioOutcome, ScenarioSkip};
use cosched_core::{Exit, Importance, Nanos, Params, PolicyEntry, RunConfig, TaskSpec, run};
use cosched_sim::{JobWork, Sim, SimConfig, SimJob, builtin_machine, builtin_program};
use std::sync::Arc;

/// At most so many jobs, whatever the machine: a large one would take long.
const MOST_JOBS: usize = 40;

/// The programs of the jobs, in turn.
const PROGRAMS: [&str; 3] = ["workload-compute", "workload-chase", "workload-stream"];

/// Jobs of unequal length and width come one after the other. All end well, and each decision can be carried out.
pub(super) fn many_jobs(machine: &str, entry: &'static PolicyEntry) -> ScenarioOutcome {
    let machine = Arc::new(builtin_machine(machine).expect("a built-in machine"));
    let params = params(entry);
    let capabilities = machine.capabilities(&machine.machine());
    for lack in entry.shortfalls(&params, &capabilities) {
        if lack.importance == Importance::Required {
            let need = lack.capability.text();
            return Err(ScenarioSkip(format!("{need} is missing: {}", lack.why)));
        }
    }
    let count = (2 * machine.machine().cpus.len() + 1).min(MOST_JOBS);
    let jobs: Vec<SimJob> = (0..count).map(simulated).collect();
    let specs: Vec<TaskSpec> = jobs.iter().enumerate().map(spec).collect();
    let config = RunConfig {
        quantum: Nanos::from_s(params.number("quantum_s")),
        traffic: entry.needs_traffic(&params),
        ..RunConfig::default()
    };
    let mut sim = Sim::new(SimConfig::new(machine, jobs, 1)).expect("a simulation");
    let mut policy = (entry.build)(&params);
    let mut decisions = Decisions::default();
    let result = run(&mut sim, &mut *policy, &mut decisions, specs, &config);
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    for task in &result.tasks {
        let exit = task.exit.as_ref();
        assert_eq!(exit, Some(&Exit::Code(0)), "{}", task.spec.name);
    }
    Ok(())
}

/// Short quanta, so that tasks take turns in a short simulation.
fn params(entry: &'static PolicyEntry) -> Params {
    let short = [("quantum_s".to_owned(), "0.05".to_owned())];
    let params = Params::resolve(entry.name, entry.params, &short);
    params.expect("every policy has a quantum")
}

fn simulated(id: usize) -> SimJob {
    let program = builtin_program(PROGRAMS[id % PROGRAMS.len()]).expect("a built-in program");
    let length = Nanos::from_ms(50 + 37 * (id as u64 % 7));
    SimJob {
        program: Arc::new(program),
        work: JobWork::SoloTime(length),
        cpus: width(id),
        nice: 0,
    }
}

/// Every fifth job needs two CPUs at once.
fn width(id: usize) -> u32 {
    if id % 5 == 4 { 2 } else { 1 }
}

fn spec((id, job): (usize, &SimJob)) -> TaskSpec {
    TaskSpec {
        cpus: job.cpus,
        arrives: Nanos::from_ms(7 * (id as u64 / 3)),
        ..TaskSpec::new(id as u32, &crate::fixture::name(id))
    }
}
