//! Where one stream of a job lies: in a file of its own, or in pieces of a file that the jobs of a node share.

use cosched_report::{MOST_READ, last_line, last_line_of};
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::rc::Rc;

/// Where a stream lies.
pub(super) enum Source {
    /// In a file of its own, which is opened as soon as something is in it.
    Own { path: PathBuf, file: Option<File> },
    /// In pieces, as they have come.
    Pieces(Pieces),
}

impl Source {
    pub(super) fn new(path: PathBuf) -> Source {
        Source::Own { path, file: None }
    }

    /// Its pieces. A stream has either a file or pieces.
    pub(super) fn pieces(&mut self) -> &mut Pieces {
        if let Source::Own { .. } = self {
            *self = Source::Pieces(Pieces::default());
        }
        match self {
            Source::Pieces(pieces) => pieces,
            Source::Own { .. } => unreachable!("it has just been replaced"),
        }
    }

    pub(super) fn as_pieces(&self) -> Option<&Pieces> {
        match self {
            Source::Pieces(pieces) => Some(pieces),
            Source::Own { .. } => None,
        }
    }

    /// Opens the file as soon as something is in it. Many jobs write nothing.
    fn open(&mut self) -> Option<&File> {
        let Source::Own { path, file } = self else {
            return None;
        };
        if file.is_none() && path.metadata().ok()?.len() > 0 {
            *file = File::open(path).ok();
        }
        file.as_ref()
    }

    /// The state of the file; `None` without one.
    pub(super) fn metadata(&mut self) -> Option<Metadata> {
        self.open()?.metadata().ok()
    }

    /// Reads what is at a position. What can't be read is shown as far as it could be.
    pub(super) fn read(&mut self, to: &mut [u8], position: u64) -> usize {
        if let Source::Pieces(pieces) = self {
            return pieces.read(to, position);
        }
        let file = self.open();
        file.map_or(0, |file| file.read_at(to, position).unwrap_or(0))
    }

    /// Forgets the pieces before a position.
    pub(super) fn forget(&mut self, position: u64) {
        if let Source::Pieces(pieces) = self {
            pieces.forget(position);
        }
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        if let Source::Own { path, .. } = self {
            let _ = std::fs::remove_file(path);
        }
    }

    /// The last line that holds more than blanks, at most `most` characters of it.
    pub(super) fn last_line(&mut self, most: usize) -> Option<String> {
        match self {
            Source::Own { path, .. } => last_line(path, most),
            Source::Pieces(pieces) => {
                let mut end = vec![0; MOST_READ];
                let from = pieces.end.saturating_sub(MOST_READ as u64);
                let got = pieces.read(&mut end, from);
                last_line_of(&end[..got], most)
            }
        }
    }
}

/// Pieces of a stream, in their order, without those that were forgotten.
#[derive(Default)]
pub(super) struct Pieces {
    pieces: VecDeque<Piece>,
    /// The length of the stream so far.
    end: u64,
}

struct Piece {
    /// Its position in the stream.
    at: u64,
    file: Rc<File>,
    /// Its position in the file.
    offset: u64,
    bytes: u64,
}

impl Piece {
    /// The position in the stream after it.
    fn end(&self) -> u64 {
        self.at + self.bytes
    }
}

impl Pieces {
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Adds a piece, which follows the last one.
    pub(super) fn add(&mut self, file: &Rc<File>, offset: u64, bytes: u64) {
        let at = self.end;
        self.end += bytes;
        if let Some(last) = self.pieces.back_mut()
            && Rc::ptr_eq(&last.file, file)
            && last.offset + last.bytes == offset
        {
            last.bytes += bytes;
            return;
        }
        self.pieces.push_back(Piece {
            at,
            file: Rc::clone(file),
            offset,
            bytes,
        });
    }

    /// Forgets what lies before a position.
    pub(super) fn forget(&mut self, position: u64) {
        while self
            .pieces
            .front()
            .is_some_and(|first| first.end() <= position)
        {
            self.pieces.pop_front();
        }
    }

    fn read(&self, to: &mut [u8], position: u64) -> usize {
        let first = self.pieces.partition_point(|piece| piece.end() <= position);
        let mut got = 0;
        for piece in self.pieces.range(first..) {
            if got == to.len() {
                break;
            }
            let skipped = position + got as u64 - piece.at;
            let room = (to.len() - got) as u64;
            let length = (piece.bytes - skipped).min(room) as usize;
            let part = &mut to[got..got + length];
            if piece
                .file
                .read_exact_at(part, piece.offset + skipped)
                .is_err()
            {
                break;
            }
            got += length;
        }
        got
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn file(text: &str) -> Rc<File> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        Rc::new(file)
    }

    #[test]
    fn what_follows_is_one_piece_and_what_was_shown_is_forgotten() {
        let (first, second) = (file("..abcdef"), file("gh"));
        let mut pieces = Pieces::default();
        pieces.add(&first, 2, 1);
        pieces.add(&first, 3, 2);
        assert_eq!(pieces.pieces.len(), 1);
        pieces.add(&first, 6, 2);
        pieces.add(&second, 0, 2);
        assert_eq!((pieces.pieces.len(), pieces.end()), (3, 7));
        let read = |pieces: &Pieces, from, most| {
            let mut to = vec![0; most];
            let got = pieces.read(&mut to, from);
            String::from_utf8(to[..got].to_vec()).unwrap()
        };
        assert_eq!(read(&pieces, 0, 9), "abcefgh");
        assert_eq!(read(&pieces, 1, 3), "bce");
        pieces.forget(4);
        assert_eq!(pieces.pieces.len(), 2);
        assert_eq!(read(&pieces, 4, 9), "fgh");
        assert_eq!(read(&pieces, 7, 9), "");
        pieces.forget(7);
        assert_eq!((pieces.pieces.len(), pieces.end()), (0, 7));
    }

    #[test]
    fn the_last_line_may_be_in_several_pieces() {
        let node = file("why\n no  t?\n");
        let mut source = Source::new("none".into());
        assert_eq!(source.last_line(9), None);
        source.pieces().add(&node, 0, 7);
        source.pieces().add(&node, 9, 3);
        assert_eq!(source.last_line(9).as_deref(), Some(" not?"));
    }
}
