//! Reads the files that users name, and only as much of them as can make sense.

use super::command::told;
use crate::exit::usage;
use anyhow::Result;
use rustix::fs::{fstat, makedev};
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The standard input of the run.
pub(crate) const OWN_INPUT: &str = "/dev/stdin";

/// The largest list of commands or values, or record, that is read, in MiB: more than a million jobs need.
const MOST_MIB: u64 = 512;

/// The largest mix file that is read, in MiB: half a million jobs need less. Read, it takes thirty times as much memory.
const MOST_MIX_MIB: u64 = 32;

/// The largest machine, program or profile that is read, in MiB: people write them by hand.
const MOST_SPEC_MIB: u64 = 16;

/// Reads a whole file, or standard input for `-`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>> {
    read_at_most(path, MOST_MIB)
}

/// Reads a whole text file, or standard input for `-`.
pub(crate) fn read_text(path: &Path) -> Result<String> {
    text(path, read_at_most(path, MOST_MIB)?)
}

/// Reads a mix file, or standard input for `-`.
pub fn read_mix(path: &Path) -> Result<String> {
    text(path, read_at_most(path, MOST_MIX_MIB)?)
}

/// Reads a small file that describes a machine, a program or a profile.
pub fn read_spec(path: &Path) -> Result<String> {
    text(path, read_at_most(path, MOST_SPEC_MIB)?)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| unreadable(path, "it is not UTF-8 text"))
}

pub(super) fn unreadable(path: &Path, why: impl Display) -> anyhow::Error {
    let path = told(path);
    usage(format!("{path}: can't be read: {why}"))
}

/// Reads only plain files and pipes, up to `most_mib`: a device or a mistyped path must not fill the memory.
fn read_at_most(path: &Path, most_mib: u64) -> Result<Vec<u8>> {
    let input = open(path).map_err(|error| unreadable(path, error))?;
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    let read = input.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| unreadable(path, error))?;
    if bytes.len() as u64 > most {
        let why = format!("it is larger than {most_mib} MiB");
        return Err(unreadable(path, why));
    }
    Ok(bytes)
}

fn is_null(device: u64) -> bool {
    device == makedev(1, 3)
}

/// Whether standard input may hold something: it is neither a terminal nor `/dev/null`.
pub(crate) fn has_input() -> bool {
    let input = io::stdin();
    let is_null = fstat(&input).is_ok_and(|stat| is_null(stat.st_rdev));
    !is_null && !input.is_terminal()
}

/// Whether a file is standard input.
pub(crate) fn is_input(path: &Path) -> bool {
    path == Path::new("-") || path == Path::new(OWN_INPUT)
}

fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if is_input(path) {
        return Ok(Box::new(io::stdin()));
    }
    let meta = path.metadata()?;
    let kind = meta.file_type();
    if kind.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    // The one device that ends at once: people give it where a file has nothing in it.
    let is_null = kind.is_char_device() && is_null(meta.rdev());
    if !kind.is_file() && !kind.is_fifo() && !is_null {
        let why = "it is neither a plain file nor a pipe";
        return Err(io::Error::other(why));
    }
    Ok(Box::new(File::open(path)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_and_pipes_of_a_sound_size_are_read() {
        let why = |path: &Path| read_spec(path).unwrap_err().to_string();
        assert!(why(Path::new("/dev/zero")).contains("neither a plain file nor a pipe"));
        assert!(why(Path::new("/")).contains("it is a folder"));
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MOST_SPEC_MIB << 20).unwrap();
        assert_eq!(
            read_spec(file.path()).unwrap().len() as u64,
            MOST_SPEC_MIB << 20
        );
        file.as_file().set_len((MOST_SPEC_MIB << 20) + 1).unwrap();
        assert!(
            why(file.path()).ends_with("it is larger than 16 MiB"),
            "{}",
            why(file.path())
        );
        file.as_file().set_len((MOST_MIX_MIB << 20) + 1).unwrap();
        assert!(
            read_mix(file.path())
                .unwrap_err()
                .to_string()
                .ends_with("it is larger than 32 MiB")
        );
        std::fs::write(file.path(), [0xff]).unwrap();
        assert!(why(file.path()).ends_with("it is not UTF-8 text"));
        assert_eq!(read_bytes(file.path()).unwrap(), [0xff]);
    }
}
