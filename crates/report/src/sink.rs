//! A file of lines. If it cannot be written, for example because the disk is full, the run continues without it.

use crate::warning::{RunFile, RunWarning};
use std::io::{self, ErrorKind, Write};

/// Maximum size of lines that wait for room on the disk, in bytes.
const MOST_WAITING: usize = 4 << 20;

/// Writes whole lines. An error is reported once.
///
/// Every call to [`LineSink::write`] hands over whole lines in one piece and flushes them, so a program that reads
/// the file meanwhile sees at most its last line cut off.
#[derive(Debug)]
pub struct LineSink<W> {
    out: W,
    file: RunFile,
    /// Keep lines that could not be written, and retry with the next ones.
    waits: bool,
    /// Bytes that are not written yet; they may begin in the middle of a line.
    waiting: Vec<u8>,
    /// Why the last attempt failed.
    error: Option<io::Error>,
    /// Nothing more is written.
    closed: bool,
    told_lag: bool,
    told_end: bool,
}

impl<W: Write> LineSink<W> {
    /// Writes to `out`, and nothing more after the first error; `file` names it in the warning.
    pub fn new(out: W, file: RunFile) -> LineSink<W> {
        LineSink {
            out,
            file,
            waits: false,
            waiting: Vec::new(),
            error: None,
            closed: false,
            told_lag: false,
            told_end: false,
        }
    }

    /// As [`LineSink::new`], but lines that could not be written wait, up to 4 MiB of them: they are tried again with the
    /// next ones, and by [`LineSink::finish`]. A disk that is full for a while costs no line.
    pub fn lasting(out: W, file: RunFile) -> LineSink<W> {
        LineSink {
            waits: true,
            ..LineSink::new(out, file)
        }
    }

    /// Whether lines are still written.
    pub fn is_open(&self) -> bool {
        !self.closed
    }

    /// Writes whole lines, or nothing after it was closed by an error.
    pub fn write(&mut self, lines: &[u8]) {
        if !self.closed && !lines.is_empty() {
            self.waiting.extend_from_slice(lines);
            self.drain();
        }
    }

    /// Tries a last time to write what waits, and writes nothing more.
    pub fn finish(&mut self) {
        if !self.closed {
            self.drain();
        }
        self.closed = true;
    }

    fn drain(&mut self) {
        let mut written = 0;
        self.error = None;
        while self.error.is_none() && written < self.waiting.len() {
            match self.out.write(&self.waiting[written..]) {
                Ok(0) => self.error = Some(ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.error = Some(error),
            }
        }
        self.waiting.drain(..written);
        if self.error.is_none() {
            self.error = self.out.flush().err();
        }
        self.closed = self.error.is_some() && (!self.waits || self.waiting.len() > MOST_WAITING);
    }

    /// The warning about an error; each is returned once: that lines wait, and that the file ends.
    pub fn take_warning(&mut self) -> Option<RunWarning> {
        let error = self.error.as_ref()?.to_string();
        let told = if self.closed {
            &mut self.told_end
        } else {
            &mut self.told_lag
        };
        if std::mem::replace(told, true) {
            return None;
        }
        let file = self.file;
        Some(if self.closed {
            RunWarning::FileStopped { file, error }
        } else {
            RunWarning::FileLags { file, error }
        })
    }

    /// Returns the writer.
    #[cfg(test)]
    pub(crate) fn into_inner(self) -> W {
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
        assert!(
            matches!(
                warning,
                Some(RunWarning::FileStopped {
                    file: RunFile::Series,
                    ..
                })
            ),
            "{warning:?}"
        );
        assert_eq!(sink.take_warning(), None);
        assert_eq!(sink.into_inner().written, b"one\ntwo an");
    }

    #[test]
    fn lines_wait_for_room() {
        let mut sink = LineSink::lasting(FullDisk::after(10), RunFile::JobLog);
        for line in ["one\n", "two and three\n", "4\n"] {
            sink.write(line.as_bytes());
        }
        let warning = sink.take_warning();
        assert!(
            matches!(
                warning,
                Some(RunWarning::FileLags {
                    file: RunFile::JobLog,
                    ..
                })
            ),
            "{warning:?}"
        );
        assert_eq!((sink.is_open(), sink.take_warning()), (true, None));
        sink.out.room = 1_000;
        sink.write(b"5\n");
        sink.finish();
        assert_eq!(sink.take_warning(), None);
        assert_eq!(sink.into_inner().written, b"one\ntwo and three\n4\n5\n");
    }

    #[test]
    fn what_waits_in_the_end_is_lost_and_told() {
        for line in [b"12345\n".to_vec(), b"12345\n".repeat(MOST_WAITING)] {
            let mut sink = LineSink::lasting(FullDisk::after(3), RunFile::JobLog);
            sink.write(&line);
            sink.finish();
            sink.write(b"more\n");
            let warning = sink.take_warning();
            assert!(
                matches!(
                    warning,
                    Some(RunWarning::FileStopped {
                        file: RunFile::JobLog,
                        ..
                    })
                ),
                "{warning:?}"
            );
            assert_eq!(sink.take_warning(), None);
            assert_eq!(sink.into_inner().written, b"123");
        }
    }
}
