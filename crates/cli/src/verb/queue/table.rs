//! The queue as a part of `cosched status`.

use super::connect::{folder, socket};
use cosched_linux::unix_time;
use cosched_queue::{
    ClientError, JobSelection, QueueAnswer, QueueClient, QueueRequest, QueuedJob, QueuedJobState,
    ServiceInfo,
};
use cosched_report::{QueueRow, RunStatus, queue_run_text, queue_text};
use serde::Serialize;

/// The queue as the service reports it.
#[derive(Serialize)]
pub struct QueueReport {
    service: ServiceInfo,
    jobs: Vec<QueuedJob>,
}

impl QueueReport {
    /// The queue; with `all` also the jobs that are over.
    ///
    /// # Errors
    /// Why it can't be seen; `None` if there never was a queue.
    pub fn read(all: bool) -> Result<QueueReport, Option<String>> {
        let socket = socket().map_err(|why| Some(why.to_string()))?;
        let ids = Vec::new();
        let request = QueueRequest::Status(JobSelection { all, ids });
        let answer = QueueClient::connect(&socket).and_then(|mut client| client.ask(&request));
        match answer {
            Ok(QueueAnswer::Status { service, jobs }) => Ok(QueueReport { service, jobs }),
            Ok(answer) => Err(Some(format!("the service has another version: {answer:?}"))),
            Err(ClientError::NotServed(_)) if !has_queue() => Err(None),
            Err(error) => Err(Some(error.to_string())),
        }
    }

    /// The process of the run that runs its jobs, if there is one.
    pub fn worker_pid(&self) -> Option<i32> {
        self.service.worker_pid.map(|pid| pid as i32)
    }

    /// The jobs as a table, with what the run knows of them.
    pub fn text(&self, run: Option<&RunStatus>, width: usize) -> String {
        let title = self.title();
        if self.jobs.is_empty() {
            return format!("{title}\n");
        }
        format!("{title}\n{}", queue_text(&self.rows(), run, width))
    }

    /// The state of the run that runs its jobs, and the jobs as a table.
    pub fn text_with_run(&self, run: &RunStatus, width: usize) -> String {
        queue_run_text(run, &self.title(), &self.rows(), width)
    }

    /// How many of its jobs are where.
    fn title(&self) -> String {
        let mut parts = Vec::new();
        for state in [QueuedJobState::Running, QueuedJobState::Queued] {
            let number = self.jobs.iter().filter(|job| job.state == state).count();
            if number > 0 {
                parts.push(format!("{number} {}", state.text()));
            }
        }
        if parts.is_empty() {
            parts.push("no job".to_owned());
        }
        let drains = if self.service.draining {
            "; the service drains"
        } else {
            ""
        };
        format!("queue: {}{drains}", parts.join(", "))
    }

    fn rows(&self) -> Vec<QueueRow> {
        let now = unix_time().as_secs_f64();
        let mut rows = Vec::new();
        for job in &self.jobs {
            rows.push(QueueRow {
                id: job.id,
                name: job.name.clone(),
                name_in_run: job.name_in_run(),
                state: job.to_string(),
                is_live: job.state == QueuedJobState::Running,
                is_over: job.state.is_over(),
                since_s: (now - job.since()).max(0.0),
                command: job.command.clone(),
            });
        }
        rows
    }
}

fn has_queue() -> bool {
    folder().is_ok_and(|folder| folder.join("queue.db").exists())
}
