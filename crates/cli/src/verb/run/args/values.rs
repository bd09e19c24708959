//! Where the values of a command come from.

use super::super::parse::delimiter;
use crate::input::{Reading, Separator};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Where the values of a command come from.
#[derive(Args)]
#[command(next_help_heading = "Values")]
pub struct ValueArgs {
    /// Read values from FILE, one a line; `-`: stdin
    ///
    /// Repeatable: as with `:::`, each value of one file is combined with each of the others.
    #[arg(short, long, value_name = "FILE")]
    pub arg_file: Vec<PathBuf>,

    /// Values end with a zero byte, as from find -print0
    ///
    /// In files and on standard input.
    #[arg(short = '0', long)]
    pub null: bool,

    /// Values in files and on standard input end with this character, as in , or '\t'
    #[arg(short, long, value_name = "CHAR", value_parser = delimiter, conflicts_with = "null")]
    #[arg(allow_hyphen_values = true, hide_short_help = true)]
    pub delimiter: Option<u8>,

    /// The first value of each list names its columns: {name}
    #[arg(long, value_name = ":", value_parser = [":"], hide_possible_values = true)]
    #[arg(hide_short_help = true)]
    pub header: Option<String>,

    /// Replace STR instead of {}
    #[arg(short = 'I', long = "replace", value_name = "STR")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub replacement: Option<String>,

    /// Split each value into {1}, {2}... at this text
    ///
    /// Or at this regular expression.
    #[arg(short = 'C', long, value_name = "REGEX", allow_hyphen_values = true)]
    pub colsep: Option<Separator>,

    /// Put N values into each job
    #[arg(
        short = 'n',
        long,
        value_name = "N",
        conflicts_with = "max_replace_args"
    )]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub max_args: Option<u32>,

    /// Put N values into each job, and repeat the word around a replacement string, as GNU parallel does
    #[arg(short = 'N', long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub max_replace_args: Option<u32>,

    /// Skip empty values; no value at all is no error
    #[arg(short = 'r', long, hide_short_help = true)]
    pub no_run_if_empty: bool,

    /// Tag each line of output with STR; {} and the like in STR are replaced
    #[arg(
        long,
        value_name = "STR",
        conflicts_with = "output",
        hide_short_help = true
    )]
    pub tagstring: Option<OsString>,
}

impl ValueArgs {
    /// The same for the reader of values.
    pub fn reading(&self) -> Reading {
        Reading {
            files: self.arg_file.clone(),
            end: self.delimiter.or(self.null.then_some(0)),
            columns: self.colsep.clone(),
            per_job: self.max_args.or(self.max_replace_args).map(|n| n as usize),
            repeats: self.max_replace_args.is_some(),
            skip_empty: self.no_run_if_empty,
            header: self.header.is_some(),
            whole: self.replacement.clone().map(OsString::from),
            tag: self.tagstring.clone(),
            ..Reading::default()
        }
    }
}
