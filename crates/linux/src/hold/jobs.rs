//! The jobs of a run, as its guardian frees them.
//!
//! If the run dies, the guardian thaws the run's groups, continues its stopped processes and gives them their CPUs back. The
//! jobs run on, unless they are to end with the run: then the guardian kills them. It removes the groups and the list when the
//! last of them has ended, and ends.
//!
//! If the guardian is killed as well, each job's own process is continued by its parent-death signal.

use super::claim::RunClaim;
use super::guardian::{Guarded, PATIENCE};
use super::ledger::{Ledger, LedgerHead, Record};
use super::process_scan::ProcessScan;
use crate::cgroup;
use crate::process;
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys::{self, RawPid};
use rustix::process::{Signal, geteuid};
use std::ffi::CStr;
use std::time::Duration;

/// The jobs of a run, and what its guardian must know of them.
#[derive(Clone, Debug)]
pub(crate) struct GuardedJobs {
    pub(crate) root: Root,
    pub(crate) head: LedgerHead,
    /// The run's processes, now and later.
    pub(crate) ledger: Ledger,
    /// The jobs are killed when the run dies.
    pub(crate) ends_jobs: bool,
}

/// When a run that looked after a scheduler in the kernel has not done so for this long, the guardian gives its processes back
/// to the ordinary scheduler. The kernel complains of a read that lasts for 21 s, and of a process that waits for 30 s.
///
/// Such a scheduler's processes come after ordinary ones. One that ordinary processes keep from its CPU may be in the middle of
/// something that others wait for: the kernel, for one, neither puts a process into a cgroup nor removes the scheduler before
/// all that read without a lock (RCU) have read. So the run itself may hang, and its end may. The guardian does not.
pub(crate) const HELD: Duration = Duration::from_secs(10);

/// Scans for stopped processes when the run has died. A signal may still be under way at the first.
const LOOKS: u32 = 4;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

impl Guarded for GuardedJobs {
    const NAME: &'static CStr = c"run-guardian";

    fn root(&self) -> &Root {
        &self.root
    }

    fn run(&self) -> RunId {
        self.head.run
    }

    fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    fn silence(&self) -> Duration {
        HELD
    }

    fn relieve(&self) {
        give_back(&self.root);
    }

    fn free(&self) {
        if self.ends_jobs {
            self.end();
        } else {
            self.go_on();
        }
        self.stay();
    }
}

impl GuardedJobs {
    fn claim<'a>(&'a self, record: Option<&'a Record>) -> RunClaim<'a> {
        RunClaim {
            run: self.head.run,
            record,
            group: self.head.group.as_deref(),
            owner: geteuid().as_raw(),
            is_own_list: true,
        }
    }

    /// Thaws the groups of the dead run.
    fn thaw(&self) {
        if let Some(group) = self.head.group.as_deref() {
            let _ = cgroup::thaw(group);
        }
    }

    /// Frees all that the dead run stopped or froze.
    fn go_on(&self) {
        let root = &self.root;
        self.thaw();
        let record = self.ledger.read();
        // First the quick part: every job's own process, and its process group.
        for job in record.iter().flat_map(|record| &record.jobs) {
            // Also of one that has ended: its group may go on, and has the same number as long as that is kept.
            if let Some(main) = job.main.find(root)
                && main.signal(root, Signal::CONT)
            {
                let _ = sys::kill(-main.pid, libc::SIGCONT);
            }
        }
        let claim = self.claim(record.as_ref());
        for look in 0..LOOKS {
            let claimed = claim.processes(&ProcessScan::new(root));
            for member in &claimed {
                // A stop that is on its way is called off by the signal as well.
                if member.process.is_stopped() || (look == 0 && member.sure) {
                    member.process.signal(root, Signal::CONT);
                }
            }
            let pids: Vec<RawPid> = claimed.iter().map(|member| member.process.pid).collect();
            process::bind(root, &pids, &self.head.cpus);
            std::thread::sleep(BETWEEN_LOOKS);
        }
        self.thaw();
    }

    /// Kills all processes of the dead run's jobs.
    fn end(&self) {
        let mut pause = Duration::from_millis(1);
        loop {
            // The kernel kills what is frozen as well.
            if let Some(group) = self.head.group.as_deref() {
                cgroup::kill(group);
            }
            self.thaw();
            let record = self.ledger.read();
            let claim = self.claim(record.as_ref());
            let mut claimed = claim.processes(&ProcessScan::new(&self.root));
            claimed.retain(|member| !member.process.is_dead());
            if claimed.is_empty() {
                return;
            }
            for member in claimed {
                member.process.signal(&self.root, Signal::KILL);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PATIENCE);
        }
    }

    /// Waits for the end of the jobs, and removes their groups and their list.
    fn stay(&self) {
        let root = &self.root;
        let mut pause = BETWEEN_LOOKS;
        loop {
            let gone = self.head.group.as_deref().is_none_or(cgroup::remove);
            let record = self.ledger.read();
            // Looking at all processes is left for the time when those in the list have gone.
            if gone && !record.as_ref().is_some_and(|record| record.any_lives(root)) {
                let claim = self.claim(record.as_ref());
                if claim.processes(&ProcessScan::new(root)).is_empty() {
                    return self.ledger.remove_file();
                }
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PATIENCE);
        }
    }
}

/// Gives the processes of the scheduler in the kernel, of which there is one at a time, back to the ordinary scheduler. What asks
/// for groups could wait itself here.
fn give_back(root: &Root) {
    // One that was started meanwhile has what its parent had.
    for _ in 0..LOOKS {
        process::for_threads(root, &process::all_pids(root), |tid| {
            if sys::is_loaded(tid) {
                let _ = sys::set_loaded_scheduler(tid, false);
            }
        });
        std::thread::sleep(BETWEEN_LOOKS);
    }
}
