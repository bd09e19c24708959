//! The option `--history`, and the default place of the history.

use crate::input::mine::data_folder;
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser as _};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where the history of commands is kept.
#[derive(Args)]
#[command(next_help_heading = "History")]
pub struct HistoryArgs {
    /// File for the history of commands; `off`: none
    ///
    /// Later runs use it for the time left, the order of jobs and the memory that they need [default:
    /// ~/.local/share/cosched/history.sqlite]
    #[arg(
        long,
        value_name = "FILE|off",
        env = "COSCHED_HISTORY",
        hide_short_help = true
    )]
    #[arg(value_parser = OsStringValueParser::new().try_map(named))]
    pub history: Option<OsString>,
}

impl HistoryArgs {
    /// The file; `None` where nothing is to be kept, or where there is no place for it.
    pub fn place(&self) -> Option<PathBuf> {
        match &self.history {
            Some(off) if off == "off" => None,
            Some(file) => Some(crate::input::absolute(Path::new(file))),
            None => Some(data_folder()?.join("history.sqlite")),
        }
    }
}

fn named(file: OsString) -> Result<OsString, &'static str> {
    if file.is_empty() {
        Err("name a file, or say off; leave it out for the file in your home folder")
    } else {
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_keeps_nothing() {
        let args = |history: &str| HistoryArgs {
            history: Some(history.into()),
        };
        assert_eq!(args("off").place(), None);
        assert_eq!(args("./off").place().unwrap().file_name().unwrap(), "off");
    }
}
