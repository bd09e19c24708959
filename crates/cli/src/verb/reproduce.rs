//! `cosched reproduce`: the papers' experiments in the simulation, beside the papers' figures; and our own policy `even`.

use super::run::{Screen, seed};
use crate::exit::{Exit, Failure, usage};
use crate::input::told;
use crate::stderr;
use crate::whole_file::write_whole;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use cosched_linux::{Interrupt, Interrupts};
use cosched_reproduce::findings::{csv, markdown, text};
use cosched_reproduce::{Experiment, Findings, Keeper, Pool, ReproduceError, Request, reproduce};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Repeat the papers' experiments in the simulation, beside the papers' figures
///
/// Each experiment ends in a table of verdicts: the published figure, ours with its 95 % interval, whether sign and order
/// are the same, and the ratio; then experiments that show what makes the difference. The same request gives the same
/// bytes, whatever the machine and the number of threads. `even` is no paper's: it shows our own policy beside the others.
/// All papers take six to twelve minutes on two CPUs, --quick less than one; --sensitivity a few minutes more. `even` takes eight
/// to fourteen, --quick less than one.
#[derive(Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// What to repeat [default: all]
    #[arg(value_enum, value_name = "EXPERIMENT")]
    experiments: Vec<ExperimentArg>,

    /// Shorter jobs and fewer seeds: a first look, in a minute. Short jobs pay more for measurements
    #[arg(long)]
    quick: bool,

    /// Also tell how headline figures move when an assumed number of the simulated world is halved or doubled
    #[arg(long)]
    sensitivity: bool,

    /// Repetitions, each with a seed of its own [default: 20, with --quick 3]; `even` takes at most the
    /// first four, with --quick two
    #[arg(long, value_name = "N")]
    seeds: Option<NonZeroUsize>,

    /// Seed of the first repetition
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true, value_parser = seed)]
    seed: u64,

    /// Further policies in the tables of Perf&Fair, as in efs,fifo
    #[arg(long, value_name = "P", value_delimiter = ',')]
    policies: Vec<String>,

    /// Threads [default: one for each CPU that may be used]
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Also write reproduction.md into this folder, and into reproduction beside it the text, JSON, and each figure as SVG
    /// with its numbers as CSV
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Also keep a record of each run below this folder: a comparison for each grid of mixes, policies and seeds, to be looked
    /// into with `cosched report`. With 20 seeds these are some GB
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = ReproduceFormat::Text, value_name = "FORMAT")]
    format: ReproduceFormat,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExperimentArg {
    /// Fairness and speed of mixes of 24 (Perf&Fair)
    PerfFair,
    /// Mean IPC of mixes of 24 (the bandwidth-aware SMT scheduler)
    Bandwidth,
    /// Energy by leaving cores idle (EFS)
    Efs,
    /// Energy-delay product on big and small cores (lucky)
    Lucky,
    /// Our own policy `even` beside the others, held against its goals; `all` leaves it out
    Even,
    /// All papers
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ReproduceFormat {
    /// Tables for people
    Text,
    /// A Markdown document
    Markdown,
    /// One JSON object
    Json,
}

/// The experiments that were asked for, each once, in the order of the document; without any, those of the papers.
fn experiments(asked: &[ExperimentArg]) -> Vec<Experiment> {
    let is_asked = |experiment: &Experiment| {
        let arg = match experiment {
            Experiment::PerfFair => ExperimentArg::PerfFair,
            Experiment::Bandwidth => ExperimentArg::Bandwidth,
            Experiment::Efs => ExperimentArg::Efs,
            Experiment::Lucky => ExperimentArg::Lucky,
            Experiment::Even => ExperimentArg::Even,
        };
        let all_papers = asked.is_empty() || asked.contains(&ExperimentArg::All);
        (all_papers && Experiment::PAPERS.contains(experiment)) || asked.contains(&arg)
    };
    Experiment::ALL.into_iter().filter(is_asked).collect()
}

pub(crate) fn run(args: ReproduceArgs) -> anyhow::Result<ExitCode> {
    let interrupts = Interrupts::hold().context("taking signals")?;
    if let Some(folder) = &args.out {
        // Minutes of work are not to be lost to a folder that can't be written.
        std::fs::create_dir_all(folder)
            .map_err(|error| usage(format!("--out {}: {error}", told(folder))))?;
    }
    if !args.policies.is_empty() && !experiments(&args.experiments).contains(&Experiment::PerfFair)
    {
        return Err(usage(
            "--policies: only the tables of perf-fair take further policies; add perf-fair, or leave it out",
        ));
    }
    let request = Request {
        experiments: experiments(&args.experiments),
        quick: args.quick,
        sensitivity: args.sensitivity,
        seeds: args.seeds.map(NonZeroUsize::get),
        first_seed: args.seed,
        policies: args.policies.clone(),
    };
    let all = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = args.jobs.map_or(all, NonZeroUsize::get);
    if let Some(folder) = &args.runs {
        std::fs::create_dir_all(folder)
            .map_err(|error| usage(format!("--runs {}: {error}", told(folder))))?;
        if folder
            .read_dir()
            .is_ok_and(|mut entries| entries.next().is_some())
        {
            return Err(usage(format!(
                "--runs {}: there are files in it; name a new folder",
                told(folder)
            )));
        }
    }
    let findings = watched(&request, threads, &args, &interrupts)?;
    if let Some(folder) = &args.out {
        write_all(&findings, folder)?;
    }
    let mut out = std::io::stdout().lock();
    match args.format {
        ReproduceFormat::Text => out
            .write_all(text::text(&findings, super::run::width_of(std::io::stdout())).as_bytes())?,
        ReproduceFormat::Markdown => {
            out.write_all(markdown::markdown(&findings, None).as_bytes())?
        }
        ReproduceFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &findings)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    Ok(Exit::Success.into())
}

/// How often signals are looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Carries out the request, shows how far it is, and ends at a signal.
fn watched(
    request: &Request,
    threads: usize,
    args: &ReproduceArgs,
    interrupts: &Interrupts,
) -> anyhow::Result<Findings> {
    let screen = Screen::new(args.quiet);
    let stop = AtomicBool::new(false);
    let now = Mutex::new(String::new());
    let progress = |what: &str, done: usize, all: usize| {
        if let Ok(mut now) = now.lock() {
            *now = format!("{what}: {done} of {all}");
        }
    };
    let write = |file: &Path, text: &str| {
        let file = args.runs.as_deref().unwrap_or(Path::new("")).join(file);
        file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        std::fs::write(file, text)
    };
    let keeper = Keeper::new(&write);
    let keep = args.runs.is_some().then_some(&keeper);
    let pool = Pool {
        threads,
        progress: &progress,
        stop: &stop,
        keep,
    };
    let mut signal = None;
    let found = std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        scope.spawn(move || sender.send(reproduce(request, pool)));
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(found) => return Some(found),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            let line = || now.lock().map(|now| now.clone()).unwrap_or_default();
            match interrupts.next_signal() {
                Some(Interrupt::End(number)) => {
                    signal = Some(number);
                    stop.store(true, Ordering::Relaxed);
                }
                Some(Interrupt::Ask) => screen.answer(&format!("cosched: {}", line())),
                // It is not held back, and does what it always does.
                Some(Interrupt::Suspend) | None => {}
            }
            screen.progress(|_| line());
            screen.sign_of_life(line);
        }
    });
    screen.clear();
    let found = found.context("the experiments ended without a result")?;
    found.map_err(|error| match (&error, signal) {
        (ReproduceError::Interrupted, Some(signal)) => Failure {
            exit: Exit::Signal(signal),
            message: "interrupted; nothing was written".to_owned(),
        }
        .into(),
        (ReproduceError::Unknown { .. } | ReproduceError::Unsuited { .. }, _) => {
            usage(format!("--policies: {error}"))
        }
        _ => error.into(),
    })
}

/// Name of the document, and of the folder beside it.
const NAME: &str = "reproduction";

/// Writes the document, and a folder beside it with its other forms and the figures.
fn write_all(findings: &Findings, folder: &Path) -> anyhow::Result<()> {
    let beside = folder.join(NAME);
    std::fs::create_dir_all(&beside).with_context(|| format!("can't make {}", told(&beside)))?;
    let mut written = BTreeSet::new();
    let mut write = |name: String, content: &str| -> anyhow::Result<()> {
        write_whole(&beside.join(&name), content.as_bytes())?;
        written.insert(OsString::from(name));
        Ok(())
    };
    write(format!("{NAME}.txt"), &text::text(findings, 120))?;
    write(
        format!("{NAME}.json"),
        &(serde_json::to_string_pretty(findings)? + "\n"),
    )?;
    let mut names = BTreeSet::new();
    for (table, chart) in findings.tables() {
        anyhow::ensure!(
            names.insert(&table.id),
            "two tables are called {}",
            table.id
        );
        write(format!("{}.csv", table.id), &csv::csv(table))?;
        if let Some(chart) = chart {
            write(format!("{}.svg", table.id), &chart.svg())?;
        }
    }
    for verdicts in findings.verdicts().filter(|table| !table.rows.is_empty()) {
        write(format!("{}.csv", verdicts.id), &csv::csv(&verdicts))?;
    }
    // The document comes last: where it is, everything is.
    write_whole(
        &folder.join(format!("{NAME}.md")),
        markdown::markdown(findings, Some(NAME)).as_bytes(),
    )?;
    let others = others(&beside, &written);
    if let Some((first, rest)) = others.split_first() {
        let more = if rest.is_empty() {
            String::new()
        } else {
            format!(" and {} more", rest.len())
        };
        stderr::say(format_args!(
            "cosched: {} holds what this run did not write: {first}{more}",
            told(&beside)
        ));
    }
    Ok(())
}

/// Files of a folder that were not written now, by name: an earlier run's, which may be taken for this one's.
fn others(folder: &Path, written: &BTreeSet<OsString>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<OsString> = entries
        .map(|entry| entry.file_name())
        .filter(|name| !written.contains(name))
        .collect();
    names.sort();
    names
        .iter()
        .map(|name| told(Path::new(name)).to_string())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_is_no_paper_and_is_asked_for_by_name() {
        assert_eq!(experiments(&[]), Experiment::PAPERS);
        assert_eq!(experiments(&[ExperimentArg::All]), Experiment::PAPERS);
        assert_eq!(experiments(&[ExperimentArg::Even]), [Experiment::Even]);
        assert_eq!(
            experiments(&[ExperimentArg::Even, ExperimentArg::All]),
            Experiment::ALL
        );
    }
}
