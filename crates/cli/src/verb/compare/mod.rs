//! `cosched compare`: which policy is better for these batches, by how much, and is that sure?
//!
//! - [`args`]: the command line; [`lines`]: command lines as candidates; [`design`]: what is compared; [`options`]: the words
//!   of the runs;
//! - [`blocks`]: how many blocks are made;
//! - [`user`]: progress and signals; [`child`]: a `cosched run` of real jobs; [`real`] and [`solo`]: the runs on this machine;
//!   [`simulated`]: those in a simulation;
//! - [`answer`]: the result.

mod answer;
mod args;
mod blocks;
mod child;
mod design;
mod lines;
mod options;
mod real;
mod simulated;
mod solo;
mod user;

use crate::exit::usage;
use crate::input::{absolute, quote, read_bytes, told};
use crate::whole_file::{create_private_folders, write_whole};
use anyhow::{Context as _, Result};
pub use args::CompareArgs;
use cosched_experiments::comparison::{
    COMPARE_SCHEMA, COMPARISON_FILE, ComparisonDesign, ComparisonFolder, ComparisonMeans,
    ComparisonResult, Manifest,
};
use cosched_run::stamp;
use real::RealRuns;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use user::User;

/// The default of `--solo-runs`.
const SOLO_RUNS: u32 = 3;

pub fn run(args: CompareArgs) -> Result<ExitCode> {
    cosched_linux::settle_signals();
    let design = design::design(&args)?;
    check(&args, &design)?;
    let store = ComparisonFolder::new(&folder(&args), &design);
    let user = User::new(args.quiet, design.is_simulated())?;
    let runs = RealRuns {
        design: &design,
        store: &store,
        user: &user,
    };
    if !design.is_simulated() {
        runs.check()?;
    }
    let manifest = begin(&args, &store, &design)?;
    if !design.is_simulated() {
        runs.measure_alone(args.solo_runs.unwrap_or(SOLO_RUNS))?;
    }
    let mut outcomes = Vec::new();
    let made = blocks::make(&args, &runs, &manifest, &mut outcomes);
    if let Err(error) = made {
        if user::is_interruption(&error) && !outcomes.is_empty() {
            answer::show(&args, &store, ComparisonResult::new(manifest, outcomes))?;
        }
        return Err(error);
    }
    answer::show(&args, &store, ComparisonResult::new(manifest, outcomes))
}

/// Checks what the options ask for.
fn check(args: &CompareArgs, design: &ComparisonDesign) -> Result<()> {
    for name in &args.metrics {
        design::check_metric(name)?;
    }
    options::check(&args.options)?;
    if design.is_simulated() && args.solo_runs.is_some() {
        return Err(usage(
            "--solo-runs: a simulation knows what jobs do alone; leave it out",
        ));
    }
    Ok(())
}

/// The absolute path of the folder.
fn folder(args: &CompareArgs) -> PathBuf {
    match &args.out {
        Some(folder) => absolute(folder),
        None => absolute(&Path::new("cosched-compare").join(stamp())),
    }
}

/// Makes the folder, and writes into it what is compared.
///
/// # Errors
/// The folder is not empty, or can't be written.
fn begin(
    args: &CompareArgs,
    store: &ComparisonFolder,
    design: &ComparisonDesign,
) -> Result<Manifest> {
    let folder = store.folder();
    make_folder(folder)?;
    if folder.read_dir()?.next().is_some() {
        let folder = told(folder);
        return Err(usage(format!(
            "--out {folder}: it is not empty; name a new folder"
        )));
    }
    let manifest = Manifest {
        schema: COMPARE_SCHEMA.to_owned(),
        cosched_version: env!("CARGO_PKG_VERSION").to_owned(),
        metrics: args.metrics.clone(),
        command_line: command_line(),
        design: design.clone(),
    };
    let text = serde_json::to_string_pretty(&manifest)? + "\n";
    // Of two comparisons that begin here at once, one fails.
    let place = folder.join(COMPARISON_FILE);
    File::create_new(&place)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("can't write {}", told(&place)))?;
    write_mixes(store, design)?;
    Ok(manifest)
}

fn make_folder(folder: &Path) -> Result<()> {
    create_private_folders(folder).with_context(|| format!("can't make {}", told(folder)))
}

/// The words of this command, as a shell takes them.
fn command_line() -> Vec<String> {
    let mut words = Vec::new();
    for word in std::env::args_os() {
        words.push(quote(word.as_encoded_bytes()));
    }
    words
}

/// Keeps the mixes as they are, and makes one of each command.
fn write_mixes(store: &ComparisonFolder, design: &ComparisonDesign) -> Result<()> {
    let folders = [store.mix(0), store.command(0), store.solo(0)];
    for folder in folders.iter().filter_map(|file| file.parent()) {
        make_folder(folder)?;
    }
    for (at, mix) in design.mixes.iter().enumerate() {
        if let Some(file) = &mix.file {
            write_whole(&store.mix(at), &read_bytes(Path::new(file))?)?;
        }
    }
    for (at, candidate) in design.candidates.iter().enumerate() {
        if let ComparisonMeans::Command(line) = &candidate.means {
            write_whole(&store.command(at), mix_of(line).as_bytes())?;
        }
    }
    Ok(())
}

/// The mix file of a command: one job.
fn mix_of(line: &str) -> String {
    let line = toml::Value::from(line);
    format!("[[job]]\nname = \"command\"\ncommand = {line}\n")
}
