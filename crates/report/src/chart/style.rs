//! Colours, hatches, dashes and markers.

use super::geometry::Area;
use super::model::{Chart, Curve, CurveStyle, Plot};
use super::number::px;
use super::sheet::{TEXT, TITLE};
use super::xml::Xml;

/// Colours that people with any colour vision can tell apart: M. Okabe and K. Ito, "Color Universal Design", 2008,
/// <https://jfly.uni-koeln.de/color/>. Yellow is the last, since it is hard to see on white.
const PALETTE: [&str; 8] = [
    "#0072b2", "#e69f00", "#009e73", "#d55e00", "#56b4e9", "#cc79a7", "#000", "#f0e442",
];
/// The colour of the palette that is white on dark paper.
const BLACK: usize = 6;

/// The lines over each colour, each within a tile of 8 by 8; the first colour has none.
const HATCHES: [&str; 8] = [
    "",
    "M-2 2L2-2M0 8L8 0M6 10L10 6",
    "M-2 6L2 10M0 0L8 8M6-2L10 2",
    "M2 2h2v2h-2zM6 6h2v2h-2z",
    "M0 0L8 8M0 8L8 0",
    "M0 4H8",
    "M4 0V8",
    "M0 4H8M4 0V8",
];
/// Whether the lines over a colour are white, since it is dark.
const WHITE_HATCH: [bool; 8] = [false, false, true, true, false, false, true, false];

/// The dashes of curves.
const DASHES: [&str; 8] = [
    "",
    "8 4",
    "2 3",
    "9 3 2 3",
    "14 4",
    "5 3",
    "9 3 2 3 2 3",
    "4 2",
];
/// The markers of curves, as paths around the point.
const MARKERS: [&str; 8] = [
    "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "m-3.5-3.5h7v7h-7z",
    "m0-5l4.5 8h-9z",
    "m0-5l5 5l-5 5l-5-5z",
    "m0 5l4.5-8h-9z",
    "m-1.5-5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
    "m-2-5h4v10h-4z",
    "m-5-2h10v4h-10z",
];
/// How far a marker reaches from its point.
pub(super) const MARKER: f64 = 5.0;

/// There are so many looks: each colour with each hatch, or with each dash and marker.
const LOOKS: usize = 64;

/// The colour and the second mark of distinction of a series.
fn look(series: usize) -> (usize, usize) {
    let series = series % LOOKS;
    (series % 8, (series + series / 8) % 8)
}

/// The class of a series' bars.
pub(super) fn bar_class(series: usize) -> String {
    format!("bar h{}", series % LOOKS)
}

/// The number of series that are shown as areas.
fn areas(chart: &Chart) -> usize {
    let all = match &chart.plot {
        Plot::Bars(bars) => bars.series.len(),
        Plot::Curves(_) => 0,
        Plot::Timeline(timeline) => timeline.series.len(),
    };
    all.min(LOOKS)
}

/// An id for the chart, for use in one page with others: its title's first letters, and a hash of its texts. So it
/// stays the same when the numbers change.
pub(super) fn id(chart: &Chart) -> String {
    let mut texts = vec![
        chart.title.as_str(),
        chart.subtitle.as_deref().unwrap_or(""),
    ];
    for axis in [&chart.x, &chart.y] {
        texts.extend([axis.label.as_str(), axis.unit.as_deref().unwrap_or("")]);
    }
    match &chart.plot {
        Plot::Bars(bars) => {
            texts.push("bars");
            texts.extend(bars.series.iter().map(|series| series.name.as_str()));
        }
        Plot::Curves(curves) => {
            texts.push("curves");
            texts.extend(curves.iter().map(|curve| curve.name.as_str()));
        }
        Plot::Timeline(timeline) => {
            texts.push("timeline");
            texts.extend(timeline.series.iter().map(String::as_str));
        }
    }
    // FNV-1a, with a byte that no text contains between the texts.
    let bytes = texts.iter().flat_map(|text| text.bytes().chain([0xff]));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mut id = "chart".to_owned();
    let words = chart
        .title
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    for word in words {
        if id.len() + word.len() > 40 {
            break;
        }
        id.push_str(&format!("-{}", word.to_ascii_lowercase()));
    }
    format!("{id}-{:08x}", hash >> 32)
}

/// The rules, each for this chart alone.
pub(super) fn css(chart: &Chart, id: &str) -> String {
    let mut light = vec![
        format!("text{{font-family:system-ui,sans-serif;font-size:{TEXT}px;fill:#1b1d20}}"),
        format!(".title{{font-size:{TITLE}px;font-weight:600}}"),
        ".dim{fill:#565c64}".to_owned(),
        ".mid{text-anchor:middle}".to_owned(),
        ".end{text-anchor:end}".to_owned(),
        ".in{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}".to_owned(),
        ".paper{fill:#fff}".to_owned(),
        ".grid{stroke:#e1e4e8}".to_owned(),
        ".axis{stroke:#6b727b}".to_owned(),
        ".bar{stroke:#1b1d20;stroke-width:.75px}".to_owned(),
        ".gap{fill:none;stroke:#565c64;stroke-width:1.25px}".to_owned(),
        ".ink{fill:none;stroke:#1b1d20;stroke-width:1.5px}".to_owned(),
        ".halo{fill:none;stroke:#fff;stroke-width:4px}".to_owned(),
        ".mark{stroke:#1b1d20;stroke-width:1.25px;stroke-dasharray:5 3}".to_owned(),
        ".point{stroke:#1b1d20;stroke-width:.75px}".to_owned(),
        ".knob{fill:#fff;stroke:#1b1d20;stroke-width:1.5px}".to_owned(),
        ".curve{fill:none;stroke-width:2px;stroke-linejoin:round}".to_owned(),
    ];
    let mut dark = vec![
        "text{fill:#e8eaed}".to_owned(),
        ".dim{fill:#a9b0b9}".to_owned(),
        ".in{stroke:#16181c}".to_owned(),
        ".paper{fill:#16181c}".to_owned(),
        ".grid{stroke:#31363d}".to_owned(),
        ".axis{stroke:#8b939d}".to_owned(),
        ".bar,.point{stroke:#e8eaed}".to_owned(),
        ".gap{stroke:#a9b0b9}".to_owned(),
        ".ink,.mark{stroke:#e8eaed}".to_owned(),
        ".halo{stroke:#16181c}".to_owned(),
        ".knob{fill:#16181c;stroke:#e8eaed}".to_owned(),
    ];
    for (ix, colour) in PALETTE.iter().enumerate() {
        light.push(format!(".c{ix}{{fill:{colour}}}"));
        light.push(format!(".l{ix}{{stroke:{colour}}}"));
    }
    dark.push(format!(".c{BLACK}{{fill:#fff}}"));
    dark.push(format!(".l{BLACK}{{stroke:#fff}}"));
    for series in 0..areas(chart) {
        light.push(format!(".h{series}{{fill:url(#{id}-h{series})}}"));
    }
    let rules = |rules: &[String]| {
        let scoped =
            |rule: &String| format!("#{id} {}\n", rule.replace(",.", &format!(",#{id} .")));
        rules.iter().map(scoped).collect::<String>()
    };
    format!(
        "\n{}@media (prefers-color-scheme:dark){{\n{}}}\n",
        rules(&light),
        rules(&dark)
    )
}

/// The hatches of the series that are shown as areas.
pub(super) fn patterns(chart: &Chart, id: &str, xml: &mut Xml) {
    if areas(chart) == 0 {
        return;
    }
    xml.open("defs", &[]);
    xml.line_end();
    for series in 0..areas(chart) {
        let (colour, hatch) = look(series);
        let size = [("width", "8"), ("height", "8")];
        let name = format!("{id}-h{series}");
        xml.open(
            "pattern",
            &[
                ("id", &name),
                ("patternUnits", "userSpaceOnUse"),
                size[0],
                size[1],
            ],
        );
        xml.line_end();
        xml.empty(
            "rect",
            &[("class", &format!("c{colour}")), size[0], size[1]],
        );
        if !HATCHES[hatch].is_empty() {
            let stroke = match (colour, WHITE_HATCH[colour]) {
                (BLACK, _) => ("class", "halo"),
                (_, true) => ("stroke", "#fff"),
                (_, false) => ("stroke", "#000"),
            };
            let width = ("style", "stroke-width:1.5px");
            xml.empty(
                "path",
                &[("d", HATCHES[hatch]), ("fill", "none"), stroke, width],
            );
        }
        xml.close();
    }
    xml.close();
}

/// Draws the path of a curve.
pub(super) fn curve(xml: &mut Xml, series: usize, d: &str, title: Option<&str>) {
    let (colour, dash) = look(series);
    let class = format!("curve l{colour}");
    let mut attributes = vec![("class", class.as_str()), ("d", d)];
    if !DASHES[dash].is_empty() {
        attributes.push(("stroke-dasharray", DASHES[dash]));
    }
    match title {
        Some(title) => xml.with_title("path", &attributes, title),
        None => xml.empty("path", &attributes),
    }
}

/// Draws the marker of a curve.
pub(super) fn marker(xml: &mut Xml, series: usize, x: f64, y: f64, title: Option<&str>) {
    let (colour, shape) = look(series);
    let d = format!("M{} {}{}", px(x), px(y), MARKERS[shape]);
    let class = format!("point c{colour}");
    let attributes = [("class", class.as_str()), ("d", d.as_str())];
    match title {
        Some(title) => xml.with_title("path", &attributes, title),
        None => xml.empty("path", &attributes),
    }
}

/// Draws the line over groups, so that it can be seen before bars of any colour.
pub(super) fn line_over(xml: &mut Xml, d: &str) {
    xml.empty("path", &[("class", "halo"), ("d", d)]);
    xml.empty("path", &[("class", "ink"), ("d", d)]);
}

/// Draws a point of the line over groups.
pub(super) fn knob(xml: &mut Xml, x: f64, y: f64, title: Option<&str>) {
    let (x, y) = (px(x), px(y));
    let attributes = [
        ("class", "knob"),
        ("cx", x.as_str()),
        ("cy", y.as_str()),
        ("r", "3.5"),
    ];
    match title {
        Some(title) => xml.with_title("circle", &attributes, title),
        None => xml.empty("circle", &attributes),
    }
}

/// What stands before a name in the legend.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    /// A piece of the series' bars.
    Bar(usize),
    /// A piece of the curve.
    Curve(usize, CurveStyle),
    /// A piece of the line over groups.
    LineOver,
}

impl Key {
    /// The key of a curve.
    pub(super) fn of(series: usize, curve: &Curve) -> Key {
        Key::Curve(series, curve.style)
    }

    /// Draws it in the area.
    pub(super) fn draw(self, xml: &mut Xml, area: Area) {
        let (x, y) = (area.x(0.5), area.y(0.5));
        let line = format!("M{} {}H{}", px(area.left), px(y), px(area.right()));
        match self {
            Key::Bar(series) => {
                let (left, top) = (px(area.left), px(area.top));
                let (width, height) = (px(area.width), px(area.height));
                let class = bar_class(series);
                xml.empty(
                    "rect",
                    &[
                        ("class", &class),
                        ("x", &left),
                        ("y", &top),
                        ("width", &width),
                        ("height", &height),
                    ],
                );
            }
            Key::Curve(series, style) => {
                if style != CurveStyle::Points {
                    curve(xml, series, &line, None);
                }
                marker(xml, series, x, y, None);
            }
            Key::LineOver => {
                line_over(xml, &line);
                knob(xml, x, y, None);
            }
        }
    }
}
