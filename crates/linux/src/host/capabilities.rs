//! The capabilities of this machine for policies.

use super::config::Freezing;
use crate::counters::CounterSupport;
use crate::disk::Disk;
use crate::energy::EnergyMeter;
use crate::root::Root;
use crate::traffic::TrafficMeter;
use cosched_core::{Absence, Capabilities, Capability, Counter, Device, Machine};

/// The counters and types of core that this machine lacks, and estimates that come from elsewhere.
pub(crate) fn lacks(machine: &Machine, counters: &CounterSupport) -> Vec<(Capability, Absence)> {
    let mut missing = vec![
        (Capability::SoloBandwidth, Absence::NoSoloEstimate),
        (Capability::SoloTrace, Absence::NoSoloTrace),
        (Capability::Plans, Absence::NotOffered),
        // The kernel counts bytes on the network per interface, not per process.
        (Capability::Device(Device::Net), Absence::NotOffered),
    ];
    for counter in Counter::ALL {
        let why = counters.of(counter).absence();
        missing.extend(why.map(|why| (Capability::of(counter), why)));
    }
    if machine.core_types.len() < 2 {
        missing.push((Capability::CoreTypes, Absence::OneCoreType));
    }
    missing
}

/// The capabilities that this machine lacks, with reasons. Solo bandwidths and traces come from elsewhere, so they
/// count as missing.
pub fn capabilities(
    root: &Root,
    machine: &Machine,
    counters: &CounterSupport,
    freezing: Freezing,
) -> Capabilities {
    let mut missing = Vec::new();
    if !root.exists("/proc/self/io") || !Disk::of_working_directory(root).is_known() {
        missing.push((Capability::Device(Device::Disk), Absence::NotTold));
    }
    // A cgroup's own statistics give CPU time if perf events are denied.
    if let (Some(why), Freezing::Signals | Freezing::Auto) = (counters.cpu_time.absence(), freezing)
    {
        missing.push((Capability::CpuTime, why));
    }
    missing.extend(lacks(machine, counters));
    if let Err(problem) = EnergyMeter::open(root) {
        missing.push((Capability::Energy, problem.reason));
    }
    // If some memory domains can be counted, the others are absent one by one.
    if let Err(problem) = TrafficMeter::open(root, machine) {
        missing.push((Capability::Traffic, problem.reason));
    }
    let mut capabilities = Capabilities::default();
    for (capability, why) in missing {
        capabilities.missing.entry(capability).or_insert(why);
    }
    capabilities
}
