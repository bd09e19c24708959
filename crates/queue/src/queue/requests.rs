//! The requests of clients.

use super::{JobQueue, QueueState, WorkerOrder};
use crate::job::{QueuedJob, QueuedJobState};
use crate::protocol::{
    JobLine, JobSelection, JobSubmission, QueueAnswer, QueueRequest, ServiceInfo, token_problem,
};
use serde_json::Value;
use std::sync::PoisonError;
use std::time::Duration;

/// How often waiting clients look whether they are still wanted.
const PERIOD: Duration = Duration::from_secs(1);

/// Keys of a job's line that the queue sets.
const RESERVED: [&str; 3] = ["id", "adopt", "cancel"];

const DRAINING: &str = "the service drains, and accepts no more jobs; start another with `cosched serve` once it has ended";

impl JobQueue {
    /// Answers a request. One to wait has several answers: see [`JobQueue::awaited`].
    pub(crate) fn answer(&self, request: QueueRequest) -> QueueAnswer {
        let answer = match request {
            QueueRequest::Submit(submission) => {
                self.submit(submission).map(|ids| QueueAnswer::Ids { ids })
            }
            QueueRequest::Submitted(token) => {
                self.submitted(&token).map(|ids| QueueAnswer::Ids { ids })
            }
            QueueRequest::Status(select) => self.status(&select),
            QueueRequest::Cancel(ids) => {
                let cancelled = self.cancel(&ids);
                cancelled.map(|cancelled| QueueAnswer::Cancelled { cancelled })
            }
            QueueRequest::Rerun(ids) => self.rerun(&ids).map(|()| QueueAnswer::Ids { ids }),
            QueueRequest::Drain(true) => {
                self.drain();
                Ok(QueueAnswer::Draining { draining: true })
            }
            QueueRequest::Drain(false) => {
                Err("a drain can't be taken back; only `{\"drain\": true}` is a request".to_owned())
            }
            QueueRequest::Wait(_) => {
                Err("the service does not answer a wait at once; report this".to_owned())
            }
        };
        answer.unwrap_or_else(|error| QueueAnswer::Error { error })
    }

    fn submit(&self, submission: JobSubmission) -> Result<Vec<u64>, String> {
        let JobSubmission {
            token,
            common,
            jobs: lines,
        } = submission;
        if let Some(why) = token.as_deref().and_then(token_problem) {
            return Err(why);
        }
        self.check_common(&common)?;
        let mut jobs = Vec::new();
        for (number, line) in (1..).zip(lines) {
            let job = self.queued(line);
            jobs.push(job.map_err(|why| format!("job {number}: {why}"))?);
        }
        let inner = &mut *self.lock();
        if let Some(token) = &token
            && let Some(ids) = inner.store.added(token)?
        {
            return Ok(ids);
        }
        if inner.draining {
            return Err(DRAINING.to_owned());
        }
        let common = Value::Object(common).to_string();
        inner.store.add(token.as_deref(), &common, &mut jobs)?;
        let mut ids = Vec::new();
        for (job, _) in jobs {
            ids.push(job.id);
            inner.add(job);
        }
        Ok(ids)
    }

    /// The jobs that a request with this token has queued.
    fn submitted(&self, token: &str) -> Result<Vec<u64>, String> {
        let added = self.lock().store.added(token)?;
        added.ok_or_else(|| {
            format!("no request with the token {token} has queued jobs; submit them again")
        })
    }

    /// Checks what a request says of all its jobs, once.
    fn check_common(&self, common: &JobLine) -> Result<(), String> {
        let mut line = common.clone();
        line.entry("command").or_insert("true".into());
        self.queued(line)
            .map(drop)
            .map_err(|why| format!("common: {why}"))
    }

    /// A job for a line. It has no number yet.
    fn queued(&self, line: JobLine) -> Result<(QueuedJob, String), String> {
        if let Some(key) = RESERVED.iter().find(|key| line.contains_key(**key)) {
            return Err(format!("the queue sets `{key}`; leave it out"));
        }
        let line = Value::Object(line).to_string();
        let (name, command) = (self.describe)(&line)?;
        Ok((QueuedJob::queued(name, command), line))
    }

    fn status(&self, select: &JobSelection) -> Result<QueueAnswer, String> {
        let inner = self.lock();
        let jobs = if !select.ids.is_empty() {
            let jobs = select.ids.iter().map(|&id| self.job(&inner, id));
            jobs.collect::<Result<Vec<QueuedJob>, String>>()?
        } else if select.all {
            let jobs = inner.store.all()?.into_iter();
            let newest = jobs.map(|job| inner.newest(job.id).cloned().unwrap_or(job));
            newest.map(|job| self.with_files(job)).collect()
        } else {
            let jobs = inner.live.values();
            jobs.map(|job| self.with_files(job.clone())).collect()
        };
        let service = ServiceInfo {
            pid: std::process::id(),
            version: self.version.to_owned(),
            draining: inner.draining,
            worker_pid: inner.worker,
        };
        Ok(QueueAnswer::Status { service, jobs })
    }

    /// A job, whether it is over or not.
    fn job(&self, inner: &QueueState, id: u64) -> Result<QueuedJob, String> {
        let found = match inner.newest(id) {
            Some(job) => Some(job.clone()),
            None => inner.store.job(id)?,
        };
        let job = found.ok_or_else(|| {
            format!("there is no job {id}; `cosched status --all` lists the jobs")
        })?;
        Ok(self.with_files(job))
    }

    /// A job with the names of its files.
    pub(super) fn with_files(&self, mut job: QueuedJob) -> QueuedJob {
        let (logs, key) = (self.folder.logs(), job.key());
        job.out = logs.join(format!("{key}.out"));
        job.err = logs.join(format!("{key}.err"));
        job
    }

    fn cancel(&self, ids: &[u64]) -> Result<Vec<u64>, String> {
        let inner = &mut *self.lock();
        for &id in ids {
            self.job(inner, id)?;
        }
        let mut cancelled = Vec::new();
        for &id in ids {
            let Some(job) = inner.live.get_mut(&id) else {
                continue;
            };
            job.cancel = true;
            let order = WorkerOrder::Cancel(job.key());
            // On a full disk it ends as well; only if the service is killed too, it is forgotten.
            let _ = inner.store.update(job);
            inner.order(order);
            cancelled.push(id);
        }
        Ok(cancelled)
    }

    fn rerun(&self, ids: &[u64]) -> Result<(), String> {
        let inner = &mut *self.lock();
        if inner.draining {
            return Err(DRAINING.to_owned());
        }
        let mut jobs = Vec::new();
        for &id in ids {
            let mut job = self.job(inner, id)?;
            if !matches!(job.state, QueuedJobState::Lost | QueuedJobState::Unknown) {
                return Err(format!(
                    "job {id}: {job}; only lost and unknown jobs run again. Submit it anew"
                ));
            }
            job.queue_again();
            jobs.push(job);
        }
        for job in jobs {
            inner.store.update(&job)?;
            inner.unrecorded.remove(&job.id);
            inner.add(job);
        }
        Ok(())
    }

    fn drain(&self) {
        let mut inner = self.lock();
        inner.draining = true;
        if inner.live.is_empty() {
            inner.orders = None;
        }
    }

    /// The jobs for a client that waits for these, or for all if it names none.
    ///
    /// # Errors
    /// There is no such job.
    pub(crate) fn awaited(&self, ids: Vec<u64>) -> Result<Vec<u64>, String> {
        let inner = self.lock();
        if ids.is_empty() {
            return Ok(inner.live.keys().copied().collect());
        }
        for &id in &ids {
            self.job(&inner, id)?;
        }
        Ok(ids)
    }

    /// Those of the jobs that are over. If there are none, waits for an end, but only for a second.
    ///
    /// # Errors
    /// The database can't be read.
    pub(crate) fn over(&self, ids: &[u64]) -> Result<Vec<QueuedJob>, String> {
        let mut inner = self.lock();
        if ids.iter().all(|id| inner.live.contains_key(id)) {
            let waited = self.changed.wait_timeout(inner, PERIOD);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let over = ids.iter().filter(|id| !inner.live.contains_key(id));
        over.map(|&id| self.job(&inner, id)).collect()
    }
}
