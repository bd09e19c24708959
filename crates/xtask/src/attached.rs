//! Attacks on a session that manages programs: it, its keeper, both or a program are killed at random moments. In the end
//! each thread must have the CPUs that it had before, and nothing may be left.

use crate::batch::Dice;
use crate::seen::{Seen, all, in_folder, is_named, seen, signal};
use anyhow::Result;
use rustix::process::Signal;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Programs: one computes, one forks all the time, one sleeps and has a child that computes.
const PROGRAMS: [&str; 3] = [
    "while :; do :; done",
    "while :; do (:); done",
    "sh -c 'while :; do :; done' & wait",
];

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Session,
    Keeper,
    Both,
    /// The keeper is stopped, and the session is killed.
    StoppedKeeper,
    Program,
    /// The session is ended in good order.
    Nobody,
}

const VICTIMS: [Victim; 6] = [
    Victim::Session,
    Victim::Keeper,
    Victim::Both,
    Victim::StoppedKeeper,
    Victim::Program,
    Victim::Nobody,
];

/// Longer than a keeper needs, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time between two looks at what is awaited.
const PAUSE: Duration = Duration::from_millis(20);

/// A session in a folder of its own, and the programs that it manages.
struct Session {
    program: PathBuf,
    folder: tempfile::TempDir,
    programs: Vec<Child>,
    session: Option<Child>,
    /// The CPUs of a thread that nobody has bound.
    cpus: String,
}

/// Makes one attack. Returns who was killed, and what is wrong, if something is.
///
/// # Errors
/// The attack can't be made.
pub fn attack(program: &Path, seed: u64) -> Result<(String, Option<String>)> {
    let mut dice = Dice::new(seed);
    let mut session = Session::new(program)?;
    let mut killed = Vec::new();
    for _ in 0..=dice.below(3) {
        session.start()?;
        sleep(Duration::from_millis(dice.below(600)));
        let victim = dice.one_of(&VICTIMS);
        session.strike(victim, &mut dice)?;
        killed.push(format!("{victim:?}"));
    }
    let problem = session.finish()?;
    Ok((killed.join(", "), problem))
}

impl Session {
    fn new(program: &Path) -> Result<Session> {
        let folder = tempfile::tempdir()?;
        let run = folder.path().join("run");
        std::fs::DirBuilder::new().mode(0o700).create(run)?;
        let mut session = Session {
            program: program.to_owned(),
            folder,
            programs: Vec::new(),
            session: None,
            cpus: allowed(&format!("/proc/{}/status", std::process::id())).unwrap_or_default(),
        };
        for words in PROGRAMS {
            let program = Session::spawn(session.folder.path(), words)?;
            session.programs.push(program);
        }
        Ok(session)
    }

    fn spawn(folder: &Path, words: &str) -> Result<Child> {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", words])
            .current_dir(folder)
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        Ok(shell.spawn()?)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("COSCHED_HISTORY", "off")
            .env("XDG_RUNTIME_DIR", self.folder.path().join("run"))
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// Starts a session if there is none.
    fn start(&mut self) -> Result<()> {
        if let Some(session) = &mut self.session
            && session.try_wait()?.is_none()
        {
            return Ok(());
        }
        let pids: Vec<String> = self
            .programs
            .iter()
            .map(|child| child.id().to_string())
            .collect();
        let pids = pids.join(",");
        let words = [
            "attach",
            "--manage",
            "--log",
            "--interval",
            "50ms",
            "--pid",
            &pids,
        ];
        let params = ["--param", "regions=core", "--param", "quantum_s=0.05"];
        self.session = Some(self.command(&[&words[..], &params].concat()).spawn()?);
        Ok(())
    }

    fn strike(&mut self, victim: Victim, dice: &mut Dice) -> Result<()> {
        let keepers = self.keepers();
        let send = |sent: Signal| keepers.iter().for_each(|keeper| signal(keeper.pid, sent));
        match victim {
            Victim::Session => self.end(Signal::KILL)?,
            Victim::Nobody => self.end(Signal::TERM)?,
            Victim::Keeper => send(Signal::KILL),
            Victim::Both => {
                send(Signal::KILL);
                self.end(Signal::KILL)?;
            }
            Victim::StoppedKeeper => {
                send(Signal::STOP);
                self.end(Signal::KILL)?;
            }
            Victim::Program => self.replace(dice)?,
        }
        Ok(())
    }

    fn end(&mut self, sent: Signal) -> Result<()> {
        if let Some(mut session) = self.session.take() {
            signal(session.id() as i32, sent);
            session.wait()?;
        }
        Ok(())
    }

    /// Kills a program, and starts it again.
    fn replace(&mut self, dice: &mut Dice) -> Result<()> {
        let ix = dice.below(PROGRAMS.len() as u64) as usize;
        let child = &mut self.programs[ix];
        child.kill()?;
        child.wait()?;
        *child = Session::spawn(self.folder.path(), PROGRAMS[ix])?;
        Ok(())
    }

    /// The keepers of this folder's sessions, by their environment.
    fn keepers(&self) -> Vec<Seen> {
        let mark = self.folder.path().as_os_str().as_encoded_bytes();
        let mut found = all();
        found.retain(|process| {
            let environ = std::fs::read(format!("/proc/{}/environ", process.pid));
            let is_ours = |environ: Vec<u8>| environ.windows(mark.len()).any(|part| part == mark);
            is_named(process.pid, "mask-keeper") && environ.is_ok_and(is_ours)
        });
        found
    }

    /// Ends the session, frees what is left, and returns what is wrong.
    fn finish(&mut self) -> Result<Option<String>> {
        self.end(Signal::TERM)?;
        self.command(&["thaw"]).status()?;
        let end = Instant::now() + PATIENCE;
        loop {
            let problem = self.problem();
            if problem.is_none() || Instant::now() > end {
                return Ok(problem);
            }
            sleep(PAUSE);
        }
    }

    fn problem(&self) -> Option<String> {
        for process in in_folder(self.folder.path()) {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid));
            for task in tasks.into_iter().flatten().flatten() {
                let cpus = allowed(&task.path().join("status").display().to_string());
                if cpus.as_ref().is_some_and(|cpus| *cpus != self.cpus) {
                    return Some(format!("process {} may use {cpus:?}", process.pid));
                }
            }
            if seen(process.pid).is_some_and(|now| now.state == 'T') {
                return Some(format!("process {} is stopped", process.pid));
            }
        }
        if let Some(keeper) = self.keepers().first() {
            return Some(format!("keeper {} is left", keeper.pid));
        }
        let files = std::fs::read_dir(self.folder.path().join("run/cosched"));
        let mut names = files
            .into_iter()
            .flatten()
            .flatten()
            .map(|file| file.file_name());
        names
            .find(|name| name.to_string_lossy().starts_with("masks-"))
            .map(|name| format!("{} is left", name.display()))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.end(Signal::KILL);
        for process in in_folder(self.folder.path()) {
            signal(process.pid, Signal::KILL);
        }
        for child in &mut self.programs {
            let _ = child.wait();
        }
    }
}

/// The CPUs that a process or thread may use.
fn allowed(status: &str) -> Option<String> {
    let text = std::fs::read_to_string(status).ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(line.trim().to_owned())
}
