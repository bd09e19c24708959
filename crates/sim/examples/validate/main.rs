//! Holds the simulated machine and the estimators against measurements that are not their own, one module for each.
//!
//! `cargo run --release -p cosched-sim --features examples --example validate -- FOLDER`; `--help` says more.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod backend;
mod champsim;
mod corun;
mod measurements;
mod pairs;
mod pbbcache;
mod recording;
mod siblings;

use clap::Parser;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Hold the simulated machine and the estimators against measurements that are not their own
#[derive(Parser)]
#[command(name = "validate")]
struct Args {
    /// Folder with the measurements that are not in the repository: corun_series.csv.gz, corun_summary.csv,
    /// pairs_spec2017.csv, sensitivity_spec2017.csv and smt_pairs_taclebench.csv. Without it, co-runs and pairs are left out
    #[arg(value_parser = folder)]
    folder: Option<PathBuf>,
    /// Folder with programs of your own in ChampSim, as tables like those in examples/champsim, which is the default
    #[arg(long, value_name = "FOLDER", value_parser = folder)]
    champsim: Option<PathBuf>,
}

fn folder(name: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(name);
    if path.is_dir() {
        Ok(path)
    } else {
        Err("no such folder".to_owned())
    }
}

/// What is held against what, in the order of the report.
fn reports(args: &Args) -> Vec<Result<String, String>> {
    let champsim = args.champsim.as_deref();
    let champsim = champsim.unwrap_or(Path::new(champsim::FOLDER));
    let mut reports = vec![champsim::report(champsim), Ok(pbbcache::report())];
    match &args.folder {
        Some(folder) => reports.extend([
            corun::report(folder),
            pairs::report(folder),
            siblings::report(folder),
        ]),
        None => reports.push(Ok(
            "Co-runs and pairs are left out, because no folder of measurements was named.\n"
                .to_owned(),
        )),
    }
    reports
}

fn main() -> ExitCode {
    let mut code = ExitCode::SUCCESS;
    let mut out = std::io::stdout();
    for report in reports(&Args::parse()) {
        match report {
            Ok(report) => {
                // The reader may have seen enough, as `head` does.
                if writeln!(out, "{report}").is_err() {
                    return code;
                }
            }
            Err(why) => {
                eprintln!("validate: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
