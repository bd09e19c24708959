//! Capabilities of a backend, as required by policies.

use crate::counter::Counter;
use crate::device::Device;
use crate::units::Absence;
use std::collections::BTreeMap;

/// A capability that a policy can require of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Capability {
    /// CPU time per task.
    CpuTime,
    /// Cycles and instructions per task.
    Ipc,
    /// One counter per task. Cycles and instructions are [`Capability::Ipc`] instead: see [`Capability::of`].
    Counter(Counter),
    /// Tasks can be frozen and thawed.
    Freeze,
    /// Tasks can be pinned to CPUs.
    Affinity,
    /// Energy of the processor package.
    Energy,
    /// Traffic of each memory domain, from all sources.
    Traffic,
    /// Time that this device works for each task.
    Device(Device),
    /// Solo bandwidth of each task, from an earlier run.
    SoloBandwidth,
    /// Solo trace of each task, from an earlier run.
    SoloTrace,
    /// The machine has at least two types of core.
    CoreTypes,
    /// The backend carries out plans by itself.
    Plans,
}

impl Capability {
    /// The capability that covers a counter. No policy can use cycles or instructions alone, so they are one
    /// capability.
    pub const fn of(counter: Counter) -> Capability {
        match counter {
            Counter::Cycles | Counter::Instructions => Capability::Ipc,
            other => Capability::Counter(other),
        }
    }

    /// The code in a run record, for example `mm-reads`.
    pub fn code(self) -> String {
        let code = match self {
            Capability::CpuTime => "cpu-time",
            Capability::Ipc => "ipc",
            Capability::Counter(counter) => return counter.name().replace('_', "-"),
            Capability::Freeze => "freeze",
            Capability::Affinity => "affinity",
            Capability::Energy => "energy",
            Capability::Traffic => "traffic",
            Capability::Device(device) => device.name(),
            Capability::SoloBandwidth => "solo-bandwidth",
            Capability::SoloTrace => "solo-trace",
            Capability::CoreTypes => "core-types",
            Capability::Plans => "plans",
        };
        code.to_owned()
    }

    /// The capability with this code; `None` if there is none.
    pub fn of_code(code: &str) -> Option<Capability> {
        let counters = Counter::ALL.into_iter().map(Capability::of);
        let devices = Device::ALL.into_iter().map(Capability::Device);
        let others = [
            Capability::CpuTime,
            Capability::Freeze,
            Capability::Affinity,
            Capability::Energy,
            Capability::Traffic,
            Capability::SoloBandwidth,
            Capability::SoloTrace,
            Capability::CoreTypes,
            Capability::Plans,
        ];
        let mut all = counters.chain(devices).chain(others);
        all.find(|capability| capability.code() == code)
    }

    /// The capability in words.
    pub fn text(self) -> &'static str {
        match self {
            Capability::CpuTime => "CPU time per job",
            Capability::Ipc => "instructions per cycle",
            Capability::Counter(counter) => counter.text(),
            Capability::Freeze => "freezing of jobs",
            Capability::Affinity => "binding of jobs to CPUs",
            Capability::Energy => "package energy",
            Capability::Traffic => "traffic of each memory domain",
            Capability::Device(Device::Disk) => "time that the disk works for each job",
            Capability::Device(Device::Net) => "time that the network works for each job",
            Capability::SoloBandwidth => "solo bandwidth of each job",
            Capability::SoloTrace => "solo trace of each job",
            Capability::CoreTypes => "cores of two types",
            Capability::Plans => "plans that the backend carries out by itself",
        }
    }

    /// Whether the capability needs hardware performance counters.
    pub fn is_counter(self) -> bool {
        matches!(self, Capability::Ipc | Capability::Counter(_))
    }
}

/// The capabilities that a backend lacks; it has all others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The missing capabilities, each with its reason.
    pub missing: BTreeMap<Capability, Absence>,
}

impl Capabilities {
    /// Why a capability is missing, if it is.
    pub fn why_missing(&self, capability: Capability) -> Option<Absence> {
        self.missing.get(&capability).copied()
    }
}
