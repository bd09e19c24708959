//! The drawing, filled from top to bottom: texts, legend, axes.

use super::area::{Area, px};
use super::mark;
use super::model::{Axis, Chart, CurveStyle};
use super::scale::Scale;
use super::text::{TEXT, TITLE, cut, lines, plain_or_power, width};
use crate::text::escaped;
use std::fmt::Write as _;

/// Width of every drawing in its own units, as in `chart.svg`. At 360 px a unit is 0.75 px.
pub(super) const WIDTH: f64 = 480.0;
/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// Space at the edges.
pub(super) const MARGIN: f64 = 10.0;
/// Width between the edges.
const INNER: f64 = WIDTH - 2.0 * MARGIN;
/// Height of a plot of values.
const PLOT: f64 = 220.0;
/// Space between an axis and its numbers.
pub(super) const GAP: f64 = 6.0;
/// Distance from a line's middle to the base of text beside it.
const BASE: f64 = 5.0;
/// Maximum number of ticks of a vertical axis.
const MAX_TICKS: usize = 6;
/// Width of the key before a name in the legend.
const KEY: f64 = 26.0;
/// Space between two entries of the legend.
const BETWEEN: f64 = 14.0;

/// A drawing that grows downwards.
pub(super) struct Sheet {
    /// The SVG elements.
    pub svg: String,
    /// Top of the next part.
    pub y: f64,
}

/// The sign before a name in the legend.
#[derive(Clone, Copy)]
pub(super) enum Key {
    /// A piece of the series' bars.
    Bar,
    /// A piece of the curve.
    Curve(CurveStyle),
}

impl Sheet {
    /// A drawing with a title and a subtitle.
    pub(super) fn new(chart: &Chart) -> Sheet {
        let mut sheet = Sheet {
            svg: String::new(),
            y: MARGIN,
        };
        // A bold font is wider.
        for line in lines(&chart.title, INNER / 1.1, TITLE, 3) {
            sheet.y += TITLE * 1.3;
            let y = sheet.y - TITLE / 3.0;
            sheet.text("title", MARGIN, y, &line);
        }
        for line in lines(chart.subtitle.as_deref().unwrap_or(""), INNER, TEXT, 3) {
            sheet.y += LINE;
            let y = sheet.y - LINE / 4.0;
            sheet.text("dim", MARGIN, y, &line);
        }
        sheet.y += GAP;
        sheet
    }

    /// Write a text.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (px(x), px(y), escaped(text));
        let _ = writeln!(
            self.svg,
            r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#
        );
    }

    /// Draw a straight line.
    pub(super) fn rule(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(px);
        let _ = writeln!(
            self.svg,
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        );
    }

    /// Draw a path. A title that is not empty is shown under the pointer.
    pub(super) fn path(&mut self, class: &str, d: &str, title: &str) {
        let title = title_element(title);
        let _ = writeln!(self.svg, r#"<path class="{class}" d="{d}">{title}</path>"#);
    }

    /// Draw a point of a curve.
    pub(super) fn point(&mut self, series: usize, at: (f64, f64), title: &str) {
        let class = mark::point_class(series);
        self.path(&class, &mark::point_path(series, at), title);
    }

    /// Draw a rectangle. A title that is not empty is shown under the pointer.
    pub(super) fn rect(&mut self, class: &str, area: &Area, title: &str) {
        let [x, y, width, height] = [area.left, area.top, area.width, area.height].map(px);
        let title = title_element(title);
        let _ = writeln!(
            self.svg,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}">{title}</rect>"#
        );
    }

    /// Write the legend in as many lines as it needs. Names belong to the series in their order.
    pub(super) fn legend<'a>(&mut self, names: impl IntoIterator<Item = (Key, &'a str)>) {
        let mut x = MARGIN;
        let top = self.y;
        for (series, (key, name)) in names.into_iter().enumerate() {
            let shown = cut(name, INNER - KEY - GAP, TEXT);
            if shown.is_empty() {
                continue;
            }
            let needed = KEY + GAP + width(&shown, TEXT);
            if x > MARGIN && x + needed > WIDTH - MARGIN {
                x = MARGIN;
                self.y += LINE + 2.0;
            }
            self.key(key, series, x);
            self.text("", x + KEY + GAP, self.y + LINE - BASE, &shown);
            x += needed + BETWEEN;
        }
        if x > MARGIN || self.y > top {
            self.y += LINE + GAP;
        }
    }

    fn key(&mut self, key: Key, series: usize, left: f64) {
        let area = Area {
            left,
            top: self.y + 3.0,
            width: KEY,
            height: 12.0,
        };
        match key {
            Key::Bar => self.rect(&mark::bar_class(series), &area, ""),
            Key::Curve(style) => {
                let y = area.top + area.height / 2.0;
                if style != CurveStyle::Points {
                    let line = format!("M{} {}h{KEY}", px(left), px(y));
                    self.path(&mark::curve_class(series), &line, "");
                }
                self.point(series, (area.middle(), y), "");
            }
        }
    }

    /// Write that there is no data.
    pub(super) fn nothing(&mut self) {
        self.text("dim mid", WIDTH / 2.0, self.y + 60.0, "no data");
        self.y += 110.0;
    }

    /// Write the name of the vertical axis above it.
    pub(super) fn vertical_name(&mut self, axis: &Axis) {
        let shown = cut(&axis.name(), INNER, TEXT);
        if !shown.is_empty() {
            self.text("dim", MARGIN, self.y + LINE - BASE, &shown);
            self.y += LINE;
        }
        // Half a line for the tick at the top.
        self.y += LINE / 2.0;
    }

    /// Write the name of the horizontal axis below the area.
    pub(super) fn horizontal_name(&mut self, area: &Area, name: &str) {
        let shown = cut(name, INNER, TEXT);
        if !shown.is_empty() {
            self.text_around("dim mid", area.middle(), self.y + LINE - BASE, &shown);
            self.y += LINE + 2.0;
        }
    }

    /// Write a text with its middle at x, but within the drawing.
    fn text_around(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let half = width(text, TEXT) / 2.0;
        let x = x.min(WIDTH - MARGIN - half).max(MARGIN + half);
        self.text(class, x, y, text);
    }

    /// Return the area of a plot of values that begins here, with room on the left for the numbers of its axis.
    pub(super) fn plot_area(&self, vertical: &Scale) -> Area {
        let left = MARGIN + GAP + widest_label(vertical);
        Area {
            left,
            top: self.y,
            width: WIDTH - left - MARGIN - GAP,
            height: PLOT,
        }
    }

    /// Draw the vertical axis on the left, with lines across the plot.
    pub(super) fn left_axis(&mut self, area: &Area, scale: &Scale) {
        for &tick in &scale.ticks {
            let y = area.y(scale, tick);
            self.rule("grid", (area.left, y), (area.right(), y));
            let label = plain_or_power(tick);
            self.text("dim end", area.left - GAP, y + BASE, &label);
        }
    }

    /// Draw the horizontal axis below the area, with lines across the plot.
    pub(super) fn bottom_axis(&mut self, area: &Area, scale: &Scale) {
        for &tick in &scale.ticks {
            let x = area.x(scale, tick);
            self.rule("grid", (x, area.top), (x, area.bottom() + 4.0));
            let label = plain_or_power(tick);
            self.text_around("dim mid", x, area.bottom() + LINE + 2.0, &label);
        }
        self.y = area.bottom() + LINE + GAP + 2.0;
    }

    /// Draw the lines of both axes, over those across the plot.
    pub(super) fn frame(&mut self, area: &Area) {
        let corner = (area.left, area.bottom());
        self.rule("axis", (area.left, area.top), corner);
        self.rule("axis", corner, (area.right(), area.bottom()));
    }
}

fn title_element(title: &str) -> String {
    if title.is_empty() {
        String::new()
    } else {
        format!("<title>{}</title>", escaped(title))
    }
}

/// Return the scale of a vertical axis.
pub(super) fn vertical_scale(range: (f64, f64)) -> Scale {
    Scale::of(range, MAX_TICKS)
}

/// Return the scale of a horizontal axis of this length, with as many ticks as have room.
pub(super) fn horizontal_scale(range: (f64, f64), length: f64) -> Scale {
    let mut scale = Scale::of(range, 3);
    for max_ticks in 4..=9 {
        let more = Scale::of(range, max_ticks);
        // The first and the last label may be moved towards the others.
        let between = 1.5 * widest_label(&more) + 2.0 * GAP;
        if between * (more.ticks.len() - 1) as f64 > length {
            break;
        }
        scale = more;
    }
    scale
}

fn widest_label(scale: &Scale) -> f64 {
    let mut widest = 0.0_f64;
    for tick in &scale.ticks {
        widest = widest.max(width(&plain_or_power(*tick), TEXT));
    }
    widest
}
