//! The simulation as a fixture: profiles of the workloads on two cores of a built-in machine.

use crate::fixture::{Fixture, JobAction, ScenarioJob, ScenarioSkip};
use cosched_core::{CpuId, CpuSet, Exit, Nanos, TaskId};
use cosched_sim::program::ProgramPhase;
use cosched_sim::{
    Fault, FaultKind, JobWork, MachineSpec, ProgramSpec, Sim, SimConfig, SimJob, builtin_machine,
    builtin_program,
};
use std::sync::Arc;

/// A simulated machine.
#[derive(Clone)]
pub struct Simulation {
    machine: Arc<MachineSpec>,
    compute: ProgramSpec,
}

impl Default for Simulation {
    /// Two cores of a built-in machine.
    fn default() -> Simulation {
        Simulation {
            machine: Arc::new(builtin_machine("i5-2500").expect("a machine of that name")),
            compute: builtin_program("workload-compute").expect("a program of that name"),
        }
    }
}

impl Fixture for Simulation {
    type Backend = Sim;

    const AFTER_STOP: Nanos = Nanos::ZERO;
    /// The rest is the cost of switching and of cold caches.
    const CLOSE: Nanos = Nanos::ZERO;
    const LONG: u64 = 40;
    const LEAST_SHARE: f64 = 0.98;
    const NOT_REPEATABLE: Option<&'static str> = None;

    fn backend(&self, jobs: &[ScenarioJob]) -> Result<Sim, ScenarioSkip> {
        let mut faults = Vec::new();
        let mut simulated = Vec::new();
        for (id, job) in jobs.iter().enumerate() {
            let mut program = self.compute.clone();
            let endless = JobWork::SoloTime(Nanos::from_ms(1_000_000));
            let mut dies = |exit| {
                let what = FaultKind::JobDies {
                    task: TaskId(id as u32),
                    exit,
                };
                faults.push(Fault {
                    at: Nanos::from_ms(5),
                    what,
                });
                endless
            };
            let work = match job.does {
                JobAction::Work(ms) => JobWork::SoloTime(Nanos::from_ms(ms.into())),
                JobAction::Endless => endless,
                JobAction::Fails => dies(Exit::Code(3)),
                JobAction::Crashes => dies(Exit::Signal {
                    signal: 11,
                    oom: false,
                }),
                JobAction::Unstartable => {
                    return Err(ScenarioSkip(
                        "there is no simulated program that could not be started".to_owned(),
                    ));
                }
                JobAction::Naps => {
                    program.phases = vec![ProgramPhase {
                        instructions: 1e7,
                        cpi: 1.0,
                        memory: 1.0,
                        then_sleep_ms: 50.0,
                        then_mb: Default::default(),
                    }];
                    // The job ends in the second phase.
                    JobWork::Instructions(15_000_000)
                }
            };
            simulated.push(SimJob {
                program: Arc::new(program),
                work,
                cpus: job.cpus,
                nice: 0,
            });
        }
        let usable = Some(CpuSet::from_iter([CpuId(0), CpuId(1)]));
        let config = SimConfig {
            usable,
            faults,
            ..SimConfig::new(self.machine.clone(), simulated, 1)
        };
        Ok(Sim::new(config).expect("a simulation"))
    }

    fn cpus_of(backend: &mut Sim, task: usize, _wanted: Option<&CpuSet>) -> CpuSet {
        backend.cpus_of(TaskId(task as u32))
    }

    /// A simulation leaves no processes.
    fn nothing_stands_still(&self) {}
}
