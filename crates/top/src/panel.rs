//! What stands below the table: why the selected job waits, or the keys.

use crate::scene::Scene;
use crate::style::{bold, coloured, of_state};
use crate::view::Panel;
use cosched_report::{JobNow, JobState, clip, seconds, visible, wrap};
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
    let status = scene.status;
    let now_s = status.elapsed_s;
    let figure = |name| job.figures.get(name).copied();
    let mut lines: Lines = Vec::new();
    let title = match &job.command {
        Some(command) if *command != job.name => {
            format!("{} ({})", visible(&job.name), visible(command))
        }
        _ => visible(&job.name),
    };
    lines.push((clip(&title, width), bold()));
    let style = of_state(job, scene.view.has_colour);
    let mut say = |text: &str, style: Style| {
        lines.extend(wrap(text, width).into_iter().map(|line| (line, style)))
    };
    match job.state {
        JobState::Running => match &job.cpus {
            Some(cpus) => say(&format!("It runs on CPU {cpus}."), style),
            None => say("It has a place, and no CPU at this moment.", style),
        },
        JobState::Sleeping => say(
            "It sleeps of its own accord, or has stopped itself, and needs no CPU.",
            style,
        ),
        JobState::Ending => say(
            "It was asked to end, and is killed if it does not (--grace).",
            style,
        ),
        JobState::Ended => {
            let exit = job.exit_text.as_deref().map(visible).unwrap_or_default();
            say(&format!("It has ended: {exit}."), style);
        }
        JobState::Queued => say(
            "It has not begun: it is let in when there is room for one more (--jobs).",
            style,
        ),
        JobState::Waiting => {
            let since = figure("waiting_since_s").map_or(String::new(), |since| {
                format!(" for {}", seconds(now_s - since))
            });
            let latest = figure("latest_s").map_or(String::new(), |latest| match latest - now_s {
                left if left > 0.0 => format!(
                    " In {} at the latest it comes before all others.",
                    seconds(left)
                ),
                _ => " It comes before all others now.".to_owned(),
            });
            let fills = job
                .cpus
                .as_ref()
                .map_or(String::new(), |cpus| format!(" It fills in on CPU {cpus}."));
            say(&format!("It has waited{since}.{fills}{latest}"), style);
        }
    }
    let reasons: Vec<(f64, &str)> = scene.reasons.of(job.job).collect();
    for (ix, (at, text)) in reasons.iter().enumerate() {
        let told = format!("{} ago: {text}", seconds((now_s - at).max(0.0)));
        let style = if ix == 0 && job.state == JobState::Waiting {
            coloured(scene.view.has_colour, Color::Yellow)
        } else {
            Style::new()
        };
        say(&told, style);
    }
    if matches!(job.state, JobState::Waiting | JobState::Queued) {
        let mut owners: Vec<String> = Vec::new();
        for cpu in &status.cpus {
            let name = cpu.job.map(|job| {
                status
                    .job(job)
                    .map_or_else(|| format!("job {job}"), |job| visible(&job.name))
            });
            match name {
                Some(name) => owners.push(format!("{} {name}", cpu.cpu)),
                None if cpu.shared => owners.push(format!("{} {} share it", cpu.cpu, cpu.jobs)),
                None => owners.push(format!("{} nobody", cpu.cpu)),
            }
        }
        say(
            &format!("The CPUs are with: {}.", owners.join(", ")),
            Style::new(),
        );
    }
    lines
}
