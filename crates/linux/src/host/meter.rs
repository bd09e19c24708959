//! Usage meters: hardware events and CPU time of each job, energy of the package, traffic of the memory domains.

use super::live_job::CpuAccount;
use super::notice::{Notice, Notices};
use crate::counters::group::Total;
use crate::counters::{Counted, CounterSupport, JobCounters, Start};
use crate::energy::EnergyMeter;
use crate::events::MachineEvents;
use crate::root::{NoMeter, Root};
use crate::sys::{self, RawPid};
use crate::traffic::TrafficMeter;
use cosched_core::{
    Absence, ByTask, Counter, Counts, Machine, PerCounter, Reading, TaskId, Traffic, Usage,
};
use rustix::process::Pid;

/// Measures each job, and the total energy and traffic.
pub(crate) struct Meter {
    support: CounterSupport,
    energy: Result<EnergyMeter, NoMeter>,
    /// Opened at its first use: most policies never need it.
    traffic: Option<Result<TrafficMeter, NoMeter>>,
    /// The jobs that have started.
    jobs: ByTask<Metered>,
    /// Whether the user was warned that there are too few descriptors to count all jobs.
    told_no_room: bool,
    notices: Notices,
}

/// Maximum number of descriptors for the counters of a job: one for each event on each of two PMUs, and a clock.
const DESCRIPTORS: usize = 2 * Counter::COUNT + 1;

enum Metered {
    Live {
        /// Or why there are none.
        counters: Result<Box<JobCounters>, Absence>,
        /// The counts of the scheduler in the kernel so far, if it counts.
        in_kernel: Option<Box<PerCounter<Total>>>,
    },
    /// Its final usage.
    Ended(Usage),
}

impl Meter {
    pub(crate) fn new(root: &Root, support: CounterSupport, notices: Notices) -> Meter {
        Meter {
            support,
            energy: EnergyMeter::open(root),
            traffic: None,
            jobs: ByTask::default(),
            told_no_room: false,
            notices,
        }
    }

    pub(crate) fn support(&self) -> &CounterSupport {
        &self.support
    }

    /// Counts the job of this process from the moment when it executes its program, if descriptors are left; only its
    /// CPU time, if a scheduler in the kernel counts the rest.
    pub(crate) fn attach(&mut self, task: TaskId, name: &str, pid: RawPid, in_kernel: bool) {
        let counters = rustix::process::Pid::from_raw(pid)
            .filter(|_| self.has_room(name))
            .map(|pid| self.open(name, pid, in_kernel))
            .ok_or(Absence::TooManyFiles);
        let in_kernel = in_kernel.then(|| Box::new(PerCounter::from_fn(|_| Total::default())));
        let metered = Metered::Live {
            counters,
            in_kernel,
        };
        self.jobs.insert(task, metered);
    }

    /// Measures only the CPU time of a job: its processes ran before.
    pub(crate) fn follow(&mut self, task: TaskId) {
        let metered = Metered::Live {
            counters: Err(Absence::NotOffered),
            in_kernel: None,
        };
        self.jobs.insert(task, metered);
    }

    fn open(&self, name: &str, pid: Pid, in_kernel: bool) -> Box<JobCounters> {
        let none = MachineEvents::default();
        let events = if in_kernel {
            &none
        } else {
            &self.support.usable
        };
        let (counters, problems) = JobCounters::open(pid, events, Start::OnExec);
        if let Some(problem) = problems.iter().find(|problem| problem.event.is_some()) {
            self.tell_failed(name, problem.to_string());
        }
        Box::new(counters)
    }

    fn tell_failed(&self, name: &str, why: String) {
        let job = name.to_owned();
        self.notices.tell(Notice::CountersFailed { job, why });
    }

    /// Whether enough descriptors are left for the counters of one more job. Some are reserved for the run itself.
    fn has_room(&mut self, name: &str) -> bool {
        let room = sys::spare_descriptors() >= DESCRIPTORS;
        if !room && !std::mem::replace(&mut self.told_no_room, true) {
            let why = format!(
                "{}; the same holds for further jobs while as many run",
                Absence::TooManyFiles.text()
            );
            self.tell_failed(name, why);
        }
        room
    }

    /// Usage of a job since its start. `account` is its CPU time by the kernel's accounts. It takes precedence if it
    /// covers all processes: perf's clock also runs while a hypervisor gives the CPU to others. `counted` are the
    /// counts of the scheduler in the kernel.
    pub(crate) fn read(
        &mut self,
        task: TaskId,
        account: Option<CpuAccount>,
        counted: Option<PerCounter<Option<Counted>>>,
    ) -> Usage {
        let (counters, in_kernel) = match self.jobs.get_mut(task) {
            None => return unread(task, Absence::NotStarted),
            Some(Metered::Ended(last)) => return last.clone(),
            Some(Metered::Live {
                counters,
                in_kernel,
            }) => (counters, in_kernel),
        };
        let why = counters.as_ref().err().copied();
        let mut usage = unread(task, why.unwrap_or(Absence::TooManyFiles));
        if let Ok(counters) = counters {
            usage.cpu_time = match account {
                Some(account) if account.is_whole => Reading::Value(account.time),
                _ => counters.read_cpu_time(),
            };
            usage.counts = counters.read();
            usage.multiplexed = counters.multiplexed();
        }
        if let Some(totals) = in_kernel {
            usage.counts = counts_in_kernel(&self.support, totals, counted);
            usage.multiplexed = totals.iter().any(|(_, total)| total.multiplexed);
        }
        if !usage.cpu_time.is_value()
            && let Some(account) = account
        {
            usage.cpu_time = Reading::Value(account.time);
        }
        usage
    }

    /// Keeps the final usage of an ended job, and closes its counters.
    pub(crate) fn close(
        &mut self,
        task: TaskId,
        account: Option<CpuAccount>,
        counted: Option<PerCounter<Option<Counted>>>,
    ) {
        let mut last = self.read(task, account, counted);
        // The kernel closes the clock of a process that executes a set-user-ID program. The waited-for time counts.
        if let (Reading::Value(clock), Some(account)) = (last.cpu_time, account) {
            last.cpu_time = Reading::Value(clock.max(account.time));
        }
        self.jobs.insert(task, Metered::Ended(last));
    }

    /// Forgets a job that has not started, will restart, or has ended for good.
    pub(crate) fn reset(&mut self, task: TaskId) {
        self.jobs.remove(task);
    }

    /// Energy of the processor package since the meter was made, in joules.
    pub(crate) fn energy_j(&mut self) -> Reading<f64> {
        match &mut self.energy {
            Ok(meter) => meter.joules(),
            Err(problem) => Reading::Absent(problem.reason),
        }
    }

    /// Appends the traffic of each memory domain since the first call.
    pub(crate) fn traffic(&mut self, root: &Root, machine: &Machine, out: &mut Vec<Traffic>) {
        match self
            .traffic
            .get_or_insert_with(|| TrafficMeter::open(root, machine))
        {
            Ok(meter) => meter.read(out),
            Err(problem) => out.extend(
                machine
                    .memory_domains
                    .iter()
                    .map(|_| Traffic::absent(problem.reason)),
            ),
        }
    }
}

/// The counts of the scheduler in the kernel for a job.
fn counts_in_kernel(
    support: &CounterSupport,
    totals: &mut PerCounter<Total>,
    counted: Option<PerCounter<Option<Counted>>>,
) -> Counts {
    Counts::from_fn(
        |counter| match counted.as_ref().and_then(|counted| counted[counter]) {
            Some(now) => totals[counter].update(&[now]),
            None => {
                let why = support.of(counter).absence();
                Reading::Absent(why.unwrap_or(Absence::CountersLost))
            }
        },
    )
}

fn unread(task: TaskId, why: Absence) -> Usage {
    Usage {
        cpu_time: Reading::Absent(why),
        counts: Counts::absent(why),
        ..Usage::zero(task)
    }
}
