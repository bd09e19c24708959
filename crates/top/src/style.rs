//! The styles of the screen. Without colours the same things are told by bold and reversed letters alone.

use cosched_report::{JobNow, JobState};
use ratatui::style::{Color, Style};

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
        JobState::Ended if job.end.failed() => Color::Red,
        JobState::Queued | JobState::Ended => return Style::new(),
    };
    coloured(has_colour, colour)
}
