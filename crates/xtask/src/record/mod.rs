//! `cargo xtask record`: types commands into a shell on a terminal of its own, and writes what is seen there as an animated
//! SVG, for the README. The terminal is emulated, so nothing but the commands themselves is needed.
//!
//! [`terminal`]: the shell on its terminal, and what is seen when; [`svg`]: the picture.

mod svg;
mod terminal;

use anyhow::Context as _;
use clap::Args;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `cargo xtask record`.
#[derive(Args)]
pub(crate) struct RecordArgs {
    /// File with a command on each line; lines that begin with # are skipped, those with @ are run unseen, and those with ~, as
    /// in `~ 3 q`, wait so many seconds and then press keys, while the command before them goes on
    script: PathBuf,
    /// The SVG file
    out: PathBuf,
    /// Columns of the terminal
    #[arg(long, default_value = "88")]
    columns: NonZeroU16,
    /// Rows of the terminal
    #[arg(long, default_value = "24")]
    rows: NonZeroU16,
    /// Folder in which the shell runs [default: a new one]
    #[arg(long)]
    folder: Option<PathBuf>,
    /// What the picture shows, for those who can't see it
    #[arg(long, default_value = "cosched in a terminal")]
    title: String,
}

/// Longest time that a frame is shown.
const LONGEST_STILL: Duration = Duration::from_millis(1_600);
/// Time that the last frame is shown.
const LAST: Duration = Duration::from_secs(6);

pub(crate) fn run(args: &RecordArgs) -> anyhow::Result<ExitCode> {
    let script =
        std::fs::read_to_string(&args.script).with_context(|| args.script.display().to_string())?;
    let own = tempfile::tempdir()?;
    let folder = args.folder.as_deref().unwrap_or(own.path());
    let mut shell = terminal::Shell::start(folder, args.columns, args.rows)?;
    let mut lines = script
        .lines()
        .filter(|line| !line.trim().is_empty() && !line.starts_with('#'))
        .peekable();
    while let Some(line) = lines.next() {
        if let Some(hidden) = line.strip_prefix('@') {
            shell.run_unseen(hidden.trim())?;
            continue;
        }
        shell.type_in(line)?;
        while let Some(keys) = lines.next_if(|next| next.starts_with('~')) {
            let (seconds, keys) = keys[1..].trim().split_once(' ').context("~ SECONDS KEYS")?;
            shell.press(Duration::from_secs_f64(seconds.parse()?), keys.trim())?;
        }
        shell.until_ready()?;
    }
    let mut frames = shell.finish()?;
    terminal::shorten(&mut frames, LONGEST_STILL, LAST);
    let picture = svg::picture(&frames, args.columns.get(), args.rows.get(), &args.title);
    std::fs::write(&args.out, &picture).with_context(|| args.out.display().to_string())?;
    let seconds: f64 = frames.iter().map(|frame| frame.lasts.as_secs_f64()).sum();
    eprintln!(
        "{}: {} frames, {seconds:.0} s, {} bytes",
        args.out.display(),
        frames.len(),
        picture.len()
    );
    Ok(ExitCode::SUCCESS)
}
