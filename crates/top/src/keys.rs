//! Keys, from the bytes that a terminal sends.

/// A key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Up.
    Up,
    /// Down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// Home.
    Home,
    /// End.
    End,
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Delete the last character.
    Backspace,
    /// Ctrl with this letter.
    Ctrl(char),
}

/// A parser of keys, with the bytes of a key that is not complete yet.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    pending: Vec<u8>,
}

const ESCAPE: u8 = 0x1b;
/// Maximum length of a sequence; terminals send none that is longer.
const MOST_PENDING: usize = 32;

/// The start of the pending bytes.
enum Read {
    Key(Key, usize),
    /// An unknown sequence of so many bytes.
    Other(usize),
    /// An incomplete sequence.
    Part,
}

impl Keys {
    /// Parses bytes, and returns the keys that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        self.pending.extend_from_slice(bytes);
        let mut keys = Vec::new();
        while !self.pending.is_empty() {
            let used = match read(&self.pending) {
                Read::Key(key, used) => {
                    keys.push(key);
                    used
                }
                Read::Other(used) => used,
                Read::Part if self.pending.len() < MOST_PENDING => break,
                Read::Part => 1,
            };
            self.pending.drain(..used);
        }
        keys
    }

    /// Whether there is an incomplete sequence.
    pub fn is_waiting(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Ends the incomplete sequence, since nothing more has come for a while: a lone escape is the escape key.
    pub fn settle(&mut self) -> Option<Key> {
        let was_escape = self.pending.first() == Some(&ESCAPE);
        self.pending.clear();
        was_escape.then_some(Key::Escape)
    }
}

fn read(bytes: &[u8]) -> Read {
    match bytes {
        [] | [ESCAPE] => Read::Part,
        [ESCAPE, b'[', rest @ ..] => sequence(rest, 2),
        [ESCAPE, b'O', rest @ ..] => match rest.first() {
            None => Read::Part,
            Some(&end) => named(end).map_or(Read::Other(3), |key| Read::Key(key, 3)),
        },
        // Alt and a key, or escape and then a key.
        [ESCAPE, ..] => Read::Key(Key::Escape, 1),
        [b'\r' | b'\n', ..] => Read::Key(Key::Enter, 1),
        [8 | 127, ..] => Read::Key(Key::Backspace, 1),
        [control @ 1..=26, ..] => Read::Key(Key::Ctrl((b'a' + control - 1) as char), 1),
        [0..=31, ..] => Read::Other(1),
        _ => character(bytes),
    }
}

/// A sequence after `ESC [`, whose beginning is `before` bytes long.
fn sequence(rest: &[u8], before: usize) -> Read {
    let Some(end) = rest.iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return Read::Part;
    };
    let used = before + end + 1;
    let key = match (&rest[..end], rest[end]) {
        (number, b'~') => match number.split(|&byte| byte == b';').next() {
            Some(b"1" | b"7") => Some(Key::Home),
            Some(b"4" | b"8") => Some(Key::End),
            Some(b"5") => Some(Key::PageUp),
            Some(b"6") => Some(Key::PageDown),
            _ => None,
        },
        (_, end) => named(end),
    };
    key.map_or(Read::Other(used), |key| Read::Key(key, used))
}

fn named(end: u8) -> Option<Key> {
    match end {
        b'A' => Some(Key::Up),
        b'B' => Some(Key::Down),
        b'H' => Some(Key::Home),
        b'F' => Some(Key::End),
        b'M' => Some(Key::Enter),
        _ => None,
    }
}

fn character(bytes: &[u8]) -> Read {
    let length = match bytes[0] {
        0..=0x7f => 1,
        0xc0..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf7 => 4,
        _ => return Read::Other(1),
    };
    let Some(whole) = bytes.get(..length) else {
        return Read::Part;
    };
    let found = std::str::from_utf8(whole)
        .ok()
        .and_then(|text| text.chars().next());
    found.map_or(Read::Other(1), |c| Read::Key(Key::Char(c), length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8]) -> Vec<Key> {
        Keys::default().feed(bytes)
    }

    #[test]
    fn keys_are_read() {
        assert_eq!(
            all(b"jk\r\x7f\x03\x1a"),
            [
                Key::Char('j'),
                Key::Char('k'),
                Key::Enter,
                Key::Backspace,
                Key::Ctrl('c'),
                Key::Ctrl('z')
            ]
        );
        assert_eq!(
            all(b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~"),
            [
                Key::Up,
                Key::Down,
                Key::PageUp,
                Key::PageDown,
                Key::Home,
                Key::End
            ]
        );
        assert_eq!(all("ü€".as_bytes()), [Key::Char('ü'), Key::Char('€')]);
        assert_eq!(
            all(b"\x1b[1;5P\x1b[200~q"),
            [Key::Char('q')],
            "what is not known is left out"
        );
    }

    #[test]
    fn keys_come_in_pieces_and_escape_is_what_nothing_follows() {
        let mut keys = Keys::default();
        assert!(keys.feed(b"\x1b").is_empty() && keys.is_waiting());
        assert_eq!(keys.feed(b"[A"), [Key::Up]);
        assert!(keys.feed(b"\x1b").is_empty());
        assert_eq!(keys.settle(), Some(Key::Escape));
        assert_eq!(keys.settle(), None);
        assert!(keys.feed(&"ü".as_bytes()[..1]).is_empty());
        assert_eq!(keys.feed(&"ü".as_bytes()[1..]), [Key::Char('ü')]);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut keys = Keys::default();
            for byte in &bytes {
                keys.feed(&[*byte]);
                prop_assert!(keys.pending.len() <= MOST_PENDING);
            }
            keys.settle();
            prop_assert_eq!(keys.feed(b"q"), [Key::Char('q')]);
        }
    }
}
