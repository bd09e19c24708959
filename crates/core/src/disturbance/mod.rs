//! Who probably disturbs whom, among programs that nobody schedules. Each finding has the measurements behind it; without
//! measurements there is no finding.
//!
//! A finding says "probably": two programs that want the same CPU slow each other for certain, but what a program loses to
//! a busy sibling thread or a busy memory domain depends on what it executes.

mod observed;
mod rules;

pub use observed::{CpuShare, CpuUsed, Observed, Pressure, SubjectSample};
pub use rules::disturbances;

use crate::topology::{CpuId, CpuSet};
use crate::units::{Nanos, Rate, as_seconds};
use serde::Serialize;
use std::fmt;

/// One program that probably slows another.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    /// Who disturbs.
    pub by: Disturber,
    /// Name of the subject that is slowed.
    pub slows: String,
    /// The measurements behind it.
    pub evidence: Evidence,
    /// Length of the interval in which they were made.
    pub interval: Nanos,
}

/// Who disturbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disturber {
    /// The subject of this name.
    Subject(String),
    /// Processes that are not observed.
    Others,
    /// Other guests of the hypervisor.
    Hypervisor,
}

/// The measurements behind a disturbance.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Evidence {
    /// Both want one CPU.
    SameCpu {
        /// The CPU.
        cpu: CpuId,
        /// Time that the threads of the slowed subject waited for it, summed over them.
        #[serde(rename = "waited_s", with = "as_seconds")]
        waited: Nanos,
        /// Time that the disturber used it.
        #[serde(rename = "used_s", with = "as_seconds")]
        used: Nanos,
    },
    /// They run on CPUs of one core.
    SameCore {
        /// The CPUs of the core.
        cpus: CpuSet,
        /// Time in which both certainly ran at once.
        #[serde(rename = "both_s", with = "as_seconds")]
        both: Nanos,
    },
    /// They read from one memory domain, and the disturber reads much.
    SameMemory {
        /// The CPUs of the domain.
        cpus: CpuSet,
        /// Lines that the disturber reads.
        #[serde(rename = "moved_lines_per_ms")]
        moved: Rate,
        /// Lines that the slowed subject reads.
        #[serde(rename = "needs_lines_per_ms")]
        needs: Rate,
    },
    /// The slowed subject waits for memory, and the disturber takes more.
    MemoryPressure {
        /// Share of the last 10 seconds in which a process of its group waited for memory, in per cent.
        stalled_percent: f64,
        /// Growth of the disturber's resident memory, in bytes.
        #[serde(rename = "grew_bytes")]
        grew: u64,
    },
    /// The hypervisor took CPU time from the subject's CPUs.
    Steal {
        /// The CPUs.
        cpus: CpuSet,
        /// Time taken, summed over them.
        #[serde(rename = "stolen_s", with = "as_seconds")]
        stolen: Nanos,
    },
}

impl fmt::Display for Disturber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Disturber::Subject(name) => name,
            Disturber::Others => "something not observed here",
            Disturber::Hypervisor => "another guest of this hypervisor",
        })
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Disturbance {
            by,
            slows,
            evidence,
            interval,
        } = self;
        write!(f, "{by} probably slows {slows}: ")?;
        let s = interval.as_s();
        match evidence {
            Evidence::SameCpu { cpu, waited, used } => write!(
                f,
                "both want CPU {}; in {s:.2} s the second waited {:.2} s for it, and the first used {:.2} s of it",
                cpu.0,
                waited.as_s(),
                used.as_s()
            ),
            Evidence::SameCore { cpus, both } => write!(
                f,
                "both run on the core of the CPUs {cpus}, at once for at least {:.2} s of {s:.2} s",
                both.as_s()
            ),
            Evidence::SameMemory { cpus, moved, needs } => write!(
                f,
                "both read from the memory of the CPUs {cpus}: the first {:.1} GB/s, the second {:.1} GB/s",
                moved.bytes_per_s() / 1e9,
                needs.bytes_per_s() / 1e9
            ),
            Evidence::MemoryPressure {
                stalled_percent,
                grew,
            } => write!(
                f,
                "the second waited for memory {stalled_percent:.0} % of the last 10 s, while the first took {} MiB more",
                grew / MIB
            ),
            Evidence::Steal { cpus, stolen } => write!(
                f,
                "it took {:.2} s of {s:.2} s of the CPUs {cpus} (steal); no process of this machine did",
                stolen.as_s()
            ),
        }
    }
}

/// Bytes of a MiB.
const MIB: u64 = 1 << 20;
