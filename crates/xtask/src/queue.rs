//! Attacks on the service that keeps a queue: it, its worker or both are killed at random moments while jobs come. In the
//! end each job must have run once.

use crate::batch::{Dice, WORK, apart};
use crate::seen::{all, in_folder, signal};
use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Service,
    Worker,
    Both,
}

const VICTIMS: [Victim; 3] = [Victim::Service, Victim::Worker, Victim::Both];

/// Longer than all jobs take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks at what is awaited.
const PAUSE: Duration = Duration::from_millis(20);

/// A service with folders of its own.
struct Served {
    program: PathBuf,
    /// How its run freezes jobs.
    freeze: &'static str,
    folder: tempfile::TempDir,
    service: Option<Child>,
    /// Numbers of the jobs that were accepted, in the queue and in what they write. No other job may run.
    accepted: Vec<(String, u64)>,
    /// What was wrong with the answers so far.
    problems: Vec<String>,
    /// The number that the next job writes.
    next: u64,
}

/// Makes one attack. Returns how jobs were frozen and who was killed, and what is wrong, if something is.
///
/// # Errors
/// The attack can't be made.
pub fn attack(program: &Path, seed: u64) -> Result<(String, Option<String>)> {
    let mut dice = Dice::new(seed);
    let freeze = dice.one_of(&["signals", "auto"]);
    let mut served = Served::new(program, freeze)?;
    let mut killed = vec![freeze.to_owned()];
    for _ in 0..=dice.below(4) {
        served.serve()?;
        for _ in 0..=dice.below(4) {
            served.submit()?;
        }
        sleep(Duration::from_millis(dice.below(400)));
        let victim = dice.one_of(&VICTIMS);
        let beside = served.begin_submit()?;
        sleep(Duration::from_millis(dice.below(30)));
        served.strike(victim)?;
        served.serve()?;
        served.finish_submit(beside)?;
        killed.push(format!("{victim:?}"));
    }
    served.serve()?;
    let problem = served.finish()?;
    Ok((killed.join(", "), problem))
}

impl Served {
    fn new(program: &Path, freeze: &'static str) -> Result<Served> {
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("work"), WORK)?;
        Ok(Served {
            program: program.to_owned(),
            freeze,
            folder,
            service: None,
            accepted: Vec::new(),
            problems: Vec::new(),
            next: 1,
        })
    }

    fn command(&self, words: &[&str]) -> Command {
        let folder = self.folder.path();
        let mut command = apart(&self.program, folder);
        command
            .env("XDG_STATE_HOME", folder.join("state"))
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    fn call(&self, words: &[&str]) -> Result<Output> {
        let mut command = self.command(words);
        Ok(command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()?)
    }

    /// Starts the service if it is dead.
    fn serve(&mut self) -> Result<()> {
        if let Some(service) = &mut self.service
            && service.try_wait()?.is_none()
        {
            return Ok(());
        }
        let options = ["serve", "--", "--jobs", "3", "--param", "quantum_s=0.02"];
        let policy = ["--policy", "round-robin", "--freeze", self.freeze];
        self.service = Some(self.command(&[&options[..], &policy].concat()).spawn()?);
        Ok(())
    }

    /// Submits a job, once the service listens.
    fn submit(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            let begun = self.begin_submit()?;
            if self.finish_submit(begun)? {
                return Ok(());
            }
            ensure!(Instant::now() < end, "no job is accepted");
            sleep(PAUSE);
        }
    }

    /// Begins to submit a job, which writes a line at its start and one at its end. Returns its number there.
    fn begin_submit(&mut self) -> Result<(u64, Child)> {
        let number = self.next;
        self.next += 1;
        let line = format!("echo start {number} >> lines; sh ./work; echo end {number} >> lines");
        let mut submit = self.command(&["submit", &line]);
        submit.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok((number, submit.spawn()?))
    }

    /// Waits for the answer; returns whether the job was accepted. There is a service, so it must be known whether it was.
    fn finish_submit(&mut self, (number, submit): (u64, Child)) -> Result<bool> {
        let answer = submit.wait_with_output()?;
        if answer.status.success() {
            let id = String::from_utf8(answer.stdout)?.trim().to_owned();
            self.accepted.push((id, number));
            return Ok(true);
        }
        let why = String::from_utf8_lossy(&answer.stderr);
        if !why.contains("no service listens") {
            self.problems
                .push(format!("job {number}: {}", why.trim_end()));
        }
        Ok(false)
    }

    fn strike(&mut self, victim: Victim) -> Result<()> {
        let service = self.service.as_mut().context("the service")?;
        let pid = service.id() as i32;
        let worker = all().into_iter().find(|process| process.parent == pid);
        if let (Some(worker), Victim::Worker | Victim::Both) = (worker, victim) {
            signal(worker.pid, Signal::KILL);
        }
        if let Victim::Service | Victim::Both = victim {
            service.kill()?;
            service.wait()?;
        }
        Ok(())
    }

    /// Waits for all jobs, ends the service, and returns what is wrong.
    fn finish(&mut self) -> Result<Option<String>> {
        let end = Instant::now() + PATIENCE;
        // There is no job 0: a service that listens says so.
        while self.call(&["wait", "0"])?.status.code() != Some(2) {
            ensure!(Instant::now() < end, "the service does not answer");
            sleep(PAUSE);
        }
        let mut problems = std::mem::take(&mut self.problems);
        for (id, _) in &self.accepted {
            problems.extend(self.wait(id)?);
        }
        let wrote = std::fs::read_to_string(self.folder.path().join("lines"))?;
        for number in 1..self.next {
            let is_accepted = self.accepted.iter().any(|(_, known)| *known == number);
            for what in ["start", "end"] {
                let line = format!("{what} {number}");
                let count = wrote.lines().filter(|wrote| *wrote == line).count();
                if count != usize::from(is_accepted) {
                    problems.push(format!("`{line}` {count} times"));
                }
            }
        }
        self.call(&["drain"])?;
        let service = self.service.as_mut().context("the service")?;
        let end = Instant::now() + PATIENCE;
        while service.try_wait()?.is_none() || !in_folder(self.folder.path()).is_empty() {
            if Instant::now() > end {
                let left = in_folder(self.folder.path());
                problems.push(format!("processes are left: {left:?}"));
                break;
            }
            sleep(PAUSE);
        }
        Ok((!problems.is_empty()).then(|| problems.join("; ")))
    }

    /// Waits for a job, and returns what is wrong with its end.
    fn wait(&self, id: &str) -> Result<Option<String>> {
        let mut wait = self.command(&["wait", id]);
        let mut wait = wait.stderr(Stdio::piped()).spawn()?;
        let end = Instant::now() + PATIENCE;
        while wait.try_wait()?.is_none() {
            if Instant::now() > end {
                wait.kill()?;
                wait.wait()?;
                return Ok(Some(format!("job {id} does not end")));
            }
            sleep(PAUSE);
        }
        let Output { status, stderr, .. } = wait.wait_with_output()?;
        let why = String::from_utf8_lossy(&stderr).trim_end().to_owned();
        Ok((!status.success()).then_some(why))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(service) = &mut self.service {
            let _ = service.kill();
            let _ = service.wait();
        }
        for process in in_folder(self.folder.path()) {
            signal(process.pid, Signal::KILL);
        }
    }
}
