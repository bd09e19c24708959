//! What the user is warned of in a run: each kind with a code that programs can go by, and a sentence for people.

use crate::text::count;
use cosched_core::{Importance, Shortfall, TaskId, Warning, signal_name};

/// A file that is written while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunFile {
    /// The series, which every run writes.
    Series,
    /// The events, written when they are asked for.
    Events,
    /// The job log, written when it is asked for.
    JobLog,
}

impl RunFile {
    /// Its name in a sentence.
    pub fn text(self) -> &'static str {
        match self {
            RunFile::Series => "the series",
            RunFile::Events => "the events file",
            RunFile::JobLog => "the job log",
        }
    }
}

/// A warning of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunWarning {
    /// The loop warned of something.
    Loop {
        /// What it was.
        warning: Warning,
        /// The sentence, which names jobs where the loop only knows numbers.
        text: String,
    },
    /// More decisions of the policy could not be carried out than the first, which was told by the loop.
    MorePolicyFaults(u64),
    /// The policy works without a capability that it wants.
    Without(Shortfall),
    /// A file could not be written to its end.
    FileStopped {
        /// Which.
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
        /// Its simulated solo time is taken instead.
        simulated: bool,
    },
    /// A job's solo trace can't be of the work that it did.
    SoloTraceOdd {
        /// The job's name.
        job: String,
        /// Instructions that it retired in this run.
        retired: u64,
        /// Instructions of its solo trace.
        alone: u64,
    },
    /// An earlier run was killed with its guardian, and what it had left frozen was set free.
    Mended {
        /// Groups that were thawed and removed.
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
    /// A job's own process has ended, and processes that it started run on.
    Lingers {
        /// The job's name.
        job: String,
        /// How many there are.
        processes: usize,
    },
    /// The guardian was killed, and there is a new one.
    GuardianReplaced,
    /// There is no guardian.
    NoGuardian {
        /// Why there is none.
        why: String,
    },
    /// A job could not be put into a cgroup; it is frozen by signals.
    NoGroup {
        /// Its name.
        job: String,
        /// Why.
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
}

impl RunWarning {
    /// A warning of the loop; `name` tells the names of jobs.
    pub fn of_loop(warning: &Warning, name: impl Fn(TaskId) -> String) -> RunWarning {
        RunWarning::Loop { warning: warning.clone(), text: loop_text(warning, name) }
    }

    /// The code of this kind of warning, as in the run record and the series.
    pub fn code(&self) -> &'static str {
        match self {
            RunWarning::Loop { warning, .. } => match warning {
                Warning::PolicyFault(_) => "policy-fault",
                Warning::TimedOut(_) => "timed-out",
                Warning::NotRestarted(..) => "not-restarted",
                Warning::Halting => "halting",
                Warning::Interrupted { .. } => "interrupted",
                Warning::PlansGivenUp { .. } => "plans-given-up",
            },
            RunWarning::MorePolicyFaults(_) => "more-policy-faults",
            RunWarning::Without(_) => "without",
            RunWarning::FileStopped { .. } => "file-stopped",
            RunWarning::SoloFailed { .. } => "solo-failed",
            RunWarning::SoloMissing { .. } => "solo-missing",
            RunWarning::SoloTraceOdd { .. } => "solo-trace-odd",
            RunWarning::Mended { .. } => "mended",
            RunWarning::StoppedItself { .. } => "stopped-itself",
            RunWarning::Continued { .. } => "continued",
            RunWarning::Lingers { .. } => "lingers",
            RunWarning::GuardianReplaced => "guardian-replaced",
            RunWarning::NoGuardian { .. } => "no-guardian",
            RunWarning::NoGroup { .. } => "no-cgroup",
            RunWarning::FreezeFailed { .. } => "freeze-failed",
            RunWarning::CountersFailed { .. } => "counters-failed",
        }
    }

    /// The warning as a sentence.
    pub fn text(&self) -> String {
        match self {
            RunWarning::Loop { text, .. } => text.clone(),
            RunWarning::MorePolicyFaults(more) => {
                format!("{more} more of the policy's decisions could not be carried out")
            }
            RunWarning::Without(shortfall) => format!("without {}", shortfall_text(shortfall)),
            RunWarning::FileStopped { file, error } => format!("{} is written no further: {error}", file.text()),
            RunWarning::SoloFailed { job } => format!("job {job} failed alone: no solo time, no slowdown for it"),
            RunWarning::SoloMissing { job, simulated } => {
                let instead = if *simulated { "; its own is simulated" } else { "" };
                format!("the --solo file has no solo time for job {job}{instead}")
            }
            RunWarning::SoloTraceOdd { job, retired, alone } => {
                format!("job {job} retired {retired} instructions, alone {alone}: its solo trace is of other work")
            }
            RunWarning::Mended { groups, continued } => {
                let groups = count(*groups as u64, "group");
                let processes = if *continued == 1 { "1 process".to_owned() } else { format!("{continued} processes") };
                format!(
                    "an earlier run was killed with its guardian; thawed and removed: {groups}; continued: {processes}"
                )
            }
            RunWarning::StoppedItself { job } => {
                format!("job {job} stopped itself; its CPUs go to others until it is continued (kill -CONT)")
            }
            RunWarning::Continued { job } => format!("job {job} had stopped itself for too long and was continued"),
            RunWarning::Lingers { job, processes } => format!(
                "job {job}: its own process has ended; {processes} that it started still run, and the job with them"
            ),
            RunWarning::GuardianReplaced => "the guardian was killed; another has taken its place".to_owned(),
            RunWarning::NoGuardian { why } => {
                format!("there is no guardian ({why}): if cosched is killed now, use `cosched thaw`")
            }
            RunWarning::NoGroup { job, why } => format!("job {job} has no cgroup ({why}): it is frozen by signals"),
            RunWarning::FreezeFailed { job, why } => format!("job {job} could not be frozen or thawed: {why}"),
            RunWarning::CountersFailed { job, why } => format!("job {job} is not counted: {why}"),
        }
    }

    /// Whether it says that a file that was asked for is not complete.
    pub fn is_lost_file(&self) -> bool {
        matches!(self, RunWarning::FileStopped { file: RunFile::Events | RunFile::JobLog, .. })
    }
}

/// What a policy does without: the capability, what that changes, and why it is missing.
pub fn shortfall_text(shortfall: &Shortfall) -> String {
    let capability = shortfall.capability.text();
    match shortfall.importance {
        Importance::Required => format!("{capability} ({})", shortfall.why),
        Importance::Wanted(effect) => format!("{capability}: {effect} ({})", shortfall.why),
    }
}

fn loop_text(warning: &Warning, name: impl Fn(TaskId) -> String) -> String {
    match warning {
        Warning::PolicyFault(fault) => {
            format!("the policy's decision could not be carried out ({fault}); round-robin decided instead")
        }
        Warning::TimedOut(task) => format!("{} ran out of its time and is ended", name(*task)),
        Warning::NotRestarted(task, Some(exit)) => {
            format!("{} is not started again: its next run ended with {exit}", name(*task))
        }
        Warning::NotRestarted(task, None) => format!("{} can't be started again here", name(*task)),
        Warning::Halting => "the halt rule is met: no more jobs are started".to_owned(),
        Warning::Interrupted { signal, again } => {
            let by = signal_name(*signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
            if *again {
                format!("{by} again: every job is killed")
            } else {
                format!("{by}: no more jobs are started, and those that run are asked to end; once more kills them")
            }
        }
        Warning::PlansGivenUp { why } => {
            format!("no more plans are installed, decisions are applied one by one: {why}")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::warnings;
    use std::collections::BTreeSet;

    #[test]
    fn warnings_are_sentences() {
        let text: String =
            warnings().iter().map(|warning| format!("{}: {}\n", warning.code(), warning.text())).collect();
        insta::assert_snapshot!(text);
    }

    #[test]
    fn what_was_asked_for_and_is_not_complete() {
        let lost: BTreeSet<String> =
            warnings().iter().filter(|warning| warning.is_lost_file()).map(|warning| warning.text()).collect();
        let expected =
            ["the events file", "the job log"].map(|file| format!("{file} is written no further: disk full"));
        assert_eq!(lost, expected.into());
    }
}
