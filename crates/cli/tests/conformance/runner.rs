//! Plays each case in a process of its own and reports the outcome as `cargo test` does. A backend of real processes
//! must be alone in a process with one thread, and a case that hangs must not stop the others.
//!
//! After each case, whatever its outcome, none of its processes may be stopped, and those that still run are killed.

use crate::processes;
use cosched_conformance::{Case, ScenarioSkip};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read as _, Seek as _};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The time limit of a case, in seconds. No case takes nearly this long, even on a busy machine. An emulated machine is
/// slower by far: `COSCHED_TEST_PATIENCE_S` is its limit.
const PATIENCE_S: u64 = 120;

/// Exit code of a case that could not be played; its output is the reason.
const SKIPPED: u8 = 77;

/// The options of Rust's own test runner, as far as they make sense here.
#[derive(Default)]
struct Asked {
    play: Option<String>,
    list: bool,
    exact: bool,
    ignored: bool,
    names: Vec<String>,
    skip: Vec<String>,
}

impl Asked {
    fn read() -> Asked {
        let mut asked = Asked::default();
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--play" => asked.play = args.next(),
                "--list" => asked.list = true,
                "--exact" => asked.exact = true,
                "--ignored" => asked.ignored = true,
                "--skip" => asked.skip.extend(args.next()),
                // `cargo test` passes these to all test programs; they have no effect here.
                "--test-threads" | "--format" | "--color" | "-Z" => drop(args.next()),
                option if option.starts_with('-') => {}
                name => asked.names.push(name.to_owned()),
            }
        }
        asked
    }

    fn wants(&self, name: &str) -> bool {
        let fits = |asked: &String| {
            if self.exact {
                name == asked
            } else {
                name.contains(asked.as_str())
            }
        };
        !self.ignored
            && (self.names.is_empty() || self.names.iter().any(fits))
            && !self.skip.iter().any(fits)
    }
}

/// Plays the cases that the command line asks for.
pub(crate) fn main(cases: &[Case]) -> ExitCode {
    let asked = Asked::read();
    if let Some(name) = &asked.play {
        let case = cases
            .iter()
            .find(|case| case.name == *name)
            .expect("a case of that name");
        return match (case.play)() {
            Ok(()) => ExitCode::SUCCESS,
            Err(ScenarioSkip(why)) => {
                println!("{why}");
                ExitCode::from(SKIPPED)
            }
        };
    }
    let wanted: Vec<&Case> = cases
        .iter()
        .filter(|case| asked.wants(&case.name))
        .collect();
    if asked.list {
        wanted
            .iter()
            .for_each(|case| println!("{}: test", case.name));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", wanted.len());
    let (mut passed, mut failures) = (0, Vec::new());
    for case in &wanted {
        match play(&case.name) {
            Ok(None) => println!("test {} ... ok", case.name),
            Ok(Some(why)) => println!("test {} ... skipped, because {why}", case.name),
            Err(why) => {
                println!("test {} ... FAILED", case.name);
                failures.push((&case.name, why));
                continue;
            }
        }
        passed += 1;
    }
    for (name, why) in &failures {
        println!("\n---- {name} ----\n{why}");
    }
    let (verdict, failed, others) = (
        if failures.is_empty() { "ok" } else { "FAILED" },
        failures.len(),
        cases.len() - wanted.len(),
    );
    println!("\ntest result: {verdict}. {passed} passed; {failed} failed; {others} filtered out\n");
    if failures.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(101)
    }
}

/// Plays one case. Returns why it was skipped, if it was.
///
/// # Errors
/// The output of the case before it failed, or what it left behind.
fn play(name: &str) -> Result<Option<String>, String> {
    // Files, not pipes: jobs that outlive their run would hold a pipe open.
    let mut said = tempfile::tempfile().expect("a temporary file");
    let own = std::env::current_exe().expect("the path of this program");
    let to_file = || Stdio::from(said.try_clone().expect("another handle of a file"));
    let mut child = Command::new(own)
        .args(["--play", name])
        .stdin(Stdio::null())
        .stdout(to_file())
        .stderr(to_file())
        .spawn()
        .expect("this program starts");
    let given = std::env::var("COSCHED_TEST_PATIENCE_S")
        .ok()
        .and_then(|given| given.parse().ok());
    let end = Instant::now() + Duration::from_secs(given.unwrap_or(PATIENCE_S));
    let status = loop {
        match child.try_wait().expect("a child can be waited for") {
            Some(status) => break Some(status),
            None if Instant::now() > end => {
                // This kills a stopped process, too.
                let _ = child.kill();
                let _ = child.wait();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    let frozen = clear_away(child.id());
    let mut text = String::new();
    said.rewind()
        .and_then(|()| said.read_to_string(&mut text))
        .expect("what the case wrote");
    match status {
        None => Err(format!("{text}it never ended")),
        Some(status) if frozen > 0 => Err(format!(
            "{text}{status}; it left {frozen} processes stopped"
        )),
        Some(status) if status.success() => Ok(None),
        Some(status) if status.code() == Some(i32::from(SKIPPED)) => {
            // What the host warned of comes before it.
            Ok(Some(text.lines().last().unwrap_or_default().to_owned()))
        }
        Some(status) => Err(format!("{text}{status}")),
    }
}

/// Kills the remaining processes of a case's jobs. Returns how many of them were stopped and not freed.
fn clear_away(runner: u32) -> usize {
    let stopped = || {
        processes::of_run(runner, None)
            .iter()
            .filter(|process| process.state == 'T')
            .count()
    };
    // The guardian of a run that died needs a moment.
    let end = Instant::now() + Duration::from_secs(10);
    while stopped() > 0 && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stopped = stopped();
    for process in processes::of_run(runner, None) {
        if let Some(pid) = Pid::from_raw(process.pid) {
            // The process may have ended meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    stopped
}
