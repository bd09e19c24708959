//! The drawing, filled from top to bottom: texts, legend, axes.

use super::geometry::Area;
use super::measure::{cut, lines, width};
use super::model::Chart;
use super::number::px;
use super::scale::Scale;
use super::style::{Key, TEXT, TITLE};
use super::xml::Xml;

/// Width of every drawing, in its own units. At 360 px a unit is 0.75 px.
pub(super) const WIDTH: f64 = 480.0;
/// Height of a line of text.
pub(super) const LINE: f64 = 18.0;
/// Space at the edges.
pub(super) const MARGIN: f64 = 10.0;
/// Height of a plot of values.
const PLOT: f64 = 220.0;
/// Space between an axis and its numbers.
const GAP: f64 = 6.0;
/// Distance from a line's middle to the base of text beside it.
const BASE: f64 = 5.0;
/// Maximum number of ticks of a vertical axis.
const MAX_TICKS: usize = 6;

/// A drawing that grows downwards.
#[derive(Debug)]
pub(super) struct Sheet {
    pub(super) xml: Xml,
    /// Top of the next part.
    pub(super) y: f64,
}

/// A name of the legend and its key.
pub(super) type Entry<'a> = (Key, &'a str);

impl Sheet {
    /// An empty drawing.
    pub(super) fn new() -> Sheet {
        Sheet {
            xml: Xml::default(),
            y: MARGIN,
        }
    }

    /// Return the drawing and its height.
    pub(super) fn end(self) -> (String, f64) {
        (self.xml.into_text(), self.y + MARGIN)
    }

    /// Write title and subtitle.
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

    /// Write the legend in as many lines as it needs.
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

    /// Write the names of the vertical axes, above them.
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

    /// Write the name of the horizontal axis below the area.
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

    /// Write that there is no data.
    pub(super) fn nothing(&mut self) {
        let attributes = [
            ("class", "dim mid"),
            ("x", &*px(WIDTH / 2.0)),
            ("y", &*px(self.y + 60.0)),
        ];
        self.xml.with_text("text", &attributes, "no data");
        self.y += 110.0;
    }

    /// Return the area of a plot that begins here, with room for the numbers of its vertical axes.
    pub(super) fn plot_area(&self, left: f64, right: f64) -> Area {
        Area {
            left,
            top: self.y,
            width: WIDTH - left - right,
            height: PLOT,
        }
    }
}

/// Write a text; one that was cut has the whole text as its title.
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

/// Draw a straight line.
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

/// Draw the lines of both axes.
pub(super) fn frame(xml: &mut Xml, area: &Area) {
    let corner = (area.left, area.bottom());
    rule(xml, "axis", corner, (area.right(), area.bottom()));
    rule(xml, "axis", (area.left, area.top), corner);
}

/// Return the scale of a vertical axis.
pub(super) fn vertical_scale(ends: (f64, f64)) -> Scale {
    Scale::of(ends, MAX_TICKS)
}

/// Return the scale of a horizontal axis of this length, with as many ticks as have room.
pub(super) fn horizontal_scale(ends: (f64, f64), length: f64) -> Scale {
    for max_ticks in (3..=9).rev() {
        let scale = Scale::of(ends, max_ticks);
        let between = (widest_label(&scale) + 2.0 * GAP) * (scale.ticks.len() - 1) as f64;
        if between <= length - 2.0 * GAP {
            return scale;
        }
    }
    Scale::of(ends, 3)
}

fn widest_label(scale: &Scale) -> f64 {
    let mut widest = 0.0_f64;
    for tick in &scale.ticks {
        widest = widest.max(width(&tick.label, TEXT));
    }
    widest
}

/// Return the room beside the plot for the numbers of a vertical axis.
pub(super) fn room_of(scale: &Scale) -> f64 {
    MARGIN + GAP + widest_label(scale)
}

/// Return the room beside the plot for half of the label of the first or last tick.
pub(super) fn room_at_end(scale: &Scale) -> f64 {
    let mut widest = 0.0_f64;
    for tick in scale.ticks.first().into_iter().chain(scale.ticks.last()) {
        widest = widest.max(width(&tick.label, TEXT));
    }
    MARGIN / 2.0 + widest / 2.0
}

/// Draw the vertical axis on the left, with lines across the plot.
pub(super) fn left_axis(xml: &mut Xml, area: &Area, scale: &Scale) {
    for tick in &scale.ticks {
        let Some(y) = scale.fraction(tick.at).map(|fraction| area.y(fraction)) else {
            continue;
        };
        rule(xml, "grid", (area.left, y), (area.right(), y));
        text(xml, "dim end", area.left - GAP, y + BASE, &tick.label, "");
    }
}

/// Draw the vertical axis on the right.
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

/// Draw the horizontal axis below the area, with lines across the plot.
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
