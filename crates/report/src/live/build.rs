//! The state of a run, from what its loop shows.

use super::{
    CpuNow, JobNow, JobState, LeftOut, LiveTotals, OwnUse, Reason, RunFacts, STATUS_SCHEMA, Status,
};
use crate::figures::{Absences, Figures};
use crate::holders::Holders;
use crate::info::{JobInfo, RunInfo};
use crate::progress::{OVERDUE, ProgressTracker};
use crate::reason::{wait_code, wait_text};
use crate::record::{Energy, exit_status};
use crate::source::EnergySource;
use crate::text::clip;
use cosched_core::{
    CpuId, CpuSet, Doing, Exit, ExpectedFrom, Nanos, Placement, ProgressBasis, Rate, Reading,
    RunNow, Switch, TaskId, TaskResult, TaskView, WatchedTask,
};
use std::collections::{HashMap, VecDeque};

/// Jobs of each kind that a state has at most.
const MOST_LIVE: usize = 4_000;
const MOST_QUEUED: usize = 1_000;
const MOST_ENDED: usize = 500;
/// Characters of a command that a state has at most.
const MOST_OF_COMMAND: usize = 300;
/// Bytes that one access to memory moves.
const LINE_BYTES: f64 = 64.0;
/// With less progress than this, in seconds, it does not tell how much a job is slowed down.
const LEAST_PROGRESS_S: f64 = 0.05;

/// A job that has ended.
pub(crate) struct Ended {
    task: TaskId,
    exit: Option<Exit>,
    arrived: Nanos,
    started: Option<Nanos>,
    finished: Nanos,
    ran: Nanos,
    cpu_time: Reading<Nanos>,
    max_rss: Reading<u64>,
    runs: u32,
}

/// What is kept for those who look.
pub(crate) struct Live {
    pub(crate) facts: RunFacts,
    energy_source: EnergySource,
    earlier: usize,
    /// The jobs that ended last, the last first.
    recent: VecDeque<Ended>,
    /// Who has which CPU, if a scheduler in the kernel tells.
    holders: Holders,
}

impl Live {
    pub(crate) fn new(info: &RunInfo) -> Live {
        Live {
            facts: RunFacts::default(),
            energy_source: info.energy_source,
            earlier: info.earlier.len(),
            recent: VecDeque::new(),
            holders: Holders::default(),
        }
    }

    /// CPUs went to other jobs.
    pub(crate) fn switched(&mut self, switches: &[Switch]) {
        for switch in switches {
            self.holders.switched(switch.at, switch.what);
        }
    }

    /// A job has ended.
    pub(crate) fn ended(&mut self, now: Nanos, result: &TaskResult) {
        self.recent.truncate(MOST_ENDED - 1);
        self.recent.push_front(Ended {
            task: result.spec.id,
            exit: result.exit.clone(),
            arrived: result.spec.arrives,
            started: result.started,
            finished: result.finished.unwrap_or(now),
            ran: result.ran,
            cpu_time: result.cpu_time,
            max_rss: result.resources.max_rss,
            runs: result.runs,
        });
    }

    /// The state. CPU time of the run itself is for the caller to add.
    pub(crate) fn status(
        &self,
        now: &RunNow<'_>,
        jobs: &[JobInfo],
        tracker: &ProgressTracker,
    ) -> Status {
        let progress = tracker.progress();
        let mut totals = LiveTotals {
            jobs: progress.total,
            done: progress.done,
            failed: progress.failed,
            queued: now.pending.len(),
            earlier: self.earlier,
            ..LiveTotals::default()
        };
        for task in now.tasks {
            *match state_of(task) {
                JobState::Running => &mut totals.running,
                JobState::Waiting => &mut totals.waiting,
                JobState::Sleeping => &mut totals.sleeping,
                JobState::Ending => &mut totals.ending,
                JobState::Queued | JobState::Ended => &mut totals.queued,
            } += 1;
        }
        let LiveTotals {
            jobs: all,
            done,
            running,
            waiting,
            sleeping,
            ending,
            queued,
            ..
        } = totals;
        totals.dropped = all.saturating_sub(done + running + waiting + sleeping + ending + queued);
        totals.left_s = progress.left.map(Nanos::as_s);
        totals.left_from = totals.left_s.map(|_| tracker.left_from());
        let too_early = if progress.is_overdue {
            OVERDUE
        } else {
            "too little has been done to tell"
        };
        totals
            .absent
            .note_option("left_s", totals.left_s, too_early);
        totals
            .absent
            .note_option("left_from", totals.left_from, too_early);
        let mut absent = Absences::default();
        let joules = absent.note("joules", now.energy_j);
        let source = if joules.is_some() {
            self.energy_source
        } else {
            EnergySource::Absent
        };
        let row = |task: TaskId, state| start_row(jobs.get(task.0 as usize), task, state);
        let mut seen: HashMap<TaskId, CpuSet> = HashMap::new();
        self.holders
            .iter()
            .for_each(|(cpu, holder)| _ = seen.entry(holder.task).or_default().insert(cpu));
        let live = now.tasks.iter().take(MOST_LIVE).map(|task| {
            let mut row = live_row(row(task.now.spec.id, state_of(task)), task, now, tracker);
            if self.holders.has_seen(task.now.spec.id) {
                row.cpus = seen.get(&task.now.spec.id).map(ToString::to_string);
            }
            row
        });
        let queued = now
            .pending
            .iter()
            .take(MOST_QUEUED)
            .map(|&task| row(task, JobState::Queued));
        // A job that has been started again is among the live ones.
        let again = |ended: &&Ended| {
            now.tasks
                .binary_search_by_key(&ended.task, |task| task.now.spec.id)
                .is_err()
        };
        let ended = self
            .recent
            .iter()
            .filter(again)
            .map(|ended| ended_row(row(ended.task, JobState::Ended), ended));
        Status {
            schema: STATUS_SCHEMA.to_owned(),
            cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
            run: self.facts.clone(),
            elapsed_s: now.at.as_s(),
            energy: Energy {
                joules,
                source,
                absent,
            },
            own: OwnUse {
                figures: Figures::default(),
                decisions: now.decisions,
            },
            cpus: if self.holders.told().is_some() {
                self.held(now)
            } else {
                cpus(now)
            },
            jobs: live.chain(queued).chain(ended).collect(),
            left_out: LeftOut {
                live: now.tasks.len().saturating_sub(MOST_LIVE),
                queued: now.pending.len().saturating_sub(MOST_QUEUED),
                ended: progress.done.saturating_sub(self.recent.len()),
            },
            totals,
        }
    }

    /// Who has each CPU, as the kernel sees it.
    fn held(&self, now: &RunNow<'_>) -> Vec<CpuNow> {
        // What a job left behind is not it any more.
        let is_live = |task: TaskId| {
            now.tasks
                .binary_search_by_key(&task, |task| task.now.spec.id)
                .is_ok()
        };
        let cpu = |cpu: CpuId| {
            let holder = self.holders.of(cpu).filter(|holder| is_live(holder.task));
            CpuNow {
                cpu: cpu.0,
                job: holder.map(|holder| holder.task.0),
                since_s: holder.map(|holder| holder.since.as_s()),
                shared: false,
                jobs: holder.is_some().into(),
            }
        };
        now.snapshot
            .machine
            .cpus
            .iter()
            .map(|one| cpu(one.id))
            .collect()
    }
}

fn state_of(task: &WatchedTask<'_>) -> JobState {
    match task.now.doing {
        Doing::Runs(_) => JobState::Running,
        Doing::Sleeps => JobState::Sleeping,
        Doing::Paused => JobState::Waiting,
        Doing::Queued => JobState::Queued,
        Doing::Ending => JobState::Ending,
    }
}

/// A row with what is known of a job before the run.
fn start_row(info: Option<&JobInfo>, task: TaskId, state: JobState) -> JobNow {
    JobNow {
        job: task.0,
        name: info.map_or_else(|| format!("job {task}"), |info| info.name.clone()),
        command: info
            .and_then(|info| info.command.as_deref())
            .map(|command| clip(command, MOST_OF_COMMAND)),
        state,
        cpus: None,
        reason: None,
        exit: None,
        exit_text: None,
        runs: None,
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
    if let Doing::Runs(cpus) = task.now.doing {
        row.cpus = Some(cpus.to_string());
    }
    row.reason = task.reason.map(|reason| Reason {
        why: wait_code(&reason).to_owned(),
        text: wait_text(&reason),
    });
    row.runs = Some(task.runs).filter(|&runs| runs > 1);
    let Some(started) = task.now.started else {
        return row;
    };
    let figures = &mut row.figures;
    figures.push("started_s", Ok(started.as_s()));
    figures.push("ran_s", Ok(task.ran.as_s()));
    figures.push_reading("cpu_s", task.now.cpu_time.map(Nanos::as_s));
    if row.state == JobState::Waiting
        && let (Some(view), Some(latest)) = (task.view, task.latest)
    {
        figures.push("waiting_since_s", Ok(view.waiting_since.as_s()));
        figures.push("latest_s", Ok(latest.as_s()));
    }
    let Some(view) = task.view else { return row };
    figures.push_reading("ipc", view.estimates.ipc);
    let bytes = |rate: Reading<Rate>| rate.map(|rate| rate.per_us() * 1e6 * LINE_BYTES);
    figures.push_reading("read_bytes_per_s", bytes(view.estimates.mm_reads));
    figures.push_reading("written_bytes_per_s", bytes(view.estimates.mm_writes));
    let quantum_s = now.config.quantum.as_s();
    let (progress, from) = progress(task);
    row.progress_from = progress.is_value().then(|| from.to_owned());
    figures.push_reading("progress_quanta", progress);
    let done_s = progress.value().map(|quanta| quanta * quantum_s);
    let age_s = (now.at - view.arrived).as_s();
    // CPU time does not tell a job that sleeps, or waits for its files, from one that is held up. Then only the time without
    // a place is known to be lost.
    let needed = if from == "cpu-time" {
        progress.map(|_| task.ran.as_s())
    } else {
        progress.map(|done| done * quantum_s)
    };
    match (needed.value(), needed.absence()) {
        (Some(needed_s), _) if needed_s >= LEAST_PROGRESS_S => {
            figures.push("slowdown", Ok(age_s / needed_s))
        }
        (Some(_), _) => figures.push("slowdown", Err("too little has been done to tell")),
        (None, why) => figures.push(
            "slowdown",
            Err(why.map_or("not measured", |why| why.text())),
        ),
    }
    let (share, left_s, from) = forecast(view, task, done_s, now, tracker);
    row.share_from = from.filter(|_| share.is_ok()).map(str::to_owned);
    figures.push("share", share);
    figures.push("left_s", left_s);
    row
}

/// The best measure of what a job has done, in quanta of solo execution, and what it rests on.
fn progress(task: &WatchedTask<'_>) -> (Reading<f64>, &'static str) {
    match (task.basis, task.learnt) {
        (ProgressBasis::Trace, _) => (task.earned, "trace"),
        (_, learnt @ Reading::Value(_)) => (learnt, "learnt"),
        (ProgressBasis::CpuTime, _) => (task.earned, "cpu-time"),
        (ProgressBasis::Ipc | ProgressBasis::Provisional, _) => (task.earned, "ipc"),
    }
}

type Told = Result<f64, &'static str>;

/// Which share of its work a job has done, and how many seconds it takes for the rest if it goes on as so far; and whose
/// times that rests on. A job that has not ended is never wholly done.
fn forecast(
    view: &TaskView,
    task: &WatchedTask<'_>,
    done_s: Option<f64>,
    now: &RunNow<'_>,
    tracker: &ProgressTracker,
) -> (Told, Told, Option<&'static str>) {
    let alone = tracker
        .solo_s_of(task.now.spec.id)
        .zip(done_s)
        .map(|(whole, done)| (whole, done, "solo"));
    let expected = view.expected.map(|expected| {
        (
            expected.time.as_s(),
            task.ran.as_s(),
            from_code(expected.from),
        )
    });
    let Some((whole, done, from)) = alone.or(expected) else {
        let unknown = "neither its time alone nor earlier runs of it are known";
        return (Err(unknown), Err(unknown), None);
    };
    if done >= whole {
        return (Err(OVERDUE), Err(OVERDUE), Some(from));
    }
    let passed = task
        .now
        .started
        .map_or(0.0, |started| (now.at - started).as_s());
    let left = if done < LEAST_PROGRESS_S {
        Err("too little has been done to tell")
    } else {
        Ok((whole - done) * passed / done)
    };
    (Ok(done / whole), left, Some(from))
}

fn from_code(from: ExpectedFrom) -> &'static str {
    match from {
        ExpectedFrom::Same => "same",
        ExpectedFrom::Changed => "changed",
        ExpectedFrom::Program => "program",
    }
}

fn ended_row(mut row: JobNow, ended: &Ended) -> JobNow {
    row.exit = ended.exit.as_ref().and_then(exit_status);
    row.exit_text = ended.exit.as_ref().map(ToString::to_string);
    row.runs = Some(ended.runs).filter(|&runs| runs > 1);
    let figures = &mut row.figures;
    figures.push("finished_s", Ok(ended.finished.as_s()));
    let Some(started) = ended.started else {
        return row;
    };
    figures.push("started_s", Ok(started.max(ended.arrived).as_s()));
    figures.push("ran_s", Ok(ended.ran.as_s()));
    figures.push_reading("cpu_s", ended.cpu_time.map(Nanos::as_s));
    figures.push_reading("max_rss_bytes", ended.max_rss.map(|bytes| bytes as f64));
    row
}

/// Who has each CPU, as it was decided.
fn cpus(now: &RunNow<'_>) -> Vec<CpuNow> {
    let mut all: Vec<CpuNow> = now
        .snapshot
        .machine
        .cpus
        .iter()
        .map(|cpu| CpuNow {
            cpu: cpu.id.0,
            job: None,
            since_s: None,
            shared: false,
            jobs: 0,
        })
        .collect();
    let places: HashMap<u32, usize> = all
        .iter()
        .enumerate()
        .map(|(ix, cpu)| (cpu.cpu, ix))
        .collect();
    for task in now.tasks {
        let Some(running) = task.view.and_then(|view| view.running.as_ref()) else {
            continue;
        };
        let own = running.placement.cpus();
        let may = if let Doing::Runs(cpus) = task.now.doing {
            cpus
        } else {
            own
        };
        for cpu in may.iter().filter_map(|cpu| places.get(&cpu.0)) {
            all[*cpu].jobs += 1;
        }
        for cpu in own.iter().filter_map(|cpu| places.get(&cpu.0)) {
            let cpu = &mut all[*cpu];
            match running.placement {
                Placement::Shared { .. } => cpu.shared = true,
                Placement::Exclusive { .. } => {
                    (cpu.job, cpu.since_s) = (Some(task.now.spec.id.0), Some(running.since.as_s()));
                }
            }
        }
    }
    all
}
