//! What this machine can do for a policy.

use super::config::Freezing;
use crate::counters::CounterSupport;
use crate::energy::EnergyMeter;
use crate::events::EventKind;
use crate::root::Root;
use cosched_core::{Absence, Capabilities, Capability, Machine, Reading};

/// The capabilities that this machine lacks, and why. Solo bandwidths and traces come from elsewhere and
/// count as missing.
pub fn capabilities(root: &Root, machine: &Machine, counters: &CounterSupport, freezing: Freezing) -> Capabilities {
    let mut capabilities = Capabilities::default();
    let both = |a: Reading<()>, b: Reading<()>| a.and_then(|()| b);
    let grouped = freezing == Freezing::Cgroup;
    let kinds = [
        (Capability::Ipc, both(counters.of(EventKind::Cycles), counters.of(EventKind::Instructions))),
        (Capability::L1Accesses, counters.of(EventKind::L1Accesses)),
        (Capability::LlcAccesses, counters.of(EventKind::LlcAccesses)),
        (Capability::MmReads, counters.of(EventKind::MmReads)),
        (Capability::MmWrites, counters.of(EventKind::MmWrites)),
        // A cgroup's own statistics give CPU time where perf events are refused.
        (Capability::CpuTime, if grouped { Reading::Value(()) } else { counters.cpu_time }),
    ];
    for (capability, state) in kinds {
        if let Some(why) = state.absence() {
            capabilities.missing.insert(capability, why);
        }
    }
    if let Err(problem) = EnergyMeter::open(root) {
        capabilities.missing.insert(Capability::Energy, problem.reason);
    }
    if machine.core_types.len() < 2 {
        capabilities.missing.insert(Capability::CoreTypes, Absence::OneCoreType);
    }
    capabilities.missing.insert(Capability::SoloBandwidth, Absence::NoSoloEstimate);
    capabilities.missing.insert(Capability::SoloTrace, Absence::NoSoloTrace);
    capabilities
}
