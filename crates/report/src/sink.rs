//! A file of lines that may fail, because the disk is full, say, without the run being harmed.

use std::io::{self, Write};

/// Writes whole lines; after the first error it writes nothing more, and tells of it once.
///
/// Every call to [`LineSink::write`] hands over whole lines in one piece and flushes them, so that whoever reads the
/// file meanwhile sees at most its last line cut off.
#[derive(Debug)]
pub struct LineSink<W> {
    out: W,
    what: &'static str,
    error: Option<io::Error>,
    told: bool,
}

impl<W: Write> LineSink<W> {
    /// Onto `out`; `what` names the file in a warning, as in "the series".
    pub fn new(out: W, what: &'static str) -> LineSink<W> {
        LineSink { out, what, error: None, told: false }
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

    /// The warning about the first error, the first time that it is asked for after it.
    pub fn take_warning(&mut self) -> Option<String> {
        let error = self.error.as_ref()?;
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        Some(format!("{} is written no further: {error}", self.what))
    }

    /// Gives the writer back.
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
        let mut sink = LineSink::new(FullDisk::after(10), "the series");
        sink.write(b"one\n");
        assert_eq!((sink.is_open(), sink.take_warning()), (true, None));
        sink.write(b"two and three\n");
        sink.write(b"4\n");
        assert!(!sink.is_open());
        let warning = sink.take_warning().unwrap();
        assert!(warning.starts_with("the series is written no further: "), "{warning}");
        assert_eq!(sink.take_warning(), None);
        assert_eq!(sink.into_inner().written, b"one\ntwo an");
    }
}
