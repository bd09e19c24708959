//! `cosched compare`: which policy is better for these batches, by how much, and is that sure?
//!
//! Each run is a `cosched run` of its own, with the same command line that a user would type; on this machine one at a time.
//! [`args`]: the command line; [`design`]: what is compared; [`child`] and [`runs`]: makes the runs; [`solo`]: what jobs do
//! alone.

mod args;
mod child;
mod design;
mod meter;
mod runs;
mod solo;

use super::run::{Screen, width_of};
use crate::exit::{Exit, Failure, usage};
use crate::input::{quote, told};
use crate::sha256::sha256;
use crate::stderr;
use crate::whole_file::write_whole;
use anyhow::Context as _;
pub(crate) use args::CompareArgs;
use args::CompareFormat;
use child::{Children, Keep};
use cosched_compare::{Answer, COMPARE_SCHEMA, Design, Manifest, Store, Wish, precision};
use cosched_linux::Interrupts;
use cosched_report::{count, visible};
use runs::{Runs, Stopped, candidate_options, cosched_run, failure};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// With fewer blocks, no interval says much.
const LEAST_BLOCKS: u32 = 3;

pub(crate) fn run(args: CompareArgs) -> anyhow::Result<ExitCode> {
    cosched_linux::settle_signals();
    let resumed = args.resume.as_deref().map(resumed).transpose()?;
    let (folder, mut manifest) = match resumed {
        Some((folder, manifest)) => (folder, manifest),
        None => begun(&args)?,
    };
    if !args.metrics.is_empty() {
        manifest.metrics.clone_from(&args.metrics);
    }
    let before = manifest.wish;
    manifest.wish = Wish {
        reps: args.reps.unwrap_or(before.reps),
        until_ci: args.until_ci.or(before.until_ci),
        worth: args.worth.unwrap_or(before.worth),
        solo_runs: args.solo_runs.unwrap_or(before.solo_runs),
    };
    let design = manifest.design.clone();
    unchanged(&design)?;
    let store = Store::new(&folder, &design);
    let signals = Interrupts::hold().context("taking signals")?;
    let screen = Screen::new(args.quiet);
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = if design.is_simulated() { args.jobs.map_or(all, std::num::NonZeroUsize::get) } else { 1 };
    let runs = Runs { store: &store, design: &design, signals: &signals, screen: &screen, threads };
    // Whatever is wrong with a candidate is told before anything runs.
    let Some(plans) = runs.plans()? else { return interrupted(&folder, 2, false) };
    if let Some(machine) = plans.first().and_then(|plan| plan["machine"].as_str()) {
        manifest.machine = machine.to_owned();
    }
    if args.dry_run {
        return explain(&manifest, &folder);
    }
    prepare(&store, &manifest)?;
    let known = store.outcomes(&design)?;
    let mut outcomes = known;
    if !runs.solo(manifest.wish.solo_runs, args.fresh_solo, &plans)? {
        return interrupted(&folder, 2, true);
    }
    let stopped = runs.blocks(&args, &manifest, &mut outcomes)?;
    let mut answer = Answer::new(manifest, outcomes);
    answer.notes = store.solo_doubts();
    if stopped == Stopped::Time {
        answer.notes.push("the time of --max-time was over".to_owned());
    }
    write(&store, &answer)?;
    print(&args, &answer)?;
    say_where(&args, &folder, &answer);
    match stopped {
        Stopped::Signal(signal) => interrupted(&folder, signal, true),
        _ => Ok(if answer.failed() { Exit::Failure } else { Exit::Success }.into()),
    }
}

/// A new comparison, or one that the same command began.
fn begun(args: &CompareArgs) -> anyhow::Result<(PathBuf, Manifest)> {
    let design = design::design(args)?;
    let folder = args.out.clone().unwrap_or_else(|| solo::default_folder(&stamp()));
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let words = std::env::args_os().map(|word| quote(std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str())));
    let manifest = Manifest {
        schema: COMPARE_SCHEMA.to_owned(),
        cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: design.on.clone(),
        wish: Wish::default(),
        metrics: Vec::new(),
        command_line: words.collect(),
        design,
    };
    if folder.join("compare.json").exists() {
        let (_, before) = Store::open(&folder).map_err(|error| usage(format!("--out: {error}")))?;
        if before.design != manifest.design {
            return Err(usage(format!(
                "--out {}: another comparison is in this folder; name another one, or go on with that one by --resume",
                told(&folder)
            )));
        }
    } else if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(usage(format!(
            "--out {}: there are files in it, and none of a comparison; name a new folder",
            told(&folder)
        )));
    }
    Ok((folder, manifest))
}

/// The comparison in a folder.
fn resumed(folder: &Path) -> anyhow::Result<(PathBuf, Manifest)> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let (_, manifest) = Store::open(&folder).map_err(|error| usage(format!("--resume: {error}")))?;
    Ok((folder, manifest))
}

/// Checks that the mixes are what they were.
fn unchanged(design: &Design) -> anyhow::Result<()> {
    for mix in &design.mixes {
        let text = crate::input::read_mix(Path::new(&mix.file)).map_err(|error| usage(error.to_string()))?;
        if sha256(text.as_bytes()) != mix.sha256 {
            return Err(usage(format!(
                "{}: it was changed since this comparison began; begin another one, with another --out",
                visible(&mix.file)
            )));
        }
    }
    Ok(())
}

/// Tells a comparison from others by the time and its process.
fn stamp() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let digits: String = now.chars().filter(|c| c.is_ascii_digit() || *c == 'T').collect();
    format!("{}-{}", digits.replace('T', "-"), std::process::id())
}

/// Makes the folder, and keeps what is compared in it.
fn prepare(store: &Store, manifest: &Manifest) -> anyhow::Result<()> {
    let mixes = store.mix(0);
    let mixes = mixes.parent().context("a folder")?;
    std::fs::create_dir_all(mixes).with_context(|| format!("can't make {}", told(mixes)))?;
    for (at, mix) in manifest.design.mixes.iter().enumerate() {
        let text = crate::input::read_mix(Path::new(&mix.file)).map_err(|error| usage(error.to_string()))?;
        write_whole(&store.mix(at), text.as_bytes())?;
    }
    write_whole(&store.manifest(), (serde_json::to_string_pretty(manifest)? + "\n").as_bytes())
}

impl Runs<'_> {
    /// What each candidate would do with each mix, of the first candidate for each mix; `None` if the user interrupted it.
    ///
    /// # Errors
    /// One of them can't run here.
    fn plans(&self) -> anyhow::Result<Option<Vec<serde_json::Value>>> {
        let mut plans = vec![serde_json::Value::Null; self.design.mixes.len()];
        for (mix, plan) in plans.iter_mut().enumerate() {
            for candidate in 0..self.design.candidates.len() {
                let Some(options) = candidate_options(self.design, candidate) else { continue };
                let what = format!("{} with {}", self.design.candidates[candidate].name, self.design.mixes[mix].name);
                let mut command = cosched_run(self.design, mix);
                command.args(options).args(["--dry-run", "--format", "json"]).args(&self.design.options);
                if !self.design.is_simulated() {
                    // Nothing is there, so nothing is known; but jobs are told apart as for a history.
                    command.arg("--history").arg(self.store.folder().join("no-history"));
                }
                let children = Children::default();
                let run = || children.run(command, Keep::Both, self.signals);
                let Some(ended) = self.watched(&what, &children, run)? else { return Ok(None) };
                if !ended.status.success() {
                    return Err(failure(&ended, &what));
                }
                if plan.is_null() {
                    *plan = serde_json::from_str(&ended.out).context("what `cosched run --dry-run` printed")?;
                }
            }
        }
        Ok(Some(plans))
    }

    /// Carries out something that takes a while on another thread, and looks for signals meanwhile. `None` if one came.
    fn watched<T: Send>(
        &self,
        what: &str,
        children: &Children,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<Option<T>> {
        let mut is_interrupted = false;
        let done = std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            while !worker.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
                if let Some(cosched_linux::Interrupt::End(signal)) = self.signals.next_signal() {
                    is_interrupted = true;
                    children.signal(signal);
                }
                self.screen.progress(|_| what.to_owned());
                self.screen.sign_of_life(|| what.to_owned());
            }
            worker.join()
        });
        self.screen.clear();
        let done = done.map_err(|_| anyhow::anyhow!("{what}: the thread ended without a result"))?;
        if is_interrupted { Ok(None) } else { done.map(Some) }
    }

    /// Makes blocks as long as there is reason to.
    fn blocks(
        &self,
        args: &CompareArgs,
        manifest: &Manifest,
        outcomes: &mut Vec<cosched_compare::Outcome>,
    ) -> anyhow::Result<Stopped> {
        let until = args.max_time.map(|time| Instant::now() + Duration::from_nanos(time.0));
        let metrics =
            if manifest.metrics.is_empty() { vec!["turnaround_s".to_owned()] } else { manifest.metrics.clone() };
        if args.warmup > 0 && outcomes.is_empty() && !self.design.is_simulated() {
            // Runs of block 0 are of no candidate's figures: nothing reads them.
            for _ in 0..args.warmup {
                let trials: Vec<_> = self.design.block(u32::MAX).into_iter().collect();
                let mut ignored = Vec::new();
                let stopped = self.make(&trials, &mut ignored, until)?;
                for trial in trials {
                    let _ = std::fs::remove_dir_all(self.store.run(trial));
                }
                if stopped != Stopped::No {
                    return Ok(stopped);
                }
            }
        }
        let runs = self.design.candidates.len() * self.design.mixes.len();
        let Wish { reps, until_ci, .. } = manifest.wish;
        // On this machine blocks come one by one; a simulation keeps all threads busy.
        let at_once = match until_ci {
            None if self.design.is_simulated() => reps,
            _ if self.design.is_simulated() => (2 * self.threads).div_ceil(runs) as u32,
            _ => 1,
        };
        let mut block = 0;
        while block < reps {
            let some: Vec<_> =
                (block + 1..=reps.min(block + at_once)).flat_map(|block| self.design.block(block)).collect();
            let stopped = self.make(&some, outcomes, until)?;
            if stopped != Stopped::No {
                return Ok(stopped);
            }
            block = reps.min(block + at_once);
            let is_known =
                |wanted: f64| precision(self.design, outcomes, &metrics).is_some_and(|known| known <= wanted);
            if block >= LEAST_BLOCKS && until_ci.is_some_and(is_known) {
                break;
            }
        }
        Ok(Stopped::No)
    }
}

/// Writes the answer in all forms beside the runs.
fn write(store: &Store, answer: &Answer) -> anyhow::Result<()> {
    let forms = [
        ("comparison.txt", cosched_compare::text(answer, 100)),
        ("comparison.md", cosched_compare::markdown(answer)),
        ("comparison.csv", cosched_compare::csv(answer)),
        ("comparison.json", cosched_compare::json(answer)),
    ];
    forms.iter().try_for_each(|(name, text)| write_whole(&store.folder().join(name), text.as_bytes()))?;
    let page = cosched_page::comparison_page(&super::report::comparison::view(store, answer)?);
    write_whole(&store.folder().join("comparison.html"), page.as_bytes())
}

fn print(args: &CompareArgs, answer: &Answer) -> anyhow::Result<()> {
    let text = match args.format {
        CompareFormat::Text => cosched_compare::text(answer, width_of(std::io::stdout())),
        CompareFormat::Markdown => cosched_compare::markdown(answer),
        CompareFormat::Csv => cosched_compare::csv(answer),
        CompareFormat::Json => cosched_compare::json(answer),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn say_where(args: &CompareArgs, folder: &Path, answer: &Answer) {
    if !args.quiet {
        let runs = count(answer.outcomes.len() as u64, "run");
        stderr::say(format_args!("cosched: {runs} and the answer in five forms are in {}", told(folder)));
    }
}

fn interrupted(folder: &Path, signal: i32, is_begun: bool) -> anyhow::Result<ExitCode> {
    let how = if is_begun {
        format!("interrupted; go on with `cosched compare --resume {}`", quote(folder.as_os_str().as_encoded_bytes()))
    } else {
        "interrupted; nothing was run".to_owned()
    };
    Err(Failure { exit: Exit::Signal(signal), message: how }.into())
}

/// What would be run.
fn explain(manifest: &Manifest, folder: &Path) -> anyhow::Result<ExitCode> {
    let design = &manifest.design;
    let mut out = std::io::stdout().lock();
    writeln!(out, "machine   {}", visible(&manifest.machine))?;
    for mix in &design.mixes {
        writeln!(out, "mix       {:<20} {}", visible(&mix.name), visible(&mix.file))?;
    }
    for (at, candidate) in design.candidates.iter().enumerate() {
        let baseline = if at == design.baseline { " (baseline)" } else { "" };
        let how = match &candidate.means {
            cosched_compare::Means::Command(line) => visible(line),
            cosched_compare::Means::Policy { .. } => {
                let options = candidate_options(design, at).unwrap_or_default();
                let words = options.iter().chain(&design.options).map(|word| quote(word.as_bytes()));
                format!("cosched run MIX {}", visible(&words.collect::<Vec<_>>().join(" ")))
            }
        };
        writeln!(out, "candidate {:<20} {how}{baseline}", visible(&candidate.name))?;
    }
    let Wish { reps, until_ci, solo_runs, .. } = manifest.wish;
    if !design.is_simulated() && solo_runs > 0 {
        writeln!(out, "alone     each job {}, unless it is known", count(u64::from(solo_runs), "time"))?;
    }
    let runs = design.mixes.len() * design.candidates.len();
    let most = if until_ci.is_some() { "at most " } else { "" };
    writeln!(out, "blocks    {most}{}, each of {}", reps, count(runs as u64, "run"))?;
    writeln!(out, "folder    {}", told(folder))?;
    writeln!(out, "nothing was run")?;
    out.flush()?;
    Ok(Exit::Success.into())
}
