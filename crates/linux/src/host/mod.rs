//! This machine as a backend: real processes, frozen and thawed, pinned to CPUs, counted and waited for.
//!
//! [`Host`] has three parts: the lifecycle of the jobs, the actuator that freezes and pins them, and the meter. It has
//! one thread and waits in one place: for signals (including the ends of children) and the clock.

mod actuator;
mod adopted;
mod backend;
mod capabilities;
mod clock;
mod config;
mod descriptor;
mod error;
mod extent;
mod guard;
mod headroom;
mod input;
mod jobserver;
mod kernel;
mod lifecycle;
mod live_job;
mod loaded;
mod meter;
mod notice;
mod orphanage;
mod pause;
mod printed;
mod progress_reader;
mod reaped_job;
mod thread_variables;

pub use capabilities::capabilities;
pub(crate) use capabilities::lacks;
pub use clock::{Clock, own_cpu_time};
pub use config::{Adoption, Freezing, HostConfig, HostJob, JobBegin};
pub use error::HostError;
pub use headroom::HeadroomLimits;
pub use kernel::KernelScheduler;
pub use notice::HostNotice;
pub use printed::ProgressPattern;

use crate::cgroup::{GroupError, RunGroup};
use crate::disk::Disk;
use crate::interrupts::DRAINING;
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys;
use crate::topology::online;
use crate::watch::RunRequests;
use actuator::Actuator;
use clock::RunClock;
use cosched_core::{CpuSet, Event, Exit, Machine, Nanos, Resources, TaskId};
use error::system;
use extent::Extent;
use headroom::HeadroomCheck;
use jobserver::Jobservers;
use lifecycle::{Lifecycle, WaitEvents};
use loaded::{Loaded, in_charge};
use meter::Meter;
use notice::HostNotices;
use pause::RunPause;
use progress_reader::ProgressReader;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use thread_variables::ThreadVariables;
pub use thread_variables::cpus_of_job;

/// This machine.
pub struct Host {
    root: Root,
    machine: Arc<Machine>,
    freezing: Freezing,
    lifecycle: Lifecycle,
    actuator: Actuator,
    meter: Meter,
    disk: Disk,
    progress_reader: ProgressReader,
    /// The scheduler in the kernel, even after its removal.
    loaded: Option<Loaded>,
    /// Resources of ended jobs.
    resources: BTreeMap<TaskId, Resources>,
    /// Time at which each live job executed its program.
    began: BTreeMap<TaskId, Nanos>,
    headroom: HeadroomCheck,
    jobservers: Jobservers,
    thread_variables: Option<ThreadVariables>,
    /// Jobs that can't be started, with the reasons.
    broken: BTreeMap<TaskId, String>,
    requests: Option<RunRequests>,
    /// The input of jobs that come.
    input: Option<OwnedFd>,
    /// The next wait ends once the input is readable.
    wakes_at_input: bool,
    pause: RunPause,
    extent: Extent,
    notices: HostNotices,
    /// Reported by the next wait.
    queued: Vec<Event>,
    clock: RunClock,
}

impl Host {
    /// Prepares for jobs; none is started yet.
    ///
    /// # Errors
    /// A requirement for a safe run is missing.
    pub fn new(config: HostConfig) -> Result<Host, HostError> {
        let root = config.root;
        let extent = Extent::new(
            config.machine,
            config.place,
            config.polite,
            config.kernel.is_some(),
        );
        let machine = extent.machine();
        let notices = HostNotices::new(config.notice);
        let run = RunId::own(&root)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, NO_PROC))
            .map_err(system("finding this process in /proc"))?;
        let group = run_group(&root, &run, config.freezing)?;
        let freezing = match group {
            Some(_) => Freezing::Cgroup,
            None => Freezing::Signals,
        };
        let home = sys::affinity(0).map_err(system("reading the CPUs of this process"))?;
        let jobservers = if config.jobserver {
            Jobservers::new(&root, &run)?
        } else {
            Jobservers::default()
        };
        let meter = Meter::new(&root, config.counters, notices.clone());
        let lifecycle = Lifecycle::new(
            root.clone(),
            run,
            group,
            home.clone(),
            config.max_pause,
            config.ends_jobs,
            notices.clone(),
        )?;
        let clock = RunClock::start();
        let kernel = config.kernel;
        let loaded = kernel.map(|kernel| {
            let mut loaded = Loaded::new(kernel, machine.all_cpus(), notices.clone());
            // Starting the first job may already hang.
            loaded.beat(&lifecycle, clock.now());
            loaded
        });
        let mut host = Host {
            loaded,
            machine: Arc::new(machine),
            freezing,
            lifecycle,
            actuator: Actuator::new(home, notices.clone()),
            meter,
            disk: Disk::of_working_directory(&root),
            progress_reader: ProgressReader::new(config.progress),
            resources: BTreeMap::new(),
            began: BTreeMap::new(),
            headroom: HeadroomCheck::new(config.headroom),
            jobservers,
            thread_variables: config.threads_env.map(|most_live| {
                let online = online(&root).map_or(usize::MAX, |cpus| cpus.len());
                ThreadVariables::new(online, most_live)
            }),
            broken: BTreeMap::new(),
            requests: config.requests,
            input: None,
            wakes_at_input: false,
            pause: RunPause::default(),
            extent,
            notices,
            queued: Vec::new(),
            clock,
            root,
        };
        for (job, task) in config.jobs.into_iter().zip(0..) {
            host.add(TaskId(task), job);
        }
        Ok(host)
    }

    /// How jobs are frozen here.
    pub fn freezing(&self) -> Freezing {
        self.freezing
    }

    /// Adds a job that has come while the run goes on.
    pub fn add(&mut self, task: TaskId, job: HostJob) {
        let adoption = match job.begin {
            JobBegin::Program(_) => None,
            JobBegin::Adopt(adoption) => Some(adoption),
        };
        self.lifecycle.add(task, job);
        // Before it starts.
        self.extent.set_busy(true);
        if let Some(adoption) = adoption {
            self.adopt(task, adoption);
        }
    }

    /// Takes over a job that runs already. It is frozen until its first placement.
    fn adopt(&mut self, task: TaskId, adoption: Adoption) {
        self.lifecycle.adopt(task, adoption);
        if let Some(tree) = self.lifecycle.tree(task) {
            // It is bound at its placement, whatever its CPUs are then.
            self.actuator.take(task, tree, &CpuSet::new());
        }
        self.actuator.set_frozen(&self.lifecycle, task, true);
        self.meter.follow(task);
        self.headroom.started(self.clock.now(), task);
        // It may have ended before.
        let mut events = std::mem::take(&mut self.queued);
        self.reap(&mut events);
        self.queued = events;
    }

    /// Adds a job that can't be started. It fails with this reason when its turn comes.
    pub fn add_broken(&mut self, task: TaskId, why: String) {
        self.broken.insert(task, why);
    }

    /// Reports an event with the next wait.
    pub fn post(&mut self, event: Event) {
        self.queued.push(event);
    }

    /// The input of jobs that come, for [`Host::wake_at_input`].
    pub fn watch_input(&mut self, input: OwnedFd) {
        self.input = Some(input);
    }

    /// The next wait ends with [`Event::Arrivals`] once the input is readable or closed.
    pub fn wake_at_input(&mut self) {
        self.wakes_at_input = true;
    }

    fn start(&mut self, task: TaskId, cpus: &CpuSet) {
        if let Some(why) = self.broken.remove(&task) {
            return self.not_started(task, why);
        }
        let jobserver = match self.jobservers.open(task, cpus.len()) {
            Ok(offer) => offer,
            Err(why) => return self.not_started(task, why.to_string()),
        };
        let mut variables = self.thread_variables(task);
        let flags = jobserver.as_ref().map(|offer| offer.flags.clone());
        variables.extend(flags.map(|flags| ("MAKEFLAGS", flags)));
        self.headroom.started(self.clock.now(), task);
        let Host {
            lifecycle,
            actuator,
            meter,
            began,
            clock,
            headroom,
            loaded,
            ..
        } = self;
        let started = lifecycle.start(task, &variables, |name, tree| {
            actuator.take(task, tree, cpus);
            if let Some(loaded) = in_charge(loaded) {
                loaded.take(task, name, tree);
            }
            let in_kernel = loaded.as_ref().is_some_and(|loaded| loaded.counts(task));
            meter.attach(task, name, tree.main.pid, in_kernel);
            // Everything before this is our own work, which takes long on a busy machine.
            began.insert(task, clock.now());
        });
        if let Some(loaded) = in_charge(loaded) {
            loaded.began(lifecycle, actuator, task, started.is_ok());
        }
        if let Err(error) = started {
            actuator.forget(task);
            meter.reset(task);
            headroom.not_started(task);
            self.jobservers.close(task);
            self.not_started(task, error.to_string());
        }
    }

    /// The variables that say how many threads a job should start, which is about to.
    fn thread_variables(&self, task: TaskId) -> Vec<(&'static str, String)> {
        let (Some(variables), Some(program)) =
            (&self.thread_variables, self.lifecycle.program(task))
        else {
            return Vec::new();
        };
        let promised = self.lifecycle.cpus(task).map(|cpus| cpus as usize);
        let jobs = self.lifecycle.count();
        let share = cpus_of_job(self.machine.cpus.len(), jobs, variables.most_live);
        variables.of(promised.unwrap_or(share), &program.env)
    }

    fn not_started(&mut self, task: TaskId, why: String) {
        let exit = Exit::NotStarted(why);
        self.queued.push(Event::Ended { task, exit });
    }

    /// Handles children that have changed state.
    fn reap(&mut self, events: &mut Vec<Event>) {
        let Host {
            lifecycle,
            actuator,
            meter,
            resources,
            headroom,
            clock,
            began,
            loaded,
            jobservers,
            ..
        } = self;
        for ended in lifecycle.reap(clock.now(), |task| actuator.has_signalled(task), events) {
            let mut counted = None;
            if let Some(loaded) = loaded {
                counted = loaded.counted(ended.task);
                loaded.ended(ended.task, &clock.relation());
            }
            meter.close(ended.task, ended.cpu_time, counted);
            actuator.forget(ended.task);
            jobservers.close(ended.task);
            began.remove(&ended.task);
            headroom.ended(ended.task, &ended.resources);
            resources.insert(ended.task, ended.resources);
            events.push(Event::Ended {
                task: ended.task,
                exit: ended.exit,
            });
        }
    }

    /// Continues without the scheduler in the kernel, if it was removed. The loop then places all jobs anew, so this waits
    /// while they are held.
    fn look_for_ejection(&mut self, events: &mut Vec<Event>) {
        if self.pause.is_held() {
            return;
        }
        let Some(loaded) = in_charge(&mut self.loaded) else {
            return;
        };
        let Some(why) = loaded.removed() else { return };
        // Otherwise a scheduler that is loaded later would get them, and a job that waits for a CPU inside the kernel
        // may block the removal of the scheduler.
        for task in self.lifecycle.tasks() {
            self.actuator.give(&self.lifecycle, task, false);
        }
        loaded.retire(&self.lifecycle);
        events.push(Event::SchedulerEjected { why });
    }

    /// Does work that is due besides events, for example continuing or thawing a job. Returns when to do so again, at
    /// the latest `until`. While all jobs are held, only a guardian is due.
    fn do_what_is_due(&mut self, until: Option<Nanos>) -> Option<Nanos> {
        let now = self.clock.now();
        let unguarded = self.lifecycle.keep_guard().map(|left| now + left);
        if self.pause.is_held() {
            return unguarded;
        }
        let tokens = self.tend_jobservers(now);
        let stopped = self
            .lifecycle
            .continue_stopped(now, |task| self.actuator.is_frozen(task));
        let owed = self.actuator.thaw_owed(&self.lifecycle, now);
        let clock = self.clock.relation();
        let tended = in_charge(&mut self.loaded)
            .map(|loaded| loaded.tend(&self.lifecycle, &self.actuator, now, &clock));
        let due = [until, stopped, owed, unguarded, tended, tokens];
        due.into_iter().flatten().min()
    }

    /// Looks whether jobs with a reaper have stopped themselves; returns when to look again.
    fn look_at_reaped(&mut self) -> Option<Nanos> {
        if self.pause.is_held() {
            return None;
        }
        let Host {
            lifecycle,
            actuator,
            clock,
            queued,
            ..
        } = self;
        lifecycle.look_at_reaped(clock.now(), |task| actuator.is_frozen(task), queued)
    }

    /// Fits the tokens of jobs to their CPUs, and to the memory; returns when to look at the memory again.
    fn tend_jobservers(&mut self, now: Nanos) -> Option<Nanos> {
        if self.jobservers.is_empty() {
            return None;
        }
        let Host {
            extent,
            headroom,
            root,
            ..
        } = self;
        let is_short = || extent.is_short_of_memory() || headroom.is_short(root);
        let running = self.actuator.running();
        Some(self.jobservers.tend(now, &running, is_short))
    }

    /// Looks what others on the machine do, if that is due.
    fn look_around(&mut self) {
        self.extent.set_busy(self.lifecycle.count() > 0);
        let has_changed = self.extent.look(&self.root, &self.notices);
        if has_changed && !self.extent.is_empty() {
            self.machine = Arc::new(self.extent.machine());
            self.queued.push(Event::MachineChanged);
        }
    }

    /// Waits for a signal, for a request, or for the scheduler in the kernel.
    fn listen(&mut self, timeout: Option<Nanos>) -> Result<WaitEvents, HostError> {
        let mut lines: Vec<_> = self.requests.iter().map(AsFd::as_fd).collect();
        if !self.pause.is_held() {
            lines.extend(in_charge(&mut self.loaded).map(|loaded| loaded.line()));
            lines.extend(self.jobservers.owing());
        }
        let input = self.input.iter().filter(|_| self.wakes_at_input);
        lines.extend(input.map(AsFd::as_fd));
        self.lifecycle.wait(timeout, &lines)
    }

    fn take_news(&mut self, news: WaitEvents, events: &mut Vec<Event>) {
        // First of all: with little time, every wait starts with news of the plan.
        self.look_for_ejection(events);
        if let Some(requests) = self.requests.as_mut().filter(|_| news.from_outside) {
            for request in requests.take() {
                self.grant(request, events);
            }
        }
        if news.from_outside && std::mem::take(&mut self.wakes_at_input) {
            events.push(Event::Arrivals);
        }
        for &signal in &news.signals {
            match signal {
                libc::SIGCHLD => {}
                libc::SIGTSTP => self.suspend(),
                DRAINING => events.push(Event::Drain),
                signal => events.push(Event::Interrupt { signal }),
            }
        }
        if news.signals.contains(&libc::SIGCHLD) || news.adopted_ended {
            self.reap(events);
        }
    }
}

const NO_PROC: &str = "/proc is not mounted, or belongs to another PID namespace (`unshare --mount-proc` mounts its own)";

/// The group of a run, if it is wanted and possible.
fn run_group(root: &Root, run: &RunId, freezing: Freezing) -> Result<Option<RunGroup>, GroupError> {
    if freezing == Freezing::Signals {
        return Ok(None);
    }
    match RunGroup::create(root, run) {
        Ok(group) => Ok(Some(group)),
        Err(_) if freezing == Freezing::Auto => Ok(None),
        Err(problem) => Err(problem),
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for task in self.lifecycle.tasks() {
            self.actuator.set_frozen(&self.lifecycle, task, false);
            go_on(&self.lifecycle, task);
        }
        self.extent.sum_up(&self.notices);
    }
}

/// Continue all processes of a job.
fn go_on(lifecycle: &Lifecycle, task: TaskId) {
    if let Some(tree) = lifecycle.tree(task) {
        tree.signal(Signal::CONT);
    }
}
