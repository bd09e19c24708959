//! What the batches of one run share.

use super::folder::LogFolder;
use super::memory::Memory;
use super::options::{OutputOptions, RunOptions};
use super::screen::Screen;
use super::signals::Signals;
use super::watch::Watch;
use crate::input::absolute;
use cosched_report::{Absences, RunFacts, RunInfo, RunInput, SettingFile};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// What the batches of one run share: that of its solo runs, and that of all its jobs.
pub(crate) struct RunContext<'a, P> {
    pub(crate) options: &'a RunOptions,
    pub(crate) platform: &'a P,
    pub(crate) screen: &'a Screen,
    pub(crate) signals: &'a Signals,
    /// The history of commands.
    pub(crate) memory: &'a RefCell<Memory>,
    /// Shows the run to `cosched status` and `cosched top`; `None` in a simulation.
    pub(crate) watch: Option<&'a Watch>,
    /// The log folder's path.
    pub(crate) logs: &'a Path,
    /// The log folder; `None` if there is none.
    pub(crate) folder: &'a RefCell<Option<LogFolder>>,
    /// Where the jobs come from.
    pub(crate) input: &'a RunInput,
    /// What else the run reads.
    pub(crate) files: &'a [SettingFile],
}

impl<P> RunContext<'_, P> {
    /// The facts about a run that do not change while jobs run. `alone`: jobs run one at a time.
    pub(crate) fn facts(&self, info: &RunInfo, alone: bool) -> RunFacts {
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
        let record = named_record(&self.options.output).or_else(|| self.kept("run.json"));
        RunFacts {
            run_id: info.run_id.clone().unwrap_or_default(),
            pid: std::process::id(),
            policy: info.policy.clone(),
            phase: phase.to_owned(),
            machine: info.machine.name.clone(),
            cpus: info.machine.all_cpus().to_string(),
            started_at: absent.note_option("started_at", started_at, "not told"),
            folder: absent.note_option("folder", self.kept(""), NO_LOGS),
            record: absent.note_option("record", record, NO_LOGS),
            series: absent.note_option("series", self.kept(series), NO_LOGS),
            absent,
        }
    }

    /// The path of a file in the log folder, or of the folder itself; `None` with `--no-logs`.
    fn kept(&self, name: &str) -> Option<String> {
        if !self.options.output.keeps_logs() {
            return None;
        }
        let path: PathBuf = self.logs.iter().chain(Path::new(name)).collect();
        Some(path.display().to_string())
    }
}

/// The file of `--record`.
fn named_record(output: &OutputOptions) -> Option<String> {
    let path = output.record.as_deref()?;
    Some(absolute(path).display().to_string())
}
