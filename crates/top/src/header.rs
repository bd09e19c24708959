//! What stands above the table: the run and its totals, and a bar for each CPU.

use crate::scene::Scene;
use crate::style::{bold, coloured};
use cosched_report::{CpuNow, Status, clip, clock, seconds};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Style};

/// A bar is no narrower, so that a name and a time fit into it.
const LEAST_BAR: u16 = 24;

/// Joins parts while they fit; the first always stays.
fn fit(parts: &[String], width: usize) -> String {
    let mut line = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if line.is_empty() { "" } else { ", " };
        if !line.is_empty() && line.chars().count() + gap.len() + part.chars().count() > width {
            break;
        }
        line.push_str(gap);
        line.push_str(part);
    }
    clip(&line, width)
}

/// Draws the two lines that tell the run and its totals.
pub(crate) fn draw_totals(buffer: &mut Buffer, area: Rect, scene: &Scene<'_>) {
    let (status, width) = (scene.status, usize::from(area.width));
    let (run, totals) = (&status.run, &status.totals);
    let left = match totals.left_s {
        Some(left_s) if width < 60 => format!("{} left", clock(left_s)),
        _ => totals
            .left_text()
            .unwrap_or_else(|| "--:-- left".to_owned()),
    };
    let told = match scene.told {
        Some(told) => told.to_owned(),
        None if scene.view.is_paused => "PAUSED (space goes on)".to_owned(),
        None => match status.old_s() {
            Some(age_s) => format!("{} old", seconds(age_s)),
            None => String::new(),
        },
    };
    let alone = if run.phase == "alone" {
        "each alone first"
    } else {
        ""
    };
    let energy = status
        .energy
        .joules
        .map(|joules| format!("{joules:.0} J"))
        .unwrap_or_default();
    let first = [
        told,
        format!("{} elapsed", clock(status.elapsed_s)),
        left,
        alone.to_owned(),
        run.policy.clone(),
        format!("process {}", run.pid),
        energy,
        run.machine.clone(),
    ];
    let own = status
        .own
        .figures
        .get("cpu_share")
        .map(|share| format!("cosched itself {:.2} %", 100.0 * share));
    let folder = run.folder.as_ref();
    let mut second = totals.texts();
    second.extend(own);
    second.extend(folder.map(|folder| format!("logs in {folder}")));
    let has_news = scene.told.is_some() || scene.view.is_paused || status.old_s().is_some();
    let style = if has_news {
        coloured(scene.view.has_colour, Color::Yellow)
    } else {
        Style::new()
    };
    buffer.set_stringn(
        area.x,
        area.y,
        fit(&first, width),
        width,
        style.patch(bold()),
    );
    buffer.set_stringn(area.x, area.y + 1, fit(&second, width), width, Style::new());
}

/// How many lines the bars of the CPUs take, and how many stand on each. No more than a quarter of the screen is theirs.
pub(crate) fn bars(status: &Status, width: u16, height: u16) -> (u16, u16) {
    let cpus = status.cpus.len() as u16;
    let across = (width / LEAST_BAR).clamp(1, cpus.max(1));
    let lines = cpus.div_ceil(across);
    (lines.min((height / 4).max(1)), across)
}

/// For how long the job of a CPU has had it without a break.
fn held_s(status: &Status, cpu: &CpuNow) -> f64 {
    cpu.since_s
        .map_or(0.0, |since| (status.elapsed_s - since).max(0.0))
}

/// Draws the bars. Each is as long as its job has had the CPU without a break, beside the longest of them.
pub(crate) fn draw_bars(buffer: &mut Buffer, area: Rect, across: u16, scene: &Scene<'_>) {
    let status = scene.status;
    let longest = status
        .cpus
        .iter()
        .map(|cpu| held_s(status, cpu))
        .fold(0.0, f64::max);
    let cell = area.width / across.max(1);
    let room = usize::from(area.height) * usize::from(across);
    let more = status.cpus.len().saturating_sub(room);
    let shown = if more > 0 { room - 1 } else { room };
    let digits = status
        .cpus
        .iter()
        .map(|cpu| cpu.cpu)
        .max()
        .unwrap_or(0)
        .to_string()
        .len();
    for (ix, cpu) in status.cpus.iter().take(shown).enumerate() {
        let (x, y) = place(area, across, cell, ix);
        let number = format!("{:digits$}[", cpu.cpu);
        buffer.set_stringn(x, y, &number, usize::from(cell), bold());
        let inner = usize::from(cell).saturating_sub(number.len() + 2);
        let who = status.holder_text(cpu);
        let time = match cpu.job {
            Some(_) => seconds(held_s(status, cpu)),
            None => String::new(),
        };
        let share = if cpu.job.is_some() && longest > 0.0 {
            held_s(status, cpu) / longest
        } else {
            0.0
        };
        let filled = ((inner as f64 * share).round() as usize)
            .max(usize::from(cpu.job.is_some()))
            .min(inner);
        let who = clip(&who, inner.saturating_sub(time.chars().count() + 1));
        let blanks = inner.saturating_sub(who.chars().count() + time.chars().count());
        let behind = filled.saturating_sub(who.chars().count()).min(blanks);
        let bar = format!(
            "{who}{}{}{time}",
            "|".repeat(behind),
            " ".repeat(blanks - behind)
        );
        let colour = if cpu.job.is_some() || cpu.jobs > 0 {
            Color::Green
        } else {
            Color::Reset
        };
        let start = x + number.len() as u16;
        buffer.set_stringn(
            start,
            y,
            &bar,
            inner,
            coloured(scene.view.has_colour, colour),
        );
        buffer.set_stringn(start + inner as u16, y, "]", 1, bold());
    }
    if more > 0 {
        let (x, y) = place(area, across, cell, shown);
        let text = format!("and {} more CPUs", status.cpus.len() - shown);
        buffer.set_stringn(x, y, text, usize::from(cell), Style::new());
    }
}

fn place(area: Rect, across: u16, cell: u16, ix: usize) -> (u16, u16) {
    (
        area.x + (ix as u16 % across) * cell,
        area.y + ix as u16 / across,
    )
}
