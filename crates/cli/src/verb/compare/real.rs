//! The runs of a comparison on this machine, one at a time.

use super::child;
use super::options::{name, words};
use super::user::{Progress, User};
use crate::whole_file::read_own;
use anyhow::Result;
use cosched_experiments::comparison::{
    CandidateRun, ComparisonDesign, ComparisonFolder, ComparisonMeans, RUN_FILE, RunFigures,
};
use cosched_report::RunRecord;
use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// What makes the runs.
pub struct RealRuns<'a> {
    pub design: &'a ComparisonDesign,
    pub store: &'a ComparisonFolder,
    pub user: &'a User,
}

impl RealRuns<'_> {
    /// Checks each candidate with each mix before any job is started.
    ///
    /// # Errors
    /// One of them can't run here.
    pub fn check(&self) -> Result<()> {
        for trial in self.design.block(1) {
            let candidate = &self.design.candidates[trial.candidate];
            if matches!(candidate.means, ComparisonMeans::Command(_)) {
                continue;
            }
            let what = name(self.design, trial);
            let mut command = self.command(words(self.design, self.store, trial));
            command.arg("--dry-run");
            let ended = child::run(command, &what, &what, self.user)?;
            if !ended.status.success() {
                return Err(ended.failure(&what));
            }
        }
        Ok(())
    }

    /// Makes these runs, and adds their outcomes.
    ///
    /// # Errors
    /// A run could not be made, or the user interrupted it.
    pub fn make(
        &self,
        trials: &[CandidateRun],
        aim: &str,
        outcomes: &mut Vec<RunFigures>,
    ) -> Result<()> {
        let progress = Progress::new(aim, trials.len());
        for (done, &trial) in trials.iter().enumerate() {
            outcomes.extend(self.run(trial, &progress.line(done))?);
        }
        Ok(())
    }

    fn run(&self, trial: CandidateRun, progress: &str) -> Result<Option<RunFigures>> {
        let what = name(self.design, trial);
        let mut command = self.command(words(self.design, self.store, trial));
        let solo = self.store.solo(trial.mix);
        if solo.exists() {
            command.arg("--solo").arg(solo);
        }
        let line = format!("{progress}; block {}, {what}", trial.block);
        let ended = child::run(command, &what, &line, self.user)?;
        let folder = self.store.run(trial);
        if !folder.join(RUN_FILE).exists() {
            return Err(ended.failure(&what));
        }
        drop_output(&folder);
        Ok(self.store.outcome(trial)?)
    }

    /// A `cosched run` with these words.
    pub fn command(&self, words: Vec<OsString>) -> Command {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("cosched").args(words);
        command
    }
}

/// Removes the output of the jobs that succeeded: it is the same in each run, and fills the disk.
fn drop_output(folder: &Path) {
    let record = read_own(&folder.join(RUN_FILE)).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(record) = record.and_then(|text| RunRecord::from_json(&text).ok()) else {
        return;
    };
    for job in record.jobs.iter().filter(|job| job.end.exit == Some(0)) {
        let logs = [&job.log, &job.log_stderr].into_iter().flatten();
        for log in logs
            .map(Path::new)
            .filter(|log| log.parent() == Some(folder))
        {
            // One that stays costs room, and nothing else.
            let _ = std::fs::remove_file(log);
        }
    }
}
