//! Files that are there as a whole, or not at all.

use anyhow::Context as _;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file that was written before, whoever has put something else in its place since: opening a pipe would wait for
/// its writer.
pub(crate) fn open_regular(path: &Path) -> Option<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().is_ok_and(|meta| meta.is_file()).then_some(file)
}

/// The content of such a file.
pub(crate) fn read_regular(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    open_regular(path)?.read_to_end(&mut content).ok()?;
    Some(content)
}

/// Writes a file whole or not at all. A link in its place is replaced, not followed.
///
/// # Errors
/// An error of the system, with the file's name.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let context = || format!("can't write {}", path.display());
    // A new file can't replace a pipe or a device.
    if std::fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return std::fs::write(path, content).with_context(context);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // A link in its place is not followed, and what an interrupted run left there is replaced.
    let _ = std::fs::remove_file(&new);
    let mut file = File::options().write(true).create_new(true).open(&new).with_context(context)?;
    let written = file.write_all(content).and_then(|()| std::fs::rename(&new, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&new);
    }
    written.with_context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pipes_and_devices_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        write_whole(&file, b"text").unwrap();
        assert_eq!(read_regular(&file), Some(b"text".to_vec()));
        let pipe = dir.path().join("pipe");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).unwrap();
        assert_eq!(read_regular(&pipe), None);
        assert_eq!(read_regular(Path::new("/dev/zero")), None);
        assert_eq!(read_regular(&dir.path().join("nothing")), None);
    }
}
