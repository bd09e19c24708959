//! Keys, from the bytes that a terminal sends.
//!
//! The terminal library reads keys too, but its reader cannot wait for signals at the same time, and never returns after
//! the terminal has gone. So the caller reads the bytes, and another library parses them.

pub use termina::event::KeyEvent;
use termina::{Event, Parser};

/// A parser of keys, which may hold the first bytes of a key.
#[derive(Debug, Default)]
pub struct Keys {
    parser: Parser,
    is_waiting: bool,
}

impl Keys {
    /// Parses bytes, and returns the keys that are complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<KeyEvent> {
        self.parser.parse(bytes, true);
        self.is_waiting = true;
        self.complete()
    }

    /// Whether bytes have come since the last call of [`Keys::settle`].
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Parses the held bytes, since nothing more has come for a while: a lone escape is the escape key.
    pub fn settle(&mut self) -> Vec<KeyEvent> {
        self.parser.parse(&[], false);
        let keys = self.complete();
        // The parser keeps other incomplete bytes, and would take the next key for their end.
        *self = Keys::default();
        keys
    }

    fn complete(&mut self) -> Vec<KeyEvent> {
        let mut keys = Vec::new();
        while let Some(event) = self.parser.pop() {
            if let Event::Key(key) = event {
                keys.push(key);
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use termina::event::{KeyCode, Modifiers};

    fn codes(keys: Vec<KeyEvent>) -> Vec<KeyCode> {
        keys.into_iter().map(|key| key.code).collect()
    }

    #[test]
    fn keys_are_read() {
        let all = |bytes: &[u8]| codes(Keys::default().feed(bytes));
        assert_eq!(
            all(b"jk\r\x7f"),
            [
                KeyCode::Char('j'),
                KeyCode::Char('k'),
                KeyCode::Enter,
                KeyCode::Backspace
            ]
        );
        assert_eq!(
            all(b"\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~"),
            [
                KeyCode::Up,
                KeyCode::Down,
                KeyCode::PageUp,
                KeyCode::PageDown,
                KeyCode::Home,
                KeyCode::End
            ]
        );
        let ctrl = Keys::default().feed(b"\x03\x1a");
        assert!(ctrl.iter().all(|key| key.modifiers == Modifiers::CONTROL));
        assert_eq!(codes(ctrl), [KeyCode::Char('c'), KeyCode::Char('z')]);
        assert_eq!(
            all("ü€".as_bytes()),
            [KeyCode::Char('ü'), KeyCode::Char('€')]
        );
    }

    #[test]
    fn keys_come_in_pieces_and_escape_is_what_nothing_follows() {
        let mut keys = Keys::default();
        assert!(keys.feed(b"\x1b").is_empty() && keys.is_waiting());
        assert_eq!(codes(keys.feed(b"[A")), [KeyCode::Up]);
        assert!(keys.feed(b"\x1b").is_empty());
        assert_eq!(codes(keys.settle()), [KeyCode::Escape]);
        assert!(!keys.is_waiting());
        assert!(keys.settle().is_empty());
        assert!(keys.feed(&"ü".as_bytes()[..1]).is_empty());
        assert_eq!(codes(keys.feed(&"ü".as_bytes()[1..])), [KeyCode::Char('ü')]);
    }

    proptest! {
        #[test]
        fn whatever_is_sent_is_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut keys = Keys::default();
            for byte in &bytes {
                keys.feed(&[*byte]);
            }
            keys.settle();
            prop_assert_eq!(codes(keys.feed(b"q")), [KeyCode::Char('q')]);
        }
    }
}
