use super::*;
use crate::claim::tests::{END_TEXT, START_AT, start_text, write};
use crate::protocol::{JobSelection, JobSubmission, QueueAnswer, QueueRequest};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::Receiver;
use tempfile::TempDir;

const WORKER: u32 = 1;

fn describe(line: &str) -> Result<(String, String), String> {
    let line: Value = serde_json::from_str(line).unwrap();
    let command = line["command"].as_str().ok_or("there is no command")?;
    Ok(("x".to_owned(), command.to_owned()))
}

fn open(dir: &TempDir) -> JobQueue {
    let folder = QueueFolder::open(dir.path().join("queue")).unwrap();
    JobQueue::open(&folder, describe, "1").unwrap()
}

/// What the next worker reads, as `run KEY`, `adopt KEY PID` and `cancel KEY`.
fn orders(queue: &JobQueue) -> Vec<String> {
    let orders = queue.recover().unwrap().unwrap();
    queue.set_worker(Some(WORKER));
    taken(queue, &orders)
}

fn taken(queue: &JobQueue, orders: &Receiver<WorkerOrder>) -> Vec<String> {
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

fn submit(queue: &JobQueue, count: usize) -> Vec<u64> {
    submit_as(queue, None, count)
}

fn submit_as(queue: &JobQueue, token: Option<&str>, count: usize) -> Vec<u64> {
    let line = serde_json::from_str(r#"{"command": "make"}"#).unwrap();
    let submission = JobSubmission {
        token: token.map(str::to_owned),
        jobs: vec![line; count],
        ..JobSubmission::default()
    };
    match queue.answer(QueueRequest::Submit(submission)) {
        QueueAnswer::Ids { ids } => ids,
        answer => panic!("{answer:?}"),
    }
}

fn refused(queue: &JobQueue, request: &str) -> String {
    match queue.answer(serde_json::from_str(request).unwrap()) {
        QueueAnswer::Error { error } => error,
        answer => panic!("{answer:?}"),
    }
}

/// The states of all jobs in words.
fn states(queue: &JobQueue) -> String {
    let (all, ids) = (true, vec![]);
    let QueueAnswer::Status { jobs, .. } =
        queue.answer(QueueRequest::Status(JobSelection { all, ids }))
    else {
        panic!("no status");
    };
    let words: Vec<String> = jobs.iter().map(QueuedJob::to_string).collect();
    words.join(", ")
}

fn claims(queue: &JobQueue) -> Vec<String> {
    names(&queue.folder.claims())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        names.push(entry.unwrap().file_name().into_string().unwrap());
    }
    names.sort();
    names
}

fn start(queue: &JobQueue, key: &str, pid: u32, boot: Option<&str>) {
    let text = start_text(pid, boot);
    write(&queue.folder.claims(), &format!("{key}.start"), &text);
}

/// The job has ended just now.
fn end(queue: &JobQueue, key: &str) {
    let now = unix_time().as_secs_f64().to_string();
    let text = END_TEXT.replace("1000000002.5", &now);
    write(&queue.folder.claims(), &format!("{key}.end"), &text);
}

/// A worker that has lost its way to the service reports nothing.
#[test]
fn an_end_that_nobody_reports_counts_after_a_while() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 1);
    orders(&queue);
    start(&queue, "1-1", std::process::id(), None);
    note(&queue, "start", "1-1");
    write(&queue.folder.claims(), "1-1.end", END_TEXT);
    queue.tidy();
    assert_eq!(states(&queue), "exit 3");
}

fn note(queue: &JobQueue, event: &str, key: &str) {
    let line = json!({"event": event, "id": key, "exit": 1, "exit_text": "exit 1"});
    queue.note(WORKER, line.to_string().as_bytes());
}

#[test]
fn a_job_goes_to_the_worker_and_its_end_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
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
    assert_eq!(states(&open(&dir)), "exit 3, exit 1");
}

#[test]
fn the_next_start_finds_out_what_became_of_all_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
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
    queue.answer(QueueRequest::Cancel(vec![6]));
    drop(queue);
    let queue = open(&dir);
    let adopt = [format!("adopt 1-1 {own}"), format!("adopt 6-1 {own}")];
    let [first, second] = &adopt;
    assert_eq!(orders(&queue), [first, second, "cancel 6-1", "run 5-1"]);
    let all = "running, exit 3, unknown, lost, queued, running";
    assert_eq!(states(&queue), all);
    // A reaper of the killed worker may come late, and must not run the job again.
    assert!(claims(&queue).contains(&"2-1.start".to_owned()));
    note(&queue, "start", "1-1");
    let started = queue.lock().live[&1].started_at;
    assert_eq!(started, Some(START_AT), "as its reaper says");
    // The worker is killed alone.
    queue.set_worker(None);
    assert_eq!(orders(&queue), [first, second, "cancel 6-1", "run 5-1"]);
    end(&queue, "6-1");
    queue.tidy();
    assert!(
        states(&queue).ends_with(", running"),
        "the worker says more"
    );
    std::fs::remove_file(queue.folder.claims().join("6-1.end")).unwrap();
    note(&queue, "end", "6-1");
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
    let queue = open(&dir);
    submit(&queue, 3);
    start(&queue, "1-1", 1, Some("another"));
    assert_eq!(orders(&queue), ["run 2-1", "run 3-1"]);
    let why = refused(&queue, r#"{"rerun": [1, 2]}"#);
    assert!(why.contains("job 2: queued"), "{why}");
    assert_eq!(states(&queue), "lost, queued, queued");
    queue.answer(QueueRequest::Rerun(vec![1]));
    start(&queue, "2-1", 1, Some("another"));
    drop(queue);
    let queue = open(&dir);
    assert_eq!(orders(&queue), ["run 1-2", "run 3-1"]);
    assert_eq!(states(&queue), "queued, lost, queued");
    drop(queue);
    assert_eq!(orders(&open(&dir)).len(), 2);
}

/// The files of the reapers are gone, or empty.
#[test]
fn a_loss_of_power_starts_no_job_twice() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 3);
    orders(&queue);
    note(&queue, "start", "1-1");
    note(&queue, "start", "2-1");
    for id in [1, 2] {
        let mut job = queue.lock().live[&id].clone();
        job.boot = Some("another".to_owned());
        queue.lock().store.update(&job).unwrap();
    }
    write(&queue.folder.claims(), "2-1.start", "");
    drop(queue);
    let queue = open(&dir);
    assert_eq!(orders(&queue), ["run 3-1"]);
    assert_eq!(states(&queue), "lost, lost, queued");
}

#[test]
fn cancelled_jobs_never_start_and_stay_cancelled() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 3);
    let cancelled = QueueAnswer::Cancelled { cancelled: vec![1] };
    assert_eq!(queue.answer(QueueRequest::Cancel(vec![1])), cancelled);
    drop(queue);
    let queue = open(&dir);
    let receiver = queue.recover().unwrap().unwrap();
    queue.set_worker(Some(WORKER));
    queue.answer(QueueRequest::Cancel(vec![2]));
    assert_eq!(taken(&queue, &receiver), ["run 3-1", "cancel 2-1"]);
    start(&queue, "3-1", 1, Some("another"));
    queue.answer(QueueRequest::Cancel(vec![3]));
    note(&queue, "end", "3-1");
    assert_eq!(states(&queue), "cancelled, cancelled, cancelled");
    let none = QueueAnswer::Cancelled { cancelled: vec![] };
    assert_eq!(queue.answer(QueueRequest::Cancel(vec![1])), none);
    let why = refused(&queue, r#"{"cancel": [1, 9]}"#);
    assert!(why.contains("no job 9"), "{why}");
}

#[test]
fn a_full_disk_refuses_jobs_and_loses_no_end() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 2);
    orders(&queue);
    start(&queue, "1-1", std::process::id(), None);
    note(&queue, "end", "1-1");
    end(&queue, "1-1");
    // An end of this length does not fit the pages that are there.
    let why = format!("not started: {}", "x".repeat(1 << 16));
    let long = json!({"event": "end", "id": "2-1", "exit": 127, "exit_text": why});
    queue.lock().store.fill_disk(true);
    queue.note(WORKER, long.to_string().as_bytes());
    assert_eq!(states(&queue), "queued, not started");
    assert_eq!(queue.lock().unrecorded.len(), 1);
    let line = "x".repeat(1 << 16);
    let why = refused(
        &queue,
        &format!(r#"{{"submit": {{"jobs": [{{"command": "{line}"}}]}}}}"#),
    );
    assert!(why.contains("the disk is full"), "{why}");
    queue.tidy();
    assert_eq!(queue.lock().unrecorded.len(), 1);
    queue.lock().store.fill_disk(false);
    queue.tidy();
    assert!(queue.lock().unrecorded.is_empty());
    assert_eq!(claims(&queue), ["1-1.start"]);
    drop(queue);
    assert_eq!(states(&open(&dir)), "exit 3, not started");
}

#[test]
fn jobs_that_ended_a_month_ago_are_forgotten_with_their_output() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 3);
    for id in 1..=3 {
        let mut job = queue.lock().live[&id].clone();
        let days = if id == 2 { 29.0 } else { 31.0 };
        job.state = QueuedJobState::Ended;
        job.attempt = 2;
        job.ended_at = Some(unix_time().as_secs_f64() - days * 86_400.0);
        queue.lock().store.update(&job).unwrap();
        for attempt in 1..=2 {
            write(&queue.folder.logs(), &format!("{id}-{attempt}.out"), "x");
        }
    }
    drop(queue);
    let queue = open(&dir);
    queue.forget_old();
    let ids = |jobs: Vec<QueuedJob>| -> Vec<u64> { jobs.iter().map(|job| job.id).collect() };
    assert_eq!(ids(queue.lock().store.all().unwrap()), [2, 3]);
    let logs = || names(&queue.folder.logs());
    assert_eq!(logs(), ["2-1.out", "2-2.out", "3-1.out", "3-2.out"]);
    assert_eq!(submit(&queue, 1), [4], "no number is used again");
    queue.forget_old();
    assert_eq!(logs(), ["2-1.out", "2-2.out"]);
}

#[test]
fn a_drained_queue_ends_with_its_last_job() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    let receiver = queue.recover().unwrap().unwrap();
    queue.set_worker(Some(WORKER));
    submit(&queue, 1);
    queue.answer(QueueRequest::Drain(true));
    let why = refused(&queue, r#"{"submit": {"jobs": [{"command": "make"}]}}"#);
    assert!(why.contains("drains"), "{why}");
    assert_eq!(taken(&queue, &receiver), ["run 1-1"]);
    note(&queue, "end", "1-1");
    assert!(receiver.recv().is_err(), "the worker's input ends");
    assert!(queue.recover().unwrap().is_none());
}

#[test]
fn what_can_not_be_queued_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    for (request, part) in [
        (
            r#"{"submit": {"jobs": [{"command": "a"}, {}]}}"#,
            "job 2: there is no command",
        ),
        (
            r#"{"submit": {"jobs": [{"command": "a", "id": "1"}]}}"#,
            "job 1: the queue sets `id`",
        ),
        (
            r#"{"submit": {"common": {"adopt": {}}, "jobs": [{"command": "a"}]}}"#,
            "common: the queue sets `adopt`",
        ),
        (
            r#"{"submit": {"token": "", "jobs": [{"command": "a"}]}}"#,
            "a token has 1 to 100",
        ),
        (r#"{"submitted": "x"}"#, "no request with the token x"),
        (r#"{"status": {"ids": [5]}}"#, "there is no job 5"),
        (r#"{"drain": false}"#, "can't be taken back"),
        (r#"{"wait": []}"#, "does not answer a wait"),
    ] {
        let why = refused(&queue, request);
        assert!(why.contains(part), "{why}");
    }
    assert!(queue.awaited(vec![5]).is_err());
    assert_eq!(states(&queue), "");
    assert_eq!(submit(&queue, 1), [1], "nothing has drained the queue");
}

#[test]
fn lines_of_a_dead_worker_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 1);
    orders(&queue);
    queue.set_worker(None);
    note(&queue, "end", "1-1");
    queue.note(WORKER, b"\xff");
    assert_eq!(states(&queue), "queued");
}

/// Numbers begin again in a new database, and the files of the old one's jobs mean nothing there.
#[test]
fn a_new_database_knows_nothing_of_the_jobs_of_another() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    submit(&queue, 2);
    orders(&queue);
    start(&queue, "1-1", std::process::id(), None);
    end(&queue, "1-1");
    write(&queue.folder.logs(), "1-1.out", "old");
    let old = queue.folder.clone();
    drop(queue);
    let away = dir.path().join("away");
    std::fs::rename(dir.path().join("queue/queue.db"), away).unwrap();
    let queue = open(&dir);
    assert_eq!(states(&queue), "");
    assert_eq!(submit(&queue, 2), [1, 2]);
    assert_eq!(orders(&queue), ["run 1-1", "run 2-1"]);
    queue.tidy();
    assert_eq!(states(&queue), "queued, queued");
    assert!(names(&queue.folder.logs()).is_empty());
    let folder = QueueFolder::open(dir.path().join("queue")).unwrap();
    let others = folder.of_other_databases(&queue.folder);
    assert_eq!(
        others.iter().map(JobsFolder::path).collect::<Vec<_>>(),
        [old.path()]
    );
}

/// The service died before it answered, and another one is asked.
#[test]
fn a_request_that_is_repeated_queues_nothing_twice() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    assert_eq!(submit_as(&queue, Some("a"), 2), [1, 2]);
    assert_eq!(submit_as(&queue, Some("b"), 1), [3]);
    drop(queue);
    let queue = open(&dir);
    queue.answer(QueueRequest::Drain(true));
    assert_eq!(submit_as(&queue, Some("a"), 2), [1, 2]);
    let asked = queue.answer(QueueRequest::Submitted("b".to_owned()));
    assert_eq!(asked, QueueAnswer::Ids { ids: vec![3] });
    assert_eq!(orders(&queue), ["run 1-1", "run 2-1", "run 3-1"]);
}

#[test]
fn a_job_has_what_its_request_says_of_all_unless_it_says_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let queue = open(&dir);
    let common = json!({"cwd": "/a", "env": {"A": "1", "B": "1"}});
    let jobs = json!([{"command": "a"}, {"command": "b", "cwd": "/b", "env": {"B": "2"}}]);
    let request = json!({"submit": {"common": common, "jobs": jobs}});
    queue.answer(serde_json::from_value(request).unwrap());
    let lines = [1, 2].map(|id| -> Value {
        serde_json::from_str(&queue.order_line(&WorkerOrder::Run(id)).unwrap()).unwrap()
    });
    assert_eq!(
        lines[0],
        json!({"id": "1-1", "command": "a", "cwd": "/a", "env": {"A": "1", "B": "1"}})
    );
    assert_eq!(
        lines[1],
        json!({"id": "2-1", "command": "b", "cwd": "/b", "env": {"A": "1", "B": "2"}})
    );
}
