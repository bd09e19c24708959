//! This machine with a scheduler in the kernel. Where a plan is in force nothing is frozen and bound; decisions one by one
//! are carried out as everywhere on this machine, beside the scheduler.

use crate::host::ThisMachine;
use crate::processes;
use cosched_conformance::{Fixture, ScenarioJob, ScenarioSkip, name};
use cosched_core::{CpuId, CpuSet, Nanos};
use cosched_linux::root::Root;
use cosched_linux::{Freezing, Host, KernelScheduler};
use std::time::{Duration, Instant};

/// The limit of a wait for a process to be where it is to be.
const PATIENCE: Duration = Duration::from_secs(5);

/// This machine, with the scheduler.
pub(crate) struct InKernel(ThisMachine);

impl InKernel {
    pub(crate) fn new() -> Result<InKernel, ScenarioSkip> {
        if let Some(lack) = cosched_ext::lack(&Root::default()) {
            return Err(ScenarioSkip(format!(
                "no scheduler can be loaded into the kernel: {lack}"
            )));
        }
        ThisMachine::new(Freezing::Cgroup).map(InKernel)
    }

    #[cfg(feature = "sched-ext")]
    fn scheduler(&self, jobs: usize) -> Option<Box<dyn KernelScheduler>> {
        let loaded = cosched_ext::Scheduler::load(
            &self.0.machine,
            jobs,
            false,
            cosched_ext::SchedulerWork::Plans,
            None,
        );
        Some(Box::new(loaded.expect("the scheduler is loaded")))
    }

    #[cfg(not(feature = "sched-ext"))]
    fn scheduler(&self, _jobs: usize) -> Option<Box<dyn KernelScheduler>> {
        None
    }
}

impl Fixture for InKernel {
    type Backend = Host;

    /// It is emulated as a rule, and each of its CPUs may be without a CPU of the machine for a while.
    const AFTER_STOP: Nanos = Nanos::from_ms(20);
    const CLOSE: Nanos = Nanos::from_ms(500);
    const LONG: u64 = 3000;
    const LEAST_SHARE: f64 = 0.0;
    const NOT_REPEATABLE: Option<&'static str> = ThisMachine::NOT_REPEATABLE;

    fn backend(&self, jobs: &[ScenarioJob]) -> Result<Host, ScenarioSkip> {
        // A nap lasts so long. On an emulated machine everything that a scenario does meanwhile takes long.
        Ok(self
            .0
            .host(jobs, self.scheduler(jobs.len()), Nanos::from_ms(1000)))
    }

    fn cpus_of(_backend: &mut Host, task: usize, wanted: Option<&CpuSet>) -> CpuSet {
        let end = Instant::now() + PATIENCE;
        loop {
            let mut all = CpuSet::new();
            let mut bound = CpuSet::new();
            for process in processes::of_run(std::process::id(), Some(&name(task))) {
                bound.extend(processes::allowed(process.pid).iter().collect::<Vec<_>>());
                // One that sleeps is nowhere.
                if process.state == 'R' {
                    all.insert(CpuId(process.cpu));
                }
            }
            // Where decisions are carried out one by one, it is bound.
            if wanted.is_some_and(|wanted| bound.is_subset(wanted)) {
                return bound;
            }
            if wanted.is_none_or(|wanted| all.is_subset(wanted)) || Instant::now() > end {
                return if all.is_empty() {
                    all
                } else {
                    all.intersection(&bound)
                };
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn nothing_stands_still(&self) {
        self.0.nothing_stands_still();
    }
}
