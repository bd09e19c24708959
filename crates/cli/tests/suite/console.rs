//! What a run shows must never hold it up: readers that do not read, readers that leave, and jobs that write too much.

use crate::common::{self, command, ended, err, until};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::{TempDir, tempdir};

fn cosched(folder: &Path, mix: &str, words: &[&str]) -> Command {
    std::fs::write(folder.join("mix.toml"), mix).expect("a file");
    let mut command = common::command(folder, &[]);
    command
        .args([
            "run",
            "mix.toml",
            "--logs",
            "L",
            "--policy",
            "round-robin",
            "--param",
            "quantum_s=0.02",
        ])
        .args(words);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn folder() -> TempDir {
    tempdir().expect("a folder")
}

/// The memory that a process has of its own now, without that of its program file, in KiB.
fn own_memory(run: &Child) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", run.id())).expect("a live process");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))
        .expect("RssAnon");
    line.trim()
        .trim_end_matches(" kB")
        .parse()
        .expect("a number")
}

fn has_ended(folder: &TempDir, job: &str) -> bool {
    let log = std::fs::read_to_string(folder.path().join("jobs.log")).unwrap_or_default();
    log.lines().any(|line| line.ends_with(job))
}

#[test]
fn a_reader_that_does_not_read_delays_no_job_and_loses_nothing() {
    const LINES: usize = 4_000_000;
    for how in ["live", "group", "tag"] {
        let folder = folder();
        let mix = format!(
            "[[job]]\nname = \"much\"\ncommand = \"yes | head -n {LINES}\"\n[[job]]\nname = \"next\"\ncommand = \"sleep 0.3\"\n\
             [[job]]\nname = \"last\"\ncommand = \"echo last\"\nstart_s = 0.5\n"
        );
        let mut run = cosched(
            folder.path(),
            &mix,
            &["--output", how, "--joblog", "jobs.log"],
        )
        .spawn()
        .expect("a run");
        // Nobody has read a byte of 8 MB, and yet all jobs are run to their ends.
        until("all jobs have ended", || {
            ["head -n 4000000", "sleep 0.3", "echo last"]
                .iter()
                .all(|job| has_ended(&folder, job))
        });
        // It holds none of it either.
        assert!(own_memory(&run) < 6 << 10, "{} KiB", own_memory(&run));
        let mut shown = String::new();
        run.stdout
            .take()
            .expect("a pipe")
            .read_to_string(&mut shown)
            .expect("text");
        assert!(run.wait().expect("an end").success());
        assert_eq!(
            shown
                .lines()
                .filter(|line| line.trim_start_matches("much\t") == "y")
                .count(),
            LINES,
            "{how}"
        );
        assert_eq!(
            shown.lines().filter(|line| line.ends_with("last")).count(),
            1,
            "{how}"
        );
    }
}

/// All jobs have ended, and the run waits for its reader alone.
#[test]
fn a_signal_while_nobody_reads_leaves_a_record() {
    let folder = folder();
    let mix = "[[job]]\nname = \"much\"\ncommand = \"yes | head -n 100000\"\n";
    let words = ["--output", "live", "--joblog", "jobs.log"];
    let mut run = cosched(folder.path(), mix, &words).spawn().expect("a run");
    until("the job has ended", || has_ended(&folder, "head -n 100000"));
    until("the run has ended", || {
        let _ = kill_process(Pid::from_child(&run), Signal::TERM);
        run.try_wait().expect("a child").is_some()
    });
    let record = common::read(&folder, "L/run.json");
    assert!(record.contains("output-lost"), "{record}");
}

#[test]
fn a_reader_that_leaves_ends_the_run() {
    let folder = folder();
    let mix = "[[job]]\nname = \"chat\"\ncommand = \"while :; do echo word; sleep 0.01; done\"\n\
               [[job]]\nname = \"long\"\ncommand = \"echo $$; exec sleep 1000\"\n";
    let mut run = cosched(folder.path(), mix, &["--output", "tag"])
        .spawn()
        .expect("a run");
    let mut reader = BufReader::new(run.stdout.take().expect("a pipe"));
    let mut line = String::new();
    let mut pid = None;
    while pid.is_none() || !line.starts_with("chat") {
        line.clear();
        assert!(reader.read_line(&mut line).expect("a line") > 0);
        pid = pid.or(line.strip_prefix("long\t").map(|pid| pid.trim().to_owned()));
    }
    drop(reader);
    let ended = run.wait_with_output().expect("an end");
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(128 + 13), "{told}");
    assert!(told.contains("nobody reads the output any more"), "{told}");
    assert!(!Path::new("/proc").join(pid.expect("a number")).exists());
}

/// A job that writes nothing more does not keep the run going for nobody.
#[test]
fn a_reader_that_leaves_is_noticed_before_the_next_line() {
    for how in ["live", "tag", "group"] {
        let folder = folder();
        let mix = "[[job]]\nname = \"first\"\ncommand = \"echo once\"\n\
                   [[job]]\nname = \"silent\"\ncommand = \"exec sleep 1000\"\n";
        let mut run = cosched(folder.path(), mix, &["--output", how])
            .spawn()
            .expect("a run");
        let mut reader = BufReader::new(run.stdout.take().expect("a pipe"));
        let mut line = String::new();
        assert!(
            reader.read_line(&mut line).expect("a line") > 0 && line.ends_with("once\n"),
            "{line}"
        );
        drop(reader);
        assert_eq!(ended(&mut run).code(), Some(128 + 13), "{how}");
    }
}

/// A terminal that was closed is no reader who has had enough: whoever logs out leaves a batch that goes on.
#[test]
fn a_terminal_that_is_closed_does_not_end_the_run() {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let folder = folder();
    let terminal =
        openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
    grantpt(&terminal)
        .and_then(|()| unlockpt(&terminal))
        .expect("a terminal");
    let name = ptsname(&terminal, Vec::new())
        .expect("its name")
        .into_string()
        .expect("a name");
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let shown =
        rustix::fs::open(name.as_str(), flags, rustix::fs::Mode::empty()).expect("its other end");
    let mix = "[[job]]\nname = \"silent\"\ncommand = \"echo once; until [ -e closed ]; do sleep 0.01; done; sleep 1\"\n";
    let mut run = cosched(folder.path(), mix, &["--output", "live"]);
    let mut run = run.stdout(Stdio::from(shown)).spawn().expect("a run");
    let mut reader = BufReader::new(std::fs::File::from(terminal));
    let mut line = String::new();
    assert!(reader.read_line(&mut line).expect("a line") > 0 && line.trim_end() == "once");
    drop(reader);
    std::fs::write(folder.path().join("closed"), "").expect("a file");
    assert_eq!(ended(&mut run).code(), Some(0));
}

#[test]
fn of_a_failed_job_the_last_error_is_shown_however_much_it_wrote() {
    let folder = folder();
    let mix = r#"[[job]]
name = "bad"
command = 'head -c 30000000 /dev/zero >&2; printf "\nall \033[31mis lost\n" >&2; exit 3'
"#;
    let mut run = cosched(folder.path(), mix, &["--output", "none"]);
    let run = run.output().expect("a run");
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(1), "{told}");
    // The line before it shows the command, which holds the same words.
    let last = told
        .lines()
        .find(|line| line.starts_with("    all"))
        .unwrap_or_else(|| panic!("{told}"));
    assert!(
        last.starts_with(r"    all \x1b[31mis lost"),
        "an escape sequence does not reach the terminal: {last:?}"
    );
}

/// The reader has not left: the output can't be written, and is kept.
#[test]
fn output_that_cannot_be_written_is_told_and_kept() {
    let folder = tempdir().expect("a folder");
    for words in [
        &["--no-logs", "-q"][..],
        &["--no-logs", "-k"],
        &["--logs", "L", "--output", "group"],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .expect("/dev/full");
        let words = [
            &["run"],
            words,
            &["echo", "out", "{}", ":::", "1", "2", "3"],
        ]
        .concat();
        let run = command(folder.path(), &words)
            .env("TMPDIR", folder.path())
            .stdout(full)
            .output()
            .expect("it runs");
        assert_eq!(run.status.code(), Some(1), "{words:?}: {}", err(&run));
        let told = err(&run);
        assert!(
            told.contains("not shown completely: No space left on device"),
            "{words:?}: {told}"
        );
        let kept = told
            .split("all of it is in ")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .expect("a folder");
        for job in 1..=3 {
            let file = std::path::Path::new(kept).join(format!("echo#{job}.out"));
            assert_eq!(
                std::fs::read_to_string(&file).expect("a log"),
                format!("out {job}\n")
            );
        }
    }
}

#[test]
fn a_console_that_is_killed_loses_nothing() {
    let folder = tempdir().expect("a folder");
    let line =
        "echo out {}; if [ {} = 1 ]; then touch began; until [ -e go ]; do sleep 0.01; done; fi";
    let words = [
        "run",
        "--no-logs",
        "-q",
        "-k",
        "-j",
        "1",
        line,
        ":::",
        "1",
        "2",
        "3",
    ];
    let mut command = command(folder.path(), &words);
    let run = command
        .env("TMPDIR", folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    until("the first job runs", || {
        folder.path().join("began").exists()
    });
    let console = std::fs::read_dir("/proc")
        .expect("/proc")
        .filter_map(Result::ok)
        .find_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let words = std::fs::read(entry.path().join("cmdline")).ok()?;
            let wanted = format!("\0console\0{{\"run\":{},", run.id());
            words
                .windows(wanted.len())
                .any(|part| part == wanted.as_bytes())
                .then_some(pid)
        });
    let console = rustix::process::Pid::from_raw(console.expect("a console")).expect("a number");
    rustix::process::kill_process(console, rustix::process::Signal::KILL).expect("it lives");
    std::fs::write(folder.path().join("go"), "").expect("a file");
    let run = run.wait_with_output().expect("it ends");
    let told = err(&run);
    assert!(
        run.status.code() == Some(1) && told.contains("the process that shows it has died"),
        "{told}"
    );
    let kept = told
        .split("all of it is in ")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .expect("a folder");
    let all: String = [1, 2, 3]
        .map(|job| std::fs::read_to_string(format!("{kept}/echo#{job}.out")).expect("a log"))
        .concat();
    assert_eq!(all, "out 1\nout 2\nout 3\n");
}
