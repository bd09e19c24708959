//! What a run took of this machine: CPU time of its own and of others.

use super::platform::MachineView;
use cosched_core::{CpuSet, Nanos, Reading};
use cosched_linux::accounts::{self, CpuAccounts};
use cosched_linux::own_cpu_time;
use cosched_linux::root::Root;
use cosched_report::{BackendKind, MachineUse, RunInfo};

/// The machine's counters at the start of a run.
pub(crate) struct MachineGauge {
    root: Root,
    cpus: CpuSet,
    accounts: Option<CpuAccounts>,
    own: Nanos,
}

impl MachineGauge {
    /// Reads the counters of the CPUs that a run uses at first; `None` if it does not run on this machine.
    pub(crate) fn of_run(view: &MachineView) -> Option<MachineGauge> {
        if view.kind != BackendKind::Host {
            return None;
        }
        let root = Root::default();
        let cpus = view.machine.all_cpus();
        Some(MachineGauge {
            accounts: accounts::read(&root, &cpus),
            own: own_cpu_time(),
            root,
            cpus,
        })
    }

    /// Notes in `info` what a run of this length took.
    pub(crate) fn finish(self, turnaround: Nanos, info: &mut RunInfo) {
        if let Some(used) = self.machine_use() {
            info.machine_use = Reading::Value(used);
        }
        if turnaround > Nanos::ZERO {
            let own = own_cpu_time() - self.own;
            info.cpu_share = Reading::Value(own.share_of(turnaround));
        }
    }

    /// What others took. All that this process started has ended, and counts as its own.
    fn machine_use(&self) -> Option<MachineUse> {
        let now = accounts::read(&self.root, &self.cpus)?;
        let used = now.since(self.accounts.as_ref()?)?;
        Some(MachineUse {
            cpus: self.cpus.len(),
            total: used.total,
            stolen: used.stolen,
            foreign: used.foreign,
        })
    }
}
