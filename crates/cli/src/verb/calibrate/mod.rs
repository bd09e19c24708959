//! `cosched calibrate`: measures this machine, and keeps the figures as its machine file.

mod bench;
mod figure;
mod file;
mod finding;
mod meter;
mod probe;
mod threads;

use crate::input::mine::machine_file;
use crate::input::spec::machine_in;
use crate::print::print;
use anyhow::{Context as _, Result};
use bench::Bench;
use clap::Args;
use cosched_linux::root::Root;
use cosched_run::Screen;
use cosched_run::exit::Exit;
use cosched_run::whole_file::{create_private_folders, write_whole};
use figure::{Figures, rounds};
use finding::{Findings, Measured, Point};
use probe::Probe;
use std::path::Path;
use std::process::ExitCode;

/// Calm turns of each probe, and of each probe of power, which takes a second.
const TURNS: usize = 20;
const POWER_TURNS: usize = 3;

/// Measure this machine: caches, memory, cores and power, in about a minute
///
/// The figures become the machine file of `--on mine`, and the parameters of policies on this machine. Run it while
/// nothing else runs.
#[derive(Args)]
pub struct CalibrateArgs {
    /// Measure only the greatest rate of memory, in a few seconds; other figures stay as they are
    #[arg(long)]
    quick: bool,
    /// Write nothing; compare with the file, and exit with 1 if a figure has changed
    #[arg(long)]
    check: bool,
    /// Shell command that prints the machine's power in watts, for a meter that the kernel does not know
    #[arg(long, value_name = "COMMAND", conflicts_with = "quick")]
    power_command: Option<String>,
    /// Show neither progress nor the figures
    #[arg(short, long)]
    quiet: bool,
}

pub fn run(args: CalibrateArgs) -> Result<ExitCode> {
    let file = machine_file(&Root::default())
        .context("there is no folder for the file; set XDG_DATA_HOME or HOME")?;
    let mut measured = file::read(&file);
    if args.check && measured.is_empty() {
        let why = "this machine has not been measured; leave out --check";
        return Err(crate::exit::usage(why));
    }
    let screen = Screen::new(args.quiet);
    screen.say("cosched: allocating memory");
    let bench = Bench::new(!args.quick, args.power_command.as_deref())?;
    let (findings, points) = measure(&bench, args.quick, &screen)?;
    let (text, has_changed) = file::compared(&findings, &measured);
    if !args.quiet {
        print(text)?;
    }
    if args.check {
        let exit = if has_changed {
            Exit::Failure
        } else {
            Exit::Success
        };
        return Ok(exit.into());
    }
    // A figure that was not measured again stays as it was.
    measured.extend(findings.figures);
    write(&file, &bench, &measured, &points)?;
    screen.say(&format!("cosched: wrote {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Measures everything, or the rate of memory alone. Also returns the points of the latency curve.
fn measure(bench: &Bench, quick: bool, screen: &Screen) -> Result<(Findings, Vec<Point>)> {
    let probes = Probe::all(bench, quick);
    let figures = probed(bench, &probes, TURNS, screen).map_err(anyhow::Error::msg)?;
    let mut all = Findings::default();
    let mu = all.add_rates(&figures);
    if quick {
        return Ok((all, Vec::new()));
    }
    let points = all.add_others(&figures, bench, mu);
    let cores = bench.cpus.len();
    let no_meter = bench.meter.borrow().as_ref().err().cloned();
    let figures = match no_meter {
        Some(why) => Err(why),
        None => probed(bench, &Probe::powers(cores), POWER_TURNS, screen),
    };
    all.add_power(figures, cores);
    Ok((all, points))
}

/// Gives probes turns, and shows progress.
fn probed(
    bench: &Bench,
    probes: &[Probe],
    calm: usize,
    screen: &Screen,
) -> Result<Figures<Probe>, String> {
    let quarter = (probes.len() * calm).div_ceil(4);
    let mut turns = 0;
    rounds(probes, calm, |probe| {
        if turns % quarter == 0 {
            screen.say(&format!("cosched: measuring, {} %", 25 * turns / quarter));
        }
        turns += 1;
        probe.turn(bench, turns)
    })
}

/// Writes the machine file, and the latency file if there is a new curve. A simulation must be able to read
/// them.
fn write(file: &Path, bench: &Bench, measured: &Measured, points: &[Point]) -> Result<()> {
    let folder = file.parent().context("a file in a folder")?;
    create_private_folders(folder).with_context(|| format!("making {}", folder.display()))?;
    let curve = file.with_extension("latency.toml");
    if points.len() > 2 {
        write_whole(&curve, file::curve_text(points).as_bytes())?;
    }
    let curve_name = curve.file_name().filter(|_| curve.exists());
    let curve_name = curve_name.and_then(|name| name.to_str());
    let text = file::machine_text(&bench.machine, &bench.cache_bytes, curve_name, measured)?;
    let new = file.with_extension("new");
    write_whole(&new, text.as_bytes())?;
    machine_in(&new)?;
    std::fs::rename(&new, file).with_context(|| format!("writing {}", file.display()))
}
