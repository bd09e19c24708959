//! What stands below the table: why the selected job waits, or the keys.

use crate::scene::Scene;
use crate::style::{bold, coloured, of_state};
use crate::view::Panel;
use cosched_report::{CpuNow, JobNow, JobState, Status, clip, seconds, visible, wrap};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};

/// The keys.
const HELP: &[(&str, &str)] = &[
    (
        "up down, j k",
        "choose a job; also page up, page down, home, end",
    ),
    (
        "w, enter",
        "why does the job wait, who has the CPUs instead, when is its turn at the latest",
    ),
    (
        "s",
        "the next order: number, state, name, time, wait, slowdown, done, memory",
    ),
    (
        "/",
        "only jobs with this in their name, or in this state; escape shows all",
    ),
    ("space", "keep what is shown as it is, and go on"),
    (
        "e, then y",
        "end the chosen job; it counts as failed, and --resume runs it again",
    ),
    ("ctrl-l", "draw everything anew"),
    ("?, h", "these keys"),
    ("q, ctrl-c", "leave; the run goes on"),
    (
        "≥ in SLOW",
        "at least so much slower: only its waiting is known, since nothing can be counted here",
    ),
];

/// The lines of a panel.
type Lines = Vec<(String, Style)>;

/// Draws the panel that the user has chosen.
pub(crate) fn draw_panel(buffer: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let width = usize::from(area.width);
    let lines = match scene.view.panel {
        Panel::None => Vec::new(),
        Panel::Help => help(width),
        Panel::Why => scene
            .selected()
            .map_or_else(Vec::new, |job| why(scene, job, width)),
    };
    for (y, (line, style)) in (area.y..area.bottom()).zip(lines) {
        buffer.set_stringn(area.x, y, line, width, style);
    }
}

fn help(width: usize) -> Lines {
    let mut lines = vec![(clip("KEYS", width), bold())];
    let wide = HELP
        .iter()
        .map(|(key, _)| key.chars().count())
        .max()
        .unwrap_or(0);
    for (key, text) in HELP {
        let indent = if width > 60 { wide + 2 } else { 2 };
        let mut rest = wrap(text, width.saturating_sub(indent).max(10)).into_iter();
        if width > 60 {
            lines.push((
                format!("{key:wide$}  {}", rest.next().unwrap_or_default()),
                Style::new(),
            ));
        } else {
            lines.push(((*key).to_owned(), bold()));
        }
        lines.extend(rest.map(|line| (format!("{}{line}", " ".repeat(indent)), Style::new())));
    }
    lines
}

fn why(scene: &Scene<'_>, job: &JobNow, width: usize) -> Lines {
    let now_s = scene.status.elapsed_s;
    let has_colour = scene.view.has_colour;
    let mut lines = vec![(clip(&title(job), width), bold())];
    push_wrapped(
        &mut lines,
        &state_text(job, now_s),
        width,
        of_state(job, has_colour),
    );
    for (ix, (at, text)) in scene.reasons.of(job.job).enumerate() {
        let told = format!("{} ago: {text}", seconds((now_s - at).max(0.0)));
        let style = if ix == 0 && job.state == JobState::Waiting {
            coloured(has_colour, Color::Yellow)
        } else {
            Style::new()
        };
        push_wrapped(&mut lines, &told, width, style);
    }
    if matches!(job.state, JobState::Waiting | JobState::Queued) {
        let owners: Vec<String> = (scene.status.cpus.iter())
            .map(|cpu| owner(scene.status, cpu))
            .collect();
        let told = format!("The CPUs are with: {}.", owners.join(", "));
        push_wrapped(&mut lines, &told, width, Style::new());
    }
    lines
}

fn push_wrapped(lines: &mut Lines, text: &str, width: usize, style: Style) {
    lines.extend(wrap(text, width).into_iter().map(|line| (line, style)));
}

fn title(job: &JobNow) -> String {
    match &job.command {
        Some(command) if *command != job.name => {
            format!("{} ({})", visible(&job.name), visible(command))
        }
        _ => visible(&job.name),
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
            let exit = job.exit_text.as_deref().map(visible).unwrap_or_default();
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
    if let Some(since) = job.figures.get("waiting_since_s") {
        text.push_str(&format!(" for {}", seconds(now_s - since)));
    }
    text.push('.');
    if let Some(cpus) = &job.cpus {
        text.push_str(&format!(" It fills in on CPU {cpus}."));
    }
    match job.figures.get("latest_s").map(|latest| latest - now_s) {
        Some(left) if left > 0.0 => text.push_str(&format!(
            " In {} at the latest it comes before all others.",
            seconds(left)
        )),
        Some(_) => text.push_str(" It comes before all others now."),
        None => {}
    }
    text
}

/// A CPU's number and who has it.
fn owner(status: &Status, cpu: &CpuNow) -> String {
    let number = cpu.cpu;
    match cpu.job {
        Some(id) => match status.job(id) {
            Some(job) => format!("{number} {}", visible(&job.name)),
            None => format!("{number} job {id}"),
        },
        None if cpu.shared => format!("{number} {} share it", cpu.jobs),
        None => format!("{number} nobody"),
    }
}
