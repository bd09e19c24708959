//! `cosched compare`: which policy is better for these batches, by how much, and is that sure?
//!
//! Each run is a `cosched run` of its own, with the same command line that a user would type; on this machine one at a time.
//! [`args`]: the command line; [`design`]: what is compared; [`options`]: options that are passed on; [`keeper`], [`child`]
//! and [`runs`]: makes the runs; [`earlier`]: what a killed one left;
//! [`solo`]: what jobs do alone.

mod args;
mod child;
mod design;
mod earlier;
mod keeper;
mod meter;
mod options;
mod runs;
mod solo;

use crate::exit::{Exit, Failure, usage};
use crate::input::{quote, told};
use crate::stderr;
use crate::whole_file::{append_regular, write_whole};
use anyhow::Context as _;
pub(crate) use args::CompareArgs;
use args::CompareFormat;
use child::{Children, What};
use cosched_experiments::comparison::{
    Answer, COMPARE_SCHEMA, COMPARISON_FILE, Design, ELAPSED, Manifest, Means, Outcome, Store,
    Wish, precision,
};
use cosched_linux::{Interrupt, Interrupts};
use cosched_report::{count, seconds, visible};
use cosched_run::{Screen, width_of};
pub(crate) use keeper::{KeepArgs, main as keep};
use runs::{Runs, Stopped, candidate_options, cosched_run, failure};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

/// This version of cosched.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The file that is locked while runs are made in its folder.
const LOCK: &str = ".lock";

/// The name of a machine that is not known yet, or of which only commands of others run.
const NOT_YET: &str = "host";

/// With fewer blocks, no interval says much.
const LEAST_BLOCKS: u32 = 3;

pub(crate) fn run(args: CompareArgs) -> anyhow::Result<ExitCode> {
    cosched_linux::settle_signals();
    let until = args
        .max_time
        .map(|time| Instant::now() + Duration::from_nanos(time.0));
    let (folder, mut manifest) = match &args.resume {
        Some(folder) => resumed(&args, folder)?,
        None => begun(&args)?,
    };
    for metric in &args.metrics {
        design::check_metric(metric)?;
    }
    if !args.metrics.is_empty() {
        manifest.metrics.clone_from(&args.metrics);
    }
    let before = manifest.wish;
    manifest.wish = Wish {
        reps: args.reps.unwrap_or(before.reps),
        until_ci: args.until_ci.or(before.until_ci),
        worth: args.worth.unwrap_or(before.worth),
        solo_runs: args.solo_runs.unwrap_or(before.solo_runs),
        fresh_solo: args.fresh_solo || before.fresh_solo,
        warmup: args.warmup.unwrap_or(before.warmup),
    };
    let design = manifest.design.clone();
    check(&args, &manifest)?;
    design::unchanged(&design)?;
    let store = Store::new(&folder, &design);
    check_solo(&store, &design, before, manifest.wish)?;
    if has_commands(&design) {
        cosched_linux::adopt_orphans();
    }
    let signals = Interrupts::hold_all().context("taking signals")?;
    let screen = Screen::new(args.quiet);
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let threads = if design.is_simulated() {
        args.jobs.map_or(all, std::num::NonZeroUsize::get)
    } else {
        1
    };
    let runs = Runs {
        store: &store,
        design: &design,
        signals: &signals,
        screen: &screen,
        threads,
    };
    // Whatever is wrong with a candidate is told before anything runs.
    let plans = match runs.plans()? {
        Ok(plans) => plans,
        Err(signal) => return interrupted(&folder, signal, false),
    };
    if let Some(machine) = plans.first().and_then(|plan| plan["machine"].as_str()) {
        same_machine(&manifest, machine)?;
        manifest.machine = machine.to_owned();
    }
    let jobs: Vec<String> = plans.iter().map(solo::jobs).collect();
    let before = std::mem::replace(&mut manifest.jobs, jobs);
    if let Some(mix) = before
        .iter()
        .zip(&manifest.jobs)
        .position(|(before, now)| before != now)
    {
        return Err(usage(format!(
            "{}: a program of its jobs was changed since this comparison began; begin another one, with another --out",
            visible(&design.mixes[mix].file)
        )));
    }
    if args.dry_run {
        return explain(&args, &manifest, &folder);
    }
    let _alone = lock(&folder)?;
    if args.resume.is_none() {
        // Another comparison may have begun there meanwhile.
        check_folder(&folder, &design)?;
    }
    if !design.is_simulated() {
        earlier::end(&folder)?;
    }
    prepare(&store, &manifest)?;
    let mut outcomes = store.outcomes(&design)?;
    let stopped = match runs.solo(&manifest.wish, until, &plans)? {
        Stopped::No => runs.blocks(&manifest, &mut outcomes, until)?,
        Stopped::Signal(signal) => return interrupted(&folder, signal, true),
        Stopped::Time => Stopped::Time,
    };
    let mut answer = Answer::new(manifest, outcomes);
    answer.notes.extend(store.solo_doubts());
    if stopped == Stopped::Time {
        answer
            .notes
            .push("the time of --max-time was over before all was made".to_owned());
    }
    answer.notes.extend(missed(&answer, &folder));
    write(&store, &answer)?;
    print(&args, &answer)?;
    say_where(&args, &folder, &answer);
    match stopped {
        Stopped::Signal(signal) => interrupted(&folder, signal, true),
        _ => Ok(if answer.failed() {
            Exit::Failure
        } else {
            Exit::Success
        }
        .into()),
    }
}

/// Checks that a comparison goes on where it began: blocks of another machine would be counted among its own.
fn same_machine(manifest: &Manifest, machine: &str) -> anyhow::Result<()> {
    if [NOT_YET, machine].contains(&&*manifest.machine) {
        return Ok(());
    }
    Err(usage(format!(
        "this comparison began on the machine `{}`, and this is `{}`: figures of two machines can't be compared; go on with it there, or \
         begin another one, with another --out",
        visible(&manifest.machine),
        visible(machine)
    )))
}

/// A new comparison, or one that the same command began.
fn begun(args: &CompareArgs) -> anyhow::Result<(PathBuf, Manifest)> {
    let design = design::design(args)?;
    let folder = args
        .out
        .clone()
        .unwrap_or_else(|| solo::default_folder(&stamp()));
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    let words = std::env::args_os()
        .map(|word| quote(std::os::unix::ffi::OsStrExt::as_bytes(word.as_os_str())));
    let manifest = Manifest {
        schema: COMPARE_SCHEMA.to_owned(),
        cosched_version: VERSION.to_owned(),
        machine: NOT_YET.to_owned(),
        wish: Wish::default(),
        jobs: Vec::new(),
        metrics: Vec::new(),
        command_line: words.collect(),
        design,
    };
    let known = check_folder(&folder, &manifest.design)?;
    let manifest = match known {
        Some(before) => Manifest {
            wish: before.wish,
            metrics: before.metrics,
            jobs: before.jobs,
            machine: before.machine,
            ..manifest
        },
        None => manifest,
    };
    Ok((folder, manifest))
}

/// Checks that a comparison can be made in a folder; returns the same one if it was begun there.
fn check_folder(folder: &Path, design: &Design) -> anyhow::Result<Option<Manifest>> {
    if folder.join(COMPARISON_FILE).exists() {
        let (_, before) = Store::open(folder).map_err(|error| usage(format!("--out: {error}")))?;
        if before.design != *design {
            return Err(usage(format!(
                "--out {}: another comparison is in this folder; name another one, or go on with that one by --resume",
                told(folder)
            )));
        }
        return Ok(Some(before));
    }
    // What a call leaves that could write nothing, as on a full disk.
    let is_other = |name: &OsStr| name != LOCK && name != earlier::LOCK;
    let mut others = folder
        .read_dir()
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| is_other(&entry.file_name()));
    if others.next().is_some() {
        return Err(usage(format!(
            "--out {}: there are files in it, and none of a comparison; name a new folder",
            told(folder)
        )));
    }
    Ok(None)
}

/// The comparison in a folder.
fn resumed(args: &CompareArgs, folder: &Path) -> anyhow::Result<(PathBuf, Manifest)> {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let (_, manifest) =
        Store::open(&folder).map_err(|error| usage(format!("--resume: {error}")))?;
    let on = &manifest.design.on;
    // What a variable says is for comparisons that begin.
    let is_typed = |given: &&String| std::env::var("COSCHED_ON").as_ref() != Ok(*given);
    if let Some(other) = args
        .on
        .as_ref()
        .filter(is_typed)
        .filter(|other| *other != on)
    {
        return Err(usage(format!(
            "--on {}: this comparison is on {}, and goes on as it was begun; leave --on out",
            visible(other),
            visible(on)
        )));
    }
    if manifest.cosched_version != VERSION {
        stderr::say(format_args!(
            "cosched: warning: this comparison was begun by cosched {}, and this is {VERSION}: its blocks may differ for that",
            visible(&manifest.cosched_version)
        ));
    }
    Ok((folder, manifest))
}

/// Checks that options fit each other, and the machine.
fn check(args: &CompareArgs, manifest: &Manifest) -> anyhow::Result<()> {
    let Wish {
        reps,
        until_ci,
        warmup,
        ..
    } = manifest.wish;
    if manifest.design.is_simulated() {
        for (is_given, option) in [
            (args.solo_runs.is_some(), "--solo-runs"),
            (args.fresh_solo, "--fresh-solo"),
        ] {
            if is_given {
                return Err(usage(format!(
                    "{option}: a simulation knows what jobs do alone; leave it out"
                )));
            }
        }
        if warmup > 0 {
            return Err(usage(
                "--warmup: nothing in a simulation is cold at first; leave it out",
            ));
        }
    } else if args.jobs.is_some() {
        return Err(usage(
            "--jobs: it is for simulations; on this machine runs are made one at a time. For the jobs of each run, write \
             `-- --jobs N` at the end",
        ));
    }
    if until_ci.is_some() && reps < LEAST_BLOCKS {
        return Err(usage(format!(
            "--until-ci: it takes {LEAST_BLOCKS} blocks at least, and --reps allows {reps}"
        )));
    }
    Ok(())
}

/// Checks that what is asked of the runs alone is what they were made by, if they were.
fn check_solo(store: &Store, design: &Design, before: Wish, now: Wish) -> anyhow::Result<()> {
    let is_measured =
        (0..design.mixes.len()).any(|mix| store.solo(mix).exists()) || store.block(1).exists();
    let changed = [
        (now.solo_runs != before.solo_runs, "--solo-runs"),
        (now.fresh_solo != before.fresh_solo, "--fresh-solo"),
    ];
    match changed
        .into_iter()
        .find(|(is_changed, _)| *is_changed && is_measured)
    {
        Some((_, option)) => Err(usage(format!(
            "{option}: this comparison began otherwise, and slowdowns are of the same times alone in all blocks; leave it out, or \
             begin another one, with another --out"
        ))),
        None => Ok(()),
    }
}

fn has_commands(design: &Design) -> bool {
    design
        .candidates
        .iter()
        .any(|one| matches!(one.means, Means::Command(_)))
}

/// Keeps others from making runs in the same folder, as long as the file is open.
fn lock(folder: &Path) -> anyhow::Result<File> {
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", told(folder)))?;
    let place = folder.join(LOCK);
    let file = match append_regular(&place) {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            return Err(Failure {
                exit: Exit::Permission,
                message: format!(
                    "{}: {error}: this folder can't be written, so no runs can be made in it; `cosched report` tells what it holds, \
                     and a copy of it can be gone on with",
                    told(&place)
                ),
            }
            .into());
        }
        file => file.with_context(|| format!("can't write {}", told(&place)))?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(usage(format!(
            "{}: another `cosched compare` makes runs in this folder; wait for its end, or name another folder",
            told(folder)
        ))),
        // Where files can't be locked, nobody can be kept away.
        _ => Ok(file),
    }
}

/// What is to be said if the differences are not known as well as was asked for.
fn missed(answer: &Answer, folder: &Path) -> Option<String> {
    let wanted = answer.manifest.wish.until_ci?;
    let known = precision(
        &answer.manifest.design,
        &answer.outcomes,
        &precise(&answer.manifest),
    );
    let much = match known {
        Some(known) if known <= wanted => return None,
        Some(known) => format!("the differences are known to {}", share(known)),
        None if answer.whole_blocks() < LEAST_BLOCKS as usize => {
            "there are too few blocks for intervals".to_owned()
        }
        None => {
            let metrics = precise(&answer.manifest).join(", ");
            return Some(format!(
                "no runs can be compared in {metrics}, so more blocks would not bring what --until-ci asked for; the doubts \
                 and absent figures above say why"
            ));
        }
    };
    Some(format!(
        "{much}, and --until-ci asked for {}; more blocks: `cosched compare --resume {} --reps N`",
        share(wanted),
        quote(folder.as_os_str().as_encoded_bytes())
    ))
}

fn share(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// The metrics by which it is judged whether blocks are enough.
fn precise(manifest: &Manifest) -> Vec<String> {
    if !manifest.metrics.is_empty() {
        return manifest.metrics.clone();
    }
    // Of a command only the time of the whole program is known.
    let usual = if has_commands(&manifest.design) {
        ELAPSED
    } else {
        "turnaround_s"
    };
    vec![usual.to_owned()]
}

/// Tells a comparison from others by the time and its process.
fn stamp() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let digits: String = now
        .chars()
        .filter(|c| c.is_ascii_digit() || *c == 'T')
        .collect();
    format!("{}-{}", digits.replace('T', "-"), std::process::id())
}

/// Keeps what is compared in the folder. What it is of comes first: whatever fails afterwards, as on a full disk, the same
/// command goes on there.
fn prepare(store: &Store, manifest: &Manifest) -> anyhow::Result<()> {
    write_whole(
        &store.manifest(),
        (serde_json::to_string_pretty(manifest)? + "\n").as_bytes(),
    )?;
    let mixes = store.mix(0);
    let mixes = mixes.parent().context("a folder")?;
    std::fs::create_dir_all(mixes).with_context(|| format!("can't make {}", told(mixes)))?;
    for (at, mix) in manifest.design.mixes.iter().enumerate() {
        let text = crate::input::read_mix(Path::new(&mix.file))
            .map_err(|error| usage(error.to_string()))?;
        write_whole(&store.mix(at), text.as_bytes())?;
    }
    Ok(())
}

impl Runs<'_> {
    /// What each candidate would do with each mix, of the first candidate for each mix; or the
    /// signal by which the user interrupted it.
    ///
    /// # Errors
    /// One of them can't run here.
    fn plans(&self) -> anyhow::Result<Result<Vec<serde_json::Value>, i32>> {
        let mut plans = vec![serde_json::Value::Null; self.design.mixes.len()];
        for (mix, plan) in plans.iter_mut().enumerate() {
            for candidate in 0..self.design.candidates.len() {
                let Some(options) = candidate_options(self.design, candidate) else {
                    continue;
                };
                let what = format!(
                    "{} with {}",
                    self.design.candidates[candidate].name, self.design.mixes[mix].name
                );
                let mut command = cosched_run(self.design, mix);
                command
                    .args(options)
                    .args(["--dry-run", "--format", "json"])
                    .args(&self.design.options);
                if !self.design.is_simulated() {
                    // Nothing is there, so nothing is known; but jobs are told apart as for a history.
                    command
                        .arg("--history")
                        .arg(self.store.folder().join("no-history"));
                }
                let children = Children::new(self.store.folder());
                let run = || children.run(command, What::Plan, self.signals);
                let ended = match self.watched(&what, &children, run)? {
                    Ok(ended) => ended,
                    Err(signal) => return Ok(Err(signal)),
                };
                if !ended.status.success() {
                    return Err(failure(&ended, &what));
                }
                if plan.is_null() {
                    *plan = serde_json::from_str(&ended.out)
                        .context("what `cosched run --dry-run` printed")?;
                }
            }
        }
        Ok(Ok(plans))
    }

    /// Carries out something that takes a while on another thread, and looks for signals meanwhile; or the one that came.
    fn watched<T: Send>(
        &self,
        what: &str,
        children: &Children<'_>,
        work: impl FnOnce() -> anyhow::Result<T> + Send,
    ) -> anyhow::Result<Result<T, i32>> {
        let mut interrupt = None;
        let done = std::thread::scope(|scope| {
            let worker = scope.spawn(work);
            while !worker.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
                match self.signals.next_signal() {
                    Some(Interrupt::End(signal)) => {
                        interrupt = Some(signal);
                        children.signal(signal);
                    }
                    Some(Interrupt::Suspend) => {
                        self.screen.clear();
                        children.suspend();
                    }
                    Some(Interrupt::Ask) => self.screen.answer(&format!("cosched: {what}")),
                    None => {}
                }
                self.screen.progress(|_| what.to_owned());
                self.screen.sign_of_life(|| what.to_owned());
            }
            worker.join()
        });
        self.screen.clear();
        let done =
            done.map_err(|_| anyhow::anyhow!("{what}: the thread ended without a result"))?;
        match interrupt {
            Some(signal) => Ok(Err(signal)),
            None => done.map(Ok),
        }
    }

    /// Makes blocks as long as there is reason to.
    fn blocks(
        &self,
        manifest: &Manifest,
        outcomes: &mut Vec<Outcome>,
        until: Option<Instant>,
    ) -> anyhow::Result<Stopped> {
        let metrics = precise(manifest);
        let runs = self.design.candidates.len() * self.design.mixes.len();
        let Wish {
            reps,
            until_ci,
            warmup,
            ..
        } = manifest.wish;
        let enough = |outcomes: &[Outcome], block: u32| {
            let is_known = |wanted: f64| {
                precision(self.design, outcomes, &metrics).is_some_and(|known| known <= wanted)
            };
            block >= LEAST_BLOCKS && until_ci.is_some_and(is_known)
        };
        // What was made by an earlier call.
        let made = (1..=reps).take_while(|&block| {
            outcomes
                .iter()
                .filter(|one| one.trial.block == block)
                .count()
                == runs
        });
        let made = made.count() as u32;
        if made < reps && !enough(outcomes, made) {
            for _ in 0..warmup {
                // Nothing reads the runs of block 0.
                let trials = self.design.block(0);
                let stopped = self.make(&trials, &mut Vec::new(), until)?;
                let _ = std::fs::remove_dir_all(self.store.block(0));
                if stopped != Stopped::No {
                    return Ok(stopped);
                }
            }
        }
        // On this machine blocks come one by one; a simulation keeps all threads busy.
        let at_once = match until_ci {
            None if self.design.is_simulated() => reps,
            _ if self.design.is_simulated() => (2 * self.threads).div_ceil(runs) as u32,
            _ => 1,
        };
        let mut block = 0;
        while block < reps {
            let some: Vec<_> = (block + 1..=reps.min(block + at_once))
                .flat_map(|block| self.design.block(block))
                .collect();
            let stopped = self.make(&some, outcomes, until)?;
            if stopped != Stopped::No {
                return Ok(stopped);
            }
            block = reps.min(block + at_once);
            if enough(outcomes, block) {
                break;
            }
        }
        Ok(Stopped::No)
    }
}

/// Writes the answer in all forms beside the runs.
fn write(store: &Store, answer: &Answer) -> anyhow::Result<()> {
    let forms = [
        (
            "comparison.txt",
            cosched_experiments::comparison::text(answer, 100),
        ),
        (
            "comparison.md",
            cosched_experiments::comparison::markdown(answer),
        ),
        (
            "comparison.csv",
            cosched_experiments::comparison::csv(answer),
        ),
        (
            "comparison.json",
            cosched_experiments::comparison::json(answer),
        ),
    ];
    forms
        .iter()
        .try_for_each(|(name, text)| write_whole(&store.folder().join(name), text.as_bytes()))?;
    let page = cosched_page::comparison_page(&super::report::comparison::view(store, answer)?);
    write_whole(&store.folder().join("comparison.html"), page.as_bytes())
}

fn print(args: &CompareArgs, answer: &Answer) -> anyhow::Result<()> {
    let text = match args.format {
        CompareFormat::Text => {
            cosched_experiments::comparison::text(answer, width_of(std::io::stdout()))
        }
        CompareFormat::Markdown => cosched_experiments::comparison::markdown(answer),
        CompareFormat::Csv => cosched_experiments::comparison::csv(answer),
        CompareFormat::Json => cosched_experiments::comparison::json(answer),
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

fn say_where(args: &CompareArgs, folder: &Path, answer: &Answer) {
    if !args.quiet {
        let runs = count(answer.outcomes.len() as u64, "run");
        stderr::say(format_args!(
            "cosched: {runs} and the answer in five forms are in {}",
            told(folder)
        ));
    }
}

fn interrupted(folder: &Path, signal: i32, is_begun: bool) -> anyhow::Result<ExitCode> {
    let how = if is_begun {
        format!(
            "interrupted; go on with `cosched compare --resume {}`",
            quote(folder.as_os_str().as_encoded_bytes())
        )
    } else {
        "interrupted; nothing was run".to_owned()
    };
    Err(Failure {
        exit: Exit::Signal(signal),
        message: how,
    }
    .into())
}

/// What would be run.
fn explain(args: &CompareArgs, manifest: &Manifest, folder: &Path) -> anyhow::Result<ExitCode> {
    let design = &manifest.design;
    let mut out = std::io::stdout().lock();
    writeln!(out, "machine   {}", visible(&manifest.machine))?;
    for mix in &design.mixes {
        writeln!(
            out,
            "mix       {:<20} {}",
            visible(&mix.name),
            visible(&mix.file)
        )?;
    }
    for (at, candidate) in design.candidates.iter().enumerate() {
        let baseline = if at == design.baseline {
            " (baseline)"
        } else {
            ""
        };
        let how = match &candidate.means {
            Means::Command(line) => visible(line),
            Means::Policy { .. } => {
                let options = candidate_options(design, at).unwrap_or_default();
                let words = options
                    .iter()
                    .chain(&design.options)
                    .map(|word| quote(word.as_bytes()));
                format!(
                    "cosched run MIX {}",
                    visible(&words.collect::<Vec<_>>().join(" "))
                )
            }
        };
        writeln!(
            out,
            "candidate {:<20} {how}{baseline}",
            visible(&candidate.name)
        )?;
    }
    let Wish {
        reps,
        until_ci,
        solo_runs,
        warmup,
        ..
    } = manifest.wish;
    if !design.is_simulated() && solo_runs > 0 {
        writeln!(
            out,
            "alone     each job {}, unless it is known",
            count(u64::from(solo_runs), "time")
        )?;
    }
    let runs = design.mixes.len() * design.candidates.len();
    if warmup > 0 {
        writeln!(out, "warm-up   {}", count(u64::from(warmup), "block"))?;
    }
    let most = if until_ci.is_some() { "at most " } else { "" };
    writeln!(
        out,
        "blocks    {most}{}, each of {}",
        reps,
        count(runs as u64, "run")
    )?;
    if let Some(wanted) = until_ci {
        writeln!(
            out,
            "until     the differences are known to {}",
            share(wanted)
        )?;
    }
    if let Some(time) = args.max_time {
        writeln!(
            out,
            "at most   {}, then no further run begins",
            seconds(time.as_s())
        )?;
    }
    writeln!(out, "folder    {}", told(folder))?;
    writeln!(out, "nothing was run")?;
    out.flush()?;
    Ok(Exit::Success.into())
}
