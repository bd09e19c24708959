//! Opens, writes and replaces files that the program names itself. No link is followed, and no pipe waited for.

use crate::exit::Failure;
use crate::input::told;
use anyhow::Result;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

/// Access to the files of a log folder.
pub(crate) const PRIVATE: u32 = 0o600;
/// Access to the log folder itself.
pub(crate) const PRIVATE_FOLDER: u32 = 0o700;
/// Access to the files that users name, unless their mask for new files says less.
pub(crate) const USUAL: u32 = 0o666;

/// The kernel's limit of links on the way to a file.
const MOST_LINKS: usize = 40;

/// Opens a file for reading; `None` if it is not there, or not a regular file.
pub fn open_regular(path: &Path) -> Option<File> {
    open(path, OpenOptions::new().read(true)).ok()
}

/// Opens a file of the caller's runs. Root opens only its own.
pub(crate) fn open_own(path: &Path) -> Option<File> {
    let file = open_regular(path)?;
    if geteuid().is_root() && file.metadata().ok()?.uid() != 0 {
        return None;
    }
    Some(file)
}

/// Reads such a file.
pub fn read_own(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_own(path)?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Opens a file for writing at its end, and makes it for its owner alone if it is not there.
///
/// # Errors
/// The file can't be opened, or is not a regular file.
pub(crate) fn append_regular(path: &Path) -> io::Result<File> {
    open(
        path,
        OpenOptions::new().append(true).create(true).mode(PRIVATE),
    )
}

/// Makes a file of a log folder, for its owner alone.
///
/// # Errors
/// The file exists, or can't be made.
pub(crate) fn create_private(path: &Path) -> io::Result<File> {
    let mut how = OpenOptions::new();
    how.write(true).create_new(true).mode(PRIVATE).open(path)
}

/// Makes a folder for its owner alone.
///
/// # Errors
/// It exists, or can't be made.
pub(crate) fn create_private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(PRIVATE_FOLDER).create(path)
}

/// Makes a folder, and those above it that are missing, for its owner alone. It may exist.
///
/// # Errors
/// It can't be made.
pub fn create_private_folders(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.mode(PRIVATE_FOLDER).recursive(true).create(path)
}

fn open(path: &Path, how: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits() as i32;
    let opened = how.custom_flags(flags).open(path);
    let is_other = match &opened {
        Ok(file) => !file.metadata()?.is_file(),
        Err(error) => matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NXIO)),
    };
    if is_other {
        return Err(io::Error::other("it is not a regular file"));
    }
    opened
}

/// Finds where the links of a name lead, whether a file is there or not.
///
/// A descriptor such as `/dev/stdout` stays a link in `/proc`: only by following it can it be opened.
///
/// # Errors
/// Links lead in a circle, or the current folder is gone.
pub(crate) fn resolve_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..MOST_LINKS {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return path.canonicalize();
        };
        // The run may make the folder later.
        let folder = folder.canonicalize().or_else(|_| resolve_links(folder))?;
        path = folder.join(name);
        match path.read_link() {
            Ok(target) if !is_descriptor(&path) => path = folder.join(target),
            _ => return Ok(path),
        }
    }
    Err(Errno::LOOP.into())
}

/// Whether a resolved name is a descriptor of a process.
pub(crate) fn is_descriptor(path: &Path) -> bool {
    path.starts_with("/proc") && path.is_symlink()
}

/// Writes a file whole or not at all. It replaces what has its name, also a link, a pipe or a device.
///
/// # Errors
/// The file can't be written.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    stream_whole(path, |mut file| Ok(file.write_all(content)?))
}

/// Writes a file of a log folder in the same way, for its owner alone.
///
/// # Errors
/// The file can't be written.
pub(crate) fn write_private(path: &Path, content: &[u8]) -> Result<()> {
    stream(path, PRIVATE, |mut file| Ok(file.write_all(content)?))
}

/// Does the same with content that `write` produces piece by piece.
///
/// # Errors
/// The file can't be written, or `write` fails. The user's mistakes are returned without the file's name.
pub fn stream_whole<T>(path: &Path, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    stream(path, USUAL, write)
}

fn stream<T>(path: &Path, mode: u32, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    match replace(path, mode, write) {
        Err(error) if !error.is::<Failure>() => {
            let path = told(path);
            Err(error.context(format!("can't write {path}")))
        }
        done => done,
    }
}

fn replace<T>(path: &Path, mode: u32, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let name = path.file_name().unwrap_or_default();
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut beside = name.to_owned();
    beside.push(".new");
    // An interrupted run may have left it.
    let _ = std::fs::remove_file(folder.join(&beside));
    let new = tempfile::Builder::new()
        .prefix(&beside)
        .rand_bytes(0)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)?;
    let done = write(new.as_file())?;
    new.persist(path).map_err(|error| error.error)?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_devices_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        write_whole(&file, b"text").unwrap();
        assert_eq!(read_own(&file), Some(b"text".to_vec()));
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        assert_eq!(read_own(&pipe), None);
        assert_eq!(read_own(Path::new("/dev/zero")), None);
        match std::os::unix::fs::chown(&file, Some(2_000_001), None) {
            Ok(()) => assert_eq!(read_own(&file), None, "root, and somebody else's"),
            Err(error) => {
                eprintln!("skipped in part, because only root may give files away: {error}")
            }
        }
        assert_eq!(read_own(&dir.path().join("nothing")), None);
    }

    #[test]
    fn a_file_that_is_written_bit_by_bit_is_there_whole_or_as_before() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "before").unwrap();
        let failed = stream_whole(&file, |mut out| -> Result<()> {
            out.write_all(b"half")?;
            Err(std::io::Error::other("the disk is full").into())
        });
        let told = crate::exit::one_line(&failed.unwrap_err());
        assert!(
            told.contains("can't write") && told.ends_with("file: the disk is full"),
            "{told}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"before");
        let refused = stream_whole(&file, |_| -> Result<()> {
            Err(crate::exit::usage("line 3"))
        });
        assert_eq!(crate::exit::one_line(&refused.unwrap_err()), "line 3");
        let written = stream_whole(&file, |mut out| Ok(out.write(b"after")?));
        assert_eq!(
            (written.unwrap(), std::fs::read(&file).unwrap()),
            (5, b"after".to_vec())
        );
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            1,
            "nothing else is left"
        );
        assert!(stream_whole(&dir.path().join("none/file"), |_| Ok(())).is_err());
    }

    #[test]
    fn what_has_the_name_of_a_file_is_replaced_and_never_written_to() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let (file, precious) = (dir.path().join("file"), dir.path().join("precious"));
        std::fs::write(&precious, "kept").unwrap();
        let is_text = || {
            file.symlink_metadata().unwrap().is_file() && std::fs::read(&file).unwrap() == b"text"
        };
        for target in [precious.as_path(), Path::new("/dev/null")] {
            let _ = std::fs::remove_file(&file);
            symlink(target, &file).unwrap();
            symlink(&precious, dir.path().join("file.new")).unwrap();
            assert_eq!(read_own(&file), None, "a link is not followed");
            write_whole(&file, b"text").unwrap();
            assert!(is_text(), "{}", target.display());
        }
        std::fs::remove_file(&file).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &file, mode).unwrap();
        write_whole(&file, b"text").unwrap();
        assert!(is_text(), "nobody waits for the reader of a pipe");
        assert_eq!(std::fs::read(&precious).unwrap(), b"kept");
        assert_eq!(
            std::fs::read_dir(dir.path()).unwrap().count(),
            2,
            "nothing else is left"
        );
    }
}
