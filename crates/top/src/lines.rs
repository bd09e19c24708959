//! A screen of plain lines that can be scrolled, for `cosched attach`.

use crate::keys::Key;
use crate::style::{bold, reversed};
use crate::view::Effect;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;

/// What the keys do.
const KEYS: &str = "arrows scroll, space pauses, q leaves";

/// The part of the lines that the user has chosen to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// Lines above the first one that is shown.
    pub offset: usize,
    /// Whether the screen is paused.
    pub is_paused: bool,
}

impl Lines {
    /// Handles a key, where the screen has room for `page` of `count` lines.
    pub fn press(&mut self, key: Key, count: usize, page: usize) -> Effect {
        match key {
            Key::Char('q') | Key::Ctrl('c') => return Effect::Quit,
            Key::Ctrl('z') => return Effect::Suspend,
            Key::Ctrl('l') => return Effect::Redraw,
            Key::Char(' ') => self.is_paused = !self.is_paused,
            Key::Char('k') | Key::Up => self.offset = self.offset.saturating_sub(1),
            Key::Char('j') | Key::Down => self.offset += 1,
            Key::PageUp | Key::Ctrl('b') => self.offset = self.offset.saturating_sub(page),
            Key::PageDown | Key::Ctrl('f') => self.offset += page,
            Key::Home => self.offset = 0,
            Key::End => self.offset = count,
            _ => {}
        }
        self.settle(count, page);
        Effect::None
    }

    /// Keeps the page within the lines.
    pub fn settle(&mut self, count: usize, page: usize) {
        self.offset = self.offset.min(count.saturating_sub(page));
    }

    /// Number of lines on a screen of this height, beside the message and the keys.
    pub fn page(height: u16) -> usize {
        usize::from(height.saturating_sub(2))
    }

    /// Draws a message, the lines, and the keys onto all of a buffer.
    pub fn draw(&self, buffer: &mut Buffer, message: &str, lines: &[String]) {
        let area = buffer.area;
        let width = usize::from(area.width);
        let paused = if self.is_paused {
            "PAUSED (space goes on) "
        } else {
            ""
        };
        let first = format!("{paused}{message}");
        buffer.set_stringn(area.x, area.y, first, width, bold());
        let shown = lines
            .iter()
            .skip(self.offset)
            .take(Lines::page(area.height));
        for (y, line) in (area.y + 1..).zip(shown) {
            buffer.set_stringn(area.x, y, line, width, Style::new());
        }
        let footer = area.bottom().saturating_sub(1);
        buffer.set_stringn(area.x, footer, format!("{KEYS:width$}"), width, reversed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;

    #[test]
    fn a_page_stays_within_the_lines() {
        let mut view = Lines::default();
        for (key, offset) in [
            (Key::Up, 0),
            (Key::Down, 1),
            (Key::PageDown, 6),
            (Key::End, 7),
            (Key::Char('k'), 6),
            (Key::Home, 0),
        ] {
            assert_eq!(view.press(key, 12, 5), Effect::None);
            assert_eq!(view.offset, offset, "{key:?}");
        }
        assert_eq!(view.press(Key::Char('q'), 12, 5), Effect::Quit);
    }

    #[test]
    fn the_screen_has_a_message_the_lines_and_the_keys() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 4));
        let lines = ["one", "two", "three"].map(str::to_owned);
        let view = Lines {
            offset: 1,
            is_paused: false,
        };
        view.draw(&mut buffer, "attached", &lines);
        let row = |y: u16| -> String { (0..20).map(|x| buffer[(x, y)].symbol()).collect() };
        let rows = [0, 1, 2, 3].map(row);
        let shown = rows.each_ref().map(|row| row.trim_end());
        assert_eq!(shown, ["attached", "two", "three", "arrows scroll, space"]);
    }
}
