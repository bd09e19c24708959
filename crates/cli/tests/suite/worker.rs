//! The worker of a node, driven through pipes as a coordinator does.

use crate::common::{PATIENCE, command, ended, until};
use cosched_core::JobEnd;
use cosched_nodes::protocol::{
    FramePiece, FrameReader, JobStream, NodeDescription, NodeOrder, WorkerFrame,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::{TempDir, tempdir};

type Whole = (WorkerFrame, Vec<u8>);

/// A worker, and its folder, in which its jobs run.
struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    frames: Receiver<Whole>,
    folder: TempDir,
}

impl Worker {
    fn start(own: &[&str], options: &[&str]) -> Worker {
        let folder = tempdir().expect("a folder");
        let tmp = folder.path().join("tmp");
        std::fs::create_dir(&tmp).expect("a folder");
        let words = [&["worker"], own, &["--"], options].concat();
        let mut child = command(folder.path(), &words)
            .env("TMPDIR", tmp)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it runs");
        let (to, frames) = channel();
        let output = child.stdout.take().expect("a pipe");
        std::thread::spawn(move || read(output, &to));
        Worker {
            input: child.stdin.take(),
            child,
            frames,
            folder,
        }
    }

    fn send(&mut self, order: &NodeOrder) {
        let input = self.input.as_mut().expect("an open input");
        input.write_all(&order.line()).expect("it reads");
    }

    fn job(&mut self, id: &str, command: &str) {
        let Value::Object(job) = json!({"id": id, "command": command}) else {
            unreachable!("an object")
        };
        self.send(&NodeOrder::Job(job));
    }

    /// The next frame.
    fn next(&self) -> Whole {
        self.frames.recv_timeout(PATIENCE).expect("a frame")
    }

    /// Waits for a frame, and returns those before it, and it.
    fn until(&self, is_it: impl Fn(&WorkerFrame) -> bool) -> Vec<Whole> {
        let mut all = Vec::new();
        loop {
            all.push(self.next());
            if is_it(&all[all.len() - 1].0) {
                return all;
            }
        }
    }

    fn node(&self) -> NodeDescription {
        match self.next().0 {
            WorkerFrame::Node(node) => node,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a job has started.
    fn started(&self, id: &str) {
        self.until(
            |frame| matches!(frame, WorkerFrame::Start { job, .. } if job.id.as_deref() == Some(id)),
        );
    }

    /// The frames until a job has ended.
    fn ended(&self, id: &str) -> Vec<Whole> {
        self.until(
            |frame| matches!(frame, WorkerFrame::End { job, .. } if job.id.as_deref() == Some(id)),
        )
    }

    /// All frames that are left. The worker has ended with this code.
    fn rest(&mut self, code: i32) -> Vec<Whole> {
        let mut rest = Vec::new();
        while let Ok(frame) = self.frames.recv_timeout(PATIENCE) {
            rest.push(frame);
        }
        assert_eq!(ended(&mut self.child).code(), Some(code));
        rest
    }

    /// The files of its jobs.
    fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for folder in entries(self.folder.path().join("tmp")) {
            files.extend(entries(folder));
        }
        files.retain(|file| matches!(file.extension(), Some(end) if end == "out" || end == "err"));
        files
    }

    fn has_temporary_folder(&self) -> bool {
        !entries(self.folder.path().join("tmp")).is_empty()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on whole frames.
fn read(mut output: ChildStdout, to: &Sender<Whole>) {
    let mut reader = FrameReader::default();
    let mut piece = vec![0; 1 << 16];
    let mut whole: Option<Whole> = None;
    loop {
        let got = output.read(&mut piece).expect("a pipe");
        if got == 0 {
            return;
        }
        let mut input = &piece[..got];
        while let Some(next) = reader.next(&mut input).expect("frames") {
            match next {
                FramePiece::Frame(frame) => whole = Some((*frame, Vec::new())),
                FramePiece::Bytes(bytes) => whole.as_mut().expect("a frame").1.extend(bytes),
            }
            let is_whole = |whole: &mut Whole| whole.0.bytes() == whole.1.len() as u64;
            if let Some(whole) = whole.take_if(is_whole) {
                // A test that has failed does not listen.
                let _ = to.send(whole);
            }
        }
    }
}

fn entries(folder: PathBuf) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// A word that no other process has in its command line.
fn mark() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("mark-{}-{number}", std::process::id())
}

/// Whether a process lives that has this word in its command line.
fn lives(mark: &str) -> bool {
    entries("/proc".into()).iter().any(|process| {
        let words = std::fs::read(process.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(mark)
    })
}

/// What a job has written to a stream.
fn output(frames: &[Whole], of: &str, on: JobStream) -> Vec<u8> {
    let mut all = Vec::new();
    for (frame, bytes) in frames {
        if let WorkerFrame::Output { id, stream, .. } = frame
            && id == of
            && *stream == on
        {
            assert!(!bytes.is_empty() && bytes.len() <= 64 << 10);
            all.extend(bytes);
        }
    }
    all
}

fn end(frames: &[Whole]) -> &JobEnd {
    match frames.last() {
        Some((WorkerFrame::End { how, .. }, _)) => how,
        other => panic!("{other:?}"),
    }
}

#[test]
fn three_jobs_and_the_node_s_files() {
    let mut worker = Worker::start(&[], &["--jobs", "1", "--order", "given"]);
    let node = worker.node();
    assert_eq!(
        (node.jobs, node.version.as_str()),
        (Some(1), env!("CARGO_PKG_VERSION"))
    );
    assert!(node.cpus > 0 && !node.host.is_empty());
    worker.job("a", "echo out; echo err >&2; exit 3");
    worker.send(&NodeOrder::Beat);
    worker.job("b", "true");
    worker.job("c", "kill -9 $$");
    let a = worker.ended("a");
    assert_eq!(output(&a, "a", JobStream::Out), b"out\n");
    assert_eq!(output(&a, "a", JobStream::Err), b"err\n");
    assert_eq!(
        (end(&a).exit, end(&a).exit_text.as_str()),
        (Some(3), "exit 3")
    );
    assert!(end(&a).user_s.is_some() && end(&a).end_s > end(&a).start_s);
    let b = worker.ended("b");
    assert!(
        !b.iter()
            .any(|(frame, _)| matches!(frame, WorkerFrame::Output { .. }))
    );
    assert_eq!(end(&worker.ended("c")).signal, Some(9));
    worker.send(&NodeOrder::End);
    let mut files: Vec<Whole> = Vec::new();
    for (frame, bytes) in worker.rest(1) {
        match (&frame, files.last_mut()) {
            (WorkerFrame::File { name, .. }, Some((WorkerFrame::File { name: last, .. }, all)))
                if name == last =>
            {
                all.extend(bytes);
            }
            (WorkerFrame::File { .. }, _) => files.push((frame, bytes)),
            _ => {}
        }
    }
    let [
        (WorkerFrame::File { name: first, .. }, record),
        (WorkerFrame::File { name: second, .. }, series),
    ] = &files[..]
    else {
        panic!("{files:?}")
    };
    assert_eq!(
        (first.as_str(), second.as_str()),
        ("run.json", "series.jsonl")
    );
    let record: Value = serde_json::from_slice(record).expect("JSON");
    assert_eq!(
        (&record["totals"]["jobs"], &record["run_id"]),
        (&3.into(), &node.run_id.into())
    );
    assert!(series.ends_with(b"]\n"));
    assert!(!worker.has_temporary_folder());
}

#[test]
fn any_bytes_come_as_they_are() {
    for how in ["group", "live", "tag", "none"] {
        let mut worker = Worker::start(&[], &["--output", how]);
        let much = "head -c 300000 /dev/zero | tr '\\0' '\\377'";
        worker.job("much", &format!("{much}; printf 'no end' >&2"));
        let frames = worker.ended("much");
        assert!(
            output(&frames, "much", JobStream::Out) == [0xff; 300_000],
            "{how}"
        );
        assert_eq!(output(&frames, "much", JobStream::Err), b"no end");
    }
}

#[test]
fn output_comes_at_once_if_that_is_wanted() {
    let mut worker = Worker::start(&[], &["--output", "live"]);
    worker.job(
        "a",
        "printf begin; while [ ! -e go ]; do sleep 0.01; done; echo end",
    );
    let begin = worker.until(|frame| matches!(frame, WorkerFrame::Output { .. }));
    assert_eq!(output(&begin, "a", JobStream::Out), b"begin");
    std::fs::write(worker.folder.path().join("go"), "").expect("a file");
    assert_eq!(output(&worker.ended("a"), "a", JobStream::Out), b"end\n");
}

#[test]
fn jobs_are_cancelled_whether_they_run_or_wait() {
    let mark = mark();
    let mut worker = Worker::start(&[], &["--jobs", "1", "--order", "given"]);
    worker.job("a", &format!("sleep 1000; : {mark}"));
    worker.job("b", "true");
    worker.started("a");
    worker.send(&NodeOrder::Cancel("b".to_owned()));
    let b = worker.ended("b");
    assert_eq!(end(&b).start_s, None);
    worker.job("c", "true");
    for id in ["a", "c"] {
        worker.send(&NodeOrder::GiveBack(id.to_owned()));
    }
    assert!(end(&worker.ended("c")).exit_text.starts_with("not started"));
    assert!(lives(&mark), "what has begun is kept");
    worker.send(&NodeOrder::Cancel("a".to_owned()));
    assert_eq!(end(&worker.ended("a")).signal, Some(15));
    assert!(!lives(&mark));
    worker.job("c", "true");
    assert_eq!(end(&worker.ended("c")).exit, Some(0), "it may come back");
}

#[test]
fn a_worker_that_gets_no_more_jobs_ends_with_the_last() {
    let mut worker = Worker::start(&["--silence", "600"], &[]);
    worker.job("a", "while [ ! -e go ]; do sleep 0.01; done");
    worker.started("a");
    worker.send(&NodeOrder::End);
    // The end of the input is no loss of the coordinator any more.
    worker.input = None;
    std::fs::write(worker.folder.path().join("go"), "").expect("a file");
    assert_eq!(end(&worker.ended("a")).exit, Some(0));
    let rest = worker.rest(0);
    assert!(matches!(rest.last(), Some((WorkerFrame::File { .. }, _))));
}

#[test]
fn an_idle_node_shows_that_it_lives() {
    let worker = Worker::start(&[], &[]);
    worker.until(|frame| *frame == WorkerFrame::Beat);
}

/// A job that SIGTERM ends, and one that it does not end.
fn start_stubborn(worker: &mut Worker, mark: &str) {
    worker.job("mild", &format!("sleep 1000; : {mark}"));
    let stubborn = format!("trap '' TERM; while :; do sleep 1000; done; : {mark}");
    worker.job("stubborn", &format!("sh -c \"{stubborn}\" & wait"));
    worker.until(|frame| matches!(frame, WorkerFrame::Start { job, .. } if job.job == 2));
    assert!(lives(mark));
}

#[test]
fn jobs_end_when_the_coordinator_is_gone() {
    let both = ["--jobs", "2", "--order", "given", "--grace", "0.3"];
    for is_closed in [false, true] {
        let mark = mark();
        let silence = if is_closed { "600" } else { "1" };
        let mut worker = Worker::start(&["--silence", silence], &both);
        start_stubborn(&mut worker, &mark);
        if is_closed {
            worker.input = None;
        }
        let rest = worker.rest(143);
        assert!(!lives(&mark));
        // The jobs were ended with the run: they start again elsewhere.
        let mut frames = rest.iter().map(|(frame, _)| frame);
        assert!(!frames.any(|frame| matches!(frame, WorkerFrame::End { .. })));
        let mut frames = rest.iter().map(|(frame, _)| frame);
        let has_file = frames.any(|frame| matches!(frame, WorkerFrame::File { .. }));
        assert!(has_file, "the run has ended in good order");
        assert!(!worker.has_temporary_folder());
    }
}

#[test]
fn no_job_is_left_or_frozen_when_the_run_or_the_worker_is_killed() {
    let options = [
        "--policy",
        "round-robin",
        "--param",
        "quantum_s=0.02",
        "--jobs",
        "6",
    ];
    for freeze in ["auto", "signals"] {
        for kills_worker in [false, true] {
            let mark = mark();
            let mut worker = Worker::start(&[], &[&options[..], &["--freeze", freeze]].concat());
            let node = worker.node();
            for id in 0..4 {
                worker.job(&id.to_string(), &format!("while :; do :; done; : {mark}"));
            }
            start_stubborn(&mut worker, &mark);
            worker.until(|frame| matches!(frame, WorkerFrame::Progress(now) if now.waiting > 0));
            let run = node.run_id.split('-').next().expect("its process");
            let run: i32 = run.parse().expect("a number");
            if kills_worker {
                worker.child.kill().expect("a child");
            } else {
                let run = Pid::from_raw(run).expect("a process");
                kill_process(run, Signal::KILL).expect("a live run");
                assert_eq!(ended(&mut worker.child).code(), Some(137));
            }
            until("all jobs are gone", || !lives(&mark));
            until("their files are gone", || !worker.has_temporary_folder());
        }
    }
}

#[test]
fn many_jobs_leave_no_files() {
    let mut worker = Worker::start(&[], &[]);
    for id in 0..300 {
        worker.job(&id.to_string(), &format!("echo {id}"));
    }
    let mut ends = 0;
    while ends < 300 {
        ends += usize::from(matches!(worker.next().0, WorkerFrame::End { .. }));
    }
    assert!(worker.files().is_empty(), "{:?}", worker.files());
    worker.send(&NodeOrder::End);
    worker.rest(0);
    assert!(!worker.has_temporary_folder());
}

#[test]
fn what_makes_no_sense_is_refused() {
    for option in [
        "--retries=2",
        "--solo=measure",
        "--on=xeon-e5645",
        "--resume=here",
    ] {
        let mut worker = Worker::start(&[], &[option]);
        assert_eq!(worker.rest(2), []);
    }
    let mut worker = Worker::start(&[], &[]);
    let input = worker.input.as_mut().expect("a pipe");
    input.write_all(b"touch here\n").expect("it reads");
    worker.rest(1);
    let mut told = String::new();
    let errors = worker.child.stderr.as_mut().expect("a pipe");
    errors.read_to_string(&mut told).expect("text");
    assert!(
        told.contains("expected an order, found `touch here`"),
        "{told}"
    );
    assert!(!worker.folder.path().join("here").exists());
}
