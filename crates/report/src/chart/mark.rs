//! What sets series apart: colours, shades and the shapes of points.

use super::area::px;

/// Number of colours in `chart.css`. People with any colour vision can tell them apart: M. Okabe and K. Ito,
/// "Color Universal Design", 2008, <https://jfly.uni-koeln.de/color/>.
const COLOURS: usize = 8;
/// Number of shades of each colour in `chart.css`.
const SHADES: usize = 3;

/// Shapes of points, as paths around the point.
const SHAPES: [&str; 5] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.5-3.5h7v7h-7z",
    "m0-5l4.5 8h-9z",
    "m0-5l5 5l-5 5l-5-5z",
    "m-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
];

/// Return the class of a series' bars.
pub(super) fn bar_class(series: usize) -> String {
    let shade = series / COLOURS % SHADES;
    format!("bar c{} s{shade}", series % COLOURS)
}

/// Return the class of a curve's line.
pub(super) fn curve_class(series: usize) -> String {
    format!("curve c{}", series % COLOURS)
}

/// Return the class of a curve's points.
pub(super) fn point_class(series: usize) -> String {
    format!("point c{}", series % COLOURS)
}

/// Return the path of a point of a curve.
pub(super) fn point_path(series: usize, (x, y): (f64, f64)) -> String {
    let shape = SHAPES[(series + series / COLOURS) % SHAPES.len()];
    format!("M{} {}{shape}", px(x), px(y))
}
