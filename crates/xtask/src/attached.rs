//! Attacks on a session that manages programs: it, its keeper, both or a program are killed at random moments. In the end
//! each thread must have the CPUs that it had before, no group may be frozen, and nothing may be left.

use crate::batch::{Dice, apart};
use crate::seen::{SeenProcess, all, in_folder, is_named, mount, runtime_folder, seen, signal};
use anyhow::Result;
use rustix::process::Signal;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Programs: one computes, one forks all the time, one sleeps and has a child that leaves processes behind. The child of
/// another one is in a process group of its own. The last one is bound to a CPU already, and so is what it forks.
const PROGRAMS: [&str; 5] = [
    "while :; do :; done",
    "while :; do (:); done",
    "sh -c 'while :; do sleep 60 & (:); sleep 0.05; done' & wait",
    "setsid sh -c 'while :; do sleep 60 & (:); sleep 0.05; done' & wait",
    "cd bound; while :; do sleep 60 & (:); sleep 0.05; done",
];
/// Number of programs that are replaced; what the others leave behind would have lost its creator.
const REPLACED: u64 = 2;
/// The program whose child is a subject of its own.
const NESTED: usize = 2;
/// The program that is bound to a CPU already, in the folder of this name.
const BOUND: usize = 4;
const BOUND_FOLDER: &str = "bound";

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
    /// The group of each program; none if this user may make none.
    groups: Vec<PathBuf>,
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
        let pauses = dice.below(2) == 0;
        session.start(pauses)?;
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
        let mut session = Session {
            program: program.to_owned(),
            folder,
            programs: Vec::new(),
            groups: Vec::new(),
            session: None,
            cpus: allowed(&format!("/proc/{}/status", std::process::id())).unwrap_or_default(),
        };
        std::fs::create_dir(session.folder.path().join(BOUND_FOLDER))?;
        session.make_groups();
        for ix in 0..PROGRAMS.len() {
            let program = session.spawn(ix)?;
            session.programs.push(program);
        }
        Ok(session)
    }

    fn make_groups(&mut self) {
        let Some(mount) = mount() else { return };
        let prefix = format!("{mount}/attack-{}-", std::process::id());
        let groups = (0..PROGRAMS.len()).map(|ix| PathBuf::from(format!("{prefix}{ix}")));
        self.groups = groups.collect();
        let mut groups = self.groups.iter();
        let are_made = groups.all(|dir| std::fs::create_dir(dir).is_ok());
        if !are_made {
            self.groups.clear();
        }
    }

    /// The CPUs of the program that is bound already.
    fn first_cpu(&self) -> &str {
        self.cpus.split([',', '-']).next().unwrap_or_default()
    }

    fn spawn(&self, ix: usize) -> Result<Child> {
        let words = PROGRAMS[ix];
        let mut shell = if ix == BOUND {
            let mut bound = Command::new("taskset");
            bound.args(["-c", self.first_cpu(), "sh"]);
            bound
        } else {
            Command::new("sh")
        };
        shell
            .args(["-c", words])
            .current_dir(self.folder.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = shell.spawn()?;
        if let Some(group) = self.groups.get(ix) {
            std::fs::write(group.join("cgroup.procs"), child.id().to_string())?;
        }
        let is_ready = || ix != BOUND || is_named(child.id() as i32, "sh");
        while !is_ready() {
            sleep(PAUSE);
        }
        Ok(child)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = apart(&self.program, self.folder.path());
        command
            .args(words)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    /// The programs, and the child of one.
    fn pids(&self) -> String {
        let programs = self.programs.iter().map(|child| child.id().to_string());
        let mut pids: Vec<String> = programs.collect();
        let parent = &pids[NESTED];
        let list = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        let children = list.unwrap_or_default();
        pids.extend(children.split_whitespace().next().map(str::to_owned));
        pids.join(",")
    }

    /// Starts a session if there is none.
    fn start(&mut self, pauses: bool) -> Result<()> {
        if let Some(session) = &mut self.session
            && session.try_wait()?.is_none()
        {
            return Ok(());
        }
        let mut command = self.command(&["attach", "--manage", "--log", "--interval", "50ms"]);
        command.args(["--param", "quantum_s=0.05"]);
        if pauses && !self.groups.is_empty() {
            command.args(["--pause", "--policy", "round-robin"]);
            for dir in &self.groups {
                command.arg("--cgroup").arg(dir);
            }
        } else {
            command.args(["--param", "regions=core", "--pid", &self.pids()]);
        }
        self.session = Some(command.spawn()?);
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
        let ix = dice.below(REPLACED) as usize;
        let child = &mut self.programs[ix];
        child.kill()?;
        child.wait()?;
        self.programs[ix] = self.spawn(ix)?;
        Ok(())
    }

    /// The keepers of this folder's sessions, by their environment.
    fn keepers(&self) -> Vec<SeenProcess> {
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
        let bound = in_folder(&self.folder.path().join(BOUND_FOLDER));
        let is_bound = |pid| bound.iter().any(|process| process.pid == pid);
        for process in in_folder(self.folder.path()) {
            let expected = if is_bound(process.pid) {
                self.first_cpu()
            } else {
                &self.cpus
            };
            let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid));
            for task in tasks.into_iter().flatten().flatten() {
                let cpus = allowed(&task.path().join("status").display().to_string());
                if cpus.as_ref().is_some_and(|cpus| *cpus != expected) {
                    return Some(format!("process {} may use {cpus:?}", process.pid));
                }
            }
            if seen(process.pid).is_some_and(|now| now.state == 'T') {
                return Some(format!("process {} is stopped", process.pid));
            }
        }
        for dir in &self.groups {
            let frozen = std::fs::read_to_string(dir.join("cgroup.freeze"));
            if frozen.is_ok_and(|frozen| frozen.starts_with('1')) {
                return Some(format!("{} is frozen", dir.display()));
            }
        }
        if let Some(keeper) = self.keepers().first() {
            return Some(format!("keeper {} is left", keeper.pid));
        }
        let files = std::fs::read_dir(runtime_folder(self.folder.path()));
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
        for dir in &self.groups {
            remove_group(dir);
        }
    }
}

/// Removes a group with all that is in it.
fn remove_group(dir: &Path) {
    let _ = std::fs::write(dir.join("cgroup.freeze"), "0");
    let _ = std::fs::write(dir.join("cgroup.kill"), "1");
    let end = Instant::now() + PATIENCE;
    while std::fs::remove_dir(dir).is_err() && dir.exists() && Instant::now() < end {
        sleep(PAUSE);
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
