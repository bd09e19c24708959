//! `cosched model`: the equations of the papers, for a person or a script.

mod answer;
mod parse;
mod text;

use answer::{Refused, answer};
use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use cosched_core::model::cross_core::{CoreType, Regression};
use cosched_core::model::power::PowerPoint;
use parse::{coefficients, core_type, non_negative, point, positive, share};
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;

/// Solve the models' equations: bus contention, power, admission threshold, lottery tickets
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    #[command(subcommand)]
    question: Question,
    /// Form of the answer
    #[arg(long, global = true, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A small table
    Text,
    /// One JSON object
    Json,
}

#[derive(Debug, Subcommand)]
enum Question {
    /// How fast do these tasks run together? (EFS, Eqs. 10-12)
    Bus {
        /// Solo utilisation of each task: the share of its time for which it keeps the memory bus busy alone, 0 to 1
        #[arg(long, value_name = "B,...", required = true, value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        solo: Vec<f64>,
    },
    /// What would these tasks, measured together, use alone? (EFS, Eq. 9)
    Solo {
        /// Measured utilisation of each task, 0 to 1
        #[arg(long, value_name = "U,...", required = true, value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        measured: Vec<f64>,
        /// Measured utilisation of the whole bus, if others use it too [default: the sum of the tasks' own]
        #[arg(long, value_name = "U", value_parser = non_negative, allow_hyphen_values = true)]
        total: Option<f64>,
    },
    /// Up to which demand is one more task worth running? (EFS, Eq. 16)
    Threshold {
        /// Solo utilisation of each running task, 0 to 1; leave it out if nothing runs
        #[arg(long, value_name = "B,...", value_delimiter = ',', value_parser = share, allow_hyphen_values = true)]
        running: Vec<f64>,
        /// Power with no core active, and what each further active core adds, in watts
        #[arg(long, value_name = "P0,P1,...", required = true, value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        power: Vec<f64>,
        /// What one more task must not make worse
        #[arg(long, value_enum, default_value_t = Goal::Energy)]
        objective: Goal,
    },
    /// How much power do the active cores draw? (EFS, Eq. 13)
    #[command(group(clap::ArgGroup::new("source").required(true).args(["power", "points"])))]
    Power {
        /// Power with no core active, and what each further active core adds, in watts
        #[arg(long, value_name = "P0,P1,...", value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        power: Vec<f64>,
        /// Measured powers to fit the model to: number of active cores and watts
        #[arg(long, value_name = "K:WATTS,...", value_delimiter = ',', value_parser = point)]
        points: Vec<PowerPoint>,
        /// Answer for this number of active cores too
        #[arg(long, value_name = "K")]
        active: Option<usize>,
    },
    /// How many lottery tickets for the big cores do these threads get? (lucky, sections 2.2 and 3)
    Tickets {
        /// Performance of each thread on the core type it runs on, in million instructions per second
        #[arg(long, value_name = "MIPS,...", required = true, value_delimiter = ',', value_parser = positive, allow_hyphen_values = true)]
        mips: Vec<f64>,
        /// Last-level cache misses of each thread there, in millions per second
        #[arg(long, value_name = "LLCMS,...", required = true, value_delimiter = ',', value_parser = non_negative, allow_hyphen_values = true)]
        llcms: Vec<f64>,
        /// The core type that the threads run on
        #[arg(long, value_enum)]
        on: Type,
        /// Regression to the other core type: MIPS there = ALPHA x MIPS + BETA x LLCMS + GAMMA
        #[arg(long, value_name = "ALPHA,BETA,GAMMA", required = true, value_parser = coefficients, allow_hyphen_values = true)]
        coefficients: Regression,
        /// The big cores: capacity in MIPS, busy and idle power in watts
        #[arg(long, value_name = "MIPS,BUSY,IDLE", required = true, value_parser = core_type, allow_hyphen_values = true)]
        big: CoreType,
        /// The small cores: capacity in MIPS, busy and idle power in watts
        #[arg(long, value_name = "MIPS,BUSY,IDLE", required = true, value_parser = core_type, allow_hyphen_values = true)]
        small: CoreType,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Goal {
    /// Energy per work
    Energy,
    /// Energy-delay product per work
    Edp,
    /// Throughput
    Throughput,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Type {
    Big,
    Small,
}

/// Prints the answer on standard output. If flags contradict each other, prints the reason on standard error and
/// returns exit code 2; the parser reports an error in a single flag, with the same code.
pub(crate) fn run(args: ModelArgs) -> Result<ExitCode> {
    let answer = match answer(args.question) {
        Ok(answer) => answer,
        Err(Refused(reason)) => {
            crate::stderr::say(format_args!(
                "error: {}",
                cosched_report::visible_lines(&reason.to_string())
            ));
            return Ok(ExitCode::from(2));
        }
    };
    let mut text = match args.format {
        Format::Text => answer.to_text(),
        Format::Json => serde_json::to_string(&answer)?,
    };
    if !text.ends_with('\n') {
        text.push('\n');
    }
    match std::io::stdout().write_all(text.as_bytes()) {
        // A reader that closes the pipe early is no error.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
        other => other?,
    }
    Ok(ExitCode::SUCCESS)
}
