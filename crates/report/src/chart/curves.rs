//! Curves and clouds of points.

use super::area::{Area, px};
use super::mark::curve_class;
use super::model::{Chart, Curve, CurveStyle};
use super::scale::{Scale, range};
use super::sheet::{Key, Sheet, horizontal_scale, vertical_scale};
use super::text::mark_title;

/// Maximum number of marked points of a joined curve; of a longer one only every second point is marked, and so on.
const MAX_MARKED: usize = 30;

/// Draw the curves with their axes and legend.
pub(super) fn draw(chart: &Chart, curves: &[Curve], sheet: &mut Sheet) {
    let names = curves.iter();
    sheet.legend(names.map(|curve| (Key::Curve(curve.style), curve.name.as_str())));
    let (xs, ys): (Vec<f64>, Vec<f64>) = curves.iter().flat_map(finite).unzip();
    if xs.is_empty() {
        return sheet.nothing();
    }
    let vertical = vertical_scale(range(ys));
    sheet.vertical_name(&chart.y);
    let area = sheet.plot_area(&vertical);
    let horizontal = horizontal_scale(range(xs), area.width);
    sheet.bottom_axis(&area, &horizontal);
    sheet.left_axis(&area, &vertical);
    sheet.frame(&area);
    let axes = Axes {
        area,
        horizontal,
        vertical,
    };
    for (ix, curve) in curves.iter().enumerate() {
        draw_line(sheet, &axes, ix, curve);
    }
    for (ix, curve) in curves.iter().enumerate() {
        draw_points(sheet, &axes, chart, ix, curve);
    }
    sheet.horizontal_name(&area, &chart.x.name());
}

/// A plot of values with its axes.
struct Axes {
    area: Area,
    horizontal: Scale,
    vertical: Scale,
}

impl Axes {
    fn position(&self, (x, y): (f64, f64)) -> (f64, f64) {
        let x = self.area.x(&self.horizontal, x);
        (px(x), px(self.area.y(&self.vertical, y)))
    }
}

/// Return the points that are finite.
fn finite(curve: &Curve) -> impl Iterator<Item = (f64, f64)> {
    let points = curve.points.iter().copied();
    points.filter(|(x, y)| x.is_finite() && y.is_finite())
}

fn draw_line(sheet: &mut Sheet, axes: &Axes, ix: usize, curve: &Curve) {
    if curve.style == CurveStyle::Points {
        return;
    }
    let mut d = String::new();
    for point in finite(curve) {
        let (x, y) = axes.position(point);
        let part = match curve.style {
            _ if d.is_empty() => format!("M{x} {y}"),
            CurveStyle::Steps => format!("H{x}V{y}"),
            _ => format!("L{x} {y}"),
        };
        d.push_str(&part);
    }
    sheet.path(&curve_class(ix), &d, &curve.name);
}

fn draw_points(sheet: &mut Sheet, axes: &Axes, chart: &Chart, ix: usize, curve: &Curve) {
    let every = match curve.style {
        CurveStyle::Points => 1,
        _ => curve.points.len().div_ceil(MAX_MARKED).max(1),
    };
    for (x, y) in finite(curve).step_by(every) {
        let shown_x = format!("{} {}", chart.x.label, chart.x.value(x));
        let shown_y = format!("{} {}", chart.y.label, chart.y.value(y));
        let shown = format!("{shown_x}, {shown_y}");
        let title = mark_title([&curve.name, ""], &shown);
        sheet.point(ix, axes.position((x, y)), &title);
    }
}
