//! The whole screen: totals and CPUs above, the table of jobs, a panel if the user wants one, and a line with the keys.

use crate::header::{bars, draw_bars, draw_totals};
use crate::panel::draw_panel;
use crate::scene::Scene;
use crate::style::{bold, of_state, reversed};
use crate::view::{Panel, View};
use cosched_report::{JobNow, Status, clip, job_table};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;

/// Where everything is.
struct Layout {
    totals: Rect,
    bars: Rect,
    across: u16,
    titles: u16,
    table: Rect,
    panel: Rect,
    footer: u16,
}

/// Columns for the mark of the selected job.
const MARK: u16 = 1;
/// The table keeps at least so many lines beside a panel.
const LEAST_TABLE: u16 = 3;

fn layout(area: Rect, status: &Status, view: &View) -> Layout {
    let (lines, across) = bars(status, area.width, area.height);
    let totals = Rect {
        height: area.height.min(2),
        ..area
    };
    let bars = Rect {
        y: area.y + 2,
        height: lines.min(area.height.saturating_sub(2)),
        ..area
    };
    let titles = bars.bottom();
    let footer = area.bottom().saturating_sub(1);
    let free = footer.saturating_sub(titles + 1);
    let panel = match view.panel {
        Panel::None => 0,
        // The more there is to read, the less of the table is needed.
        Panel::Why | Panel::Help => (free * 3 / 5).min(free.saturating_sub(LEAST_TABLE)),
    };
    let table = Rect {
        y: titles + 1,
        height: free - panel,
        ..area
    };
    let panel = Rect {
        y: table.bottom(),
        height: panel,
        ..area
    };
    Layout {
        totals,
        bars,
        across,
        titles,
        table,
        panel,
        footer,
    }
}

/// How many rows of the table fit a screen of this size.
pub fn page(width: u16, height: u16, status: &Status, view: &View) -> usize {
    usize::from(
        layout(Rect::new(0, 0, width, height), status, view)
            .table
            .height,
    )
}

/// Draws a screen onto all of a buffer.
pub fn draw(buffer: &mut Buffer, scene: &Scene<'_>) {
    let area = buffer.area;
    if area.height < 4 || area.width < 20 {
        let text = "too small";
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), Style::new());
        return;
    }
    let layout = layout(area, scene.status, scene.view);
    draw_totals(buffer, layout.totals, scene);
    draw_bars(buffer, layout.bars, layout.across, scene);
    draw_table(buffer, &layout, scene);
    if layout.panel.height > 0 {
        draw_panel(buffer, layout.panel, scene);
    }
    draw_footer(buffer, area, layout.footer, scene);
}

fn draw_table(buffer: &mut Buffer, layout: &Layout, scene: &Scene<'_>) {
    let (area, status, view) = (layout.table, scene.status, scene.view);
    let jobs: Vec<&JobNow> = scene.rows.iter().map(|&row| &status.jobs[row]).collect();
    let width = usize::from(area.width - MARK);
    let lines = job_table(&jobs, status.elapsed_s, width, true);
    let titles = line_of(area, layout.titles);
    buffer.set_style(titles, reversed());
    buffer.set_stringn(area.x + MARK, titles.y, &lines[0], width, reversed());
    let place = view.place(status, scene.rows);
    let rows = lines[1..].iter().enumerate().skip(view.offset);
    for (y, (ix, line)) in (area.y..area.bottom()).zip(rows) {
        let style = of_state(jobs[ix], view.has_colour);
        buffer.set_stringn(area.x + MARK, y, line, width, style);
        if ix == place {
            buffer.set_style(line_of(area, y), bold());
            buffer.set_stringn(area.x, y, ">", 1, bold());
        }
    }
    if jobs.is_empty() {
        let text = if view.filter.is_empty() {
            "no job"
        } else {
            "no job passes the filter"
        };
        buffer.set_stringn(area.x, area.y, text, width, Style::new());
    }
}

fn line_of(area: Rect, y: u16) -> Rect {
    Rect {
        y,
        height: 1,
        ..area
    }
}

fn draw_footer(buffer: &mut Buffer, area: Rect, y: u16, scene: &Scene<'_>) {
    let (view, width) = (scene.view, usize::from(area.width));
    if let Some(job) = view.asks_to_end {
        let name = scene
            .status
            .job(job)
            .map_or_else(|| format!("job {job}"), |job| job.name.clone());
        let text = format!("End {name}? y: SIGTERM, and SIGKILL after --grace; any other key: no");
        buffer.set_stringn(area.x, y, clip(&text, width), width, reversed());
        return;
    }
    if view.is_typing {
        buffer.set_stringn(
            area.x,
            y,
            clip(&format!("/{}_", view.filter), width),
            width,
            bold(),
        );
        return;
    }
    let status = scene.status;
    let left_out = status.left_out.live + status.left_out.queued + status.left_out.ended;
    let all = status.jobs.len() + left_out;
    let mut parts = vec![format!("sort {}", view.sort.text())];
    if !view.filter.is_empty() {
        parts.push(format!("filter {}", view.filter));
    }
    parts.push(format!("{} of {all} jobs", scene.rows.len()));
    let left = format!("[{}]", parts.join(", "));
    let keys = "q quit  s sort  / filter  space pause  w why  ? help";
    let short = "q quit  ? help";
    let rest = width.saturating_sub(left.chars().count() + 2);
    let right = [keys, short]
        .into_iter()
        .find(|keys| keys.len() <= rest)
        .unwrap_or_default();
    buffer.set_stringn(area.x, y, clip(&left, width), width, Style::new());
    buffer.set_stringn(
        area.right() - right.len() as u16,
        y,
        right,
        right.len(),
        bold(),
    );
}
