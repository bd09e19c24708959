//! One of several runs, for the user to choose.

use crate::keys::Key;
use crate::style::{bold, reversed};
use cosched_report::{RunLine, clip, clock, visible};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// What the user has chosen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The place of the run in the list.
    pub place: usize,
}

impl Choice {
    /// Takes in a key; `Some` with whether it was chosen or the user leaves.
    pub fn press(&mut self, key: Key, runs: usize) -> Option<bool> {
        match key {
            Key::Char('q') | Key::Escape | Key::Ctrl('c') => return Some(false),
            Key::Enter if runs > 0 => return Some(true),
            Key::Char('k') | Key::Up => self.place = self.place.saturating_sub(1),
            Key::Char('j') | Key::Down => self.place += 1,
            _ => {}
        }
        self.place = self.place.min(runs.saturating_sub(1));
        None
    }
}

/// Draws the runs.
pub fn draw_choice(buffer: &mut Buffer, runs: &[RunLine], choice: Choice) {
    let area = buffer.area;
    let width = usize::from(area.width);
    buffer.set_stringn(
        area.x,
        area.y,
        clip("Several runs go on. Which one?", width),
        width,
        bold(),
    );
    let room = usize::from(area.height.saturating_sub(3)).max(1);
    let offset = (choice.place + 1).saturating_sub(room);
    for (ix, run) in runs.iter().enumerate().skip(offset).take(room) {
        let y = area.y + 2 + (ix - offset) as u16;
        if y >= area.bottom() {
            break;
        }
        let line = match &run.status {
            Ok((status, _)) => {
                let totals = &status.totals;
                let left = totals.left_s.map_or("--:--".to_owned(), clock);
                let folder = status
                    .run
                    .folder
                    .as_deref()
                    .map(visible)
                    .unwrap_or_default();
                format!(
                    "{}  {}, {}/{} done, {left} left, {} elapsed  {folder}",
                    run.pid,
                    status.run.policy,
                    totals.done,
                    totals.jobs,
                    clock(status.elapsed_s)
                )
            }
            Err(why) => format!("{}  {}", run.pid, visible(why)),
        };
        let chosen = ix == choice.place;
        let style = if chosen { reversed() } else { Style::new() };
        let mark = if chosen { '>' } else { ' ' };
        buffer.set_style(
            Rect {
                y,
                height: 1,
                ..area
            },
            style,
        );
        buffer.set_stringn(
            area.x,
            y,
            clip(&format!("{mark} {line}"), width),
            width,
            style,
        );
    }
    let keys = clip("up down choose  enter shows it  q quit", width);
    buffer.set_stringn(area.x, area.bottom().saturating_sub(1), keys, width, bold());
}
