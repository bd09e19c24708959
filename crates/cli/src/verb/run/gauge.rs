//! What a run took of this machine: CPU time of its own and of others, and throttling by heat.

use cosched_core::{Absence, CpuSet, Nanos, Reading};
use cosched_linux::accounts::{self, CpuAccounts, CpuUse};
use cosched_linux::root::Root;
use cosched_linux::throttling::{self, ThrottleCounts};
use cosched_report::{MachineUse, RunInfo, Throttling};

/// The machine's counters at the start of a run.
pub(crate) struct Gauge {
    root: Root,
    cpus: CpuSet,
    accounts: Option<CpuAccounts>,
    throttled: Reading<ThrottleCounts>,
    own: Nanos,
}

impl Gauge {
    /// Reads the counters of these CPUs.
    pub(crate) fn start(cpus: CpuSet) -> Gauge {
        let root = Root::default();
        Gauge {
            accounts: accounts::read(&root, &cpus),
            throttled: throttling::read(&root, &cpus),
            own: own_cpu_time(),
            root,
            cpus,
        }
    }

    /// Notes in `info` what a run of this length took, without `left_out`, the time in which it was suspended.
    pub(crate) fn finish(self, turnaround: Nanos, left_out: CpuUse, info: &mut RunInfo) {
        info.throttling = self.throttling(turnaround, left_out);
        if let Some(used) = self.machine_use(left_out) {
            info.machine_use = Reading::Value(used);
        }
        if turnaround > Nanos::ZERO {
            let own = own_cpu_time() - self.own;
            info.cpu_share = Reading::Value(own.share_of(turnaround));
        }
    }

    fn throttling(&self, run: Nanos, left_out: CpuUse) -> Reading<Throttling> {
        // While a run is suspended, others heat the processor.
        if left_out.total > Nanos::ZERO {
            return Reading::Absent(Absence::NotYetMeasured);
        }
        let now = throttling::read(&self.root, &self.cpus);
        let past = self
            .throttled
            .clone()
            .and_then(|before| now.and_then(|now| now.since(&before)));
        past.map(|past| Throttling {
            events: past.events,
            time: past.time,
            run,
        })
    }

    /// What others took. All that this process started has ended, and counts as its own.
    fn machine_use(&self, left_out: CpuUse) -> Option<MachineUse> {
        let now = accounts::read(&self.root, &self.cpus)?;
        let used = now.since(self.accounts.as_ref()?)?.without(left_out);
        Some(MachineUse {
            cpus: self.cpus.len(),
            total: used.total,
            stolen: used.stolen,
            foreign: used.foreign,
        })
    }
}

/// CPU time of this process, without its children.
pub(crate) fn own_cpu_time() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
