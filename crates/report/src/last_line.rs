//! The last line of a file.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Maximum number of bytes read.
pub const MOST_READ: usize = 64 << 10;

/// Return the last line of a regular file that holds more than blanks, at most `most` characters of it.
pub fn last_line(path: &Path, most: usize) -> Option<String> {
    let meta = path.metadata().ok()?;
    // Opening a pipe without a writer would block.
    if !meta.is_file() {
        return None;
    }
    let length = meta.len();
    let mut end = vec![0; MOST_READ.min(usize::try_from(length).unwrap_or(MOST_READ))];
    let from = length - end.len() as u64;
    File::open(path).ok()?.read_exact_at(&mut end, from).ok()?;
    last_line_of(&end, most)
}

/// The same of the end of a file.
pub fn last_line_of(end: &[u8], most: usize) -> Option<String> {
    let text = String::from_utf8_lossy(end);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.chars().take(most).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, SeekFrom, Write as _};

    #[test]
    fn of_a_huge_file_only_the_end_is_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("err");
        let mut file = File::create(&path).unwrap();
        file.set_len(1 << 40).unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all("\nwhy \u{416}\n  \n".as_bytes()).unwrap();
        assert_eq!(last_line(&path, 200).as_deref(), Some("why \u{416}"));
        assert_eq!(last_line(&path, 2).as_deref(), Some("wh"));
        std::fs::write(&path, "").unwrap();
        assert_eq!(last_line(&path, 200), None);
        assert_eq!(last_line(&dir.path().join("none"), 200), None);
        assert_eq!(last_line(dir.path(), 200), None, "no regular file");
    }
}
