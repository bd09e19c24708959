//! The state of a run, from its main loop.

use super::{
    CpuNow, JobNow, JobState, LeftOut, LiveTotals, OwnUse, ReasonNow, RunFacts, RunStatus,
    STATUS_SCHEMA,
};
use crate::figures::{Absences, Figures};
use crate::holders::Holders;
use crate::info::{JobInfo, RunInfo};
use crate::progress::{OVERDUE, ProgressTracker};
use crate::reason::{wait_code, wait_text};
use crate::record::EnergyRecord;
use crate::source::EnergySource;
use crate::text::clip;
use cosched_core::{
    ByTask, CpuSet, Doing, Fact, JobEnd, Nanos, Placement, ProgressBasis, Rate, Reading, RunNow,
    TaskId, TaskResult, TaskView, WatchedTask, node_of,
};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of jobs of each kind in a state.
const MAX_LIVE: usize = 4_000;
const MAX_QUEUED: usize = 1_000;
const MAX_ENDED: usize = 500;
/// Maximum number of characters of a command in a state.
const MAX_COMMAND: usize = 300;
/// Why an estimate is absent at first.
const TOO_EARLY: &str = "too little has been done to tell";
/// Least progress in seconds for an estimate of the slowdown.
const MIN_PROGRESS_S: f64 = 0.05;

/// What a run keeps for its state.
pub(crate) struct Live {
    /// The constants of the run, if its state is wanted.
    pub facts: Option<RunFacts>,
    energy_source: EnergySource,
    earlier: usize,
    /// The jobs that ended last, the latest first.
    recent: VecDeque<JobNow>,
    /// The holders of the CPUs, if a scheduler in the kernel says.
    holders: Holders,
}

impl Live {
    pub(crate) fn new(info: &RunInfo) -> Live {
        Live {
            facts: None,
            energy_source: info.energy_source,
            earlier: info.earlier.len(),
            recent: VecDeque::new(),
            holders: Holders::default(),
        }
    }

    /// Note CPUs that went to other jobs, and the ends of jobs.
    pub(crate) fn note(&mut self, at: Nanos, fact: &Fact<'_>, jobs: &ByTask<JobInfo>) {
        match fact {
            Fact::Switched(switches) => {
                for switch in *switches {
                    self.holders.switched(switch.at, switch.what);
                }
            }
            Fact::Ended(result) => {
                let info = jobs.get(result.spec.id);
                self.recent.truncate(MAX_ENDED - 1);
                self.recent.push_front(ended_row(at, result, info));
            }
            _ => {}
        }
    }

    /// Build the state. The caller adds the CPU time of the run itself.
    pub(crate) fn status(
        &self,
        now: &RunNow<'_>,
        jobs: &ByTask<JobInfo>,
        tracker: &ProgressTracker,
    ) -> RunStatus {
        let mut absent = Absences::default();
        let joules = absent.note("joules", now.energy_j);
        let source = if joules.is_some() {
            self.energy_source
        } else {
            EnergySource::Absent
        };
        RunStatus {
            schema: STATUS_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            run: RunFacts {
                cpus: now.snapshot.machine.all_cpus().to_string(),
                ..self.facts.clone().unwrap_or_default()
            },
            elapsed_s: now.at.as_s(),
            paused: now.is_paused,
            age_s: None,
            suspended: false,
            energy: EnergyRecord {
                joules,
                source,
                absent,
            },
            own: OwnUse {
                figures: Figures::default(),
                decisions: now.decisions,
            },
            cpus: if self.holders.is_told() {
                self.held(now)
            } else {
                cpus(now)
            },
            jobs: self.jobs(now, jobs, tracker),
            left_out: LeftOut {
                live: now.tasks.len().saturating_sub(MAX_LIVE),
                queued: now.pending.len().saturating_sub(MAX_QUEUED),
                ended: tracker.progress().done.saturating_sub(self.recent.len()),
            },
            totals: self.totals(now, tracker),
        }
    }

    fn totals(&self, now: &RunNow<'_>, tracker: &ProgressTracker) -> LiveTotals {
        let progress = tracker.progress();
        let mut totals = LiveTotals {
            jobs: progress.total,
            done: progress.done,
            failed: progress.failed,
            cancelled: progress.cancelled,
            queued: now.pending.len(),
            most_live: Some(now.most_live).filter(|&most| most < usize::MAX),
            earlier: self.earlier,
            left_s: progress.left.map(Nanos::as_s),
            left_from: progress.left.map(|_| tracker.left_from()),
            ..LiveTotals::default()
        };
        for task in now.tasks {
            *match state_of(task, now) {
                JobState::Running => &mut totals.running,
                JobState::Waiting => &mut totals.waiting,
                JobState::Sleeping => &mut totals.sleeping,
                JobState::Ending => &mut totals.ending,
                JobState::Queued | JobState::Ended => &mut totals.queued,
            } += 1;
        }
        let accounted = totals.done + now.tasks.len() + now.pending.len();
        totals.dropped = totals.jobs.saturating_sub(accounted);
        let why = if progress.is_overdue {
            OVERDUE
        } else {
            TOO_EARLY
        };
        let absent = &mut totals.absent;
        absent.note_option("left_s", totals.left_s, why);
        absent.note_option("left_from", totals.left_from, why);
        totals
    }

    /// Return the live jobs, then the next ones, then those that ended last.
    fn jobs(
        &self,
        now: &RunNow<'_>,
        jobs: &ByTask<JobInfo>,
        tracker: &ProgressTracker,
    ) -> Vec<JobNow> {
        let mut rows = Vec::new();
        for task in now.tasks.iter().take(MAX_LIVE) {
            let id = task.spec.id;
            let row = start_row(jobs.get(id), id, state_of(task, now));
            let mut row = live_row(row, task, now, tracker);
            if self.holders.has_seen(id) {
                row.cpus = self.held_by(id).map(|cpus| cpus.to_string());
            }
            rows.push(row);
        }
        for task in now.pending.iter().take(MAX_QUEUED) {
            let info = jobs.get(*task);
            rows.push(start_row(info, *task, JobState::Queued));
        }
        for ended in &self.recent {
            // A job that was started again is among the live ones.
            if !is_live(now, TaskId(ended.job)) {
                rows.push(ended.clone());
            }
        }
        rows
    }

    /// Return the CPUs of a job in the kernel; `None` if it has none.
    fn held_by(&self, task: TaskId) -> Option<CpuSet> {
        let held = self
            .holders
            .iter()
            .filter(|(_, holder)| holder.task == task);
        let cpus: CpuSet = held.map(|(cpu, _)| cpu).collect();
        (!cpus.is_empty()).then_some(cpus)
    }

    /// Return the holder of each CPU in the kernel.
    fn held(&self, now: &RunNow<'_>) -> Vec<CpuNow> {
        let mut cpus = Vec::new();
        for cpu in &now.snapshot.machine.cpus {
            // Processes that a job left behind are no part of it.
            let holder = self.holders.of(cpu.id);
            let holder = holder.filter(|holder| is_live(now, holder.task));
            cpus.push(CpuNow {
                cpu: cpu.id.0,
                job: holder.map(|holder| holder.task.0),
                since_s: holder.map(|holder| holder.since.as_s()),
                shared: false,
                jobs: holder.is_some().into(),
            });
        }
        cpus
    }
}

fn is_live(now: &RunNow<'_>, task: TaskId) -> bool {
    now.tasks
        .binary_search_by_key(&task, |task| task.spec.id)
        .is_ok()
}

fn state_of(task: &WatchedTask<'_>, now: &RunNow<'_>) -> JobState {
    match task.doing {
        Doing::Runs(_) if now.is_paused => JobState::Waiting,
        Doing::Runs(_) => JobState::Running,
        Doing::Sleeps => JobState::Sleeping,
        Doing::Paused => JobState::Waiting,
        Doing::Queued => JobState::Queued,
        Doing::Ending => JobState::Ending,
    }
}

/// Return a row with the facts that a job has before the run.
fn start_row(info: Option<&JobInfo>, task: TaskId, state: JobState) -> JobNow {
    let command = info.and_then(|info| info.command.as_deref());
    JobNow {
        job: task.0,
        name: match info {
            Some(info) => info.name.clone(),
            None => format!("job {task}"),
        },
        command: command.map(|command| clip(command, MAX_COMMAND)),
        state,
        cpus: None,
        reason: None,
        end: JobEnd::default(),
        progress_from: None,
        share_from: None,
        figures: Figures::default(),
    }
}

fn live_row(
    mut row: JobNow,
    task: &WatchedTask<'_>,
    now: &RunNow<'_>,
    tracker: &ProgressTracker,
) -> JobNow {
    if let Doing::Runs(cpus) = task.doing
        && !now.is_paused
    {
        let node = node_of(&now.snapshot.machine.nodes, cpus);
        row.cpus = Some(node.map_or_else(|| cpus.to_string(), |node| node.name.clone()));
    }
    row.reason = reason(task, now);
    let Some(started) = task.started else {
        return row;
    };
    row.end = JobEnd {
        runs: Some(task.runs),
        start_s: Some(started.as_s()),
        ran_s: Some(task.ran.as_s()),
        cpu_s: task.cpu_time.value().map(Nanos::as_s),
        ..JobEnd::default()
    };
    let figures = &mut row.figures;
    if row.state == JobState::Waiting
        && let (Some(view), Some(latest)) = (task.view, task.latest)
    {
        figures.push("waiting_since_s", Ok(view.waiting_since.as_s()));
        figures.push("latest_s", Ok(latest.as_s()));
    }
    if let Some(view) = task.view {
        add_estimates(&mut row, task, view, now, tracker);
    }
    row
}

/// Why a job waits.
fn reason(task: &WatchedTask<'_>, now: &RunNow<'_>) -> Option<ReasonNow> {
    if now.is_paused {
        return Some(ReasonNow {
            why: "paused".to_owned(),
            text: "The run is paused.".to_owned(),
        });
    }
    let reason = task.reason?;
    Some(ReasonNow {
        why: wait_code(&reason).to_owned(),
        text: wait_text(&reason),
    })
}

/// Add rates, progress, slowdown and forecast to the row of a live job.
fn add_estimates(
    row: &mut JobNow,
    task: &WatchedTask<'_>,
    view: &TaskView,
    now: &RunNow<'_>,
    tracker: &ProgressTracker,
) {
    let figures = &mut row.figures;
    let estimates = &view.estimates;
    figures.push_reading("ipc", estimates.ipc);
    figures.push_reading(
        "read_bytes_per_s",
        estimates.mm_reads.map(Rate::bytes_per_s),
    );
    figures.push_reading(
        "written_bytes_per_s",
        estimates.mm_writes.map(Rate::bytes_per_s),
    );
    let (progress, from) = progress(task);
    row.progress_from = progress.is_value().then(|| from.to_owned());
    figures.push_reading("progress_quanta", progress);
    let done_s = progress.map(|quanta| quanta * now.config.quantum.as_s());
    // CPU time does not show how much others slow a job down.
    let slowdown = if from == "cpu-time" {
        Err("nothing shows how fast it would be alone")
    } else {
        slowdown((now.at - view.arrived).as_s(), done_s)
    };
    figures.push("slowdown", slowdown);
    let (share, left_s, from) = forecast(view, task, done_s.value(), now.at, tracker);
    row.share_from = from.filter(|_| share.is_ok()).map(str::to_owned);
    figures.push("share", share);
    figures.push("left_s", left_s);
}

fn slowdown(age_s: f64, needed_s: Reading<f64>) -> Result<f64, &'static str> {
    match (needed_s.value(), needed_s.absence()) {
        (Some(needed_s), _) if needed_s >= MIN_PROGRESS_S => Ok(age_s / needed_s),
        (Some(_), _) => Err(TOO_EARLY),
        (None, Some(why)) => Err(why.text()),
        (None, None) => Err("not measured"),
    }
}

/// Return the best measure of a job's progress in quanta, and its basis.
fn progress(task: &WatchedTask<'_>) -> (Reading<f64>, &'static str) {
    match (task.basis, task.learnt) {
        (ProgressBasis::Trace, _) => (task.earned, "trace"),
        (_, learnt @ Reading::Value(_)) => (learnt, "learnt"),
        (ProgressBasis::CpuTime, _) => (task.earned, "cpu-time"),
        (ProgressBasis::Ipc | ProgressBasis::Provisional, _) => (task.earned, "ipc"),
    }
}

/// Share of a job's work that is done, the seconds left at its present speed, and their source.
type Outlook = (
    Result<f64, &'static str>,
    Result<f64, &'static str>,
    Option<&'static str>,
);

/// Return the outlook by what is known best: the time alone, a steady visible pace, earlier runs, an uneven pace.
pub(super) fn forecast(
    view: &TaskView,
    task: &WatchedTask<'_>,
    done_s: Option<f64>,
    at: Nanos,
    tracker: &ProgressTracker,
) -> Outlook {
    let (share, left_s, from) = forecast_by_time(view, task, done_s, at, tracker);
    let pace = tracker.pace_of(task.spec.id);
    let Some(pace) = pace.filter(|_| from != Some("solo")) else {
        return (share, left_s, from);
    };
    let seen = pace.share(task.ran);
    let seen_left_s = pace.left_s(task.ran);
    let is_unknown = share.is_err() && (from.is_none() || seen.is_ok());
    let seen_from = seen.map(|(_, from)| from).ok();
    let seen = seen.map(|(share, _)| share);
    if seen_left_s.is_ok() || is_unknown {
        (seen, seen_left_s, seen_from)
    } else if matches!(seen_from, Some("descriptor" | "output")) {
        // The job says it itself.
        (seen, left_s, seen_from)
    } else {
        (share, left_s, from)
    }
}

fn forecast_by_time(
    view: &TaskView,
    task: &WatchedTask<'_>,
    done_s: Option<f64>,
    at: Nanos,
    tracker: &ProgressTracker,
) -> Outlook {
    let solo_s = tracker.solo_s_of(task.spec.id);
    let (whole, done, from) = match (solo_s, done_s, view.expected) {
        (Some(whole), Some(done), _) => (whole, done, "solo"),
        (_, _, Some(expected)) if expected.is_telling() => {
            let from = expected.from.into();
            (expected.time.as_s(), task.ran.as_s(), from)
        }
        _ => {
            let unknown = "neither its solo time nor earlier runs of it are known";
            return (Err(unknown), Err(unknown), None);
        }
    };
    if done >= whole {
        let why = if from == "program" {
            "it has run for longer than other commands with its program"
        } else {
            OVERDUE
        };
        return (Err(why), Err(why), Some(from));
    }
    let passed = task.started.map_or(0.0, |started| (at - started).as_s());
    let left = if done < MIN_PROGRESS_S {
        Err(TOO_EARLY)
    } else {
        Ok((whole - done) * passed / done)
    };
    (Ok(done / whole), left, Some(from))
}

fn ended_row(now: Nanos, result: &TaskResult, info: Option<&JobInfo>) -> JobNow {
    let mut row = start_row(info, result.spec.id, JobState::Ended);
    let end = JobEnd::of(result);
    let arrival_s = result.spec.arrives.as_s();
    row.end = JobEnd {
        start_s: end.start_s.map(|start_s| start_s.max(arrival_s)),
        end_s: end.end_s.or(Some(now.as_s())),
        ..end
    };
    row
}

/// Return the job that each CPU was given to.
fn cpus(now: &RunNow<'_>) -> Vec<CpuNow> {
    let mut cpus = BTreeMap::new();
    for cpu in &now.snapshot.machine.cpus {
        cpus.insert(cpu.id, CpuNow::idle(cpu.id.0));
    }
    let tasks = if now.is_paused { &[] } else { now.tasks };
    for task in tasks {
        let Some(running) = task.view.and_then(|view| view.running.as_ref()) else {
            continue;
        };
        let own = running.placement.cpus();
        let allowed = match task.doing {
            Doing::Runs(cpus) => cpus,
            _ => own,
        };
        for cpu in allowed.iter() {
            if let Some(cpu) = cpus.get_mut(&cpu) {
                cpu.jobs += 1;
            }
        }
        for cpu in own.iter() {
            let Some(cpu) = cpus.get_mut(&cpu) else {
                continue;
            };
            match running.placement {
                Placement::Shared { .. } => cpu.shared = true,
                Placement::Exclusive { .. } => {
                    cpu.job = Some(task.spec.id.0);
                    cpu.since_s = Some(running.since.as_s());
                }
            }
        }
    }
    cpus.into_values().collect()
}
