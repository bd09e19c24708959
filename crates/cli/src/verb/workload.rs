//! `cosched workload NAME`: runs a built-in test program, or lists them.

use super::run::Format;
use crate::print::print;
use crate::size::format_size;
use crate::workload::measure::Spent;
use crate::workload::{WORKLOADS, Workload, WorkloadEntry, WorkloadOutcome};
use anyhow::Result;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;

/// Run a built-in test program, or list them
#[derive(clap::Args)]
#[command(
    subcommand_value_name = "NAME",
    subcommand_help_heading = "Workloads",
    disable_help_subcommand = true,
    long_about = "Run a built-in test program, or list them.\n\nEach does a fixed amount of work and prints one line \
                  about it. Sizes take K, M, G or T as powers of 1024, counts as powers of 1000."
)]
pub struct WorkloadArgs {
    #[command(subcommand)]
    chosen: Option<Chosen>,
    /// Form of the answer; JSON has schema cosched.workload/1
    #[arg(long, value_enum, default_value_t = Format::Text, global = true)]
    format: Format,
    /// Seed of all random values; the same seed gives the same checksum
    #[arg(long, default_value = "1", global = true)]
    seed: u64,
}

/// A workload of the table with its options. It does what a derived enum of subcommands would do, but from the table.
struct Chosen {
    entry: &'static WorkloadEntry,
    workload: Box<dyn Workload>,
}

fn entry(name: &str) -> Option<&'static WorkloadEntry> {
    WORKLOADS.iter().find(|entry| entry.name == name)
}

fn missing_subcommand() -> clap::Error {
    clap::Error::new(clap::error::ErrorKind::MissingSubcommand)
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().ok_or_else(missing_subcommand)?;
        let entry = entry(name).ok_or_else(missing_subcommand)?;
        let workload = entry.workload(matches)?;
        Ok(Self { entry, workload })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Chosen {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(WORKLOADS.iter().map(WorkloadEntry::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        entry(name).is_some()
    }
}

/// Runs the chosen workload and prints what it did; without one, prints the table of workloads.
///
/// Returns exit code 2, after one line on stderr, when a value asks for more than the machine has.
///
/// # Errors
/// The answer can't be written.
pub fn run(args: WorkloadArgs) -> Result<ExitCode> {
    let answer = match args.chosen {
        None => listing(),
        Some(Chosen { entry, workload }) => match workload.run(args.seed) {
            Ok(outcome) if args.format == Format::Json => json(entry, args.seed, &outcome)?,
            Ok(outcome) => text(entry, args.seed, &outcome),
            Err(error) => {
                let error = cosched_report::visible_lines(&error.to_string());
                crate::stderr::say(format_args!("error: {error}"));
                return Ok(ExitCode::from(2));
            }
        },
    };
    print(answer + "\n")
}

/// Columns of the names in the listing.
const NAMES: usize = 7;

fn listing() -> String {
    let mut text = String::from(
        "Workloads, to be run as `cosched workload NAME`; options with `NAME --help`:\n",
    );
    for entry in WORKLOADS {
        let _ = write!(text, "\n  {:NAMES$}  {}", entry.name, entry.gist);
        let _ = write!(text, "\n  {:NAMES$}  stresses {}", "", entry.stresses);
    }
    text
}

fn text(entry: &WorkloadEntry, seed: u64, outcome: &WorkloadOutcome) -> String {
    let WorkloadOutcome {
        work,
        checksum,
        setup,
        run,
        ..
    } = outcome;
    let (name, unit) = (entry.name, entry.unit);
    let size = format_size(outcome.working_set_bytes);
    let mut line = format!("{name}: {work} {unit}, working set {size}");
    let _ = write!(
        line,
        ", {:.3} s elapsed, {:.3} s CPU, set-up {:.3} s, seed {seed}, checksum {checksum:#018x}",
        run.elapsed_s, run.cpu_s, setup.elapsed_s,
    );
    for (name, value) in &outcome.details {
        let value = match value {
            Value::Number(number) if number.is_f64() => {
                significant(number.as_f64().unwrap_or(f64::NAN))
            }
            Value::String(string) => string.clone(),
            other => other.to_string(),
        };
        let _ = write!(line, ", {name} {value}");
    }
    line
}

/// Four significant digits, without an exponent.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let integer_digits = value.abs().max(1e-9).log10().floor() as i32 + 1;
    let decimals = usize::try_from(4 - integer_digits).unwrap_or(0);
    format!("{value:.decimals$}")
}

/// The JSON form of the answer, with its keys in this order.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    workload: &'static str,
    seed: u64,
    work: u64,
    work_unit: &'static str,
    working_set_bytes: u64,
    /// As text: many readers keep numbers as floats, which have no more than 53 bits for it.
    checksum: String,
    setup: Spent,
    run: Spent,
    #[serde(serialize_with = "as_object")]
    details: &'a [(&'static str, Value)],
}

fn as_object<S: Serializer>(
    pairs: &&[(&'static str, Value)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
}

fn json(entry: &WorkloadEntry, seed: u64, outcome: &WorkloadOutcome) -> serde_json::Result<String> {
    serde_json::to_string(&Report {
        schema: "cosched.workload/1",
        workload: entry.name,
        seed,
        work: outcome.work,
        work_unit: entry.unit,
        working_set_bytes: outcome.working_set_bytes,
        checksum: format!("{:#018x}", outcome.checksum),
        setup: outcome.setup,
        run: outcome.run,
        details: &outcome.details,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_with_four_digits() {
        for (value, text) in [
            (0.0, "0"),
            (0.5, "0.5000"),
            (0.012_345, "0.01235"),
            (20.126, "20.13"),
            (1.0, "1.000"),
            (123_456.7, "123457"),
        ] {
            assert_eq!(significant(value), text);
        }
    }
}
