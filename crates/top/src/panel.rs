//! What stands below the table: why the selected job waits, or the keys.

use crate::scene::Scene;
use crate::style::{bold, coloured, of_state};
use crate::view::Panel;
use cosched_report::{JobNow, JobState, clip, seconds, wrap};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};

/// A line for each key: its name, a tab, and what it does.
const KEYS: &str = include_str!("keys.txt");

/// Columns of the names of the keys.
const NAMES: usize = 13;
/// Screens of so many columns have the names on a line of their own.
const NARROW: usize = 60;

/// The lines of a panel.
type Lines = Vec<(String, Style)>;

/// Draws the panel that the user has chosen.
pub(crate) fn draw_panel(buffer: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let width = usize::from(area.width);
    let lines = match (scene.view.panel, scene.selected()) {
        (Panel::Help, _) => help(width),
        (Panel::Why, Some(job)) => why(scene, job, width),
        (Panel::None | Panel::Why, _) => Vec::new(),
    };
    for (y, (line, style)) in (area.y..area.bottom()).zip(lines) {
        buffer.set_stringn(area.x, y, line, width, style);
    }
}

fn help(width: usize) -> Lines {
    let mut lines = vec![(clip("KEYS", width), bold())];
    for line in KEYS.lines() {
        let (key, text) = line.split_once('\t').unwrap_or((line, ""));
        if width <= NARROW {
            lines.push((key.to_owned(), bold()));
            for line in wrap(text, width.saturating_sub(2).max(10)) {
                lines.push((format!("  {line}"), Style::new()));
            }
            continue;
        }
        let mut key = key;
        for line in wrap(text, width - NAMES - 2) {
            lines.push((format!("{key:NAMES$}  {line}"), Style::new()));
            key = "";
        }
    }
    lines
}

fn why(scene: &Scene<'_>, job: &JobNow, width: usize) -> Lines {
    let now_s = scene.status.elapsed_s;
    let has_colour = scene.view.has_colour;
    let mut lines = vec![(clip(&title(job), width), bold())];
    let state = state_text(job, now_s);
    push_wrapped(&mut lines, &state, width, of_state(job, has_colour));
    if let Some(reason) = &job.reason {
        let style = coloured(has_colour, Color::Yellow);
        push_wrapped(&mut lines, &reason.text, width, style);
    }
    if matches!(job.state, JobState::Waiting | JobState::Queued) {
        let told = format!("The CPUs are with: {}.", scene.status.holders_text());
        push_wrapped(&mut lines, &told, width, Style::new());
    }
    lines
}

fn push_wrapped(lines: &mut Lines, text: &str, width: usize, style: Style) {
    for line in wrap(text, width) {
        lines.push((line, style));
    }
}

fn title(job: &JobNow) -> String {
    match &job.command {
        Some(command) if *command != job.name => {
            format!("{} ({command})", job.name)
        }
        _ => job.name.clone(),
    }
}

/// What the job does now.
fn state_text(job: &JobNow, now_s: f64) -> String {
    match job.state {
        JobState::Running => match &job.cpus {
            Some(cpus) => format!("It runs on CPU {cpus}."),
            None => "It has a place, and no CPU at this moment.".to_owned(),
        },
        JobState::Sleeping => {
            "It sleeps of its own accord, or has stopped itself, and needs no CPU.".to_owned()
        }
        JobState::Ending => {
            "It was asked to end, and is killed if it does not (--grace).".to_owned()
        }
        JobState::Ended => {
            let exit = job.exit_text.as_deref().unwrap_or_default();
            format!("It has ended: {exit}.")
        }
        JobState::Queued => {
            "It has not begun: it is let in when there is room for one more (--jobs).".to_owned()
        }
        JobState::Waiting => waiting_text(job, now_s),
    }
}

fn waiting_text(job: &JobNow, now_s: f64) -> String {
    let mut text = "It has waited".to_owned();
    if let Some(waited_s) = job.waited_s(now_s) {
        text.push_str(&format!(" for {}", seconds(waited_s)));
    }
    text.push('.');
    if let Some(cpus) = &job.cpus {
        text.push_str(&format!(" It fills in on CPU {cpus}."));
    }
    text.push_str(&job.turn_text(now_s).unwrap_or_default());
    text
}
