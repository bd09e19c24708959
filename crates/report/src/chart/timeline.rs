//! Timelines: rows, and what occupies them over time.

use super::geometry::Area;
use super::measure::{cut, width};
use super::model::{Chart, Span, Timeline};
use super::number::{px, value, with_unit};
use super::scale::{Range, Scale};
use super::sheet::{
    LINE, MARGIN, Sheet, WIDTH, bottom_axis, frame, horizontal_scale, room_at_end, rule, text,
};
use super::style::TEXT;
use super::style::{Key, bar_class};
use super::xml::Xml;

/// Height of a row where there are few.
const ROW: f64 = 24.0;
/// Maximum height of all rows.
const ALL_ROWS: f64 = 480.0;
/// Least height of a row.
const MIN_ROW: f64 = 1.0;
/// Maximum length of the name of a row.
const MAX_NAME: f64 = 110.0;

/// Draw the rows with their axis, legend and marks.
pub(super) fn draw(chart: &Chart, timeline: &Timeline, sheet: &mut Sheet) {
    let series = timeline.series.iter().enumerate();
    sheet.legend(series.map(|(ix, name)| (Key::Bar(ix), name.as_str())));
    if shown(timeline).next().is_none() {
        return sheet.nothing();
    }
    let names: Vec<String> = timeline
        .rows
        .iter()
        .map(|row| cut(row, MAX_NAME, TEXT))
        .collect();
    let (left, right, scale) = horizontal(chart, timeline, &names);
    sheet.vertical_names(&chart.y.label, None);
    let height = (ALL_ROWS / names.len() as f64).clamp(MIN_ROW, ROW);
    let area = Area {
        left,
        top: sheet.y - LINE / 4.0,
        width: WIDTH - left - right,
        height: height * names.len() as f64,
    };
    bottom_axis(sheet, &area, &scale);
    draw_names(&mut sheet.xml, timeline, &names, &area, height);
    draw_spans(&mut sheet.xml, chart, timeline, &area, &scale);
    frame(&mut sheet.xml, &area);
    sheet.horizontal_name(&area, &scale.label(&chart.x));
}

/// Return the room on the left, the room on the right, and the horizontal scale between them.
fn horizontal(chart: &Chart, timeline: &Timeline, names: &[String]) -> (f64, f64, Scale) {
    let mut range = Range::default();
    for span in shown(timeline) {
        range.include(span.from);
        range.include(span.to);
    }
    range.include_near_zero();
    let ends = range.on(&chart.x);
    let mut longest = 0.0_f64;
    for name in names {
        longest = longest.max(width(name, TEXT));
    }
    let first = MARGIN + longest + 6.0;
    let scale = horizontal_scale(ends, WIDTH - first - MARGIN);
    let left = first.max(room_at_end(&scale));
    let right = MARGIN.max(room_at_end(&scale));
    (left, right, horizontal_scale(ends, WIDTH - left - right))
}

/// Write the names of the rows, as many as have room, and lines between the rows.
fn draw_names(xml: &mut Xml, timeline: &Timeline, names: &[String], area: &Area, height: f64) {
    let every = (LINE / height).ceil() as usize;
    for (row, name) in names.iter().enumerate() {
        let bottom = area.top + height * (row + 1) as f64;
        if height >= 4.0 {
            rule(xml, "grid", (area.left, bottom), (area.right(), bottom));
        }
        if row % every == 0 && !name.is_empty() {
            let y = bottom - height / 2.0 + 5.0;
            text(xml, "end", area.left - 6.0, y, name, &timeline.rows[row]);
        }
    }
}

fn draw_spans(xml: &mut Xml, chart: &Chart, timeline: &Timeline, area: &Area, scale: &Scale) {
    let height = area.height / timeline.rows.len() as f64;
    // Rows that are high enough have a space between them.
    let space = if height >= 12.0 { 2.0 } else { height / 12.0 };
    for span in shown(timeline) {
        let Some((from, to)) = scale.fraction(span.from).zip(scale.fraction(span.to)) else {
            continue;
        };
        if from > 1.0 || to < 0.0 {
            continue;
        }
        let (from, to) = (area.x(from.max(0.0)), area.x(to.min(1.0)));
        xml.with_title(
            "rect",
            &[
                ("class", &bar_class(span.series)),
                ("x", &px(from)),
                ("y", &px(area.top + height * span.row as f64 + space)),
                ("width", &px((to - from).max(0.25))),
                ("height", &px(height - 2.0 * space)),
            ],
            &span_title(chart, timeline, &span),
        );
    }
}

/// Return the spans that can be drawn, with their ends in order.
pub(super) fn shown(timeline: &Timeline) -> impl Iterator<Item = Span> {
    timeline.spans.iter().filter_map(|&span| {
        let placed = span.row < timeline.rows.len()
            && span.series < timeline.series.len()
            && span.from.is_finite()
            && span.to.is_finite();
        placed.then(|| Span {
            from: span.from.min(span.to),
            to: span.from.max(span.to),
            ..span
        })
    })
}

fn span_title(chart: &Chart, timeline: &Timeline, span: &Span) -> String {
    let (series, row) = (
        timeline.series[span.series].trim(),
        timeline.rows[span.row].trim(),
    );
    let name = match (series, row) {
        ("", "") => String::new(),
        ("", name) | (name, "") => format!("{name}: "),
        (series, row) => format!("{series}, {row}: "),
    };
    format!(
        "{name}{} to {}",
        value(span.from),
        with_unit(span.to, chart.x.unit.as_deref())
    )
}
