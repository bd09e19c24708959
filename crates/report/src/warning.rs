//! The warnings of a run: each kind has a code for programs and a sentence for people.

use crate::reason::wait_text;
use crate::text::{count, seconds, visible};
use cosched_core::{
    AtOnceState, Exit, Importance, Nanos, RateAt, Shortfall, TaskId, Untried, WaitReason, Warning,
    signal_name,
};

/// A file that is written during a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RunFile {
    /// The series, which every run writes.
    Series,
    /// The events, written on request.
    Events,
    /// The job log, written on request.
    JobLog,
    /// The list of starts beside the job log.
    Runs,
}

impl RunFile {
    /// Its name in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            RunFile::Series => "the series",
            RunFile::Events => "the events file",
            RunFile::JobLog => "the job log",
            RunFile::Runs => "the list of starts beside the job log",
        }
    }
}

/// What happened to jobs of a killed run that still ran.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OrphansDone {
    /// This run waited for their end, and starts them again.
    Waited,
    /// They were killed.
    Killed,
    /// Nothing.
    Ignored,
}

impl OrphansDone {
    fn text(self) -> &'static str {
        match self {
            OrphansDone::Waited => {
                "this run waited for their end; how they ended is unknown, so they run again"
            }
            OrphansDone::Killed => "this run killed them; they run again",
            OrphansDone::Ignored => "they are left alone, so some jobs may run twice at once",
        }
    }
}

/// The codes of what the user asked for. A run shows it when it acts; the record tells it in `finished_by` and of the jobs,
/// and not among its warnings.
const WISHES: [&str; 5] = [
    "deadline-over",
    "draining",
    "ended-by-user",
    "halting",
    "interrupted",
];

/// Whether the code is of something that the user asked for.
pub(crate) fn is_wish(code: &str) -> bool {
    WISHES.contains(&code)
}

/// The code of [`RunWarning::Disturbed`].
pub(crate) const DISTURBED: &str = "disturbed";
/// The code of [`RunWarning::JobsAtOnce`].
pub(crate) const JOBS_AT_ONCE: &str = "jobs-at-once";
/// The code of [`RunWarning::SoloDisturbed`].
pub(crate) const SOLO_DISTURBED: &str = "solo-disturbed";

/// A warning of a run. Its text is the sentence for the user; its code is the variant's name in kebab case.
#[derive(Clone, Debug, PartialEq, thiserror::Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case")]
#[expect(missing_docs, reason = "the sentence says what the variant means")]
pub enum RunWarning {
    #[error(
        "the policy's decision could not be carried out ({}); round-robin decided instead",
        visible(why)
    )]
    PolicyFault { why: String },
    #[error("{job} timed out and is ended")]
    TimedOut { job: String },
    #[error("{job} is ended by the user")]
    EndedByUser { job: String },
    #[error("{job} {}", not_restarted_text(exit))]
    NotRestarted { job: String, exit: Option<Exit> },
    #[error("the halt rule is met: no more jobs are started")]
    Halting,
    #[error("the deadline has passed: {STOPPING}")]
    DeadlineOver,
    #[error("SIGUSR2: no more jobs are started; running jobs go on")]
    Draining,
    #[error("jobs are left for --resume, {job} first: {}", wait_text(reason))]
    LeftOut { job: String, reason: WaitReason },
    #[error(
        "this process is bound to {}, and {variable} is {told}; the run uses {}",
        count(*bound as u64, "CPU"),
        bound.min(told)
    )]
    CpusContradict {
        bound: usize,
        variable: String,
        told: usize,
    },
    #[error("{}", interrupted_text(*signal, *again))]
    Interrupted { signal: i32, again: bool },
    #[error("{job} waits for memory: too little is free for one more job (--mem-keep)")]
    WaitsForMemory { job: String },
    #[error("{job} is started though memory is short: no other job runs")]
    ShortOfMemory { job: String },
    #[error("no more plans, decisions are applied one by one: {why}")]
    PlansGivenUp { why: String },
    #[error("without {}", shortfall_text(.0))]
    Without(Shortfall),
    #[error("{} is written no further: {error}", file.text())]
    FileStopped { file: RunFile, error: String },
    #[error("--progress-to gets no further lines: {why}")]
    ProgressLost { why: String },
    #[error("{} can't be written now ({error}); cosched retries", file.text())]
    FileLags { file: RunFile, error: String },
    #[error("the job log {file} {}", moved_text(*removed))]
    JobLogMoved { file: String, removed: bool },
    #[error("job {job} failed alone, so it has no solo time and no slowdown")]
    SoloFailed { job: String },
    #[error("the --solo file has no solo time for job {job}{}", simulated_text(*simulated))]
    SoloMissing { job: String, simulated: bool },
    #[error("do not trust the solo times: {why}")]
    SoloDisturbed { why: String },
    #[error(
        "the --solo file is from machine {}; this run is on {here}",
        visible(there)
    )]
    SoloOtherMachine { there: String, here: String },
    #[error(
        "job {job} retired {retired} instructions, but {alone} alone: its solo trace is of other work"
    )]
    SoloTraceOdd {
        job: String,
        retired: u64,
        alone: u64,
    },
    #[error("an earlier run was killed; thawed or removed {}, continued {}{}", count(*groups as u64, "group"), processes_text(*continued), unbound_text(*unbound))]
    Mended {
        groups: usize,
        continued: usize,
        unbound: usize,
    },
    #[error("by request {} from now on", jobs_text(*jobs))]
    JobLimit { jobs: u32 },
    #[error("{}", at_once_text(state))]
    JobsAtOnce { state: AtOnceState },
    #[error("{}", paused_text(*is_paused))]
    Paused { is_paused: bool },
    #[error("job {job} stopped itself and waits for SIGCONT (kill -CONT)")]
    StoppedItself { job: String },
    #[error("job {job} had stopped itself for too long; cosched continued it")]
    Continued { job: String },
    #[error("job {job} goes on: its first process has ended, {} still run", processes_text(*processes))]
    Lingers { job: String, processes: usize },
    #[error("the guardian was gone and was replaced")]
    GuardianReplaced,
    #[error("no guardian ({why}): if cosched is killed, use `cosched thaw`")]
    NoGuardian { why: String },
    #[error(
        "no list of this run's processes ({why}): `cosched thaw` can find them only by groups and variables"
    )]
    NoList { why: String },
    #[error("job {job} has no cgroup ({why}): it is frozen by signals")]
    #[strum(serialize = "no-cgroup")]
    NoGroup { job: String, why: String },
    #[error("job {job} has chosen a scheduling policy for {}: plans do not cover them", processes_text(*processes as usize))]
    LeftScheduler { job: String, processes: u32 },
    #[error("by --event, software events stand in for counters of the hardware ({}): do not trust IPC, bytes and slowdowns", events.join(", "))]
    StandIn { events: Vec<String> },
    #[error("--event: {why}")]
    NotCounted { why: String },
    #[error("{} not counted{}: {why}; {remedy}", events.join(", "), since_text(since.as_deref()))]
    EventsLost {
        /// The names of the events.
        events: Vec<String>,
        /// The job in which they were missed first; `None` if they could not be counted at the start.
        since: Option<String>,
        why: String,
        remedy: &'static str,
    },
    #[error(
        "the scheduler in the kernel can't read counters ({why}): cosched reads them at decisions"
    )]
    CountedOutside { why: String },
    #[error("job {job} stays with the ordinary scheduler: {why}")]
    NotTaken { job: String, why: String },
    #[error("job {job} could not be frozen or thawed: {why}")]
    FreezeFailed { job: String, why: String },
    #[error("job {job} is not counted: {why}")]
    CountersFailed { job: String, why: String },
    #[error("the history of this run is not kept: {}", visible(why))]
    NoHistory { why: String },
    #[error("{}: {}", history_busy_text(*lost), visible(why))]
    HistoryBusy { lost: bool, why: String },
    #[error("the jobs' output can't be shown ({why}): read it in the log folder")]
    NoConsole { why: String },
    #[error(
        "`cosched status` and `cosched top` can't show this run: {}",
        visible(why)
    )]
    NoStatus { why: String },
    #[error("--metrics: {}", visible(why))]
    MetricsLost { why: String },
    #[error(
        "--jobs {asked}: under {policy} each job has a CPU of its own, so that {cpus} run at once; if jobs mostly sleep, use --policy linux"
    )]
    FewerAtOnce {
        policy: String,
        asked: usize,
        cpus: usize,
    },
    #[error(
        "the jobs' weights have no meaning under {policy}; use even, fair, perf-fair or round-robin, or nice for the kernel"
    )]
    WeightsUnused { policy: String },
    #[error("{}: this run uses {}", others_text(others), cpus_text(cpus))]
    CpusShared {
        cpus: String,
        others: Vec<(i32, String)>,
    },
    #[error(
        "{}, and this run uses {} too; divide the CPUs with --cpus",
        others_text(others),
        cpus_text(cpus)
    )]
    CpusCollide {
        cpus: String,
        others: Vec<(i32, String)>,
    },
    #[error(
        "other runs have ended or use less: this run uses {} now",
        cpus_text(cpus)
    )]
    CpusGained { cpus: String },
    #[error(
        "others want CPUs or memory: this run uses fewer CPUs, or pauses, until they want less (--polite)"
    )]
    StepsBack,
    #[error("{}", offline_text(cpus))]
    CpusOffline {
        /// A list; empty if all have come back.
        cpus: String,
    },
    #[error("others are quiet: this run uses all of its CPUs again (--polite)")]
    Returns,
    #[error("this run had stepped back for {} (--polite)", seconds(time.as_s()))]
    SteppedBack { time: Nanos },
    #[error("do not trust times and metrics: {why}")]
    Disturbed { why: String },
    #[error(
        "{job} has {threads} threads that want to run, and {}: let its program start {cpus}, by an option (as in -t {cpus}) or a variable (as in OMP_NUM_THREADS), or give each job more CPUs (--cpus-per-job)",
        count((*cpus).into(), "CPU")
    )]
    FewCpus {
        job: String,
        threads: u32,
        cpus: u32,
    },
    #[error("an earlier run was killed with {} still running: {}", count(*jobs as u64, "job"), done.text())]
    Orphans { jobs: usize, done: OrphansDone },
    #[error("an earlier run was killed; its record was written from its series: {}{}", visible(file), lost_text(*lost))]
    Rebuilt { file: String, lost: usize },
    #[error("the job emptied {file} by opening /dev/stdout or /dev/stderr; use `>&2` instead")]
    LogRewritten { file: String },
    #[error("--resume: all jobs run, since none of the {} that succeeded by the job log has the same text (GNU parallel quotes some values differently)", count(*succeeded, "command"))]
    NoneResumed { succeeded: u64 },
    #[error(
        "the jobs' output was not shown completely: {why}; all of it is in {}",
        visible(folder)
    )]
    OutputLost { why: String, folder: String },
    #[error("node {node} is not used: {}", visible(why))]
    NodeAbsent { node: String, why: String },
    #[error("node {node} is lost: {}; {} on other nodes", visible(why), restarted_text(*jobs))]
    NodeLost {
        node: String,
        why: String,
        jobs: usize,
    },
    #[error("no node is left: the run ends")]
    NoNodeLeft,
    #[error("{node}: {}", visible(text))]
    NodeSays { node: String, text: String },
    #[error("{what} has no effect on a run over nodes")]
    NotOverNodes { what: String },
    #[error("{warning} ({times} times)")]
    Repeated {
        warning: Box<RunWarning>,
        times: u64,
    },
}

impl RunWarning {
    /// A warning of the loop; `name` returns the name of a task's job.
    pub fn of_loop(warning: &Warning, name: impl Fn(TaskId) -> String) -> RunWarning {
        match warning {
            Warning::PolicyFault { why } => RunWarning::PolicyFault { why: why.clone() },
            Warning::TimedOut(task) => RunWarning::TimedOut { job: name(*task) },
            Warning::EndedByUser(task) => RunWarning::EndedByUser { job: name(*task) },
            Warning::NotRestarted(task, exit) => RunWarning::NotRestarted {
                job: name(*task),
                exit: exit.clone(),
            },
            Warning::Halting => RunWarning::Halting,
            Warning::DeadlineOver => RunWarning::DeadlineOver,
            Warning::Draining => RunWarning::Draining,
            Warning::LeftOut(task, reason) => RunWarning::LeftOut {
                job: name(*task),
                reason: *reason,
            },
            &Warning::Interrupted { signal, again } => RunWarning::Interrupted { signal, again },
            &Warning::AtOnce(state) => RunWarning::JobsAtOnce { state },
            Warning::WaitsForMemory(task) => RunWarning::WaitsForMemory { job: name(*task) },
            Warning::ShortOfMemory(task) => RunWarning::ShortOfMemory { job: name(*task) },
            &Warning::FewCpus {
                task,
                threads,
                cpus,
            } => RunWarning::FewCpus {
                job: name(task),
                threads,
                cpus,
            },
            Warning::PlansGivenUp { why } => RunWarning::PlansGivenUp { why: why.clone() },
        }
    }

    /// The warning, if it came `times` times.
    pub fn repeated(self, times: u64) -> RunWarning {
        if times < 2 {
            return self;
        }
        RunWarning::Repeated {
            warning: Box::new(self),
            times,
        }
    }

    /// The warning as a sentence.
    pub fn text(&self) -> String {
        self.to_string()
    }

    /// The code of this kind of warning, as in the run record and the series.
    pub fn code(&self) -> &'static str {
        match self {
            RunWarning::Repeated { warning, .. } => warning.code(),
            warning => warning.into(),
        }
    }

    /// Whether a file or an output that the user asked for is incomplete.
    pub fn is_lost_file(&self) -> bool {
        match self {
            RunWarning::Repeated { warning, .. } => warning.is_lost_file(),
            RunWarning::FileStopped { file, .. } => *file != RunFile::Series,
            RunWarning::OutputLost { .. } | RunWarning::JobLogMoved { removed: true, .. } => true,
            _ => false,
        }
    }
}

fn offline_text(cpus: &str) -> String {
    match cpus {
        "" => "all CPUs of this run are online again".to_owned(),
        cpus => format!("CPUs of this run are offline ({cpus}): its jobs go on on the others"),
    }
}

fn since_text(job: Option<&str>) -> String {
    job.map(|job| format!(" for some time of job {job}"))
        .unwrap_or_default()
}

/// A missing capability in words: its name, what the policy does without it, and why it is missing.
pub fn shortfall_text(shortfall: &Shortfall) -> String {
    let capability = shortfall.capability.text();
    match shortfall.importance {
        Importance::Required => format!("{capability} ({})", shortfall.why),
        Importance::Wanted(effect) => format!("{capability}: {effect} ({})", shortfall.why),
    }
}

fn restarted_text(jobs: usize) -> String {
    match jobs {
        1 => "1 job starts again".to_owned(),
        jobs => format!("{jobs} jobs start again"),
    }
}

fn not_restarted_text(exit: &Option<Exit>) -> String {
    match exit {
        Some(exit) => format!("is not started again: it ended with {exit}"),
        None => "can't be started again here".to_owned(),
    }
}

/// The signal for a process that writes to a pipe without a reader.
const SIGPIPE: i32 = 13;
/// The signals of Ctrl-C and Ctrl-backslash: a second one kills the jobs.
const FROM_KEYBOARD: [i32; 2] = [2, 3];

/// What an interrupt and the deadline do.
const STOPPING: &str = "no more jobs are started, and running jobs are asked to end";

fn interrupted_text(signal: i32, again: bool) -> String {
    let by = match signal_name(signal) {
        Some(name) => name.to_owned(),
        None => format!("signal {signal}"),
    };
    if again {
        format!("{by} again: every job is killed")
    } else if signal == SIGPIPE {
        format!("nobody reads the output any more: {STOPPING}")
    } else if FROM_KEYBOARD.contains(&signal) {
        format!("{by}: {STOPPING}; a second one kills them")
    } else {
        format!("{by}: {STOPPING}")
    }
}

fn jobs_text(jobs: u32) -> String {
    if jobs == 0 {
        "there is no limit on live jobs".to_owned()
    } else {
        format!("at most {}", count(jobs.into(), "live job"))
    }
}

/// What is known of the best number of jobs at once, in words.
fn at_once_text(state: &AtOnceState) -> String {
    match state {
        AtOnceState::Found {
            other,
            full,
            is_full,
        } => {
            let so = if *is_full {
                "all CPUs are used".to_owned()
            } else {
                format!("{} run", other.jobs)
            };
            format!("{}, so {so}", compared_text(other, *full))
        }
        AtOnceState::Untried(why) => format!("--jobs auto changed nothing: {}", untried_text(*why)),
    }
}

fn compared_text(other: &RateAt, full: u32) -> String {
    let sooner = (100.0 * (1.0 - 1.0 / other.rate)).round();
    let end = if sooner > 0.0 {
        format!("end {sooner} % sooner than {full}")
    } else if sooner < 0.0 {
        format!("end {} % later than {full}", -sooner)
    } else {
        format!("end as soon as {full}")
    };
    let less = other.cpu.map(|cpu| (100.0 * (1.0 - cpu)).round());
    let less = match less.filter(|less| *less > 0.0) {
        Some(less) => format!(" and use {less} % less CPU"),
        None => String::new(),
    };
    format!("{} at once {end}{less}", other.jobs)
}

fn untried_text(why: Untried) -> String {
    match why {
        Untried::Few(jobs) => format!(
            "a trial needs about {} like these",
            count(jobs.into(), "job")
        ),
        Untried::Unlike => "not all jobs have one known program".to_owned(),
        Untried::Wide => "a job needs several CPUs".to_owned(),
        Untried::Domains => "the machine has several memory domains".to_owned(),
        Untried::Nodes => "the jobs run on nodes".to_owned(),
    }
}

fn paused_text(is_paused: bool) -> &'static str {
    if is_paused {
        "by request all jobs are paused; `cosched set pause=off` continues them"
    } else {
        "by request the jobs continue"
    }
}

fn simulated_text(simulated: bool) -> &'static str {
    if simulated {
        "; its simulated solo time is used"
    } else {
        ""
    }
}

fn moved_text(removed: bool) -> &'static str {
    if removed {
        "was removed or cut off, and its lines are lost"
    } else {
        "was moved; --resume needs it under this name"
    }
}

/// Threads that an attached session had bound.
fn unbound_text(threads: usize) -> String {
    match threads {
        0 => String::new(),
        1 => ", gave 1 thread its CPUs back".to_owned(),
        more => format!(", gave {more} threads their CPUs back"),
    }
}

fn processes_text(n: usize) -> String {
    if n == 1 {
        "1 process".to_owned()
    } else {
        format!("{n} processes")
    }
}

fn history_busy_text(lost: bool) -> &'static str {
    if lost {
        "the history lacks the last jobs of this run"
    } else {
        "this run has no history of its jobs"
    }
}

fn lost_text(jobs: usize) -> String {
    match jobs {
        0 => String::new(),
        jobs => format!("; the end of {} is unknown", count(jobs as u64, "job")),
    }
}

/// Other runs and their CPUs in words.
fn others_text(others: &[(i32, String)]) -> String {
    let runs: Vec<String> = others
        .iter()
        .map(|(pid, cpus)| format!("process {pid}, {}", cpus_text(cpus)))
        .collect();
    let are_live = match others {
        [_] => "another run is live",
        _ => "other runs are live",
    };
    format!("{are_live} ({})", runs.join("; "))
}

fn cpus_text(cpus: &str) -> String {
    let is_one = cpus.bytes().all(|byte| byte.is_ascii_digit());
    format!("{} {cpus}", if is_one { "CPU" } else { "CPUs" })
}

#[cfg(test)]
#[path = "warning_tests.rs"]
pub(crate) mod tests;
