//! The part above the table: the run and its totals, and a bar for each CPU.

use crate::scene::Scene;
use crate::style::{bold, coloured};
use cosched_report::{CpuNow, Status, clip, clock, seconds};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};

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
pub(crate) fn draw_totals(buffer: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let width = usize::from(area.width);
    let news = news(scene);
    let style = match news {
        Some(_) => coloured(scene.view.has_colour, Color::Yellow),
        None => Style::new(),
    };
    let run = fit(&run_parts(scene, news, width), width);
    let totals = fit(&total_parts(scene.status), width);
    buffer.set_stringn(area.x, area.y, run, width, style.patch(bold()));
    buffer.set_stringn(area.x, area.y + 1, totals, width, Style::new());
}

/// What the user must know first: a message, that the screen or the run is paused, or that the state is old.
fn news(scene: &Scene<'_>) -> Option<String> {
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

fn run_parts(scene: &Scene<'_>, news: Option<String>, width: usize) -> Vec<String> {
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

fn left_text(status: &Status, width: usize) -> String {
    let totals = &status.totals;
    match totals.left_s {
        Some(left_s) if width < 60 => format!("{} left", clock(left_s)),
        _ => match totals.left_text() {
            Some(text) => text,
            None => "--:-- left".to_owned(),
        },
    }
}

fn total_parts(status: &Status) -> Vec<String> {
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
pub(crate) fn bars(status: &Status, width: u16, height: u16) -> (u16, u16) {
    let cpus = status.cpus.len() as u16;
    let across = (width / LEAST_BAR).clamp(1, cpus.max(1));
    let lines = cpus.div_ceil(across);
    (lines.min((height / 4).max(1)), across)
}

/// The time for which the job on a CPU has run so far, in s. Without a break it has often just begun.
fn ran_s(status: &Status, cpu: &CpuNow) -> f64 {
    let job = cpu.job.and_then(|job| status.job(job));
    let ran_s = job.and_then(|job| job.figures.get("ran_s"));
    ran_s.copied().unwrap_or(0.0)
}

/// Where the bars are.
struct Grid {
    area: Rect,
    across: u16,
    /// The width of a bar with its number.
    cell: u16,
}

impl Grid {
    fn place(&self, ix: usize) -> (u16, u16) {
        let ix = ix as u16;
        let x = self.area.x + (ix % self.across) * self.cell;
        let y = self.area.y + ix / self.across;
        (x, y)
    }
}

/// Draws the bars. Each is as long as its job has run so far, beside the longest of them.
pub(crate) fn draw_bars(buffer: &mut Buffer, area: Rect, across: u16, scene: &Scene<'_>) {
    let cpus = &scene.status.cpus;
    let grid = Grid {
        area,
        across,
        cell: area.width / across.max(1),
    };
    let room = usize::from(area.height) * usize::from(across);
    let all_fit = cpus.len() <= room;
    let shown = if all_fit { room } else { room - 1 };
    for (ix, cpu) in cpus.iter().take(shown).enumerate() {
        draw_bar(buffer, &grid, ix, cpu, scene);
    }
    if !all_fit {
        let (x, y) = grid.place(shown);
        let text = format!("and {} more CPUs", cpus.len() - shown);
        buffer.set_stringn(x, y, text, usize::from(grid.cell), Style::new());
    }
}

fn draw_bar(buffer: &mut Buffer, grid: &Grid, ix: usize, cpu: &CpuNow, scene: &Scene<'_>) {
    let cpus = scene.status.cpus.iter();
    let highest = cpus.map(|cpu| cpu.cpu).max().unwrap_or(0);
    let digits = highest.to_string().len();
    let number = format!("{:digits$}[", cpu.cpu);
    let width = usize::from(grid.cell);
    let inner = width.saturating_sub(number.len() + 2);
    let colour = if cpu.job.is_some() || cpu.jobs > 0 {
        Color::Green
    } else {
        Color::Reset
    };
    let style = coloured(scene.view.has_colour, colour);
    let bar = bar_text(scene.status, cpu, inner);
    let (x, y) = grid.place(ix);
    let start = x + number.len() as u16;
    let end = start + inner as u16;
    buffer.set_stringn(x, y, &number, width, bold());
    buffer.set_stringn(start, y, &bar, inner, style);
    buffer.set_stringn(end, y, "]", 1, bold());
}

/// The inside of a bar: the job on the left, its time on the right, and between them `|` as far as the bar goes.
fn bar_text(status: &Status, cpu: &CpuNow, width: usize) -> String {
    let time = match cpu.job {
        Some(_) => seconds(ran_s(status, cpu)),
        None => String::new(),
    };
    let time_width = time.chars().count();
    let room = width.saturating_sub(time_width + 1);
    let job = clip(&status.holder_text(cpu), room);
    let job_width = job.chars().count();
    let between = width.saturating_sub(job_width + time_width);
    let filled = filled(status, cpu, width).saturating_sub(job_width);
    let behind = "|".repeat(filled.min(between));
    format!("{job}{behind:between$}{time}")
}

/// The length of a bar, in characters; at least one where there is a job.
fn filled(status: &Status, cpu: &CpuNow, width: usize) -> usize {
    if cpu.job.is_none() {
        return 0;
    }
    let ran = status.cpus.iter().map(|cpu| ran_s(status, cpu));
    let longest = ran.fold(0.0, f64::max);
    if longest == 0.0 {
        return width.min(1);
    }
    let share = ran_s(status, cpu) / longest;
    let filled = (width as f64 * share).round() as usize;
    filled.max(1).min(width)
}
