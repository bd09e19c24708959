//! `cosched calibrate`: measures this machine, and keeps the figures as its machine file.

mod bench;
mod core_types;
mod figure;
mod file;
mod finding;
mod meter;
mod probe;
mod threads;

use crate::input::mine::machine_file;
use crate::print::print;
use anyhow::{Context as _, Result};
use bench::{ProbeBench, Site};
use clap::Args;
use cosched_linux::root::Root;
use cosched_run::Screen;
use cosched_run::exit::Exit;
use figure::{Figures, rounds};
use finding::CalibrationFindings;
use probe::Probe;
use std::path::PathBuf;
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
    /// Measure nothing; fit the coefficients of lucky to the runs with these log folders, if there are two types of core
    #[arg(value_name = "RUN", conflicts_with_all = ["quick", "power_command"])]
    runs: Vec<PathBuf>,
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
    let root = Root::default();
    let file = machine_file(&root)
        .context("there is no folder for the file; set XDG_DATA_HOME or HOME")?;
    let mut measured = file::read(&file);
    if args.check && measured.is_empty() {
        let why = "this machine has not been measured; leave out --check";
        return Err(crate::exit::usage(why));
    }
    let site = Site::read(root)?;
    let screen = Screen::new(args.quiet);
    let findings = if args.runs.is_empty() {
        measure(&site, &args, &screen)?
    } else {
        core_types::fitted(&args.runs, &site.machine)?
    };
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
    file::write(&file, &site, &measured, &findings.curve)?;
    screen.say(&format!("cosched: wrote {}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Measures everything, or the rate of memory alone.
fn measure(site: &Site, args: &CalibrateArgs, screen: &Screen) -> Result<CalibrationFindings> {
    screen.say("cosched: allocating memory");
    let power_command = args.power_command.as_deref();
    let bench = ProbeBench::new(site, !args.quick, power_command)?;
    let probes = Probe::all(&bench, args.quick);
    let figures = probed(&bench, &probes, TURNS, screen).map_err(anyhow::Error::msg)?;
    let mut all = CalibrationFindings::default();
    all.add_each(&figures);
    if !args.quick {
        all.add_loads(&figures, &bench);
        let powers = Probe::powers(site.cpus.len());
        let figures = meter::watts(&site.root, power_command)
            .and_then(|_| probed(&bench, &powers, POWER_TURNS, screen));
        all.add_power(figures, site.cpus.len());
    }
    Ok(all)
}

/// Gives probes turns, and shows progress.
fn probed(
    bench: &ProbeBench<'_>,
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
