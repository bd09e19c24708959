//! Holds the simulated machine and the estimators against measurements that are not their own, one module for each.
//!
//! `cargo run --release -p cosched-sim --example validate -- FOLDER`, in the root of the repository. FOLDER has measurements of
//! real machines, which may not be shipped. Without it only those in the repository are used. `--champsim FOLDER` judges
//! programs of your own in ChampSim, with tables like those in `examples/champsim`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod champsim;
mod corun;
mod measurements;
mod pairs;
mod pbbcache;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What is held against what, in the order of the report.
fn reports(folder: Option<&Path>, champsim: &Path) -> Vec<Result<String, String>> {
    let mut reports = vec![champsim::report(champsim), Ok(pbbcache::report())];
    match folder {
        Some(folder) => reports.extend([corun::report(folder), pairs::report(folder)]),
        None => reports.push(Ok(
            "Co-runs and pairs are left out, because no folder of measurements was named.\n"
                .to_owned(),
        )),
    }
    reports
}

fn main() -> ExitCode {
    let mut champsim = PathBuf::from(champsim::FOLDER);
    let mut folder = None;
    let mut words = std::env::args_os().skip(1);
    while let Some(word) = words.next() {
        if word == "--champsim" {
            champsim = words.next().map_or(champsim, PathBuf::from);
        } else {
            folder = Some(PathBuf::from(word));
        }
    }
    let mut code = ExitCode::SUCCESS;
    for report in reports(folder.as_deref(), &champsim) {
        match report {
            Ok(report) => println!("{report}"),
            Err(why) => {
                eprintln!("validate: {why}");
                code = ExitCode::FAILURE;
            }
        }
    }
    code
}
