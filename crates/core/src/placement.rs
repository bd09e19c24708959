//! Where and why a task runs.

use crate::listed::listed_enum;
use crate::topology::CpuSet;
use serde::{Deserialize, Serialize};

/// Where a task runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Placement {
    /// The task owns these CPUs: one for each thread that it needs, so several for a gang.
    Exclusive {
        /// Its CPUs.
        cpus: CpuSet,
        /// Whether the other CPUs of its cores are kept idle.
        #[serde(default)]
        whole_core: bool,
    },
    /// The kernel time-shares it with others on these CPUs.
    Shared {
        /// The CPUs that it may use.
        mask: CpuSet,
    },
}

impl Placement {
    /// The CPUs that the task may run on.
    pub fn cpus(&self) -> &CpuSet {
        match self {
            Placement::Exclusive { cpus, .. } => cpus,
            Placement::Shared { mask } => mask,
        }
    }
}

listed_enum! {
    /// The purpose of a placement. The sample repeats it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, strum::IntoStaticStr)]
    #[strum(serialize_all = "kebab-case")]
    #[serde(rename_all = "kebab-case")]
    pub enum Purpose {
        /// To get work done.
        #[default]
        Run,
        /// To measure it in low contention, as an estimate of its behaviour alone.
        MeasureAlone,
        /// To run beside such a measurement without spoiling it.
        LowContention,
        /// Before a measurement: the others still stop, and clock and caches change. Only its work counts.
        WarmUp,
    }
}
