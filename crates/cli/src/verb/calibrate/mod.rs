//! `cosched calibrate`: measures this machine, and keeps the figures as its machine file.

mod bench;
mod figure;
mod file;
mod finding;
mod power;
mod probe;
mod report;
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
use figure::rounds;
use file::Measured;
use finding::{Findings, MEMORY, MU, Point, Probed, findings};
use probe::Probe;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

/// Calm turns of each probe.
const TURNS: usize = 20;

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
    let before = file::read(&file);
    if args.check && before.is_empty() {
        let why = "this machine has not been measured; leave out --check";
        return Err(crate::exit::usage(why));
    }
    let mut bench = Bench::new()?;
    let (findings, points) = measure(&mut bench, &args)?;
    for needed in [MU, MEMORY] {
        if let Some(Err(why)) = findings.get(needed) {
            anyhow::bail!(
                "{needed} is absent, so nothing was written: {why}; try again when nothing else runs"
            );
        }
    }
    if args.check {
        let (text, has_drifted) = report::compared(&findings, &before);
        print(text)?;
        let exit = if has_drifted {
            Exit::Failure
        } else {
            Exit::Success
        };
        return Ok(exit.into());
    }
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let measured = file::merged(before, &findings, &now[..10]);
    write(&file, &bench, &measured, &points)?;
    if !args.quiet {
        print(report::table(&findings) + &format!("\n{}\n", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures everything, or the rate of memory alone. Also returns the points of the latency curve.
fn measure(bench: &mut Bench, args: &CalibrateArgs) -> Result<(Findings, Vec<Point>)> {
    let screen = Screen::new(args.quiet);
    screen.say("cosched: allocating memory");
    bench.allocate(!args.quick)?;
    let probes = Probe::all(bench, args.quick);
    let quarter = (probes.len() * TURNS / 4).max(1);
    let mut turns = 0;
    let probed = rounds(&probes, TURNS, |probe| {
        if turns % quarter == 0 {
            screen.say(&format!("cosched: {} % of all turns", 25 * turns / quarter));
        }
        turns += 1;
        probe.turn(bench)
    });
    let (mut findings, points) = findings(&Probed(probed), bench, args.quick);
    if !args.quick {
        screen.say("cosched: measuring power");
        findings.extend(power::measure(bench, args.power_command.as_deref()));
    }
    Ok((findings, points))
}

/// Writes the machine file, and the latency file if there is a new curve. A simulation must be able to read
/// them.
fn write(file: &Path, bench: &Bench, measured: &Measured, points: &[Point]) -> Result<()> {
    let folder = file.parent().context("a file in a folder")?;
    create_private_folders(folder).with_context(|| format!("making {}", folder.display()))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    let curve_name = format!("{name}.latency.toml");
    let curve = folder.join(&curve_name);
    if points.len() > 2 {
        write_whole(&curve, file::curve_text(&name, points).as_bytes())?;
    }
    let curve_name = curve.exists().then_some(curve_name.as_str());
    let text = file::machine_text(bench, &name, curve_name, measured)?;
    let new = folder.join(format!("{name}.new"));
    write_whole(&new, text.as_bytes())?;
    machine_in(&new)?;
    std::fs::rename(&new, file).with_context(|| format!("writing {}", file.display()))
}
