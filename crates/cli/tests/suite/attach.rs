//! Observing programs that run already.

use crate::common::schema::Schemas;
use crate::common::{command, err, json, out, skipped, until};
use cosched_core::CpuId;
use serde_json::Value;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A process that uses its CPU all the time, in a process group of its own.
struct Spinner(Child);

impl Spinner {
    fn start(cpu: CpuId, word: &str) -> Spinner {
        let word = word.to_owned();
        // The child inherits the CPU of the thread that starts it.
        let thread = std::thread::spawn(move || {
            cosched_linux::pin_thread(cpu).expect("an allowed CPU");
            let mut shell = Command::new("sh");
            shell.args(["-c", "while :; do :; done", &word]);
            shell.process_group(0).spawn().expect("a shell")
        });
        Spinner(thread.join().expect("a child"))
    }

    fn pid(&self) -> u32 {
        self.0.id()
    }

    fn name(&self) -> String {
        format!("sh {}", self.pid())
    }

    /// Whether it has waited for a CPU; `None` if the kernel does not count it.
    fn has_waited(&self) -> Option<bool> {
        let text = std::fs::read_to_string(format!("/proc/{}/schedstat", self.pid())).ok()?;
        let mut numbers = text.split(' ').map(|word| word.parse::<u64>().unwrap_or(0));
        let (used, waited) = (numbers.next()?, numbers.next()?);
        (used > 0).then_some(waited > 0)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn first_cpu() -> CpuId {
    let cpus = cosched_linux::affinity(0).expect("an affinity");
    cpus.first().expect("a CPU")
}

fn attach(words: &[&str]) -> Output {
    let words = [&["attach"], words].concat();
    command(Path::new("/"), &words).output().expect("an answer")
}

/// One interval.
fn once(words: &[&str]) -> Value {
    let options = ["--once", "--interval", "300ms", "--format", "json"];
    let output = attach(&[words, &options].concat());
    assert!(output.status.success(), "{words:?}: {}", err(&output));
    let answer = json(&output);
    Schemas::read().check("attached.json", &answer);
    answer
}

/// The row of that name.
fn row<'a>(answer: &'a Value, name: &str) -> Option<&'a Value> {
    let mut rows = answer["subjects"].as_array()?.iter();
    rows.find(|row| row["name"] == name)
}

/// What a subject had of its only CPU in an interval.
struct CpuUse {
    used_s: f64,
    waited_s: f64,
}

fn use_of_cpu(answer: &Value, name: &str) -> CpuUse {
    let on = &row(answer, name).expect("a row")["on"][0];
    let time = |key: &str| on[key].as_f64().unwrap_or(0.0);
    CpuUse {
        used_s: time("used_s"),
        waited_s: time("waited_s"),
    }
}

#[test]
fn two_that_want_one_cpu_are_named_with_the_evidence() {
    let cpu = first_cpu();
    let pair = [Spinner::start(cpu, "x"), Spinner::start(cpu, "x")];
    let mut waited = [None; 2];
    until("both have run", || {
        waited = pair.each_ref().map(Spinner::has_waited);
        waited != [None; 2] || !Path::new("/proc/self/schedstat").exists()
    });
    if waited == [None; 2] {
        return skipped("the kernel does not count how long a process waits for a CPU");
    }
    until("both have waited", || {
        pair.each_ref().map(Spinner::has_waited) == [Some(true); 2]
    });
    let pids = pair.each_ref().map(|spinner| spinner.pid().to_string());
    let names = pair.each_ref().map(Spinner::name);
    // How much of the CPU the two get depends on what else runs here. Below a tenth of the interval nothing is evidence.
    until("both use the CPU and wait for it", || {
        let answer = once(&["--pid", &pids.join(",")]);
        let much = 0.11 * answer["interval_s"].as_f64().expect("a time");
        for name in &names {
            let row = row(&answer, name).expect("a row");
            assert_eq!(
                (&row["state"], &row["processes"]),
                (&"live".into(), &1.into())
            );
            let wrong = row["on"]
                .as_array()
                .expect("CPUs")
                .iter()
                .find(|on| on["cpu"] != cpu.0);
            assert_eq!(wrong, None, "{row}");
        }
        let slows = |by: &str, slowed: &str| {
            let mut found = answer["disturbances"].as_array().expect("a list").iter();
            found.any(|found| {
                let evidence = &found["evidence"];
                found["by"] == by
                    && found["slows"] == slowed
                    && evidence["kind"] == "same-cpu"
                    && evidence["cpu"] == cpu.0
                    && evidence["waited_s"].as_f64() > Some(0.0)
                    && evidence["used_s"].as_f64() > Some(0.0)
            })
        };
        let [one, other] = names.each_ref().map(|name| use_of_cpu(&answer, name));
        for (by, slowed, used, waited) in [
            (&names[0], &names[1], one.used_s, other.waited_s),
            (&names[1], &names[0], other.used_s, one.waited_s),
        ] {
            let is_evident = used > much && waited > much;
            assert!(!is_evident || slows(by, slowed), "{by}, {slowed}: {answer}");
        }
        [one.used_s, one.waited_s, other.used_s, other.waited_s]
            .iter()
            .all(|&time| time > 0.0)
    });
    let text = out(&attach(&["--pid", &pids.join(","), "--once"]));
    for part in [&*names[0], &*names[1], "WAITED", "while :; do :; done"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn processes_are_selected_by_pattern_user_and_cgroup() {
    let word = format!("attached-by-pattern-{}", std::process::id());
    let spinner = Spinner::start(first_cpu(), &word);
    let user = rustix::process::geteuid().as_raw().to_string();
    for words in [["--match", &*word], ["--user", &user]] {
        let answer = once(&words);
        let row = row(&answer, &spinner.name()).unwrap_or_else(|| panic!("{words:?}: {answer}"));
        assert_eq!(row["processes"], 1, "{row}");
        let command = row["command"].as_str().expect("a command line");
        assert!(command.ends_with(&word), "{row}");
    }
    let answer = once(&["--match", &word]);
    assert_eq!(
        answer["subjects"].as_array().map(Vec::len),
        Some(1),
        "not cosched itself"
    );
    let Some(group) = row(&answer, &spinner.name()).and_then(|row| row["group"].as_str()) else {
        return skipped("there is no cgroup v2 hierarchy");
    };
    let answer = once(&["--cgroup", group]);
    let row = &answer["subjects"][0];
    assert_eq!(row["group"], group, "{row}");
    assert!(row["processes"].as_u64() >= Some(1), "{row}");
}

#[test]
fn a_row_that_has_ended_says_so_and_the_last_one_ends_the_session() {
    let [first, last] = ["a", "b"].map(|word| Spinner::start(first_cpu(), word));
    let names = [&first, &last].map(Spinner::name);
    let pids = format!("{},{}", first.pid(), last.pid());
    let words = [
        "attach",
        "--pid",
        &pids,
        "--interval",
        "50ms",
        "--format",
        "json",
    ];
    let mut session = command(Path::new("/"), &words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a session");
    let lines = BufReader::new(session.stdout.take().expect("its output")).lines();
    let mut answers =
        lines.map(|line| -> Value { serde_json::from_str(&line.expect("a line")).expect("JSON") });
    let both = answers.next().expect("an interval");
    assert!(
        names
            .iter()
            .all(|name| row(&both, name).expect("a row")["state"] == "live")
    );
    drop(first);
    let state = |answer: &Value, name: &str| row(answer, name).map(|row| row["state"].clone());
    let ended = answers.find(|answer| state(answer, &names[0]) == Some("ended".into()));
    let ended = ended.expect("the session goes on");
    assert_eq!(state(&ended, &names[1]), Some("live".into()));
    drop(last);
    let end = answers.last().expect("an interval");
    assert_eq!(state(&end, &names[1]), Some("ended".into()));
    Schemas::read().check("attached.json", &end);
    assert!(session.wait().expect("its end").success());
}

#[test]
fn what_cannot_be_attached_is_refused() {
    let own = std::process::id().to_string();
    for (words, message) in [
        (&["--pid", "1"][..], "process 1 is the init process"),
        (
            &["--pid", "2147483647"],
            "process 2147483647 does not exist",
        ),
        (
            &["--user", "no-such-user"],
            "user no-such-user does not exist",
        ),
        (
            &["--match", "no such command line"],
            "no process fits --match no such",
        ),
        (&["--rules", "no-such-file"], "no-such-file: No such file"),
        (
            &["--pid", &own, "--interval", "0"],
            "expected a duration above zero",
        ),
        (&["--pid", &own, "--once", "--pause"], "--manage"),
        (&[], "required"),
    ] {
        let output = attach(words);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(
            err(&output).contains(message),
            "{words:?}: {}",
            err(&output)
        );
    }
}

#[test]
fn rules_wait_for_programs_that_start_later_and_log_their_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    let word = format!("attached-by-rule-{}", std::process::id());
    let rules = folder.path().join("rules.toml");
    std::fs::write(&rules, format!("[[rule]]\nmatch = \"{word}\"\n")).expect("rules");
    let words = [
        "attach",
        "--rules",
        "rules.toml",
        "--log",
        "--interval",
        "50ms",
    ];
    let mut session = command(folder.path(), &words)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a session");
    let lines = BufReader::new(session.stdout.take().expect("its output")).lines();
    let mut lines = lines.map(|line| line.expect("a line"));
    let spinner = Spinner::start(first_cpu(), &word);
    let name = spinner.name();
    assert_eq!(lines.next(), Some(format!("{name}: attached")));
    drop(spinner);
    assert!(lines.any(|line| line == format!("{name}: ended")));
    session.kill().expect("it still runs");
    session.wait().expect("its end");
}
