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
    let area = Rect::new(0, 0, width, height);
    layout(area, status, view).table.height.into()
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
    let Scene {
        status, view, rows, ..
    } = scene;
    let area = layout.table;
    let jobs: Vec<&JobNow> = rows.iter().map(|&row| &status.jobs[row]).collect();
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
    let view = scene.view;
    let width = usize::from(area.width);
    let (text, style) = if let Some(job) = view.asks_to_end {
        (question(scene.status, job), reversed())
    } else if view.is_typing {
        (format!("/{}_", view.filter), bold())
    } else {
        (choices(scene), Style::new())
    };
    let text = clip(&text, width);
    buffer.set_stringn(area.x, y, &text, width, style);
    if view.asks_to_end.is_some() || view.is_typing {
        return;
    }
    let room = width.saturating_sub(text.chars().count() + 2);
    for keys in [KEYS, FEW_KEYS] {
        if keys.len() <= room {
            let x = area.right() - keys.len() as u16;
            buffer.set_stringn(x, y, keys, keys.len(), bold());
            return;
        }
    }
}

/// The keys, where there is room for so many.
const KEYS: &str = "q quit  s sort  / filter  space pause  w why  ? help";
const FEW_KEYS: &str = "q quit  ? help";

fn question(status: &Status, job: u32) -> String {
    let name = match status.job(job) {
        Some(job) => job.name.clone(),
        None => format!("job {job}"),
    };
    format!("End {name}? y: SIGTERM, and SIGKILL after --grace; any other key: no")
}

/// What the user has chosen to see, and how many jobs that are.
fn choices(scene: &Scene<'_>) -> String {
    let view = scene.view;
    let hidden = &scene.status.left_out;
    let hidden = hidden.live + hidden.queued + hidden.ended;
    let shown = scene.rows.len();
    let all = scene.status.jobs.len() + hidden;
    let sort = view.sort.text();
    if view.filter.is_empty() {
        return format!("[sort {sort}, {shown} of {all} jobs]");
    }
    let filter = &view.filter;
    format!("[sort {sort}, filter {filter}, {shown} of {all} jobs]")
}
