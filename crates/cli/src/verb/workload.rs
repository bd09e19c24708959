//! `cosched workload NAME`: runs a built-in test program, or lists them.

use crate::size::format_size;
use crate::workload::measure::Spent;
use crate::workload::{Entry, Outcome, WORKLOADS, Workload};
use clap::{ArgMatches, Command, FromArgMatches, Subcommand, ValueEnum};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

/// Run a built-in test program, or list them
#[derive(Debug, clap::Args)]
#[command(
    subcommand_value_name = "NAME",
    subcommand_help_heading = "Workloads",
    disable_help_subcommand = true,
    long_about = "Run a built-in test program, or list them.\n\nEach does a fixed amount of work and prints one line \
                  about it. Sizes take K, M, G or T as powers of 1024, counts as powers of 1000."
)]
pub(crate) struct WorkloadArgs {
    #[command(subcommand)]
    chosen: Option<Chosen>,
    /// Form of the answer
    #[arg(long, value_enum, default_value = "text", global = true)]
    format: Format,
    /// Seed of all random values; the same seed gives the same checksum
    #[arg(long, default_value = "1", global = true)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for people
    Text,
    /// One line of JSON, schema cosched.workload/1
    Json,
}

/// A workload of the table with its options. It does what a derived enum of subcommands would do, but from the table.
#[derive(Debug)]
struct Chosen {
    entry: &'static Entry,
    workload: Box<dyn Workload>,
}

fn missing_subcommand() -> clap::Error {
    clap::Error::new(clap::error::ErrorKind::MissingSubcommand)
}

impl FromArgMatches for Chosen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, matches) = matches.subcommand().ok_or_else(missing_subcommand)?;
        let entry = WORKLOADS
            .iter()
            .find(|entry| entry.name == name)
            .ok_or_else(missing_subcommand)?;
        Ok(Self {
            entry,
            workload: entry.workload(matches)?,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Chosen {
    fn augment_subcommands(command: Command) -> Command {
        command.subcommands(WORKLOADS.iter().map(Entry::command))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        WORKLOADS.iter().any(|entry| entry.name == name)
    }
}

/// Runs the chosen workload and prints what it did; without one, prints the table of workloads.
///
/// Returns exit code 2, after one line on stderr, when a value asks for more than the machine has.
///
/// # Errors
/// The answer can't be written.
pub(crate) fn run(args: WorkloadArgs) -> anyhow::Result<ExitCode> {
    let answer = match args.chosen {
        None => listing(args.format),
        Some(Chosen { entry, workload }) => match workload.run(args.seed) {
            Err(error) => {
                crate::stderr::say(format_args!(
                    "error: {}",
                    cosched_report::visible_lines(&error.to_string())
                ));
                return Ok(ExitCode::from(2));
            }
            Ok(outcome) => match args.format {
                Format::Text => text(entry, args.seed, &outcome),
                Format::Json => json(entry, args.seed, &outcome)?,
            },
        },
    };
    writeln!(std::io::stdout().lock(), "{answer}")?;
    Ok(ExitCode::SUCCESS)
}

fn listing(format: Format) -> String {
    let width = WORKLOADS
        .iter()
        .map(|entry| entry.name.len())
        .max()
        .unwrap_or(0);
    match format {
        Format::Text => {
            let mut text = String::from(
                "Workloads, to be run as `cosched workload NAME`; options with `NAME --help`:\n",
            );
            for Entry {
                name,
                gist,
                stresses,
                ..
            } in WORKLOADS
            {
                let _ = write!(
                    text,
                    "\n  {name:width$}  {gist}\n  {:width$}  stresses {stresses}",
                    ""
                );
            }
            text
        }
        Format::Json => {
            let rows = WORKLOADS.iter().map(|entry| {
                json!({"name": entry.name, "gist": entry.gist, "stresses": entry.stresses, "work_unit": entry.unit})
            });
            json!({"schema": "cosched.workloads/1", "workloads": rows.collect::<Vec<_>>()})
                .to_string()
        }
    }
}

fn text(entry: &Entry, seed: u64, outcome: &Outcome) -> String {
    let Outcome {
        work,
        working_set_bytes,
        checksum,
        setup,
        run,
        details,
    } = outcome;
    let mut line = format!(
        "{}: {work} {}, working set {}, {:.3} s elapsed, {:.3} s CPU, set-up {:.3} s, seed {seed}, \
         checksum {checksum:#018x}",
        entry.name,
        entry.unit,
        format_size(*working_set_bytes),
        run.elapsed_s,
        run.cpu_s,
        setup.elapsed_s,
    );
    for (name, value) in details {
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
    format!(
        "{value:.*}",
        usize::try_from(4 - integer_digits).unwrap_or(0)
    )
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

fn json(entry: &Entry, seed: u64, outcome: &Outcome) -> serde_json::Result<String> {
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
