//! The command line of `cosched compare`.

use crate::offer;
use crate::verb::run::{name_value, seed};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use std::path::PathBuf;

/// Two lines, so that the short help fits a screen.
const EXAMPLES: &str = "cosched compare -f commands.txt --policies linux,fifo\n\
                        cosched compare 'parallel -j2 < commands.txt' 'xargs -P2 -I{} sh -c {} < commands.txt'";

/// Compare policies on the same batches, or command lines with each other
///
/// Each block runs every candidate once with every mix, in random order. Candidates are compared within blocks, so a slow
/// hour of the machine affects all of them. Intervals are 95 % intervals.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct CompareArgs {
    /// Mix files (TOML), or at least two command lines, which a shell runs as they are
    #[arg(value_name = "MIX|CMD", required_unless_present = "list")]
    pub inputs: Vec<PathBuf>,

    /// Read a shell command from each line, as `cosched run -f` does
    #[arg(
        short = 'f',
        long = "file",
        value_name = "FILE",
        conflicts_with = "inputs"
    )]
    pub list: Option<PathBuf>,

    /// Policies to compare, as in linux,fifo,even
    #[arg(
        short,
        long,
        value_name = "P,...",
        value_delimiter = ',',
        value_parser = NonEmptyStringValueParser::new()
    )]
    #[arg(add = ArgValueCandidates::new(offer::policies))]
    pub policies: Vec<String>,

    /// Another program that runs the same batch, as in parallel='parallel -j4 < jobs'; repeatable
    ///
    /// A shell runs it as one job. Only its time is compared.
    #[arg(long, value_name = "NAME=CMD", value_parser = candidate)]
    pub candidate: Vec<(String, String)>,

    /// Values of a parameter, as in quantum_s=0.1,0.2: compare each policy that has it with each value
    #[arg(long = "param", value_name = "NAME=X,...", value_parser = name_value)]
    pub params: Vec<(String, String)>,

    /// Candidate that the others are compared with [default: linux if present, else the first]
    #[arg(long, value_name = "NAME")]
    pub baseline: Option<String>,

    /// Number of blocks, with --until-ci the maximum [default: 7, with --until-ci 100]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=9999))]
    pub reps: Option<u32>,

    /// Make 7 blocks, and more until the intervals of the first metric, over all mixes, are at most ±P %
    #[arg(long, value_name = "P%", value_parser = percent)]
    pub until_ci: Option<f64>,

    /// Metrics to judge, as in turnaround_s,stp: see `cosched list metrics` [default: turnaround_s, unfairness, antt and
    /// energy_j, where they are known]
    #[arg(long = "metric", value_name = "M,...", value_delimiter = ',')]
    #[arg(add = ArgValueCandidates::new(offer::metrics))]
    pub metrics: Vec<String>,

    /// Solo runs of each job on this machine, for slowdowns; 0 for none [default: 3]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub solo_runs: Option<u32>,

    /// Seed of the order and of the first block; each block adds 1
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        allow_negative_numbers = true,
        value_parser = seed
    )]
    pub seed: u64,

    /// Simulate this machine; `host` is the real one
    #[arg(
        long,
        default_value = "host",
        env = "COSCHED_ON",
        value_name = "NAME|FILE|cmd:CMD"
    )]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    #[arg(add = ArgValueCompleter::new(offer::machine_or_file))]
    pub on: String,

    /// Folder for all runs and the result [default: cosched-compare/TIME-PID]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = CompareFormat::Text, value_name = "FORMAT")]
    pub format: CompareFormat,

    /// Show no progress
    #[arg(short, long)]
    pub quiet: bool,

    /// Further options of each `cosched run`, as in -- --cpus 0-3 -j 8
    #[arg(last = true, value_name = "RUN OPTIONS", allow_hyphen_values = true)]
    pub options: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CompareFormat {
    /// Tables for people
    Text,
    /// A Markdown document
    Markdown,
    /// Every value of every run, one a line
    Csv,
    /// One JSON object
    Json,
}

/// Reads per cent.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.trim().parse() {
        Ok(percent) if 0.0 < percent && percent < 100.0 => Ok(percent),
        _ => Err("expected more than 0 and less than 100 per cent, as in 2%".to_owned()),
    }
}

/// Reads a name and a command.
fn candidate(text: &str) -> Result<(String, String), String> {
    let expected = "expected NAME=CMD, as in parallel='parallel -j4 < jobs'";
    let Some((name, line)) = text.split_once('=') else {
        return Err(expected.to_owned());
    };
    match (name.trim(), line.trim()) {
        ("", _) => Err(format!("the name is empty; {expected}")),
        (_, "") => Err(format!("the command is empty; {expected}")),
        (name, line) => Ok((name.to_owned(), line.to_owned())),
    }
}
