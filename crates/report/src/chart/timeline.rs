//! Timelines: rows, and what occupies them over time.

use super::area::Area;
use super::mark::bar_class;
use super::model::{Chart, Span, Timeline};
use super::scale::{Scale, range};
use super::sheet::{GAP, Key, LINE, MARGIN, Sheet, WIDTH, horizontal_scale};
use super::text::{TEXT, cut, mark_title, value, width};

/// Height of a row where there are few.
const ROW: f64 = 24.0;
/// Maximum height of all rows.
const ALL_ROWS: f64 = 480.0;
/// Maximum length of the name of a row.
const MAX_NAME: f64 = 110.0;

/// Draw the rows with their axis and legend.
pub(super) fn draw(chart: &Chart, timeline: &Timeline, sheet: &mut Sheet) {
    let series = timeline.series.iter();
    sheet.legend(series.map(|name| (Key::Bar, name.as_str())));
    let spans: Vec<&Span> = timeline.spans.iter().filter(is_finite).collect();
    if spans.is_empty() {
        return sheet.nothing();
    }
    sheet.vertical_name(&chart.y);
    let names: Vec<String> = timeline
        .rows
        .iter()
        .map(|row| cut(row, MAX_NAME, TEXT))
        .collect();
    let longest = names.iter().map(|name| width(name, TEXT));
    let left = MARGIN + GAP + longest.fold(0.0, f64::max);
    let count = names.len() as f64;
    let row = (ALL_ROWS / count).min(ROW);
    let area = Area {
        left,
        top: sheet.y - LINE / 4.0,
        width: WIDTH - left - MARGIN - GAP,
        height: row * count,
    };
    let times = spans.iter().flat_map(|span| [span.from, span.to]);
    let scale = horizontal_scale(range(times), area.width);
    sheet.bottom_axis(&area, &scale);
    sheet.frame(&area);
    write_names(sheet, &names, &area, row);
    for span in spans {
        draw_span(sheet, chart, timeline, span, &area, &scale, row);
    }
    sheet.horizontal_name(&area, &chart.x.name());
}

fn is_finite(span: &&Span) -> bool {
    span.from.is_finite() && span.to.is_finite()
}

/// Write as many names of rows as have room.
fn write_names(sheet: &mut Sheet, names: &[String], area: &Area, row: f64) {
    let every = (LINE / row).ceil() as usize;
    for (ix, name) in names.iter().enumerate().step_by(every) {
        let y = area.top + row * (ix as f64 + 0.5) + 5.0;
        sheet.text("end", area.left - GAP, y, name);
    }
}

fn draw_span(
    sheet: &mut Sheet,
    chart: &Chart,
    timeline: &Timeline,
    span: &Span,
    area: &Area,
    scale: &Scale,
    row: f64,
) {
    let (from, to) = (area.x(scale, span.from), area.x(scale, span.to));
    let bar = Area {
        left: from,
        top: area.top + row * (span.row as f64 + 0.05),
        width: to - from,
        height: row * 0.9,
    };
    let name = match &*span.name {
        "" => &*timeline.series[span.series],
        name => name,
    };
    let names = [name, &*timeline.rows[span.row]];
    let shown = format!("{} to {}", value(span.from), chart.x.value(span.to));
    sheet.rect(&bar_class(span.series), &bar, &mark_title(names, &shown));
}
