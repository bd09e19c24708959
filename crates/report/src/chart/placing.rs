//! Places for the names of points in a plot.

use super::geometry::Area;
use super::measure::{cut, width};
use super::number::px;
use super::sheet::LINE;
use super::style::TEXT;
use super::xml::Xml;

/// Maximum number of names: more would fill the plot with text.
const MAX_NAMES: usize = 200;
/// Space between a point and its name.
const GAP: f64 = 6.0;

/// A writer of names in free places.
#[derive(Debug)]
pub(super) struct Placer {
    within: Area,
    /// The areas of markers and names.
    taken: Vec<Area>,
    left: usize,
}

impl Placer {
    /// Return a writer of names within an area.
    pub(super) fn new(within: Area) -> Placer {
        Placer {
            within,
            taken: Vec::new(),
            left: MAX_NAMES,
        }
    }

    /// Keep the place of a marker free.
    pub(super) fn keep_marker_free(&mut self, x: f64, y: f64, radius: f64) {
        self.taken.push(Area {
            left: x - radius,
            top: y - radius,
            width: 2.0 * radius,
            height: 2.0 * radius,
        });
    }

    /// Write a name in a free place beside a point, if there is one.
    pub(super) fn beside(&mut self, xml: &mut Xml, name: &str, x: f64, y: f64) {
        let name = cut(name, self.within.width / 3.0, TEXT);
        if name.is_empty() || self.left == 0 {
            return;
        }
        self.left -= 1;
        let width = width(&name, TEXT);
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
        for (left, top) in places {
            let area = Area {
                left,
                top,
                width,
                height: LINE,
            };
            if self.is_free(&area) {
                let (x, y) = (px(area.left), px(area.bottom() - 4.5));
                xml.with_text("text", &[("class", "in"), ("x", &x), ("y", &y)], &name);
                self.taken.push(area);
                return;
            }
        }
    }

    fn is_free(&self, area: &Area) -> bool {
        self.within.holds(area) && !self.taken.iter().any(|taken| taken.overlaps(area))
    }
}
