//! Makes the runs of a comparison that are not made yet: on this machine one at a time, in a simulation many at once.

use super::child::{Children, Ended, What};
use super::meter::{Meter, Seen};
use super::options;
use crate::exit::{Exit, Failure};
use crate::input::quote;
use crate::whole_file::{read_own, write_whole};
use anyhow::Context as _;
use cosched_experiments::comparison::{
    COMMAND_FILE, COMMAND_SCHEMA, CommandRun, Design, Means, Outcome, RUN_FILE, Store, Trial,
};
use cosched_linux::{Interrupt, Interrupts};
use cosched_report::{Record, count, seconds, visible};
use cosched_run::Screen;
use rustix::process::Signal;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(50);

/// The block whose series a simulation keeps.
const FIRST_BLOCK: u32 = 1;

/// What makes runs, and shows how far it is.
pub(super) struct Runs<'a> {
    pub(super) store: &'a Store,
    pub(super) design: &'a Design,
    pub(super) signals: &'a Interrupts,
    pub(super) screen: &'a Screen,
    /// Runs at once.
    pub(super) threads: usize,
}

/// Why no further run was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stopped {
    /// All were made.
    No,
    /// The user interrupted it with this signal.
    Signal(i32),
    /// Its time was over.
    Time,
}

/// `cosched run` with a mix, as it is run for comparisons.
pub(super) fn cosched_run(design: &Design, mix: usize) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("cosched")
        .arg("run")
        .arg(&design.mixes[mix].file)
        .args(["--on", &design.on]);
    as_begun(&mut command, design);
    for name in options::own_variables() {
        command.env_remove(name);
    }
    command
}

/// Lets a program run where the comparison began, and with the variables that it began with.
fn as_begun(command: &mut Command, design: &Design) {
    if !design.folder.is_empty() {
        command.current_dir(&design.folder);
    }
    for name in options::variables() {
        command.env_remove(name);
    }
    command.envs(&design.environment);
}

/// The options of `cosched run` for a candidate; `None` of a command.
pub(super) fn candidate_options(design: &Design, candidate: usize) -> Option<Vec<String>> {
    let Means::Policy { policy, params } = &design.candidates[candidate].means else {
        return None;
    };
    let mut options = vec!["--policy".to_owned(), policy.clone()];
    for (name, value) in params {
        options.extend(["--param".to_owned(), format!("{name}={value}")]);
    }
    Some(options)
}

impl Runs<'_> {
    /// Makes those of these runs that were not made yet, and adds what they came to. No further one begins after `until`.
    ///
    /// # Errors
    /// A run could not be made, or what one left can't be read.
    pub(super) fn make(
        &self,
        trials: &[Trial],
        outcomes: &mut Vec<Outcome>,
        until: Option<Instant>,
    ) -> anyhow::Result<Stopped> {
        let done: std::collections::BTreeSet<Trial> =
            outcomes.iter().map(|outcome| outcome.trial).collect();
        let open: Vec<Trial> = trials
            .iter()
            .copied()
            .filter(|trial| !done.contains(trial))
            .collect();
        let is_late = || until.is_some_and(|until| Instant::now() >= until);
        let children = Children::new(self.store.folder());
        let (next, ended, stop) = (
            AtomicUsize::new(0),
            AtomicUsize::new(0),
            AtomicBool::new(false),
        );
        let late = AtomicBool::new(false);
        let made: Mutex<Vec<Outcome>> = Mutex::default();
        let failed: Mutex<Option<anyhow::Error>> = Mutex::default();
        let now: Mutex<String> = Mutex::default();
        let workers = AtomicUsize::new(self.threads.clamp(1, open.len().max(1)));
        let mut stopped = Stopped::No;
        let began = Instant::now();
        let maker = Maker {
            store: self.store,
            design: self.design,
            signals: self.signals,
        };
        let work = || {
            while !stop.load(Ordering::Relaxed) {
                let Some(&trial) = open.get(next.fetch_add(1, Ordering::Relaxed)) else {
                    break;
                };
                if is_late() {
                    late.store(true, Ordering::Relaxed);
                    break;
                }
                set(&now, maker.name(trial));
                match maker.run(trial, &children) {
                    Ok(Some(outcome)) => {
                        let mut made = made.lock().unwrap_or_else(|broken| broken.into_inner());
                        made.push(outcome);
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                    // Somebody else ended it.
                    Ok(None) => stop.store(true, Ordering::Relaxed),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        let mut failed = failed.lock().unwrap_or_else(|broken| broken.into_inner());
                        failed.get_or_insert(error);
                    }
                }
            }
            workers.fetch_sub(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            (0..workers.load(Ordering::Relaxed)).for_each(|_| drop(scope.spawn(work)));
            let line = || {
                let done = ended.load(Ordering::Relaxed);
                let left =
                    began.elapsed().as_secs_f64() / done.max(1) as f64 * (open.len() - done) as f64;
                let left = if done > 0 {
                    format!(", about {} left", seconds(left))
                } else {
                    String::new()
                };
                let now = now.lock().map(|now| now.clone()).unwrap_or_default();
                format!(
                    "{done} of {} done{left}; {now}",
                    count(open.len() as u64, "run")
                )
            };
            while workers.load(Ordering::Relaxed) > 0 {
                std::thread::sleep(LOOK);
                match self.signals.next_signal() {
                    Some(Interrupt::End(signal)) => {
                        stopped = Stopped::Signal(signal);
                        stop.store(true, Ordering::Relaxed);
                        children.signal(signal);
                    }
                    Some(Interrupt::Suspend) => {
                        self.screen.clear();
                        children.suspend();
                    }
                    Some(Interrupt::Ask) => self.screen.answer(&format!("cosched: {}", line())),
                    None => {}
                }
                self.screen.progress(|_| line());
                self.screen.sign_of_life(line);
            }
        });
        self.screen.clear();
        outcomes.extend(
            made.into_inner()
                .unwrap_or_else(|broken| broken.into_inner()),
        );
        outcomes.sort_by_key(|outcome| outcome.trial);
        match failed
            .into_inner()
            .unwrap_or_else(|broken| broken.into_inner())
        {
            Some(error) if stopped == Stopped::No => Err(error),
            _ if stopped == Stopped::No && late.load(Ordering::Relaxed) => Ok(Stopped::Time),
            _ if stopped == Stopped::No && stop.load(Ordering::Relaxed) => Ok(Stopped::Signal(15)),
            _ => Ok(stopped),
        }
    }
}

/// What makes one run. Several threads may use it.
struct Maker<'a> {
    store: &'a Store,
    design: &'a Design,
    signals: &'a Interrupts,
}

impl Maker<'_> {
    fn name(&self, trial: Trial) -> String {
        let mix = &self.design.mixes[trial.mix].name;
        format!(
            "block {}, {mix} under {}",
            trial.block, self.design.candidates[trial.candidate].name
        )
    }

    /// Makes a run; `None` if it was ended from outside.
    fn run(&self, trial: Trial, children: &Children<'_>) -> anyhow::Result<Option<Outcome>> {
        let folder = self.store.run(trial);
        // What an interrupted run left there.
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("can't remove {}", folder.display()));
            }
            _ => {}
        }
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("can't make {}", folder.display()))?;
        match &self.design.candidates[trial.candidate].means {
            Means::Command(line) => self.command(line, &folder, children)?,
            Means::Policy { .. } => self.cosched(trial, &folder, children)?,
        }
        Ok(self.store.outcome(trial)?)
    }

    fn command(&self, line: &str, folder: &Path, children: &Children<'_>) -> anyhow::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]);
        as_begun(&mut command, self.design);
        let meter = Meter::begin();
        let ended = children.run(command, What::Command, self.signals)?;
        if children.were_asked() {
            return Ok(());
        }
        // While it was suspended others used the CPUs, and that is no matter.
        let meter = meter.filter(|_| ended.suspended.is_zero());
        let errors =
            Some(&ended.err).filter(|text| !ended.status.success() && !text.trim().is_empty());
        let run = CommandRun {
            errors: errors.cloned(),
            ..noted(line.to_owned(), &ended, meter.map(Meter::end))
        };
        keep(folder, &run)
    }

    fn cosched(&self, trial: Trial, folder: &Path, children: &Children<'_>) -> anyhow::Result<()> {
        let mut command = cosched_run(self.design, trial.mix);
        command.args(candidate_options(self.design, trial.candidate).unwrap_or_default());
        command.args([
            "--history",
            "off",
            "--quiet",
            "--seed",
            &self.design.seed_of(trial.block).to_string(),
        ]);
        command.arg("--logs").arg(folder);
        if !self.design.is_simulated() {
            let solo = self.store.solo(trial.mix);
            if solo.exists() {
                command.arg("--solo").arg(solo);
            }
        }
        command.args(&self.design.options);
        let words = command
            .get_args()
            .map(|word| quote(word.as_encoded_bytes()));
        let line = format!("cosched {}", words.collect::<Vec<_>>().join(" "));
        let what = if self.design.is_simulated() {
            What::Simulation
        } else {
            What::Run
        };
        let ended = children.run(command, what, self.signals)?;
        let is_made = folder.join(RUN_FILE).exists();
        if ended.status.signal().is_none() && is_made && !self.design.is_simulated() {
            keep(folder, &noted(line, &ended, None))?;
            drop_output(folder);
        }
        // Megabytes each, and whoever wants another one simulates it again.
        if self.design.is_simulated() && trial.block != FIRST_BLOCK {
            let _ = std::fs::remove_file(folder.join("series.jsonl"));
        }
        let error = killed(&ended, &self.name(trial), self.store.folder())
            .filter(|_| !children.were_asked());
        match error {
            Some(error) => Err(error),
            None if is_made || ended.status.signal().is_some() => Ok(()),
            None => Err(failure(&ended, &self.name(trial))),
        }
    }
}

/// Removes what the jobs of a run wrote, but for those that failed: it is the same in each run, and fills the disk.
fn drop_output(folder: &Path) {
    let record = read_own(&folder.join(RUN_FILE)).and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(record) = record.and_then(|text| Record::from_json(&text).ok()) else {
        return;
    };
    for job in record.jobs.iter().filter(|job| job.exit == Some(0)) {
        for log in [&job.log, &job.log_stderr]
            .into_iter()
            .flatten()
            .map(Path::new)
        {
            if log.parent() == Some(folder) {
                // One that stays costs room, and nothing else.
                let _ = std::fs::remove_file(log);
            }
        }
    }
}

/// What a program took, and, unless its record says so, who else used the CPUs.
fn noted(command: String, ended: &Ended, seen: Option<Seen>) -> CommandRun {
    let (machine_load, doubts) = seen.map(|seen| (seen.load, seen.doubts)).unzip();
    let mut doubts: Vec<String> = doubts.unwrap_or_default();
    if ended.left > 0 {
        let left = if ended.left == 1 {
            "a process".to_owned()
        } else {
            format!("{} processes", ended.left)
        };
        doubts.push(format!(
            "the command left {left} behind, which had to be ended: its time does not tell all that it did"
        ));
    }
    if !ended.suspended.is_zero() {
        let time = seconds(ended.suspended.as_secs_f64());
        doubts.push(format!("it was suspended for {time}, which does not count, and found its caches cold afterwards"));
    }
    CommandRun {
        schema: COMMAND_SCHEMA.to_owned(),
        command,
        elapsed_s: ended.time.as_secs_f64(),
        exit: ended
            .status
            .code()
            .or_else(|| Some(128 + ended.status.signal()?))
            .unwrap_or(-1),
        machine_load,
        errors: None,
        doubts,
    }
}

fn keep(folder: &Path, run: &CommandRun) -> anyhow::Result<()> {
    write_whole(
        &folder.join(COMMAND_FILE),
        serde_json::to_string_pretty(run)?.as_bytes(),
    )
}

fn set(now: &Mutex<String>, text: String) {
    if let Ok(mut now) = now.lock() {
        *now = text;
    }
}

/// The error of a run that was ended by a signal that nobody sent who went through this comparison; `None` of any other run.
pub(super) fn killed(ended: &Ended, what: &str, folder: &Path) -> Option<anyhow::Error> {
    let signal = ended.status.signal()?;
    let why = if signal == Signal::KILL.as_raw() {
        ", as the kernel does where memory runs out"
    } else {
        ""
    };
    let jobs = |names: &[String]| {
        names
            .iter()
            .map(|name| visible(name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (done, remedy) = match (&ended.ended_jobs[..], &ended.live_jobs[..]) {
        ([], []) => (String::new(), ""),
        (ended, []) => (
            format!("; its jobs that went on were ended: {}", jobs(ended)),
            "",
        ),
        (_, live) => (
            format!(
                "; jobs of it still go on, and can't be ended by this user: {}",
                jobs(live)
            ),
            "end them (`cosched thaw --kill` as root), and ",
        ),
    };
    let message = format!(
        "{what}: its `cosched run` was ended from outside ({}){why}{done}; {remedy}go on with `cosched compare \
         --resume {}`",
        ended.status,
        quote(folder.as_os_str().as_encoded_bytes())
    );
    Some(
        Failure {
            exit: Exit::Failure,
            message,
        }
        .into(),
    )
}

/// The error that `cosched run` gave, with its exit code.
pub(super) fn failure(ended: &Ended, what: &str) -> anyhow::Error {
    let exit = match ended.status.code() {
        Some(2) => Exit::Usage,
        Some(3) => Exit::Incapable,
        Some(4) => Exit::Permission,
        _ => Exit::Failure,
    };
    let told = ended
        .err
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    let told = told.strip_prefix("cosched: ").unwrap_or(&told);
    let told = if told.is_empty() {
        ended.status.to_string()
    } else {
        told.to_owned()
    };
    Failure {
        exit,
        message: format!("{what}: {told}"),
    }
    .into()
}
