//! Builds the record from the results of a run.

use super::{
    EarlierJob, EnergyRecord, ExpectedOfJob, JobRecord, JobTotals, LeftOutRecord, MachineDetails,
    MissingCapability, OverheadRecord, PlansRecord, RECORD_SCHEMA, RunRecord, WarningRecord,
};
use crate::figures::{Absences, Figures};
use crate::info::{JobInfo, RunInfo, SoloTime};
use crate::machine_load::MachineLoad;
use crate::source::{BackendKind, EnergySource, SoloSource};
use crate::warning::{RunWarning, is_wish};
use cosched_core::metric::{METRICS, Metric, Needs, Outcome, Outcomes};
use cosched_core::{
    Absence, Capability, EndedBy, Histogram, JobEnd, LeftOut, Nanos, Occupation, PlanCounts,
    ProgressBasis, Reading, RunResult, TaskResult,
};
use std::time::SystemTime;

const NOT_GIVEN: &str = "not given";

/// The record of a run.
///
/// Solo times are those of `info`, else those of the tasks' own solo profiles.
pub fn record(result: &RunResult, info: &RunInfo) -> RunRecord {
    let mut absent = Absences::default();
    let no_start = no_start(info);
    let started_at = info.started_at.map(rfc3339);
    let (finished_by, signal) = finished_by(result.ended_by);
    let tasks = result.tasks.iter().zip(&info.jobs);
    let solos: Vec<Option<SoloTime>> = tasks.clone().map(|(task, info)| solo(task, info)).collect();
    let mut known = Vec::new();
    let mut estimated = Vec::new();
    for (task, solo) in result.tasks.iter().zip(&solos) {
        let time = solo.map(|solo| solo.time);
        known.push(time);
        estimated.push(time.or(estimated_solo(task, info.quantum)));
    }
    let outcomes = outcomes_of(result, &known);
    let estimated = outcomes_of(result, &estimated);
    let mut jobs = Vec::new();
    let mut room = NOT_STARTED;
    for (ix, (task, info)) in tasks.enumerate() {
        if never_started(task) && room == 0 {
            continue;
        }
        room -= usize::from(never_started(task));
        let outcome = &outcomes.tasks[ix];
        let estimated = &estimated.tasks[ix];
        jobs.push(job(task, info, solos[ix], outcome, estimated, no_start));
    }
    let metrics = METRICS.iter();
    let metrics = metrics.map(|metric| (metric.name, value_of(metric, &outcomes, result)));
    let plans = result.plans.map(plans);
    RunRecord {
        schema: RECORD_SCHEMA.to_owned(),
        cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: absent.note_option("run_id", info.run_id.clone(), no_start),
        policy: info.policy.clone(),
        backend: info.backend,
        machine: info.machine.name.clone(),
        machine_details: machine_details(info),
        seed: info.seed,
        started_at: absent.note_option("started_at", started_at, no_start),
        quantum_s: info.quantum.as_s(),
        setting: info.setting.clone(),
        finished_by: finished_by.to_owned(),
        signal: absent.note_option("signal", signal, "no signal ended the run"),
        counters: absent.note_option("counters", info.counters.clone(), no_counters(info)),
        freezing: absent.note_option("freezing", info.freezing.clone(), no_freezing(info)),
        missing: missing(info),
        totals: totals(result, &info.earlier),
        jobs,
        left_out: left_out(&result.left_out),
        metrics_over: metrics_over(info).to_owned(),
        earlier_jobs: info.earlier.clone(),
        metrics: Figures::of(metrics),
        metrics_estimated: metrics_estimated(&outcomes, &estimated, &mut absent),
        energy: energy(result, info),
        overhead: overhead(result, info),
        predictions: result.predictions,
        machine_load: MachineLoad::of(info.machine_use),
        plans: absent.note_option("plans", plans, "decisions were carried out one by one"),
        warnings: warnings(&info.warnings),
        rebuilt: absent.note_option("rebuilt", None, "the run wrote its record itself"),
        absent,
    }
}

/// Why the run has no time of day.
fn no_start(info: &RunInfo) -> &'static str {
    match info.backend {
        BackendKind::Sim => Absence::Simulated.text(),
        BackendKind::Host | BackendKind::Nodes => NOT_GIVEN,
    }
}

/// A time of day as records and series have it.
pub(crate) fn rfc3339(at: SystemTime) -> String {
    humantime::format_rfc3339_millis(at).to_string()
}

fn metrics_over(info: &RunInfo) -> &'static str {
    if info.earlier.is_empty() {
        "all-jobs"
    } else {
        "this-run"
    }
}

fn finished_by(ended_by: EndedBy) -> (&'static str, Option<i32>) {
    match ended_by {
        EndedBy::Completion => ("completion", None),
        EndedBy::Halt => ("halt", None),
        EndedBy::Deadline => ("deadline", None),
        EndedBy::Drain => ("drain", None),
        EndedBy::NoTime => ("allocation", None),
        EndedBy::NoNode => ("nodes", None),
        EndedBy::Signal(signal) => ("signal", Some(signal)),
    }
}

fn no_counters(info: &RunInfo) -> &'static str {
    let mut missing = info.capabilities.missing.iter();
    let counter = missing.find(|(capability, _)| capability.is_counter());
    counter.map_or(NOT_GIVEN, |(_, why)| why.text())
}

fn no_freezing(info: &RunInfo) -> &'static str {
    let why = info.capabilities.why_missing(Capability::Freeze);
    why.map_or(NOT_GIVEN, Absence::text)
}

fn solo(task: &TaskResult, info: &JobInfo) -> Option<SoloTime> {
    if info.solo.is_some() {
        return info.solo;
    }
    Some(SoloTime {
        time: task.spec.solo.time?,
        source: SoloSource::Profile,
    })
}

/// The outcomes of the jobs with these solo times.
fn outcomes_of(result: &RunResult, solos: &[Option<Nanos>]) -> Outcomes {
    let mut tasks = Vec::new();
    for (task, solo) in result.tasks.iter().zip(solos) {
        let solo = Reading::from_option(*solo, Absence::NoSoloTime);
        tasks.push(Outcome::of(task, solo));
    }
    Outcomes {
        tasks,
        turnaround: result.turnaround,
        energy_j: result.energy_j,
    }
}

/// A solo time from progress that was measured by IPC. Other progress assumes that nothing slowed the task, so an estimate
/// from it would be meaningless.
fn estimated_solo(task: &TaskResult, quantum: Nanos) -> Option<Nanos> {
    match task.progress_basis {
        ProgressBasis::Ipc | ProgressBasis::Trace => {}
        ProgressBasis::CpuTime | ProgressBasis::Provisional => return None,
    }
    let progress = task.progress.value()?;
    (progress > 0.0).then(|| Nanos::from_s(progress * quantum.as_s()))
}

fn metrics_estimated(
    outcomes: &Outcomes,
    estimated: &Outcomes,
    absent: &mut Absences,
) -> Option<Figures<f64>> {
    let (value, why) = if outcomes.slowdowns().is_value() {
        (None, "the metrics themselves have values")
    } else if estimated.slowdowns().is_value() {
        let metrics = METRICS.iter();
        let of_slowdowns = metrics.filter(|metric| metric.needs == Needs::Slowdowns);
        let figures = of_slowdowns.map(|metric| (metric.name, metric.of(estimated)));
        (Some(Figures::of(figures)), "")
    } else {
        (
            None,
            "not every job that ended well has a solo time or a progress measured by IPC",
        )
    };
    absent.note_option("metrics_estimated", value, why)
}

/// A job's slowdown, or why there is none. The times of a job that failed do not show how much it was slowed down.
fn slowdown(outcome: &Outcome, failed: bool) -> Result<f64, &'static str> {
    match outcome.slowdown() {
        Reading::Value(slowdown) => Ok(slowdown),
        Reading::Absent(_) if failed => Err(Absence::Failed.text()),
        Reading::Absent(why) => Err(why.text()),
    }
}

fn job(
    task: &TaskResult,
    info: &JobInfo,
    solo: Option<SoloTime>,
    outcome: &Outcome,
    estimated: &Outcome,
    no_log: &str,
) -> JobRecord {
    let mut absent = Absences::default();
    let why = JobReasons::of(task, info, no_log);
    let end = JobEnd::of(task);
    for (name, why) in JobEnd::lacks(task) {
        absent.lack(name, why.text());
    }
    for (name, is_known, why) in [
        ("start_s", end.start_s.is_some(), why.not_started),
        ("waited_max_s", end.waited_max_s.is_some(), why.not_started),
        ("end_s", end.end_s.is_some(), why.not_ended),
        ("exit", end.exit.is_some(), why.no_exit),
        ("exit_text", task.exit.is_some(), why.not_ended),
    ] {
        if !is_known {
            absent.lack(name, why);
        }
    }
    let exit = task.exit.as_ref();
    let failed = exit.is_some_and(|exit| !exit.ok());
    let estimate = match (solo, slowdown(estimated, failed)) {
        (Some(_), _) => Err("the solo time is known"),
        (None, Err(_)) if !failed && exit.is_some() => Err("no progress measured by IPC"),
        (None, estimate) => estimate,
    };
    let has_log = task.started.is_some() || exit.is_some();
    let log = info.log.clone().filter(|_| has_log);
    let log_stderr = info.log_stderr.clone().filter(|_| has_log);
    JobRecord {
        name: info.name.clone(),
        program: absent.note_option("program", info.program.clone(), NOT_GIVEN),
        command: absent.note_option("command", info.command.clone(), NOT_GIVEN),
        given: info.given.clone(),
        cpus: task.spec.cpus,
        width_source: task.spec.width,
        weight: task.spec.given_weight(),
        node: info.host.clone(),
        expected: task.spec.expected.as_ref().map(ExpectedOfJob::of),
        arrival_s: task.spec.arrives.as_s(),
        end,
        lost: false,
        ipc: absent.note("ipc", task.counts.ipc()),
        solo_s: absent.note_option("solo_s", solo.map(|solo| solo.time.as_s()), why.no_solo),
        solo_source: absent.note_option("solo_source", solo.map(|solo| solo.source), why.no_solo),
        slowdown: absent.note_result("slowdown", slowdown(outcome, failed)),
        slowdown_estimate: absent.note_result("slowdown_estimate", estimate),
        log: absent.note_option("log", log, why.no_log),
        log_stderr: absent.note_option("log_stderr", log_stderr, why.no_log),
        absent,
    }
}

/// Why values of a job are absent.
struct JobReasons<'a> {
    not_started: &'static str,
    not_ended: &'static str,
    no_exit: &'static str,
    no_solo: &'static str,
    no_log: &'a str,
}

impl<'a> JobReasons<'a> {
    fn of(task: &TaskResult, info: &JobInfo, no_log: &'a str) -> JobReasons<'a> {
        let not_started = Absence::NotStarted.text();
        let not_ended = match task.started {
            Some(_) => Absence::NotEnded.text(),
            None => not_started,
        };
        let has_begun = task.started.is_some() || task.exit.is_some();
        JobReasons {
            not_started,
            not_ended,
            no_exit: match task.exit {
                Some(_) => "ended, but its exit status is not known",
                None => not_ended,
            },
            no_solo: if info.solo_failed {
                "its solo run failed"
            } else {
                Absence::NoSoloTime.text()
            },
            no_log: if has_begun || info.log.is_none() {
                no_log
            } else {
                not_started
            },
        }
    }
}

fn machine_details(info: &RunInfo) -> MachineDetails {
    let machine = &info.machine;
    let kinds = machine.core_types.iter();
    let mut absent = Absences::default();
    MachineDetails {
        cpus: machine.cpus.len(),
        cores: machine.cores.iter().filter(|core| !core.is_empty()).count(),
        llcs: machine.llcs.len(),
        memory_domains: machine.memory_domains.len(),
        core_types: kinds.map(|kind| kind.name.clone()).collect(),
        llc_bytes: absent.note("llc_bytes", machine.llc_bytes),
        absent,
    }
}

fn missing(info: &RunInfo) -> Vec<MissingCapability> {
    let mut missing = Vec::new();
    for (capability, why) in &info.capabilities.missing {
        missing.push(MissingCapability {
            capability: capability.code(),
            what: capability.text().to_owned(),
            why: why.text().to_owned(),
        });
    }
    missing
}

/// A metric over all jobs. If the results of some are left out, only those of the whole run have a value.
fn value_of(metric: &Metric, outcomes: &Outcomes, result: &RunResult) -> Reading<f64> {
    let is_of_run = matches!(metric.needs, Needs::Nothing | Needs::Energy);
    if result.left_out.count() > 0 && !is_of_run {
        return Reading::Absent(Absence::SomeTasksLackIt);
    }
    metric.of(outcomes)
}

fn left_out(left_out: &LeftOut) -> Option<LeftOutRecord> {
    let time = |q| left_out.times.quantile_ns(q).unwrap_or(0) as f64 / 1e9;
    (left_out.count() > 0).then(|| LeftOutRecord {
        jobs: left_out.count(),
        time_p50_s: time(0.5),
        time_p95_s: time(0.95),
        time_max_s: time(1.0),
    })
}

/// Jobs of a record that were never started: there may be very many, and nothing is known of them.
const NOT_STARTED: usize = 1_000;

fn never_started(task: &TaskResult) -> bool {
    task.started.is_none() && task.exit.is_none()
}

fn totals(result: &RunResult, earlier: &[EarlierJob]) -> JobTotals {
    let left_out = &result.left_out;
    let mut totals = JobTotals {
        jobs: result.tasks.len() + left_out.count(),
        earlier: earlier.len(),
        succeeded: left_out.succeeded,
        failed: left_out.failed,
        timed_out: left_out.timed_out,
        ..JobTotals::default()
    };
    for task in &result.tasks {
        match &task.exit {
            Some(exit) if exit.ok() && !task.timed_out => totals.succeeded += 1,
            Some(_) => totals.failed += 1,
            None => totals.unfinished += 1,
        }
        if never_started(task) {
            totals.not_started += 1;
        }
        totals.timed_out += usize::from(task.timed_out);
    }
    totals
}

fn energy(result: &RunResult, info: &RunInfo) -> EnergyRecord {
    let mut absent = Absences::default();
    let joules = absent.note("joules", result.energy_j);
    let source = if joules.is_some() {
        info.energy_source
    } else {
        EnergySource::Absent
    };
    EnergyRecord {
        joules,
        source,
        absent,
    }
}

fn plans(counts: PlanCounts) -> PlansRecord {
    const UNTOLD: &str = "what carried out the plans does not tell, or was ejected";
    let mut absent = Absences::default();
    let given_up = counts.given_up.map(Nanos::as_s);
    let occupation = counts.occupation.as_ref();
    let longest_wait = occupation.map(|occupation| occupation.longest_wait.as_s());
    let at_once = occupation.map(times_at_once);
    PlansRecord {
        installed: counts.installed,
        adopted: counts.adopted,
        given_up_s: absent.note_option("given_up_s", given_up, "plans were carried out to the end"),
        at_once_s: absent.note_option("at_once_s", at_once, UNTOLD),
        longest_wait_s: absent.note_option("longest_wait_s", longest_wait, UNTOLD),
        absent,
    }
}

/// For how long 0, 1, 2, ... jobs had a CPU at once, in seconds, up to the most that did.
fn times_at_once(occupation: &Occupation) -> Vec<f64> {
    let mut times: Vec<f64> = occupation.at_once.iter().map(|time| time.as_s()).collect();
    while times.len() > 1 && times.last() == Some(&0.0) {
        times.pop();
    }
    times
}

/// The warnings, without what the user asked for.
fn warnings(all: &[RunWarning]) -> Vec<WarningRecord> {
    let mut records = Vec::new();
    for warning in all {
        let code = warning.code();
        if !is_wish(code) {
            records.push(WarningRecord {
                code: code.to_owned(),
                text: warning.text(),
            });
        }
    }
    records
}

/// The cost of cosched. A simulation measures none of its times, so that the record does not change from run to run.
fn overhead(result: &RunResult, info: &RunInfo) -> OverheadRecord {
    let mut absent = Absences::default();
    let is_simulated = info.backend == BackendKind::Sim;
    let overhead = &result.overhead;
    let cpu_share = if is_simulated {
        Reading::Absent(Absence::Simulated)
    } else {
        info.cpu_share
    };
    OverheadRecord {
        quanta: overhead.quanta,
        decisions: overhead.decisions,
        policy_faults: result.policy_faults,
        decide_us: quantiles(&overhead.decide, is_simulated),
        observe_us: quantiles(&overhead.observe, is_simulated),
        apply_us: quantiles(&overhead.apply, is_simulated),
        cpu_share: absent.note("cpu_share", cpu_share),
        absent,
    }
}

/// Two quantiles of times in microseconds.
fn quantiles(times: &Histogram, is_simulated: bool) -> Figures<f64> {
    let mut figures = Figures::default();
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let reading = match times.quantile_ns(quantile) {
            _ if is_simulated => Reading::Absent(Absence::Simulated),
            Some(ns) => Reading::Value(ns as f64 / 1e3),
            None => Reading::Absent(Absence::NotYetMeasured),
        };
        figures.push_reading(name, reading);
    }
    figures
}
