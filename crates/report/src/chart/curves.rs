//! Curves and clouds of points.

use super::geometry::{Point, inside, path};
use super::model::{Chart, Curve, CurveStyle, MarkAxis};
use super::number::with_unit;
use super::placing::Placer;
use super::scale::Range;
use super::sheet::{
    MARGIN, Sheet, bottom_axis, horizontal_scale, left_axis, mark_names, marked, marks,
    room_at_end, room_of, rule, vertical_scale,
};
use super::style::{self, Key, MARKER};

/// A joined curve of more points than this has only some markers.
const ALL_MARKED: usize = 50;
/// About so many.
const SOME_MARKED: usize = 12;

/// Draws the curves and all around them.
pub(super) fn draw(chart: &Chart, curves: &[Curve], sheet: &mut Sheet) {
    sheet.legend(
        curves
            .iter()
            .enumerate()
            .map(|(ix, curve)| (Key::of(ix, curve), curve.name.as_str())),
    );
    let (x, y) = ranges(chart, curves);
    if curves.iter().all(|curve| finite(curve).next().is_none()) {
        return sheet.nothing();
    }
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
    rule(
        xml,
        "axis",
        (area.left, area.bottom()),
        (area.right(), area.bottom()),
    );
    rule(
        xml,
        "axis",
        (area.left, area.top),
        (area.left, area.bottom()),
    );
    let scales = (Some(&horizontal), Some(&vertical));
    marks(xml, chart, &area, scales);

    let place = |&(x, y): &(f64, f64)| Some((horizontal.fraction(x)?, vertical.fraction(y)?));
    let places: Vec<Vec<Option<Point>>> = curves
        .iter()
        .map(|curve| curve.points.iter().map(place).collect())
        .collect();
    for (ix, (curve, places)) in curves.iter().zip(&places).enumerate() {
        let d = match curve.style {
            CurveStyle::Line => path(places, &area),
            CurveStyle::Steps => path(&steps(places), &area),
            CurveStyle::Points => continue,
        };
        if !d.is_empty() {
            style::curve(
                xml,
                ix,
                &d,
                Some(curve.name.trim()).filter(|name| !name.is_empty()),
            );
        }
    }
    let mut placer = Placer::new(area);
    for (ix, (curve, places)) in curves.iter().zip(&places).enumerate() {
        for (point, place) in places.iter().enumerate() {
            let Some(place) = place.filter(|&place| inside(place)) else {
                continue;
            };
            if is_marked(curve, point, ix) {
                let (x, y) = (area.x(place.0), area.y(place.1));
                style::marker(xml, ix, x, y, Some(&point_title(chart, curve, point)));
                placer.keep_marker_free(x, y, MARKER);
            }
        }
    }
    mark_names(xml, chart, &area, scales, &mut placer);
    for (curve, places) in curves.iter().zip(&places) {
        for (label, place) in curve.labels.iter().zip(places) {
            if let Some((x, y)) = place.filter(|&place| inside(place)) {
                placer.beside(xml, label, area.x(x), area.y(y));
            }
        }
    }
    sheet.horizontal_name(&area, &horizontal.label(&chart.x));
}

/// The points that have a place.
pub(super) fn finite(curve: &Curve) -> impl Iterator<Item = (f64, f64)> {
    curve
        .points
        .iter()
        .copied()
        .filter(|(x, y)| x.is_finite() && y.is_finite())
}

/// What the axes must show.
fn ranges(chart: &Chart, curves: &[Curve]) -> (Range, Range) {
    let mut x = Range::of(marked(chart, MarkAxis::X));
    let mut y = Range::of(marked(chart, MarkAxis::Y));
    for point in curves.iter().flat_map(finite) {
        x.include(point.0);
        y.include(point.1);
    }
    x.include_near_zero();
    y.include_near_zero();
    (x, y)
}

/// The corners of steps through the points.
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

/// Whether a point has a marker. Curves with few markers have them at different places, so that they hide none.
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

/// A value with the name and the unit of its axis.
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
