//! The CPU time that others took during a run, and whether its figures can be trusted.

use crate::figures::Absences;
use crate::text::count;
use crate::warning::RunWarning;
use cosched_core::{Nanos, Reading};
use serde::{Deserialize, Serialize};

/// Maximum share of the CPU time for the hypervisor. With more, figures cannot be trusted.
pub(crate) const MOST_STEAL: f64 = 0.02;
/// Maximum number of CPUs for other programs, on average over the run. With more, figures cannot be trusted: some job was
/// slowed down by as much, and one such job spoils a comparison.
pub(crate) const MOST_FOREIGN_CPUS: f64 = 0.1;
/// A smaller share of the CPU time can be an error of the kernel's accounts, which count a CPU by samples.
pub(crate) const LEAST_FOREIGN: f64 = 0.02;
/// Minimum length of a run that is judged: the accounts are in steps of about 10 ms on each CPU.
pub(crate) const LEAST_TIME: Nanos = Nanos::from_ms(1_000);

/// The use of the run's CPUs during the run.
#[derive(Clone, Copy, Debug)]
pub struct MachineUse {
    /// Number of CPUs that the run could use.
    pub cpus: usize,
    /// All their time, idle or busy.
    pub total: Nanos,
    /// Time that the hypervisor gave to others.
    pub stolen: Nanos,
    /// Time in which they executed other programs.
    pub foreign: Nanos,
}

impl MachineUse {
    fn steal_share(&self) -> f64 {
        self.stolen.share_of(self.total)
    }

    fn foreign_share(&self) -> f64 {
        self.foreign.share_of(self.total)
    }

    fn foreign_cpus(&self) -> f64 {
        self.foreign_share() * self.cpus as f64
    }

    /// Return what others took of the CPUs, in words; `None` if that was too little, or the run too short, to matter.
    pub fn disturbance(&self) -> Option<String> {
        if self.total.0 / (self.cpus.max(1) as u64) < LEAST_TIME.0 {
            return None;
        }
        let mut taken = Vec::new();
        if self.foreign_cpus() > MOST_FOREIGN_CPUS && self.foreign_share() > LEAST_FOREIGN {
            taken.push(format!(
                "other programs took {:.2} of {}",
                self.foreign_cpus(),
                count(self.cpus as u64, "CPU")
            ));
        }
        if self.steal_share() > MOST_STEAL {
            let percent = self.steal_share() * 100.0;
            taken.push(format!(
                "the hypervisor took {percent:.1} % of the CPU time"
            ));
        }
        (!taken.is_empty()).then(|| taken.join(", and "))
    }
}

/// Return a warning if figures cannot be trusted; `alone` if they are solo times.
pub fn disturbances(used: Reading<MachineUse>, alone: bool) -> Vec<RunWarning> {
    let Some(why) = used.value().and_then(|used| used.disturbance()) else {
        return Vec::new();
    };
    let why = format!("{why} meanwhile");
    vec![if alone {
        RunWarning::SoloDisturbed { why }
    } else {
        RunWarning::Disturbed { why }
    }]
}

/// The same in the run record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// CPU time of the run's CPUs in seconds, idle or busy.
    pub cpu_s: Option<f64>,
    /// Share of it that the hypervisor gave to others, from 0 to 1.
    pub steal_share: Option<f64>,
    /// Share of it that other programs used, from 0 to 1.
    pub foreign_share: Option<f64>,
    /// The same as a number of CPUs.
    pub foreign_cpus: Option<f64>,
    /// Why null values are absent.
    #[serde(flatten)]
    pub absent: Absences,
}

impl MachineLoad {
    /// The same in the units of a record.
    pub fn of(used: Reading<MachineUse>) -> MachineLoad {
        let mut absent = Absences::default();
        MachineLoad {
            cpu_s: absent.note("cpu_s", used.map(|used| used.total.as_s())),
            steal_share: absent.note("steal_share", used.map(|used| used.steal_share())),
            foreign_share: absent.note("foreign_share", used.map(|used| used.foreign_share())),
            foreign_cpus: absent.note("foreign_cpus", used.map(|used| used.foreign_cpus())),
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
        MachineUse {
            cpus: 2,
            total: time(2.0 * s),
            stolen: time(stolen),
            foreign: time(foreign),
        }
    }

    #[test]
    fn disturbed_runs_are_told_from_noise() {
        let told = |used: MachineUse| {
            let why = used.disturbance().unwrap_or_default();
            (
                why.contains("other programs"),
                why.contains("the hypervisor"),
            )
        };
        assert_eq!(told(used(10.0, 0.3, 0.9)), (false, false));
        assert_eq!(told(used(10.0, 0.5, 0.0)), (false, true));
        assert_eq!(told(used(10.0, 0.0, 1.1)), (true, false));
        assert_eq!(told(used(10.0, 8.0, 9.0)), (true, true));
        assert_eq!(
            told(used(0.9, 0.9, 0.9)),
            (false, false),
            "too short to say"
        );
        let large = MachineUse {
            cpus: 128,
            total: Nanos::from_s(1_280.0),
            stolen: Nanos::ZERO,
            foreign: Nanos::from_s(12.0),
        };
        assert_eq!(
            told(large),
            (false, false),
            "1.2 CPUs of 128 are within the error of the accounts"
        );
        assert_eq!(
            told(MachineUse {
                foreign: Nanos::from_s(30.0),
                ..large
            }),
            (true, false)
        );
    }

    #[test]
    fn what_is_not_known_is_absent() {
        let load = MachineLoad::of(Reading::Absent(Absence::NotTold));
        assert_eq!(
            (load.steal_share, load.absent.why("foreign_cpus")),
            (None, Some(Absence::NotTold.text()))
        );
        let load = MachineLoad::of(Reading::Value(used(10.0, 1.0, 2.0)));
        assert_eq!((load.cpu_s, load.steal_share), (Some(20.0), Some(0.05)));
        assert_eq!(
            (load.foreign_share, load.foreign_cpus),
            (Some(0.1), Some(0.2))
        );
    }
}
