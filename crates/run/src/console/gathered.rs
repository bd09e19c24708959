//! Frames that are written together. On its way to the coordinator each write wakes several processes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

/// Least time between two writes. A frame after a longer pause is written at once.
const PAUSE: Duration = Duration::from_millis(10);

/// Bytes that are kept at most. More are written at once.
const MOST: usize = 64 << 10;

/// Standard output for frames.
pub(super) struct Gathered {
    out: BufWriter<File>,
    /// When something was written last.
    written: Instant,
}

impl Gathered {
    /// # Errors
    /// There is no standard output.
    pub(super) fn new() -> io::Result<Gathered> {
        let stdout = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(Gathered {
            out: BufWriter::with_capacity(MOST, File::from(stdout)),
            written: Instant::now(),
        })
    }

    /// How long frames wait; `None` if there are none.
    pub(super) fn wait(&self) -> Option<Duration> {
        let is_empty = self.out.buffer().is_empty();
        (!is_empty).then(|| PAUSE.saturating_sub(self.written.elapsed()))
    }

    /// Writes all frames.
    ///
    /// # Errors
    /// Nobody reads them, for one.
    pub(super) fn write_out(&mut self) -> io::Result<()> {
        self.written = Instant::now();
        self.out.flush()
    }
}

impl Write for Gathered {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    /// Does nothing: [`Gathered::write_out`] writes when it is time.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
