//! The whole screen: totals and CPUs above, the table of jobs, a panel if the user wants one, and a line with the keys.

use crate::columns::{Column, GAP, fitting, style};
use crate::header::{bars, draw_bars, draw_totals};
use crate::panel::draw_panel;
use crate::scene::Scene;
use crate::style::{bold, reversed};
use crate::view::{Panel, View};
use cosched_report::{Status, clip, visible};
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

/// The numbers of the jobs whose rows are seen.
pub fn shown(status: &Status, view: &View, rows: &[usize], page: usize) -> Vec<u32> {
    rows.iter()
        .skip(view.offset)
        .take(page)
        .map(|&ix| status.jobs[ix].job)
        .collect()
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
    let area = layout.table;
    let columns = fitting(&scene.status.jobs, area.width - MARK);
    buffer.set_style(
        Rect {
            y: layout.titles,
            height: 1,
            ..area
        },
        reversed(),
    );
    draw_cells(buffer, area.x + MARK, layout.titles, &columns, |column| {
        (column.title.to_owned(), reversed())
    });
    let place = scene.view.place(scene.status, scene.rows);
    let rows = scene.rows.iter().enumerate().skip(scene.view.offset);
    for (y, (ix, &row)) in (area.y..area.bottom()).zip(rows) {
        let job = &scene.status.jobs[row];
        let now_s = scene.status.elapsed_s;
        draw_cells(buffer, area.x + MARK, y, &columns, |column| {
            (
                (column.cell)(job, now_s),
                style(column, job, scene.view.has_colour),
            )
        });
        if ix == place {
            buffer.set_style(
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                bold(),
            );
            buffer.set_stringn(area.x, y, ">", 1, bold());
        }
    }
    if scene.rows.is_empty() {
        let text = if scene.view.filter.is_empty() {
            "no job"
        } else {
            "no job passes the filter"
        };
        buffer.set_stringn(area.x, area.y, text, usize::from(area.width), Style::new());
    }
}

fn draw_cells(
    buffer: &mut Buffer,
    mut x: u16,
    y: u16,
    columns: &[(&Column, u16)],
    cell: impl Fn(&Column) -> (String, Style),
) {
    for (column, width) in columns {
        let (text, style) = cell(column);
        let room = usize::from(*width);
        let text = clip(&text, room);
        let text = if column.right {
            format!("{text:>room$}")
        } else {
            text
        };
        buffer.set_stringn(x, y, text, room, style);
        x += width + GAP;
    }
}

fn draw_footer(buffer: &mut Buffer, area: Rect, y: u16, scene: &Scene<'_>) {
    let (view, width) = (scene.view, usize::from(area.width));
    if let Some(job) = view.asks_to_end {
        let name = scene
            .status
            .job(job)
            .map_or_else(|| format!("job {job}"), |job| visible(&job.name));
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
