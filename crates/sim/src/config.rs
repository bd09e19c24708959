//! What is simulated: a machine, its jobs, and how exactly.

use crate::fault::Fault;
use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use cosched_core::{CpuSet, Nanos};
use std::sync::Arc;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// The machine.
    pub machine: Arc<MachineSpec>,
    /// The jobs, in the order of the tasks' numbers.
    pub jobs: Vec<SimJob>,
    /// The CPUs that the run may use; `None` for all.
    pub usable: Option<CpuSet>,
    /// Seed of what differs between instances of a program, and of the counters' noise.
    pub seed: u64,
    /// Instances differ from their profile, in the core and in their use of memory, by up to this share.
    pub variation: f64,
    /// Rates are solved anew when what a thread holds of a cache has changed its cycles per instruction by this share:
    /// smaller is more exact and slower.
    pub step: f64,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// The step unless it is said otherwise; a twentieth of it changes turnarounds by less than 2 % (a test shows it).
pub const DEFAULT_STEP: f64 = 0.08;

/// By how much instances of a program differ unless it is said otherwise: by the input, the layout of memory, and so on.
pub const DEFAULT_VARIATION: f64 = 0.02;

impl SimConfig {
    /// Jobs on a machine, with nothing special.
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
}

/// A job of the simulation.
#[derive(Clone, Debug)]
pub struct SimJob {
    /// What it does.
    pub program: Arc<ProgramSpec>,
    /// How much of it.
    pub work: Work,
    /// Hardware threads that it needs; it shares its work evenly among them.
    pub cpus: u32,
    /// Linux nice value.
    pub nice: i8,
}

/// How much a job has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many instructions.
    Instructions(u64),
    /// What it executes alone in this time (the papers' rule: 100 s).
    SoloTime(Nanos),
}
