//! What simulations share: the built-in one (`simulated`) and those in processes of their own (`world`). Their jobs are known
//! beforehand, and leave neither output nor processes.

use super::MachineView;
use crate::cpus::{CpuChoice, usable_text};
use crate::exit::{Exit, Failure, usage};
use crate::input::spec::EXAMPLE_PROGRAM;
use crate::input::told;
use crate::options::{Actuator, Freeze, JobSource, RunOptions, Show};
use crate::screen::Screen;
use crate::signals::Signals;
use anyhow::Result;
use cosched_core::{Capabilities, Capability, Counter, CpuSet, Machine};
use cosched_foreign::Command;
use cosched_report::{BackendKind, EnergySource, SettingFile};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What is known about a simulated machine before a run.
pub(crate) fn view(
    machine: Arc<Machine>,
    capabilities: Capabilities,
    params: Vec<(String, String)>,
    files: Vec<SettingFile>,
) -> MachineView {
    MachineView {
        kind: BackendKind::Sim,
        whole: machine.clone(),
        machine,
        quota: None,
        by_slurm: Vec::new(),
        allocation: None,
        memory: None,
        counters: counted(&capabilities),
        capabilities,
        params,
        freezing: "simulated".to_owned(),
        // The report has a modelled figure even if policies have no meter to read.
        energy: EnergySource::Modelled,
        measures_width: false,
        refused: None,
        world: None,
        files,
        folders: Vec::new(),
        warnings: Vec::new(),
    }
}

/// What can be counted, in words; `None` if nothing can.
fn counted(capabilities: &Capabilities) -> Option<String> {
    let mut counted = Vec::new();
    for capability in Counter::ALL.into_iter().map(Capability::of) {
        if capabilities.why_missing(capability).is_none() {
            counted.push(capability.text());
        }
    }
    // Several counters can be one capability.
    counted.dedup();
    if counted.is_empty() {
        return None;
    }
    let counted = counted.join(", ");
    Some(format!("simulated ({counted})"))
}

/// The CPUs of `--cpus`; `None` without it.
pub(crate) fn usable_cpus(
    options: &RunOptions,
    machine: &str,
    all: &CpuSet,
) -> Result<Option<CpuSet>> {
    let listed = options.machine.cpus.as_ref().and_then(CpuChoice::list);
    if let Some(cpus) = listed
        && (cpus.is_empty() || !cpus.is_subset(all))
    {
        let usable = usable_text(all);
        return Err(usage(format!(
            "--cpus {cpus}: not all of them exist on {machine}; {usable}"
        )));
    }
    Ok(listed.cloned())
}

/// Refuses what has no meaning in a simulation `on` a machine, or in a world.
pub(crate) fn check_options(options: &RunOptions, on: &str) -> Result<()> {
    if on == Command::MARK {
        return Err(usage(format!(
            "--on {on}: there is no command, as in --on \"{on}python3 world.py\""
        )));
    }
    let RunOptions {
        machine,
        limits,
        output,
        ..
    } = options;
    let given = [
        ("--freeze", machine.freeze != Freeze::Auto),
        ("--actuator", machine.actuator != Actuator::Freezer),
        ("--polite", machine.polite),
        ("--jobserver", machine.jobserver),
        ("--event", !machine.events.is_empty()),
        ("--mem-keep", limits.mem_keep.is_some()),
        ("--load", limits.load.is_some()),
        (
            "--output",
            output.show.is_some_and(|show| show != Show::Nothing),
        ),
        ("--keep-order", output.keep_order),
        ("--metrics", output.metrics.is_some()),
        ("--progress-pattern", output.progress_pattern.is_some()),
        ("--shell", options.shell.is_some()),
        ("--workdir", options.cwd.is_some()),
        ("--nice", options.nice.is_some()),
        ("--resume", options.resume.is_some()),
    ];
    let named = told(on);
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return Err(usage(format!(
            "{option} has no meaning in a simulation (--on {named}); leave it out"
        )));
    }
    let has_commands = match &options.jobs {
        JobSource::Mix(_) => false,
        JobSource::List(_) => true,
        JobSource::Command(words, _) => !words.is_empty(),
    };
    if has_commands {
        let jobs = match Command::of(on) {
            Some(_) => ", whose jobs may have a table `given` for the world".to_owned(),
            None => format!(" whose jobs have a `program`, as in program = \"{EXAMPLE_PROGRAM}\""),
        };
        return Err(usage(format!(
            "--on {named}: commands can't be simulated; give a mix file{jobs}"
        )));
    }
    Ok(())
}

/// Solo runs that take less than this show no progress line.
const PATIENCE: Duration = Duration::from_secs(1);

/// The user's view of the jobs' solo runs, which are simulated before the run: progress, and Ctrl-C to end them.
pub(crate) struct SoloProgress {
    screen: Screen,
    jobs: usize,
    since: Instant,
    signals: Signals,
    /// The signal that ended the solo runs.
    signal: Cell<Option<i32>>,
}

impl SoloProgress {
    pub(crate) fn new(quiet: bool, jobs: usize, signals: Signals) -> SoloProgress {
        SoloProgress {
            screen: Screen::new(quiet),
            jobs,
            since: Instant::now(),
            signals,
            signal: Cell::new(None),
        }
    }

    /// Shows how many solo runs are `done`.
    pub(crate) fn show(&self, done: usize) {
        if self.since.elapsed() > PATIENCE {
            self.screen
                .progress(|_| format!("simulating {} jobs alone: {done} done", self.jobs));
        }
    }

    /// Shows how many solo runs are `done`; returns whether a signal came.
    pub(crate) fn look(&self, done: usize) -> bool {
        self.show(done);
        let signal = self.next_signal();
        if signal.is_some() {
            self.signal.set(signal);
        }
        signal.is_some()
    }

    /// Removes the progress line.
    pub(crate) fn clear(&self) {
        self.screen.clear();
    }

    /// The signal that ended the solo runs, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.signal.get()
    }

    /// The next signal that ends the run.
    pub(crate) fn next_signal(&self) -> Option<i32> {
        self.signals.next()
    }
}

/// The error of a run that a signal ended before it began.
pub(crate) fn interrupted(signal: i32, error: &impl ToString) -> anyhow::Error {
    let failure = Failure {
        exit: Exit::Signal(signal),
        message: error.to_string(),
    };
    failure.into()
}

/// The error that nothing can be simulated; `on` is the machine.
pub(crate) fn refused(on: &str, error: &impl ToString) -> anyhow::Error {
    let error = error.to_string();
    usage(format!("--on {}: {error}; nothing was started", told(on)))
}
