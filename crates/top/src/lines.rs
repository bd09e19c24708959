//! A screen of plain lines, for `cosched attach`.

use crate::view::KeyEffect;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::Stylize as _;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Widget as _};
use termina::event::{KeyCode, KeyEvent, Modifiers};

/// What the keys do.
const KEYS: &str = "q leaves";

/// What a key means on a screen of lines.
pub fn pressed(key: KeyEvent) -> KeyEffect {
    match (key.code, key.modifiers) {
        (KeyCode::Char('c'), Modifiers::CONTROL) => KeyEffect::Quit,
        (KeyCode::Char('z'), Modifiers::CONTROL) => KeyEffect::Suspend,
        (KeyCode::Char('l'), Modifiers::CONTROL) => KeyEffect::Redraw,
        (KeyCode::Char('q'), _) => KeyEffect::Quit,
        _ => KeyEffect::None,
    }
}

/// Number of lines on a screen of this height, beside the message and the keys.
pub fn lines_on(height: u16) -> usize {
    height.saturating_sub(2).into()
}

/// Draws a message, the lines of a text, and the keys onto all of a buffer.
pub fn draw_lines(buffer: &mut Buffer, message: &str, text: &str) {
    let parts = [
        Constraint::Length(1),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [above, between, below] = Layout::vertical(parts).areas(buffer.area);
    Line::from(message).bold().render(above, buffer);
    Paragraph::new(text).render(between, buffer);
    Line::from(KEYS).reversed().render(below, buffer);
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;

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
