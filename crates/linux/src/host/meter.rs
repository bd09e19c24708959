//! Usage meters: hardware events and CPU time of each job, energy of the package, traffic of the memory domains.

use super::live_job::CpuAccount;
use super::notice::{HostNotice, HostNotices};
use crate::counters::group::EventTotal;
use crate::counters::{CounterSupport, EventReading, EventStart, JobCounters, Trust, total_of};
use crate::energy::EnergyMeter;
use crate::events::MachineEvents;
use crate::root::{NoMeter, Root};
use crate::sys::{self, RawPid};
use crate::traffic::TrafficMeter;
use cosched_core::{
    Absence, ByTask, Counter, Counts, Machine, Nanos, PerCounter, Reading, TaskId, Traffic, Usage,
};
use rustix::process::Pid;
use std::collections::BTreeSet;

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
    /// Which events are believed.
    trust: Trust,
    /// Events whose loss the user was told of.
    told_lost: BTreeSet<Counter>,
    notices: HostNotices,
}

/// Maximum number of descriptors for the counters of a job: one for each event on each of two PMUs.
const DESCRIPTORS: usize = 2 * Counter::COUNT;

enum Metered {
    Live(JobMeter),
    /// Its final usage.
    Ended(Usage),
}

/// The meters of a live job.
struct JobMeter {
    name: String,
    /// Or why there are none.
    counters: Result<Box<JobCounters>, Absence>,
    /// The counts of the scheduler in the kernel so far, if it counts.
    in_kernel: Option<Box<PerCounter<EventTotal>>>,
}

impl JobMeter {
    /// Reads the job's own events, or takes over those `counted` in the kernel.
    fn read(
        &mut self,
        task: TaskId,
        support: &CounterSupport,
        account: Option<CpuAccount>,
        counted: Option<PerCounter<Option<EventReading>>>,
    ) -> Usage {
        let why = self.counters.as_ref().err().copied();
        let mut usage = unread(task, why.unwrap_or(Absence::TooManyFiles));
        if let Ok(counters) = &mut self.counters {
            usage.counts = counters.read();
            usage.cpu_time = counters.read_cpu_time();
        }
        if let Some(totals) = &mut self.in_kernel {
            usage.counts = counts_in_kernel(support, totals, counted);
        }
        let totals = self.totals();
        usage.multiplexed = totals.iter().any(|(_, total)| total.multiplexed);
        let clock = totals.iter().map(|(_, total)| total.clock()).max();
        let clock = clock.filter(|clock| *clock > Nanos::ZERO);
        if let Some(clock) = clock {
            usage.cpu_time = Reading::Value(clock);
            if let Some(account) = account.filter(|account| account.is_ahead_of(clock)) {
                usage.cpu_time = Reading::Value(account.time);
                usage.counts = Counts::absent(Absence::CountersLost);
            }
        } else if let Some(account) = account {
            usage.cpu_time = Reading::Value(match usage.cpu_time {
                // Both lack what the other may have: the kernel closes the clock of a process that executes a
                // set-user-ID program, and the account has only the processes that were waited for.
                Reading::Value(clock) if !account.is_whole => clock.max(account.time),
                _ => account.time,
            });
        }
        usage
    }

    /// Whether cycles or instructions stand still now: no event of that PMU is believed meanwhile.
    fn stands_still(&self) -> bool {
        let mut totals = self.totals().into_iter();
        totals.any(|(_, total)| total.stands_still())
    }

    /// The reason, if they ever stood still.
    fn stood_still(&self) -> Option<Absence> {
        let gaps = self
            .totals()
            .into_iter()
            .filter_map(|(_, total)| total.gap());
        gaps.into_iter().find(|why| *why == Absence::CountsNothing)
    }

    /// The count of a job that has ended, after its last reading.
    fn at_end(&self, total: &EventTotal, last: Reading<u64>) -> Reading<u64> {
        match (self.stood_still(), last) {
            (Some(why), Reading::Value(_)) => Reading::Absent(why),
            // At the end the event only lacked a turn.
            (None, Reading::Value(_) | Reading::Absent(Absence::NoCounterFree)) => total.at_end(),
            (_, absent) => absent,
        }
    }

    /// The totals of the events that are counted.
    fn totals(&self) -> Vec<(Counter, &EventTotal)> {
        let own = self.counters.iter().flat_map(|counters| counters.totals());
        let in_kernel = self.in_kernel.iter().flat_map(|totals| totals.iter());
        own.chain(in_kernel).collect()
    }
}

impl Meter {
    pub(crate) fn new(root: &Root, support: CounterSupport, notices: HostNotices) -> Meter {
        Meter {
            trust: Trust::new(&support.unproven),
            told_lost: BTreeSet::new(),
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
        let usable = &self.support.usable;
        let totals = || PerCounter::from_fn(|counter| total_of(counter, usable));
        let meter = JobMeter {
            name: name.to_owned(),
            counters,
            in_kernel: in_kernel.then(|| Box::new(totals())),
        };
        self.jobs.insert(task, Metered::Live(meter));
    }

    /// Measures only the CPU time of a job: its processes ran before.
    pub(crate) fn follow(&mut self, task: TaskId) {
        let meter = JobMeter {
            name: String::new(),
            counters: Err(Absence::NotOffered),
            in_kernel: None,
        };
        self.jobs.insert(task, Metered::Live(meter));
    }

    fn open(&self, name: &str, pid: Pid, in_kernel: bool) -> Box<JobCounters> {
        let none = MachineEvents::default();
        let events = if in_kernel {
            &none
        } else {
            &self.support.usable
        };
        let (counters, problems) = JobCounters::open(pid, events, EventStart::OnExec);
        if let Some(problem) = problems.iter().find(|problem| problem.event.is_some()) {
            self.tell_failed(name, problem.to_string());
        }
        Box::new(counters)
    }

    fn tell_failed(&self, name: &str, why: String) {
        let job = name.to_owned();
        self.notices.tell(HostNotice::CountersFailed { job, why });
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

    /// Usage of a job since its start. `account` is its CPU time by the kernel's accounts, which move by ticks; `counted`
    /// are the counts of the scheduler in the kernel. Where events are counted, CPU time is the counters' own clock, so
    /// that rates are right also in short intervals.
    pub(crate) fn read(
        &mut self,
        task: TaskId,
        account: Option<CpuAccount>,
        counted: Option<PerCounter<Option<EventReading>>>,
    ) -> Usage {
        let meter = match self.jobs.get_mut(task) {
            None => return unread(task, Absence::NotStarted),
            Some(Metered::Ended(last)) => return last.clone(),
            Some(Metered::Live(meter)) => meter,
        };
        let mut usage = meter.read(task, &self.support, account, counted);
        let stands_still = meter.stands_still();
        // Events of the kernel that stand in for others may be rare.
        let tells = !stands_still && !self.support.usable.is_of_kernel();
        let mut lost = Vec::new();
        for (counter, total) in meter.totals() {
            if tells {
                self.trust.note(counter, total.interval);
            }
            if stands_still || !self.trust.believes(counter) {
                usage.counts[counter] = Reading::Absent(Absence::CountsNothing);
                lost.push((counter, Absence::CountsNothing));
            }
            lost.extend(total.gap().map(|why| (counter, why)));
        }
        self.tell_lost(task, lost);
        usage
    }

    /// Tells the user of events that were lost, each once.
    fn tell_lost(&mut self, task: TaskId, mut lost: Vec<(Counter, Absence)>) {
        lost.retain(|(counter, _)| self.told_lost.insert(*counter));
        let Some(&(_, why)) = lost.first() else {
            return;
        };
        let events = lost.iter().map(|(counter, _)| counter.name()).collect();
        if let Some(Metered::Live(meter)) = self.jobs.get(task) {
            let job = meter.name.clone();
            self.notices
                .tell(HostNotice::NotCounted { events, job, why });
        }
    }

    /// Keeps the final usage of an ended job, and closes its counters.
    pub(crate) fn close(
        &mut self,
        task: TaskId,
        account: Option<CpuAccount>,
        counted: Option<PerCounter<Option<EventReading>>>,
    ) {
        let mut last = self.read(task, account, counted);
        let mut lost = Vec::new();
        if let Some(Metered::Live(meter)) = self.jobs.get(task) {
            for (counter, total) in meter.totals() {
                let at_end = meter.at_end(total, last.counts[counter]);
                last.counts[counter] = at_end;
                lost.extend(at_end.absence().map(|why| (counter, why)));
            }
            // What this event never was is no loss.
            lost.retain(|(counter, _)| self.support.of(*counter).is_value());
        }
        self.tell_lost(task, lost);
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
    totals: &mut PerCounter<EventTotal>,
    counted: Option<PerCounter<Option<EventReading>>>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    const JOB: TaskId = TaskId(0);

    /// A meter of a job whose instructions are counted in the kernel, and what the user was told.
    fn meter() -> (Meter, Rc<RefCell<Vec<String>>>) {
        let support = CounterSupport {
            paranoid: None,
            pmus: Vec::new(),
            events: PerCounter::from_fn(|counter| match counter {
                Counter::Instructions => Reading::Value(()),
                _ => Reading::Absent(Absence::NoSuchEvent),
            }),
            cpu_time: Reading::Value(()),
            problems: Vec::new(),
            unproven: BTreeSet::new(),
            usable: MachineEvents::default(),
        };
        let told = Rc::new(RefCell::new(Vec::new()));
        let listener = told.clone();
        let notices = HostNotices::new(Box::new(move |notice| {
            listener.borrow_mut().push(format!("{notice:?}"));
        }));
        let root = Root::new(tempfile::tempdir().expect("a folder").path());
        let mut meter = Meter::new(&root, support, notices);
        let own = rustix::process::getpid().as_raw_nonzero().get();
        meter.attach(JOB, "job", own, true);
        (meter, told)
    }

    /// Instructions at one in a nanosecond for so many milliseconds.
    fn counted(ms: u64) -> Option<PerCounter<Option<EventReading>>> {
        let time = Nanos::from_ms(ms).0;
        let instructions = EventReading {
            enabled: time,
            running: time,
            value: time,
        };
        let of = |counter| (counter == Counter::Instructions).then_some(instructions);
        Some(PerCounter::from_fn(of))
    }

    fn account(ms: u64) -> Option<CpuAccount> {
        Some(CpuAccount {
            time: Nanos::from_ms(ms),
            is_whole: true,
        })
    }

    #[test]
    fn an_event_that_is_not_counted_stays_absent_at_the_end() {
        let (mut meter, told) = meter();
        meter.close(JOB, account(500), counted(500));
        let last = meter.read(JOB, None, None);
        assert_eq!(
            last.counts[Counter::Instructions],
            Reading::Value(500_000_000)
        );
        assert_eq!(
            last.counts[Counter::MmReads],
            Reading::Absent(Absence::NoSuchEvent)
        );
        assert!(told.borrow().is_empty(), "{told:?}");
    }

    /// The accounts have the time before a job executes its program, too.
    #[test]
    fn the_last_interval_goes_by_the_same_clock_as_the_others() {
        let (mut meter, _told) = meter();
        meter.close(JOB, account(560), counted(500));
        let last = meter.read(JOB, None, None);
        assert_eq!(last.cpu_time, Reading::Value(Nanos::from_ms(500)));
    }

    #[test]
    fn cpu_time_is_that_of_the_counters_unless_they_have_lost_the_job() {
        let (mut meter, told) = meter();
        let near = meter.read(JOB, account(510), counted(500));
        assert_eq!(near.cpu_time, Reading::Value(Nanos::from_ms(500)));
        // As a program that changes its user does.
        let lost = meter.read(JOB, account(900), counted(500));
        assert_eq!(lost.cpu_time, Reading::Value(Nanos::from_ms(900)));
        meter.close(JOB, account(900), counted(500));
        let last = meter.read(JOB, None, None);
        assert_eq!(
            last.counts[Counter::Instructions],
            Reading::Absent(Absence::CountersLost)
        );
        assert_eq!(told.borrow().len(), 1, "{told:?}");
    }
}
