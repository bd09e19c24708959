//! The styles of the screen. Without colours the same things are told by bold and reversed letters alone.

use cosched_report::{JobNow, JobState};
use ratatui_core::style::{Color, Modifier, Style};

/// What is said with it: titles, and what the user has chosen.
pub(crate) fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(crate) fn reversed() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

pub(crate) fn coloured(has_colour: bool, colour: Color) -> Style {
    if has_colour {
        Style::new().fg(colour)
    } else {
        Style::new()
    }
}

/// The style of a job's state.
pub(crate) fn of_state(job: &JobNow, has_colour: bool) -> Style {
    let colour = match job.state {
        JobState::Running => Color::Green,
        JobState::Waiting => Color::Yellow,
        JobState::Sleeping => Color::Cyan,
        JobState::Ending => Color::Magenta,
        JobState::Ended if job.exit != Some(0) => Color::Red,
        JobState::Queued | JobState::Ended => return Style::new(),
    };
    coloured(has_colour, colour)
}
