//! What the service knows, and all that changes it.

use crate::claim::{Claim, Claims};
use crate::error::Error;
use crate::folder::Folder;
use crate::job::{End, Job, State, now};
use crate::protocol::{Answer, JobLine, Request, Select, Service};
use crate::store::Store;
use cosched_linux::{Ending, Reaper};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Checks the line of a job, and returns its name and its command. The error says what is wrong, and what to do.
pub type Describe = fn(&str) -> Result<Described, String>;

/// What users see of a job.
#[derive(Clone, Debug)]
pub struct Described {
    /// The name.
    pub name: String,
    /// The command, as a shell would take it.
    pub command: String,
}

/// How often waiting clients look whether they are still wanted.
const PERIOD: Duration = Duration::from_secs(1);

/// Keys of a job's line that the queue sets.
const RESERVED: [&str; 3] = ["id", "adopt", "cancel"];

/// The queue of the service, shared by all its threads.
pub(crate) struct Queue {
    folder: Folder,
    claims: Claims,
    describe: Describe,
    version: &'static str,
    /// Whether jobs that the machine's restart lost run again.
    reruns: bool,
    inner: Mutex<Inner>,
    /// A job is over.
    changed: Condvar,
}

struct Inner {
    store: Store,
    /// The jobs that are not over.
    live: BTreeMap<u64, Live>,
    /// Jobs that are over, whose end could not be written yet.
    unrecorded: BTreeMap<u64, Live>,
    /// The way to the worker; `None` without one, and once no job will come.
    orders: Option<Sender<Order>>,
    worker: Option<u32>,
    draining: bool,
}

/// A job that is not over.
struct Live {
    job: Job,
    /// Whether an earlier worker may have started a reaper for it that has not begun yet.
    has_late_reaper: bool,
}

/// An order to the worker.
#[derive(Debug)]
pub(crate) enum Order {
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
    #[serde(default)]
    timed_out: bool,
    #[serde(flatten)]
    end: End,
}

impl Queue {
    /// Opens the queue in a folder.
    ///
    /// # Errors
    /// The database can't be used.
    pub(crate) fn open(
        folder: Folder,
        describe: Describe,
        version: &'static str,
        reruns: bool,
    ) -> Result<Queue, Error> {
        let path = folder.database();
        let store = Store::open(&path)?;
        let jobs = store.live().map_err(|why| Error::Database { path, why })?;
        let mut live = BTreeMap::new();
        for job in jobs {
            let has_late_reaper = true;
            let id = job.id;
            live.insert(
                id,
                Live {
                    job,
                    has_late_reaper,
                },
            );
        }
        let claims = Claims::new(folder.jobs());
        claims.forget_old(|key| find(&live, key).is_some());
        Ok(Queue {
            folder,
            claims,
            describe,
            version,
            reruns,
            inner: Mutex::new(Inner {
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

    pub(crate) fn folder(&self) -> &Folder {
        &self.folder
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the files of its reaper say of a job. They may be lost with the power: then the database knows that it started.
    fn claim(&self, job: &Job) -> io::Result<Claim> {
        let claim = self.claims.look(&job.key())?;
        let is_of_other_boot = job.boot.is_some() && job.boot != self.claims.boot;
        Ok(match claim {
            Claim::Free | Claim::Killed if is_of_other_boot => Claim::OtherBoot,
            claim => claim,
        })
    }

    /// Finds out what became of all jobs while there was no worker. Returns the orders to the next worker; `None` if it
    /// is not needed, because the queue is drained.
    ///
    /// # Errors
    /// The files of reapers can't be read.
    pub(crate) fn recover(&self) -> io::Result<Option<Receiver<Order>>> {
        let inner = &mut *self.lock();
        let mut adopted = Vec::new();
        let mut queued = Vec::new();
        for id in inner.live.keys().copied().collect::<Vec<u64>>() {
            let Some(live) = inner.live.get_mut(&id) else {
                continue;
            };
            live.has_late_reaper = true;
            let key = live.job.key();
            match self.claim(&live.job)? {
                Claim::Free if !live.job.cancel => {
                    live.job.state = State::Queued;
                    queued.push(Order::Run(id));
                }
                Claim::Free => self.finish(inner, id, State::Cancelled),
                Claim::Running(started) => {
                    live.job.state = State::Running;
                    live.job.started_at = Some(started.at);
                    live.job.boot.clone_from(&self.claims.boot);
                    let cancel = live.job.cancel;
                    adopted.push(Order::Adopt(id, started));
                    adopted.extend(cancel.then_some(Order::Cancel(key)));
                }
                Claim::Ended(ended) => self.finish_with(inner, id, &ended),
                Claim::Killed => self.finish(inner, id, State::Unknown),
                Claim::OtherBoot if self.reruns && !live.job.cancel => {
                    queue_again(&mut live.job);
                    if let Err(why) = inner.store.update(&live.job) {
                        return Err(io::Error::other(why));
                    }
                    queued.push(Order::Run(id));
                }
                Claim::OtherBoot => self.finish(inner, id, State::Lost),
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
    pub(crate) fn order_line(&self, order: &Order) -> Option<String> {
        let inner = &mut *self.lock();
        let (id, adopt) = match order {
            Order::Cancel(key) => return Some(json!({ "cancel": key }).to_string()),
            Order::Run(id) => (id, None),
            Order::Adopt(id, started) => {
                let reaper = json!({"pid": started.pid, "start_time": started.start_time});
                (id, Some(reaper))
            }
        };
        let job = &inner.live.get(id)?.job;
        if job.cancel && adopt.is_none() {
            self.finish(inner, *id, State::Cancelled);
            return None;
        }
        let key = job.key();
        let line = inner.store.line(*id).and_then(|line| {
            let mut line: JobLine = serde_json::from_str(&line).map_err(|why| why.to_string())?;
            line.insert("id".to_owned(), key.into());
            line.extend(adopt.map(|reaper| ("adopt".to_owned(), reaper)));
            Ok(Value::Object(line).to_string())
        });
        match line {
            Ok(line) => Some(line),
            Err(why) => {
                if let Some(live) = inner.live.get_mut(id) {
                    live.job.end.exit_text = Some(why);
                }
                self.finish(inner, *id, State::Unknown);
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
                if let Some(live) = inner.live.get_mut(&id) {
                    live.job.state = State::Running;
                    live.job.started_at = Some(now());
                    live.job.boot.clone_from(&self.claims.boot);
                    // The reaper's file need not survive a loss of power. If this fails, only that is not noticed.
                    let _ = inner.store.update(&live.job);
                }
            }
            "end" => self.note_end(inner, id, progress),
            _ => {}
        }
    }

    fn note_end(&self, inner: &mut Inner, id: u64, progress: Progress) {
        let Some(live) = inner.live.get_mut(&id) else {
            return;
        };
        match self.claim(&live.job) {
            Ok(Claim::Ended(ended)) => {
                if progress.timed_out {
                    live.job.end.exit_text = progress.end.exit_text;
                }
                self.finish_with(inner, id, &ended);
            }
            // The reaper writes how the job ended.
            Ok(Claim::Running(_)) | Err(_) => {}
            Ok(claim) if claim == Claim::Free || progress.timed_out => {
                live.job.end = progress.end;
                self.finish(inner, id, State::Ended);
            }
            Ok(_) => self.finish(inner, id, State::Unknown),
        }
    }

    fn finish_with(&self, inner: &mut Inner, id: u64, ended: &Ending) {
        if let Some(Live { job, .. }) = inner.live.get_mut(&id) {
            let exit_text = job.end.exit_text.take();
            job.end = End {
                exit: ended.exit,
                signal: ended.signal,
                exit_text,
                cpu_s: Some(ended.user_s + ended.system_s),
                max_rss_bytes: ended.max_rss_bytes,
            };
            job.started_at = Some(ended.started_at);
            job.ended_at = Some(ended.ended_at);
        }
        self.finish(inner, id, State::Ended);
    }

    /// Writes that a job is over, and wakes those who wait for it. A job that a user wanted to end counts as cancelled.
    fn finish(&self, inner: &mut Inner, id: u64, state: State) {
        let Some(mut live) = inner.live.remove(&id) else {
            return;
        };
        let job = &mut live.job;
        job.state = if job.cancel { State::Cancelled } else { state };
        job.ended_at.get_or_insert_with(now);
        self.record(inner, live);
        if inner.draining && inner.live.is_empty() {
            inner.orders = None;
        }
        self.changed.notify_all();
    }

    /// Writes a job that is over. Until that succeeds, the files of its reaper stay.
    fn record(&self, inner: &mut Inner, live: Live) {
        match inner.store.update(&live.job) {
            Ok(()) => self.claims.forget(&live.job.key(), live.has_late_reaper),
            Err(_) => drop(inner.unrecorded.insert(live.job.id, live)),
        }
    }

    /// Tries again what could not be written, and looks for ends that the worker did not report.
    pub(crate) fn tidy(&self) {
        let inner = &mut *self.lock();
        for (_, live) in std::mem::take(&mut inner.unrecorded) {
            self.record(inner, live);
        }
        for key in self.claims.ended() {
            if let Some(id) = find(&inner.live, &key)
                && let Ok(Claim::Ended(ended)) = self.claims.look(&key)
            {
                self.finish_with(inner, id, &ended);
            }
        }
    }

    /// Answers any request but one to wait.
    pub(crate) fn answer(&self, request: Request) -> Answer {
        let answer = match request {
            Request::Submit(lines) => self.submit(lines).map(|ids| Answer::Ids { ids }),
            Request::Status(select) => self.status(&select),
            Request::Cancel(ids) => {
                let cancelled = self.cancel(&ids);
                cancelled.map(|cancelled| Answer::Cancelled { cancelled })
            }
            Request::Rerun(ids) => self.rerun(&ids).map(|()| Answer::Ids { ids }),
            Request::Drain(_) | Request::Wait(_) => {
                self.drain();
                Ok(Answer::Draining { draining: true })
            }
        };
        answer.unwrap_or_else(|error| Answer::Error { error })
    }

    fn submit(&self, lines: Vec<JobLine>) -> Result<Vec<u64>, String> {
        let mut jobs = Vec::new();
        for (number, line) in (1..).zip(lines) {
            let job = self.queued(line);
            jobs.push(job.map_err(|why| format!("job {number}: {why}"))?);
        }
        let inner = &mut *self.lock();
        if inner.draining {
            return Err(DRAINING.to_owned());
        }
        inner.store.add(&mut jobs)?;
        let mut ids = Vec::new();
        for (job, _) in jobs {
            ids.push(job.id);
            inner.add(job);
        }
        Ok(ids)
    }

    /// A job for a line. It has no number yet.
    fn queued(&self, line: JobLine) -> Result<(Job, String), String> {
        if let Some(key) = RESERVED.iter().find(|key| line.contains_key(**key)) {
            return Err(format!("the queue sets `{key}`; leave it out"));
        }
        let line = Value::Object(line).to_string();
        let described = (self.describe)(&line)?;
        let job = Job {
            id: 0,
            attempt: 1,
            name: described.name,
            command: described.command,
            state: State::Queued,
            cancel: false,
            boot: None,
            submitted_at: now(),
            started_at: None,
            ended_at: None,
            end: End::default(),
            out: Default::default(),
            err: Default::default(),
        };
        Ok((job, line))
    }

    fn status(&self, select: &Select) -> Result<Answer, String> {
        let inner = self.lock();
        let jobs = if !select.ids.is_empty() {
            let jobs = select.ids.iter().map(|&id| self.job(&inner, id));
            jobs.collect::<Result<Vec<Job>, String>>()?
        } else if select.all {
            let jobs = inner.store.all()?.into_iter();
            let newest = jobs.map(|job| inner.newest(job.id).cloned().unwrap_or(job));
            newest.map(|job| self.with_files(job)).collect()
        } else {
            let jobs = inner.live.values();
            jobs.map(|live| self.with_files(live.job.clone())).collect()
        };
        let service = Service {
            pid: std::process::id(),
            version: self.version.to_owned(),
            draining: inner.draining,
            worker_pid: inner.worker,
        };
        Ok(Answer::Status { service, jobs })
    }

    /// A job, whether it is over or not.
    fn job(&self, inner: &Inner, id: u64) -> Result<Job, String> {
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
    fn with_files(&self, mut job: Job) -> Job {
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
            let Some(live) = inner.live.get_mut(&id) else {
                continue;
            };
            live.job.cancel = true;
            let (key, job) = (live.job.key(), live.job.clone());
            // On a full disk it ends as well; only if the service is killed too, it is forgotten.
            let _ = inner.store.update(&job);
            inner.order(Order::Cancel(key));
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
            if !matches!(job.state, State::Lost | State::Unknown) {
                return Err(format!(
                    "job {id}: {job}; only lost and unknown jobs run again. Submit it anew"
                ));
            }
            queue_again(&mut job);
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
    pub(crate) fn over(&self, ids: &[u64]) -> Result<Vec<Job>, String> {
        let mut inner = self.lock();
        if ids.iter().all(|id| inner.live.contains_key(id)) {
            let waited = self.changed.wait_timeout(inner, PERIOD);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let over = ids.iter().filter(|id| !inner.live.contains_key(id));
        over.map(|&id| self.job(&inner, id)).collect()
    }
}

const DRAINING: &str = "the service drains, and accepts no more jobs; start another with `cosched serve` once it has ended";

impl Inner {
    /// Adds a queued job, and sends it to the worker.
    fn add(&mut self, job: Job) {
        let id = job.id;
        let has_late_reaper = false;
        self.live.insert(
            id,
            Live {
                job,
                has_late_reaper,
            },
        );
        self.order(Order::Run(id));
    }

    /// Sends an order to the worker. Without one, the next start of a worker makes the same order.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }

    /// A job that the database may not have as it is now.
    fn newest(&self, id: u64) -> Option<&Job> {
        let live = self.live.get(&id).or_else(|| self.unrecorded.get(&id));
        live.map(|live| &live.job)
    }
}

fn queue_again(job: &mut Job) {
    job.attempt += 1;
    job.state = State::Queued;
    (job.boot, job.started_at, job.ended_at) = (None, None, None);
    job.end = End::default();
}

/// The live job with this key.
fn find(live: &BTreeMap<u64, Live>, key: &str) -> Option<u64> {
    let (id, _) = key.split_once('-')?;
    let id = id.parse().ok()?;
    (live.get(&id)?.job.key() == key).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::tests::{END_TEXT, start_text, write};
    use std::process::Command;
    use tempfile::TempDir;

    const WORKER: u32 = 1;

    fn describe(line: &str) -> Result<Described, String> {
        let line: Value = serde_json::from_str(line).unwrap();
        let command = line["command"].as_str().ok_or("there is no command")?;
        Ok(Described {
            name: "x".to_owned(),
            command: command.to_owned(),
        })
    }

    fn open(dir: &TempDir, reruns: bool) -> Queue {
        let folder = Folder::open(dir.path().join("queue")).unwrap();
        Queue::open(folder, describe, "1", reruns).unwrap()
    }

    /// What the next worker reads, as `run KEY`, `adopt KEY PID` and `cancel KEY`.
    fn orders(queue: &Queue) -> Vec<String> {
        let orders = queue.recover().unwrap().unwrap();
        queue.set_worker(Some(WORKER));
        taken(queue, &orders)
    }

    fn taken(queue: &Queue, orders: &Receiver<Order>) -> Vec<String> {
        let lines = orders
            .try_iter()
            .filter_map(|order| queue.order_line(&order));
        let mut told = Vec::new();
        for line in lines {
            let line: Value = serde_json::from_str(&line).unwrap();
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            told.push(match &line["adopt"]["pid"] {
                _ if line["cancel"].is_string() => format!("cancel {}", text("cancel")),
                Value::Null => format!("run {}", text("id")),
                pid => format!("adopt {} {pid}", text("id")),
            });
        }
        told
    }

    fn submit(queue: &Queue, count: usize) -> Vec<u64> {
        let line: JobLine = serde_json::from_str(r#"{"command": "make"}"#).unwrap();
        match queue.answer(Request::Submit(vec![line; count])) {
            Answer::Ids { ids } => ids,
            answer => panic!("{answer:?}"),
        }
    }

    fn refused(queue: &Queue, request: &str) -> String {
        match queue.answer(serde_json::from_str(request).unwrap()) {
            Answer::Error { error } => error,
            answer => panic!("{answer:?}"),
        }
    }

    /// The states of all jobs in words.
    fn states(queue: &Queue) -> String {
        let (all, ids) = (true, vec![]);
        let Answer::Status { jobs, .. } = queue.answer(Request::Status(Select { all, ids })) else {
            panic!("no status");
        };
        let words: Vec<String> = jobs.iter().map(Job::to_string).collect();
        words.join(", ")
    }

    fn claims(queue: &Queue) -> Vec<String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(queue.folder.jobs()).unwrap() {
            names.push(entry.unwrap().file_name().into_string().unwrap());
        }
        names.sort();
        names
    }

    fn start(queue: &Queue, key: &str, pid: u32, boot: Option<&str>) {
        let text = start_text(pid, boot);
        write(&queue.folder.jobs(), &format!("{key}.start"), &text);
    }

    fn end(queue: &Queue, key: &str) {
        write(&queue.folder.jobs(), &format!("{key}.end"), END_TEXT);
    }

    fn note(queue: &Queue, event: &str, key: &str) {
        let line = json!({"event": event, "id": key, "exit": 1, "exit_text": "no program"});
        queue.note(WORKER, line.to_string().as_bytes());
    }

    #[test]
    fn a_job_goes_to_the_worker_and_its_end_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        let receiver = queue.recover().unwrap().unwrap();
        queue.set_worker(Some(WORKER));
        assert_eq!(submit(&queue, 2), [1, 2]);
        assert_eq!(taken(&queue, &receiver), ["run 1-1", "run 2-1"]);
        assert_eq!(states(&queue), "queued, queued");
        start(&queue, "1-1", std::process::id(), None);
        note(&queue, "start", "1-1");
        assert_eq!(states(&queue), "running, queued");
        end(&queue, "1-1");
        note(&queue, "end", "1-1");
        note(&queue, "end", "2-1");
        assert_eq!(states(&queue), "exit 3, exit 1");
        assert!(claims(&queue).is_empty());
        drop(queue);
        assert_eq!(states(&open(&dir, false)), "exit 3, exit 1");
    }

    #[test]
    fn the_next_start_finds_out_what_became_of_all_jobs() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 6);
        let mut gone = Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let own = std::process::id();
        start(&queue, "1-1", own, None);
        start(&queue, "2-1", own, None);
        start(&queue, "3-1", gone.id(), None);
        start(&queue, "4-1", own, Some("another"));
        start(&queue, "6-1", own, None);
        end(&queue, "2-1");
        queue.answer(Request::Cancel(vec![6]));
        drop(queue);
        let queue = open(&dir, false);
        let adopt = [format!("adopt 1-1 {own}"), format!("adopt 6-1 {own}")];
        let [first, second] = &adopt;
        assert_eq!(orders(&queue), [first, second, "cancel 6-1", "run 5-1"]);
        let all = "running, exit 3, unknown, lost, queued, running";
        assert_eq!(states(&queue), all);
        // A reaper of the killed worker may come late, and must not run the job again.
        assert!(claims(&queue).contains(&"2-1.start".to_owned()));
        // The worker is killed alone.
        queue.set_worker(None);
        assert_eq!(orders(&queue), [first, second, "cancel 6-1", "run 5-1"]);
        end(&queue, "6-1");
        queue.tidy();
        assert_eq!(
            states(&queue),
            "running, exit 3, unknown, lost, queued, cancelled"
        );
    }

    #[test]
    fn lost_and_unknown_jobs_run_again_when_asked() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 3);
        start(&queue, "1-1", 1, Some("another"));
        assert_eq!(orders(&queue), ["run 2-1", "run 3-1"]);
        let why = refused(&queue, r#"{"rerun": [1, 2]}"#);
        assert!(why.contains("job 2: queued"), "{why}");
        assert_eq!(states(&queue), "lost, queued, queued");
        queue.answer(Request::Rerun(vec![1]));
        start(&queue, "2-1", 1, Some("another"));
        drop(queue);
        let queue = open(&dir, true);
        assert_eq!(orders(&queue), ["run 1-2", "run 2-2", "run 3-1"]);
        drop(queue);
        assert_eq!(orders(&open(&dir, false)).len(), 3);
    }

    /// The files of the reapers are gone, or empty.
    #[test]
    fn a_loss_of_power_starts_no_job_twice() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 3);
        orders(&queue);
        note(&queue, "start", "1-1");
        note(&queue, "start", "2-1");
        for id in [1, 2] {
            let mut job = queue.lock().live[&id].job.clone();
            job.boot = Some("another".to_owned());
            queue.lock().store.update(&job).unwrap();
        }
        write(&queue.folder.jobs(), "2-1.start", "");
        drop(queue);
        let queue = open(&dir, false);
        assert_eq!(orders(&queue), ["run 3-1"]);
        assert_eq!(states(&queue), "lost, lost, queued");
    }

    #[test]
    fn cancelled_jobs_never_start_and_stay_cancelled() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 3);
        let cancelled = Answer::Cancelled { cancelled: vec![1] };
        assert_eq!(queue.answer(Request::Cancel(vec![1])), cancelled);
        drop(queue);
        let queue = open(&dir, false);
        let receiver = queue.recover().unwrap().unwrap();
        queue.set_worker(Some(WORKER));
        queue.answer(Request::Cancel(vec![2]));
        assert_eq!(taken(&queue, &receiver), ["run 3-1", "cancel 2-1"]);
        start(&queue, "3-1", 1, Some("another"));
        queue.answer(Request::Cancel(vec![3]));
        note(&queue, "end", "3-1");
        assert_eq!(states(&queue), "cancelled, cancelled, cancelled");
        let none = Answer::Cancelled { cancelled: vec![] };
        assert_eq!(queue.answer(Request::Cancel(vec![1])), none);
        let why = refused(&queue, r#"{"cancel": [1, 9]}"#);
        assert!(why.contains("no job 9"), "{why}");
    }

    #[test]
    fn a_full_disk_refuses_jobs_and_loses_no_end() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 2);
        orders(&queue);
        start(&queue, "1-1", std::process::id(), None);
        end(&queue, "1-1");
        // An end of this length does not fit the pages that are there.
        let long =
            json!({"event": "end", "id": "2-1", "exit": 1, "exit_text": "x".repeat(1 << 16)});
        queue.lock().store.fill_disk(true);
        queue.note(WORKER, long.to_string().as_bytes());
        assert_eq!(states(&queue), "queued, exit 1");
        assert_eq!(queue.lock().unrecorded.len(), 1);
        let line = "x".repeat(1 << 16);
        let why = refused(
            &queue,
            &format!(r#"{{"submit": [{{"command": "{line}"}}]}}"#),
        );
        assert!(why.contains("the disk is full"), "{why}");
        queue.tidy();
        assert_eq!(queue.lock().unrecorded.len(), 1);
        queue.lock().store.fill_disk(false);
        queue.tidy();
        assert!(queue.lock().unrecorded.is_empty());
        assert_eq!(claims(&queue), ["1-1.start"]);
        drop(queue);
        assert_eq!(states(&open(&dir, false)), "exit 3, exit 1");
    }

    #[test]
    fn a_drained_queue_ends_with_its_last_job() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        let receiver = queue.recover().unwrap().unwrap();
        queue.set_worker(Some(WORKER));
        submit(&queue, 1);
        queue.answer(Request::Drain(true));
        let why = refused(&queue, r#"{"submit": [{"command": "make"}]}"#);
        assert!(why.contains("drains"), "{why}");
        assert_eq!(taken(&queue, &receiver), ["run 1-1"]);
        note(&queue, "end", "1-1");
        assert!(receiver.recv().is_err(), "the worker's input ends");
        assert!(queue.recover().unwrap().is_none());
    }

    #[test]
    fn what_can_not_be_queued_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        for (request, part) in [
            (
                r#"{"submit": [{"command": "a"}, {}]}"#,
                "job 2: there is no command",
            ),
            (
                r#"{"submit": [{"command": "a", "id": "1"}]}"#,
                "job 1: the queue sets `id`",
            ),
            (
                r#"{"submit": [{"command": "a", "adopt": {}}]}"#,
                "the queue sets `adopt`",
            ),
            (r#"{"status": {"ids": [5]}}"#, "there is no job 5"),
        ] {
            let why = refused(&queue, request);
            assert!(why.contains(part), "{why}");
        }
        assert_eq!(states(&queue), "");
        assert!(queue.awaited(vec![5]).is_err());
    }

    #[test]
    fn lines_of_a_dead_worker_do_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let queue = open(&dir, false);
        submit(&queue, 1);
        orders(&queue);
        queue.set_worker(None);
        note(&queue, "end", "1-1");
        queue.note(WORKER, b"\xff");
        assert_eq!(states(&queue), "queued");
    }
}
