//! The parameters of `efs`: EFS's constants and the figures of its machine.

use crate::device::Device;
use crate::model::objective::Objective;
use crate::model::power::PowerModel;
use crate::model::starvation::Starvation;
use crate::model::window::Window;
use crate::policy::params::{MU, P_MORE, P0, P1, P2, power_model};
use crate::policy::prelude::*;
use std::num::NonZeroU64;

/// Memory of the demand prediction, in quanta. EFS, whose kernel decides more often, has 1 ms.
const WINDOW_QUANTA: u64 = 2;

const OBJECTIVE: ParamSpec = choice(
    "objective",
    &["energy", "edp", "throughput"],
    "what one more job must not make worse: energy per work (EFS), energy-delay product per work, or throughput, which \
     leaves a CPU idle only where one more job would slow the others by more than it does itself",
);
const DEMAND: ParamSpec = choice(
    "demand",
    &["measured", "given"],
    "where the jobs' use of the memory bus comes from: `measured` with counters, or `given` with each job (bus_use in a \
     mix file), for machines that can't count",
);
const QUANTUM: ParamSpec = number(
    "quantum_s",
    0.2,
    0.001,
    3600.0,
    "scheduling period of a CPU with up to four jobs, in seconds; 0.018 in the EFS kernel, whose other times scale with it",
);
const C_LOCAL: ParamSpec = number(
    "c_local",
    20.0,
    0.0,
    1e6,
    "a job is starved if it lags behind by more than this many scheduling periods of its CPU; 20 in EFS",
);
const C_GLOBAL: ParamSpec = number(
    "c_global",
    5.0,
    0.0,
    1e6,
    "a job is starved if it has not run for more than this many scheduling periods of the machine; 5 in EFS",
);

const DISK: ParamSpec = choice(
    "disk",
    &["off", "on"],
    "whether jobs must also fit the disk, by the same rule: what they use of it is their part of the time in which it is busy",
);
const NET: ParamSpec = choice(
    "net",
    &["off", "on"],
    "the same for the network; in the simulation only",
);

pub(super) const PARAMS: &[ParamSpec] = &[
    QUANTUM, OBJECTIVE, DEMAND, MU, DISK, NET, P0, P1, P2, P_MORE, C_LOCAL, C_GLOBAL,
];

/// The devices that count.
pub(super) fn devices(params: &Params) -> Vec<Device> {
    let is_on = |device: &Device| params.word(device.name()) == "on";
    Device::ALL.into_iter().filter(is_on).collect()
}

/// The parameters in the units of the calculation.
pub(super) struct EfsSettings {
    pub(super) quantum: Nanos,
    pub(super) objective: Objective,
    /// Whether demands are given rather than measured.
    pub(super) given: bool,
    /// Service rate of the bus of one memory domain, in transactions per millisecond.
    pub(super) mu_per_ms: f64,
    pub(super) devices: Vec<Device>,
    pub(super) power: PowerModel,
    pub(super) window: Window,
    pub(super) rule: Starvation,
}

impl EfsSettings {
    pub(super) fn new(params: &Params) -> EfsSettings {
        let quantum = Nanos::from_s(params.number("quantum_s"));
        let objective = match params.word("objective") {
            "edp" => Objective::EnergyDelay,
            "throughput" => Objective::Throughput,
            _ => Objective::Energy,
        };
        let window = quantum.0.saturating_mul(WINDOW_QUANTA);
        let rule = Starvation {
            local_factor: params.number("c_local") as u64,
            global_factor: params.number("c_global") as u64,
            ..Starvation::for_quantum(quantum.0)
        };
        EfsSettings {
            quantum,
            objective,
            given: params.word("demand") == "given",
            mu_per_ms: params.number("mu_trans_per_us") * 1e3,
            devices: devices(params),
            power: power_model(params),
            window: Window::new(NonZeroU64::new(window).unwrap_or(NonZeroU64::MIN)),
            rule,
        }
    }
}
