//! What a simulation is made from: a machine, its jobs, and how exact it is.

use crate::error::SimError;
use crate::fault::Fault;
use crate::machine::MachineSpec;
use crate::part::restrict;
use crate::program::ProgramSpec;
use cosched_core::{CpuSet, Machine, Nanos};
use std::sync::Arc;

/// Everything that a simulation needs.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The machine to simulate.
    pub machine: Arc<MachineSpec>,
    /// The jobs; task i is the i-th of them.
    pub jobs: Vec<SimJob>,
    /// The CPUs that the run may use; `None` for all.
    pub usable: Option<CpuSet>,
    /// Seed of the random numbers: how instances of a program differ, and the counters' noise.
    pub seed: u64,
    /// Instances differ from their profile by up to this share: in the core, in their use of memory and in the length
    /// of their phases.
    pub variation: f64,
    /// Rates are solved again when a thread's cycles per instruction have changed by this share because of what it
    /// holds of a cache. A smaller step is more exact and slower.
    pub step: f64,
    /// Faults to inject, in any order.
    pub faults: Vec<Fault>,
}

/// Default of [`SimConfig::step`]. A twentieth of it changes turnarounds by less than 2 % (a test shows it).
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
            faults: Vec::new(),
        }
    }

    /// The part of the machine that may be used, as policies see it. Nothing is simulated for it.
    ///
    /// # Errors
    /// [`SimError::NoSuchCpu`]: the CPUs that may be used are none or not the machine's.
    pub fn usable_machine(&self) -> Result<Machine, SimError> {
        let whole = self.machine.machine();
        match &self.usable {
            None => Ok(whole),
            Some(usable) if !usable.is_empty() && usable.is_subset(&whole.all_cpus()) => {
                Ok(restrict(&whole, usable))
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
    /// The program that it runs.
    pub program: Arc<ProgramSpec>,
    /// How much work it has to do.
    pub work: Work,
    /// Hardware threads that it needs; its work is shared evenly among them.
    pub cpus: u32,
    /// Linux nice value.
    pub nice: i8,
}

/// How much a job has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// This many instructions.
    Instructions(u64),
    /// As many instructions as it executes alone in this time (the papers' rule: 100 s).
    SoloTime(Nanos),
}
