//! Attacks on a run over nodes: a worker, its run, a whole node or the coordinator is killed at random moments. A dead
//! coordinator is started again and resumes. In the end each job has run, each success is logged once, and the next run leaves
//! no temporary folder of the killed ones.

use crate::batch::{Dice, POLICIES, WORK, apart};
use crate::seen::{SeenProcess, all, in_folder, signal};
use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Who is killed.
#[derive(Clone, Copy, Debug)]
enum Victim {
    Worker,
    /// The run that the worker has started.
    Run,
    /// A worker with all its descendants, the jobs among them.
    Node,
    Coordinator,
}

const VICTIMS: [Victim; 4] = [
    Victim::Worker,
    Victim::Run,
    Victim::Node,
    Victim::Coordinator,
];

/// Jobs of a batch.
const JOBS: u64 = 12;

/// Longer than all jobs take, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks at what is awaited.
const PAUSE: Duration = Duration::from_millis(20);

/// A run over three nodes in a folder of its own.
struct Nodes {
    program: PathBuf,
    /// How the nodes freeze jobs, and by which policy.
    options: [&'static str; 4],
    folder: tempfile::TempDir,
    coordinator: Child,
}

/// Makes one attack. Returns who was killed, and what is wrong, if something is.
///
/// # Errors
/// The attack can't be made.
pub fn attack(program: &Path, seed: u64) -> Result<(String, Option<String>)> {
    let mut dice = Dice::new(seed);
    let freeze = dice.one_of(&["signals", "auto"]);
    let policy = dice.one_of(&POLICIES);
    let mut nodes = Nodes::new(program, freeze, policy)?;
    let mut killed = vec![freeze.to_owned(), policy.to_owned()];
    for _ in 0..=dice.below(4) {
        sleep(Duration::from_millis(dice.below(800)));
        let victim = dice.one_of(&VICTIMS);
        nodes.strike(victim, &mut dice)?;
        nodes.go_on()?;
        killed.push(format!("{victim:?}"));
    }
    let problem = nodes.finish()?;
    Ok((killed.join(", "), problem))
}

/// The commands of the batch. Each writes a line at its start and one at its end.
fn commands() -> String {
    let line = |job| format!("echo start {job} >> lines; sh ./work; echo end {job} >> lines\n");
    (1..=JOBS).map(line).collect()
}

impl Nodes {
    fn new(program: &Path, freeze: &'static str, policy: &'static str) -> Result<Nodes> {
        let folder = tempfile::tempdir()?;
        std::fs::create_dir(temporary(folder.path()))?;
        std::fs::write(folder.path().join("work"), WORK)?;
        std::fs::write(folder.path().join("commands"), commands())?;
        let options = ["--freeze", freeze, "--policy", policy];
        let coordinator = start(program, folder.path(), options)?;
        Ok(Nodes {
            program: program.to_owned(),
            options,
            folder,
            coordinator,
        })
    }

    fn strike(&mut self, victim: Victim, dice: &mut Dice) -> Result<()> {
        if let Victim::Coordinator = victim {
            self.coordinator.kill()?;
            return Ok(());
        }
        let processes = all();
        let workers = children(&processes, self.coordinator.id() as i32);
        if workers.is_empty() {
            return Ok(());
        }
        let worker = dice.one_of(&workers);
        let killed = match victim {
            Victim::Run => children(&processes, worker),
            Victim::Node => tree(&processes, worker),
            Victim::Worker | Victim::Coordinator => vec![worker],
        };
        for pid in killed {
            signal(pid, Signal::KILL);
        }
        Ok(())
    }

    /// Starts the coordinator again if it was killed, or has no node left.
    fn go_on(&mut self) -> Result<()> {
        if let Some(status) = self.coordinator.try_wait()?
            && !status.success()
        {
            self.coordinator = start(&self.program, self.folder.path(), self.options)?;
        }
        Ok(())
    }

    /// Lets the run end, and returns what is wrong.
    fn finish(&mut self) -> Result<Option<String>> {
        let mut problems = Vec::new();
        while !self.end()?.success() {
            self.go_on()?;
        }
        let folder = self.folder.path();
        let log = std::fs::read_to_string(folder.join("joblog"))?;
        let wrote = std::fs::read_to_string(folder.join("lines"))?;
        for job in 1..=JOBS {
            let successes = log.lines().filter(|line| is_success(line, job)).count();
            let ends = wrote.lines().filter(|line| *line == format!("end {job}"));
            if successes != 1 || ends.count() == 0 {
                problems.push(format!("job {job} is logged {successes} times"));
            }
        }
        let end = Instant::now() + PATIENCE;
        while !in_folder(folder).is_empty() {
            if Instant::now() > end {
                problems.push(format!("processes are left: {:?}", in_folder(folder)));
                break;
            }
            sleep(PAUSE);
        }
        let left = left_after_next_run(&self.program, folder)?;
        if !left.is_empty() {
            problems.push(format!("temporary folders are left: {left:?}"));
        }
        Ok((!problems.is_empty()).then(|| problems.join("; ")))
    }

    /// Waits for the end of the coordinator.
    fn end(&mut self) -> Result<ExitStatus> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.coordinator.try_wait()? {
                return Ok(status);
            }
            ensure!(Instant::now() < end, "the run does not end");
            sleep(PAUSE);
        }
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        let _ = self.coordinator.kill();
        let _ = self.coordinator.wait();
        for process in in_folder(self.folder.path()) {
            signal(process.pid, Signal::KILL);
        }
    }
}

fn start(program: &Path, folder: &Path, options: [&str; 4]) -> Result<Child> {
    let mut command = apart(program, folder);
    command.args([
        "run", "--nodes", "local:3", "--joblog", "joblog", "--resume",
    ]);
    command.args(["--quiet", "--no-logs", "--param", "quantum_s=0.02"]);
    command.args(options).args(["-f", "commands"]);
    command.env("TMPDIR", temporary(folder)).current_dir(folder);
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    Ok(command.stderr(Stdio::null()).spawn()?)
}

/// The temporary folders that are there after another run: it removes those of killed runs. A run that has ended, and could not
/// show all output, keeps its folder, with its record.
fn left_after_next_run(program: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let next = apart(program, folder)
        .args(["run", "--quiet", "--logs", "next", "--", "true"])
        .env("TMPDIR", temporary(folder))
        .current_dir(folder)
        .status()?;
    ensure!(next.success(), "the next run fails");
    let mut left = Vec::new();
    for entry in temporary(folder).read_dir()? {
        let path = entry?.path();
        if !path.join("run.json").exists() {
            left.push(path);
        }
    }
    Ok(left)
}

/// The temporary directory of all runs in a folder.
fn temporary(folder: &Path) -> PathBuf {
    folder.join("tmp")
}

/// Whether a line of a job log is a success of this job.
fn is_success(line: &str, job: u64) -> bool {
    let columns: Vec<&str> = line.split('\t').collect();
    let is_job = columns.first().is_some_and(|seq| *seq == job.to_string());
    is_job && columns.get(6..8) == Some(&["0", "0"])
}

fn children(processes: &[SeenProcess], parent: i32) -> Vec<i32> {
    let children = processes.iter().filter(|process| process.parent == parent);
    children.map(|process| process.pid).collect()
}

/// A process with its descendants.
fn tree(processes: &[SeenProcess], root: i32) -> Vec<i32> {
    let mut tree = vec![root];
    let mut next = 0;
    while next < tree.len() {
        tree.extend(children(processes, tree[next]));
        next += 1;
    }
    tree
}
