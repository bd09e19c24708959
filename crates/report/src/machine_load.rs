//! How far a run had its CPUs for itself, and whether its figures are to be trusted.

use crate::figures::Absences;
use crate::warning::RunWarning;
use cosched_core::{Nanos, Reading};
use serde::{Deserialize, Serialize};

/// Above this share of the CPU time taken by the hypervisor, figures are not to be trusted.
pub(crate) const MOST_STEAL: f64 = 0.02;
/// Above this many CPUs taken by other programs, on average over the run, figures are not to be trusted: some job was
/// slowed down by as much, and a comparison of jobs is spoilt by one of them.
pub(crate) const MOST_FOREIGN_CPUS: f64 = 0.1;
/// Below this share of the CPU time, other programs are not told from the error of the kernel's accounts, which count a
/// CPU by samples.
pub(crate) const LEAST_FOREIGN: f64 = 0.02;
/// A shorter run is not judged: the accounts are in steps of about 10 ms on each CPU.
pub(crate) const LEAST_TIME: Nanos = Nanos::from_ms(1_000);

/// Where the CPU time of the run's CPUs went, while it went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineUse {
    /// Number of CPUs that the run could use.
    pub cpus: usize,
    /// All their time, idle or busy.
    pub total: Nanos,
    /// Time that the hypervisor gave to others.
    pub stolen: Nanos,
    /// Time in which they executed neither cosched nor its jobs.
    pub foreign: Nanos,
}

impl MachineUse {
    fn steal_share(&self) -> f64 {
        self.stolen.share_of(self.total)
    }

    fn foreign_share(&self) -> f64 {
        self.foreign.share_of(self.total)
    }

    /// The warning that figures of such a run are not to be trusted; `alone` if it was of jobs one by one.
    pub fn warning(&self, alone: bool) -> Option<RunWarning> {
        let foreign_cpus = self.foreign_share() * self.cpus as f64;
        let is_foreign = foreign_cpus > MOST_FOREIGN_CPUS && self.foreign_share() > LEAST_FOREIGN;
        let is_stolen = self.steal_share() > MOST_STEAL;
        let is_long = self.total.0 / (self.cpus.max(1) as u64) >= LEAST_TIME.0;
        (is_long && (is_foreign || is_stolen)).then(|| RunWarning::Disturbed {
            alone,
            cpus: self.cpus,
            foreign_cpus: is_foreign.then_some(foreign_cpus),
            steal_share: is_stolen.then(|| self.steal_share()),
        })
    }
}

/// The same in the run record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineLoad {
    /// CPU time of the run's CPUs in seconds, idle or busy.
    pub cpu_s: Option<f64>,
    /// Share of it that the hypervisor gave to others, from 0 to 1.
    pub steal_share: Option<f64>,
    /// Share of it that other programs used, from 0 to 1.
    pub foreign_share: Option<f64>,
    /// The same as a number of CPUs.
    pub foreign_cpus: Option<f64>,
    /// Why what is null is absent.
    #[serde(flatten)]
    pub absent: Absences,
}

impl MachineLoad {
    pub(crate) fn of(used: Reading<MachineUse>) -> MachineLoad {
        let mut absent = Absences::default();
        let mut figure = |name: &str, of: fn(&MachineUse) -> f64| absent.note(name, used.map(|used| of(&used)));
        MachineLoad {
            cpu_s: figure("cpu_s", |used| used.total.as_s()),
            steal_share: figure("steal_share", MachineUse::steal_share),
            foreign_share: figure("foreign_share", MachineUse::foreign_share),
            foreign_cpus: figure("foreign_cpus", |used| used.foreign_share() * used.cpus as f64),
            absent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_core::Absence;

    /// Of a run of `s` seconds on two CPUs.
    fn used(s: f64, stolen: f64, foreign: f64) -> MachineUse {
        let time = |s: f64| Nanos::from_s(s);
        MachineUse { cpus: 2, total: time(2.0 * s), stolen: time(stolen), foreign: time(foreign) }
    }

    #[test]
    fn disturbed_runs_are_told_from_noise() {
        let told = |used: MachineUse| match used.warning(false) {
            Some(RunWarning::Disturbed { foreign_cpus, steal_share, .. }) => {
                (foreign_cpus.is_some(), steal_share.is_some())
            }
            _ => (false, false),
        };
        assert_eq!(told(used(10.0, 0.3, 0.9)), (false, false));
        assert_eq!(told(used(10.0, 0.5, 0.0)), (false, true));
        assert_eq!(told(used(10.0, 0.0, 1.1)), (true, false));
        assert_eq!(told(used(10.0, 8.0, 9.0)), (true, true));
        assert_eq!(told(used(0.9, 0.9, 0.9)), (false, false), "too short to say");
        let large =
            MachineUse { cpus: 128, total: Nanos::from_s(1_280.0), stolen: Nanos::ZERO, foreign: Nanos::from_s(12.0) };
        assert_eq!(told(large), (false, false), "1.2 CPUs of 128 are within the error of the accounts");
        assert_eq!(told(MachineUse { foreign: Nanos::from_s(30.0), ..large }), (true, false));
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let load = MachineLoad::of(Reading::Absent(Absence::NotTold));
        assert_eq!((load.steal_share, load.absent.why("foreign_cpus")), (None, Some(Absence::NotTold.text())));
        let load = MachineLoad::of(Reading::Value(used(10.0, 1.0, 2.0)));
        assert_eq!((load.cpu_s, load.steal_share), (Some(20.0), Some(0.05)));
        assert_eq!((load.foreign_share, load.foreign_cpus), (Some(0.1), Some(0.2)));
    }
}
