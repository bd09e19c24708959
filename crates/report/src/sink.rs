//! A file of lines. If it can't be written, for example because the disk is full, the run goes on without it.

use crate::warning::{RunFile, RunWarning};
use std::io::{self, Write};

/// Writes whole lines. After the first error it writes nothing more, and it reports the error once.
///
/// Every call to [`LineSink::write`] hands over whole lines in one piece and flushes them, so a program that reads
/// the file meanwhile sees at most its last line cut off.
#[derive(Debug)]
pub struct LineSink<W> {
    out: W,
    file: RunFile,
    error: Option<io::Error>,
    told: bool,
}

impl<W: Write> LineSink<W> {
    /// Writes to `out`; `file` names it in the warning.
    pub fn new(out: W, file: RunFile) -> LineSink<W> {
        LineSink { out, file, error: None, told: false }
    }

    /// Whether lines are still written.
    pub fn is_open(&self) -> bool {
        self.error.is_none()
    }

    /// Writes whole lines, or nothing after an earlier error.
    pub fn write(&mut self, lines: &[u8]) {
        if self.error.is_none()
            && !lines.is_empty()
            && let Err(error) = self.out.write_all(lines).and_then(|()| self.out.flush())
        {
            self.error = Some(error);
        }
    }

    /// The warning about the first error; returned once.
    pub fn take_warning(&mut self) -> Option<RunWarning> {
        let error = self.error.as_ref()?;
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        Some(RunWarning::FileStopped { file: self.file, error: error.to_string() })
    }

    /// Returns the writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FullDisk;

    #[test]
    fn a_full_disk_is_told_once_and_ends_the_writing() {
        let mut sink = LineSink::new(FullDisk::after(10), RunFile::Series);
        sink.write(b"one\n");
        assert_eq!((sink.is_open(), sink.take_warning()), (true, None));
        sink.write(b"two and three\n");
        sink.write(b"4\n");
        assert!(!sink.is_open());
        let warning = sink.take_warning();
        assert!(matches!(warning, Some(RunWarning::FileStopped { file: RunFile::Series, .. })), "{warning:?}");
        assert_eq!(sink.take_warning(), None);
        assert_eq!(sink.into_inner().written, b"one\ntwo an");
    }
}
