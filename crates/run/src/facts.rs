//! The facts about a run for those who watch it.

use super::options::OutputOptions;
use super::session::Session;
use crate::input::absolute;
use cosched_report::{Absences, RunFacts, RunInfo};
use std::path::{Path, PathBuf};

/// The facts about a run that do not change while jobs run. `alone`: jobs run one at a time.
pub(crate) fn facts<P>(session: &Session<'_, P>, info: &RunInfo, alone: bool) -> RunFacts {
    const NO_LOGS: &str = "--no-logs keeps none";
    let mut absent = Absences::default();
    let (phase, series) = if alone {
        ("alone", "solo.series.jsonl")
    } else {
        ("together", "series.jsonl")
    };
    let started_at = info
        .started_at
        .map(|at| humantime::format_rfc3339_millis(at).to_string());
    let record = named_record(&session.options.output).or_else(|| session.kept("run.json"));
    RunFacts {
        run_id: info.run_id.clone().unwrap_or_default(),
        pid: std::process::id(),
        policy: info.policy.clone(),
        phase: phase.to_owned(),
        machine: info.machine.name.clone(),
        cpus: info.machine.all_cpus().to_string(),
        started_at: absent.note_option("started_at", started_at, "not told"),
        folder: absent.note_option("folder", session.kept(""), NO_LOGS),
        record: absent.note_option("record", record, NO_LOGS),
        series: absent.note_option("series", session.kept(series), NO_LOGS),
        absent,
    }
}

/// The file of `--record`.
fn named_record(output: &OutputOptions) -> Option<String> {
    let path = output.record.as_deref()?;
    Some(absolute(path).display().to_string())
}

impl<P> Session<'_, P> {
    /// The path of a file in the log folder, or of the folder itself; `None` with `--no-logs`.
    fn kept(&self, name: &str) -> Option<String> {
        if !self.options.output.keeps_logs() {
            return None;
        }
        let path: PathBuf = self.logs.iter().chain(Path::new(name)).collect();
        Some(path.display().to_string())
    }
}
