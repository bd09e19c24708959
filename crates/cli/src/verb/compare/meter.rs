//! How far another program had the CPUs for itself, told as `cosched run` tells it of its own runs.

use cosched_core::{Absence, CpuSet, Reading};
use cosched_linux::accounts::{self, CpuAccounts, CpuUse};
use cosched_linux::root::Root;
use cosched_report::{MachineLoad, MachineUse, RunWarning, disturbances};

/// What is read before the program starts.
pub(super) struct Meter {
    root: Root,
    /// Those that the program may use.
    cpus: CpuSet,
    accounts: Option<CpuAccounts>,
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
        Some(Meter {
            accounts: accounts::read(&root, &cpus),
            root,
            cpus,
        })
    }

    /// Reads them again. The program must have been waited for: only then its time counts as its own.
    pub(super) fn end(self) -> Seen {
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
        let doubts = disturbances(used, false);
        Seen {
            load: MachineLoad::of(used),
            doubts: doubts.iter().map(RunWarning::text).collect(),
        }
    }
}
