//! The queue as a part of `cosched status`.

use super::connect::{folder, socket};
use cosched_linux::unix_time;
use cosched_queue::{Answer, Client, ClientError, Job, Request, Select, Service};
use cosched_report::{QueueRow, queue_text};
use serde::Serialize;

/// The queue as the service reports it.
#[derive(Serialize)]
pub struct Queue {
    service: Service,
    jobs: Vec<Job>,
}

impl Queue {
    /// The queue; with `all` also the jobs that are over.
    ///
    /// # Errors
    /// Why it can't be seen; `None` if there never was a queue.
    pub fn read(all: bool) -> Result<Queue, Option<String>> {
        let socket = socket().map_err(|why| Some(why.to_string()))?;
        let ids = Vec::new();
        let request = Request::Status(Select { all, ids });
        let answer = Client::connect(&socket).and_then(|mut client| client.ask(&request));
        match answer {
            Ok(Answer::Status { service, jobs }) => Ok(Queue { service, jobs }),
            Ok(answer) => Err(Some(format!("the service has another version: {answer:?}"))),
            Err(ClientError::NotServed(_)) if !has_queue() => Err(None),
            Err(error) => Err(Some(error.to_string())),
        }
    }

    /// The jobs as a table.
    pub fn text(&self, width: usize) -> String {
        let drains = if self.service.draining {
            "; the service drains"
        } else {
            ""
        };
        if self.jobs.is_empty() {
            return format!("no job is queued{drains}\n");
        }
        let now = unix_time().as_secs_f64();
        let mut rows = Vec::new();
        for job in &self.jobs {
            rows.push(QueueRow {
                id: job.id,
                name: job.name.clone(),
                state: job.to_string(),
                since_s: (now - job.since()).max(0.0),
                command: job.command.clone(),
            });
        }
        format!("queue{drains}\n{}", queue_text(&rows, width))
    }
}

fn has_queue() -> bool {
    folder().is_ok_and(|folder| folder.join("queue.db").exists())
}
