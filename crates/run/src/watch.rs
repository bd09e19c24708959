//! The files that show a live run: its state for `cosched status` and `cosched top`, and the metrics of `--metrics`.

use super::screen::Screen;
use crate::whole_file::write_whole;
use cosched_linux::root::Root;
use cosched_linux::{RunRequests, WatchFiles, own_cpu_time};
use cosched_report::{RunStatus, RunWarning, metrics_text};
use std::cell::Cell;
use std::path::PathBuf;

/// The files that show a run.
pub(crate) struct Watch {
    /// `None` if they could not be made.
    files: Option<WatchFiles>,
    metrics: Option<PathBuf>,
    has_warned: Cell<bool>,
}

impl Watch {
    /// Makes the files for `cosched status` and `cosched top`. `metrics` is the file of `--metrics`.
    pub(crate) fn new(metrics: Option<PathBuf>, screen: &Screen) -> Watch {
        let made = WatchFiles::make(&Root::default());
        let files = made.map_err(|why| screen.warn(no_status(why)));
        Watch {
            files: files.ok(),
            metrics,
            has_warned: Cell::new(false),
        }
    }

    /// The requests of others to the run.
    pub(crate) fn requests(&self) -> Option<RunRequests> {
        self.files.as_ref()?.requests().ok()
    }

    /// Writes the state of the run, with the run's own CPU time. Only the first failure is warned of.
    pub(crate) fn write(&self, mut status: Box<RunStatus>, screen: &Screen) {
        add_own_use(&mut status);
        if let Err(warning) = self.try_write(&status)
            && !self.has_warned.replace(true)
        {
            screen.warn(warning);
        }
    }

    fn try_write(&self, status: &RunStatus) -> Result<(), RunWarning> {
        if let Some(metrics) = &self.metrics {
            write_whole(metrics, metrics_text(status).as_bytes()).map_err(|error| {
                let why = format!("{error:#}");
                RunWarning::MetricsLost { why }
            })?;
        }
        let Some(files) = &self.files else {
            return Ok(());
        };
        let text = serde_json::to_vec(status).map_err(no_status)?;
        files.write_status(&text).map_err(no_status)
    }
}

fn no_status(why: impl ToString) -> RunWarning {
    let why = why.to_string();
    RunWarning::NoStatus { why }
}

fn add_own_use(status: &mut RunStatus) {
    let used = own_cpu_time().as_s();
    let share = if status.elapsed_s > 0.0 {
        Ok(used / status.elapsed_s)
    } else {
        Err("it has just begun")
    };
    status.own.figures.push("cpu_s", Ok(used));
    status.own.figures.push("cpu_share", share);
}
