//! Programs that run already, as tasks of a policy. Each subject that uses a CPU is a task. A placement binds its
//! threads; a stop freezes its own cgroup, if the user allows that. Nothing is ever killed: a task that the loop ends is
//! let go.

use super::census::INIT;
use super::notes::{left_alone, not_thawed, of_undo};
use super::sampler::{Sampled, Sampler};
use super::selection::{Subject, SubjectKey};
use super::usage::IntervalSums;
use crate::cgroup;
use crate::counters::CounterSupport;
use crate::hold::session::{LeftAlone, SessionHold, limit_of};
use crate::host::lacks;
use crate::interrupts::{Interrupt, Interrupts};
use crate::root::Root;
use crate::run_id::RunId;
use crate::sys;
use crate::topology::{self, TopologyError, whole_machine};
use cosched_core::{
    Absence, Backend, Began, Capabilities, Capability, Change, Control, CpuSet, Device, Event,
    Exit, Intake, Kill, Machine, MayStart, Nanos, Origin, Planner, Reading, Resources,
    SubjectSample, TaskId, TaskSpec, Traffic, Usage, Visible, Wanting, Width,
};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// CPU time of an active subject in an interval, in thousandths.
const ACTIVE_MILLI: u64 = 10;
/// Inactive intervals after which a subject counts as asleep.
const CALM: u32 = 3;
/// Age of a look that is recent enough for a reading.
const FRESH: Duration = Duration::from_millis(100);

/// Why programs cannot be managed.
#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    /// The process has other threads, so it cannot start a keeper.
    #[error("this process has several threads, so it cannot start the keeper of the CPU masks")]
    Threads,
    /// The process cannot identify itself.
    #[error("/proc is not of this process's PID namespace; mount it anew, or leave out --manage")]
    NoIdentity,
    /// The keeper cannot be started.
    #[error("the keeper of the CPU masks cannot be started: {0}; nothing is managed without it")]
    Keeper(io::Error),
    /// Waiting failed.
    #[error("waiting failed: {0}")]
    Wait(io::Error),
    /// The machine cannot be read.
    #[error(transparent)]
    Machine(#[from] TopologyError),
}

/// How programs are managed.
pub struct ManageConfig {
    /// Length of an interval between two looks.
    pub interval: Nanos,
    /// Whether groups may be frozen.
    pub pause: bool,
    /// Whether the session goes on when no subject is left: others may start later.
    pub stays: bool,
}

/// Sees each look, with what was done and what could not be done since the last one. Returns whether to go on.
pub type ScanObserver<'a> = Box<dyn FnMut(&Sampled, &[String]) -> bool + 'a>;

/// Manages subjects until it is dropped, which undoes all changes.
pub struct Attached<'a> {
    root: Root,
    config: ManageConfig,
    machine: Arc<Machine>,
    capabilities: Capabilities,
    began: Instant,
    sampler: Sampler,
    looked: Instant,
    hold: SessionHold,
    interrupts: Interrupts,
    tasks: BTreeMap<TaskId, Task>,
    by_key: BTreeMap<SubjectKey, TaskId>,
    taken: u32,
    news: Vec<TaskSpec>,
    /// Tasks among them that have ended.
    ended_early: Vec<TaskId>,
    some_live: bool,
    queued: Vec<Event>,
    notes: Vec<String>,
    watch: ScanObserver<'a>,
}

/// A managed subject.
struct Task {
    subject: Subject,
    totals: IntervalSums,
    wants: u32,
    calm: u32,
    /// The CPUs of its group.
    limit: CpuSet,
    /// Its CPUs; `None` before its first placement.
    cpus: Option<CpuSet>,
    /// Whether it can be frozen.
    freezes: bool,
    is_frozen: bool,
}

impl Task {
    /// The directory of its group, if the subject is a whole group.
    fn group(&self) -> Option<&Path> {
        match &self.subject.key {
            SubjectKey::Group(dir) => Some(dir),
            SubjectKey::Tree { .. } | SubjectKey::Job { .. } => None,
        }
    }
}

impl<'a> Attached<'a> {
    /// Prepares to manage what the sampler observes. Nothing is changed yet.
    ///
    /// # Errors
    /// [`ManageError`].
    pub fn new(
        root: &Root,
        mut sampler: Sampler,
        counters: &CounterSupport,
        interrupts: Interrupts,
        config: ManageConfig,
        mut watch: ScanObserver<'a>,
    ) -> Result<Attached<'a>, ManageError> {
        if !sys::is_single_threaded() {
            return Err(ManageError::Threads);
        }
        let run = RunId::own(root).ok_or(ManageError::NoIdentity)?;
        let machine = Arc::new(whole_machine(root)?);
        let interval = Duration::from_nanos(config.interval.0);
        let hold = SessionHold::begin(root, run, interval).map_err(ManageError::Keeper)?;
        let lost = hold.take_lost().map(|why| {
            format!(
                "no list in the runtime folder: {why}; if both cosched and its keeper are killed, bound programs stay bound"
            )
        });
        let first = sampler.look();
        watch(&first, lost.as_slice());
        Ok(Attached {
            root: root.clone(),
            capabilities: capabilities(root, &machine, counters, config.pause, &first.subjects),
            config,
            machine,
            began: Instant::now(),
            sampler,
            looked: Instant::now(),
            hold,
            interrupts,
            tasks: BTreeMap::new(),
            by_key: BTreeMap::new(),
            taken: 0,
            news: Vec::new(),
            ended_early: Vec::new(),
            some_live: !first.subjects.is_empty(),
            queued: Vec::new(),
            notes: Vec::new(),
            watch,
        })
    }

    /// Gives all programs their CPUs back, and thaws their groups. Returns what could not be done.
    pub fn undo(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        notes.extend(of_undo(&self.hold.undo()));
        notes
    }

    fn interval(&self) -> Duration {
        Duration::from_nanos(self.config.interval.0)
    }

    /// Looks at the subjects, and brings the tasks up to date.
    fn look(&mut self) -> Result<(), ManageError> {
        self.keep_guardian()?;
        self.look_at_machine()?;
        let sampled = self.sampler.look();
        self.looked = Instant::now();
        let length = sampled.observed.length;
        let each = sampled.subjects.iter().zip(&sampled.observed.subjects);
        for (subject, sample) in each {
            self.see(subject, sample, length);
        }
        self.see_ends(&sampled.subjects);
        self.some_live = !sampled.subjects.is_empty();
        if !(self.watch)(&sampled, &std::mem::take(&mut self.notes)) {
            let signal = libc::SIGPIPE;
            self.queued.push(Event::Interrupt { signal });
        }
        Ok(())
    }

    fn keep_guardian(&mut self) -> Result<(), ManageError> {
        if self.hold.renew_guardian().map_err(ManageError::Keeper)? {
            let note = "the keeper of the CPU masks was gone and was replaced";
            self.notes.push(note.to_owned());
        }
        Ok(())
    }

    fn look_at_machine(&mut self) -> Result<(), ManageError> {
        if topology::online(&self.root)? != self.machine.all_cpus() {
            self.machine = Arc::new(whole_machine(&self.root)?);
            self.queued.push(Event::MachineChanged);
        }
        Ok(())
    }

    /// Takes over what a subject did in an interval.
    fn see(&mut self, subject: &Subject, sample: &SubjectSample, length: Nanos) {
        let is_active = is_active(sample, length);
        let Some(&id) = self.by_key.get(&subject.key) else {
            if is_active {
                self.enter(subject, sample, length);
            }
            return;
        };
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let is_new = task.subject.members != subject.members;
        task.subject.clone_from(subject);
        task.totals.add(sample);
        task.wants = sample.wants;
        let was_calm = task.calm >= CALM;
        if !task.is_frozen {
            task.calm = if is_active {
                0
            } else {
                task.calm.saturating_add(1)
            };
        }
        match (was_calm, task.calm >= CALM) {
            (false, true) => self.queued.push(Event::Slept(id)),
            (true, false) => self.queued.push(Event::Woke(id)),
            _ => {}
        }
        if is_active || is_new {
            self.bind_new(id);
        }
    }

    /// Makes a task of a subject that has used a CPU.
    fn enter(&mut self, subject: &Subject, sample: &SubjectSample, length: Nanos) {
        let id = TaskId(self.taken);
        self.taken += 1;
        let freezes = self.config.pause && freeze_problem(&self.root, subject).is_none();
        let cpus = (sample.cpu_time.0 + length.0 / 2) / length.0.max(1);
        let cpus = (cpus as u32).clamp(1, self.machine.cpus.len() as u32);
        let first = subject.members.first();
        let all = self.machine.all_cpus();
        let limit = first.map_or(all, |first| limit_of(&self.root, first.pid));
        let arrives = self.now();
        self.news.push(TaskSpec {
            cpus,
            width: Width::Measured,
            arrives,
            allowed: Some(limit.clone()).filter(|limit| *limit != self.machine.all_cpus()),
            origin: Origin::Adopted,
            control: Control {
                count: true,
                place: true,
                freeze: freezes,
                kill: false,
            },
            ..TaskSpec::new(id.0, &format!("{} #{}", subject.name, id.0))
        });
        let mut task = Task {
            subject: subject.clone(),
            totals: IntervalSums::default(),
            wants: sample.wants,
            calm: 0,
            limit,
            cpus: None,
            freezes,
            is_frozen: false,
        };
        task.totals.add(sample);
        self.by_key.insert(subject.key.clone(), id);
        self.tasks.insert(id, task);
        self.queued.push(Event::Arrivals);
    }

    /// Reports the tasks whose subjects have ended.
    fn see_ends(&mut self, subjects: &[Subject]) {
        let live: BTreeSet<&SubjectKey> = subjects.iter().map(|subject| &subject.key).collect();
        let gone: Vec<SubjectKey> = self
            .by_key
            .keys()
            .filter(|key| !live.contains(key))
            .cloned()
            .collect();
        for key in gone {
            if let Some(id) = self.by_key.remove(&key) {
                self.end(id);
            }
        }
    }

    fn end(&mut self, id: TaskId) {
        self.thaw(id);
        if self.news.iter().any(|spec| spec.id == id) {
            // The loop does not know it yet, and numbers may not be left out.
            self.ended_early.push(id);
            return;
        }
        self.queued.push(Event::Ended {
            task: id,
            exit: Exit::Unknown,
        });
    }

    fn place(&mut self, id: TaskId, cpus: &CpuSet) {
        self.thaw(id);
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let skipped = self.hold.bind(&task.subject, cpus);
        let before = task.cpus.as_ref().unwrap_or(&task.limit);
        if before != cpus && self.hold.binds(&task.subject) {
            let name = &task.subject.name;
            self.notes.push(format!("{name}: bound to CPUs {cpus}"));
        }
        task.cpus = Some(cpus.clone());
        self.note_skipped(id, skipped);
    }

    /// Binds the threads of a task that have started since.
    fn bind_new(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get(&id) else {
            return;
        };
        let Some(cpus) = &task.cpus else {
            return;
        };
        let skipped = self.hold.bind_new(&task.subject, cpus);
        self.note_skipped(id, skipped);
    }

    fn note_skipped(&mut self, id: TaskId, skipped: BTreeMap<LeftAlone, usize>) {
        let Some(task) = self.tasks.get(&id) else {
            return;
        };
        for (why, threads) in skipped {
            self.notes
                .push(left_alone(&task.subject.name, threads, why));
        }
    }

    fn freeze(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let Some(dir) = task.group().filter(|_| task.freezes).map(Path::to_owned) else {
            return;
        };
        let name = &task.subject.name;
        match self.hold.freeze(&dir) {
            Ok(true) => task.is_frozen = true,
            Ok(false) => self.notes.push(format!(
                "{name}: not paused: somebody else has frozen its cgroup"
            )),
            Err(error) => self.notes.push(format!(
                "{name}: not paused: its cgroup can't be frozen: {error}"
            )),
        }
    }

    fn thaw(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let Some(dir) = task.group().filter(|_| task.is_frozen).map(Path::to_owned) else {
            return;
        };
        match self.hold.thaw(&dir) {
            Ok(()) => task.is_frozen = false,
            Err(error) => {
                let note = not_thawed(&task.subject.name, &error.to_string());
                self.notes.push(note);
            }
        }
    }

    /// Waits for a signal until then.
    fn wait_for_signal(&self, until: Instant) -> Result<(), ManageError> {
        let left = until.saturating_duration_since(Instant::now());
        let mut watched = [PollFd::new(&self.interrupts, PollFlags::IN)];
        match poll(&mut watched, left.try_into().ok().as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(ManageError::Wait(error.into())),
        }
    }

    fn take_signals(&mut self) {
        while let Some(interrupt) = self.interrupts.next_signal() {
            match interrupt {
                Interrupt::End(signal) => self.queued.push(Event::Interrupt { signal }),
                Interrupt::Suspend => {
                    let note =
                        "not suspended: the programs depend on it; Ctrl-C ends it and frees them";
                    self.notes.push(note.to_owned());
                }
            }
        }
    }
}

impl Backend for Attached<'_> {
    type Error = ManageError;

    fn machine(&self) -> Arc<Machine> {
        self.machine.clone()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn now(&mut self) -> Nanos {
        Nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn stopwatch(&self) -> Option<Nanos> {
        Some(Nanos(self.began.elapsed().as_nanos() as u64))
    }

    fn wait(&mut self, until: Option<Nanos>, events: &mut Vec<Event>) -> Result<(), ManageError> {
        let until = until.map(|until| self.began + Duration::from_nanos(until.0));
        loop {
            let next = self.looked + self.interval();
            if self.queued.is_empty() {
                self.wait_for_signal(until.map_or(next, |until| next.min(until)))?;
            }
            self.take_signals();
            if Instant::now() >= next {
                self.look()?;
            }
            let is_late = until.is_some_and(|until| Instant::now() >= until);
            if is_late || !self.queued.is_empty() {
                break;
            }
        }
        events.append(&mut self.queued);
        Ok(())
    }

    fn read(&mut self, tasks: &[TaskId], out: &mut Vec<Usage>) {
        // The end of a quantum falls on a look, or a little before it.
        if self.looked.elapsed() + FRESH >= self.interval() {
            let _ = self.look();
        }
        for &id in tasks {
            let known = self.tasks.get(&id);
            out.push(known.map_or_else(
                || IntervalSums::default().usage(id),
                |task| task.totals.usage(id),
            ));
        }
    }

    fn device_time(&mut self, _usages: &mut [Usage]) {}

    fn visible(&mut self, _tasks: &[TaskId], _out: &mut Vec<(TaskId, Reading<Visible>)>) {}

    fn wanting(&mut self, task: TaskId) -> Reading<Wanting> {
        let placed = self.tasks.get(&task).filter(|task| task.cpus.is_some());
        let wants = placed.filter(|task| !task.is_frozen).map(|task| task.wants);
        Reading::from_option(wants, Absence::NotStarted).map(|all| Wanting {
            all,
            of_one_process: Reading::Absent(Absence::NotOffered),
        })
    }

    fn resources(&mut self, _task: TaskId) -> Resources {
        Resources::absent(Absence::NotTold)
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), ManageError> {
        for change in changes {
            if let Change::Stop { task } = change {
                self.freeze(*task);
            }
        }
        for change in changes {
            if let Change::Place {
                task, placement, ..
            } = change
            {
                self.place(*task, placement.cpus());
            }
        }
        Ok(())
    }

    fn began(&self, _task: TaskId) -> Began {
        Began::WithDecision
    }

    fn planner(&mut self) -> Option<&mut dyn Planner<ManageError>> {
        None
    }

    fn kill(&mut self, task: TaskId, _how: Kill) {
        let Some(known) = self.tasks.get(&task) else {
            return;
        };
        if self.by_key.remove(&known.subject.key).is_some() {
            self.end(task);
        }
    }

    fn ending(&mut self) {}

    fn restart(&mut self, _task: TaskId) -> bool {
        false
    }

    fn forget(&mut self, task: TaskId) {
        self.tasks.remove(&task);
    }

    fn may_start(&mut self, _task: &TaskSpec) -> MayStart {
        MayStart::Yes
    }

    fn traffic(&mut self, out: &mut Vec<Traffic>) {
        let absent = Traffic::absent(Absence::NotOffered);
        out.extend(std::iter::repeat_n(
            absent,
            self.machine.memory_domains.len(),
        ));
    }

    fn energy_j(&mut self) -> Reading<f64> {
        Reading::Absent(Absence::NotOffered)
    }
}

/// Where the tasks come from: subjects that start to use a CPU.
#[derive(Default)]
pub struct Newcomers {
    is_ready: bool,
    has_ended: bool,
}

impl Intake<Attached<'_>> for Newcomers {
    fn take(&mut self, backend: &mut Attached<'_>, room: usize, out: &mut Vec<TaskSpec>) {
        let count = room.min(backend.news.len());
        out.extend(backend.news.drain(..count));
        let early = std::mem::take(&mut backend.ended_early);
        early.into_iter().for_each(|id| backend.end(id));
        self.is_ready = !backend.news.is_empty();
        self.has_ended = !backend.config.stays && !backend.some_live;
    }

    fn is_ready(&self) -> bool {
        self.is_ready
    }

    fn has_ended(&self) -> bool {
        self.has_ended
    }
}

/// Whether a subject used or wanted a CPU in an interval.
fn is_active(sample: &SubjectSample, length: Nanos) -> bool {
    let exact: u64 = sample.on.iter().map(|on| on.used.0).sum();
    let used = exact.max(sample.cpu_time.0);
    length > Nanos::ZERO && (sample.wants > 0 || used * 1_000 >= length.0 * ACTIVE_MILLI)
}

/// Why a subject cannot be frozen; `None` if it is a group that this user may freeze.
fn freeze_problem(root: &Root, subject: &Subject) -> Option<Absence> {
    let SubjectKey::Group(dir) = &subject.key else {
        return Some(Absence::NoOwnGroup);
    };
    // Nobody would be left to thaw it.
    if cgroup::own_and_above(root).contains(dir) || cgroup::processes(dir).contains(&INIT) {
        return Some(Absence::HoldsCosched);
    }
    let file: PathBuf = dir.join("cgroup.freeze");
    match std::fs::OpenOptions::new().write(true).open(file) {
        Ok(_) => None,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Absence::NotOffered),
        Err(_) => Some(Absence::NoPermission),
    }
}

fn capabilities(
    root: &Root,
    machine: &Machine,
    counters: &CounterSupport,
    pause: bool,
    subjects: &[Subject],
) -> Capabilities {
    let mut missing = BTreeMap::from([
        (Capability::Device(Device::Disk), Absence::NotOffered),
        (Capability::Energy, Absence::NotOffered),
        (Capability::Traffic, Absence::NotOffered),
    ]);
    missing.extend(lacks(machine, counters));
    let mut problems = subjects.iter().map(|subject| freeze_problem(root, subject));
    let problem = problems.find_map(|problem| problem);
    let why = if pause {
        problem
    } else {
        Some(Absence::NoPause)
    };
    missing.extend(why.map(|why| (Capability::Freeze, why)));
    Capabilities { missing }
}
