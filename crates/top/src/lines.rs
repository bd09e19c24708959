//! A screen of plain lines, for `cosched attach`.

use crate::keys::Key;
use crate::style::{bold, reversed};
use crate::view::Effect;
use ratatui_core::buffer::Buffer;
use ratatui_core::style::Style;

/// What the keys do.
const KEYS: &str = "q leaves";

/// What a key means on a screen of lines.
pub fn pressed(key: Key) -> Effect {
    match key {
        Key::Char('q') | Key::Ctrl('c') => Effect::Quit,
        Key::Ctrl('z') => Effect::Suspend,
        Key::Ctrl('l') => Effect::Redraw,
        _ => Effect::None,
    }
}

/// Number of lines on a screen of this height, beside the message and the keys.
pub fn lines_on(height: u16) -> usize {
    height.saturating_sub(2).into()
}

/// Draws a message, the lines of a text, and the keys onto all of a buffer.
pub fn draw_lines(buffer: &mut Buffer, message: &str, text: &str) {
    let area = buffer.area;
    let width = usize::from(area.width);
    buffer.set_stringn(area.x, area.y, message, width, bold());
    let shown = text.lines().take(lines_on(area.height));
    for (y, line) in (area.y + 1..).zip(shown) {
        buffer.set_stringn(area.x, y, line, width, Style::new());
    }
    let footer = area.bottom().saturating_sub(1);
    buffer.set_stringn(area.x, footer, format!("{KEYS:width$}"), width, reversed());
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;

    #[test]
    fn the_screen_has_a_message_the_lines_and_the_keys() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 20, 4));
        draw_lines(&mut buffer, "attached", "one\ntwo\nthree");
        let row = |y: u16| -> String { (0..20).map(|x| buffer[(x, y)].symbol()).collect() };
        let rows = [0, 1, 2, 3].map(row);
        let shown = rows.each_ref().map(|row| row.trim_end());
        assert_eq!(shown, ["attached", "one", "two", "q leaves"]);
    }
}
