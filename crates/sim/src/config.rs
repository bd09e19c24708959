//! The input of a simulation: a machine, its jobs, and its precision.

use crate::error::SimError;
use crate::fault::Fault;
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use cosched_core::{CpuSet, Machine, Nanos};
use std::sync::Arc;

/// The full input of a simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The machine to simulate.
    pub machine: Arc<MachineSpec>,
    /// The jobs; task i is job i.
    pub jobs: Vec<SimJob>,
    /// The CPUs that the run may use; `None` for all.
    pub usable: Option<CpuSet>,
    /// Seed of the random numbers: for the differences of instances, and for the counters' noise.
    pub seed: u64,
    /// Maximum difference of an instance from its profile, as a share: in the core, in the use of memory and in the
    /// length of phases.
    pub variation: f64,
    /// Rates are solved again when a thread's cycles per instruction have changed by this share because of its lines in
    /// the cache. A smaller step is more exact and slower.
    pub step: f64,
    /// Whether the progress of jobs is visible from outside.
    pub shows_progress: bool,
    /// Faults to inject, in any order.
    pub faults: Vec<Fault>,
}

/// Default of [`SimConfig::step`]. A twentieth of it changes turnarounds by less than 2 % (a test checks this).
pub const DEFAULT_STEP: f64 = 0.08;

/// Default of [`SimConfig::variation`]. Instances differ by their input, the layout of memory, and so on.
pub const DEFAULT_VARIATION: f64 = 0.02;

impl SimConfig {
    /// These jobs on all CPUs of this machine, without faults, at the default step and variation.
    pub fn new(machine: Arc<MachineSpec>, jobs: Vec<SimJob>, seed: u64) -> SimConfig {
        SimConfig {
            machine,
            jobs,
            usable: None,
            seed,
            variation: DEFAULT_VARIATION,
            step: DEFAULT_STEP,
            shows_progress: false,
            faults: Vec::new(),
        }
    }

    /// The usable part of the machine, as policies see it. Nothing is simulated for it.
    ///
    /// # Errors
    /// [`SimError::NoSuchCpu`]: `usable` is empty, or names CPUs that the machine lacks.
    pub fn usable_machine(&self) -> Result<Machine, SimError> {
        let whole = self.machine.machine();
        match &self.usable {
            None => Ok(whole),
            Some(usable) if !usable.is_empty() && usable.is_subset(&whole.all_cpus()) => {
                Ok(whole.part(usable))
            }
            Some(asked) => {
                let (machine, have) = (whole.name.clone(), whole.all_cpus());
                Err(SimError::NoSuchCpu {
                    machine,
                    have,
                    asked: asked.clone(),
                })
            }
        }
    }
}

/// A job of the simulation.
#[derive(Clone, Debug)]
pub struct SimJob {
    /// Its program.
    pub program: Arc<ProgramSpec>,
    /// Its amount of work.
    pub work: JobWork,
    /// Number of hardware threads it needs. They share its work evenly.
    pub cpus: u32,
    /// Linux nice value.
    pub nice: i8,
}

/// Amount of work of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum JobWork {
    /// This many instructions.
    Instructions(u64),
    /// As many instructions as it executes alone in this time (100 s in the papers).
    SoloTime(Nanos),
}
