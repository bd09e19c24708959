//! Bars in groups.

use super::area::{Area, px};
use super::mark::bar_class;
use super::model::{BarSeries, Bars, Chart, Estimate};
use super::scale::{Scale, range};
use super::sheet::{GAP, Key, LINE, Sheet, vertical_scale};
use super::text::{TEXT, cut, lines, mark_title, value, width};
use crate::text::escaped;
use std::fmt::Write as _;

/// Share of a group's width that its bars fill.
const FILLED: f64 = 0.8;
/// Maximum width of a bar.
const MAX_WIDTH: f64 = 40.0;
/// Maximum length of an upright name of a group.
const MAX_NAME: f64 = 120.0;

/// Draw the bars with their axis and legend.
pub(super) fn draw(chart: &Chart, bars: &Bars, sheet: &mut Sheet) {
    let names = bars.series.iter().map(|series| series.name.as_str());
    sheet.legend(names.map(|name| (Key::Bar, name)));
    if bars.groups.is_empty() || bars.series.is_empty() {
        return sheet.nothing();
    }
    let scale = vertical_scale(range(shown_values(bars)));
    sheet.vertical_name(&chart.y);
    let area = sheet.plot_area(&scale);
    sheet.left_axis(&area, &scale);
    for (group, name) in bars.groups.iter().enumerate() {
        for (ix, series) in bars.series.iter().enumerate() {
            let slot = slot(bars, &area, group, ix);
            let estimate = estimate(series, group);
            let title = bar_title(chart, &series.name, name, estimate);
            match estimate {
                Some(estimate) => draw_bar(sheet, slot, &scale, ix, estimate, &title),
                None => draw_gap(sheet, slot, &scale, &title),
            }
        }
    }
    let zero = area.y(&scale, scale.base());
    sheet.rule("axis", (area.left, zero), (area.right(), zero));
    write_names(sheet, &area, &bars.groups);
    sheet.horizontal_name(&area, &chart.x.label);
}

/// Return the estimate of a series for a group, if it is finite.
fn estimate(series: &BarSeries, group: usize) -> Option<Estimate> {
    let estimate = (*series.values.get(group)?)?;
    let (from, to) = ends(&estimate);
    let is_finite = estimate.value.is_finite() && from.is_finite() && to.is_finite();
    is_finite.then_some(estimate)
}

/// Return the ends of the interval, or the value twice.
fn ends(estimate: &Estimate) -> (f64, f64) {
    match estimate.interval {
        Some(ends) => ends,
        None => (estimate.value, estimate.value),
    }
}

/// Return the values that the vertical axis must show: all bars from 0, and their intervals.
fn shown_values(bars: &Bars) -> Vec<f64> {
    let mut values = vec![0.0];
    for series in &bars.series {
        for estimate in series.values.iter().flatten() {
            let (from, to) = ends(estimate);
            values.extend([estimate.value, from, to]);
        }
    }
    values
}

/// Return the place of a bar, as high as the plot.
fn slot(bars: &Bars, area: &Area, group: usize, series: usize) -> Area {
    let step = area.width / bars.groups.len() as f64;
    let count = bars.series.len() as f64;
    let width = (step * FILLED / count).min(MAX_WIDTH);
    let middle = area.left + step * (group as f64 + 0.5);
    Area {
        left: middle + width * (series as f64 - count / 2.0),
        width,
        ..*area
    }
}

fn bar_title(chart: &Chart, series: &str, group: &str, estimate: Option<Estimate>) -> String {
    let names = [series, group];
    let Some(estimate) = estimate else {
        return mark_title(names, "no value");
    };
    let mut shown = chart.y.value(estimate.value);
    if let Some((from, to)) = estimate.interval {
        shown += &format!(" ({} to {})", value(from), value(to));
    }
    mark_title(names, &shown)
}

fn draw_bar(
    sheet: &mut Sheet,
    slot: Area,
    scale: &Scale,
    series: usize,
    estimate: Estimate,
    title: &str,
) {
    let base = slot.y(scale, scale.base());
    let end = slot.y(scale, estimate.value);
    let bar = Area {
        top: base.min(end),
        height: (base - end).abs(),
        ..slot
    };
    sheet.rect(&bar_class(series), &bar, title);
    if let Some((from, to)) = estimate.interval {
        let cap = px((slot.width * 0.3).min(5.0));
        let middle = px(slot.middle());
        let left = px(middle - cap);
        let right = px(middle + cap);
        let from = px(slot.y(scale, from));
        let to = px(slot.y(scale, to));
        let d = format!("M{middle} {from}V{to}M{left} {from}H{right}M{left} {to}H{right}");
        // The halo makes the line visible before a bar of any colour.
        sheet.path("halo", &d, "");
        sheet.path("ink", &d, "");
    }
}

/// Draw the cross that stands for no value.
fn draw_gap(sheet: &mut Sheet, slot: Area, scale: &Scale, title: &str) {
    let x = px(slot.middle() - 3.0);
    let y = px(slot.y(scale, scale.base()) - 8.0);
    sheet.path("gap", &format!("M{x} {y}l6 6m0-6l-6 6"), title);
}

/// Write each name below the middle of its group: level in up to two lines if all have room, else upright. If upright
/// names have no room either, only every second one is written, or every third, and so on.
fn write_names(sheet: &mut Sheet, area: &Area, names: &[String]) {
    let step = area.width / names.len() as f64;
    let mut level: Vec<Vec<String>> = Vec::new();
    for name in names {
        let lines = lines(name, step - 8.0, TEXT, 2);
        if lines.iter().any(|line| line.ends_with('…')) {
            return write_upright_names(sheet, area, names);
        }
        level.push(lines);
    }
    let mut depth = 0.0_f64;
    for (group, lines) in level.iter().enumerate() {
        let x = area.left + step * (group as f64 + 0.5);
        let mut down = 0.0;
        for line in lines {
            down += LINE;
            sheet.text("mid", x, area.bottom() + down, line);
        }
        depth = depth.max(down);
    }
    sheet.y = area.bottom() + depth + GAP;
}

fn write_upright_names(sheet: &mut Sheet, area: &Area, names: &[String]) {
    let step = area.width / names.len() as f64;
    let every = (TEXT / step).ceil() as usize;
    let mut depth = 0.0_f64;
    for (group, name) in names.iter().enumerate().step_by(every) {
        let shown = cut(name, MAX_NAME, TEXT);
        depth = depth.max(width(&shown, TEXT));
        let x = px(area.left + step * (group as f64 + 0.5) + 5.0);
        let y = px(area.bottom() + GAP);
        let text = escaped(&shown);
        let _ = writeln!(
            sheet.svg,
            r#"<text class="end" x="{x}" y="{y}" transform="rotate(-90 {x} {y})">{text}</text>"#
        );
    }
    sheet.y = area.bottom() + depth + 2.0 * GAP;
}
