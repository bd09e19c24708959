//! Files that are there as a whole, or not at all.

use crate::exit::Failure;
use crate::input::told;
use anyhow::Context as _;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Opens a file that was written before, whoever has put something else in its place since: opening a pipe would wait for
/// its writer, and a link could lead to anybody's file.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOFOLLOW).bits()).ok()?;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .ok()?;
    file.metadata()
        .is_ok_and(|meta| meta.is_file())
        .then_some(file)
}

/// As [`open_regular`], of what runs of the caller wrote. The superuser reads nobody else's, since that
/// could have any size.
pub(crate) fn open_own(path: &Path) -> Option<File> {
    let file = open_regular(path)?;
    let owner = file.metadata().ok()?.uid();
    (owner == 0 || !rustix::process::geteuid().is_root()).then_some(file)
}

/// The content of such a file.
pub(crate) fn read_own(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_own(path)?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Opens a file for writing whose name the user did not type, and makes it if it is not there. Nobody is waited for, and no
/// link is followed.
///
/// # Errors
/// An error of the system, or something else than a regular file has the name.
pub(crate) fn write_regular(path: &Path, how: OFlags) -> std::io::Result<File> {
    let odd = || std::io::Error::other("it is not a regular file, so nothing is written to it");
    let flags = how
        | OFlags::WRONLY
        | OFlags::CREATE
        | OFlags::NOFOLLOW
        | OFlags::NONBLOCK
        | OFlags::CLOEXEC;
    let file = match openat(CWD, path, flags, Mode::from_raw_mode(0o666)) {
        Err(Errno::LOOP | Errno::NXIO) => return Err(odd()),
        opened => File::from(opened?),
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(odd())
    }
}

/// Writes a file whole or not at all. Whatever has its name is replaced: no link is followed, and no pipe or device is
/// written to.
///
/// # Errors
/// An error of the system, with the file's name.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    write_whole_in(CWD, path, content).with_context(|| format!("can't write {}", told(path)))
}

/// As [`write_whole`], with a path that counts from a folder.
///
/// # Errors
/// An error of the system.
pub(crate) fn write_whole_in(
    folder: impl AsFd,
    path: &Path,
    content: &[u8],
) -> std::io::Result<()> {
    let new = begin(&folder, path)?;
    let written = (&new.file).write_all(content);
    new.end(&folder, path, written)
}

/// As [`write_whole`], for content that need not be in memory: `write` writes it, and after an error nothing is left.
///
/// # Errors
/// Those of `write`, and an error of the system, all but those of a user's input with the file's name.
pub(crate) fn stream_whole<T>(
    path: &Path,
    write: impl FnOnce(&File) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let named = || format!("can't write {}", told(path));
    let new = begin(CWD, path).with_context(named)?;
    let written = write(&new.file);
    let written = match written {
        Err(error) if error.is::<Failure>() => Err(error),
        written => written.with_context(named),
    };
    new.end(CWD, path, written)
}

/// A file that is being written beside the one that it will replace.
struct New {
    name: PathBuf,
    file: File,
}

fn begin(folder: impl AsFd, path: &Path) -> std::io::Result<New> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let name = path.with_file_name(name);
    // What an interrupted run left there is replaced.
    let _ = unlinkat(&folder, &name, AtFlags::empty());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(openat(&folder, &name, flags, Mode::from_raw_mode(0o666))?);
    Ok(New { name, file })
}

impl New {
    /// Puts the file in its place if all was written, else removes it.
    fn end<T, E: From<std::io::Error>>(
        self,
        folder: impl AsFd,
        path: &Path,
        written: Result<T, E>,
    ) -> Result<T, E> {
        let put = |value| match renameat(&folder, &self.name, &folder, path) {
            Ok(()) => Ok(value),
            Err(error) => Err(E::from(error.into())),
        };
        let written = written.and_then(put);
        if written.is_err() {
            let _ = unlinkat(&folder, &self.name, AtFlags::empty());
        }
        written
    }
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
        let failed = stream_whole(&file, |mut out| -> anyhow::Result<()> {
            out.write_all(b"half")?;
            Err(std::io::Error::other("the disk is full").into())
        });
        let told = crate::exit::told(&failed.unwrap_err());
        assert!(
            told.contains("can't write") && told.ends_with("file: the disk is full"),
            "{told}"
        );
        assert_eq!(std::fs::read(&file).unwrap(), b"before");
        let refused = stream_whole(&file, |_| -> anyhow::Result<()> {
            Err(crate::exit::usage("line 3"))
        });
        assert_eq!(crate::exit::told(&refused.unwrap_err()), "line 3");
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
