//! Holds cosched's own estimators against measurements of real machines, one module for each data set. The data are not part of
//! this repository: name the folder that has them. `cargo run --release -p cosched-sim --example validate -- FOLDER`.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)] // The rules are the library's.

mod corun;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("validate: no folder given; expected the folder with corun_series.csv.gz");
        return ExitCode::FAILURE;
    };
    match corun::report(&folder) {
        Ok(report) => {
            print!("{report}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("validate: {why}");
            ExitCode::FAILURE
        }
    }
}
