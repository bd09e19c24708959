//! The difference of two screens, as escape sequences for a terminal.

use ratatui_core::buffer::Buffer;
use ratatui_core::style::{Color, Modifier};
use std::fmt::Write as _;

/// Switches to the alternate screen, hides the cursor, and turns line wrapping off.
pub const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// Undoes [`ENTER`].
pub const LEAVE: &str = "\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";
/// Clears the screen.
pub const CLEAR: &str = "\x1b[0m\x1b[2J";

/// The bytes that turn a terminal's screen from `before` into `after`, which has the same size.
pub fn paint(before: &Buffer, after: &Buffer) -> String {
    let mut text = String::new();
    let mut style = None;
    let mut next = None;
    for (x, y, cell) in before.diff(after) {
        if next != Some((x, y)) {
            let _ = write!(text, "\x1b[{};{}H", y + 1, x + 1);
        }
        let now = (cell.fg, cell.modifier);
        if style != Some(now) {
            text.push_str("\x1b[0");
            for (modifier, code) in [
                (Modifier::BOLD, ";1"),
                (Modifier::DIM, ";2"),
                (Modifier::REVERSED, ";7"),
            ] {
                if cell.modifier.contains(modifier) {
                    text.push_str(code);
                }
            }
            text.push_str(colour(cell.fg));
            text.push('m');
            style = Some(now);
        }
        text.push_str(cell.symbol());
        // A wide character moves the cursor by two; then it is placed anew.
        next = if cell.symbol().is_ascii() {
            Some((x + 1, y))
        } else {
            None
        };
    }
    text
}

/// The few colours that are used.
fn colour(colour: Color) -> &'static str {
    match colour {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Blue => ";34",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui_core::layout::Rect;
    use ratatui_core::style::Style;

    #[test]
    fn only_what_differs_is_sent() {
        let area = Rect::new(0, 0, 10, 2);
        let (before, mut after) = (Buffer::empty(area), Buffer::empty(area));
        assert_eq!(paint(&before, &after), "");
        after.set_string(2, 1, "ab", Style::new().fg(Color::Red));
        after.set_string(8, 0, "c", Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(
            paint(&before, &after),
            "\x1b[1;9H\x1b[0;1mc\x1b[2;3H\x1b[0;31mab"
        );
        assert_eq!(paint(&after, &after.clone()), "");
    }
}
