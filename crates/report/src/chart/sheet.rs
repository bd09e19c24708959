//! The drawing, filled from top to bottom: texts, legend, axes.

use super::geometry::Area;
use super::measure::{cut, lines, width};
use super::model::{Axis, Chart, Mark, MarkAxis};
use super::number::{px, with_unit};
use super::placing::Placer;
use super::scale::Scale;
use super::style::Key;
use super::xml::Xml;

/// The width of every drawing, in its own units. At 360 px a unit is 0.75 px.
pub(super) const WIDTH: f64 = 480.0;
/// The font size of all but the title.
pub(super) const TEXT: f64 = 14.0;
/// The font size of the title.
pub(super) const TITLE: f64 = 17.0;
/// From line to line of text.
pub(super) const LINE: f64 = 18.0;
/// What stays free at the edges.
pub(super) const MARGIN: f64 = 10.0;
/// The height of a plot of values.
const PLOT: f64 = 220.0;
/// Between an axis and its numbers.
const GAP: f64 = 6.0;
/// From a line's middle to the base of text beside it.
const BASE: f64 = 5.0;
/// How many ticks a vertical axis has at most.
const MOST_TICKS: usize = 6;

/// A drawing that grows downwards.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) xml: Xml,
    /// Where the next thing begins.
    pub(super) y: f64,
}

/// A name of the legend with what stands before it.
pub(super) type Entry<'a> = (Key, &'a str);

impl Sheet {
    /// An empty drawing.
    pub(super) fn new() -> Sheet {
        Sheet {
            xml: Xml::default(),
            y: MARGIN,
        }
    }

    /// What has been drawn, and its height.
    pub(super) fn end(self) -> (String, f64) {
        (self.xml.into_text(), self.y + MARGIN)
    }

    /// Writes title and subtitle.
    pub(super) fn heading(&mut self, chart: &Chart) {
        // A bold font is wider.
        for line in lines(&chart.title, (WIDTH - 2.0 * MARGIN) / 1.1, TITLE, 3) {
            self.text_line(&line, "title", TITLE * 1.3);
        }
        for line in lines(
            chart.subtitle.as_deref().unwrap_or(""),
            WIDTH - 2.0 * MARGIN,
            TEXT,
            3,
        ) {
            self.text_line(&line, "dim", LINE);
        }
        self.y += 6.0;
    }

    fn text_line(&mut self, text: &str, class: &str, height: f64) {
        self.xml.with_text(
            "text",
            &[
                ("class", class),
                ("x", &px(MARGIN)),
                ("y", &px(self.y + height * 0.75)),
            ],
            text,
        );
        self.y += height;
    }

    /// Writes the legend in as many lines as it needs.
    pub(super) fn legend<'a>(&mut self, entries: impl IntoIterator<Item = Entry<'a>>) {
        const SAMPLE: f64 = 26.0;
        const BETWEEN: f64 = 14.0;
        let mut x = MARGIN;
        let mut any = false;
        for (key, name) in entries {
            let shown = cut(name.trim(), WIDTH - 2.0 * MARGIN - SAMPLE - GAP, TEXT);
            if shown.is_empty() {
                continue;
            }
            let needed = SAMPLE + GAP + width(&shown, TEXT);
            if any && x + needed > WIDTH - MARGIN {
                (x, self.y) = (MARGIN, self.y + LINE + 2.0);
            }
            key.draw(
                &mut self.xml,
                Area {
                    left: x,
                    top: self.y + 3.0,
                    width: SAMPLE,
                    height: 12.0,
                },
            );
            text(
                &mut self.xml,
                "",
                x + SAMPLE + GAP,
                self.y + 14.0,
                &shown,
                name,
            );
            x += needed + BETWEEN;
            any = true;
        }
        if any {
            self.y += LINE + 8.0;
        }
    }

    /// Writes the names of the vertical axes, above them.
    pub(super) fn vertical_names(&mut self, left: &str, right: Option<&str>) {
        let room = WIDTH - 2.0 * MARGIN;
        let right = right
            .map(|right| (cut(right, room, TEXT), right))
            .filter(|(shown, _)| !shown.is_empty());
        let shown = cut(left, room, TEXT);
        if !shown.is_empty() {
            text(&mut self.xml, "dim", MARGIN, self.y + 13.0, &shown, left);
            let together = right.as_ref().is_none_or(|(right, _)| {
                width(&shown, TEXT) + width(right, TEXT) + 2.0 * GAP <= room
            });
            if !together {
                self.y += LINE;
            }
        }
        if let Some((shown, right)) = &right {
            text(
                &mut self.xml,
                "dim end",
                WIDTH - MARGIN,
                self.y + 13.0,
                shown,
                right,
            );
        }
        if !shown.is_empty() || right.is_some() {
            self.y += LINE;
        }
        // Half a line for the tick at the top.
        self.y += LINE / 2.0;
    }

    /// Writes the name of the horizontal axis below the area.
    pub(super) fn horizontal_name(&mut self, area: &Area, name: &str) {
        let shown = cut(name, WIDTH - 2.0 * MARGIN, TEXT);
        if shown.is_empty() {
            return;
        }
        let half = width(&shown, TEXT) / 2.0;
        let x = area.x(0.5).min(WIDTH - MARGIN - half).max(MARGIN + half);
        text(&mut self.xml, "dim mid", x, self.y + 15.0, &shown, name);
        self.y += LINE + 2.0;
    }

    /// Says that there is nothing to show.
    pub(super) fn nothing(&mut self) {
        let attributes = [
            ("class", "dim mid"),
            ("x", &*px(WIDTH / 2.0)),
            ("y", &*px(self.y + 60.0)),
        ];
        self.xml.with_text("text", &attributes, "no data");
        self.y += 110.0;
    }

    /// The area of a plot that begins here, with room for the numbers of its vertical axes.
    pub(super) fn plot_area(&self, left: f64, right: f64) -> Area {
        Area {
            left,
            top: self.y,
            width: WIDTH - left - right,
            height: PLOT,
        }
    }
}

/// Writes a text that may have been cut, and then the whole text as its title.
pub(super) fn text(xml: &mut Xml, class: &str, x: f64, y: f64, shown: &str, whole: &str) {
    let (x, y) = (px(x), px(y));
    let mut attributes = vec![("x", x.as_str()), ("y", y.as_str())];
    if !class.is_empty() {
        attributes.insert(0, ("class", class));
    }
    xml.open("text", &attributes);
    if shown.ends_with('…') {
        xml.with_text("title", &[], whole);
    }
    xml.text(shown);
    xml.close();
}

/// A straight line.
pub(super) fn rule(xml: &mut Xml, class: &str, from: (f64, f64), to: (f64, f64)) {
    let end = [from.0, from.1, to.0, to.1].map(px);
    xml.empty(
        "line",
        &[
            ("class", class),
            ("x1", &end[0]),
            ("y1", &end[1]),
            ("x2", &end[2]),
            ("y2", &end[3]),
        ],
    );
}

/// The scale of a vertical axis.
pub(super) fn vertical_scale(ends: (f64, f64)) -> Scale {
    Scale::of(ends, MOST_TICKS)
}

/// The scale of a horizontal axis of that length, with as many ticks as have room.
pub(super) fn horizontal_scale(ends: (f64, f64), length: f64) -> Scale {
    let fits = |scale: &Scale| {
        let widest = scale
            .ticks
            .iter()
            .map(|tick| width(&tick.label, TEXT))
            .fold(0.0, f64::max);
        (widest + 2.0 * GAP) * (scale.ticks.len() - 1) as f64 <= length - 2.0 * GAP
    };
    let mut scales = (3..=9).rev().map(|most| Scale::of(ends, most));
    scales.find(fits).unwrap_or_else(|| Scale::of(ends, 3))
}

/// The room beside the plot that the numbers of a vertical axis need.
pub(super) fn room_of(scale: &Scale) -> f64 {
    MARGIN
        + GAP
        + scale
            .ticks
            .iter()
            .map(|tick| width(&tick.label, TEXT))
            .fold(0.0, f64::max)
}

/// The room beside the plot that half of the label of its first or last tick needs.
pub(super) fn room_at_end(scale: &Scale) -> f64 {
    let of = |label: Option<&super::scale::Tick>| {
        label.map_or(0.0, |tick| width(&tick.label, TEXT) / 2.0)
    };
    MARGIN / 2.0 + of(scale.ticks.first()).max(of(scale.ticks.last()))
}

/// Draws the vertical axis on the left, with lines across the plot.
pub(super) fn left_axis(xml: &mut Xml, area: &Area, scale: &Scale) {
    for tick in &scale.ticks {
        let Some(y) = scale.fraction(tick.at).map(|fraction| area.y(fraction)) else {
            continue;
        };
        rule(xml, "grid", (area.left, y), (area.right(), y));
        text(xml, "dim end", area.left - GAP, y + BASE, &tick.label, "");
    }
}

/// Draws the vertical axis on the right.
pub(super) fn right_axis(xml: &mut Xml, area: &Area, scale: &Scale) {
    let right = area.right();
    rule(xml, "axis", (right, area.top), (right, area.bottom()));
    for tick in &scale.ticks {
        let Some(y) = scale.fraction(tick.at).map(|fraction| area.y(fraction)) else {
            continue;
        };
        rule(xml, "axis", (right - 4.0, y), (right, y));
        text(xml, "dim", right + GAP, y + BASE, &tick.label, "");
    }
}

/// Draws the horizontal axis below the area, with lines across the plot, and goes on below its numbers.
pub(super) fn bottom_axis(sheet: &mut Sheet, area: &Area, scale: &Scale) {
    for tick in &scale.ticks {
        let Some(x) = scale.fraction(tick.at).map(|fraction| area.x(fraction)) else {
            continue;
        };
        rule(
            &mut sheet.xml,
            "grid",
            (x, area.top),
            (x, area.bottom() + 4.0),
        );
        text(
            &mut sheet.xml,
            "dim mid",
            x,
            area.bottom() + LINE + 2.0,
            &tick.label,
            "",
        );
    }
    sheet.y = area.bottom() + LINE + GAP + 2.0;
}

/// Draws the chart's marks on the scales that there are.
pub(super) fn marks(
    xml: &mut Xml,
    chart: &Chart,
    area: &Area,
    scales: (Option<&Scale>, Option<&Scale>),
) {
    for (mark, at) in shown_marks(chart, scales) {
        let ends = match mark.axis {
            MarkAxis::X => [(area.x(at), area.top), (area.x(at), area.bottom())],
            MarkAxis::Y => [(area.left, area.y(at)), (area.right(), area.y(at))],
        };
        let [x1, y1, x2, y2] = [ends[0].0, ends[0].1, ends[1].0, ends[1].1].map(px);
        let attributes = [
            ("class", "mark"),
            ("x1", &*x1),
            ("y1", &*y1),
            ("x2", &*x2),
            ("y2", &*y2),
        ];
        xml.with_title("line", &attributes, &mark_text(chart, mark));
    }
}

/// Writes the names of the marks where there is room.
pub(super) fn mark_names(
    xml: &mut Xml,
    chart: &Chart,
    area: &Area,
    scales: (Option<&Scale>, Option<&Scale>),
    placer: &mut Placer,
) {
    for (mark, at) in shown_marks(chart, scales) {
        match mark.axis {
            MarkAxis::X => placer.across(xml, &mark.label, area.x(at)),
            MarkAxis::Y => placer.along(xml, &mark.label, area.y(at)),
        }
    }
}

/// The marks within the plot, with their places on their axes.
pub(super) fn shown_marks<'a>(
    chart: &'a Chart,
    scales: (Option<&'a Scale>, Option<&'a Scale>),
) -> impl Iterator<Item = (&'a Mark, f64)> {
    chart.marks.iter().filter_map(move |mark| {
        let scale = match mark.axis {
            MarkAxis::X => scales.0,
            MarkAxis::Y => scales.1,
        };
        let at = scale?.fraction(mark.at)?;
        (0.0..=1.0).contains(&at).then_some((mark, at))
    })
}

/// A mark with its value.
pub(super) fn mark_text(chart: &Chart, mark: &Mark) -> String {
    let value = with_unit(mark.at, axis_of(chart, mark).unit.as_deref());
    if mark.label.is_empty() {
        value
    } else {
        format!("{}: {value}", mark.label)
    }
}

/// The values of the marks on an axis.
pub(super) fn marked(chart: &Chart, axis: MarkAxis) -> impl Iterator<Item = f64> {
    chart
        .marks
        .iter()
        .filter(move |mark| mark.axis == axis)
        .map(|mark| mark.at)
}

fn axis_of<'a>(chart: &'a Chart, mark: &Mark) -> &'a Axis {
    match mark.axis {
        MarkAxis::X => &chart.x,
        MarkAxis::Y => &chart.y,
    }
}
