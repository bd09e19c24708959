//! How far the text around a replacement string reaches that `-N` repeats for each value, as GNU parallel does.

use super::{Frame, Lexer, Piece, Place, Quoting};
use std::ops::Range;

/// What the reader knows of a byte of the line.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    /// Quotes and substitutions around it; their own signs stand outside of them.
    depth: usize,
    /// Text that is repeated ends here.
    breaks: bool,
}

fn is_blank(byte: u8) -> bool {
    b" \t\n".contains(&byte)
}

impl Lexer<'_> {
    /// Notes what the bytes of a step are, which began at `from` inside of `frame`, `outer` deep.
    pub(super) fn mark(&mut self, from: usize, outer: usize, frame: Frame) {
        let line = self.line;
        let depth = outer.min(self.frames.len());
        let (first, rest) = (line[from], &line[from + 1..]);
        let breaks = match (frame, first) {
            (Frame::Double, byte) => is_blank(byte),
            (_, b'&') => rest.first() != Some(&b'>'),
            // Several here-documents would need as many contents.
            (_, b'<') => rest.starts_with(b"<") && !rest.starts_with(b"<<"),
            (Frame::Substitution(_), b')') => false,
            (_, byte) => is_blank(byte) || b";|()".contains(&byte),
        };
        self.marks[from..self.at].fill(Mark { depth, breaks });
        // What stands in single quotes or in here-documents is taken in one step.
        let content = match (frame, first) {
            (Frame::Double, _) => return,
            (_, b'\'') => (from + 1..self.at.saturating_sub(1), depth + 1),
            (_, b'\n') => (from + 1..self.at, depth),
            _ => return,
        };
        for at in content.0 {
            self.marks[at] = Mark {
                depth: content.1,
                breaks: is_blank(line[at]),
            };
        }
    }

    /// Tells each place its unit, when the whole line has been read.
    pub(super) fn find_units(&mut self) {
        let mut pieces = std::mem::take(&mut self.pieces);
        for piece in &mut pieces {
            if let Piece::Place(place) = piece {
                place.unit = self.unit(place);
            }
        }
        self.pieces = pieces;
    }

    /// The text that is repeated for each value of this place: up to blanks, and to signs that divide commands. `None`
    /// if a quote begins or ends in it that also holds other text.
    fn unit(&self, place: &Place) -> Option<Range<usize>> {
        let depth = self.marks[place.at.start].depth;
        let unit = self.reach(place.at.clone(), depth);
        if matches!(place.quoting, Quoting::None | Quoting::Here) {
            return Some(unit);
        }
        let is_quote = |at: Option<usize>| {
            at.and_then(|at| self.marks.get(at))
                .is_some_and(|mark| mark.depth < depth)
        };
        match (
            is_quote(unit.start.checked_sub(1)),
            is_quote(Some(unit.end)),
        ) {
            (true, true) => Some(self.reach(unit.start - 1..unit.end + 1, depth - 1)),
            (false, false) => Some(unit),
            _ => None,
        }
    }

    fn reach(&self, from: Range<usize>, depth: usize) -> Range<usize> {
        let belongs = |mark: &&Mark| mark.depth > depth || (mark.depth == depth && !mark.breaks);
        let before = self.marks[..from.start]
            .iter()
            .rev()
            .take_while(belongs)
            .count();
        let behind = self.marks[from.end..].iter().take_while(belongs).count();
        from.start - before..from.end + behind
    }
}
