//! Examples of all warnings, and the tests of their sentences.

use super::*;
use cosched_core::{Absence, Capability, Counter, InvalidDecision};
use std::collections::BTreeSet;

/// One or more of each kind of warning.
pub(crate) fn warnings() -> Vec<RunWarning> {
    let job = || "mcf-1".to_owned();
    let why = || "disk full".to_owned();
    let from_loop = [
        Warning::PolicyFault {
            why: InvalidDecision::UnknownTask(TaskId(7)).to_string(),
        },
        Warning::TimedOut(TaskId(1)),
        Warning::EndedByUser(TaskId(1)),
        Warning::NotRestarted(TaskId(1), Some(Exit::Code(3))),
        Warning::NotRestarted(TaskId(1), None),
        Warning::Halting,
        Warning::DeadlineOver,
        Warning::Draining,
        Warning::LeftOut(
            TaskId(1),
            WaitReason::NoTime {
                expected: Nanos::from_ms(90_000),
                left: Nanos::from_ms(20_000),
            },
        ),
        Warning::Interrupted {
            signal: 2,
            again: false,
        },
        Warning::Interrupted {
            signal: 15,
            again: true,
        },
        Warning::Interrupted {
            signal: 13,
            again: false,
        },
        Warning::WaitsForMemory(TaskId(2)),
        Warning::ShortOfMemory(TaskId(2)),
        Warning::PlansGivenUp {
            why: "a watchdog removed it".to_owned(),
        },
        Warning::FewCpus {
            task: TaskId(2),
            threads: 8,
            cpus: 1,
        },
    ];
    let without = |importance| {
        RunWarning::Without(Shortfall {
            capability: Capability::Counter(Counter::MmReads),
            why: Absence::NoCounters,
            importance,
        })
    };
    let mut warnings: Vec<RunWarning> = from_loop
        .iter()
        .map(|warning| RunWarning::of_loop(warning, |task| format!("job{}", task.0)))
        .collect();
    warnings.extend([
        without(Importance::Wanted("it goes by CPU time alone")),
        without(Importance::Required),
        RunWarning::ProgressLost { why: why() },
        RunWarning::NodeAbsent {
            node: "node7".to_owned(),
            why: why(),
        },
        RunWarning::NodeLost {
            node: "node7".to_owned(),
            why: why(),
            jobs: 2,
        },
        RunWarning::NoNodeLeft,
        RunWarning::NodeSays {
            node: "node7".to_owned(),
            text: "disk full".to_owned(),
        },
        RunWarning::NotOverNodes {
            what: "--jobserver".to_owned(),
        },
        RunWarning::FileStopped {
            file: RunFile::Series,
            error: why(),
        },
        RunWarning::FileStopped {
            file: RunFile::Events,
            error: why(),
        },
        RunWarning::FileStopped {
            file: RunFile::JobLog,
            error: why(),
        },
        RunWarning::FileLags {
            file: RunFile::JobLog,
            error: why(),
        },
        RunWarning::CpusContradict {
            bound: 4,
            variable: "SLURM_CPUS_ON_NODE".to_owned(),
            told: 2,
        },
        RunWarning::SoloFailed { job: job() },
        RunWarning::SoloMissing {
            job: job(),
            simulated: false,
        },
        RunWarning::SoloMissing {
            job: job(),
            simulated: true,
        },
        RunWarning::SoloDisturbed {
            why: "the hypervisor took 5.2 % of the CPU time meanwhile".to_owned(),
        },
        RunWarning::SoloOtherMachine {
            there: "two cores".to_owned(),
            here: "four cores".to_owned(),
        },
        RunWarning::SoloTraceOdd {
            job: job(),
            retired: 3_000_000,
            alone: 2_000_000,
        },
        RunWarning::Mended {
            groups: 1,
            continued: 2,
            unbound: 0,
        },
        RunWarning::StoppedItself { job: job() },
        RunWarning::Continued { job: job() },
        RunWarning::Lingers {
            job: job(),
            processes: 2,
        },
        RunWarning::GuardianReplaced,
        RunWarning::NoGuardian {
            why: "no memory".to_owned(),
        },
        RunWarning::NoList {
            why: "/tmp/cosched-1000 belongs to user 1001".to_owned(),
        },
        RunWarning::NoGroup {
            job: job(),
            why: "no space left on device".to_owned(),
        },
        RunWarning::FreezeFailed {
            job: job(),
            why: "no such process".to_owned(),
        },
        RunWarning::LeftScheduler {
            job: job(),
            processes: 2,
        },
        RunWarning::StandIn {
            events: vec!["mm_reads: software/config=0x0002/".to_owned()],
        },
        RunWarning::NotCounted {
            why: "mm_reads (0x4844) on cpu: the processor has no such event".to_owned(),
        },
        RunWarning::EventsLost {
            events: vec!["cycles".to_owned(), "instructions".to_owned()],
            since: Some(job()),
            why: "no hardware counter was free for it".to_owned(),
            remedy: "`sysctl kernel.nmi_watchdog=0` frees a counter",
        },
        RunWarning::CountedOutside {
            why: "lines of memory can't be counted on each CPU".to_owned(),
        },
        RunWarning::NotTaken {
            job: job(),
            why: "operation not permitted".to_owned(),
        },
        RunWarning::CountersFailed {
            job: job(),
            why: "too many open files".to_owned(),
        },
        RunWarning::NoHistory {
            why: "/h/history.sqlite: it is full; make room".to_owned(),
        },
        RunWarning::HistoryBusy {
            lost: false,
            why: "/h/history.sqlite: other runs use it".to_owned(),
        },
        RunWarning::HistoryBusy {
            lost: true,
            why: "/h/history.sqlite: other runs use it".to_owned(),
        },
        RunWarning::NoConsole {
            why: "too many processes".to_owned(),
        },
        RunWarning::NoStatus {
            why: "/tmp/cosched-1000 belongs to user 1001".to_owned(),
        },
        RunWarning::MetricsLost {
            why: "cannot write metrics.prom: No space left on device".to_owned(),
        },
        RunWarning::FewerAtOnce {
            policy: "fifo".to_owned(),
            asked: 6,
            cpus: 2,
        },
        RunWarning::WeightsUnused {
            policy: "fifo".to_owned(),
        },
        RunWarning::JobLimit { jobs: 0 },
        RunWarning::JobLimit { jobs: 4 },
        at_once(1.03, Some(0.6), false),
        at_once(1.0, Some(0.6), false),
        at_once(0.75, None, true),
        untried(Untried::Few(400)),
        untried(Untried::Unlike),
        untried(Untried::Wide),
        untried(Untried::Domains),
        untried(Untried::Nodes),
        RunWarning::Paused { is_paused: true },
        RunWarning::Paused { is_paused: false },
        RunWarning::CpusShared {
            cpus: "2-3".to_owned(),
            others: vec![(41, "0-1".to_owned())],
        },
        RunWarning::CpusCollide {
            cpus: "0-3".to_owned(),
            others: (41..59).map(|pid| (pid, "0-1".to_owned())).collect(),
        },
        RunWarning::CpusGained {
            cpus: "0-3".to_owned(),
        },
        RunWarning::StepsBack,
        RunWarning::CpusOffline {
            cpus: "3".to_owned(),
        },
        RunWarning::Returns,
        RunWarning::SteppedBack {
            time: Nanos::from_ms(12_500),
        },
        RunWarning::Disturbed {
            why: "other programs took 0.83 of 2 CPUs meanwhile".to_owned(),
        },
        RunWarning::Orphans {
            jobs: 2,
            done: OrphansDone::Waited,
        },
        RunWarning::Orphans {
            jobs: 2,
            done: OrphansDone::Killed,
        },
        RunWarning::Orphans {
            jobs: 2,
            done: OrphansDone::Ignored,
        },
        RunWarning::Rebuilt {
            file: "L/earlier-1/run.json".to_owned(),
            lost: 1,
        },
        RunWarning::NoneResumed { succeeded: 2 },
        RunWarning::OutputLost {
            why: "disk full".to_owned(),
            folder: "/l".to_owned(),
        },
        RunWarning::LogRewritten {
            file: "mcf-1.err".to_owned(),
        },
        RunWarning::JobLogMoved {
            file: "jobs.log".to_owned(),
            removed: false,
        },
        RunWarning::JobLogMoved {
            file: "jobs.log".to_owned(),
            removed: true,
        },
    ]);
    warnings
}

fn at_once(rate: f64, cpu: Option<f64>, is_full: bool) -> RunWarning {
    let other = RateAt {
        jobs: 8,
        rate,
        cpu,
        ends: 40,
    };
    let state = AtOnceState::Found {
        other,
        full: 16,
        is_full,
    };
    RunWarning::JobsAtOnce { state }
}

fn untried(why: Untried) -> RunWarning {
    RunWarning::JobsAtOnce {
        state: AtOnceState::Untried(why),
    }
}

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
    let removed = "the job log jobs.log was removed or cut off, and its lines are lost".to_owned();
    assert_eq!(lost, files.into_iter().chain([output, removed]).collect());
}
