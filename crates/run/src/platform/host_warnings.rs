//! What users are told of this machine: of its counters, of other runs, and of what the backend notices.

use cosched_core::Absence;
use cosched_linux::counters::CounterSupport;
use cosched_linux::events::{EventOverride, MachineEvents};
use cosched_linux::{HostNotice, Neighbour};
use cosched_report::RunWarning;

/// Runs and their CPUs, as warnings name them.
pub(super) fn named(runs: &[Neighbour]) -> Vec<(i32, String)> {
    runs.iter()
        .map(|run| (run.pid, run.cpus.to_string()))
        .collect()
}

/// The warning that the kernel's own events stand in for those of the processor.
pub(super) fn stand_ins(events: &MachineEvents, counters: &CounterSupport) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    for entry in events.pmus.iter().filter(|entry| entry.is_of_kernel()) {
        let mut events = Vec::new();
        for (counter, event) in &entry.table.events {
            if counters.of(*counter).is_value() {
                events.push(format!("{counter}: {}", event.name()));
            }
        }
        if !events.is_empty() {
            warnings.push(RunWarning::StandIn { events });
        }
    }
    warnings
}

/// The warnings that events of `--event` can't be counted.
pub(super) fn not_counted(given: &[EventOverride], counters: &CounterSupport) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    for problem in &counters.problems {
        let is_given = given.iter().any(|own| own.counter == problem.counter);
        if is_given && !counters.of(problem.counter).is_value() {
            let why = problem.to_string();
            warnings.push(RunWarning::NotCounted { why });
        }
    }
    warnings
}

/// The warnings that events get no counter, or count nothing, on a machine that has counters.
pub(super) fn lost_at_start(counters: &CounterSupport) -> Vec<RunWarning> {
    let mut warnings = Vec::new();
    for why in [Absence::NoCounterFree, Absence::CountsNothing] {
        let mut events = Vec::new();
        for (counter, state) in counters.events.iter() {
            if state.absence() == Some(why) {
                events.push(counter.name());
            }
        }
        if !events.is_empty() {
            warnings.push(events_lost(&events, None, why));
        }
    }
    warnings
}

fn events_lost(events: &[&str], since: Option<String>, why: Absence) -> RunWarning {
    let remedy = match why {
        Absence::NoCounterFree | Absence::CountedTooLittle => {
            "the NMI watchdog (`sysctl kernel.nmi_watchdog=0` frees its counter) or another session of perf holds the counters"
        }
        _ => "`cosched doctor` tries the events out",
    };
    RunWarning::EventsLost {
        events: events.iter().map(|&event| event.to_owned()).collect(),
        since,
        why: why.to_string(),
        remedy,
    }
}

/// The warning for a notice of the backend.
pub(super) fn warning(notice: HostNotice) -> RunWarning {
    match notice {
        HostNotice::Mended(mended) => RunWarning::Mended {
            groups: mended.groups.len(),
            continued: mended.continued.len(),
            unbound: mended.attached.threads.len(),
        },
        HostNotice::Share {
            cpus,
            has_grown: true,
            ..
        } => RunWarning::CpusGained {
            cpus: cpus.to_string(),
        },
        HostNotice::Share { cpus, others, .. } => RunWarning::CpusShared {
            cpus: cpus.to_string(),
            others: named(&others),
        },
        HostNotice::Offline(cpus) => RunWarning::CpusOffline {
            cpus: cpus.to_string(),
        },
        HostNotice::StepsBack => RunWarning::StepsBack,
        HostNotice::Returns => RunWarning::Returns,
        HostNotice::SteppedBack(time) => RunWarning::SteppedBack { time },
        HostNotice::JobLimit(jobs) => RunWarning::JobLimit { jobs },
        HostNotice::Paused(is_paused) => RunWarning::Paused { is_paused },
        HostNotice::StoppedItself { job } => RunWarning::StoppedItself { job },
        HostNotice::Continued { job } => RunWarning::Continued { job },
        HostNotice::Lingers { job, processes } => RunWarning::Lingers { job, processes },
        HostNotice::GuardianReplaced => RunWarning::GuardianReplaced,
        HostNotice::NoGuardian(why) => RunWarning::NoGuardian { why },
        HostNotice::NoList(why) => RunWarning::NoList { why },
        HostNotice::NoGroup { job, why } => RunWarning::NoGroup { job, why },
        HostNotice::FreezeFailed { job, why } => RunWarning::FreezeFailed { job, why },
        HostNotice::LeftScheduler { job, processes } => {
            RunWarning::LeftScheduler { job, processes }
        }
        HostNotice::NotTaken { job, why } => RunWarning::NotTaken { job, why },
        HostNotice::NotCounted { events, job, why } => events_lost(&events, Some(job), why),
        HostNotice::CountersFailed { job, why } => RunWarning::CountersFailed { job, why },
    }
}
