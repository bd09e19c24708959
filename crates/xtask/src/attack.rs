//! Attacks: a small batch is started, something is killed at a random moment, and what is left is counted.

use crate::attached;
use crate::batch::{Batch, Dice, POLICIES, WORK, apart, batch};
use crate::left::{Left, Traces};
use crate::nodes;
use crate::queue;
use crate::seen::{guardian, in_folder, mount, seen, signal, token};
use anyhow::{Context as _, Result, ensure};
use clap::Args;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// What to attack, and how often.
#[derive(Args, Debug)]
pub struct AttackArgs {
    /// How many batches
    #[arg(long, default_value_t = 20)]
    runs: u64,

    /// The same seed makes the same batches and the same choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

    /// Attack the service that keeps a queue, instead of runs
    #[arg(long)]
    queue: bool,

    /// Attack a session that manages running programs, instead of runs
    #[arg(long, conflicts_with = "queue")]
    attach: bool,

    /// Attack a run over nodes, instead of runs
    #[arg(long, conflicts_with_all = ["queue", "attach"])]
    nodes: bool,

    /// The program; by default it is built
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
}

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Cosched,
    Guardian,
    Both,
    /// The guardian is stopped, and cosched is killed later.
    StoppedGuardian,
    Job,
    Nobody,
}

const VICTIMS: [Victim; 6] = [
    Victim::Cosched,
    Victim::Guardian,
    Victim::Both,
    Victim::StoppedGuardian,
    Victim::Job,
    Victim::Nobody,
];

/// Longer than any batch takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(args: &AttackArgs) -> Result<ExitCode> {
    let program = match &args.program {
        Some(program) => program
            .canonicalize()
            .with_context(|| program.display().to_string())?,
        None => built()?,
    };
    let mut failed = 0;
    for number in 0..args.runs {
        let seed = args.seed.wrapping_add(number);
        let attacked = if args.queue {
            let (what, left) = queue::attack(&program, seed)?;
            Attacked { what, left }
        } else if args.attach {
            let (what, left) = attached::attack(&program, seed)?;
            Attacked { what, left }
        } else if args.nodes {
            let (what, left) = nodes::attack(&program, seed)?;
            Attacked { what, left }
        } else {
            attack(&program, seed)?
        };
        let what = attacked.what;
        match attacked.left {
            None => println!("ok   seed {seed}: {what}"),
            Some(left) => {
                println!("LEFT seed {seed}: {what}: {left}");
                failed += 1;
            }
        }
    }
    let runs = args.runs;
    println!("{failed} of {runs} attacks left something behind");
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds the program, and finds it beside this one.
fn built() -> Result<PathBuf> {
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "-p", "cosched"])
        .status()?;
    ensure!(built.success(), "the program can't be built");
    Ok(std::env::current_exe()?.with_file_name("cosched"))
}

/// A run that is killed with all that works in its folder when the attack ends before its time.
struct Run {
    child: Child,
    folder: tempfile::TempDir,
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for process in in_folder(self.folder.path()) {
            signal(process.pid, Signal::KILL);
        }
    }
}

/// An attack that was made.
struct Attacked {
    what: String,
    /// What was left behind, in words.
    left: Option<String>,
}

/// Makes one attack.
fn attack(program: &Path, seed: u64) -> Result<Attacked> {
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir()?;
    let freezers: &[&str] = if mount().is_some() {
        &["signals", "auto"]
    } else {
        &["signals"]
    };
    let freeze = dice.one_of(freezers);
    let policy = dice.one_of(&POLICIES);
    let victim = dice.one_of(&VICTIMS);
    // docs/safety.md: by cgroup a job's own stop can be taken for the freeze.
    let outlived = matches!(victim, Victim::Nobody | Victim::Guardian | Victim::Job);
    let may_stop = outlived && freeze == "signals";
    let mount = mount().unwrap_or_default();
    let Batch { kinds, mix } = batch(&mut dice, &mount, may_stop);
    std::fs::write(folder.path().join("mix.toml"), mix)?;
    std::fs::write(folder.path().join("work"), WORK)?;
    let kinds = kinds.join(" ");
    let what = format!("{freeze}, {policy}, {victim:?}, {kinds}");
    let child = start(program, folder.path(), freeze, policy)?;
    let pid = child.id() as i32;
    let token = token(pid).context("the run has gone")?;
    let mut traces = Traces {
        folder: folder.path().canonicalize()?,
        token,
        guardian: None,
    };
    let mut run = Run { child, folder };
    std::thread::sleep(Duration::from_millis(dice.below(600)));
    strike(victim, pid, &mut traces, &mut dice);
    let mut looks = 0;
    let left = traces.wait(PATIENCE, |left| {
        let over = run.child.try_wait().is_ok_and(|end| end.is_some());
        if over && needs_thaw(victim, left) && looks % 10 == 0 {
            thaw(program, &traces);
        }
        looks += 1;
    });
    let left = (!left.nothing()).then(|| left.to_string());
    Ok(Attacked { what, left })
}

fn start(program: &Path, folder: &Path, freeze: &str, policy: &str) -> std::io::Result<Child> {
    let quantum: &[&str] = if policy == "linux" {
        &[]
    } else {
        &["--param", "quantum_s=0.02"]
    };
    apart(program, folder)
        .args(["run", "mix.toml", "-q"])
        .args(["--logs", "logs"])
        .args(["--jobs", "8"])
        .args(["--max-pause", "0.1"])
        .args(["--grace", "1"])
        .args(["--freeze", freeze])
        .args(["--policy", policy])
        .args(quantum)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// Whether `cosched thaw` has something to do. docs/safety.md: without a guardian, it frees the jobs. It also removes the
/// empty group of a run that was killed before it had a guardian.
fn needs_thaw(victim: Victim, left: &Left) -> bool {
    match victim {
        Victim::Both | Victim::StoppedGuardian => true,
        Victim::Cosched => left.processes.is_empty(),
        Victim::Guardian | Victim::Job | Victim::Nobody => false,
    }
}

fn thaw(program: &Path, traces: &Traces) {
    let mut command = apart(program, &traces.folder);
    command.args(["thaw", "--run", &traces.token]);
    // The next call tries again.
    let _ = command.stdout(Stdio::null()).status();
}

/// Kills.
fn strike(victim: Victim, pid: i32, traces: &mut Traces, dice: &mut Dice) {
    match victim {
        Victim::Nobody => {}
        Victim::Cosched => signal(pid, Signal::KILL),
        Victim::Guardian => kill_guardian(pid),
        Victim::Both => {
            signal(pid, Signal::STOP);
            kill_guardian(pid);
            signal(pid, Signal::KILL);
        }
        Victim::StoppedGuardian => {
            if let Some(guardian) = guardian(pid) {
                traces.guardian = seen(guardian);
                signal(guardian, Signal::STOP);
            }
            std::thread::sleep(Duration::from_millis(dice.below(20)));
            signal(pid, Signal::KILL);
        }
        Victim::Job => {
            let processes = in_folder(&traces.folder);
            let mut jobs: Vec<i32> = processes.iter().map(|process| process.pid).collect();
            jobs.retain(|&job| job != pid);
            if !jobs.is_empty() {
                signal(dice.one_of(&jobs), Signal::KILL);
            }
        }
    }
}

fn kill_guardian(run: i32) {
    if let Some(guardian) = guardian(run) {
        signal(guardian, Signal::KILL);
    }
}
