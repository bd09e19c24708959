//! Bars in groups.

use super::geometry::{Area, path};
use super::groups;
use super::model::{Bars, Chart, Estimate, GroupLine};
use super::number::{px, value, with_unit};
use super::scale::{Range, Scale};
use super::sheet::{MARGIN, Sheet, left_axis, right_axis, room_of, rule, vertical_scale};
use super::style::{Key, bar_class, knob, line_over};
use super::xml::Xml;

/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
/// Maximum width of a bar.
const MAX_WIDTH: f64 = 40.0;
/// Distance from the zero line to the middle of the cross for no value.
const CROSS: f64 = 5.0;

/// Draw the bars with their axes, legend, marks and line.
pub(super) fn draw(chart: &Chart, bars: &Bars, sheet: &mut Sheet) {
    draw_legend(bars, sheet);
    if bars.groups.is_empty() || (bars.series.is_empty() && bars.line.is_none()) {
        return sheet.nothing();
    }
    let scale = vertical_scale(range(bars).on(&chart.y));
    let line = bars.line.as_ref().map(|line| (line, line_scale(line)));
    let right_name = line.as_ref().map(|(line, scale)| scale.label(&line.axis));
    let right_room = line.as_ref().map_or(MARGIN, |(_, scale)| room_of(scale));
    sheet.vertical_names(&scale.label(&chart.y), right_name.as_deref());
    let area = sheet.plot_area(room_of(&scale), right_room);
    let xml = &mut sheet.xml;
    left_axis(xml, &area, &scale);

    for group in 0..bars.groups.len() {
        draw_group(xml, chart, bars, group, &area, &scale);
    }
    if let Some(zero) = scale.fraction(scale.base()) {
        let y = area.y(zero);
        rule(xml, "axis", (area.left, y), (area.right(), y));
    }
    if let Some((line, scale)) = &line {
        right_axis(xml, &area, scale);
        draw_line(xml, bars, line, scale, &area);
    }
    groups::write(sheet, &area, &bars.groups);
    sheet.horizontal_name(&area, &chart.x.label);
}

fn draw_legend(bars: &Bars, sheet: &mut Sheet) {
    let mut entries = Vec::new();
    for (ix, series) in bars.series.iter().enumerate() {
        entries.push((Key::Bar(ix), series.name.clone()));
    }
    if let Some(line) = &bars.line {
        let name = match line.axis.label.as_str() {
            "" => "right axis".to_owned(),
            label => format!("{label} (right axis)"),
        };
        entries.push((Key::LineOver, name));
    }
    sheet.legend(entries.iter().map(|(key, name)| (*key, name.as_str())));
}

/// Draw the bars of a group.
fn draw_group(xml: &mut Xml, chart: &Chart, bars: &Bars, group: usize, area: &Area, scale: &Scale) {
    let step = area.width / bars.groups.len() as f64;
    let width = (step * FILLED / bars.series.len().max(1) as f64).min(MAX_WIDTH);
    let middle = area.left + step * (group as f64 + 0.5);
    let left = middle - width * bars.series.len() as f64 / 2.0;
    for (ix, series) in bars.series.iter().enumerate() {
        let slot = Area {
            left: left + width * ix as f64,
            width,
            ..*area
        };
        let estimate = estimate(bars, ix, group);
        let title = bar_title(chart, &series.name, &bars.groups[group], estimate);
        draw_bar(xml, slot, scale, ix, estimate, &title);
    }
}

/// Return the estimate of a series for a group, if its value is finite. The ends of its interval are in order.
pub(super) fn estimate(bars: &Bars, series: usize, group: usize) -> Option<Estimate> {
    let Estimate { value, interval } = (*bars.series.get(series)?.values.get(group)?)?;
    let interval = interval.filter(|(from, to)| from.is_finite() && to.is_finite());
    value.is_finite().then(|| Estimate {
        value,
        interval: interval.map(|(a, b)| (a.min(b), a.max(b))),
    })
}

/// Return the value of the line for a group, if it is finite.
pub(super) fn line_value(line: &GroupLine, group: usize) -> Option<f64> {
    (*line.values.get(group)?).filter(|value| value.is_finite())
}

/// Return the range of the vertical axis: all bars from 0, and their intervals.
fn range(bars: &Bars) -> Range {
    let mut range = Range::default();
    for series in 0..bars.series.len() {
        for group in 0..bars.groups.len() {
            let Some(Estimate { value, interval }) = estimate(bars, series, group) else {
                continue;
            };
            let (from, to) = interval.unwrap_or((value, value));
            for shown in [0.0, value, from, to] {
                range.include(shown);
            }
        }
    }
    range
}

fn line_scale(line: &GroupLine) -> Scale {
    let mut range = Range::of(line.values.iter().flatten().copied());
    range.include_near_zero();
    vertical_scale(range.on(&line.axis))
}

fn bar_title(chart: &Chart, series: &str, group: &str, estimate: Option<Estimate>) -> String {
    let name = match (series.trim(), group.trim()) {
        ("", name) | (name, "") => name.to_owned(),
        (series, group) => format!("{series}, {group}"),
    };
    let shown = match estimate {
        None => "no value".to_owned(),
        Some(Estimate { value: v, interval }) => {
            let v = with_unit(v, chart.y.unit.as_deref());
            match interval {
                Some((from, to)) => format!("{v} ({} to {})", value(from), value(to)),
                None => v,
            }
        }
    };
    if name.is_empty() {
        shown
    } else {
        format!("{name}: {shown}")
    }
}

/// Return the vertical position of a fraction, within the slot.
fn clamped_y(slot: Area, fraction: f64) -> f64 {
    slot.y(fraction.clamp(0.0, 1.0))
}

/// Draw a bar in its slot, which is as high as the plot, or a cross where there is no value.
fn draw_bar(
    xml: &mut Xml,
    slot: Area,
    scale: &Scale,
    series: usize,
    estimate: Option<Estimate>,
    title: &str,
) {
    let Some(base) = scale.fraction(scale.base()) else {
        return;
    };
    let end = estimate.and_then(|estimate| scale.fraction(estimate.value));
    let Some((estimate, end)) = estimate.zip(end) else {
        return draw_gap(xml, slot, clamped_y(slot, base), title);
    };
    let (top, bottom) = (
        clamped_y(slot, end.max(base)),
        clamped_y(slot, end.min(base)),
    );
    // Wide bars have a thin space between them.
    let width = if slot.width > 6.0 {
        slot.width - 1.0
    } else {
        slot.width
    };
    xml.with_title(
        "rect",
        &[
            ("class", &bar_class(series)),
            ("x", &px(slot.x(0.5) - width / 2.0)),
            ("y", &px(top)),
            ("width", &px(width)),
            ("height", &px((bottom - top).max(0.5))),
        ],
        title,
    );
    if let Some((from, to)) = estimate.interval
        && let Some((from, to)) = scale.fraction(from).zip(scale.fraction(to))
        && from <= 1.0
        && to >= 0.0
    {
        draw_interval(xml, slot, (from, to), (width * 0.3).min(5.0));
    }
    if !(0.0..=1.0).contains(&end) {
        draw_cut(xml, slot.x(0.5), clamped_y(slot, end), width, end > 1.0);
    }
}

/// Draw the cross that stands for no value.
fn draw_gap(xml: &mut Xml, slot: Area, base: f64, title: &str) {
    let arm = (slot.width * 0.3).min(3.0);
    let up = if base - slot.top > 2.0 * CROSS {
        -CROSS
    } else {
        CROSS
    };
    let (x, y) = (px(slot.x(0.5) - arm), px(base + up - arm));
    let (down, back) = (px(2.0 * arm), px(-2.0 * arm));
    let d = format!("M{x} {y}l{down} {down}m0 {back}l{back} {down}");
    xml.with_title("path", &[("class", "gap"), ("d", &d)], title);
}

/// Draw an interval, with caps at the ends that are within the plot.
fn draw_interval(xml: &mut Xml, slot: Area, (from, to): (f64, f64), cap: f64) {
    let middle = slot.x(0.5);
    let (from_y, to_y) = (px(clamped_y(slot, from)), px(clamped_y(slot, to)));
    let mut d = format!("M{} {from_y}V{to_y}", px(middle));
    for (end, y) in [(from, from_y), (to, to_y)] {
        if (0.0..=1.0).contains(&end) {
            d.push_str(&format!("M{} {y}H{}", px(middle - cap), px(middle + cap)));
        }
    }
    line_over(xml, &d);
}

/// Draw an arrow at the end of a bar that goes on beyond the plot.
fn draw_cut(xml: &mut Xml, x: f64, y: f64, width: f64, up: bool) {
    let half = (width * 0.4).min(5.0);
    let down = if up { 7.0 } else { -7.0 };
    let d = format!(
        "M{} {}L{} {}L{} {}z",
        px(x),
        px(y),
        px(x + half),
        px(y + down),
        px(x - half),
        px(y + down)
    );
    xml.empty("path", &[("class", "knob"), ("d", &d)]);
}

fn draw_line(xml: &mut Xml, bars: &Bars, line: &GroupLine, scale: &Scale, area: &Area) {
    let mut points = Vec::new();
    for group in 0..bars.groups.len() {
        let x = (group as f64 + 0.5) / bars.groups.len() as f64;
        let y = line_value(line, group).and_then(|value| scale.fraction(value));
        points.push(y.map(|y| (x, y)));
    }
    let d = path(&points, area);
    if !d.is_empty() {
        line_over(xml, &d);
    }
    for (group, point) in points.iter().enumerate() {
        let (Some((x, y)), Some(v)) = (point, line_value(line, group)) else {
            continue;
        };
        if (0.0..=1.0).contains(y) {
            let (x, y) = (area.x(*x), area.y(*y));
            let title = bar_title_of_line(line, &bars.groups[group], v);
            knob(xml, x, y, Some(&title));
        }
    }
}

fn bar_title_of_line(line: &GroupLine, group: &str, v: f64) -> String {
    let v = with_unit(v, line.axis.unit.as_deref());
    match (line.axis.label.trim(), group.trim()) {
        ("", "") => v,
        ("", name) | (name, "") => format!("{name}: {v}"),
        (label, group) => format!("{label}, {group}: {v}"),
    }
}
