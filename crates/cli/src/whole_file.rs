//! Files that are there as a whole, or not at all.

use anyhow::Context as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

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
