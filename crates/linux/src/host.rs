//! This machine as a backend: real processes, frozen and thawed, bound to CPUs, counted and waited for.
//!
//! One thread, one place where it waits: for signals (children's ends among them) and the clock.

use crate::cgroup::{GroupError, JobGroup, RunGroup};
use crate::counters::{CounterProblem, CounterSupport, JobCounters, ProblemCause, Start};
use crate::emulate::{SlowClock, SmallCores};
use crate::energy::{EnergyMeter, NoEnergy};
use crate::events::EventKind;
use crate::guardian::{Charge, Guardian};
use crate::interrupts::ENDING;
use crate::meminfo;
use crate::mend::{self, Mended, Reach};
use crate::process::{self, JOB_VARIABLE, Process, RUN_VARIABLE};
use crate::root::Root;
use crate::spawn::{self, Program, Surroundings};
use crate::sys::{self, FileLimit, RawPid, SignalMask, Status};
use crate::tree::Tree;
use cosched_core::{
    Absence, Backend, Capabilities, Capability, Change, CpuSet, Event, Exit, Kill, Machine, Nanos, Placement, Reading,
    TaskId, Usage,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// How jobs are frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freezing {
    /// By the cgroup freezer where it can be had, else by signals.
    #[default]
    Auto,
    /// By the cgroup freezer, or not at all.
    Cgroup,
    /// By SIGSTOP and SIGCONT.
    Signals,
}

/// One job to run.
#[derive(Clone, Debug)]
pub struct HostJob {
    /// Its name.
    pub name: String,
    /// What to start.
    pub program: Program,
}

/// What the backend is told.
pub struct HostConfig {
    /// Where `/proc` and `/sys` are.
    pub root: Root,
    /// The machine, restricted to the CPUs that may be used.
    pub machine: Machine,
    /// The jobs; the task with number i is the i-th.
    pub jobs: Vec<HostJob>,
    /// How to freeze.
    pub freezing: Freezing,
    /// What can be counted, and by which events.
    pub counters: CounterSupport,
    /// Start no further job while less memory than this is available, in bytes.
    pub mem_keep: Option<u64>,
    /// A job that stopped itself is continued after this time.
    pub max_pause: Nanos,
    /// CPUs that stand for small cores, if any: the machine has them already. Needs the cgroup freezer, since a job would
    /// be told of every stop by signals.
    pub small: Option<SmallCores>,
    /// Is told what the user should know.
    pub notice: Box<dyn FnMut(Notice)>,
}

/// Something about a job, or about the backend, that the user should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A run before this one died and left things frozen; they were set free.
    Mended(Mended),
    /// A job stopped itself; its CPUs are given to others.
    StoppedItself {
        /// The job.
        job: String,
    },
    /// A job that had stopped itself was continued, since nobody else did.
    Continued {
        /// The job.
        job: String,
    },
    /// A job's own process has ended, and processes that it started run on.
    Lingers {
        /// The job.
        job: String,
        /// How many there are.
        processes: usize,
    },
    /// The guardian was killed; there is a new one.
    GuardianReplaced,
    /// There is no guardian: what is frozen when the run is killed stays so.
    NoGuardian(String),
    /// A job could not be frozen or thawed.
    FreezeFailed {
        /// The job.
        job: String,
        /// Why.
        why: String,
    },
    /// A job's counters could not be attached.
    CountersFailed {
        /// The job.
        job: String,
        /// Why.
        why: String,
    },
}

/// A backend that can't be made, or can't go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The cgroup freezer was asked for and can't be had.
    #[error("the cgroup freezer can't be used: {0}")]
    Freezer(#[from] GroupError),
    /// The process has several threads, so it can't fork safely.
    #[error("the run must be the only thread of its process")]
    Threads,
    /// A call to the kernel failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the kernel answered.
        source: io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |source| HostError::System { what, source }
}

/// This machine.
pub struct Host {
    root: Root,
    machine: Arc<Machine>,
    jobs: Vec<Job>,
    token: String,
    group: Option<RunGroup>,
    group_problem: Option<GroupError>,
    guardian: Option<Guardian>,
    home_cpus: CpuSet,
    counters: CounterSupport,
    meter: Result<EnergyMeter, NoEnergy>,
    mem_keep: Option<u64>,
    max_pause: Nanos,
    small: Option<SmallCores>,
    notice: Box<dyn FnMut(Notice)>,
    signals: OwnedFd,
    mask: SignalMask,
    files: Option<FileLimit>,
    queued: Vec<Event>,
    started: Nanos,
    suspended: Nanos,
}

struct Job {
    name: String,
    program: Program,
    live: Option<Live>,
    /// The last figures of a job that has ended.
    last: Option<Usage>,
}

struct Live {
    tree: Tree,
    counters: Option<JobCounters>,
    cpus: CpuSet,
    main_exit: Option<Exit>,
    /// CPU time of the main process and of what it waited for, once it has ended.
    main_cpu_time: Option<Nanos>,
    /// Stopped by somebody else than us, since then.
    stopped_itself: Option<Nanos>,
    oom_kills_before: u64,
    /// Frozen for the paused part of a period on an emulated small core, not by the policy.
    paused: bool,
    slow_clock: SlowClock,
}

fn clock() -> Nanos {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
}

impl Host {
    /// Gets everything ready; nothing is started yet.
    ///
    /// # Errors
    /// What is missing for a safe run.
    pub fn new(config: HostConfig) -> Result<Host, HostError> {
        if !sys::is_single_threaded() {
            return Err(HostError::Threads);
        }
        let HostConfig { root, machine, freezing, counters, mut notice, .. } = config;
        let mended = mend::mend(&root, Reach::Near);
        if !mended.is_empty() {
            notice(Notice::Mended(mended));
        }
        let no_proc = || io::Error::new(io::ErrorKind::NotFound, "/proc is not mounted");
        let token = process::own_token(&root).ok_or_else(no_proc).map_err(system("finding this process in /proc"))?;
        let (group, group_problem) = match freezing {
            Freezing::Signals => (None, None),
            Freezing::Cgroup => (Some(RunGroup::create(&root, &token)?), None),
            Freezing::Auto => match RunGroup::create(&root, &token) {
                Ok(group) => (Some(group), None),
                Err(problem) => (None, Some(problem)),
            },
        };
        sys::become_subreaper().map_err(system("becoming the reaper of orphans"))?;
        let home_cpus = sys::affinity(0).map_err(system("reading the CPUs of this process"))?;
        let charge = Charge {
            root: root.clone(),
            token: token.clone(),
            group: group.as_ref().map(|group| group.dir().to_owned()),
            cpus: home_cpus.clone(),
        };
        let guardian = match Guardian::start(&charge, std::iter::empty()) {
            Ok(guardian) => Some(guardian),
            Err(error) => {
                notice(Notice::NoGuardian(error.to_string()));
                None
            }
        };
        let taken = [&ENDING[..], &[libc::SIGCHLD, libc::SIGTSTP]].concat();
        let (signals, mask) = sys::take_signals(&taken).map_err(system("taking signals"))?;
        let jobs = config.jobs.into_iter();
        Ok(Host {
            machine: Arc::new(machine),
            jobs: jobs.map(|job| Job { name: job.name, program: job.program, live: None, last: None }).collect(),
            token,
            group,
            group_problem,
            guardian,
            home_cpus,
            counters,
            meter: EnergyMeter::open(&root),
            mem_keep: config.mem_keep,
            max_pause: config.max_pause,
            small: config.small,
            notice,
            signals,
            mask,
            // Without a higher limit fewer jobs can be counted at once; that is told where it happens.
            files: sys::raise_file_limit().ok(),
            queued: Vec::new(),
            started: clock(),
            suspended: Nanos::ZERO,
            root,
        })
    }

    /// How jobs are frozen here.
    pub fn freezing(&self) -> Freezing {
        if self.group.is_some() { Freezing::Cgroup } else { Freezing::Signals }
    }

    /// Why the cgroup freezer is not used, where it was wanted.
    pub fn group_problem(&self) -> Option<&GroupError> {
        self.group_problem.as_ref()
    }

    fn live(&mut self, task: TaskId) -> Option<&mut Live> {
        self.jobs.get_mut(task.0 as usize)?.live.as_mut()
    }

    /// Starts a job on its CPUs.
    fn start(&mut self, task: TaskId, cpus: &CpuSet) {
        let job = &self.jobs[task.0 as usize];
        let mut program = job.program.clone();
        // A run within a run marks its own.
        program.env.retain(|(name, _)| name != RUN_VARIABLE && name != JOB_VARIABLE);
        program.env.push((OsString::from(RUN_VARIABLE), OsString::from(&self.token)));
        program.env.push((OsString::from(JOB_VARIABLE), OsString::from(&job.name)));
        let around = Surroundings { mask: &self.mask, files: self.files.as_ref(), root: &self.root };
        let waiting = match spawn::prepare(&program, &around) {
            Ok(waiting) => waiting,
            Err(error) => return self.not_started(task, &error),
        };
        let process = waiting.process;
        let group = self.join_group(task, process.pid);
        let tree = Tree::new(self.root.clone(), process, group);
        // A refusal leaves the job where the kernel puts it.
        let _ = sys::set_affinity(process.pid, cpus);
        if let Some(guardian) = &mut self.guardian
            && guardian.job(&process).is_err()
        {
            self.replace_guardian();
        }
        let counters = rustix::process::Pid::from_raw(process.pid).map(|pid| {
            let (counters, problems) = JobCounters::open(pid, &self.counters.usable, Start::OnExec);
            let refused = |problem: &&CounterProblem| matches!(problem.cause, ProblemCause::Refused(_));
            if let Some(problem) = problems.iter().find(refused) {
                let job = self.jobs[task.0 as usize].name.clone();
                (self.notice)(Notice::CountersFailed { job, why: problem.to_string() });
            }
            counters
        });
        let live = Live {
            tree,
            counters,
            cpus: cpus.clone(),
            main_exit: None,
            main_cpu_time: None,
            stopped_itself: None,
            oom_kills_before: meminfo::oom_kills(&self.root).unwrap_or(0),
            paused: false,
            slow_clock: SlowClock::default(),
        };
        self.jobs[task.0 as usize].live = Some(live);
        if let Err(error) = waiting.go().and_then(|started| started.wait(&program)) {
            // The process ends by itself; it is reaped as an unknown child.
            if let Some(mut live) = self.jobs[task.0 as usize].live.take() {
                live.tree.main_gone = true;
                self.farewell(process.pid);
            }
            self.not_started(task, &error);
        }
    }

    fn join_group(&mut self, task: TaskId, pid: RawPid) -> Option<JobGroup> {
        let joined = self.group.as_ref()?.job(task.0).and_then(|group| group.add(pid).map(|()| group));
        match joined {
            Ok(group) => Some(group),
            Err(error) => {
                let job = self.jobs[task.0 as usize].name.clone();
                let why = format!("no cgroup, signals are used instead: {error}");
                (self.notice)(Notice::FreezeFailed { job, why });
                None
            }
        }
    }

    fn not_started(&mut self, task: TaskId, error: &io::Error) {
        self.queued.push(Event::Ended { task, exit: Exit::NotStarted(error.to_string()) });
    }

    fn farewell(&mut self, pid: RawPid) {
        if let Some(guardian) = &mut self.guardian
            && guardian.gone(pid).is_err()
        {
            self.replace_guardian();
        }
    }

    fn replace_guardian(&mut self) {
        let charge = Charge {
            root: self.root.clone(),
            token: self.token.clone(),
            group: self.group.as_ref().map(|group| group.dir().to_owned()),
            cpus: self.home_cpus.clone(),
        };
        let mains: Vec<Process> = self.jobs.iter().filter_map(|job| Some(job.live.as_ref()?.tree.main)).collect();
        // The old one may be alive and only deaf: then it frees everything once, which the next quantum mends.
        self.guardian = None;
        match Guardian::start(&charge, mains.iter()) {
            Ok(guardian) => {
                self.guardian = Some(guardian);
                (self.notice)(Notice::GuardianReplaced);
            }
            Err(error) => (self.notice)(Notice::NoGuardian(error.to_string())),
        }
    }

    /// Thaws or freezes, and tells when that fails.
    fn set_frozen(&mut self, task: TaskId, frozen: bool) {
        let Some(live) = self.live(task) else { return };
        // Whatever it was before, from now on it is as the policy wants it.
        live.paused = false;
        let done = if frozen { live.tree.freeze() } else { live.tree.thaw(live.stopped_itself.is_some()) };
        if let Err(error) = done {
            let job = self.jobs[task.0 as usize].name.clone();
            (self.notice)(Notice::FreezeFailed { job, why: error.to_string() });
        }
    }

    /// Takes in all children whose state changed.
    fn reap(&mut self, events: &mut Vec<Event>) {
        let mut changed = false;
        while let Some(waited) = sys::wait_any() {
            changed = true;
            if self.guardian.as_ref().is_some_and(|guardian| guardian.pid == waited.pid) {
                if matches!(waited.status, Status::Exited(_) | Status::Signaled(_)) {
                    self.replace_guardian();
                }
                continue;
            }
            let is_main =
                |job: &Job| job.live.as_ref().is_some_and(|l| l.tree.main.pid == waited.pid && !l.tree.main_gone);
            let Some(ix) = self.jobs.iter().position(is_main) else { continue };
            self.main_changed(TaskId(ix as u32), waited, events);
        }
        if changed {
            self.settle(events);
        }
    }

    fn main_changed(&mut self, task: TaskId, waited: sys::Waited, events: &mut Vec<Event>) {
        let now = self.now();
        let root = self.root.clone();
        let job = &mut self.jobs[task.0 as usize];
        let Some(live) = &mut job.live else { return };
        match waited.status {
            // The cgroup freezer is no stop that a parent is told of; with signals a stop while frozen is ours.
            Status::Stopped
                if (live.tree.group().is_some() || !live.tree.is_frozen()) && live.stopped_itself.is_none() =>
            {
                live.stopped_itself = Some(now);
                events.push(Event::Slept(task));
                (self.notice)(Notice::StoppedItself { job: job.name.clone() });
            }
            Status::Continued if live.stopped_itself.take().is_some() => events.push(Event::Woke(task)),
            Status::Stopped | Status::Continued => {}
            Status::Exited(_) | Status::Signaled(_) => {
                live.tree.main_gone = true;
                live.main_cpu_time = Some(waited.cpu_time);
                if live.stopped_itself.take().is_some() {
                    events.push(Event::Woke(task));
                }
                live.main_exit = Some(match waited.status {
                    Status::Exited(code) => Exit::Code(code),
                    Status::Signaled(signal) => {
                        let counted = live.tree.group().and_then(JobGroup::oom_kills);
                        let grown = counted.map(|n| n > 0).or(meminfo::oom_kills(&root).map(|n| n > live.oom_kills_before));
                        Exit::Signal { signal, oom: signal == libc::SIGKILL && grown == Some(true) }
                    }
                    Status::Stopped | Status::Continued => Exit::Unknown,
                });
                self.adopt_orphans();
                if let Some(live) = self.live(task)
                    && live.tree.is_alive()
                {
                    let processes = live.tree.members().len();
                    let job = self.jobs[task.0 as usize].name.clone();
                    (self.notice)(Notice::Lingers { job, processes });
                }
            }
        }
    }

    /// Gives orphans back to their jobs, where no group does so.
    fn adopt_orphans(&mut self) {
        if self.jobs.iter().all(|job| job.live.as_ref().is_none_or(|live| live.tree.group().is_some())) {
            return;
        }
        for pid in process::children(&self.root, std::process::id() as RawPid) {
            let is_known = |job: &Job| job.live.as_ref().is_some_and(|l| l.tree.main.pid == pid && !l.tree.main_gone);
            if self.jobs.iter().any(is_known) || self.guardian.as_ref().is_some_and(|guardian| guardian.pid == pid) {
                continue;
            }
            let Some(process) = Process::read(&self.root, pid).filter(|process| process.state != 'Z') else { continue };
            let token = &self.token;
            let owner = self.jobs.iter_mut().find_map(|job| {
                let live = job.live.as_mut()?;
                (live.tree.knows(&process) || live.tree.owns(&process, token, &job.name)).then_some(live)
            });
            if let Some(live) = owner {
                live.tree.adopt(process);
            }
        }
    }

    /// Ends the jobs of which nothing is left.
    fn settle(&mut self, events: &mut Vec<Event>) {
        let waits = |job: &Job| job.live.as_ref().is_some_and(|live| live.main_exit.is_some());
        if !self.jobs.iter().any(waits) {
            return;
        }
        self.adopt_orphans();
        for ix in 0..self.jobs.len() {
            let job = &mut self.jobs[ix];
            let Some(live) = job.live.as_mut() else { continue };
            if live.main_exit.is_none() || live.tree.is_alive() {
                continue;
            }
            let task = TaskId(ix as u32);
            let pid = live.tree.main.pid;
            let exit = live.main_exit.take().unwrap_or(Exit::Unknown);
            self.jobs[ix].last = Some(self.usage(task));
            self.jobs[ix].live = None;
            self.farewell(pid);
            events.push(Event::Ended { task, exit });
        }
    }

    fn usage(&mut self, task: TaskId) -> Usage {
        let job = &mut self.jobs[task.0 as usize];
        let Some(live) = &mut job.live else {
            return job.last.unwrap_or_else(|| Usage {
                cpu_time: Reading::Absent(Absence::NotStarted),
                counts: cosched_core::Counts::absent(Absence::NotStarted),
                ..Usage::zero(task)
            });
        };
        let mut usage = match &mut live.counters {
            Some(counters) => Usage {
                task,
                cpu_time: counters.read_cpu_time(),
                counts: counters.read(),
                multiplexed: counters.multiplexed(),
            },
            None => Usage {
                cpu_time: Reading::Absent(Absence::NoPermission),
                counts: cosched_core::Counts::absent(Absence::NoPermission),
                ..Usage::zero(task)
            },
        };
        if !usage.cpu_time.is_value() {
            let grouped = live.tree.group().and_then(JobGroup::cpu_time_us).map(|us| Nanos(us * 1_000));
            if let Some(time) = grouped.or(live.main_cpu_time) {
                usage.cpu_time = Reading::Value(time);
            }
        }
        if let Some(small) = &self.small {
            let share = if small.slows(&live.cpus) { small.share } else { 1.0 };
            usage.cpu_time = usage.cpu_time.map(|time| live.slow_clock.stretch(time, share));
        }
        usage
    }

    /// Freezes all, stops this process until it is continued, and goes on as before; the clock stood still meanwhile.
    fn suspend(&mut self) {
        let before = clock();
        let running: Vec<TaskId> = (0..self.jobs.len() as u32)
            .map(TaskId)
            .filter(|task| self.jobs[task.0 as usize].live.as_ref().is_some_and(|live| !live.tree.is_frozen()))
            .collect();
        for &task in &running {
            self.set_frozen(task, true);
        }
        let _ = sys::kill(std::process::id() as RawPid, libc::SIGSTOP);
        for &task in &running {
            self.set_frozen(task, false);
        }
        self.suspended += clock() - before;
    }

    /// Pauses and continues jobs on emulated small cores; when to look again.
    fn pace(&mut self) -> Option<Nanos> {
        let now = self.now();
        let small = self.small.clone()?;
        let (runs, until) = small.phase(now);
        let mut any = false;
        for ix in 0..self.jobs.len() as u32 {
            let Some(live) = self.live(TaskId(ix)) else { continue };
            let slowed = small.slows(&live.cpus) && live.tree.group().is_some();
            any |= slowed;
            if slowed && !runs && !live.tree.is_frozen() {
                self.set_frozen(TaskId(ix), true);
                self.live(TaskId(ix)).into_iter().for_each(|live| live.paused = true);
            } else if live.paused && (runs || !slowed) {
                self.set_frozen(TaskId(ix), false);
            }
        }
        any.then_some(until)
    }

    /// Continues jobs that have stood still of their own for too long; when to look again.
    fn continue_stopped(&mut self) -> Option<Nanos> {
        let now = self.now();
        let mut next: Option<Nanos> = None;
        for job in &mut self.jobs {
            let Some(live) = &mut job.live else { continue };
            let Some(since) = live.stopped_itself else { continue };
            if live.tree.is_frozen() {
                // With signals that would set it free; it is continued once it is thawed.
                continue;
            }
            let due = since + self.max_pause;
            if due <= now {
                let _ = sys::kill(-live.tree.main.pid, libc::SIGCONT);
                (self.notice)(Notice::Continued { job: job.name.clone() });
                // Told again by the kernel in a moment; not a second time before that.
                live.stopped_itself = Some(now);
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next
    }
}

/// The capabilities that this machine lacks, and why. Solo bandwidths and traces come from elsewhere, and
/// count as missing.
pub fn capabilities(root: &Root, machine: &Machine, counters: &CounterSupport, freezing: Freezing) -> Capabilities {
    let mut capabilities = Capabilities::default();
    let both = |a: Reading<()>, b: Reading<()>| a.and_then(|()| b);
    let grouped = freezing == Freezing::Cgroup;
    let kinds = [
        (Capability::Ipc, both(counters.of(EventKind::Cycles), counters.of(EventKind::Instructions))),
        (Capability::L1Accesses, counters.of(EventKind::L1Accesses)),
        (Capability::LlcAccesses, counters.of(EventKind::LlcAccesses)),
        (Capability::MmReads, counters.of(EventKind::MmReads)),
        (Capability::MmWrites, counters.of(EventKind::MmWrites)),
        // A group's own statistics tell CPU time where perf events are refused.
        (Capability::CpuTime, if grouped { Reading::Value(()) } else { counters.cpu_time }),
    ];
    for (capability, state) in kinds {
        if let Some(why) = state.absence() {
            capabilities.missing.insert(capability, why);
        }
    }
    if let Err(problem) = EnergyMeter::open(root) {
        capabilities.missing.insert(Capability::Energy, problem.reason);
    }
    if machine.core_types.len() < 2 {
        capabilities.missing.insert(Capability::CoreTypes, Absence::OneCoreType);
    }
    capabilities.missing.insert(Capability::SoloBandwidth, Absence::NoSoloEstimate);
    capabilities.missing.insert(Capability::SoloTrace, Absence::NoSoloTrace);
    capabilities
}

impl Backend for Host {
    type Error = HostError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        capabilities(&self.root, &self.machine, &self.counters, self.freezing())
    }

    fn now(&mut self) -> Nanos {
        clock() - self.started - self.suspended
    }

    fn stopwatch(&self) -> Option<Nanos> {
        Some(clock())
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), HostError> {
        // What the caller has in its list already is no news.
        let before = events.len();
        loop {
            events.append(&mut self.queued);
            // A job may have to be continued in the meantime; the wait goes on after that.
            let stopped = self.continue_stopped();
            let paced = self.pace();
            let wake = [until, stopped, paced].into_iter().flatten().min();
            let now = self.now();
            let left = match wake {
                _ if events.len() > before => Some(Nanos::ZERO),
                Some(wake) => Some(wake - now),
                None => None,
            };
            let timeout = left.map(|left| Timespec {
                tv_sec: (left.0 / 1_000_000_000) as i64,
                tv_nsec: (left.0 % 1_000_000_000) as i64,
            });
            let mut fds = [PollFd::new(&self.signals, PollFlags::IN)];
            match poll(&mut fds, timeout.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(system("waiting for signals")(error.into())),
            }
            let mut children = false;
            while let Some(signal) = sys::next_signal(self.signals.as_fd()) {
                match signal {
                    libc::SIGCHLD => children = true,
                    libc::SIGTSTP => self.suspend(),
                    signal => events.push(Event::Interrupt { signal }),
                }
            }
            if children {
                self.reap(events);
            }
            if events.len() > before || until.is_some_and(|until| self.now() >= until) {
                return Ok(());
            }
        }
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        for &task in tasks {
            let usage = self.usage(task);
            out.push(usage);
        }
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), HostError> {
        let stops = changes.iter().filter(|change| matches!(change, Change::Stop { .. }));
        let mut adopted = false;
        for change in stops {
            if !std::mem::replace(&mut adopted, true) {
                self.adopt_orphans();
            }
            self.set_frozen(change.task(), true);
        }
        let mut new = Vec::new();
        let mut thaw = Vec::new();
        for change in changes {
            let Change::Place { task, placement, .. } = change else { continue };
            let cpus = match placement {
                Placement::Exclusive { cpus, .. } => cpus,
                Placement::Shared { mask } => mask,
            };
            match self.live(*task) {
                None => new.push((*task, cpus)),
                Some(live) => {
                    if live.cpus != *cpus {
                        live.cpus = cpus.clone();
                        live.tree.bind(cpus);
                    }
                    if live.tree.is_frozen() {
                        thaw.push(*task);
                    }
                }
            }
        }
        for task in thaw {
            self.set_frozen(task, false);
        }
        for (task, cpus) in new {
            self.start(task, cpus);
        }
        Ok(())
    }

    fn kill(&mut self, task: TaskId, how: Kill) {
        let home = self.home_cpus.clone();
        self.adopt_orphans();
        let Some(live) = self.live(task) else { return };
        match how {
            Kill::Term => {
                // First the signal, then the thaw: a job that hears must not run on before it does.
                live.tree.signal(Signal::TERM);
                live.stopped_itself = None;
                let frozen = live.tree.is_frozen();
                live.tree.bind(&home);
                live.cpus = home;
                if frozen {
                    self.set_frozen(task, false);
                }
                if let Some(live) = self.live(task) {
                    // Also one that had stopped itself must hear it.
                    live.tree.signal(Signal::CONT);
                }
            }
            Kill::Kill => live.tree.kill(),
        }
    }

    fn restart(&mut self, task: TaskId) -> bool {
        // Its program is spawned again when it is placed, and appends to its files.
        let job = self.jobs.get_mut(task.0 as usize).filter(|job| job.live.is_none());
        job.map(|job| job.last = None).is_some()
    }

    fn may_start(&mut self) -> bool {
        let Some(keep) = self.mem_keep else { return true };
        // A machine that does not say how much is left has not said that it is too little.
        meminfo::read(&self.root).map_or(true, |memory| memory.usable() >= keep)
    }

    fn energy_j(&mut self) -> Reading<f64> {
        match &mut self.meter {
            Ok(meter) => meter.joules(),
            Err(problem) => Reading::Absent(problem.reason),
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for ix in 0..self.jobs.len() as u32 {
            self.set_frozen(TaskId(ix), false);
            if let Some(live) = self.live(TaskId(ix)) {
                live.tree.signal(Signal::CONT);
            }
        }
        // Groups remove themselves; those that are still in use are released.
        self.jobs.clear();
        self.group = None;
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
        sys::restore_mask(&self.mask);
        if let Some(limit) = &self.files {
            sys::restore_file_limit(limit);
        }
    }
}
