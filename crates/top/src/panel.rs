//! What stands below the table: why the selected job waits, or the keys.

use crate::scene::TopScene;
use crate::style::{coloured, of_state};
use crate::view::Panel;
use cosched_report::{JobNow, JobState, seconds};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, Paragraph, Widget as _, Wrap};

/// A line for each key: its name, a tab, and what it does.
const KEYS: &str = include_str!("keys.txt");

/// Columns of the names of the keys.
const NAMES: usize = 13;

/// Draws the panel that the user has chosen.
pub(crate) fn draw_panel(buffer: &mut Buffer, area: Rect, scene: &TopScene<'_>) {
    let (title, lines) = match (scene.view.panel, scene.selected()) {
        (Panel::Help, _) => ("KEYS".to_owned(), help()),
        (Panel::Why, Some(job)) => (title(job), why(scene, job)),
        (Panel::None | Panel::Why, _) => return,
    };
    let block = Block::new().borders(Borders::TOP).title(title.bold());
    Paragraph::new(lines)
        .block(block)
        .wrap(Wrap { trim: false })
        .render(area, buffer);
}

fn help() -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for line in KEYS.lines() {
        let (key, text) = line.split_once('\t').unwrap_or((line, ""));
        let key = format!("{key:NAMES$}  ").bold();
        lines.push(Line::from_iter([key, text.into()]));
    }
    lines
}

fn why(scene: &TopScene<'_>, job: &JobNow) -> Vec<Line<'static>> {
    let has_colour = scene.view.has_colour;
    let state = state_text(job, scene.status.elapsed_s);
    let mut lines = vec![Line::styled(state, of_state(job, has_colour))];
    if let Some(reason) = &job.reason {
        let style = coloured(has_colour, Color::Yellow);
        lines.push(Line::styled(reason.text.clone(), style));
    }
    if matches!(job.state, JobState::Waiting | JobState::Queued) {
        let holders = scene.status.holders_text();
        lines.push(format!("The CPUs are with: {holders}.").into());
    }
    lines
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
            None => "It may run, and has no CPU at this moment.".to_owned(),
        },
        JobState::Sleeping => "It sleeps, or has stopped itself, and needs no CPU.".to_owned(),
        JobState::Ending => {
            "It has received SIGTERM, and gets SIGKILL if it does not end (--grace).".to_owned()
        }
        JobState::Ended => {
            let end = job.end.text();
            format!("It has ended: {end}.")
        }
        JobState::Queued => {
            "It has not started. It starts when there is room for one more job (--jobs).".to_owned()
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
