//! What those who look at a run are told beside what its loop knows.

use super::args::RunArgs;
use super::metrics::MetricsSocket;
use super::window::Window;
use cosched_core::{Nanos, RunConfig};
use cosched_linux::root::Root;
use cosched_report::{Absences, RunFacts, RunInfo, RunWarning, Status};
use std::path::Path;

/// Makes the window of this run. Where there can be no socket for it, nobody can look at the run but who asks for metrics, and
/// it goes on all the same.
pub(crate) fn open(root: &Root, metrics: Option<MetricsSocket>) -> (Window, Option<RunWarning>) {
    let (window, problem) = Window::new(root, metrics);
    (
        window,
        problem.map(|error| RunWarning::NoWindow {
            why: error.to_string(),
        }),
    )
}

/// What does not change while jobs run. `alone` says that each of them runs alone.
pub(crate) fn facts(
    args: &RunArgs,
    info: &RunInfo,
    config: &RunConfig,
    logs: &Path,
    alone: bool,
) -> RunFacts {
    let mut absent = Absences::default();
    let kept = |name: &str| (!args.output.no_logs).then(|| logs.join(name).display().to_string());
    let named = args
        .output
        .record
        .as_deref()
        .map(|record| std::path::absolute(record).unwrap_or(record.to_owned()));
    let record = named
        .map(|record| record.display().to_string())
        .or_else(|| kept("run.json"));
    let started_at = info
        .started_at
        .map(|at| humantime::format_rfc3339_millis(at).to_string());
    let folder = (!args.output.no_logs).then(|| logs.display().to_string());
    let no_logs = "--no-logs keeps none";
    RunFacts {
        run_id: info.run_id.clone().unwrap_or_default(),
        pid: std::process::id(),
        policy: info.policy.clone(),
        phase: if alone { "alone" } else { "together" }.to_owned(),
        machine: info.machine.name.clone(),
        cpus: info.machine.all_cpus().to_string(),
        started_at: absent.note_option("started_at", started_at, "not told"),
        quantum_s: config.quantum.as_s(),
        max_pause_s: config.max_pause.as_s(),
        folder: absent.note_option("folder", folder, no_logs),
        record: absent.note_option("record", record, no_logs),
        series: absent.note_option(
            "series",
            kept(if alone {
                "solo.series.jsonl"
            } else {
                "series.jsonl"
            }),
            no_logs,
        ),
        command_line: absent.note_option(
            "command_line",
            info.setting.command_line.clone(),
            "not told",
        ),
        absent,
    }
}

/// Adds what the run itself has used, and answers those who look.
pub(crate) fn show(window: &Window, mut status: Box<Status>, cpu_time: Nanos) {
    let used = cpu_time.as_s();
    status.own.figures.push("cpu_s", Ok(used));
    let share = if status.elapsed_s > 0.0 {
        Ok(used / status.elapsed_s)
    } else {
        Err("it has just begun")
    };
    status.own.figures.push("cpu_share", share);
    window.show(&status);
}
