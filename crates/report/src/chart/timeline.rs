//! Who was where, and when.

use super::geometry::Area;
use super::measure::{cut, width};
use super::model::{Chart, MarkAxis, Span, Timeline};
use super::number::{px, value, with_unit};
use super::placing::Placer;
use super::scale::Range;
use super::sheet::{
    LINE, MARGIN, Sheet, TEXT, WIDTH, bottom_axis, horizontal_scale, marked, marks, room_at_end,
    rule, shown_marks, text,
};
use super::style::{Key, bar_class};

/// The height of a row where there are few.
const ROW: f64 = 24.0;
/// Rows get lower where there are more than fill this height.
const ALL_ROWS: f64 = 480.0;
/// The least height of a row.
const LEAST_ROW: f64 = 1.0;
/// The longest that the name of a row is.
const LONGEST: f64 = 110.0;

/// Draws the rows and all around them.
pub(super) fn draw(chart: &Chart, timeline: &Timeline, sheet: &mut Sheet) {
    sheet.legend(
        timeline
            .series
            .iter()
            .enumerate()
            .map(|(ix, name)| (Key::Bar(ix), name.as_str())),
    );
    if shown(timeline).next().is_none() {
        return sheet.nothing();
    }
    let rows = timeline.rows.len();
    let height = (ALL_ROWS / rows as f64).clamp(LEAST_ROW, ROW);
    let names: Vec<String> = timeline
        .rows
        .iter()
        .map(|row| cut(row, LONGEST, TEXT))
        .collect();
    let longest = names
        .iter()
        .map(|name| width(name, TEXT))
        .fold(0.0, f64::max);

    let mut range = Range::of(marked(chart, MarkAxis::X));
    shown(timeline).for_each(|span| {
        [span.from, span.to]
            .into_iter()
            .for_each(|at| range.include(at))
    });
    range.include_near_zero();
    let ends = range.on(&chart.x);
    let first = MARGIN + longest + 6.0;
    let scale = horizontal_scale(ends, WIDTH - first - MARGIN);
    let (left, right) = (
        first.max(room_at_end(&scale)),
        MARGIN.max(room_at_end(&scale)),
    );
    let scale = horizontal_scale(ends, WIDTH - left - right);
    sheet.vertical_names(&chart.y.label, None);
    // The names of marks stand above the rows, where nothing else is drawn.
    let strip = Area {
        left: MARGIN,
        top: sheet.y - LINE / 2.0,
        width: WIDTH - 2.0 * MARGIN,
        height: LINE,
    };
    let scales = (Some(&scale), None);
    if shown_marks(chart, scales).any(|(mark, _)| !mark.label.is_empty()) {
        sheet.y += LINE;
    }
    let area = Area {
        left,
        top: sheet.y - LINE / 4.0,
        width: WIDTH - left - right,
        height: height * rows as f64,
    };
    bottom_axis(sheet, &area, &scale);

    let xml = &mut sheet.xml;
    let every = (LINE / height).ceil() as usize;
    for (row, name) in names.iter().enumerate() {
        let bottom = area.top + height * (row + 1) as f64;
        if height >= 4.0 {
            rule(xml, "grid", (left, bottom), (area.right(), bottom));
        }
        if row % every == 0 && !name.is_empty() {
            text(
                xml,
                "end",
                left - 6.0,
                bottom - height / 2.0 + 5.0,
                name,
                &timeline.rows[row],
            );
        }
    }
    // Between rows that are high enough stays a space.
    let space = if height >= 12.0 { 2.0 } else { height / 12.0 };
    for span in shown(timeline) {
        let Some((from, to)) = scale.fraction(span.from).zip(scale.fraction(span.to)) else {
            continue;
        };
        if from > 1.0 || to < 0.0 {
            continue;
        }
        let (from, to) = (area.x(from.max(0.0)), area.x(to.min(1.0)));
        let class = bar_class(span.series);
        xml.with_title(
            "rect",
            &[
                ("class", &class),
                ("x", &px(from)),
                ("y", &px(area.top + height * span.row as f64 + space)),
                ("width", &px((to - from).max(0.25))),
                ("height", &px(height - 2.0 * space)),
            ],
            &span_title(chart, timeline, &span),
        );
    }
    rule(
        xml,
        "axis",
        (left, area.bottom()),
        (area.right(), area.bottom()),
    );
    rule(xml, "axis", (left, area.top), (left, area.bottom()));
    marks(xml, chart, &area, scales);
    let mut placer = Placer::new(strip);
    for (mark, at) in shown_marks(chart, scales) {
        placer.above(xml, &mark.label, area.x(at));
    }
    sheet.horizontal_name(&area, &scale.label(&chart.x));
}

/// The spans that have a place, with their ends in order.
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
