//! Those who look at a run must never hold it up, however they behave, and whatever becomes of its window.

use crate::support::{Mix, Run, all_named, cosched, freezers, seen, signal, until};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

const LINES: u32 = 150;
const ASK: &[u8] = b"{\"ask\":\"status\"}\n";

fn socket(run: &Run) -> Option<PathBuf> {
    let lists = crate::seen::lists(&run.token)
        .map(|list| list.with_file_name(format!("window-{}", run.token)));
    lists.into_iter().find(|path| path.exists())
}

fn connect(run: &Run) -> UnixStream {
    let stream =
        UnixStream::connect(socket(run).expect("a socket")).expect("the socket is listened on");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    stream
}

fn ask(stream: &UnixStream) -> Value {
    let mut stream = stream;
    stream.write_all(ASK).unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The window of a run, while it has one.
fn window(run: &Run) -> Option<i32> {
    all_named("cosched-window")
        .into_iter()
        .find(|process| process.parent == run.pid)
        .map(|process| process.pid)
}

fn status(run: &Run) -> std::process::Output {
    cosched()
        .args(["status", &run.pid.to_string(), "--format", "json"])
        .output()
        .unwrap()
}

fn start(freeze: &str) -> Run {
    let run = Run::start(Mix::default().held(4, LINES), freeze, &["--jobs", "4"]);
    run.until_marked(2);
    run
}

/// The run went as if nobody had looked.
fn undisturbed(mut run: Run) {
    assert_eq!(run.code(), Some(0), "{}", run.stderr());
    assert!(
        !run.stderr().contains("can't look at this run"),
        "{}",
        run.stderr()
    );
    run.logs_complete(4, LINES, true);
    run.nothing_left();
    assert_eq!(socket(&run), None, "the socket goes with the run");
}

#[test]
fn who_looks_is_answered_and_who_does_not_costs_no_process() {
    for freeze in freezers() {
        let run = start(freeze);
        assert_eq!(window(&run), None, "nobody looks");
        let told = ask(&connect(&run));
        assert_eq!(told["status"]["run"]["run_id"], run.token.as_str());
        assert_eq!(told["status"]["totals"]["jobs"], 4);
        assert!(window(&run).is_some());
        undisturbed(run);
    }
}

#[test]
fn who_never_reads_holds_nobody_up() {
    for freeze in freezers() {
        let run = start(freeze);
        // They ask, and ask, and take nothing.
        let mut deaf: Vec<UnixStream> = (0..15).map(|_| connect(&run)).collect();
        for stream in &mut deaf {
            stream.set_nonblocking(true).unwrap();
            while stream.write(ASK).is_ok() {}
        }
        let told = ask(&connect(&run));
        assert_eq!(told["status"]["run"]["pid"], run.pid);
        undisturbed(run);
    }
}

#[test]
fn garbage_and_broken_connections_are_survived() {
    for freeze in freezers() {
        let run = start(freeze);
        for piece in [
            &b"\0\xff\n"[..],
            b"GET / HTTP/1.1\r\n\r\n",
            &[b'x'; 100_000],
            b"{\"ask\":\"coffee\"}\n",
            b"{",
        ] {
            let mut stream = connect(&run);
            let _ = stream.write_all(piece);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer);
            assert!(
                answer.is_empty() || answer.contains("\"error\""),
                "{answer}"
            );
        }
        for _ in 0..40 {
            // Gone in the middle of an answer.
            connect(&run).write_all(ASK).unwrap();
        }
        assert_eq!(ask(&connect(&run))["status"]["run"]["pid"], run.pid);
        undisturbed(run);
    }
}

#[test]
fn one_more_than_there_is_room_for_is_told_so() {
    for freeze in freezers() {
        let run = start(freeze);
        let held: Vec<UnixStream> = (0..16).map(|_| connect(&run)).collect();
        held.iter()
            .for_each(|stream| assert!(ask(stream)["status"].is_object()));
        let mut late = connect(&run);
        // It may have been refused by now.
        let _ = late.write_all(ASK);
        let mut answer = String::new();
        BufReader::new(late).read_line(&mut answer).unwrap();
        assert!(answer.contains("16 others look at this run"), "{answer}");
        drop(held);
        until("there is room again", || {
            let mut answer = String::new();
            let mut stream = connect(&run);
            let _ = stream.write_all(ASK);
            let _ = BufReader::new(stream).read_line(&mut answer);
            answer.contains("\"totals\"")
        });
        undisturbed(run);
    }
}

/// Whoever may look may also end a job. It ends as it would at the end of its time, and all others go on.
#[test]
fn a_job_is_ended_from_outside() {
    for freeze in freezers() {
        let deaf = "trap '' TERM; while :; do :; done";
        let mix = Mix::default()
            .held(3, LINES)
            .shell("deaf", deaf)
            .shell("endless", "while :; do :; done");
        let mut run = Run::start(mix, freeze, &["--jobs", "5", "--grace", "0.2"]);
        run.until_marked(5);
        let stream = connect(&run);
        let told = ask(&stream);
        let jobs = told["status"]["jobs"].as_array().unwrap().clone();
        let number =
            |name: &str| jobs.iter().find(|job| job["name"] == name).unwrap()["job"].clone();
        let wish = |job: &Value, name: &str| {
            let line = serde_json::json!({"ask": "end", "job": job, "name": name});
            (&stream).write_all(format!("{line}\n").as_bytes()).unwrap();
            let mut answer = String::new();
            BufReader::new(&stream).read_line(&mut answer).unwrap();
            assert!(answer.contains("\"done\""), "{answer}");
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
        run.nothing_left();
    }
}

#[test]
fn a_killed_window_is_replaced_until_that_happens_too_often() {
    for freeze in freezers() {
        let mut run = Run::start(Mix::default().held(4, 2 * LINES), freeze, &["--jobs", "4"]);
        run.until_marked(2);
        for _ in 0..3 {
            let stream = connect(&run);
            assert!(ask(&stream)["status"].is_object());
            let pid = window(&run).expect("a window");
            signal(pid, Signal::KILL);
            until("the window has gone", || {
                seen(pid).is_none_or(|process| process.state == 'Z')
            });
        }
        until("the run has noticed", || socket(&run).is_none());
        let told = status(&run);
        let text = String::from_utf8_lossy(&told.stdout).into_owned();
        assert!(
            told.status.success() && text.contains("can't be looked at"),
            "{text}"
        );
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(
            run.stderr().contains("can't look at this run"),
            "{}",
            run.stderr()
        );
        assert!(run.file("logs/run.json").contains("\"no-window\""));
        run.logs_complete(4, 2 * LINES, true);
        run.nothing_left();
    }
}

#[test]
fn a_stopped_window_holds_nobody_up() {
    for freeze in freezers() {
        let run = start(freeze);
        assert!(ask(&connect(&run))["status"].is_object());
        let pid = window(&run).expect("a window");
        signal(pid, Signal::STOP);
        let mut run = run;
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        signal(pid, Signal::CONT);
        until("the window ends with its run", || seen(pid).is_none());
        undisturbed(run);
    }
}

#[test]
fn window_of_a_killed_run_ends_and_its_socket_is_removed() {
    for freeze in freezers() {
        let mut run = start(freeze);
        let stream = connect(&run);
        assert!(ask(&stream)["status"].is_object());
        let pid = window(&run).expect("a window");
        let left = socket(&run).expect("a socket");
        run.send(Signal::KILL);
        assert_eq!(run.code(), None);
        until("the window has gone", || {
            seen(pid).is_none_or(|process| process.state == 'Z')
        });
        let mut rest = Vec::new();
        assert_eq!(
            (&stream).read_to_end(&mut rest).unwrap(),
            0,
            "whoever looks is told of the end"
        );
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
        assert!(!left.exists(), "whoever finds it removes it");
        run.all_ended();
    }
}

/// Something else has the socket's name: there is a warning, and the run goes on.
#[test]
fn without_a_socket_the_run_goes_on() {
    for freeze in freezers() {
        let dir = tempfile::tempdir().unwrap();
        let runtime = dir.path().join("runtime");
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(
            &runtime,
            std::os::unix::fs::PermissionsExt::from_mode(0o700),
        )
        .unwrap();
        let by = "umask 077; start=$(cut -d' ' -f22 /proc/$$/stat); ns=$(readlink /proc/$$/ns/pid | tr -dc 0-9); \
                  mkdir -p \"$XDG_RUNTIME_DIR/cosched/window-$$-$start-$ns\"; exec \"$0\" \"$@\"";
        let variable = format!("XDG_RUNTIME_DIR={}", runtime.display());
        let mix = Mix::default().counting(4, 20);
        let mut run = Run::start_by(
            &["env", &variable, "sh", "-c", by],
            dir,
            mix,
            freeze,
            &["--jobs", "4"],
        );
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        assert!(
            run.stderr().contains("can't look at this run"),
            "{}",
            run.stderr()
        );
        run.logs_complete(4, 20, true);
        run.nothing_left();
    }
}
