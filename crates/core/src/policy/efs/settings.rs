//! The parameters of `efs`: EFS's constants and the figures of its machine.

use crate::model::power::PowerModel;
use crate::model::starvation::Starvation;
use crate::model::threshold::Objective;
use crate::model::window::Window;
use crate::policy::Params;
use crate::policy::params::{P_MORE, P0, P1, P2, ParamKind, ParamSpec, number, power_model};
use crate::units::Nanos;
use std::num::NonZeroU64;

/// What one more job must not make worse.
const OBJECTIVE: ParamSpec = ParamSpec {
    name: "objective",
    kind: ParamKind::Choice(&["energy", "edp", "throughput"]),
    about: "what one more job must not make worse: energy per work (EFS), energy-delay product per work, or throughput, \
            which leaves a CPU idle only where one more job would take more from the others than it does",
    at_most: None,
};
const DEMAND: ParamSpec = ParamSpec {
    name: "demand",
    kind: ParamKind::Choice(&["measured", "given"]),
    about: "whence it is known what jobs use of the memory bus: counted, or as given with each job (bus_use in a mix file), \
            for machines that can't count",
    at_most: None,
};
const QUANTUM: ParamSpec = number(
    "quantum_s",
    0.2,
    0.001,
    3600.0,
    "scheduling period of a CPU with up to four jobs, in seconds; 0.018 in the EFS kernel, whose other times scale with it",
);
const MU: ParamSpec = number(
    "mu_trans_per_us",
    150.0,
    0.001,
    1e6,
    "transactions that the memory bus of one memory domain serves per microsecond; 150 on the EFS paper's machine, \
     assumed unless a profile or a machine file gives it",
);
const WINDOW: ParamSpec = number(
    "window_quanta",
    2.0,
    0.0,
    1e3,
    "how much of the past the predicted demand remembers, in quanta; 1 ms in EFS, whose kernel decides more often; 2 is ours",
);
const C_LOCAL: ParamSpec = number(
    "c_local",
    20.0,
    0.0,
    1e6,
    "scheduling periods of its CPU by which a job may lag behind before it counts as starved; 20 in EFS",
);
const C_GLOBAL: ParamSpec = number(
    "c_global",
    5.0,
    0.0,
    1e6,
    "scheduling periods of the machine for which a job may not run before it counts as starved; 5 in EFS",
);

pub(super) const PARAMS: &[ParamSpec] = &[
    QUANTUM, OBJECTIVE, DEMAND, MU, P0, P1, P2, P_MORE, WINDOW, C_LOCAL, C_GLOBAL,
];

/// The parameters as they are used.
pub(super) struct Settings {
    pub(super) quantum: Nanos,
    pub(super) objective: Objective,
    /// Demands are given, and not measured.
    pub(super) given: bool,
    /// Service rate of the bus of one memory domain, in transactions per millisecond.
    pub(super) mu_per_ms: f64,
    pub(super) power: PowerModel,
    pub(super) window: Window,
    pub(super) rule: Starvation,
    /// The weight of each nice value from -20 to 19.
    weights: [u32; 40],
}

impl Settings {
    pub(super) fn new(params: &Params) -> Settings {
        let quantum = Nanos::from_s(params.number("quantum_s"));
        let objective = match params.word("objective") {
            "edp" => Objective::EnergyDelay,
            "throughput" => Objective::Throughput,
            _ => Objective::Energy,
        };
        let window = (quantum.0 as f64 * params.number("window_quanta")) as u64;
        let rule = Starvation {
            local_factor: params.number("c_local") as u64,
            global_factor: params.number("c_global") as u64,
            ..Starvation::for_quantum(quantum.0)
        };
        Settings {
            quantum,
            objective,
            given: params.word("demand") == "given",
            mu_per_ms: params.number("mu_trans_per_us") * 1e3,
            power: power_model(params),
            window: Window::new(NonZeroU64::new(window).unwrap_or(NonZeroU64::MIN)),
            rule,
            weights: weights(),
        }
    }

    /// The weight of a nice value: 1024 for 0, and a factor of 1.25 for each step, as Linux has it.
    pub(super) fn weight(&self, nice: i8) -> u32 {
        self.weights[(nice.clamp(-20, 19) + 20) as usize]
    }
}

fn weights() -> [u32; 40] {
    let mut weights = [1024; 40];
    let (mut up, mut down) = (1024.0, 1024.0);
    for step in 1..=20 {
        up *= 1.25;
        weights[20 - step] = (up + 0.5) as u32;
        if step < 20 {
            down /= 1.25;
            weights[20 + step] = (down + 0.5) as u32;
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_linux_within_two_per_cent() {
        let weights = weights();
        // The ends and the middle of the kernel's table.
        for (nice, linux) in [
            (-20, 88_761),
            (-10, 9_548),
            (-1, 1_277),
            (0, 1_024),
            (1, 820),
            (10, 110),
            (19, 15),
        ] {
            let ours = f64::from(weights[(nice + 20) as usize]);
            assert!(
                (ours / f64::from(linux) - 1.0).abs() < 0.02,
                "{nice}: {ours}"
            );
        }
        assert!(weights.is_sorted_by(|a, b| a > b));
    }
}
