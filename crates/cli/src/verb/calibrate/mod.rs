//! `cosched calibrate`: measures this machine, and keeps the figures as its machine file.

mod bandwidth;
mod bench;
mod caches;
mod check;
mod cores;
mod figure;
mod file;
mod finding;
mod kernel;
mod loaded;
mod power;

use crate::input::mine::machine_file;
use crate::input::spec::machine_in;
use crate::print::print;
use anyhow::{Context as _, Result};
use bench::Bench;
use clap::{Args, ValueEnum};
use cosched_linux::root::Root;
use cosched_run::Screen;
use cosched_run::exit::Exit;
use cosched_run::whole_file::{create_private_folders, write_whole};
use file::Measured;
use finding::{DISTURBED, Finding, Found, has_words, words};
use loaded::Point;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

/// Measure this machine: caches, memory, cores and power, in about a minute
///
/// The figures become the machine file of `--on mine`, and the parameters of policies on this machine. Run it while
/// nothing else runs.
#[derive(Args)]
pub struct CalibrateArgs {
    /// Measure only these; other figures stay as they are
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART,...")]
    only: Vec<Part>,
    /// Write nothing; measure bandwidth and cores, and compare them with the file; exit with 1 if they differ
    #[arg(long, conflicts_with = "only")]
    check: bool,
    /// Show neither progress nor the figures
    #[arg(short, long)]
    quiet: bool,
}

/// What can be measured apart from the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Reach of each cache, and times of loads
    Caches,
    /// Rate of memory by the number of cores
    Bandwidth,
    /// Latency beside streams, and the limits of light jobs
    Latency,
    /// SMT siblings, switches and moves
    Cores,
    /// Power by the number of active cores
    Power,
}

const QUICK: [Part; 2] = [Part::Bandwidth, Part::Cores];

pub fn run(args: CalibrateArgs) -> Result<ExitCode> {
    let file = machine_file(&Root::default())
        .context("there is no folder for the file; set XDG_DATA_HOME or HOME")?;
    let before = file::read(&file);
    let parts = match &args.only[..] {
        _ if args.check => QUICK.to_vec(),
        [] => Part::value_variants().to_vec(),
        only => only.to_vec(),
    };
    if args.check && before.is_empty() {
        let why = "this machine has not been measured; leave out --check";
        return Err(crate::exit::usage(why));
    }
    let needs_memory = parts.iter().any(|part| *part != Part::Cores);
    let mut bench = Bench::new(needs_memory)?;
    let (findings, points) = measure(&mut bench, &parts, &before, args.quiet);
    if args.check {
        let (text, has_drifted) = check::compared(&findings, &before);
        print(text)?;
        let exit = if has_drifted {
            Exit::Failure
        } else {
            Exit::Success
        };
        return Ok(exit.into());
    }
    let measured = merged(before, &findings);
    write(&file, &bench, &measured, &points)?;
    if !args.quiet {
        print(table(&findings, &measured) + &format!("\n{}\n", file.display()))?;
    }
    let disturbed = findings
        .iter()
        .filter_map(|(_, found)| found.as_ref().err());
    let mut disturbed = disturbed.filter(|why| why.starts_with(DISTURBED));
    match disturbed.next() {
        Some(why) => {
            anyhow::bail!("not everything was measured; {why}; try again when the machine is idle")
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Measures these parts; also returns the points of the latency curve.
fn measure(
    bench: &mut Bench,
    parts: &[Part],
    before: &Measured,
    quiet: bool,
) -> (Vec<Finding>, Vec<Point>) {
    let screen = Screen::new(quiet);
    let mut findings = Vec::new();
    let mut points = Vec::new();
    for part in Part::value_variants() {
        if !parts.contains(part) {
            continue;
        }
        let name = format!("{part:?}").to_lowercase();
        screen.say(&format!("cosched: measuring {name}"));
        match part {
            Part::Caches => findings.extend(caches::measure(bench)),
            Part::Bandwidth => findings.extend(bandwidth::measure(bench)),
            Part::Latency => {
                let mu = rate_of_memory(&findings, before);
                let (found, curve) = loaded::measure(bench, mu);
                findings.extend(found);
                points = curve;
            }
            Part::Cores => {
                findings.extend(cores::siblings(bench));
                findings.extend(cores::switches(bench));
            }
            Part::Power => findings.extend(power::measure(bench)),
        }
    }
    (findings, points)
}

/// The greatest rate of memory as measured just now, or else before.
fn rate_of_memory(findings: &[Finding], before: &Measured) -> Option<f64> {
    let now = findings.iter().find(|(key, _)| key == bandwidth::MU);
    if let Some((_, Ok(rate))) = now {
        return Some(rate.value);
    }
    match before.get(bandwidth::MU)? {
        Found::Figure { value, .. } => Some(*value),
        Found::Absent { .. } => None,
    }
}

/// What is known now. A figure that could not be measured again stays as it was.
fn merged(mut measured: Measured, findings: &[Finding]) -> Measured {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let on = now[..10].to_owned();
    for (key, outcome) in findings {
        let known = matches!(measured.get(key), Some(Found::Figure { .. }));
        let found = match outcome {
            Ok(figure) => Found::Figure {
                value: figure.value,
                spread: figure.spread,
                on: on.clone(),
            },
            Err(why) if known && why.starts_with(DISTURBED) => continue,
            Err(why) => Found::Absent {
                absent: why.clone(),
            },
        };
        measured.insert(key.clone(), found);
    }
    measured
}

/// Writes the latency file, if there is a new curve, and the machine file, and reads them as a simulation would.
fn write(file: &Path, bench: &Bench, measured: &Measured, points: &[Point]) -> Result<()> {
    let folder = file.parent().context("a file in a folder")?;
    create_private_folders(folder).with_context(|| format!("making {}", folder.display()))?;
    let name = file.file_stem().unwrap_or_default().to_string_lossy();
    if points.len() > 2 {
        let curve = folder.join(file::curve_name(&name));
        write_whole(&curve, file::curve_text(&name, points).as_bytes())?;
    }
    let text = file::machine_text(bench, &name, measured)?;
    write_whole(file, text.as_bytes())?;
    machine_in(file)?;
    Ok(())
}

/// A line for each finding.
fn table(findings: &[Finding], measured: &Measured) -> String {
    let mut text = String::new();
    for (key, outcome) in findings.iter().filter(|(key, _)| has_words(key)) {
        let (about, unit) = words(key);
        let found = match (outcome, measured.get(key)) {
            (Ok(figure), _) => {
                let spread = figure.spread * 100.0;
                format!("{:>9} {unit:<8} +- {spread:.1} %", digits(figure.value))
            }
            (Err(why), Some(Found::Figure { value, on, .. })) => {
                format!("{:>9} {unit:<8} of {on}; now {why}", digits(*value))
            }
            (Err(why), _) => format!("{:>9} {why}", "-"),
        };
        let _ = writeln!(text, "{about:<50} {found}");
    }
    text
}

/// A number with about four digits.
fn digits(value: f64) -> String {
    let decimals = match value.abs() {
        1000.0.. => 0,
        100.0.. => 1,
        10.0.. => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}
