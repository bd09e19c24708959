//! The machine file of this machine, as `cosched calibrate` measured it: `--on mine`.

use cosched_linux::identity::machine_kind;
use cosched_linux::processor::Processors;
use cosched_linux::root::Root;
use std::ffi::OsString;
use std::path::PathBuf;

/// The word of `--on` for the machine file of this machine.
pub const MINE: &str = "mine";

/// cosched's folder in the user's data folder; `None` if the user has none.
pub fn data_folder() -> Option<PathBuf> {
    data_folder_of(std::env::var_os("XDG_DATA_HOME"), std::env::home_dir())
}

/// A relative name of the data folder does not count, as its specification says.
fn data_folder_of(data: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let data = data.map(PathBuf::from).filter(|data| data.is_absolute());
    let home = home.filter(|home| home.is_absolute());
    let data = data.or_else(|| Some(home?.join(".local/share")))?;
    Some(data.join("cosched"))
}

/// The place of this machine's file, which may not exist; `None` without a data folder.
pub fn machine_file(root: &Root) -> Option<PathBuf> {
    let kind = machine_kind(root, &Processors::read(root).ok()?.name());
    let name = file_name(&kind);
    Some(data_folder()?.join(format!("machines/{name}.toml")))
}

/// A kind of machine as the name of a file and of a machine: small letters, digits and hyphens.
fn file_name(kind: &str) -> String {
    let kind = kind.to_ascii_lowercase();
    let words = kind.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let mut name = words.join("-");
    name.truncate(100);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_folder_of_the_user() {
        let place = |data: Option<&str>, home: Option<&str>| {
            let place = data_folder_of(data.map(OsString::from), home.map(PathBuf::from));
            place.map(|place| place.to_string_lossy().into_owned())
        };
        assert_eq!(place(Some("/d"), Some("/h")).unwrap(), "/d/cosched");
        for data in [None, Some(""), Some("rel")] {
            assert_eq!(place(data, Some("/h")).unwrap(), "/h/.local/share/cosched");
        }
        assert_eq!(
            (place(None, None), place(Some("x"), Some(""))),
            (None, None)
        );
    }

    #[test]
    fn a_kind_of_machine_names_a_file() {
        assert_eq!(
            file_name("Intel(R) Xeon(R) @ 2.5GHz, 2 CPUs, 24 GiB"),
            "intel-r-xeon-r-2-5ghz-2-cpus-24-gib"
        );
    }
}
