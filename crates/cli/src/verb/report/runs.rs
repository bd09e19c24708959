//! Runs as they are read from their files.

use super::sources::RunFiles;
use crate::exit::{OrUsage as _, usage};
use crate::input::told;
use crate::live::goes_on;
use crate::run_files::open_series;
use anyhow::Result;
use cosched_page::RunView;
use cosched_report::{JobRecord, NoRecord, RunRecord, Timeline, is_of_run, record_of_series};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// A run that was read.
pub struct ReportedRun {
    pub label: String,
    pub record: RunRecord,
    /// What its series tells, if that was asked for and can be read.
    pub timeline: Option<Timeline>,
    /// The series, if there is one that is of this run.
    pub series: Option<PathBuf>,
    /// What is to be known of its files.
    pub notes: Vec<String>,
}

impl ReportedRun {
    /// Reads a run; with `whole` also its series, if the record is there.
    ///
    /// # Errors
    /// A file can't be read or is damaged.
    pub fn read(files: RunFiles, whole: bool) -> Result<ReportedRun> {
        let mut notes = Vec::new();
        let record = if let Some(file) = &files.record {
            read_record(file, files.series.as_deref())?
        } else if let Some(file) = &files.series {
            let record = rebuilt(file)?;
            notes.push(rebuilt_note(&record));
            record
        } else {
            let label = files.label;
            return Err(usage(format!("{label}: neither a record nor a series")));
        };
        let mut run = ReportedRun {
            label: files.label,
            record,
            timeline: None,
            series: files.series,
            notes,
        };
        run.read_series(whole);
        Ok(run)
    }

    /// Checks that the series is of this run; with `whole` reads it.
    fn read_series(&mut self, whole: bool) {
        let Some(file) = self.series.take() else {
            return;
        };
        let mut series = match open_series(&file) {
            Ok(series) => series,
            Err(error) => return self.note_unknown(&error),
        };
        if !is_of_run(&self.record, series.header()) {
            let file = told(&file);
            let note = format!("{file} is of another run, and was not used.");
            self.notes.push(note);
            return;
        }
        if whole {
            match Timeline::read(&mut series) {
                Ok(timeline) => self.timeline = Some(timeline),
                Err(error) => self.note_unknown(&error),
            }
        }
        self.series = Some(file);
    }

    fn note_unknown(&mut self, error: &dyn Display) {
        let note = format!("{error}: who ran when is not known.");
        self.notes.push(note);
    }

    /// As a page shows it.
    pub fn view(&self) -> RunView<'_> {
        RunView {
            label: self.label.clone(),
            record: &self.record,
            timeline: self.timeline.as_ref(),
            notes: self.notes.clone(),
        }
    }

    /// The record with the jobs that earlier runs of the batch did, as far as it has them. Its metrics stay those of this
    /// run alone.
    pub fn batch(&self) -> RunRecord {
        let mut whole = self.record.clone();
        let earlier = self.record.earlier_jobs.iter();
        let jobs: Vec<JobRecord> = earlier.filter_map(|earlier| earlier.job.clone()).collect();
        whole.jobs.splice(0..0, jobs);
        whole
    }
}

fn read_record(file: &Path, series: Option<&Path>) -> Result<RunRecord> {
    let name = told(file);
    let text = std::fs::read_to_string(file).or_usage_in(&name)?;
    RunRecord::from_json(&text).map_err(|error| {
        let remedy = match series {
            Some(series) => format!("; `cosched report {}` shows its series", told(series)),
            None => String::new(),
        };
        usage(format!("{name}: {error}{remedy}"))
    })
}

/// The record of a run that has not written one.
fn rebuilt(file: &Path) -> Result<RunRecord> {
    let series = open_series(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let why = if goes_on(series.header()) {
        NoRecord::GoesOn
    } else {
        NoRecord::Killed
    };
    record_of_series(series, why, |name| logs_of(folder, name), |_| false).or_usage()
}

/// The logs of a job, its output and its errors, as far as they exist.
fn logs_of(folder: &Path, name: &str) -> (Option<String>, Option<String>) {
    let out = log_of(folder, &format!("{name}.out"));
    let err = log_of(folder, &format!("{name}.err"));
    (out, err)
}

fn log_of(folder: &Path, file: &str) -> Option<String> {
    let file = folder.join(file);
    file.exists().then(|| file.display().to_string())
}

/// What a reader must know of a record that was rebuilt.
fn rebuilt_note(record: &RunRecord) -> String {
    let until_s = match &record.rebuilt {
        Some(rebuilt) => rebuilt.until_s,
        None => 0.0,
    };
    let until = cosched_report::seconds(until_s);
    let why = if record.finished_by == "goes-on" {
        "This run is still live."
    } else {
        "This run left no record: it was killed, could not write it, or is live elsewhere."
    };
    format!("{why} Its series ends after {until}.")
}

/// Puts runs in the order of time.
pub fn sort(runs: &mut [ReportedRun]) {
    if runs.iter().all(|run| run.record.started_at.is_some()) {
        // RFC 3339 in UTC with equal decimals sorts as text.
        runs.sort_by(|a, b| a.record.started_at.cmp(&b.record.started_at));
    }
}
