//! A file of `/proc` that is read again and again. It stays open where there is room: that costs half as much, and the
//! file never shows a later process with the same number.

use crate::root::Root;
use crate::sys;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Size of the buffer for a short file.
const BYTES: usize = 128;

/// A file of a process.
pub(super) struct ProcessFile {
    path: PathBuf,
    file: Option<File>,
}

impl ProcessFile {
    pub(super) fn new(root: &Root, path: &str) -> ProcessFile {
        let path = root.path(path);
        let has_room = sys::spare_descriptors() > 0;
        let file = has_room.then(|| File::open(&path).ok()).flatten();
        ProcessFile { path, file }
    }

    /// Reads with `read`; `None` if there is no such file.
    pub(super) fn read<T>(&self, read: impl Fn(&File) -> Option<T>) -> Option<T> {
        match &self.file {
            Some(file) => read(file),
            None => read(&File::open(&self.path).ok()?),
        }
    }
}

/// CPU time and time waited for a CPU, in nanoseconds, from a `schedstat`; `None` if the kernel keeps none.
pub(super) fn sched_times(file: &File) -> Option<(u64, u64)> {
    let mut bytes = [0u8; BYTES];
    let length = file.read_at(&mut bytes, 0).ok()?;
    let text = std::str::from_utf8(&bytes[..length]).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse);
    let (used, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let slices: u64 = numbers.next()?.ok()?;
    // A kernel that does not count shows zeros.
    (slices > 0 || used > 0).then_some((used, waited))
}
