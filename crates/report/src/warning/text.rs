//! Warnings as sentences.

use super::{OrphansDone, RunWarning};
use crate::text::{count, grouped, visible};
use cosched_core::{Importance, Shortfall, TaskId, Warning, signal_name};

impl RunWarning {
    /// The warning as a sentence.
    pub fn text(&self) -> String {
        match self {
            RunWarning::Loop { text, .. } => text.clone(),
            RunWarning::MorePolicyFaults(more) => {
                format!("{more} more of the policy's decisions could not be carried out")
            }
            RunWarning::Without(shortfall) => format!("without {}", shortfall_text(shortfall)),
            RunWarning::FileStopped { file, error } => format!("{} is written no further: {error}", file.text()),
            RunWarning::JobLogMoved { file, removed: true } => {
                format!("the job log {file} was removed or cut off while the run went on, and what it held is lost")
            }
            RunWarning::JobLogMoved { file, removed: false } => format!(
                "the job log {file} was moved while the run went on; what was written is in the file that was moved, and \
                 --resume needs that under this name"
            ),
            RunWarning::FileLags { file, error } => {
                format!("{} can't be written now ({error}); cosched keeps what is missing and tries again", file.text())
            }
            RunWarning::SoloFailed { job } => {
                format!("job {job} failed when it ran alone, so it has no solo time and no slowdown")
            }
            RunWarning::SoloMissing { job, simulated } => {
                let instead = if *simulated { "; its simulated solo time is used" } else { "" };
                format!("the --solo file has no solo time for job {job}{instead}")
            }
            RunWarning::SoloFileDisturbed => {
                "solo times are not to be trusted: by the --solo file others used the CPUs, or heat slowed them down, \
                 while they were measured"
                    .to_owned()
            }
            RunWarning::SoloOtherMachine { there, here } => {
                format!(
                    "the solo times of the --solo file are of another machine: {}; this run is on {here}",
                    visible(there)
                )
            }
            RunWarning::SoloTraceOdd { job, retired, alone } => {
                format!("job {job} retired {retired} instructions, but {alone} alone: its solo trace is of other work")
            }
            RunWarning::Mended { groups, continued } => {
                let groups = count(*groups as u64, "group");
                let processes = if *continued == 1 { "1 process".to_owned() } else { format!("{continued} processes") };
                format!("an earlier run was killed; thawed or removed: {groups}; continued: {processes}")
            }
            RunWarning::StoppedItself { job } => {
                format!(
                    "job {job} stopped itself, and stands still until it is continued (kill -CONT); policies that share CPUs by quantum give \
                     its CPUs to others meanwhile"
                )
            }
            RunWarning::Continued { job } => format!("job {job} had stopped itself for too long and was continued"),
            RunWarning::Lingers { job, processes } => {
                let rest = match processes {
                    1 => "a process that it started still runs".to_owned(),
                    more => format!("{} processes that it started still run", grouped(*more as u64)),
                };
                format!("job {job}: its own process has ended, but {rest}, so the job goes on")
            }
            RunWarning::GuardianReplaced => "the guardian was gone; another has taken its place".to_owned(),
            RunWarning::NoGuardian { why } => {
                format!("there is no guardian ({why}): if cosched is killed now, use `cosched thaw`")
            }
            RunWarning::NoList { why } => format!(
                "there is no file with the list of this run's processes ({why}): if cosched and its guardian are killed at \
                 once, `cosched thaw` finds them by their groups and marks alone"
            ),
            RunWarning::NoGroup { job, why } => format!("job {job} has no cgroup ({why}): it is frozen by signals"),
            RunWarning::LeftScheduler { job, processes } => {
                let (what, have) = if *processes == 1 { ("process", "has") } else { ("processes", "have") };
                format!("{processes} {what} of job {job} {have} chosen a scheduling policy: no plan holds there")
            }
            RunWarning::StandIn { events } => format!(
                "events of the kernel itself stand in for counters of the hardware, as --event says ({}): figures that are made of \
                 them, as instructions per cycle, bytes and slowdowns, are not what their names say",
                events.join(", ")
            ),
            RunWarning::NotCounted { why } => format!("--event: {why}"),
            RunWarning::CountedOutside { why, plans } => {
                let then = if *plans { ", and efs decides once a quantum, by plans" } else { "" };
                format!("counters can't be read in the kernel ({why}): they are read for each job, at decisions{then}")
            }
            RunWarning::NotTaken { job, why } => {
                format!("job {job} could not be given to the scheduler in the kernel ({why}): the ordinary one has it")
            }
            RunWarning::FreezeFailed { job, why } => format!("job {job} could not be frozen or thawed: {why}"),
            RunWarning::CountersFailed { job, why } => format!("job {job} is not counted: {why}"),
            RunWarning::NoHistory { why } => {
                format!("this run keeps nothing of its jobs for later runs: {}", visible(why))
            }
            RunWarning::HistoryBusy { lost: false, why } => {
                format!("this run does without what earlier runs know of its jobs: {}", visible(why))
            }
            RunWarning::HistoryBusy { lost: true, why } => {
                format!(
                    "what this run had not written down of its jobs yet is not kept for later runs: {}",
                    visible(why)
                )
            }
            RunWarning::NoConsole { why } => {
                format!("no process could be started to show the jobs' output ({why}): it is only in the log folder")
            }
            RunWarning::NoWindow { why } => {
                format!(
                    "`cosched status` and `cosched top` can't look at this run, and --metrics serves nothing ({}); `kill -USR1` asks it what runs",
                    visible(why)
                )
            }
            RunWarning::MetricsOpen { address } => {
                format!(
                    "--metrics {address}: whoever can reach this address can read the metrics; a port alone serves this machine only"
                )
            }
            RunWarning::FewerAtOnce { policy, asked, cpus } => format!(
                "--jobs {asked}: under {policy} each job has a CPU of its own, so that {cpus} run at once; for jobs that mostly \
                 wait or sleep let the kernel share the CPUs, with --policy linux"
            ),
            RunWarning::CpusShared { cpus, others } => {
                format!("{}: this run uses CPUs {cpus}; --cpus chooses others", runs_text(others))
            }
            RunWarning::CpusCollide { cpus, others } => format!(
                "{}, and this run uses CPUs {cpus} as well: they slow each other down; share the CPUs out with --cpus, or \
                 take all without this warning with --cpus all",
                runs_text(others)
            ),
            RunWarning::Disturbed { alone, cpus, foreign_cpus, steal_share } => {
                let foreign =
                    foreign_cpus.map(|n| format!("other programs took {n:.2} of {}", count(*cpus as u64, "CPU")));
                let stolen =
                    steal_share.map(|share| format!("the hypervisor took {:.1} % of the CPU time", share * 100.0));
                let why: Vec<String> = [foreign, stolen].into_iter().flatten().collect();
                format!("{} are not to be trusted: {} meanwhile", spoilt(*alone), why.join(", and "))
            }
            RunWarning::Throttled { alone, events, time, run } => {
                let long = time.map(|time| format!(", for {:.2} s in all,", time.as_s())).unwrap_or_default();
                format!(
                    "{} are not to be trusted: the processor slowed a core down {}{long} within {:.2} s, since it was too hot",
                    spoilt(*alone),
                    count(*events, "time"),
                    run.as_s()
                )
            }
            RunWarning::Orphans { jobs, done } => {
                let jobs = count(*jobs as u64, "job");
                let done = match done {
                    OrphansDone::Waited => "waited for; it is not known how they ended, so they run again",
                    OrphansDone::Adopted => "waited for and counted as done; it is not known how they ended",
                    OrphansDone::Killed => "ended; they run again",
                    OrphansDone::Ignored => "left alone: jobs that are started now may run a second time beside them",
                };
                format!("an earlier run was killed, and {jobs} of it still ran: {done}")
            }
            RunWarning::Rebuilt { file, lost } => {
                let lost = match lost {
                    0 => String::new(),
                    lost => format!("; {} ran then: how they ended is not known", count(*lost as u64, "job")),
                };
                format!("an earlier run was killed; its record was written from its series: {}{lost}", visible(file))
            }
            RunWarning::ResumedElsewhere { there } => format!(
                "--resume: jobs that succeeded in the folder {} count as done here; give each folder a job log of its own, or \
                 jobs a cwd, if they are others here",
                visible(there)
            ),
            RunWarning::LiteralWord { word } => format!(
                "the word `{word}` is an argument here, since several words are started without a shell; a line for the \
                 shell is one word, as in 'sort {{}} > {{}}.out'"
            ),
            RunWarning::LogRewritten { file } => format!(
                "the job itself has cut off {file}, and what it had written before is gone: to open /dev/stdout or \
                 /dev/stderr anew empties the file; `>&2` in place of `> /dev/stderr` does not"
            ),
            RunWarning::LogCut { file, bytes } => {
                format!("{} reached --log-limit: {bytes} bytes were cut off its end", visible(file))
            }
            RunWarning::InputUnread => {
                "standard input was not read, since the command has no {}; for a job with each line write {} \
                 where the line belongs, as in `ls | cosched run gzip {}`; jobs read from /dev/null"
                    .to_owned()
            }
            RunWarning::OutputLost { why, folder } => {
                format!("the jobs' output was not shown completely: {why}; all of it is in {}", visible(folder))
            }
            RunWarning::NoneResumed { succeeded } => format!(
                "--resume: none of the {} that succeeded by the job log is a job of this batch, so all jobs run; jobs are \
                 recognised by their commands as they are written (GNU parallel quotes some values in another way), and equal \
                 ones by their numbers",
                count(*succeeded, "command")
            ),
            RunWarning::Repeated { warning, times } => format!("{} ({times} times)", warning.text()),
        }
    }
}

/// The figures that something made doubtful.
fn spoilt(alone: bool) -> &'static str {
    if alone {
        "solo times"
    } else {
        "times and metrics"
    }
}

/// Other runs and their CPUs in words.
fn runs_text(others: &[(i32, String)]) -> String {
    const MOST: usize = 16;
    let one = |(pid, cpus): &(i32, String)| format!("process {pid} runs jobs on CPUs {cpus}");
    let more = match others.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named: Vec<String> = others.iter().take(MOST).map(one).collect();
    format!("another run goes on: {}{more}", named.join(", "))
}

/// A missing capability in words: its name, what the policy does without it, and why it is missing.
pub fn shortfall_text(shortfall: &Shortfall) -> String {
    let capability = shortfall.capability.text();
    match shortfall.importance {
        Importance::Required => format!("{capability} ({})", shortfall.why),
        Importance::Wanted(effect) => format!("{capability}: {effect} ({})", shortfall.why),
    }
}

/// The signal for a process that writes what nobody reads.
const SIGPIPE: i32 = 13;

/// What the loop warned of, with the tasks by their names.
pub(super) fn loop_text(warning: &Warning, name: impl Fn(TaskId) -> String) -> String {
    match warning {
        Warning::PolicyFault(fault) => {
            format!(
                "the policy's decision could not be carried out ({fault}); round-robin decided instead"
            )
        }
        Warning::EndedByUser(task) => format!("{} is ended by the user", name(*task)),
        Warning::TimedOut(task) => format!("{} ran out of its time and is ended", name(*task)),
        Warning::NotRestarted(task, Some(exit)) => {
            format!(
                "{} is not started again: its next run ended with {exit}",
                name(*task)
            )
        }
        Warning::NotRestarted(task, None) => format!("{} can't be started again here", name(*task)),
        Warning::Halting => "the halt rule is met: no more jobs are started".to_owned(),
        Warning::Interrupted { signal, again } => {
            let by = signal_name(*signal).map_or_else(|| format!("signal {signal}"), str::to_owned);
            if *again {
                format!("{by} again: every job is killed")
            } else if *signal == SIGPIPE {
                "nobody reads the output any more: no more jobs are started, and those that run are asked to end"
                    .to_owned()
            } else {
                format!(
                    "{by}: no more jobs are started, and those that run are asked to end; a second signal kills them"
                )
            }
        }
        Warning::WaitsForMemory(task) => format!(
            "{} waits for memory: it needed more in earlier runs than there is now; jobs that need less come first",
            name(*task)
        ),
        Warning::ShortOfMemory(task) => format!(
            "{} is started, though it needed more memory in earlier runs than there is now: nothing else runs that \
             could free some",
            name(*task)
        ),
        Warning::PlansGivenUp { why } => {
            format!("no more plans are installed, decisions are applied one by one: {why}")
        }
    }
}
