use super::text::{TEXT, TITLE, width};
use super::*;
use proptest::prelude::*;

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// Bars with intervals, a gap and a negative value.
fn bars() -> Chart {
    let estimate = |value, half| {
        Some(Estimate {
            value,
            interval: Some((value - half, value + half)),
        })
    };
    Chart {
        title: "Gain over linux".to_owned(),
        subtitle: Some("Mean of 5 runs, 95 % intervals".to_owned()),
        x: Axis::new("mix", ""),
        y: Axis::new("gain", "%"),
        plot: Plot::Bars(Bars {
            groups: strings(&["all light", "mixed", "all heavy"]),
            series: vec![
                BarSeries {
                    name: "fair".to_owned(),
                    values: vec![
                        estimate(1.25, 0.5),
                        estimate(-2.0, 0.25),
                        estimate(7.5, 1.0),
                    ],
                },
                BarSeries {
                    name: "perf-fair".to_owned(),
                    values: vec![estimate(2.0, 0.0), None, estimate(9.0, 0.75)],
                },
            ],
        }),
    }
}

/// A curve of each style.
fn curves() -> Chart {
    let curve = |name: &str, points: &[(f64, f64)], style| Curve {
        name: name.to_owned(),
        points: points.to_vec(),
        style,
    };
    let programs = curve(
        "programs",
        &[(2e9, 0.4), (6e9, 1.4), (6.1e9, 1.38)],
        CurveStyle::Points,
    );
    Chart {
        title: "Bandwidth and speed".to_owned(),
        subtitle: None,
        x: Axis::new("bandwidth", "B/s"),
        y: Axis::new("slowdown", ""),
        plot: Plot::Curves(vec![
            curve(
                "model",
                &[
                    (0.0, 1.0),
                    (4e9, 1.1),
                    (f64::NAN, 0.0),
                    (5e9, 1.2),
                    (9e9, 2.0),
                ],
                CurveStyle::Line,
            ),
            curve(
                "limit",
                &[(0.0, 1.5), (3e9, 1.25), (9e9, 1.0)],
                CurveStyle::Steps,
            ),
            programs,
        ]),
    }
}

/// Two CPUs and two programs.
fn timeline() -> Chart {
    let span = |row, series, from, to| Span {
        name: String::new(),
        row,
        series,
        from,
        to,
    };
    Chart {
        title: "Who ran where".to_owned(),
        subtitle: None,
        x: Axis::new("time", "s"),
        y: Axis::new("CPU", ""),
        plot: Plot::Timeline(Timeline {
            rows: strings(&["0", "1"]),
            series: strings(&["mcf", "lbm"]),
            spans: vec![
                span(0, 0, 0.0, 2.0),
                span(1, 1, 0.0, 2.5),
                span(0, 1, 2.5, 4.0),
                span(1, 0, 3.0, 4.0),
                span(0, 0, f64::NAN, 4.0),
            ],
        }),
    }
}

#[test]
fn a_chart_of_bars() {
    insta::assert_snapshot!(bars().svg());
}

#[test]
fn a_chart_of_curves() {
    insta::assert_snapshot!(curves().svg());
}

#[test]
fn a_timeline() {
    insta::assert_snapshot!(timeline().svg());
}

#[test]
fn every_value_is_told() {
    let svg = bars().svg();
    let told = [
        "fair, all light: 1.25 % (0.75 to 1.75)",
        "fair, mixed: -2 % (-2.25 to -1.75)",
        "perf-fair, mixed: no value",
    ];
    for title in told {
        assert!(svg.contains(&format!("<title>{title}</title>")), "{title}");
    }
    assert!(
        curves()
            .svg()
            .contains("<title>programs: bandwidth 6.1e9 B/s, slowdown 1.38</title>")
    );
    assert!(
        timeline()
            .svg()
            .contains("<title>lbm, 0: 2.5 to 4 s</title>")
    );
}

#[test]
fn nothing_to_show_is_said() {
    let plots = [
        Plot::Bars(Bars::default()),
        Plot::Bars(Bars {
            groups: strings(&["a"]),
            ..Bars::default()
        }),
        Plot::Curves(Vec::new()),
        Plot::Curves(vec![Curve {
            name: "c".to_owned(),
            points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
            style: CurveStyle::Line,
        }]),
        Plot::Timeline(Timeline::default()),
    ];
    for plot in plots {
        let svg = Chart { plot, ..bars() }.svg();
        assert!(svg.contains("no data</text>"), "{svg}");
        check(&svg);
    }
}

#[test]
fn texts_are_escaped() {
    let mut chart = bars();
    let odd = "</text><script>\"a\" & 'b'\u{0}\u{1b}[31m\n\u{202e}\u{ffff}]]>";
    chart.title = odd.to_owned();
    chart.y = Axis::new(odd, odd);
    if let Plot::Bars(bars) = &mut chart.plot {
        bars.groups[1] = odd.to_owned();
        bars.series[0].name = odd.to_owned();
    }
    let svg = chart.svg();
    let elements = check(&svg);
    assert!(elements.iter().all(|element| element.name != "script"));
    let title = elements
        .iter()
        .find(|element| element.is_child_of("title", "svg"))
        .unwrap();
    assert_eq!(
        title.text,
        "</text><script>\"a\" & 'b'\\x00\\x1b[31m\\n\\u{202e}\\u{ffff}]]>"
    );
}

#[test]
fn the_rules_of_a_chart_hold_for_charts_only() {
    let svg = bars().svg();
    let rules = svg.split("<style>").nth(1).unwrap();
    let rules = rules.split("</style>").next().unwrap();
    let rules = rules
        .lines()
        .filter(|line| line.contains('{') && !line.starts_with('@'));
    for selector in rules.flat_map(|rule| rule.split('{').next().unwrap().split(',')) {
        assert!(selector.starts_with(".chart "), "{selector}");
    }
}

#[test]
fn nothing_is_loaded() {
    for chart in [bars(), curves(), timeline()] {
        let svg = chart
            .svg()
            .replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for word in [
            "http",
            "<script",
            "@import",
            "@font-face",
            "href",
            "<image",
            "<use",
            "url(",
        ] {
            assert!(!svg.contains(word), "{word}");
        }
    }
}

/// An element of a document, with the text directly within it.
#[derive(Debug)]
struct Element {
    name: String,
    parent: String,
    attributes: Vec<(String, String)>,
    text: String,
}

impl Element {
    fn attribute(&self, key: &str) -> Option<&str> {
        self.attributes
            .iter()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.attribute(key)?.parse().ok()
    }

    fn is_child_of(&self, name: &str, parent: &str) -> bool {
        self.name == name && self.parent == parent
    }
}

/// Reads a document of elements, attributes and texts, and panics where it is not well-formed.
fn read(document: &str) -> Vec<Element> {
    let (mut elements, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut rest = document.trim_end();
    while !rest.is_empty() {
        let (text, tag) = rest.split_at(rest.find('<').expect("text after the end"));
        match open.last() {
            Some(&ix) => elements[ix].text.push_str(&unescape(text)),
            None => assert_eq!(text, "", "text outside of the root"),
        }
        let (tag, after) = tag[1..].split_once('>').expect("a tag has an end");
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            let ix = open.pop().expect("an end tag has a start tag");
            assert_eq!(elements[ix].name, name);
            continue;
        }
        let (tag, empty) = tag
            .strip_suffix('/')
            .map_or((tag, false), |tag| (tag, true));
        let (name, mut list) = tag.split_once(' ').unwrap_or((tag, ""));
        assert!(
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric()),
            "{name:?}"
        );
        assert!(!open.is_empty() || elements.is_empty(), "two roots");
        let mut attributes: Vec<(String, String)> = Vec::new();
        while !list.is_empty() {
            let (key, value) = list.split_once("=\"").expect("an attribute has a value");
            let (value, more) = value.split_once('"').expect("a value has an end");
            assert!(
                key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'),
                "{key:?}"
            );
            assert!(
                attributes.iter().all(|(other, _)| other != key),
                "{key} twice"
            );
            attributes.push((key.to_owned(), unescape(value)));
            list = more.strip_prefix(' ').unwrap_or_else(|| {
                assert_eq!(more, "");
                more
            });
        }
        let parent = open
            .last()
            .map_or("", |&ix| elements[ix].name.as_str())
            .to_owned();
        elements.push(Element {
            name: name.to_owned(),
            parent,
            attributes,
            text: String::new(),
        });
        if !empty {
            open.push(elements.len() - 1);
        }
    }
    assert!(open.is_empty(), "an element is not closed");
    elements
}

fn unescape(text: &str) -> String {
    assert!(!text.contains(['<', '>']));
    assert!(
        text.chars()
            .all(|c| c == '\n' || !c.is_control() && c != '\u{fffe}' && c != '\u{ffff}')
    );
    let mut out = String::new();
    for (ix, part) in text.split('&').enumerate() {
        if ix == 0 {
            out.push_str(part);
            continue;
        }
        let (name, after) = part.split_once(';').expect("an entity has an end");
        out.push(match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            name => panic!("entity {name}"),
        });
        out.push_str(after);
    }
    out
}

/// The left, top, right and bottom of a text as it is estimated.
fn text_box(element: &Element) -> [f64; 4] {
    let class = element.attribute("class").unwrap_or("");
    let size = if class == "title" { TITLE } else { TEXT };
    let (x, y, along) = (
        element.number("x").unwrap(),
        element.number("y").unwrap(),
        width(&element.text, size),
    );
    let (up, down) = (size * 0.8, size * 0.2);
    let left = match class.split(' ').next_back() {
        Some("end") => -along,
        Some("mid") => -along / 2.0,
        _ => 0.0,
    };
    match element.attribute("transform") {
        None => [x + left, y - up, x + left + along, y + down],
        Some(_) => [x - up, y, x + down, y + along],
    }
}

/// Checks what holds for every chart: it is well-formed, its numbers are short and finite, and all of it, texts too,
/// lies within the drawing; no two texts overlap.
fn check(svg: &str) -> Vec<Element> {
    let elements = read(svg);
    let root = &elements[0];
    assert_eq!(
        (root.name.as_str(), root.attribute("role")),
        ("svg", Some("img"))
    );
    let sizes: Vec<f64> = root
        .attribute("viewBox")
        .unwrap()
        .split(' ')
        .map(|number| number.parse().unwrap())
        .collect();
    let (right, bottom) = (sizes[2] + 0.05, sizes[3] + 0.05);
    for element in &elements {
        for key in [
            "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "width", "height", "d",
        ] {
            let Some(value) = element.attribute(key).filter(|value| !value.ends_with('%')) else {
                continue;
            };
            let numbers = value
                .split(|c: char| !c.is_ascii_digit() && c != '.')
                .filter(|part| !part.is_empty());
            for number in numbers {
                assert!(
                    number
                        .parse::<f64>()
                        .is_ok_and(|number| number <= bottom.max(right)),
                    "{key} {value}"
                );
                assert!(
                    number
                        .split_once('.')
                        .is_none_or(|(_, decimals)| decimals.len() <= 2),
                    "{key} {value}"
                );
            }
            let words = value.replace(
                |c: char| "MLHVlhvmaz -.".contains(c) || c.is_ascii_digit(),
                "",
            );
            assert_eq!(words, "", "{key} {value}");
        }
        if element.name == "rect" && element.parent == "svg" {
            let number = |key| element.number(key).unwrap_or(0.0);
            assert!(
                number("x") >= 0.0 && number("x") + number("width") <= right,
                "{element:?}"
            );
            assert!(
                number("y") >= 0.0 && number("y") + number("height") <= bottom,
                "{element:?}"
            );
        }
    }
    let texts: Vec<&Element> = elements
        .iter()
        .filter(|element| element.name == "text")
        .collect();
    let boxes: Vec<[f64; 4]> = texts.iter().map(|text| text_box(text)).collect();
    for (ix, a) in boxes.iter().enumerate() {
        assert!(
            a[0] >= -0.05 && a[1] >= 0.0 && a[2] <= right && a[3] <= bottom,
            "{a:?} {:?}",
            texts[ix]
        );
        for (other, b) in boxes.iter().enumerate().skip(ix + 1) {
            let apart = a[2] <= b[0] + 0.05
                || b[2] <= a[0] + 0.05
                || a[3] <= b[1] + 0.05
                || b[3] <= a[1] + 0.05;
            assert!(apart, "{:?} and {:?} overlap", texts[ix], texts[other]);
        }
    }
    elements
}

/// Numbers as they are met, and any others.
fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -10.0..100.0_f64,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::MIN, f64::MAX, 5e-324, 1e15]),
    ]
}

/// Texts as they are met, and any others.
fn texts() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[a-zA-Z ]{0,12}", 1 => ".{0,80}", 1 => any::<String>()]
}

fn axes() -> impl Strategy<Value = Axis> {
    (texts(), texts()).prop_map(|(label, unit)| Axis { label, unit })
}

fn plots() -> impl Strategy<Value = Plot> {
    let estimate = (numbers(), prop::option::of((numbers(), numbers())))
        .prop_map(|(value, interval)| Estimate { value, interval });
    let series = (
        texts(),
        prop::collection::vec(prop::option::of(estimate), 0..12),
    )
        .prop_map(|(name, values)| BarSeries { name, values });
    let bars = (
        prop::collection::vec(texts(), 0..40),
        prop::collection::vec(series, 0..6),
    )
        .prop_map(|(groups, series)| Plot::Bars(Bars { groups, series }));
    let style = prop::sample::select(vec![
        CurveStyle::Line,
        CurveStyle::Steps,
        CurveStyle::Points,
    ]);
    let curve = (
        texts(),
        prop::collection::vec((numbers(), numbers()), 0..80),
        style,
    )
        .prop_map(|(name, points, style)| Curve {
            name,
            points,
            style,
        });
    let curves = prop::collection::vec(curve, 0..5).prop_map(Plot::Curves);
    let span = (0..9_usize, 0..3_usize, numbers(), 0.0..1e3_f64).prop_map(
        |(row, series, from, length)| Span {
            name: String::new(),
            row,
            series,
            from,
            to: from + length,
        },
    );
    let timeline = (
        prop::collection::vec(texts(), 9..70),
        prop::collection::vec(texts(), 3..12),
        prop::collection::vec(span, 0..60),
    )
        .prop_map(|(rows, series, spans)| {
            Plot::Timeline(Timeline {
                rows,
                series,
                spans,
            })
        });
    prop_oneof![bars, curves, timeline]
}

fn charts() -> impl Strategy<Value = Chart> {
    (texts(), prop::option::of(texts()), axes(), axes(), plots()).prop_map(
        |(title, subtitle, x, y, plot)| Chart {
            title,
            subtitle,
            x,
            y,
            plot,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_chart_is_well_formed_and_readable(chart in charts()) {
        let svg = chart.svg();
        check(&svg);
        prop_assert_eq!(chart.svg(), svg);
    }
}
