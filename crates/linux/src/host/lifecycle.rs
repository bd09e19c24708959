//! The life of jobs: they are started, tracked with all their descendants, ended, and reaped.
//!
//! This module does not know how a job is frozen or counted: callers report which stops are theirs, and get each job's
//! process before it executes its program.

use super::config::{HostJob, JobBegin};
use super::descriptor::PROGRESS_VARIABLE;
use super::error::{HostError, system};
use super::guard::Guard;
use super::live_job::{CpuAccount, EndedJob, LiveJob};
use super::notice::{HostNotice, HostNotices};
use super::orphanage::Orphanage;
use crate::cgroup::{JobGroup, RunGroup};
use crate::hold::guardian::Beat;
use crate::hold::jobs::GuardedJobs;
use crate::hold::ledger::{Ledger, LedgerHead};
use crate::hold::mend::{self, Reach};
use crate::hold::tree::ProcessTree;
use crate::interrupts;
use crate::meminfo;
use crate::process::{self, JOB_VARIABLE, Process, RUN_VARIABLE, SLOT_VARIABLE};
use crate::reaped::ReapedEnd;
use crate::root::Root;
use crate::run_id::RunId;
use crate::spawn::{self, CallerState, JobProgram, Waiting};
use crate::sys::{self, ChildStatus, RawPid, SignalMask};
use cosched_core::{ByTask, CpuSet, Event, Exit, Nanos, TaskId};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Signal, getpid, set_child_subreaper};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Events that arrived while a run waited.
#[derive(Default)]
pub(crate) struct WaitEvents {
    pub signals: Vec<i32>,
    /// Whether another watched descriptor became readable or was closed.
    pub from_outside: bool,
    /// Whether the own process of an adopted job has ended.
    pub adopted_ended: bool,
}

/// All jobs, started or not.
pub(crate) struct Lifecycle {
    pub(super) root: Root,
    token: String,
    pub(super) jobs: ByTask<Job>,
    /// The started jobs that have not ended: a few, while `jobs` may be many thousands.
    pub(super) live: BTreeSet<TaskId>,
    /// Main processes of live jobs that have not been reaped.
    mains: HashMap<RawPid, TaskId>,
    /// The kernel's count of out-of-memory kills at the last reading.
    oom_kills: Option<u64>,
    /// Creates a cgroup for each job; without it a job's processes are found by family.
    group: Option<RunGroup>,
    /// Whether a job's process can be created in its group. If not, it is moved there before it executes its program, which
    /// takes longer.
    creates_in_group: bool,
    guard: Guard,
    pub(super) ledger: Ledger,
    orphanage: Orphanage,
    pub(super) max_pause: Nanos,
    /// When to look again at the jobs that have a reaper.
    pub(super) next_look: Nanos,
    /// Whether the kernel counts the storage reads and writes of processes. If not, its counts are zero.
    counts_io: bool,
    signals: OwnedFd,
    /// The mask before signals were blocked.
    mask: SignalMask,
    around: CallerState,
    /// The number at which jobs tell their progress.
    pub(super) progress_at: Option<RawFd>,
    pub(super) notices: HostNotices,
}

pub(super) struct Job {
    pub(super) name: String,
    /// `None` if it ran before the run.
    program: Option<JobProgram>,
    pub(super) key: Option<PathBuf>,
    cpus: Option<u32>,
    pub(super) live: Option<LiveJob>,
}

/// Warns that the run has no list of its processes on disk.
fn tell_lost(ledger: &Ledger, notices: &HostNotices) {
    if let Some(why) = ledger.take_lost() {
        notices.tell(HostNotice::NoList(why.to_string()));
    }
}

impl Lifecycle {
    /// Prepares for jobs; none is started yet. `home` are the CPUs that the guardian gives back to jobs. With `ends_jobs` it kills
    /// them when this process dies.
    ///
    /// # Errors
    /// A requirement for a safe run is missing.
    pub(crate) fn new(
        root: Root,
        run: RunId,
        group: Option<RunGroup>,
        home: CpuSet,
        max_pause: Nanos,
        ends_jobs: bool,
        notices: HostNotices,
    ) -> Result<Lifecycle, HostError> {
        settle_process(&root, &notices)?;
        let head = LedgerHead {
            run,
            group: group.as_ref().map(|group| group.dir().to_owned()),
            cpus: home,
        };
        let ledger = Ledger::begin(&root, &head)
            .map_err(system("making the list of the run's processes"))?;
        tell_lost(&ledger, &notices);
        let orphanage = Orphanage::of_this_process(&root);
        let directory = group.as_ref().and_then(|group| group.directory().ok());
        let creates_in_group = directory.is_some_and(|group| spawn::can_create_in(group.as_fd()));
        let guarded = GuardedJobs {
            root: root.clone(),
            head,
            ledger: ledger.clone(),
            ends_jobs,
        };
        let guard = Guard::start(guarded, notices.clone());
        let mut taken = [interrupts::held(), vec![libc::SIGCHLD]].concat();
        if !interrupts::inherited().contains(&interrupts::DRAINING) {
            taken.push(interrupts::DRAINING);
        }
        let (signals, mask) = sys::take_signals(&taken).map_err(system("taking signals"))?;
        // Without a higher limit fewer jobs can be counted at once; the meter warns about that.
        let files = sys::raise_file_limit();
        Ok(Lifecycle {
            token: run.to_string(),
            jobs: ByTask::default(),
            live: BTreeSet::new(),
            mains: HashMap::new(),
            oom_kills: meminfo::oom_kills(&root),
            group,
            creates_in_group,
            guard,
            ledger,
            orphanage,
            max_pause,
            next_look: Nanos::ZERO,
            counts_io: root.exists("/proc/self/io"),
            signals,
            mask,
            around: CallerState {
                mask: interrupts::inherited_mask(),
                files,
            },
            progress_at: spawn::progress_number(),
            notices,
            root,
        })
    }

    /// Adds a job, which has not started.
    pub(crate) fn add(&mut self, task: TaskId, job: HostJob) {
        self.jobs.insert(task, Job::new(job));
    }

    /// Forgets a job that has ended.
    pub(crate) fn forget(&mut self, task: TaskId) {
        self.jobs.remove(task);
    }

    /// The jobs that have started and have not ended.
    pub(crate) fn tasks(&self) -> impl Iterator<Item = TaskId> {
        self.live.iter().copied()
    }

    /// The number of jobs that are live or wait.
    pub(crate) fn count(&self) -> usize {
        self.jobs.count()
    }

    /// The CPUs that a job was promised.
    pub(crate) fn cpus(&self, task: TaskId) -> Option<u32> {
        self.jobs.get(task)?.cpus
    }

    /// The program of a job, if the run starts it.
    pub(crate) fn program(&self, task: TaskId) -> Option<&JobProgram> {
        self.jobs.get(task)?.program.as_ref()
    }

    pub(crate) fn name(&self, task: TaskId) -> &str {
        &self.jobs[task].name
    }

    pub(super) fn live(&self, task: TaskId) -> Option<&LiveJob> {
        self.jobs.get(task)?.live.as_ref()
    }

    pub(super) fn live_mut(&mut self, task: TaskId) -> Option<&mut LiveJob> {
        self.jobs.get_mut(task)?.live.as_mut()
    }

    /// The processes of a job that has started and has not ended.
    pub(crate) fn tree(&self, task: TaskId) -> Option<&ProcessTree> {
        self.live(task).map(|live| &live.tree)
    }

    /// The files of a job's error output and output; `None` if the run did not start it.
    pub(crate) fn output_files(&self, task: TaskId) -> Option<[&Path; 2]> {
        let program = self.jobs.get(task)?.program.as_ref()?;
        Some([&program.stderr, &program.stdout])
    }

    /// Whether a job exists, and may be started.
    pub(crate) fn can_start(&self, task: TaskId) -> bool {
        let job = self.jobs.get(task);
        job.is_some_and(|job| job.live.is_none() && job.program.is_some())
    }

    /// Whether a job is stopped by itself or by another process.
    pub(crate) fn stopped_itself(&self, task: TaskId) -> bool {
        self.live(task)
            .is_some_and(|live| live.stopped_itself.is_some())
    }

    /// CPU time of a live job by the kernel's accounts.
    pub(crate) fn cpu_time(&self, task: TaskId) -> Option<CpuAccount> {
        self.live(task)?.cpu_time()
    }

    /// Starts a job, with these variables besides the marks of the run. `ready` is called with its name and its processes while it waits to execute its program.
    ///
    /// # Errors
    /// The program could not be started.
    pub(crate) fn start(
        &mut self,
        task: TaskId,
        variables: &[(&str, String)],
        ready: impl FnOnce(&str, &ProcessTree),
    ) -> io::Result<()> {
        let slot = self.free_slot();
        let (waiting, process, group) = self.spawn(task, slot, variables)?;
        let tree = ProcessTree::new(self.root.clone(), process, group)
            .with_ledger(self.ledger.clone(), task.0);
        let own = meminfo::own_peak(&self.root).unwrap_or_else(sys::own_max_rss);
        let job = &mut self.jobs[task];
        // The guardian must know the job before anything can stop it.
        let entered = self.ledger.job(task.0, &job.name, &process);
        tell_lost(&self.ledger, &self.notices);
        ready(
            &job.name,
            &job.live.insert(LiveJob::new(tree, slot, own)).tree,
        );
        self.live.insert(task);
        self.mains.insert(process.pid, task);
        let started = entered.and_then(|()| waiting.start(job.program()?));
        if started.is_err() {
            // The process ends by itself and is reaped as an unknown child.
            job.live = None;
            self.live.remove(&task);
            self.mains.remove(&process.pid);
            self.ledger.ended(task.0);
        }
        started
    }

    /// The lowest number, from 1, that no live job has.
    pub(super) fn free_slot(&self) -> usize {
        let mut is_taken = vec![false; self.live.len() + 1];
        for &task in &self.live {
            let slot = self.live(task).map_or(0, |live| live.slot);
            if let Some(taken) = is_taken.get_mut(slot.wrapping_sub(1)) {
                *taken = true;
            }
        }
        let before = is_taken.iter().take_while(|taken| **taken);
        before.count() + 1
    }

    /// Creates the process of a job, in its own group if possible.
    fn spawn(
        &mut self,
        task: TaskId,
        slot: usize,
        variables: &[(&str, String)],
    ) -> io::Result<(Waiting, Process, Option<JobGroup>)> {
        let group = self.make_group(task);
        let to_create_in = group.as_ref().filter(|_| self.creates_in_group);
        let directory = to_create_in.and_then(|group| group.directory().ok());
        let progress_at = self.progress_at.map(|number| number.to_string());
        let job = &mut self.jobs[task];
        let (name, slot) = (job.name.clone(), slot.to_string());
        let mut all = vec![
            (RUN_VARIABLE, self.token.as_str()),
            (JOB_VARIABLE, name.as_str()),
            (SLOT_VARIABLE, slot.as_str()),
        ];
        all.extend(
            progress_at
                .as_deref()
                .map(|number| (PROGRESS_VARIABLE, number)),
        );
        all.extend(variables.iter().map(|(name, value)| (*name, &**value)));
        let program = job.program()?;
        let waiting = spawn::prepare(
            program,
            &all,
            self.around,
            directory.as_ref().map(AsFd::as_fd),
            self.progress_at,
        )?;
        program.again = true;
        let process = waiting.process(&self.root)?;
        let group = group.filter(|group| waiting.is_in_group || self.moves(task, group, &process));
        Ok((waiting, process, group))
    }

    pub(super) fn make_group(&self, task: TaskId) -> Option<JobGroup> {
        match self.group.as_ref()?.job(task.0) {
            Ok(group) => Some(group),
            Err(error) => {
                self.tell_no_group(task, error.to_string());
                None
            }
        }
    }

    /// Moves a process that was not created in its group; `false` if that fails.
    pub(super) fn moves(&self, task: TaskId, group: &JobGroup, process: &Process) -> bool {
        let moved = group.add(process.pid);
        if let Err(error) = &moved {
            self.tell_no_group(task, error.to_string());
        }
        moved.is_ok()
    }

    fn tell_no_group(&self, task: TaskId, why: String) {
        let job = self.name(task).to_owned();
        self.notices.tell(HostNotice::NoGroup { job, why });
    }

    /// Waits for a signal, for input on one of `lines`, or for `timeout`.
    ///
    /// # Errors
    /// Signals cannot be waited for.
    pub(crate) fn wait(
        &mut self,
        timeout: Option<Nanos>,
        lines: &[BorrowedFd<'_>],
    ) -> Result<WaitEvents, HostError> {
        let timeout = timeout.and_then(|time| Duration::from_nanos(time.0).try_into().ok());
        let signals = self.signals.as_fd();
        let ends: Vec<BorrowedFd<'_>> = self.adopted_ends().map(AsFd::as_fd).collect();
        let all = std::iter::once(&signals).chain(lines).chain(&ends);
        let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let from_ends = 1 + lines.len();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(WaitEvents::default()),
            Ok(_) => Ok(WaitEvents {
                from_outside: fds[1..from_ends].iter().any(|fd| !fd.revents().is_empty()),
                adopted_ended: fds[from_ends..].iter().any(|fd| !fd.revents().is_empty()),
                // Eight signals are blocked, and at most one of each is pending.
                signals: if fds[0].revents().is_empty() {
                    Vec::new()
                } else {
                    sys::pending_signals::<8>(signals)
                },
            }),
            Err(error) => Err(system("waiting for signals")(error.into())),
        }
    }

    /// Handles all children whose state has changed; called after SIGCHLD. Appends to `events` what jobs did by
    /// themselves. Returns the jobs whose last process has ended. `is_stopped_by_us` returns whether the caller stopped
    /// a job by a signal.
    pub(crate) fn reap(
        &mut self,
        now: Nanos,
        is_stopped_by_us: impl Fn(TaskId) -> bool,
        events: &mut Vec<Event>,
    ) -> Vec<EndedJob> {
        let mut changed = false;
        while let Some(waited) = sys::wait_any() {
            changed = true;
            let is_gone = matches!(
                waited.status,
                ChildStatus::Exited(_) | ChildStatus::Signaled(_)
            );
            let is_stopped = waited.status == ChildStatus::Stopped;
            if is_gone {
                self.orphanage.reaped(waited.pid);
            }
            if self.guard.is(waited.pid) {
                if is_gone || is_stopped {
                    self.guard.replace(is_gone);
                }
            } else if let Some(&task) = self.mains.get(&waited.pid) {
                if is_gone {
                    self.mains.remove(&waited.pid);
                    self.main_ended(task, Some(waited), events);
                } else {
                    self.main_paused(task, is_stopped, now, is_stopped_by_us(task), events);
                }
            }
        }
        for task in self.ended_adopted() {
            changed = true;
            self.main_ended(task, None, events);
        }
        if changed { self.settle() } else { Vec::new() }
    }

    /// A job's own process was stopped, or continued.
    pub(super) fn main_paused(
        &mut self,
        task: TaskId,
        stopped: bool,
        now: Nanos,
        by_us: bool,
        events: &mut Vec<Event>,
    ) {
        let job = &mut self.jobs[task];
        let Some(live) = &mut job.live else { return };
        if !stopped {
            if live.stopped_itself.take().is_some() {
                events.push(Event::Woke(task));
            }
        } else if !by_us && live.stopped_itself.is_none() {
            live.stopped_itself = Some(now);
            events.push(Event::Slept(task));
            self.notices.tell(HostNotice::StoppedItself {
                job: job.name.clone(),
            });
        }
    }

    /// A job's own process has ended. What its reaper noted counts, and else what the kernel says of a child.
    fn main_ended(&mut self, task: TaskId, waited: Option<sys::Waited>, events: &mut Vec<Event>) {
        let key = self.jobs[task].key.as_deref();
        let noted = key.and_then(ReapedEnd::of);
        let status = waited.map(|waited| waited.status);
        let exit = match (&noted, status) {
            (Some(noted), _) => noted.end.exit(),
            (None, Some(status)) => status.exit(),
            (None, None) => Exit::Unknown,
        };
        let exit = self.with_cause(exit);
        let Some(live) = self.live_mut(task) else {
            return;
        };
        live.tree.main_gone = true;
        live.is_noted = noted.is_some();
        let used = noted.map(|noted| noted.used());
        live.main_end = Some((exit, used.or(waited.map(|waited| waited.used))));
        if live.stopped_itself.take().is_some() {
            events.push(Event::Woke(task));
        }
        if live.adopted.is_some() && !live.is_noted {
            // Its reaper was killed, and nobody tells this process of the orphans.
            live.tree.continue_session();
        }
        self.adopt_orphans();
        let job = &mut self.jobs[task];
        if let Some(live) = &mut job.live
            && live.tree.is_alive()
            // A job that was asked to end may end process by process.
            && !live.told_to_end
        {
            self.notices.tell(HostNotice::Lingers {
                job: job.name.clone(),
                processes: live.tree.members().len(),
            });
        }
    }

    /// The end with its cause. Memory ran out if the process was killed and the kernel has counted an out-of-memory kill
    /// since the last such end.
    fn with_cause(&mut self, exit: Exit) -> Exit {
        let Exit::Signal { signal, .. } = exit else {
            return exit;
        };
        if signal != libc::SIGKILL {
            return exit;
        }
        let before = self.oom_kills;
        self.oom_kills = meminfo::oom_kills(&self.root);
        Exit::Signal {
            signal,
            oom: self.oom_kills > before,
        }
    }

    /// Assigns orphans, which are now children of this process, to their jobs. Jobs with a cgroup do not need this.
    pub(crate) fn adopt_orphans(&mut self) {
        if self
            .tasks()
            .all(|task| self.tree(task).is_none_or(|tree| tree.group().is_some()))
        {
            return;
        }
        let Lifecycle {
            root,
            jobs,
            live,
            mains,
            guard,
            orphanage,
            token,
            ..
        } = self;
        orphanage.look(
            |pid| guard.is(pid) || mains.contains_key(&pid),
            |orphan| {
                let owner = owner_of(root, jobs, live, orphan, token);
                let owner = owner.and_then(|task| jobs[task].live.as_mut());
                owner.map(|live| live.tree.adopt(*orphan)).is_some()
            },
        );
    }

    /// Removes the jobs whose last process has ended.
    fn settle(&mut self) -> Vec<EndedJob> {
        let mut ending: Vec<TaskId> = self.tasks().collect();
        ending.retain(|&task| self.live(task).is_some_and(|live| live.main_end.is_some()));
        if ending.is_empty() {
            return Vec::new();
        }
        self.adopt_orphans();
        let mut ended = Vec::new();
        for task in ending {
            let live = &mut self.jobs[task].live;
            if let Some(live) = live.take_if(|live| live.adopted.is_some() || !live.tree.is_alive())
            {
                self.live.remove(&task);
                self.ledger.ended(task.0);
                ended.extend(live.end(task, self.counts_io));
            }
        }
        ended
    }

    /// Continues jobs that stopped themselves too long ago; returns when the next one is due. A frozen job must wait
    /// until it is thawed, because SIGCONT would set it free.
    pub(crate) fn continue_stopped(
        &mut self,
        now: Nanos,
        is_frozen: impl Fn(TaskId) -> bool,
    ) -> Option<Nanos> {
        let mut next: Option<Nanos> = None;
        for &task in &self.live {
            let job = &mut self.jobs[task];
            let Some(live) = &mut job.live else { continue };
            let Some(since) = live.stopped_itself else {
                continue;
            };
            if is_frozen(task) {
                continue;
            }
            let due = since + self.max_pause;
            if due <= now {
                live.tree.go_on();
                if let Some(job) = &live.reaped {
                    job.signal(&self.root, Signal::CONT);
                }
                self.notices.tell(HostNotice::Continued {
                    job: job.name.clone(),
                });
                // SIGCHLD follows when it continues; until then it must not be continued a second time.
                live.stopped_itself = Some(now);
            } else {
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next
    }

    /// Sends the guardian a heartbeat.
    pub(crate) fn tell_guardian(&self, beat: Beat) {
        self.guard.tell(beat);
    }

    /// Starts a guardian if there is none; returns the time until the next attempt if that fails.
    pub(crate) fn keep_guard(&mut self) -> Option<Nanos> {
        tell_lost(&self.ledger, &self.notices);
        self.guard.keep()
    }

    /// Records that a job is asked to end, and continued if it has stopped itself.
    pub(crate) fn telling_to_end(&mut self, task: TaskId) {
        if let Some(live) = self.live_mut(task) {
            (live.stopped_itself, live.told_to_end) = (None, true);
        }
    }
}

impl Job {
    fn new(job: HostJob) -> Job {
        let HostJob {
            name,
            begin,
            cpus,
            key,
        } = job;
        Job {
            name,
            cpus,
            program: match begin {
                JobBegin::Program(program) => Some(program),
                JobBegin::Adopt(_) => None,
            },
            key,
            live: None,
        }
    }
}

impl Job {
    fn program(&mut self) -> io::Result<&mut JobProgram> {
        self.program.as_mut().ok_or(io::ErrorKind::NotFound.into())
    }
}

/// Prepares this process for a run: frees leftovers of dead runs, and makes it the parent of orphans.
fn settle_process(root: &Root, notices: &HostNotices) -> Result<(), HostError> {
    if !sys::is_single_threaded() {
        return Err(HostError::Threads);
    }
    // Before the first child, whose end must be reported.
    interrupts::settle_signals();
    let mended = mend::mend(root, &Reach::Near);
    if !mended.is_empty() {
        notices.tell(HostNotice::Mended(mended));
    }
    set_child_subreaper(Some(getpid()))
        .map_err(io::Error::from)
        .map_err(system("becoming the reaper of orphans"))
}

/// The job of an orphan, by its session or its variables.
fn owner_of(
    root: &Root,
    jobs: &ByTask<Job>,
    live: &BTreeSet<TaskId>,
    orphan: &Process,
    token: &str,
) -> Option<TaskId> {
    let run = process::variable(root, orphan.pid, RUN_VARIABLE);
    let name = run
        .filter(|run| run == token)
        .and_then(|_| process::variable(root, orphan.pid, JOB_VARIABLE));
    for &task in live {
        let job = &jobs[task];
        let session = job.live.as_ref().map(|live| live.tree.main.pid);
        if session == Some(orphan.session) || name.as_ref() == Some(&job.name) {
            return Some(task);
        }
    }
    // A single live job must have started it.
    live.first().copied().filter(|_| live.len() == 1)
}

impl Drop for Lifecycle {
    fn drop(&mut self) {
        // Groups remove themselves; those still in use are released.
        self.jobs = ByTask::default();
        self.group = None;
        // Before signals are unblocked, because one may end this process.
        self.guard.dismiss();
        sys::restore_mask(&self.mask);
        if let Some(limit) = &self.around.files {
            sys::restore_file_limit(limit);
        }
    }
}
