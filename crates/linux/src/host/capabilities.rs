//! What this machine can do for a policy.

use super::config::Freezing;
use crate::counters::CounterSupport;
use crate::energy::EnergyMeter;
use crate::root::Root;
use crate::traffic::TrafficMeter;
use cosched_core::{Absence, Capabilities, Capability, Counter, Machine, Reading};

/// The capabilities that this machine lacks, and why. Solo bandwidths and traces come from elsewhere, so they count as
/// missing.
pub fn capabilities(
    root: &Root,
    machine: &Machine,
    counters: &CounterSupport,
    freezing: Freezing,
) -> Capabilities {
    let mut capabilities = Capabilities::default();
    let grouped = freezing == Freezing::Cgroup;
    // A cgroup's own statistics give CPU time where perf events are refused.
    let cpu_time = (
        Capability::CpuTime,
        if grouped {
            Reading::Value(())
        } else {
            counters.cpu_time
        },
    );
    let counted = Counter::ALL.map(|counter| (Capability::of(counter), counters.of(counter)));
    for (capability, state) in counted.into_iter().chain([cpu_time]) {
        if let Some(why) = state.absence() {
            capabilities.missing.entry(capability).or_insert(why);
        }
    }
    if let Err(problem) = EnergyMeter::open(root) {
        capabilities
            .missing
            .insert(Capability::Energy, problem.reason);
    }
    // Where some memory domains can be counted, those that can't are absent one by one.
    if let Err(problem) = TrafficMeter::open(root, machine) {
        capabilities
            .missing
            .insert(Capability::Traffic, problem.reason);
    }
    if machine.core_types.len() < 2 {
        capabilities
            .missing
            .insert(Capability::CoreTypes, Absence::OneCoreType);
    }
    capabilities
        .missing
        .insert(Capability::SoloBandwidth, Absence::NoSoloEstimate);
    capabilities
        .missing
        .insert(Capability::SoloTrace, Absence::NoSoloTrace);
    capabilities
        .missing
        .insert(Capability::Plans, Absence::NotOffered);
    capabilities
}
