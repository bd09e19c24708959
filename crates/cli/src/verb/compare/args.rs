//! The command line of `cosched compare`.

use crate::input::spec;
use crate::verb::run::{Offered, duration, name_value, seed};
use clap::{Args, ValueEnum};
use cosched_core::Nanos;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Two lines, so that the short help fits a screen.
const EXAMPLES: &str = "cosched compare jobs.toml --policies linux,fifo,even --reps 7\n\
                        cosched compare mixes/perf-fair/*.toml --on xeon-e5645 --policies linux,bandwidth,even";

/// Compare policies on the same batches, with intervals and verdicts
///
/// Each block runs every candidate once with every mix, in random order. Candidates are compared within blocks, so a slow
/// hour of the machine affects all of them. Intervals are 95 % intervals. Runs stay in a folder; --resume continues it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Mix files (TOML); `cosched man mix-file` explains them
    #[arg(required_unless_present = "resume")]
    pub(crate) mixes: Vec<PathBuf>,

    /// Policies to compare, as in linux,fifo,even
    #[arg(short, long, value_name = "P,...", value_delimiter = ',', value_parser = Offered(spec::policy_names), hide_possible_values = true)]
    pub(crate) policies: Vec<String>,

    /// Another program that runs the same batch, as in parallel='parallel -j4 < jobs'; can be given several times
    ///
    /// A shell runs it, and only the time that it takes is compared.
    #[arg(long, value_name = "NAME=CMD", value_parser = candidate)]
    pub(crate) candidate: Vec<(String, String)>,

    /// Values of a parameter, as in quantum_s=0.1,0.2: each policy that has it is compared with each of them
    #[arg(long = "param", value_name = "NAME=X,...", value_parser = name_value)]
    pub(crate) params: Vec<(String, String)>,

    /// The candidate that the others are compared with [default: linux if it is one, else the first]
    #[arg(long, value_name = "NAME")]
    pub(crate) baseline: Option<String>,

    /// Blocks to make; with --until-ci the most [default: 7]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub(crate) reps: Option<u32>,

    /// Repeat until half the width of each 95 % interval is below this, as in 2%; at least three blocks
    ///
    /// That is half of the width of its 95 % interval, in the metrics of --metric, else in the turnaround.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) until_ci: Option<f64>,

    /// Start no run after this time, as in 2h
    ///
    /// The block that is then begun is made whole when the comparison goes on.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) max_time: Option<Nanos>,

    /// Blocks that come first and do not count [default: 0]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=99), hide_short_help = true)]
    pub(crate) warmup: Option<u32>,

    /// Smallest difference of interest; estimates the blocks that would show it [default: 2%]
    #[arg(long, value_name = "PERCENT", value_parser = percent, hide_short_help = true)]
    pub(crate) worth: Option<f64>,

    /// Metrics to judge, as in turnaround_s,stp: see `cosched list metrics` [default: turnaround_s, unfairness, antt and
    /// energy_j, where they are known]
    #[arg(long = "metric", value_name = "M,...", value_delimiter = ',')]
    pub(crate) metrics: Vec<String>,

    /// Measure each job alone so often first, for slowdowns; 0 for not at all. A simulation knows it [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) solo_runs: Option<u32>,

    /// Measure solo times again instead of using cached ones
    #[arg(long, hide_short_help = true)]
    pub(crate) fresh_solo: bool,

    /// Seed of the order of the runs, and of the runs of the first block; each further block has the next
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = seed)]
    pub(crate) seed: u64,

    /// Simulate this machine; `host` is the real one [default: host]
    #[arg(long, env = "COSCHED_ON", value_name = "NAME|FILE")]
    #[arg(value_parser = Offered(spec::machine_names), hide_possible_values = true)]
    pub(crate) on: Option<String>,

    /// Runs at once in a simulation [default: one for each CPU that may be used]
    #[arg(short, long, value_name = "N", hide_short_help = true)]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Folder for all runs and the answer [default: cosched-compare/TIME-PID]
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Go on with the comparison in this folder, as it was begun
    ///
    /// How much is made and judged may be given anew: --reps, --until-ci, --warmup, --worth and --metric.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["mixes", "policies", "candidate", "params", "baseline", "seed", "out", "options"])]
    pub(crate) resume: Option<PathBuf>,

    /// Form of the answer
    #[arg(long, value_enum, default_value_t = CompareFormat::Text, value_name = "FORMAT")]
    pub(crate) format: CompareFormat,

    /// Show no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// Run nothing; print what would be run
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Further options of each `cosched run`, as in -- --cpus 0-3 -j 8
    #[arg(last = true, value_name = "RUN OPTIONS", allow_hyphen_values = true)]
    pub(crate) options: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompareFormat {
    /// Tables for people
    Text,
    /// A Markdown document
    Markdown,
    /// Every value of every run, one a line
    Csv,
    /// One JSON object
    Json,
}

/// Reads a name and a command.
fn candidate(text: &str) -> Result<(String, String), String> {
    let expected = "expected NAME=CMD, as in parallel='parallel -j4 < jobs'";
    match text
        .split_once('=')
        .map(|(name, line)| (name.trim(), line.trim()))
    {
        None => Err(expected.to_owned()),
        Some(("", _)) => Err(format!("it has not a name; {expected}")),
        Some((_, "")) => Err(format!("it has not a command; {expected}")),
        Some((name, line)) => Ok((name.to_owned(), line.to_owned())),
    }
}

/// Reads a share in per cent above zero.
fn percent(text: &str) -> Result<f64, String> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.trim().parse::<f64>().ok());
    number
        .filter(|number| (0.01..=100.0).contains(number))
        .map(|number| number / 100.0)
        .ok_or_else(|| "expected a share from 0.01% to 100%, as in 2%".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares() {
        assert_eq!((percent("2%"), percent("0.5 %")), (Ok(0.02), Ok(0.005)));
        for wrong in ["2", "0%", "-1%", "200%", "x%", "%", "nan%"] {
            assert!(percent(wrong).is_err(), "{wrong}");
        }
    }
}
