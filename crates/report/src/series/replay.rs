//! The state of a run at one moment of its series.
//!
//! Timelines, traces and the answers of `why` all follow a [`Replay`]. Time never goes back in it: a row that comes late
//! takes effect at the time of the row before it.

use super::{CpuMode, SeriesHeader, SeriesRow};
use crate::holders::Holders;
use cosched_core::{CpuId, CpuSet, Nanos, Purpose, Switched, TaskId, Trigger, WaitReason};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A placement, as the policy chose it.
#[derive(Clone, PartialEq)]
pub(crate) struct Placed {
    pub cpus: CpuSet,
    pub mode: CpuMode,
    pub purpose: Purpose,
}

/// The activity of a job.
#[derive(Clone, Default, PartialEq)]
pub(crate) enum Activity {
    /// It has not arrived, or has ended.
    #[default]
    Absent,
    /// It has arrived and no decision was made about it, or its last attempt failed.
    Queued,
    /// It waits for this reason.
    Waits(WaitReason),
    /// It runs.
    Runs(Placed),
    /// It is frozen without a reason, sleeps, or lost its CPUs to another job while it was being ended.
    OffCpu,
}

/// A time during which a job had the same activity.
pub(crate) struct Span {
    pub job: usize,
    pub from: Nanos,
    pub to: Nanos,
    pub activity: Activity,
    /// It was still going on at the end of the series.
    pub is_open: bool,
}

/// A job at one moment of a series.
#[derive(Default)]
pub(crate) struct JobReplay {
    pub arrival: Nanos,
    /// Number of starts so far.
    pub starts: u32,
    /// When it ended, and how.
    pub ended: Option<(Nanos, String)>,
    /// A decision was made about it.
    pub let_in: bool,
    /// Its CPUs by the policy, and since when.
    pub placed: Option<(Nanos, Placed)>,
    /// Its last placement, also while it has none.
    pub last_placed: Option<Placed>,
    /// Since when it has had no placement; its arrival if it never had one.
    pub idle_since: Nanos,
    /// Its CPUs in the kernel; `None` while the series does not say.
    pub held: Option<CpuSet>,
    /// Its activity while it has no placement.
    idle: Activity,
    /// Its activity in the open span, and the begin of that.
    span: (Nanos, Activity),
    /// It was started again: a new span begins.
    split: bool,
}

impl JobReplay {
    pub(crate) fn is_over(&self) -> bool {
        self.ended.is_some()
    }

    /// Return since when it has waited between two placements.
    pub(crate) fn paused_since(&self) -> Option<Nanos> {
        (self.starts > 0 && self.placed.is_none()).then_some(self.idle_since)
    }

    /// Whether it was let in or started, and has not ended.
    pub(crate) fn is_live(&self) -> bool {
        (self.starts > 0 || self.let_in) && !self.is_over()
    }

    /// Return its activity now; CPUs in the kernel come before the placement.
    fn activity(&self) -> Activity {
        if self.is_over() {
            return Activity::Absent;
        }
        match (&self.held, &self.placed) {
            (Some(held), _) if !held.is_empty() => Activity::Runs(self.running_on(held)),
            (Some(_), Some(_)) => Activity::OffCpu,
            (None, Some((_, placed))) => Activity::Runs(placed.clone()),
            (_, None) => self.idle.clone(),
        }
    }

    /// Return its last placement, moved to the CPUs that it holds in the kernel.
    fn running_on(&self, held: &CpuSet) -> Placed {
        let (mode, purpose) = match &self.last_placed {
            // A job that holds a CPU in the kernel does not share it.
            Some(last) if last.mode == CpuMode::Shared => (CpuMode::Exclusive, last.purpose),
            Some(last) => (last.mode, last.purpose),
            None => (CpuMode::Exclusive, Purpose::Run),
        };
        Placed {
            cpus: held.clone(),
            mode,
            purpose,
        }
    }

    fn leave(&mut self, at: Nanos, idle: Activity) {
        if self.placed.take().is_some() || idle == Activity::OffCpu {
            self.idle_since = at;
        }
        self.idle = idle;
    }

    /// Change its CPUs in the kernel.
    fn hold(&mut self, change: impl FnOnce(&mut CpuSet) -> bool) {
        change(self.held.get_or_insert_default());
    }
}

/// A run at one moment of its series.
pub(crate) struct Replay {
    /// The time of the last row.
    pub now: Nanos,
    pub jobs: Vec<JobReplay>,
    /// The holders of the CPUs in the kernel.
    pub holders: Holders,
    /// Future arrivals, the next one first.
    arrivals: VecDeque<(Nanos, usize)>,
    /// Jobs that may have changed at this moment.
    changed: BTreeSet<usize>,
    /// The job that has each CPU for itself.
    owners: BTreeMap<CpuId, usize>,
    /// Spans that have ended and were not taken yet.
    spans: Vec<Span>,
}

impl Replay {
    pub(crate) fn new(header: &SeriesHeader) -> Replay {
        let mut jobs = Vec::new();
        let mut arrivals = Vec::new();
        for (job, task) in header.tasks.iter().enumerate() {
            arrivals.push((task.arrival_ns, job));
            jobs.push(JobReplay {
                arrival: task.arrival_ns,
                idle_since: task.arrival_ns,
                ..JobReplay::default()
            });
        }
        arrivals.sort_unstable();
        Replay {
            now: Nanos::ZERO,
            jobs,
            holders: Holders::default(),
            arrivals: arrivals.into(),
            changed: BTreeSet::new(),
            owners: BTreeMap::new(),
            spans: Vec::new(),
        }
    }

    /// Return the job of a task that a row names.
    pub(crate) fn job(&self, task: TaskId) -> &JobReplay {
        &self.jobs[task.0 as usize]
    }

    /// Apply a row. The reader has checked that the header has its tasks and CPUs.
    pub(crate) fn apply(&mut self, at: Nanos, row: &SeriesRow) {
        self.advance(at);
        match row {
            SeriesRow::Decided { triggers, .. } => self.end_attempts(triggers),
            SeriesRow::Placed {
                task,
                cpus,
                mode,
                purpose,
            } => {
                let placed = Placed {
                    cpus: cpus.clone(),
                    mode: *mode,
                    purpose: *purpose,
                };
                self.place(task.0 as usize, placed);
            }
            SeriesRow::Stopped(task) => self.leave(task.0 as usize, Activity::OffCpu),
            SeriesRow::Waits { task, reason } => {
                self.jobs[task.0 as usize].let_in = true;
                self.leave(task.0 as usize, Activity::Waits(*reason));
            }
            SeriesRow::Started(task) => self.start(task.0 as usize),
            SeriesRow::Ended { task, end, .. } => self.end(*task, end.text()),
            SeriesRow::Switched(switched) => self.switch(*switched),
            SeriesRow::Sampled(_)
            | SeriesRow::Lacks { .. }
            | SeriesRow::Warned { .. }
            | SeriesRow::Came(_) => {}
        }
    }

    /// Return the spans that have ended since the last call, in the order of time for each job.
    pub(crate) fn take_spans(&mut self) -> Vec<Span> {
        std::mem::take(&mut self.spans)
    }

    /// End all spans at the end of the series.
    pub(crate) fn finish(&mut self) -> Vec<Span> {
        self.settle();
        let closed = self.spans.len();
        for job in 0..self.jobs.len() {
            self.end_span(job);
        }
        for span in &mut self.spans[closed..] {
            span.is_open = true;
        }
        self.take_spans()
    }

    /// Move the time on; jobs arrive until then.
    fn advance(&mut self, to: Nanos) {
        while let Some((at, job)) = self.arrivals.front().copied().filter(|(at, _)| *at <= to) {
            self.arrivals.pop_front();
            self.move_to(at);
            if self.jobs[job].idle == Activity::Absent && self.jobs[job].starts == 0 {
                self.jobs[job].idle = Activity::Queued;
                self.changed.insert(job);
            }
        }
        self.move_to(to);
    }

    fn move_to(&mut self, to: Nanos) {
        if to > self.now {
            self.settle();
            self.now = to;
        }
    }

    /// End and begin spans, once all rows of this moment have been applied.
    ///
    /// All old spans end before new ones begin. A change that a later row of the same moment takes back leaves no trace.
    fn settle(&mut self) {
        let mut begin = Vec::new();
        for job in std::mem::take(&mut self.changed) {
            let activity = self.jobs[job].activity();
            if std::mem::take(&mut self.jobs[job].split) || self.jobs[job].span.1 != activity {
                self.end_span(job);
                begin.push((job, activity));
            }
        }
        for (job, activity) in begin {
            self.begin_span(job, activity);
        }
    }

    fn end_span(&mut self, job: usize) {
        let (from, activity) = std::mem::take(&mut self.jobs[job].span);
        if let Activity::Runs(placed) = &activity {
            self.owners
                .retain(|cpu, owner| *owner != job || !placed.cpus.contains(*cpu));
        }
        if activity != Activity::Absent && from < self.now {
            self.spans.push(Span {
                job,
                from,
                to: self.now,
                activity,
                is_open: false,
            });
        }
    }

    fn begin_span(&mut self, job: usize, activity: Activity) {
        if let Activity::Runs(placed) = &activity
            && placed.mode != CpuMode::Shared
        {
            for cpu in placed.cpus.iter() {
                self.evict(cpu);
                self.owners.insert(cpu, job);
            }
        }
        self.jobs[job].span = (self.now, activity);
    }

    /// Take a CPU from its owner: a job that is being ended, which the series does not name until it has ended.
    fn evict(&mut self, cpu: CpuId) {
        if let Some(&owner) = self.owners.get(&cpu) {
            self.end_span(owner);
            self.jobs[owner].leave(self.now, Activity::OffCpu);
            self.jobs[owner].span = (self.now, Activity::OffCpu);
        }
    }

    fn place(&mut self, job: usize, placed: Placed) {
        let replay = &mut self.jobs[job];
        replay.last_placed = Some(placed.clone());
        replay.placed = Some((self.now, placed));
        self.changed.insert(job);
    }

    fn leave(&mut self, job: usize, idle: Activity) {
        self.jobs[job].leave(self.now, idle);
        self.changed.insert(job);
    }

    fn start(&mut self, job: usize) {
        let replay = &mut self.jobs[job];
        replay.starts += 1;
        replay.ended = None;
        if replay.starts > 1 {
            replay.split = true;
            // The series does not repeat a placement that is the same as before.
            if let Some(placed) = replay.last_placed.clone() {
                self.place(job, placed);
            }
        }
    }

    /// End the attempts that will be repeated: they have no rows of their own.
    fn end_attempts(&mut self, triggers: &[Trigger]) {
        for trigger in triggers {
            if let Some(job) = self.failed_attempt(trigger) {
                self.leave(job, Activity::Queued);
            }
        }
    }

    /// Return the job whose attempt failed and will be repeated, if the trigger says that.
    pub(crate) fn failed_attempt(&self, trigger: &Trigger) -> Option<usize> {
        let Trigger::Ended(task) = trigger else {
            return None;
        };
        let replay = self.jobs.get(task.0 as usize)?;
        (replay.starts > 0 && !replay.is_over()).then_some(task.0 as usize)
    }

    fn end(&mut self, task: TaskId, how: String) {
        let job = task.0 as usize;
        self.holders.ended(task);
        self.jobs[job].held = None;
        self.jobs[job].ended = Some((self.now, how));
        self.leave(job, Activity::Absent);
    }

    /// Give a CPU in the kernel to another job.
    fn switch(&mut self, switched: Switched) {
        let Switched::To { cpu, task } = switched else {
            return self.forget_holders();
        };
        // Processes that a job left behind are no part of it.
        let task = task.filter(|task| !self.job(*task).is_over());
        let before = self.holders.switched(self.now, Switched::To { cpu, task });
        if let Some(before) = before {
            self.jobs[before.0 as usize].hold(|cpus| cpus.remove(cpu));
            self.changed.insert(before.0 as usize);
        }
        if let Some(task) = task {
            self.jobs[task.0 as usize].hold(|cpus| cpus.insert(cpu));
            self.changed.insert(task.0 as usize);
        }
    }

    /// From here on the series does not say who holds which CPU.
    fn forget_holders(&mut self) {
        self.holders = Holders::default();
        for (job, replay) in self.jobs.iter_mut().enumerate() {
            if replay.held.take().is_some() {
                self.changed.insert(job);
            }
        }
    }
}
