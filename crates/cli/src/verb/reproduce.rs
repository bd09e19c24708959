//! `cosched reproduce`: the papers' experiments in the simulation, beside the published figures.

use super::run::seed;
use crate::exit::{Exit, Failure, OrUsage as _};
use crate::input::told;
use crate::output::{Made, check_output};
use crate::print::print;
use crate::whole_file::write_whole;
use anyhow::{Context as _, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use cosched_experiments::reproduction::findings::markdown::markdown;
use cosched_experiments::reproduction::{
    EXPERIMENTS, Experiment, Findings, Pool, ReproduceError, ReproductionRequest, reproduce,
};
use cosched_linux::{Interrupt, Interrupts};
use cosched_run::Screen;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Repeat the papers' experiments in the simulation, beside the published figures
///
/// Prints a Markdown document. Each chapter has a table of verdicts: the published figure, ours with its 95 % interval, and
/// their ratio. Experiments follow that show what causes the difference. The same request gives the same bytes on every
/// machine, with any number of threads. All papers take six to twelve minutes on two CPUs, and less than one with --quick.
#[derive(Args)]
pub struct ReproduceArgs {
    /// Experiments to repeat [default: all]
    #[arg(
        value_name = "EXPERIMENT",
        value_parser = PossibleValuesParser::new(EXPERIMENTS.iter().map(|one| one.name))
    )]
    experiments: Vec<String>,

    /// Shorter jobs and fewer seeds: a first look. Short jobs pay more for measurements
    #[arg(long)]
    quick: bool,

    /// Repetitions, each with its own seed [default: 20, with --quick 3]
    #[arg(long, value_name = "N")]
    seeds: Option<NonZeroUsize>,

    /// Seed of the first repetition
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        allow_negative_numbers = true,
        value_parser = seed
    )]
    seed: u64,

    /// Threads [default: one per usable CPU]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Also write reproduction.md into this folder, with each figure as SVG beside it
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

impl ReproduceArgs {
    /// The experiments to repeat, each once, in the order of the document.
    fn experiments(&self) -> Vec<&'static Experiment> {
        let names = &self.experiments;
        EXPERIMENTS
            .iter()
            .filter(|one| names.is_empty() || names.iter().any(|name| name == one.name))
            .collect()
    }

    fn threads(&self) -> usize {
        let usable = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.jobs.map_or(usable, NonZeroUsize::get)
    }
}

pub fn run(args: ReproduceArgs) -> Result<ExitCode> {
    let interrupts = Interrupts::hold().context("taking signals")?;
    if let Some(folder) = &args.out {
        // Fails before minutes of work, not after.
        std::fs::create_dir_all(folder).or_usage_in(format!("--out {}", told(folder)))?;
        check_output("--out", &document_in(folder), Made::Reproduction)?;
    }
    let request = ReproductionRequest {
        experiments: args.experiments(),
        quick: args.quick,
        seeds: args.seeds.map(NonZeroUsize::get),
        first_seed: args.seed,
    };
    let findings = reproduce_on_screen(&request, &args, &interrupts)?;
    if let Some(folder) = &args.out {
        write_all(&findings, folder)?;
    }
    print(markdown(&findings, None))
}

/// The time that all papers take with the usual seeds; `None` for another request.
fn usual_time(args: &ReproduceArgs) -> Option<&'static str> {
    if !args.experiments.is_empty() || args.seeds.is_some() {
        None
    } else if args.quick {
        Some("about 70 s of CPU time")
    } else {
        Some("12 to 24 minutes of CPU time; --quick takes about 70 s")
    }
}

/// Delay between two looks for signals.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out the request, shows its progress, and ends it at a signal.
fn reproduce_on_screen(
    request: &ReproductionRequest,
    args: &ReproduceArgs,
    interrupts: &Interrupts,
) -> Result<Findings> {
    let screen = Screen::new(args.quiet);
    if let Some(time) = usual_time(args) {
        screen.say(&format!("cosched: this takes {time}"));
    }
    let stop = AtomicBool::new(false);
    let now = Mutex::new(String::new());
    let progress = |what: &str, done: usize, all: usize| {
        *now.lock().unwrap_or_else(PoisonError::into_inner) = format!("{what}: {done} of {all}");
    };
    let pool = Pool {
        threads: args.threads(),
        progress: &progress,
        stop: &stop,
    };
    let mut signal = None;
    let found = std::thread::scope(|scope| {
        let worker = scope.spawn(|| reproduce(request, pool));
        while !worker.is_finished() {
            std::thread::sleep(LOOK);
            let line = now.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match interrupts.next_signal() {
                Some(Interrupt::End(number)) => {
                    signal = Some(number);
                    stop.store(true, Ordering::Relaxed);
                }
                // The kernel suspends this process: `Interrupts::hold` leaves that signal alone.
                Some(Interrupt::Suspend) | None => {}
            }
            screen.progress(|_| line.clone());
            screen.sign_of_life(|| line);
        }
        worker.join()
    });
    screen.clear();
    let found = found.map_err(|_| anyhow::anyhow!("the experiments ended without a result"))?;
    match (found, signal) {
        (Err(ReproduceError::Interrupted), Some(signal)) => Err(Failure {
            exit: Exit::Signal(signal),
            message: "interrupted; nothing was written".to_owned(),
        }
        .into()),
        (found, _) => Ok(found?),
    }
}

/// Name of the document, and of the folder beside it.
const NAME: &str = "reproduction";

fn document_in(folder: &Path) -> PathBuf {
    folder.join(format!("{NAME}.md"))
}

/// Writes the document, and beside it a folder with its figures.
fn write_all(findings: &Findings, folder: &Path) -> Result<()> {
    let beside = folder.join(NAME);
    std::fs::create_dir_all(&beside).with_context(|| format!("cannot create {}", told(&beside)))?;
    for (table, chart) in findings.tables() {
        if let Some(chart) = chart {
            let file = beside.join(format!("{}.svg", table.id));
            write_whole(&file, chart.svg().as_bytes())?;
        }
    }
    // The document comes last: it refers to the other files.
    let document = markdown(findings, Some(NAME));
    write_whole(&document_in(folder), document.as_bytes())
}
