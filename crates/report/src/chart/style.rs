//! Colours, hatches, dashes and markers.

use super::geometry::Area;
use super::model::{Chart, Curve, CurveStyle, Plot};
use super::number::px;
use super::xml::Xml;

/// Font size of all but the title.
pub(super) const TEXT: f64 = 14.0;
/// Font size of the title.
pub(super) const TITLE: f64 = 17.0;

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
/// Radius of a marker.
pub(super) const MARKER: f64 = 5.0;

/// Number of looks: each colour with each hatch, or with each dash and marker.
const LOOKS: usize = 64;

/// The colour and the second mark of distinction of a series.
fn look(series: usize) -> (usize, usize) {
    let series = series % LOOKS;
    (series % 8, (series + series / 8) % 8)
}

/// Return the class of a series' bars.
pub(super) fn bar_class(series: usize) -> String {
    format!("bar h{}", series % LOOKS)
}

/// Return the number of series that are shown as areas.
fn areas(chart: &Chart) -> usize {
    let all = match &chart.plot {
        Plot::Bars(bars) => bars.series.len(),
        Plot::Curves(_) => 0,
        Plot::Timeline(timeline) => timeline.series.len(),
    };
    all.min(LOOKS)
}

/// Return an id for the chart, unique in a page: its title's first letters, and a hash of its texts.
///
/// It stays the same when the numbers change.
pub(super) fn id(chart: &Chart) -> String {
    // FNV-1a, with a byte that no text contains between the texts.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in texts(chart)
        .iter()
        .flat_map(|text| text.bytes().chain([0xff]))
    {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut id = "chart".to_owned();
    for word in chart.title.split(|c: char| !c.is_ascii_alphanumeric()) {
        if id.len() + word.len() > 40 {
            break;
        }
        if !word.is_empty() {
            id.push_str(&format!("-{}", word.to_ascii_lowercase()));
        }
    }
    format!("{id}-{:08x}", hash >> 32)
}

/// Return the texts that set a chart apart from others.
fn texts(chart: &Chart) -> Vec<&str> {
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
    texts
}

/// Rules for light paper.
const LIGHT: [&str; 14] = [
    ".dim{fill:#565c64}",
    ".mid{text-anchor:middle}",
    ".end{text-anchor:end}",
    ".in{paint-order:stroke;stroke:#fff;stroke-width:3px;stroke-linejoin:round}",
    ".paper{fill:#fff}",
    ".grid{stroke:#e1e4e8}",
    ".axis{stroke:#6b727b}",
    ".bar{stroke:#1b1d20;stroke-width:.75px}",
    ".gap{fill:none;stroke:#565c64;stroke-width:1.25px}",
    ".ink{fill:none;stroke:#1b1d20;stroke-width:1.5px}",
    ".halo{fill:none;stroke:#fff;stroke-width:4px}",
    ".point{stroke:#1b1d20;stroke-width:.75px}",
    ".knob{fill:#fff;stroke:#1b1d20;stroke-width:1.5px}",
    ".curve{fill:none;stroke-width:2px;stroke-linejoin:round}",
];

/// Rules for dark paper, over the light ones.
const DARK: [&str; 11] = [
    "text{fill:#e8eaed}",
    ".dim{fill:#a9b0b9}",
    ".in{stroke:#16181c}",
    ".paper{fill:#16181c}",
    ".grid{stroke:#31363d}",
    ".axis{stroke:#8b939d}",
    ".bar,.point{stroke:#e8eaed}",
    ".gap{stroke:#a9b0b9}",
    ".ink{stroke:#e8eaed}",
    ".halo{stroke:#16181c}",
    ".knob{fill:#16181c;stroke:#e8eaed}",
];

/// Return the rules, each for this chart alone.
pub(super) fn css(chart: &Chart, id: &str) -> String {
    let mut light = vec![
        format!("text{{font-family:system-ui,sans-serif;font-size:{TEXT}px;fill:#1b1d20}}"),
        format!(".title{{font-size:{TITLE}px;font-weight:600}}"),
    ];
    light.extend(LIGHT.map(str::to_owned));
    let mut dark = DARK.map(str::to_owned).to_vec();
    for (ix, colour) in PALETTE.iter().enumerate() {
        light.push(format!(".c{ix}{{fill:{colour}}}"));
        light.push(format!(".l{ix}{{stroke:{colour}}}"));
    }
    dark.push(format!(".c{BLACK}{{fill:#fff}}"));
    dark.push(format!(".l{BLACK}{{stroke:#fff}}"));
    for series in 0..areas(chart) {
        light.push(format!(".h{series}{{fill:url(#{id}-h{series})}}"));
    }
    format!(
        "\n{}@media (prefers-color-scheme:dark){{\n{}}}\n",
        scoped(&light, id),
        scoped(&dark, id)
    )
}

/// Join rules, each for the element with this id alone.
fn scoped(rules: &[String], id: &str) -> String {
    let mut css = String::new();
    for rule in rules {
        let rule = rule.replace(",.", &format!(",#{id} ."));
        css.push_str(&format!("#{id} {rule}\n"));
    }
    css
}

/// Write the hatches of the series that are shown as areas.
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

/// Draw the line of a curve.
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

/// Draw a marker of a curve.
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

/// Draw the line over groups, visible before bars of any colour.
pub(super) fn line_over(xml: &mut Xml, d: &str) {
    xml.empty("path", &[("class", "halo"), ("d", d)]);
    xml.empty("path", &[("class", "ink"), ("d", d)]);
}

/// Draw a point of the line over groups.
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

/// The sign before a name in the legend.
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

    /// Draw it in the area.
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
