//! Rectangles, and lines cut to them.

use super::number::px;

/// A rectangle, in the units of the drawing; y grows downwards.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Area {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Area {
    pub(super) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(super) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    /// The x of a fraction of the width, 0 at the left.
    pub(super) fn x(&self, fraction: f64) -> f64 {
        self.left + fraction * self.width
    }

    /// The y of a fraction of the height, 0 at the bottom.
    pub(super) fn y(&self, fraction: f64) -> f64 {
        self.bottom() - fraction * self.height
    }

    /// Whether the other rectangle lies within this one.
    pub(super) fn holds(&self, other: &Area) -> bool {
        other.left >= self.left
            && other.right() <= self.right()
            && other.top >= self.top
            && other.bottom() <= self.bottom()
    }

    /// Whether the other rectangle has a part of this one.
    pub(super) fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right()
            && other.left < self.right()
            && self.top < other.bottom()
            && other.top < self.bottom()
    }
}

/// A point as fractions of a plot's width and height, from the bottom left.
pub(super) type Point = (f64, f64);

/// Whether a point lies in the plot.
pub(super) fn inside(point: Point) -> bool {
    let unit = 0.0..=1.0;
    unit.contains(&point.0) && unit.contains(&point.1)
}

/// The part of a line that lies in the plot (Liang and Barsky, ACM TOG 3(1), 1984).
fn clip(a: Point, b: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    for (toward, room) in [(-dx, a.0), (dx, 1.0 - a.0), (-dy, a.1), (dy, 1.0 - a.1)] {
        if toward == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if toward < 0.0 {
            enter = enter.max(room / toward);
        } else {
            leave = leave.min(room / toward);
        }
    }
    (enter <= leave).then(|| (between(a, b, enter), between(a, b, leave)))
}

/// Return the point of a line at a fraction of its length, within the plot.
fn between(a: Point, b: Point, fraction: f64) -> Point {
    match fraction {
        0.0 => a,
        1.0 => b,
        t => (
            (a.0 + t * (b.0 - a.0)).clamp(0.0, 1.0),
            (a.1 + t * (b.1 - a.1)).clamp(0.0, 1.0),
        ),
    }
}

fn coordinates((x, y): Point, area: &Area) -> String {
    format!("{} {}", px(area.x(x)), px(area.y(y)))
}

/// The `d` of a path through the points, as far as they lie in the plot; `None` is a gap.
pub(super) fn path(points: &[Option<Point>], area: &Area) -> String {
    let mut out = String::new();
    let mut last = String::new();
    for pair in points.windows(2) {
        let [Some(a), Some(b)] = *pair else {
            last.clear();
            continue;
        };
        let Some((a, b)) = clip(a, b) else {
            continue;
        };
        let (a, b) = (coordinates(a, area), coordinates(b, area));
        if a != last {
            out.push_str(&format!("M{a}"));
        }
        if a != b {
            out.push_str(&format!("L{b}"));
        }
        last = b;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_to_the_plot() {
        let area = Area {
            left: 0.0,
            top: 0.0,
            width: 100.0,
            height: 100.0,
        };
        let of = |points: &[(f64, f64)]| {
            path(&points.iter().map(|&p| Some(p)).collect::<Vec<_>>(), &area)
        };
        assert_eq!(
            of(&[(0.0, 0.0), (0.5, 1.0), (1.0, 0.0)]),
            "M0 100L50 0L100 100"
        );
        assert_eq!(of(&[(-1.0, 0.5), (2.0, 0.5)]), "M0 50L100 50");
        assert_eq!(
            of(&[(0.0, 0.0), (1.0, 2.0), (1.0, 0.5)]),
            "M0 100L50 0M100 0L100 50"
        );
        assert_eq!(of(&[(2.0, 0.0), (2.0, 1.0), (1.5, 1.0)]), "");
        assert_eq!(of(&[(0.2, 1e6), (0.2, -1e6)]), "M20 0L20 100");
        let gap = [
            Some((0.0, 0.0)),
            Some((0.1, 0.0)),
            None,
            Some((0.2, 0.0)),
            Some((0.3, 0.0)),
        ];
        assert_eq!(path(&gap, &area), "M0 100L10 100M20 100L30 100");
        assert_eq!(path(&[None], &area), "");
    }

    #[test]
    fn rectangles() {
        let area = |left, width| Area {
            left,
            top: 0.0,
            width,
            height: 1.0,
        };
        assert!(
            area(0.0, 2.0).overlaps(&area(1.0, 2.0)) && !area(0.0, 2.0).overlaps(&area(2.0, 2.0))
        );
        assert!(area(0.0, 2.0).holds(&area(1.0, 1.0)) && !area(0.0, 2.0).holds(&area(1.0, 2.0)));
    }
}
