//! Lines that come while the run goes on: from a pipe, a named pipe, a socket or a terminal.

use super::command::told;
use super::read::{is_input, unreadable};
use anyhow::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Longest line that is read, in bytes. A longer one is an error for itself alone.
const LONGEST: usize = 8 << 20;

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// Pieces that are read in one turn: empty lines may come without end.
const PIECES: usize = 16;

/// Lines that are read as they come.
pub(crate) struct Lines {
    input: File,
    /// The input, as messages name it.
    name: String,
    /// The byte that ends a line.
    end: u8,
    /// What was read and is not a whole line yet, from `start` on.
    buffer: Vec<u8>,
    start: usize,
    /// No line ends before this place in the buffer.
    searched: usize,
    number: u64,
    /// The rest of a line that is too long is skipped.
    skips: bool,
    /// Pieces that may still be read in this turn.
    pieces: usize,
    /// Why the input can't be read any further.
    broken: Option<String>,
    has_ended: bool,
}

/// A line, with its place for messages.
pub(crate) struct Line {
    pub(crate) place: String,
    /// Its bytes without the end, or why there are none.
    pub(crate) bytes: Result<Vec<u8>, String>,
}

/// The input at a path, if it may go on while the run does: no plain file, and not `/dev/null`. A plain file of more bytes than
/// `most` is read so as well.
fn stream(path: &Path, most: u64) -> io::Result<Option<File>> {
    let input = if is_input(path) {
        io::stdin().as_fd().try_clone_to_owned()?.into()
    } else if path.metadata()?.file_type().is_fifo() {
        File::open(path)?
    } else if path.metadata()?.len() > most {
        return File::open(path).map(Some);
    } else {
        return Ok(None);
    };
    let kind = input.metadata()?.file_type();
    let is_terminal = rustix::termios::isatty(&input);
    Ok((kind.is_fifo() || kind.is_socket() || is_terminal).then_some(input))
}

impl Lines {
    /// The lines of an input; `None` if the input is complete already, such as a plain file of at most `most` bytes.
    ///
    /// # Errors
    /// It can't be read.
    pub(crate) fn open(path: &Path, end: u8, most: u64) -> Result<Option<Lines>> {
        let input = stream(path, most).map_err(|error| unreadable(path, error))?;
        Ok(input.map(|input| Lines {
            input,
            name: told(path),
            end,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            number: 0,
            skips: false,
            pieces: PIECES,
            broken: None,
            has_ended: false,
        }))
    }

    /// Whether lines may come at this path while a run goes on.
    pub(crate) fn may_come(path: &Path) -> bool {
        // Nothing is opened: that would wait for who writes.
        let path = if is_input(path) {
            Path::new("/dev/stdin")
        } else {
            path
        };
        let kind = path.metadata().map(|data| data.file_type());
        kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
    }

    /// Waits for the first line, or for the end.
    ///
    /// # Errors
    /// The input can't be read.
    pub(crate) fn wait(&mut self) -> Result<()> {
        while !self.has_ended && self.is_short() {
            self.read_when(None)
                .map_err(|error| unreadable(Path::new(&self.name), error))?;
        }
        Ok(())
    }

    /// Whether the buffer holds only the begin of a line.
    fn is_short(&self) -> bool {
        let unread = &self.buffer[self.start..];
        !unread.contains(&self.end) && unread.len() < LONGEST
    }

    /// Whether the input has ended, and all lines were taken.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended && self.start == self.buffer.len() && !self.skips && self.broken.is_none()
    }

    /// A descriptor that is readable once there may be more.
    ///
    /// # Errors
    /// There are too many descriptors.
    pub(crate) fn descriptor(&self) -> io::Result<OwnedFd> {
        self.input.as_fd().try_clone_to_owned()
    }

    /// Begins a turn, in which only so much is read.
    pub(crate) fn begin_turn(&mut self) {
        self.pieces = PIECES;
    }

    /// Whether the turn ended before what is there was read.
    pub(crate) fn was_cut(&self) -> bool {
        self.pieces == 0
    }

    /// The next line, if it is there.
    pub(crate) fn next(&mut self) -> Option<Line> {
        loop {
            if let Some(bytes) = self.next_bytes() {
                self.number += 1;
                let place = format!("{}:{}", self.name, self.number);
                return Some(Line { place, bytes });
            }
            if self.has_ended || !self.read_more() {
                return None;
            }
        }
    }

    /// The next whole line in the buffer; at the end also one without its end.
    fn next_bytes(&mut self) -> Option<Result<Vec<u8>, String>> {
        if let Some(why) = self.broken.take() {
            return Some(Err(why));
        }
        let end = self.end;
        let found = self.buffer[self.searched..]
            .iter()
            .position(|&byte| byte == end);
        let found = found.map(|place| self.searched + place);
        let (until, next) = match found {
            Some(place) => (place, place + 1),
            None if self.has_ended && (self.start < self.buffer.len() || self.skips) => {
                (self.buffer.len(), self.buffer.len())
            }
            None => {
                self.searched = self.buffer.len();
                self.skip_if_too_long();
                return None;
            }
        };
        let line = self.buffer[self.start..until].to_vec();
        (self.start, self.searched) = (next, next);
        if std::mem::take(&mut self.skips) {
            let mib = LONGEST >> 20;
            return Some(Err(format!("the line is longer than {mib} MiB")));
        }
        Some(Ok(line))
    }

    fn skip_if_too_long(&mut self) {
        if self.skips || self.buffer.len() - self.start > LONGEST {
            self.skips = true;
            self.buffer.clear();
            (self.start, self.searched) = (0, 0);
        }
    }

    /// Reads what is there without waiting; `false` if nothing is, or the turn has ended.
    fn read_more(&mut self) -> bool {
        if self.pieces == 0 {
            return false;
        }
        self.pieces -= 1;
        let read = self.read_when(Some(&Timespec::default()));
        match read {
            Ok(has_read) => {
                // The turn is not cut if there was nothing.
                self.pieces += usize::from(!has_read);
                has_read
            }
            Err(error) => {
                // Half a line must not run.
                self.buffer.clear();
                (self.start, self.searched, self.skips) = (0, 0, false);
                self.broken = Some(format!("the input can't be read: {error}"));
                self.has_ended = true;
                true
            }
        }
    }

    /// Reads once there is something, or returns `false` after `timeout`.
    fn read_when(&mut self, timeout: Option<&Timespec>) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.input, PollFlags::IN)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        self.buffer.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        let before = self.buffer.len();
        self.buffer.resize(before + PIECE, 0);
        let read = self.input.read(&mut self.buffer[before..]);
        self.buffer.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(count) => self.has_ended = count == 0,
            // Somebody else read it, or a signal came.
            Err(error) if [WouldBlock, Interrupted].contains(&error.kind()) => return Ok(false),
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}
