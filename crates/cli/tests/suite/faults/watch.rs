//! Watching a run never holds it up, whatever is written to its pipe of requests.

use super::support::{MixBuilder, TestRun, cosched, freezers, until};
use crate::common::{PATIENCE, runs_dir};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::time::Instant;

const LINES: u32 = 20;

/// A file of the run in the user's runtime folder.
fn file(run: &TestRun, kind: &str) -> Option<PathBuf> {
    let list = super::seen::list(runs_dir(), &run.token);
    let file = list.with_file_name(format!("{kind}-{}", run.token));
    Some(file).filter(|path| path.exists())
}

fn state(run: &TestRun) -> Value {
    let text = std::fs::read(file(run, "status").expect("a state")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

fn requests(run: &TestRun) -> File {
    let path = file(run, "requests").expect("a pipe");
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut how = OpenOptions::new();
    how.write(true)
        .custom_flags(nonblocking)
        .open(path)
        .unwrap()
}

fn start(freeze: &str) -> TestRun {
    let run = TestRun::start(
        MixBuilder::default().counting(4, LINES),
        freeze,
        &["--jobs", "4"],
    );
    run.until_marked(2);
    until("there is a state", || file(&run, "status").is_some());
    run
}

/// The run went as if nobody had watched.
fn undisturbed(mut run: TestRun) {
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert!(
        !run.stderr().contains("can't show this run"),
        "{}",
        run.stderr()
    );
    run.logs_complete(4, LINES, true);
    run.nothing_left();
    for kind in ["status", "next-status", "requests"] {
        assert_eq!(file(&run, kind), None, "it goes with the run");
    }
}

#[test]
fn the_state_of_a_run_is_its_users_alone_and_always_whole() {
    for freeze in freezers() {
        let run = start(freeze);
        for kind in ["status", "requests"] {
            let meta = file(&run, kind).unwrap().metadata().unwrap();
            assert_eq!(meta.permissions().mode() & 0o777, 0o600);
            assert_eq!(meta.file_type().is_fifo(), kind == "requests");
        }
        let first = state(&run)["elapsed_s"].as_f64();
        let end = Instant::now() + PATIENCE;
        // Without a pause: it is read while the run replaces it, too.
        while state(&run)["elapsed_s"].as_f64() == first {
            let told = state(&run);
            assert_eq!(told["run"]["run_id"], run.token.as_str());
            assert_eq!(told["totals"]["jobs"], 4);
            assert!(Instant::now() < end, "there is no newer state");
        }
        undisturbed(run);
    }
}

#[test]
fn garbage_in_the_pipe_is_survived() {
    for freeze in freezers() {
        let run = start(freeze);
        let mut pipe = requests(&run);
        for piece in [
            &b"\0\xff\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            &[b'x'; 60_000],
            b"{\"end\":\"coffee\"}\n",
            b"{\"end\":99,\"name\":\"count-1\"}\n",
            b"{",
        ] {
            // A full pipe refuses it.
            let _ = pipe.write_all(piece);
        }
        drop(pipe);
        assert_eq!(state(&run)["run"]["pid"], run.pid);
        undisturbed(run);
    }
}

/// A job that a user ends gets SIGTERM, and SIGKILL after the grace period. All others go on.
#[test]
fn a_job_is_ended_from_outside() {
    for freeze in freezers() {
        let deaf = "trap '' TERM; echo deaf; while :; do :; done";
        let mix = MixBuilder::default()
            .counting(3, LINES)
            .shell("deaf", deaf)
            .shell("endless", "while :; do :; done");
        let mut run = TestRun::start(mix, freeze, &["--jobs", "5", "--grace", "0.2"]);
        run.until_marked(5);
        until("the job is deaf", || run.output("deaf").contains("deaf"));
        until("there is a state", || file(&run, "status").is_some());
        let jobs = state(&run)["jobs"].as_array().unwrap().clone();
        let number =
            |name: &str| jobs.iter().find(|job| job["name"] == name).unwrap()["job"].clone();
        let mut pipe = requests(&run);
        let mut wish = |job: &Value, name: &str| {
            let line = serde_json::json!({"end": job, "name": name});
            pipe.write_all(format!("{line}\n").as_bytes()).unwrap();
        };
        // Another name than that of the job of this number: none is meant.
        wish(&number("count-1"), "endless");
        ["deaf", "endless"]
            .into_iter()
            .for_each(|name| wish(&number(name), name));
        assert_eq!(run.code(), Some(1), "{}", run.stderr());
        run.logs_complete(3, LINES, true);
        let record: Value = serde_json::from_str(&run.file("logs/run.json")).unwrap();
        let ended = |name: &str| {
            let job = record["jobs"]
                .as_array()
                .unwrap()
                .iter()
                .find(|job| job["name"] == name)
                .unwrap();
            (
                job["ended_by_user"].as_bool(),
                job["exit_text"].as_str().unwrap_or_default().to_owned(),
            )
        };
        assert_eq!(ended("endless"), (Some(true), "SIGTERM".to_owned()));
        assert_eq!(ended("deaf"), (Some(true), "SIGKILL".to_owned()));
        assert_eq!(ended("count-1"), (None, "exit 0".to_owned()));
        assert!(
            run.stderr().contains("endless is ended by the user"),
            "{}",
            run.stderr()
        );
        assert!(
            run.stderr().contains("3 succeeded, 2 cancelled in "),
            "{}",
            run.stderr()
        );
        run.nothing_left();
    }
}

#[test]
fn files_of_a_killed_run_are_removed() {
    for freeze in freezers() {
        let mut run = start(freeze);
        let left = ["status", "requests"].map(|kind| file(&run, kind).unwrap());
        run.send(Signal::KILL);
        assert_eq!(run.code(), None);
        let told = cosched()
            .args(["status", "--format", "json"])
            .output()
            .unwrap();
        assert!(told.status.success());
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        let runs = told["runs"].as_array().unwrap();
        assert!(
            !runs
                .iter()
                .any(|known| known["run_id"] == run.token.as_str()),
            "{told}"
        );
        assert!(
            left.iter().all(|path| !path.exists()),
            "whoever finds them removes them"
        );
        run.all_ended();
    }
}

/// Something else has the name of the pipe: there is a warning, and the run goes on.
#[test]
fn without_the_files_the_run_goes_on() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let by = "umask 077; start=$(cut -d' ' -f22 /proc/$$/stat); ns=$(readlink /proc/$$/ns/pid | tr -dc 0-9); \
                  mkdir -p \"$COSCHED_RUNS_DIR/cosched-$(id -u)/requests-$$-$start-$ns\"; exec \"$0\" \"$@\"";
        let mix = MixBuilder::default().counting(4, LINES);
        let mut run = TestRun::start_by(&["sh", "-c", by], dir, mix, freeze, &["--jobs", "4"]);
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(
            run.stderr().contains("can't show this run"),
            "{}",
            run.stderr()
        );
        run.logs_complete(4, LINES, true);
        run.nothing_left();
    }
}
