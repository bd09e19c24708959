//! Files in an open folder. Links are not followed: others may have made them.

use rustix::fd::AsFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, fstat, openat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt as _;

/// Creates a file for reading and writing that only its owner can open.
///
/// # Errors
/// There is a file of that name, or an error of the system.
pub(crate) fn create_new(dir: impl AsFd, name: &str) -> rustix::io::Result<File> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(dir, name, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

/// Opens a file that has no other name, and returns its owner.
pub(crate) fn open_file(dir: impl AsFd, name: &OsStr) -> Option<(File, u32)> {
    // Non-blocking, because it might be a pipe.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = openat(dir, name, flags, Mode::empty()).ok()?;
    let stat = fstat(&fd).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (is_file && stat.st_nlink == 1).then(|| (File::from(fd), stat.st_uid))
}

pub(crate) fn remove(dir: impl AsFd, name: impl AsRef<OsStr>) {
    let _ = unlinkat(dir, name.as_ref(), AtFlags::empty());
}

/// The names with this prefix among so many entries, sorted.
pub(crate) fn names(dir: impl AsFd, prefix: &str, most: usize) -> Vec<OsString> {
    let entries = Dir::read_from(dir).ok().into_iter().flatten();
    let mut names = Vec::new();
    for entry in entries.flatten().take(most) {
        let name = entry.file_name().to_bytes();
        if name.starts_with(prefix.as_bytes()) {
            names.push(OsStr::from_bytes(name).to_owned());
        }
    }
    names.sort();
    names
}
