//! Attacks: a small batch is started, something is killed at a random moment, and what is left is counted.

use crate::batch::{Dice, POLICIES, WORK, mix};
use crate::left::Traces;
use crate::seen::{guardian, in_folder, mount, seen, signal, token};
use anyhow::{Context as _, ensure};
use clap::Args;
use rustix::process::Signal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

/// What to attack, and how often.
#[derive(Args, Debug)]
pub(crate) struct AttackArgs {
    /// How many batches
    #[arg(long, default_value_t = 20)]
    runs: u64,

    /// The same seed makes the same batches and the same choices
    #[arg(long, default_value_t = 1)]
    seed: u64,

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

pub(crate) fn run(args: &AttackArgs) -> anyhow::Result<ExitCode> {
    let program = match &args.program {
        Some(program) => program
            .canonicalize()
            .with_context(|| program.display().to_string())?,
        None => built()?,
    };
    let mut failed = 0;
    for number in 0..args.runs {
        let seed = args.seed.wrapping_add(number);
        let (what, left) = attack(&program, seed)?;
        let verdict = if left.is_none() { "ok  " } else { "LEFT" };
        println!(
            "{verdict} seed {seed}: {what}{}",
            left.as_ref()
                .map_or(String::new(), |left| format!(": {left}"))
        );
        failed += u64::from(left.is_some());
    }
    println!("{} of {} attacks left something behind", failed, args.runs);
    Ok(if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Builds the program, and finds it beside this one.
fn built() -> anyhow::Result<PathBuf> {
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

/// Makes one attack. Returns what was done, and what was left in words, if anything was.
fn attack(program: &Path, seed: u64) -> anyhow::Result<(String, Option<String>)> {
    let mut dice = Dice::new(seed);
    let folder = tempfile::tempdir()?;
    let freezers: &[&str] = if mount().is_some() {
        &["signals", "auto"]
    } else {
        &["signals"]
    };
    let (freeze, policy, victim) = (
        dice.one_of(freezers),
        dice.one_of(&POLICIES),
        dice.one_of(&VICTIMS),
    );
    // docs/safety.md: by cgroup a job's own stop can be taken for the freeze.
    let outlived = matches!(victim, Victim::Nobody | Victim::Guardian | Victim::Job);
    let (kinds, text) = mix(
        &mut dice,
        &mount().unwrap_or_default(),
        outlived && freeze == "signals",
    );
    std::fs::write(folder.path().join("mix.toml"), text)?;
    std::fs::write(folder.path().join("work"), WORK)?;
    let what = format!("{freeze}, {policy}, {victim:?}, {}", kinds.join(" "));
    let child = Command::new(program)
        .env("COSCHED_HISTORY", "off")
        .args([
            "run",
            "mix.toml",
            "--logs",
            "logs",
            "-q",
            "--jobs",
            "8",
            "--max-pause",
            "0.1",
            "--grace",
            "1",
        ])
        .args(["--freeze", freeze, "--policy", policy])
        .args(if policy == "linux" {
            &[][..]
        } else {
            &["--param", "quantum_s=0.02"]
        })
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
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
        // docs/safety.md: without a guardian, thaw frees the jobs. It also removes the empty group of a run that was
        // killed before it had a guardian.
        let thaw = match victim {
            Victim::Both | Victim::StoppedGuardian => true,
            Victim::Cosched => left.processes.is_empty(),
            _ => false,
        };
        if thaw && over && looks % 10 == 0 {
            let _ = Command::new(program)
                .args(["thaw", "--run", &traces.token])
                .stdout(Stdio::null())
                .status();
        }
        looks += 1;
    });
    Ok((what, (!left.nothing()).then(|| left.to_string())))
}

/// Kills.
fn strike(victim: Victim, pid: i32, traces: &mut Traces, dice: &mut Dice) {
    match victim {
        Victim::Nobody => {}
        Victim::Cosched => signal(pid, Signal::KILL),
        Victim::Guardian => guardian(pid)
            .into_iter()
            .for_each(|guardian| signal(guardian, Signal::KILL)),
        Victim::Both => {
            signal(pid, Signal::STOP);
            guardian(pid)
                .into_iter()
                .for_each(|guardian| signal(guardian, Signal::KILL));
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
            let jobs: Vec<i32> = in_folder(&traces.folder)
                .iter()
                .map(|p| p.pid)
                .filter(|&job| job != pid)
                .collect();
            if !jobs.is_empty() {
                signal(dice.one_of(&jobs), Signal::KILL);
            }
        }
    }
}
