//! The warnings of a run: each kind has a code for programs and a sentence for people.

mod text;

use cosched_core::{Nanos, Shortfall, TaskId, Warning};
pub use text::shortfall_text;

/// A file that is written while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFile {
    /// The series, which every run writes.
    Series,
    /// The events, written when they are asked for.
    Events,
    /// The job log, written when it is asked for.
    JobLog,
    /// What stands beside the job log.
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

/// What was done with jobs of a killed run that still ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrphansDone {
    /// This run waited until they had ended.
    Waited,
    /// The same, and they are not started again.
    Adopted,
    /// They were ended.
    Killed,
    /// Nothing.
    Ignored,
}

/// The code of the warning that others used the CPUs during a run.
pub(crate) const DISTURBED: &str = "disturbed";
/// The code of the warning that the processor was throttled during a run.
pub(crate) const THROTTLED: &str = "throttled";
/// The code of the warning that others used the CPUs, or the processor was throttled, while solo times were measured.
pub(crate) const SOLO_DISTURBED: &str = "solo-disturbed";

/// A warning of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunWarning {
    /// The loop warned of something.
    Loop {
        /// The warning, with tasks by their numbers.
        warning: Warning,
        /// The warning as a sentence, with jobs by their names.
        text: String,
    },
    /// This many more decisions of the policy could not be carried out; the loop warned of the first.
    MorePolicyFaults(u64),
    /// The policy works without a capability that it wants.
    Without(Shortfall),
    /// A file could not be written to its end.
    FileStopped {
        /// The file that is incomplete.
        file: RunFile,
        /// What the system says.
        error: String,
    },
    /// The job log is no longer where the user wants it.
    JobLogMoved {
        /// Its name at the start of the run.
        file: String,
        /// It has no name any more, so that what was written is lost.
        removed: bool,
    },
    /// A file can't be written at present. What is missing is kept, and tried again.
    FileLags {
        /// The file that lags behind.
        file: RunFile,
        /// What the system says.
        error: String,
    },
    /// A job failed when it ran alone, so it has no solo time.
    SoloFailed {
        /// The job's name.
        job: String,
    },
    /// The file of solo times has none for a job.
    SoloMissing {
        /// The job's name.
        job: String,
        /// Whether its simulated solo time is used instead.
        simulated: bool,
    },
    /// The file of solo times says that others used the CPUs, or the processor was throttled, while they were measured.
    SoloFileDisturbed,
    /// The file of solo times was made on another machine.
    SoloOtherMachine {
        /// The machine that the file names.
        there: String,
        /// The machine of this run.
        here: String,
    },
    /// A job's solo trace can't belong to the work that it did.
    SoloTraceOdd {
        /// The job's name.
        job: String,
        /// Instructions that it retired in this run.
        retired: u64,
        /// Instructions of its solo trace.
        alone: u64,
    },
    /// An earlier run was killed together with its guardian, and its frozen jobs were freed.
    Mended {
        /// Groups that were thawed or removed.
        groups: usize,
        /// Processes that were continued.
        continued: usize,
    },
    /// A job stopped itself.
    StoppedItself {
        /// The job's name.
        job: String,
    },
    /// A job had stopped itself for too long and was continued.
    Continued {
        /// The job's name.
        job: String,
    },
    /// A job's own process has ended, but processes that it started still run.
    Lingers {
        /// The job's name.
        job: String,
        /// Number of processes that still run.
        processes: usize,
    },
    /// The guardian was gone (killed, or it could not be started before), and there is a new one.
    GuardianReplaced,
    /// There is no guardian.
    NoGuardian {
        /// Why the guardian could not be started.
        why: String,
    },
    /// There is no file with the list of the run's processes.
    NoList {
        /// Why there is none.
        why: String,
    },
    /// A job could not be put into a cgroup; it is frozen by signals.
    NoGroup {
        /// The job's name.
        job: String,
        /// Why the cgroup could not be used.
        why: String,
    },
    /// Processes of a job have chosen a scheduling policy of their own, and left the scheduler in the kernel.
    LeftScheduler {
        /// The job's name.
        job: String,
        /// How many.
        processes: u32,
    },
    /// Events of the kernel itself are counted in place of what the hardware would count.
    StandIn {
        /// Each counter with its event, in words.
        events: Vec<String>,
    },
    /// An event that the user gave can't be counted.
    NotCounted {
        /// The counter, with the event, and why.
        why: String,
    },
    /// The scheduler in the kernel can't read counters: they are read for each job, at decisions.
    CountedOutside {
        /// What the system says.
        why: String,
        /// EFS was to measure in the kernel. It decides by plans.
        plans: bool,
    },
    /// A job could not be given to the scheduler in the kernel.
    NotTaken {
        /// The job's name.
        job: String,
        /// What the system says.
        why: String,
    },
    /// A job could not be frozen or thawed.
    FreezeFailed {
        /// The job's name.
        job: String,
        /// What the system says.
        why: String,
    },
    /// A job's counters could not be attached.
    CountersFailed {
        /// The job's name.
        job: String,
        /// What the system says.
        why: String,
    },
    /// What is known of commands could not be read or kept.
    NoHistory {
        /// The file, what is wrong with it, and what to do.
        why: String,
    },
    /// Other runs used what is known of commands for so long that this one gave up.
    HistoryBusy {
        /// Whether it was to be written to; else it was to be read.
        lost: bool,
        /// The file, what is wrong with it, and what to do.
        why: String,
    },
    /// There is no process that shows messages and output, so they go straight to the terminal.
    NoConsole {
        /// What the system says.
        why: String,
    },
    /// Nobody can look at the run while it goes on.
    NoWindow {
        /// What the system says.
        why: String,
    },
    /// Metrics are served where other machines can reach them.
    MetricsOpen {
        /// The address.
        address: String,
    },
    /// More jobs may be live than the policy runs at once, and it lets none take turns.
    FewerAtOnce {
        /// The policy.
        policy: String,
        /// Jobs that may be live.
        asked: usize,
        /// CPUs, of which each job has its own.
        cpus: usize,
    },
    /// Other runs on this machine use some of the CPUs that this one could use, so it leaves those to them.
    CpusShared {
        /// The CPUs that this run uses.
        cpus: String,
        /// The other runs: their processes and their CPUs.
        others: Vec<(i32, String)>,
    },
    /// Other runs on this machine use some of the CPUs of this one.
    CpusCollide {
        /// The CPUs that this run uses.
        cpus: String,
        /// The other runs: their processes and their CPUs.
        others: Vec<(i32, String)>,
    },
    /// Others used the CPUs so much that the figures are not to be trusted.
    Disturbed {
        /// Whether the jobs ran alone, for their solo times.
        alone: bool,
        /// Number of CPUs that the run could use.
        cpus: usize,
        /// How many of them other programs took, on average; `None` if that was little.
        foreign_cpus: Option<f64>,
        /// Share of their time that the hypervisor gave to others, from 0 to 1; `None` if that was little.
        steal_share: Option<f64>,
    },
    /// The processor slowed a core down so much, since it was too hot, that the figures are not to be trusted.
    Throttled {
        /// Whether the jobs ran alone, for their solo times.
        alone: bool,
        /// Number of times that it began.
        events: u64,
        /// How long it lasted, if that is told.
        time: Option<Nanos>,
        /// The length of the run.
        run: Nanos,
    },
    /// Jobs of a killed run that still ran were dealt with before this run.
    Orphans {
        /// Number of jobs.
        jobs: usize,
        /// What was done with them.
        done: OrphansDone,
    },
    /// The record of a killed run was written from its series.
    Rebuilt {
        /// The record's file.
        file: String,
        /// Jobs that ran when it was killed.
        lost: usize,
    },
    /// A job has cut off its own output: what it had written to a log before is gone.
    LogRewritten {
        /// The log's name.
        file: String,
    },
    /// Jobs count as done that an earlier run did in another folder.
    ResumedElsewhere {
        /// That folder.
        there: String,
    },
    /// A word that means something to a shell is an argument of a command that no shell reads.
    LiteralWord {
        /// The word.
        word: String,
    },
    /// A job wrote more than `--log-limit` allows.
    LogCut {
        /// The file in the log folder.
        file: String,
        /// Bytes that were cut off.
        bytes: u64,
    },
    /// Somebody wrote to standard input, which the only command does not read.
    InputUnread,
    /// The jobs' output was not shown completely.
    OutputLost {
        /// Why, in words.
        why: String,
        /// The folder that has all of it.
        folder: String,
    },
    /// The job log names commands that succeeded, and none of them is a job of this batch.
    NoneResumed {
        /// How many commands succeeded.
        succeeded: u64,
    },
    /// A warning that came several times.
    Repeated {
        /// The warning.
        warning: Box<RunWarning>,
        /// How often it came.
        times: u64,
    },
}

impl RunWarning {
    /// A warning of the loop; `name` returns the name of a task's job.
    pub fn of_loop(warning: &Warning, name: impl Fn(TaskId) -> String) -> RunWarning {
        RunWarning::Loop {
            warning: warning.clone(),
            text: text::loop_text(warning, name),
        }
    }

    /// The warning, if it came `times` times.
    pub fn repeated(self, times: u64) -> RunWarning {
        if times > 1 {
            RunWarning::Repeated {
                warning: Box::new(self),
                times,
            }
        } else {
            self
        }
    }

    /// The code of this kind of warning, as in the run record and the series.
    pub fn code(&self) -> &'static str {
        match self {
            RunWarning::Loop { warning, .. } => match warning {
                Warning::PolicyFault(_) => "policy-fault",
                Warning::TimedOut(_) => "timed-out",
                Warning::EndedByUser(_) => "ended-by-user",
                Warning::NotRestarted(..) => "not-restarted",
                Warning::Halting => "halting",
                Warning::Interrupted { .. } => "interrupted",
                Warning::WaitsForMemory(_) => "waits-for-memory",
                Warning::ShortOfMemory(_) => "short-of-memory",
                Warning::PlansGivenUp { .. } => "plans-given-up",
            },
            RunWarning::MorePolicyFaults(_) => "more-policy-faults",
            RunWarning::Without(_) => "without",
            RunWarning::FileStopped { .. } => "file-stopped",
            RunWarning::JobLogMoved { .. } => "job-log-moved",
            RunWarning::FileLags { .. } => "file-lags",
            RunWarning::SoloFailed { .. } => "solo-failed",
            RunWarning::SoloMissing { .. } => "solo-missing",
            RunWarning::SoloFileDisturbed
            | RunWarning::Disturbed { alone: true, .. }
            | RunWarning::Throttled { alone: true, .. } => SOLO_DISTURBED,
            RunWarning::SoloOtherMachine { .. } => "solo-other-machine",
            RunWarning::SoloTraceOdd { .. } => "solo-trace-odd",
            RunWarning::Mended { .. } => "mended",
            RunWarning::StoppedItself { .. } => "stopped-itself",
            RunWarning::Continued { .. } => "continued",
            RunWarning::Lingers { .. } => "lingers",
            RunWarning::GuardianReplaced => "guardian-replaced",
            RunWarning::NoGuardian { .. } => "no-guardian",
            RunWarning::NoList { .. } => "no-list",
            RunWarning::NoGroup { .. } => "no-cgroup",
            RunWarning::LeftScheduler { .. } => "left-scheduler",
            RunWarning::StandIn { .. } => "stand-in",
            RunWarning::NotCounted { .. } => "not-counted",
            RunWarning::CountedOutside { .. } => "counted-outside",
            RunWarning::NotTaken { .. } => "not-taken",
            RunWarning::FreezeFailed { .. } => "freeze-failed",
            RunWarning::CountersFailed { .. } => "counters-failed",
            RunWarning::NoHistory { .. } => "no-history",
            RunWarning::HistoryBusy { .. } => "history-busy",
            RunWarning::NoConsole { .. } => "no-console",
            RunWarning::NoWindow { .. } => "no-window",
            RunWarning::MetricsOpen { .. } => "metrics-open",
            RunWarning::FewerAtOnce { .. } => "fewer-at-once",
            RunWarning::CpusShared { .. } => "cpus-shared",
            RunWarning::CpusCollide { .. } => "cpus-collide",
            RunWarning::Disturbed { alone: false, .. } => DISTURBED,
            RunWarning::Throttled { alone: false, .. } => THROTTLED,
            RunWarning::Orphans { .. } => "orphans",
            RunWarning::Rebuilt { .. } => "rebuilt",
            RunWarning::LogCut { .. } => "log-cut",
            RunWarning::LogRewritten { .. } => "log-rewritten",
            RunWarning::LiteralWord { .. } => "literal-word",
            RunWarning::ResumedElsewhere { .. } => "resumed-elsewhere",
            RunWarning::InputUnread => "input-unread",
            RunWarning::OutputLost { .. } => "output-lost",
            RunWarning::NoneResumed { .. } => "none-resumed",
            RunWarning::Repeated { warning, .. } => warning.code(),
        }
    }

    /// Whether the warning says that a file or an output that the user asked for is incomplete.
    pub fn is_lost_file(&self) -> bool {
        match self {
            RunWarning::Repeated { warning, .. } => warning.is_lost_file(),
            RunWarning::FileStopped { file, .. } => {
                matches!(file, RunFile::Events | RunFile::JobLog | RunFile::Runs)
            }
            RunWarning::OutputLost { .. } | RunWarning::JobLogMoved { removed: true, .. } => true,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::warnings;
    use std::collections::BTreeSet;

    #[test]
    fn warnings_are_sentences() {
        let text: String = warnings()
            .iter()
            .map(|warning| format!("{}: {}\n", warning.code(), warning.text()))
            .collect();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_was_asked_for_and_is_not_complete() {
        let lost: BTreeSet<String> = warnings()
            .iter()
            .filter(|warning| warning.is_lost_file())
            .map(|warning| warning.text())
            .collect();
        let files = ["the events file", "the job log"]
            .map(|file| format!("{file} is written no further: disk full"));
        let output =
            "the jobs' output was not shown completely: disk full; all of it is in /l".to_owned();
        let removed =
            "the job log jobs.log was removed or cut off while the run went on, and what it held is lost".to_owned();
        assert_eq!(lost, files.into_iter().chain([output, removed]).collect());
    }
}
