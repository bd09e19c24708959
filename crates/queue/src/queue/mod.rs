//! What the service knows of its jobs. The worker gets its part from `orders`, clients get theirs from `requests`.

mod orders;
mod requests;
#[cfg(test)]
mod tests;

pub(crate) use orders::WorkerOrder;

use crate::claim::{JobClaim, ReaperFolder};
use crate::error::QueueError;
use crate::folder::{JobsFolder, QueueFolder};
use crate::job::{QueuedJob, QueuedJobState};
use crate::store::QueueStore;
use cosched_core::JobEnd;
use cosched_linux::{ReapedEnd, unix_time};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a job that is over is kept: 30 days.
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How long an end that a reaper has noted waits for the worker's report.
const REPORTED_WITHIN: Duration = Duration::from_secs(60);

/// Checks the line of a job, and returns its name, and its command as a shell would take it. The error says what is wrong,
/// and what to do.
pub type Describe = fn(&str) -> Result<(String, String), String>;

/// The queue of the service, shared by all its threads.
pub(crate) struct JobQueue {
    folder: JobsFolder,
    claims: ReaperFolder,
    describe: Describe,
    version: &'static str,
    inner: Mutex<QueueState>,
    /// A job is over.
    changed: Condvar,
}

struct QueueState {
    store: QueueStore,
    /// The jobs that are not over.
    live: BTreeMap<u64, QueuedJob>,
    /// Jobs that are over, whose end could not be written yet.
    unrecorded: BTreeMap<u64, QueuedJob>,
    /// The way to the worker; `None` without one, and once no job will come.
    orders: Option<Sender<WorkerOrder>>,
    worker: Option<u32>,
    draining: bool,
}

impl JobQueue {
    /// Opens the queue in a folder.
    ///
    /// # Errors
    /// The database can't be used.
    pub(crate) fn open(
        folder: &QueueFolder,
        describe: Describe,
        version: &'static str,
    ) -> Result<JobQueue, QueueError> {
        let path = folder.database();
        let store = QueueStore::open(&path)?;
        let jobs = store
            .live()
            .map_err(|why| QueueError::Database { path, why })?;
        let mut live = BTreeMap::new();
        for mut job in jobs {
            job.has_late_reaper = true;
            live.insert(job.id, job);
        }
        let folder = folder.of_database(&store.name)?;
        let claims = ReaperFolder::new(folder.claims());
        claims.forget_old(|key| find(&live, key).is_some());
        Ok(JobQueue {
            folder,
            claims,
            describe,
            version,
            inner: Mutex::new(QueueState {
                store,
                live,
                unrecorded: BTreeMap::new(),
                orders: None,
                worker: None,
                draining: false,
            }),
            changed: Condvar::new(),
        })
    }

    pub(crate) fn folder(&self) -> &JobsFolder {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the files of its reaper say of a job. They may be lost with the power: then the database knows that it started.
    fn claim(&self, job: &QueuedJob) -> io::Result<JobClaim> {
        let claim = self.claims.look(&job.key())?;
        let is_of_other_boot = job.boot.is_some() && job.boot != self.claims.boot;
        Ok(match claim {
            JobClaim::Free | JobClaim::Killed if is_of_other_boot => JobClaim::OtherBoot,
            claim => claim,
        })
    }

    fn finish_with(&self, inner: &mut QueueState, id: u64, ended: &ReapedEnd) {
        if let Some(job) = inner.live.get_mut(&id) {
            // The worker knows more of the same end: figures, and whether memory ran out.
            if job.end.exit != ended.end.exit {
                job.end = JobEnd {
                    timed_out: job.end.timed_out,
                    ..ended.end.clone()
                };
            }
            job.started_at = Some(ended.started_at);
            job.ended_at = Some(ended.ended_at);
        }
        self.finish(inner, id, QueuedJobState::Ended);
    }

    /// Writes that a job is over, and wakes those who wait for it. A job that a user wanted to end counts as cancelled.
    fn finish(&self, inner: &mut QueueState, id: u64, state: QueuedJobState) {
        let Some(mut job) = inner.live.remove(&id) else {
            return;
        };
        job.state = if job.cancel {
            QueuedJobState::Cancelled
        } else {
            state
        };
        job.ended_at
            .get_or_insert_with(|| unix_time().as_secs_f64());
        self.record(inner, job);
        if inner.draining && inner.live.is_empty() {
            inner.orders = None;
        }
        self.changed.notify_all();
    }

    /// Writes a job that is over. Until that succeeds, the files of its reaper stay.
    fn record(&self, inner: &mut QueueState, job: QueuedJob) {
        match inner.store.update(&job) {
            Ok(()) => self.claims.forget(&job.key(), job.has_late_reaper),
            Err(_) => drop(inner.unrecorded.insert(job.id, job)),
        }
    }

    /// Tries again what could not be written, and looks for ends that their reapers noted after the worker reported them.
    /// What the worker has not reported yet waits for a while: only it knows whether the job took too long.
    pub(crate) fn tidy(&self) {
        let inner = &mut *self.lock();
        for (_, job) in std::mem::take(&mut inner.unrecorded) {
            self.record(inner, job);
        }
        for key in self.claims.ended() {
            if let Some(id) = find(&inner.live, &key)
                && let Ok(JobClaim::Ended(ended)) = self.claims.look(&key)
                && (inner.live[&id].is_end_told || is_long_ago(ended.ended_at))
            {
                self.finish_with(inner, id, &ended);
            }
        }
    }

    /// Forgets the jobs that ended long ago, with their output.
    pub(crate) fn forget_old(&self) {
        let inner = self.lock();
        let until = unix_time().saturating_sub(KEPT);
        // What can't be read or written now is forgotten at a later look.
        for job in inner
            .store
            .ended_before(until.as_secs_f64())
            .unwrap_or_default()
        {
            for attempt in 1..=job.attempt {
                let job = self.with_files(QueuedJob {
                    attempt,
                    ..job.clone()
                });
                let _ = std::fs::remove_file(job.out);
                let _ = std::fs::remove_file(job.err);
            }
            let _ = inner.store.forget(job.id);
        }
    }
}

/// Whether the worker should have reported an end.
fn is_long_ago(ended_at: f64) -> bool {
    unix_time().as_secs_f64() > ended_at + REPORTED_WITHIN.as_secs_f64()
}

impl QueueState {
    /// Adds a queued job, and sends it to the worker.
    fn add(&mut self, job: QueuedJob) {
        let id = job.id;
        self.live.insert(id, job);
        self.order(WorkerOrder::Run(id));
    }

    /// Sends an order to the worker. Without one, the next start of a worker makes the same order.
    fn order(&self, order: WorkerOrder) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// A job that the database may not have as it is now.
    fn newest(&self, id: u64) -> Option<&QueuedJob> {
        self.live.get(&id).or_else(|| self.unrecorded.get(&id))
    }
}

/// The live job with this key.
fn find(live: &BTreeMap<u64, QueuedJob>, key: &str) -> Option<u64> {
    let (id, _) = key.split_once('-')?;
    let id = id.parse().ok()?;
    (live.get(&id)?.key() == key).then_some(id)
}
