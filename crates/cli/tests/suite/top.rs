//! `cosched top` on a real terminal, which it leaves as it was.

use crate::common::looping::LoopingRun;
use crate::common::{self, PATIENCE, cosched, ended, err, skipped, until};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Leaves the other screen and shows the cursor again.
const LEFT: &str = "\x1b[?25h\x1b[?1049l";

/// The program on a terminal of its own.
struct Screen {
    child: Child,
    /// Our end of the terminal, and the program's.
    keys: File,
    terminal: File,
    seen: Arc<Mutex<Seen>>,
}

/// What the program has sent, and what is to be seen of it: only cells that change are sent.
struct Seen {
    sent: Vec<u8>,
    screen: vt100::Parser,
}

impl Screen {
    /// `None` if there is no terminal to be had here.
    fn start(words: &[&str]) -> Option<Screen> {
        Screen::start_in(words, &[])
    }

    fn start_in(words: &[&str], environment: &[(&str, &str)]) -> Option<Screen> {
        if Command::new("setsid").arg("--version").output().is_err() {
            skipped("there is no `setsid`, which gives a program a terminal");
            return None;
        }
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = match openpt(flags) {
            Ok(master) => master,
            Err(error) => {
                skipped(&format!("there are no pseudo terminals: {error}"));
                return None;
            }
        };
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal = File::from(rustix::fs::open(name, flags, Mode::empty()).unwrap());
        tcsetwinsize(
            &terminal,
            Winsize {
                ws_row: 24,
                ws_col: 80,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
        let mut command = Command::new("setsid");
        common::without_settings(&mut command);
        command.args([
            "--ctty",
            "env",
            "--default-signal=INT,QUIT,HUP,TERM",
            env!("CARGO_BIN_EXE_cosched"),
            "top",
        ]);
        command
            .env("TERM", "xterm")
            .envs(environment.iter().copied());
        let ours = || terminal.try_clone().unwrap();
        let child = command
            .args(words)
            .stdin(ours())
            .stdout(ours())
            .stderr(ours())
            .spawn()
            .unwrap();
        let keys = File::from(master);
        let (rows, columns) = (NonZero::new(24).unwrap(), NonZero::new(80).unwrap());
        let screen = vt100::Parser::new(rows, columns, 0);
        let seen = Arc::new(Mutex::new(Seen {
            sent: Vec::new(),
            screen,
        }));
        let (mut reader, into) = (keys.try_clone().unwrap(), seen.clone());
        std::thread::spawn(move || {
            let mut piece = [0; 4096];
            while let Ok(got @ 1..) = reader.read(&mut piece) {
                let mut seen = into.lock().unwrap();
                seen.sent.extend_from_slice(&piece[..got]);
                seen.screen.process(&piece[..got]);
            }
        });
        Some(Screen {
            child,
            keys,
            terminal,
            seen,
        })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap().sent).into_owned()
    }

    fn is_shown(&self, word: &str) -> bool {
        self.seen
            .lock()
            .unwrap()
            .screen
            .screen()
            .contents()
            .contains(word)
    }

    fn shows(&self, word: &str) {
        let end = Instant::now() + PATIENCE;
        while !self.is_shown(word) {
            let seen = || self.seen.lock().unwrap().screen.screen().contents();
            assert!(
                Instant::now() < end,
                "waited in vain for {word}:\n{}",
                seen()
            );
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn resize(&self, rows: u16, columns: u16) {
        let size = [rows, columns].map(|size| NonZero::new(size).unwrap());
        self.seen
            .lock()
            .unwrap()
            .screen
            .screen_mut()
            .set_size(size[0], size[1]);
        tcsetwinsize(
            &self.terminal,
            Winsize {
                ws_row: rows,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            },
        )
        .unwrap();
        self.send(Signal::WINCH);
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the terminal gathers lines, as it does for a shell.
    fn is_usual(&self) -> bool {
        tcgetattr(&self.terminal)
            .unwrap()
            .local_modes
            .contains(LocalModes::ICANON | LocalModes::ECHO)
    }

    fn code(&mut self) -> Option<i32> {
        let status = ended(&mut self.child);
        assert!(self.is_usual(), "the terminal is as it was");
        until("the screen is left", || self.text().ends_with(LEFT));
        status.code()
    }

    fn state(&self) -> Option<char> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).ok()?;
        stat.rsplit(')').next()?.trim().chars().next()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_is_seen_until_its_end_and_after() {
    let run = LoopingRun::start(&[]);
    let Some(mut screen) = Screen::start(&[&run.pid()]) else {
        return run.end();
    };
    for word in [
        "round-robin",
        "loop#2",
        "loop#3",
        "waiting",
        "running",
        "quit",
    ] {
        screen.shows(word);
    }
    assert!(!screen.is_usual(), "keys come as they are pressed");
    screen.press("jw");
    screen.shows("latest");
    screen.press("w/first\r");
    screen.shows("filter");
    let before = screen.text().len();
    screen.resize(20, 40);
    until("it is drawn anew", || {
        screen.text()[before..].contains("first")
    });
    let _folder = run.end_and_keep();
    screen.shows("ENDED: 4 succeeded");
    // What was seen last before the end is no state of a run that is over.
    until("all agrees", || {
        screen.is_shown("5 of 5 jobs done")
            && !screen.is_shown("running")
            && !screen.is_shown("waiting")
    });
    until("it waits for the user", || screen.state() == Some('S'));
    screen.press("q");
    assert_eq!(screen.code(), Some(0));
}

#[test]
fn a_session_of_another_terminal_is_seen_until_its_end() {
    let folder = tempdir().unwrap();
    let mut sleeper = Command::new("sleep").arg("600").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let words = ["attach", "--pid", &pid, "--interval", "100ms", "--log"];
    let mut attach = common::command(folder.path(), &words);
    let mut session = attach.stdout(Stdio::null()).spawn().unwrap();
    let name = session.id().to_string();
    until("it is listed", || {
        common::out(&cosched(&folder, &["status"])).contains(&format!("process {name} observes"))
    });
    let screen = Screen::start(&[&name]);
    if let Some(screen) = &screen {
        screen.shows(&format!("sleep {pid}"));
        screen.shows("q leaves");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    assert_eq!(ended(&mut session).code(), Some(0));
    if let Some(mut screen) = screen {
        screen.shows("HAS ENDED");
        screen.press("q");
        assert_eq!(screen.code(), Some(0));
    }
}

#[test]
fn a_run_that_is_killed_is_told_to_be_so() {
    let run = LoopingRun::start(&[]);
    let Some(mut screen) = Screen::start(&[&run.pid()]) else {
        return run.end();
    };
    screen.shows("loop#2");
    let pid: i32 = run.pid().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    // A child that nobody has waited for is still there.
    let _folder = run.reap();
    screen.shows("THE RUN LEFT NO RECORD");
    screen.press("q");
    assert_eq!(screen.code(), Some(0));
}

#[test]
fn where_nothing_can_be_placed_it_is_refused() {
    let Some(mut screen) = Screen::start_in(&[], &[("TERM", "dumb")]) else {
        return;
    };
    screen.shows("TERM=dumb");
    assert_eq!(ended(&mut screen.child).code(), Some(2));
}

#[test]
fn a_job_is_ended_after_a_confirmation() {
    let run = LoopingRun::start(&[]);
    let Some(mut screen) = Screen::start(&[&run.pid()]) else {
        return run.end();
    };
    screen.shows("loop#2");
    let has_ended = |name: &str| {
        let status = common::looping::status(&run.pid()).expect("a state");
        status["jobs"]
            .as_array()
            .expect("jobs")
            .iter()
            .any(|job| job["name"] == name && job["state"] == "ended")
    };
    // The filter leaves one job to choose.
    screen.press("/loop#2\re");
    screen.shows("End loop#2?");
    screen.press("n");
    until("the question is gone", || !screen.is_shown("End loop#2?"));
    assert!(!has_ended("loop#2"), "any other key is a no");
    screen.press("ey");
    until("the job has ended", || has_ended("loop#2"));
    assert!(!has_ended("loop#3"));
    screen.press("q");
    assert_eq!(screen.code(), Some(0));
    run.end();
}

#[test]
fn signals_leave_the_terminal_as_it_was() {
    let run = LoopingRun::start(&[]);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let Some(mut screen) = Screen::start(&[&run.pid()]) else {
            break;
        };
        screen.shows("loop#2");
        screen.send(signal);
        assert_eq!(screen.code(), Some(code));
    }
    if let Some(mut screen) = Screen::start(&[&run.pid()]) {
        screen.shows("loop#2");
        screen.press("\x03");
        assert_eq!(screen.code(), Some(0), "ctrl-c leaves as q does");
    }
    run.end();
}

#[test]
fn it_stops_and_goes_on_as_other_programs_do() {
    let run = LoopingRun::start(&[]);
    let Some(mut screen) = Screen::start(&[&run.pid()]) else {
        return run.end();
    };
    screen.shows("loop#2");
    for stop in ["key", "signal"] {
        match stop {
            "key" => screen.press("\x1a"),
            _ => screen.send(Signal::TSTP),
        }
        until("it stands still", || screen.state() == Some('T'));
        assert!(screen.is_usual(), "{stop}");
        let before = screen.text().len();
        screen.send(Signal::CONT);
        until("it goes on", || {
            screen.text()[before..].contains("loop#2") && !screen.is_usual()
        });
    }
    screen.press("q");
    assert_eq!(screen.code(), Some(0));
    run.end();
}

#[test]
fn of_several_runs_one_must_be_named() {
    let (first, second) = (LoopingRun::start(&[]), LoopingRun::start(&[]));
    let Some(mut screen) = Screen::start(&[]) else {
        return;
    };
    screen.shows("several runs");
    screen.shows(&first.pid());
    screen.shows(&second.pid());
    assert_eq!(ended(&mut screen.child).code(), Some(2));
    first.end();
    second.end();
}

#[test]
fn without_a_terminal_it_points_to_what_needs_none() {
    let folder = tempdir().expect("a folder");
    let output = cosched(&folder, &["top"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        err(&output).contains("`cosched status`"),
        "{}",
        err(&output)
    );
}
