//! The option `--history`, and the default place of the history.

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
            None => default_place(std::env::var_os("XDG_DATA_HOME"), std::env::home_dir()),
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

/// The file in the user's data folder. A relative name of that folder does not count, as its specification says.
fn default_place(data: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let data = data.map(PathBuf::from).filter(|data| data.is_absolute());
    let home = || {
        home.filter(|home| home.is_absolute())
            .map(|home| home.join(".local/share"))
    };
    Some(data.or_else(home)?.join("cosched/history.sqlite"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_of_the_user() {
        let place = |data: Option<&str>, home: Option<&str>| {
            let place = default_place(data.map(OsString::from), home.map(PathBuf::from));
            place.map(|place| place.to_string_lossy().into_owned())
        };
        assert_eq!(
            place(Some("/d"), Some("/h")).unwrap(),
            "/d/cosched/history.sqlite"
        );
        for data in [None, Some(""), Some("rel")] {
            assert_eq!(
                place(data, Some("/h")).unwrap(),
                "/h/.local/share/cosched/history.sqlite"
            );
        }
        assert_eq!(
            (place(None, None), place(Some("x"), Some(""))),
            (None, None)
        );
        let args = |history: &str| HistoryArgs {
            history: Some(history.into()),
        };
        assert_eq!(args("off").place(), None);
        assert_eq!(args("./off").place().unwrap().file_name().unwrap(), "off");
    }
}
