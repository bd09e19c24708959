//! Places for texts within a plot, where nothing else stands.

use super::geometry::Area;
use super::measure::{cut, width};
use super::number::px;
use super::sheet::{LINE, TEXT};
use super::xml::Xml;

/// So many places are looked for at most: the plot would be full of text.
const MOST: usize = 200;

/// Finds places for texts.
#[derive(Debug)]
pub(super) struct Placer {
    within: Area,
    /// Where something is drawn.
    drawn: Vec<Area>,
    /// Where a text stands.
    texts: Vec<Area>,
    left: usize,
}

impl Placer {
    /// For texts within the area.
    pub(super) fn new(within: Area) -> Placer {
        Placer {
            within,
            drawn: Vec::new(),
            texts: Vec::new(),
            left: MOST,
        }
    }

    /// Notes that something is drawn in the area.
    pub(super) fn keep_free(&mut self, area: Area) {
        self.drawn.push(area);
    }

    /// Notes that a marker is drawn.
    pub(super) fn keep_marker_free(&mut self, x: f64, y: f64, radius: f64) {
        self.keep_free(Area {
            left: x - radius,
            top: y - radius,
            width: 2.0 * radius,
            height: 2.0 * radius,
        });
    }

    /// Writes the text in a free place beside a point; nothing, if there is none.
    pub(super) fn beside(&mut self, xml: &mut Xml, text: &str, x: f64, y: f64) {
        const GAP: f64 = 6.0;
        let text = cut(text, self.within.width / 3.0, TEXT);
        let width = width(&text, TEXT);
        let (left, centre, right) = (x - GAP - width, x - width / 2.0, x + GAP);
        let (above, level, below) = (y - GAP - LINE, y - LINE / 2.0, y + GAP);
        let places = [
            (right, level),
            (left, level),
            (centre, above),
            (centre, below),
            (right, above),
            (right, below),
            (left, above),
            (left, below),
        ];
        self.write(xml, &text, &places, false);
    }

    /// Writes the text above or below a horizontal line, as far to the right as there is nothing else, or over what is
    /// drawn there.
    pub(super) fn along(&mut self, xml: &mut Xml, text: &str, y: f64) {
        const PLACES: usize = 24;
        let text = cut(text, self.within.width * 0.6, TEXT);
        let room = self.within.width - width(&text, TEXT) - 4.0;
        let left =
            |nth: usize| self.within.left + 2.0 + room * (PLACES - nth) as f64 / PLACES as f64;
        let places: Vec<_> = (0..=PLACES)
            .flat_map(|nth| [(left(nth), y - LINE), (left(nth), y + 1.0)])
            .collect();
        self.write(xml, &text, &places, true);
    }

    /// Writes the text to the right or the left of a vertical line, as high as there is nothing else, or over what is
    /// drawn there.
    pub(super) fn across(&mut self, xml: &mut Xml, text: &str, x: f64) {
        let text = cut(text, self.within.width * 0.4, TEXT);
        let (right, left) = (x + 4.0, x - 4.0 - width(&text, TEXT));
        let lines = (self.within.height / LINE) as usize;
        let top = |line: usize| self.within.top + LINE * line as f64;
        let places: Vec<_> = (0..lines)
            .flat_map(|line| [(right, top(line)), (left, top(line))])
            .collect();
        self.write(xml, &text, &places, true);
    }

    /// Writes the text into an area of one line, over the end of a vertical line below it.
    pub(super) fn above(&mut self, xml: &mut Xml, text: &str, x: f64) {
        let text = cut(text, self.within.width * 0.5, TEXT);
        let width = width(&text, TEXT);
        let top = self.within.top;
        self.write(
            xml,
            &text,
            &[
                (x - width / 2.0, top),
                (x - 2.0, top),
                (x + 2.0 - width, top),
            ],
            false,
        );
    }

    /// Writes the text at the first of the places, each the left and the top, where nothing is drawn. If there is none,
    /// it may stand over what is drawn, but never over another text.
    fn write(&mut self, xml: &mut Xml, text: &str, places: &[(f64, f64)], over_drawn: bool) {
        if text.is_empty() || self.left == 0 {
            return;
        }
        self.left -= 1;
        let width = width(text, TEXT);
        let area = |&(left, top): &(f64, f64)| Area {
            left,
            top,
            width,
            height: LINE,
        };
        let free_of = |taken: &[Area], area: &Area| !taken.iter().any(|taken| taken.overlaps(area));
        let places: Vec<Area> = places
            .iter()
            .map(area)
            .filter(|area| self.within.holds(area) && free_of(&self.texts, area))
            .collect();
        let free = places.iter().find(|area| free_of(&self.drawn, area));
        if let Some(&area) = free.or(places.first().filter(|_| over_drawn)) {
            let (x, y) = (px(area.left), px(area.bottom() - 4.5));
            xml.with_text("text", &[("class", "in"), ("x", &x), ("y", &y)], text);
            self.texts.push(area);
        }
    }
}
