//! Curves and clouds of points.

use super::geometry::{Area, Point, inside, path};
use super::model::{Chart, Curve, CurveStyle};
use super::number::with_unit;
use super::placing::Placer;
use super::scale::{Range, Scale};
use super::sheet::{
    MARGIN, Sheet, bottom_axis, frame, horizontal_scale, left_axis, room_at_end, room_of,
    vertical_scale,
};
use super::style::{self, Key, MARKER};
use super::xml::Xml;

/// Number of points up to which each has a marker in a joined curve.
const ALL_MARKED: usize = 50;
/// About the number of markers of a longer curve.
const SOME_MARKED: usize = 12;

/// Draw the curves with their axes, legend and marks.
pub(super) fn draw(chart: &Chart, curves: &[Curve], sheet: &mut Sheet) {
    let names = curves.iter().enumerate();
    sheet.legend(names.map(|(ix, curve)| (Key::of(ix, curve), curve.name.as_str())));
    if curves.iter().all(|curve| finite(curve).next().is_none()) {
        return sheet.nothing();
    }
    let (x, y) = ranges(curves);
    let vertical = vertical_scale(y.on(&chart.y));
    let across = x.on(&chart.x);
    let first = room_of(&vertical);
    let horizontal = horizontal_scale(across, sheet.plot_area(first, MARGIN).width);
    let left = first.max(room_at_end(&horizontal));
    let right = MARGIN.max(room_at_end(&horizontal));
    let horizontal = horizontal_scale(across, sheet.plot_area(left, right).width);
    sheet.vertical_names(&vertical.label(&chart.y), None);
    let area = sheet.plot_area(left, right);

    bottom_axis(sheet, &area, &horizontal);
    let xml = &mut sheet.xml;
    left_axis(xml, &area, &vertical);
    frame(xml, &area);
    let mut drawn = Vec::new();
    for (ix, curve) in curves.iter().enumerate() {
        drawn.push(Drawn {
            curve,
            ix,
            points: positions(curve, &horizontal, &vertical),
        });
    }
    let mut placer = Placer::new(area);
    for curve in &drawn {
        curve.line(xml, &area);
    }
    for curve in &drawn {
        curve.markers(xml, chart, &area, &mut placer);
    }
    for curve in &drawn {
        curve.labels(xml, &area, &mut placer);
    }
    sheet.horizontal_name(&area, &horizontal.label(&chart.x));
}

/// A curve with the positions of its points in the plot.
struct Drawn<'a> {
    curve: &'a Curve,
    ix: usize,
    points: Vec<Option<Point>>,
}

/// Return the positions of points as fractions of the plot.
fn positions(curve: &Curve, horizontal: &Scale, vertical: &Scale) -> Vec<Option<Point>> {
    let mut positions = Vec::new();
    for &(x, y) in &curve.points {
        positions.push(horizontal.fraction(x).zip(vertical.fraction(y)));
    }
    positions
}

impl Drawn<'_> {
    fn line(&self, xml: &mut Xml, area: &Area) {
        let d = match self.curve.style {
            CurveStyle::Line => path(&self.points, area),
            CurveStyle::Steps => path(&steps(&self.points), area),
            CurveStyle::Points => return,
        };
        if !d.is_empty() {
            let name = Some(self.curve.name.trim()).filter(|name| !name.is_empty());
            style::curve(xml, self.ix, &d, name);
        }
    }

    fn markers(&self, xml: &mut Xml, chart: &Chart, area: &Area, placer: &mut Placer) {
        for (point, position) in self.points.iter().enumerate() {
            if let Some((x, y)) = position.filter(|&position| inside(position))
                && is_marked(self.curve, point, self.ix)
            {
                let (x, y) = (area.x(x), area.y(y));
                let title = point_title(chart, self.curve, point);
                style::marker(xml, self.ix, x, y, Some(&title));
                placer.keep_marker_free(x, y, MARKER);
            }
        }
    }

    fn labels(&self, xml: &mut Xml, area: &Area, placer: &mut Placer) {
        for (label, position) in self.curve.labels.iter().zip(&self.points) {
            if let Some((x, y)) = position.filter(|&position| inside(position)) {
                placer.beside(xml, label, area.x(x), area.y(y));
            }
        }
    }
}

/// Return the points that are finite.
pub(super) fn finite(curve: &Curve) -> impl Iterator<Item = (f64, f64)> {
    curve
        .points
        .iter()
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// Return the ranges that the axes must show.
fn ranges(curves: &[Curve]) -> (Range, Range) {
    let (mut x, mut y) = (Range::default(), Range::default());
    for point in curves.iter().flat_map(finite) {
        x.include(point.0);
        y.include(point.1);
    }
    x.include_near_zero();
    y.include_near_zero();
    (x, y)
}

/// Return the corners of steps through the points.
fn steps(points: &[Option<Point>]) -> Vec<Option<Point>> {
    let mut corners: Vec<Option<Point>> = Vec::with_capacity(2 * points.len());
    for &point in points {
        if let (Some(&Some((_, held))), Some((x, _))) = (corners.last(), point) {
            corners.push(Some((x, held)));
        }
        corners.push(point);
    }
    corners
}

/// Whether a point has a marker. Long curves have theirs at different places, so that none hides another.
fn is_marked(curve: &Curve, point: usize, ix: usize) -> bool {
    if curve.style == CurveStyle::Points || curve.points.len() <= ALL_MARKED {
        return true;
    }
    let every = curve.points.len() / SOME_MARKED;
    let label = curve
        .labels
        .get(point)
        .is_some_and(|label| !label.is_empty());
    label || point % every == (every / 2 + ix * every / 3) % every
}

fn point_title(chart: &Chart, curve: &Curve, point: usize) -> String {
    let label = curve.labels.get(point).map_or("", |label| label.trim());
    let (x, y) = curve.points[point];
    let name = match (curve.name.trim(), label) {
        ("", "") => String::new(),
        ("", name) | (name, "") => format!("{name}: "),
        (name, label) => format!("{name}, {label}: "),
    };
    format!(
        "{name}{}, {}",
        of_axis(&chart.x.label, x, &chart.x.unit),
        of_axis(&chart.y.label, y, &chart.y.unit)
    )
}

/// Render a value with the name and the unit of its axis.
fn of_axis(label: &str, v: f64, unit: &Option<String>) -> String {
    format!("{label} {}", with_unit(v, unit.as_deref()))
        .trim_start()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_holds_until_the_next_point() {
        let points = [Some((0.0, 1.0)), Some((1.0, 2.0)), None, Some((2.0, 3.0))];
        let expected = [
            Some((0.0, 1.0)),
            Some((1.0, 1.0)),
            Some((1.0, 2.0)),
            None,
            Some((2.0, 3.0)),
        ];
        assert_eq!(steps(&points), expected);
    }

    #[test]
    fn long_curves_have_some_markers() {
        let curve = |n: usize, style| Curve {
            name: String::new(),
            points: vec![(0.0, 0.0); n],
            labels: Vec::new(),
            style,
        };
        let marked = |n, style, ix| {
            (0..n)
                .filter(|&point| is_marked(&curve(n, style), point, ix))
                .count()
        };
        assert_eq!(marked(50, CurveStyle::Line, 0), 50);
        assert_eq!(marked(1_000, CurveStyle::Points, 0), 1_000);
        for ix in 0..9 {
            assert!((11..=13).contains(&marked(1_000, CurveStyle::Steps, ix)));
        }
    }
}
