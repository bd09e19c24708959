//! What was observed of programs that run already, over one interval.

use crate::sample::Counts;
use crate::topology::CpuId;
use crate::units::{Absence, Nanos, Reading, as_seconds};
use serde::{Deserialize, Serialize};

/// One interval of all observed subjects.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// Length of the interval.
    pub length: Nanos,
    /// The subjects, in a fixed order.
    pub subjects: Vec<SubjectSample>,
    /// How each CPU of the machine spent the interval, in ascending order.
    pub cpus: Reading<Vec<CpuUsed>>,
}

/// One interval of a subject: a process with its descendants, a process group, or a cgroup.
#[derive(Clone, Debug, PartialEq)]
pub struct SubjectSample {
    /// Its name.
    pub name: String,
    /// Its live processes.
    pub processes: u32,
    /// Their threads.
    pub threads: u32,
    /// Threads that run or wait for a CPU at the end of the interval.
    pub wants: u32,
    /// CPU time of its processes, also of those that ended and were waited for.
    pub cpu_time: Nanos,
    /// Time that its threads were ready to run and waited for a CPU, summed over them.
    pub waited: Reading<Nanos>,
    /// Where its threads ran and waited, in ascending order of the CPUs.
    pub on: Vec<CpuShare>,
    /// Resident memory in bytes; memory that processes share counts for each of them.
    pub resident: Reading<u64>,
    /// Growth of its resident memory in bytes; negative if it shrank.
    pub grew: Reading<i64>,
    /// What its cgroup waited for.
    pub pressure: Pressure,
    /// Hardware events of its processes.
    pub counts: Counts,
}

/// A subject on a CPU. The time of a thread is that of the CPU where it ran last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuShare {
    /// The CPU.
    pub cpu: CpuId,
    /// CPU time there.
    #[serde(rename = "used_s", with = "as_seconds")]
    pub used: Nanos,
    /// Time that threads waited for it, summed over them.
    #[serde(rename = "waited_s", with = "as_seconds")]
    pub waited: Nanos,
}

/// How a CPU spent an interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuUsed {
    /// The CPU.
    pub cpu: CpuId,
    /// Time in which it executed something.
    #[serde(rename = "busy_s", with = "as_seconds")]
    pub busy: Nanos,
    /// Time in which the hypervisor ran others.
    #[serde(rename = "stolen_s", with = "as_seconds")]
    pub stolen: Nanos,
}

/// Shares of the last 10 seconds in which some process of a group waited, in per cent: the kernel's PSI.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pressure {
    /// Whether it is that of the whole machine, because the group has none of its own.
    pub of_machine: bool,
    /// For a CPU.
    pub cpu: Reading<f64>,
    /// For memory.
    pub memory: Reading<f64>,
    /// For disks.
    pub io: Reading<f64>,
}

impl Pressure {
    /// No pressure is known.
    pub fn absent(why: Absence) -> Pressure {
        Pressure {
            of_machine: true,
            cpu: Reading::Absent(why),
            memory: Reading::Absent(why),
            io: Reading::Absent(why),
        }
    }
}

impl SubjectSample {
    /// Its CPU time on a CPU.
    pub(super) fn used_on(&self, cpu: CpuId) -> Nanos {
        let on = self.on.iter().find(|on| on.cpu == cpu);
        on.map_or(Nanos::ZERO, |on| on.used)
    }
}

impl Observed {
    /// How a CPU spent the interval; `None` if that is not known.
    pub(super) fn cpu(&self, cpu: CpuId) -> Option<&CpuUsed> {
        let cpus = self.cpus.as_ref().value()?;
        cpus.iter().find(|used| used.cpu == cpu)
    }
}
