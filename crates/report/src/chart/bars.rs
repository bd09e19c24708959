//! Bars in groups.

use super::geometry::{Area, path};
use super::groups;
use super::model::{Bars, Chart, Estimate, GroupLine, MarkAxis};
use super::number::{px, value, with_unit};
use super::placing::Placer;
use super::scale::{Range, Scale};
use super::sheet::{
    MARGIN, Sheet, left_axis, mark_names, marked, marks, right_axis, room_of, rule, vertical_scale,
};
use super::style::{Key, bar_class, knob, line_over};
use super::xml::Xml;

/// The part of a group's width that its bars have.
const FILLED: f64 = 0.8;
/// The widest that a bar is.
const WIDEST: f64 = 40.0;
/// How far from the zero line the middle of the cross is that stands for no value.
const CROSS: f64 = 5.0;

/// Draws the bars and all around them.
pub(super) fn draw(chart: &Chart, bars: &Bars, sheet: &mut Sheet) {
    let of_series = bars
        .series
        .iter()
        .enumerate()
        .map(|(ix, series)| (Key::Bar(ix), series.name.as_str()));
    let line_name = bars
        .line
        .as_ref()
        .map(|line| match line.axis.label.as_str() {
            "" => "right axis".to_owned(),
            label => format!("{label} (right axis)"),
        });
    sheet.legend(of_series.chain(line_name.iter().map(|name| (Key::LineOver, name.as_str()))));
    if bars.groups.is_empty() || (bars.series.is_empty() && bars.line.is_none()) {
        return sheet.nothing();
    }

    let scale = vertical_scale(range(chart, bars).on(&chart.y));
    let line = bars.line.as_ref().map(|line| (line, line_scale(line)));
    let right_name = line.as_ref().map(|(line, scale)| scale.label(&line.axis));
    sheet.vertical_names(&scale.label(&chart.y), right_name.as_deref());
    let area = sheet.plot_area(
        room_of(&scale),
        line.as_ref().map_or(MARGIN, |(_, scale)| room_of(scale)),
    );
    let xml = &mut sheet.xml;
    left_axis(xml, &area, &scale);

    let mut placer = Placer::new(area);
    let step = area.width / bars.groups.len() as f64;
    let bar = (step * FILLED / bars.series.len().max(1) as f64).min(WIDEST);
    for (group, name) in bars.groups.iter().enumerate() {
        let middle = area.left + step * (group as f64 + 0.5);
        let left = middle - bar * bars.series.len() as f64 / 2.0;
        for (ix, series) in bars.series.iter().enumerate() {
            let slot = Area {
                left: left + bar * ix as f64,
                width: bar,
                ..area
            };
            let estimate = estimate(bars, ix, group);
            let title = bar_title(chart, &series.name, name, estimate);
            draw_bar(xml, slot, &scale, ix, estimate, &title);
            placer.keep_free(covered(slot, &scale, estimate));
        }
    }
    if let Some(zero) = scale.fraction(scale.base()) {
        rule(
            xml,
            "axis",
            (area.left, area.y(zero)),
            (area.right(), area.y(zero)),
        );
    }
    marks(xml, chart, &area, (None, Some(&scale)));
    if let Some((line, scale)) = &line {
        right_axis(xml, &area, scale);
        draw_line(xml, bars, line, scale, &area, &mut placer);
    }
    mark_names(xml, chart, &area, (None, Some(&scale)), &mut placer);
    groups::write(sheet, &area, &bars.groups);
    sheet.horizontal_name(&area, &chart.x.label);
}

/// The estimate of a series for a group, if there is one with a finite value. The ends of its interval are in order.
pub(super) fn estimate(bars: &Bars, series: usize, group: usize) -> Option<Estimate> {
    let Estimate { value, interval } = (*bars.series.get(series)?.values.get(group)?)?;
    let interval = interval.filter(|(from, to)| from.is_finite() && to.is_finite());
    value.is_finite().then(|| Estimate {
        value,
        interval: interval.map(|(a, b)| (a.min(b), a.max(b))),
    })
}

/// The value of the line for a group, if it is finite.
pub(super) fn line_value(line: &GroupLine, group: usize) -> Option<f64> {
    (*line.values.get(group)?).filter(|value| value.is_finite())
}

/// What the vertical axis must show: all bars from 0, their intervals, and the marks.
fn range(chart: &Chart, bars: &Bars) -> Range {
    let mut range = Range::of(marked(chart, MarkAxis::Y));
    for series in 0..bars.series.len() {
        for estimate in (0..bars.groups.len()).filter_map(|group| estimate(bars, series, group)) {
            range.include(0.0);
            include(&mut range, estimate);
        }
    }
    range
}

/// Includes an estimate with its interval.
fn include(range: &mut Range, estimate: Estimate) {
    range.include(estimate.value);
    if let Some((from, to)) = estimate.interval {
        range.include(from);
        range.include(to);
    }
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

/// Draws a bar in its slot, which is as high as the plot, or a cross where there is no value.
fn draw_bar(
    xml: &mut Xml,
    slot: Area,
    scale: &Scale,
    series: usize,
    estimate: Option<Estimate>,
    title: &str,
) {
    let middle = slot.x(0.5);
    let y = |fraction: f64| slot.y(fraction.clamp(0.0, 1.0));
    let Some(base) = scale.fraction(scale.base()) else {
        return;
    };
    let Some((estimate, end)) =
        estimate.and_then(|estimate| Some((estimate, scale.fraction(estimate.value)?)))
    else {
        let arm = (slot.width * 0.3).min(3.0);
        let up = if y(base) - slot.top > 2.0 * CROSS {
            -CROSS
        } else {
            CROSS
        };
        let (x, y) = (px(middle - arm), px(y(base) + up - arm));
        let (down, back) = (px(2.0 * arm), px(-2.0 * arm));
        let d = format!("M{x} {y}l{down} {down}m0 {back}l{back} {down}");
        return xml.with_title("path", &[("class", "gap"), ("d", &d)], title);
    };
    let (top, bottom) = (y(end.max(base)), y(end.min(base)));
    // Between bars that are wide enough stays a thin space.
    let width = if slot.width > 6.0 {
        slot.width - 1.0
    } else {
        slot.width
    };
    let class = bar_class(series);
    xml.with_title(
        "rect",
        &[
            ("class", &class),
            ("x", &px(middle - width / 2.0)),
            ("y", &px(top)),
            ("width", &px(width)),
            ("height", &px((bottom - top).max(0.5))),
        ],
        title,
    );
    if let Some((from, to)) = estimate.interval {
        let ends = scale
            .fraction(from)
            .zip(scale.fraction(to))
            .filter(|&(from, to)| from <= 1.0 && to >= 0.0);
        if let Some((from, to)) = ends {
            let cap = (width * 0.3).min(5.0);
            let mut d = format!("M{x} {}V{}", px(y(from)), px(y(to)), x = px(middle));
            for end in [from, to]
                .into_iter()
                .filter(|end| (0.0..=1.0).contains(end))
            {
                d.push_str(&format!(
                    "M{} {}H{}",
                    px(middle - cap),
                    px(y(end)),
                    px(middle + cap)
                ));
            }
            line_over(xml, &d);
        }
    }
    if !(0.0..=1.0).contains(&end) {
        draw_cut(xml, middle, y(end), width, end > 1.0);
    }
}

/// Where a bar with its interval, or the cross in its place, is drawn.
fn covered(slot: Area, scale: &Scale, estimate: Option<Estimate>) -> Area {
    let mut range = Range::of([scale.base()]);
    if let Some(estimate) = estimate {
        include(&mut range, estimate);
    }
    let y = |v: f64| {
        scale
            .fraction(v)
            .map_or(slot.bottom(), |fraction| slot.y(fraction.clamp(0.0, 1.0)))
    };
    let (bottom, top) = range
        .ends()
        .map_or((slot.bottom(), slot.top), |(from, to)| (y(from), y(to)));
    Area {
        top: top - CROSS,
        height: bottom - top + 2.0 * CROSS,
        ..slot
    }
}

/// Draws the mark of a bar that goes on beyond the plot: an arrow at its end.
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

fn draw_line(
    xml: &mut Xml,
    bars: &Bars,
    line: &GroupLine,
    scale: &Scale,
    area: &Area,
    placer: &mut Placer,
) {
    let place = |group: usize| {
        let x = (group as f64 + 0.5) / bars.groups.len() as f64;
        Some((x, scale.fraction(line_value(line, group)?)?))
    };
    let places: Vec<_> = (0..bars.groups.len()).map(place).collect();
    let d = path(&places, area);
    if !d.is_empty() {
        line_over(xml, &d);
    }
    for (group, place) in places.iter().enumerate() {
        let (Some((x, y)), Some(v)) = (place, line_value(line, group)) else {
            continue;
        };
        if (0.0..=1.0).contains(y) {
            let (x, y) = (area.x(*x), area.y(*y));
            let title = bar_title_of_line(line, &bars.groups[group], v);
            knob(xml, x, y, Some(&title));
            placer.keep_marker_free(x, y, 4.0);
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
