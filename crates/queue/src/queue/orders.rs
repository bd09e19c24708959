//! The orders to the worker, and what it reports.

use super::{JobQueue, QueueState, find};
use crate::claim::JobClaim;
use crate::job::QueuedJobState;
use crate::protocol::JobLine;
use cosched_core::{Exit, JobEnd};
use cosched_linux::{Reaper, unix_time};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::sync::mpsc::{Receiver, channel};

/// An order to the worker.
#[derive(Debug)]
pub(crate) enum WorkerOrder {
    /// To run a job.
    Run(u64),
    /// To take over a job that runs.
    Adopt(u64, Reaper),
    /// To end the job with this key.
    Cancel(String),
}

/// A line of the worker. docs/schema/progress-line.json describes it.
#[derive(Deserialize)]
struct Progress {
    event: String,
    id: Option<String>,
    #[serde(flatten)]
    end: JobEnd,
}

impl JobQueue {
    /// Finds out what became of all jobs while there was no worker. Returns the orders to the next worker; `None` if it
    /// is not needed, because the queue is drained.
    ///
    /// # Errors
    /// The files of reapers can't be read.
    pub(crate) fn recover(&self) -> io::Result<Option<Receiver<WorkerOrder>>> {
        let inner = &mut *self.lock();
        let mut adopted = Vec::new();
        let mut queued = Vec::new();
        for id in inner.live.keys().copied().collect::<Vec<u64>>() {
            let Some(job) = inner.live.get_mut(&id) else {
                continue;
            };
            job.has_late_reaper = true;
            let key = job.key();
            match self.claim(job)? {
                JobClaim::Free if !job.cancel => {
                    job.state = QueuedJobState::Queued;
                    queued.push(WorkerOrder::Run(id));
                }
                JobClaim::Free => self.finish(inner, id, QueuedJobState::Cancelled),
                JobClaim::Running(started) => {
                    job.state = QueuedJobState::Running;
                    job.started_at = Some(started.at);
                    job.boot.clone_from(&self.claims.boot);
                    let cancel = job.cancel;
                    adopted.push(WorkerOrder::Adopt(id, started));
                    adopted.extend(cancel.then_some(WorkerOrder::Cancel(key)));
                }
                JobClaim::Ended(ended) => self.finish_with(inner, id, &ended),
                JobClaim::Killed => self.finish(inner, id, QueuedJobState::Unknown),
                JobClaim::OtherBoot => self.finish(inner, id, QueuedJobState::Lost),
            }
        }
        if inner.draining && inner.live.is_empty() {
            return Ok(None);
        }
        let (sender, orders) = channel();
        for order in adopted.into_iter().chain(queued) {
            let _ = sender.send(order);
        }
        inner.orders = Some(sender);
        Ok(Some(orders))
    }

    /// Notes the worker that follows the orders, or that it is gone.
    pub(crate) fn set_worker(&self, pid: Option<u32>) {
        let mut inner = self.lock();
        inner.worker = pid;
        if pid.is_none() {
            inner.orders = None;
        }
    }

    /// The line for an order to the worker; `None` if the job is over.
    pub(crate) fn order_line(&self, order: &WorkerOrder) -> Option<String> {
        let inner = &mut *self.lock();
        let (id, adopt) = match order {
            WorkerOrder::Cancel(key) => return Some(json!({ "cancel": key }).to_string()),
            WorkerOrder::Run(id) => (id, None),
            WorkerOrder::Adopt(id, started) => {
                let reaper = json!({"pid": started.pid, "start_time": started.start_time});
                (id, Some(reaper))
            }
        };
        let job = inner.live.get(id)?;
        if job.cancel && adopt.is_none() {
            self.finish(inner, *id, QueuedJobState::Cancelled);
            return None;
        }
        let key = job.key();
        let lines = inner.store.lines(*id);
        match lines.and_then(|(common, line)| whole_line(&common, &line)) {
            Ok(mut line) => {
                line.insert("id".to_owned(), key.into());
                line.extend(adopt.map(|reaper| ("adopt".to_owned(), reaper)));
                Some(Value::Object(line).to_string())
            }
            Err(why) => {
                if let Some(job) = inner.live.get_mut(id) {
                    job.end = JobEnd::of_exit(&Exit::NotStarted(why));
                }
                self.finish(inner, *id, QueuedJobState::Unknown);
                None
            }
        }
    }

    /// Notes a line of the worker.
    pub(crate) fn note(&self, worker: u32, line: &[u8]) {
        let Ok(progress) = serde_json::from_slice::<Progress>(line) else {
            return;
        };
        let inner = &mut *self.lock();
        // What a dead worker said counts no more: the files of the reapers do.
        if inner.worker != Some(worker) {
            return;
        }
        let key = progress.id.as_deref().unwrap_or_default();
        let Some(id) = find(&inner.live, key) else {
            return;
        };
        match &*progress.event {
            "start" => {
                if let Some(job) = inner.live.get_mut(&id) {
                    job.state = QueuedJobState::Running;
                    // A job that was taken over started before.
                    job.started_at
                        .get_or_insert_with(|| unix_time().as_secs_f64());
                    job.boot.clone_from(&self.claims.boot);
                    // The reaper's file need not survive a loss of power. If this fails, only that is not noticed.
                    let _ = inner.store.update(job);
                }
            }
            "end" => self.note_end(inner, id, progress),
            _ => {}
        }
    }

    fn note_end(&self, inner: &mut QueueState, id: u64, progress: Progress) {
        let Some(job) = inner.live.get_mut(&id) else {
            return;
        };
        job.is_end_told = true;
        // Its times count from the start of a run that nobody knows here.
        job.end = JobEnd {
            start_s: None,
            end_s: None,
            ..progress.end
        };
        let timed_out = job.end.timed_out;
        match self.claim(job) {
            Ok(JobClaim::Ended(ended)) => self.finish_with(inner, id, &ended),
            // The reaper writes how the job ended.
            Ok(JobClaim::Running(_)) | Err(_) => {}
            Ok(claim) if claim == JobClaim::Free || timed_out => {
                self.finish(inner, id, QueuedJobState::Ended);
            }
            Ok(_) => self.finish(inner, id, QueuedJobState::Unknown),
        }
    }
}

/// The line of a job with what its request says of all its jobs.
fn whole_line(common: &str, line: &str) -> Result<JobLine, String> {
    let parsed = |text| serde_json::from_str::<JobLine>(text).map_err(|why| why.to_string());
    let (mut whole, mut line) = (parsed(common)?, parsed(line)?);
    if let (Some(Value::Object(all)), Some(Value::Object(own))) =
        (whole.get_mut("env"), line.get_mut("env"))
    {
        all.append(own);
        line.remove("env");
    }
    whole.append(&mut line);
    Ok(whole)
}
