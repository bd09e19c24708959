//! The whole screen: totals and CPUs above, the table of jobs, a panel if the user wants one, and a line with the keys.

use crate::header::{bars, draw_bars, draw_totals};
use crate::panel::draw_panel;
use crate::scene::TopScene;
use crate::style::of_state;
use crate::view::{Panel, TopView};
use cosched_report::{JobNow, RunStatus, clip, live_job_table};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize as _};
use ratatui::text::Line;
use ratatui::widgets::{HighlightSpacing, Row, StatefulWidget, Table, TableState, Widget as _};

/// Where everything is.
struct Areas {
    totals: Rect,
    bars: Rect,
    /// Number of bars on a line.
    across: u16,
    table: Rect,
    panel: Rect,
    footer: Rect,
}

/// The mark of the selected job.
const MARK: &str = ">";
/// The table keeps its titles and at least so many lines beside a panel.
const LEAST_TABLE: u16 = 4;

fn areas(area: Rect, status: &RunStatus, view: &TopView) -> Areas {
    let (lines, across) = bars(status, area.width, area.height);
    let parts = [
        Constraint::Length(2),
        Constraint::Length(lines),
        Constraint::Fill(1),
        Constraint::Length(1),
    ];
    let [totals, bars, below, footer] = Layout::vertical(parts).areas(area);
    let panel = match view.panel {
        Panel::None => 0,
        // The more there is to read, the less of the table is needed.
        Panel::Why | Panel::Help => {
            (below.height * 3 / 5).min(below.height.saturating_sub(LEAST_TABLE))
        }
    };
    let parts = [Constraint::Fill(1), Constraint::Length(panel)];
    let [table, panel] = Layout::vertical(parts).areas(below);
    Areas {
        totals,
        bars,
        across,
        table,
        panel,
        footer,
    }
}

/// How many rows of the table fit a screen of this size.
pub fn page(width: u16, height: u16, status: &RunStatus, view: &TopView) -> usize {
    let area = Rect::new(0, 0, width, height);
    let table = areas(area, status, view).table;
    table.height.saturating_sub(1).into()
}

/// Draws a screen onto all of a buffer.
pub fn draw(buffer: &mut Buffer, scene: &TopScene<'_>) {
    let area = buffer.area;
    if area.height < 4 || area.width < 20 {
        "too small".render(area, buffer);
        return;
    }
    let areas = areas(area, scene.status, scene.view);
    draw_totals(buffer, areas.totals, scene);
    draw_bars(buffer, areas.bars, areas.across, scene);
    draw_table(buffer, areas.table, scene);
    if areas.panel.height > 0 {
        draw_panel(buffer, areas.panel, scene);
    }
    draw_footer(buffer, areas.footer, scene);
}

fn draw_table(buffer: &mut Buffer, area: Rect, scene: &TopScene<'_>) {
    let TopScene { status, view, .. } = scene;
    let jobs: Vec<&JobNow> = scene.rows.iter().map(|&row| &status.jobs[row]).collect();
    let width = usize::from(area.width) - MARK.len();
    let mut lines = live_job_table(&jobs, status.elapsed_s, width, true).into_iter();
    let titles = Row::new(lines.next()).reversed();
    let mut rows = Vec::new();
    for (job, line) in jobs.iter().zip(lines) {
        rows.push(Row::new([line]).style(of_state(job, view.has_colour)));
    }
    if jobs.is_empty() {
        rows.push(Row::new([none_text(view)]));
    }
    let selected = (!jobs.is_empty()).then(|| view.place(status, scene.rows));
    let mut state = TableState::new()
        .with_offset(view.offset)
        .with_selected(selected);
    let table = Table::new(rows, [Constraint::Fill(1)])
        .header(titles)
        .highlight_symbol(MARK)
        .highlight_spacing(HighlightSpacing::Always)
        .row_highlight_style(Style::new().bold());
    StatefulWidget::render(table, area, buffer, &mut state);
}

/// Why there is no job.
fn none_text(view: &TopView) -> &'static str {
    if view.filter.is_empty() {
        "no job"
    } else {
        "no job passes the filter"
    }
}

fn draw_footer(buffer: &mut Buffer, area: Rect, scene: &TopScene<'_>) {
    let view = scene.view;
    let width = usize::from(area.width);
    if let Some(job) = view.asks_to_end {
        let question = clip(&question(scene.status, job), width);
        Line::from(question.reversed()).render(area, buffer);
        return;
    }
    if view.is_typing {
        let filter = clip(&format!("/{}_", view.filter), width);
        Line::from(filter).bold().render(area, buffer);
        return;
    }
    let choices = clip(&choices(scene), width);
    let room = width.saturating_sub(choices.chars().count() + 2);
    Line::from(choices).render(area, buffer);
    let keys = [KEYS, FEW_KEYS].into_iter().find(|keys| keys.len() <= room);
    if let Some(keys) = keys {
        let keys = Line::from(keys.bold());
        keys.right_aligned().render(area, buffer);
    }
}

/// The keys, where there is room for so many.
const KEYS: &str = "q quit  s sort  / filter  space pause  w why  ? help";
const FEW_KEYS: &str = "q quit  ? help";

fn question(status: &RunStatus, job: u32) -> String {
    let name = match status.job(job) {
        Some(job) => job.name.clone(),
        None => format!("job {job}"),
    };
    format!("End {name}? y: SIGTERM, and SIGKILL after --grace; any other key: no")
}

/// What the user has chosen to see, and how many jobs that are.
fn choices(scene: &TopScene<'_>) -> String {
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
