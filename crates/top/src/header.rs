//! The part above the table: the run and its totals, and a bar for each CPU.

use crate::scene::TopScene;
use crate::style::coloured;
use cosched_report::{CpuNow, RunStatus, clip, clock, seconds};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Gauge, Widget as _};

/// Minimum width of a bar, so that a name and a time fit.
const LEAST_BAR: u16 = 24;

/// Joins parts while they fit; the first always stays.
fn fit(parts: &[String], width: usize) -> String {
    let mut line = String::new();
    for part in parts {
        if part.is_empty() {
            continue;
        }
        if line.is_empty() {
            line.push_str(part);
            continue;
        }
        let longer = format!("{line}, {part}");
        if longer.chars().count() > width {
            break;
        }
        line = longer;
    }
    clip(&line, width)
}

/// Draws two lines: the run, and its totals.
pub(crate) fn draw_totals(buffer: &mut Buffer, area: Rect, scene: &TopScene<'_>) {
    let width = usize::from(area.width);
    let news = news(scene);
    let style = match news {
        Some(_) => coloured(scene.view.has_colour, Color::Yellow),
        None => Style::new(),
    };
    let run = fit(&run_parts(scene, news, width), width);
    let totals = fit(&total_parts(scene.status), width);
    let lines = [Line::styled(run, style).bold(), Line::from(totals)];
    Text::from_iter(lines).render(area, buffer);
}

/// What the user must know first: a message, that the screen or the run is paused, or that the state is old.
fn news(scene: &TopScene<'_>) -> Option<String> {
    if let Some(told) = scene.told {
        return Some(told.to_owned());
    }
    if scene.status.suspended {
        return Some("SUSPENDED".to_owned());
    }
    if scene.view.is_paused {
        return Some("PAUSED (space goes on)".to_owned());
    }
    if scene.status.paused {
        return Some("THE RUN IS PAUSED".to_owned());
    }
    let age_s = scene.status.old_s()?;
    Some(format!("{} old", seconds(age_s)))
}

fn run_parts(scene: &TopScene<'_>, news: Option<String>, width: usize) -> Vec<String> {
    let status = scene.status;
    let run = &status.run;
    let mut parts = Vec::from_iter(news);
    parts.push(format!("{} elapsed", clock(status.elapsed_s)));
    parts.push(left_text(status, width));
    if run.phase == "alone" {
        parts.push("each alone first".to_owned());
    }
    parts.push(run.policy.clone());
    parts.push(format!("process {}", run.pid));
    parts.extend(status.energy.joules.map(|joules| format!("{joules:.0} J")));
    parts.push(run.machine.clone());
    parts
}

fn left_text(status: &RunStatus, width: usize) -> String {
    let totals = &status.totals;
    match totals.left_s {
        Some(left_s) if width < 60 => format!("{} left", clock(left_s)),
        _ => match totals.left_text() {
            Some(text) => text,
            None => "--:-- left".to_owned(),
        },
    }
}

fn total_parts(status: &RunStatus) -> Vec<String> {
    let mut parts = status.totals.texts();
    if let Some(share) = status.own.figures.get("cpu_share") {
        parts.push(format!("cosched itself {:.2} %", 100.0 * share));
    }
    if let Some(folder) = &status.run.folder {
        parts.push(format!("logs in {folder}"));
    }
    parts
}

/// The number of lines for the bars, at most a quarter of the screen, and the number of bars on each.
pub(crate) fn bars(status: &RunStatus, width: u16, height: u16) -> (u16, u16) {
    let cpus = status.cpus.len() as u16;
    let across = (width / LEAST_BAR).clamp(1, cpus.max(1));
    let lines = cpus.div_ceil(across);
    (lines.min((height / 4).max(1)), across)
}

/// The time for which the job on a CPU has run so far, in s. Without a break it has often just begun.
fn ran_s(status: &RunStatus, cpu: &CpuNow) -> f64 {
    let job = cpu.job.and_then(|job| status.job(job));
    job.and_then(|job| job.end.ran_s).unwrap_or(0.0)
}

/// Draws the bars. Each is as long as its job has run so far, beside the longest of them.
pub(crate) fn draw_bars(buffer: &mut Buffer, area: Rect, across: u16, scene: &TopScene<'_>) {
    let cpus = &scene.status.cpus;
    let cells = cells(area, across);
    let all_fit = cpus.len() <= cells.len();
    let shown = if all_fit { cpus.len() } else { cells.len() - 1 };
    for (cpu, cell) in cpus[..shown].iter().zip(&cells) {
        draw_bar(buffer, *cell, cpu, scene);
    }
    if !all_fit {
        let text = format!("and {} more CPUs", cpus.len() - shown);
        text.render(cells[shown], buffer);
    }
}

/// Divides an area into cells for the bars, row by row.
fn cells(area: Rect, across: u16) -> Vec<Rect> {
    let columns = Layout::horizontal(vec![Constraint::Fill(1); across.into()]).spacing(1);
    let mut cells = Vec::new();
    for row in area.rows() {
        cells.extend_from_slice(&columns.split(row));
    }
    cells
}

fn draw_bar(buffer: &mut Buffer, area: Rect, cpu: &CpuNow, scene: &TopScene<'_>) {
    let cpus = scene.status.cpus.iter();
    let highest = cpus.map(|cpu| cpu.cpu).max().unwrap_or(0);
    let digits = highest.to_string().len();
    let parts = [Constraint::Length(digits as u16), Constraint::Fill(1)];
    let [number, bar] = Layout::horizontal(parts).spacing(1).areas(area);
    let text = Line::from(cpu.cpu.to_string());
    text.bold().right_aligned().render(number, buffer);
    let colour = if cpu.job.is_some() || cpu.jobs > 0 {
        Color::Green
    } else {
        Color::Reset
    };
    Gauge::default()
        .gauge_style(coloured(scene.view.has_colour, colour))
        .ratio(share_of_longest(scene.status, cpu))
        .label(bar_label(scene.status, cpu, bar.width.into()))
        .render(bar, buffer);
}

/// The job on a CPU, and how long it has run.
fn bar_label(status: &RunStatus, cpu: &CpuNow, width: usize) -> String {
    let holder = status.holder_text(cpu);
    if cpu.job.is_none() {
        return clip(&holder, width);
    }
    let time = seconds(ran_s(status, cpu));
    let room = width.saturating_sub(time.chars().count() + 3);
    // The gauge itself leaves one column free behind its label.
    format!(" {} {time}", clip(&holder, room))
}

/// How long the job on a CPU has run, as a share of the longest time on any CPU.
fn share_of_longest(status: &RunStatus, cpu: &CpuNow) -> f64 {
    let mut longest: f64 = 0.0;
    for cpu in &status.cpus {
        longest = longest.max(ran_s(status, cpu));
    }
    if longest == 0.0 {
        return 0.0;
    }
    (ran_s(status, cpu) / longest).clamp(0.0, 1.0)
}
