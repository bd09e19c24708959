//! How far another program had the CPUs for itself, told as `cosched run` tells it of its own runs.

use cosched_core::{Absence, CpuSet, Nanos, Reading};
use cosched_linux::accounts::{self, CpuAccounts, CpuUse};
use cosched_linux::root::Root;
use cosched_linux::throttling::{self, ThrottleCounts};
use cosched_report::{MachineLoad, MachineUse, RunWarning, Throttling, disturbances};
use std::time::Instant;

/// What is read before the program starts.
pub(super) struct Meter {
    root: Root,
    /// Those that the program may use.
    cpus: CpuSet,
    accounts: Option<CpuAccounts>,
    throttled: Reading<ThrottleCounts>,
    began: Instant,
}

/// What is known after its end.
pub(super) struct Seen {
    pub(super) load: MachineLoad,
    /// What makes its time doubtful, in sentences.
    pub(super) doubts: Vec<String>,
}

impl Meter {
    /// Reads the accounts; `None` if even the CPUs are unknown.
    pub(super) fn begin() -> Option<Meter> {
        let (root, cpus) = (Root::default(), cosched_linux::affinity(0).ok()?);
        let (accounts, throttled) = (accounts::read(&root, &cpus), throttling::read(&root, &cpus));
        Some(Meter {
            root,
            cpus,
            accounts,
            throttled,
            began: Instant::now(),
        })
    }

    /// Reads them again. The program must have been waited for: only then its time counts as its own.
    pub(super) fn end(self) -> Seen {
        let run = Nanos::from_s(self.began.elapsed().as_secs_f64());
        let now = accounts::read(&self.root, &self.cpus);
        let used = now
            .zip(self.accounts)
            .and_then(|(now, before)| now.since(&before))
            .map_or(
                Reading::Absent(Absence::NotTold),
                |CpuUse {
                     total,
                     stolen,
                     foreign,
                 }| {
                    Reading::Value(MachineUse {
                        cpus: self.cpus.len(),
                        total,
                        stolen,
                        foreign,
                    })
                },
            );
        let throttled = throttling::read(&self.root, &self.cpus);
        let throttled = self
            .throttled
            .and_then(|before| throttled.and_then(|now| now.since(&before)));
        let throttled = throttled.map(|past| Throttling {
            events: past.events,
            time: past.time,
            run,
        });
        let doubts = disturbances(used, throttled, false);
        Seen {
            load: MachineLoad::of(used, throttled),
            doubts: doubts.iter().map(RunWarning::text).collect(),
        }
    }
}
