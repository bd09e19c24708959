//! The contents of a chart.

use super::text::value;

/// A chart: texts, axes, and what is plotted.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title, also for screen readers.
    pub title: String,
    /// A line below the title: the origin of the data, the baseline.
    pub subtitle: Option<String>,
    /// The horizontal axis. Bars stand along groups, so only its label is used there.
    pub x: Axis,
    /// The vertical axis. The rows of a timeline use only its label.
    pub y: Axis,
    /// The data.
    pub plot: Plot,
}

/// A linear axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    /// The quantity, such as `turnaround`.
    pub label: String,
    /// Its unit, such as `s`; empty for ratios and counts.
    pub unit: String,
}

impl Axis {
    /// An axis of this quantity in this unit.
    pub fn new(label: &str, unit: &str) -> Axis {
        Axis {
            label: label.to_owned(),
            unit: unit.to_owned(),
        }
    }

    /// The label with its unit.
    pub(super) fn name(&self) -> String {
        if self.unit.is_empty() {
            self.label.clone()
        } else {
            format!("{} ({})", self.label, self.unit)
        }
    }

    /// A value with its unit.
    pub(super) fn value(&self, v: f64) -> String {
        format!("{} {}", value(v), self.unit).trim_end().to_owned()
    }
}

/// The data of a chart.
#[derive(Clone, Debug)]
pub enum Plot {
    /// Bars in groups.
    Bars(Bars),
    /// Curves or clouds of points over a number.
    Curves(Vec<Curve>),
    /// Rows, and the series on them over time.
    Timeline(Timeline),
}

/// Bars in groups, one bar of each series in each group.
#[derive(Clone, Debug, Default)]
pub struct Bars {
    /// The names of the groups, from left to right.
    pub groups: Vec<String>,
    /// The series, in the order of their bars within a group.
    pub series: Vec<BarSeries>,
}

/// The bars of one series.
#[derive(Clone, Debug, Default)]
pub struct BarSeries {
    /// Its name in the legend; an empty one is not listed.
    pub name: String,
    /// One value per group, in the unit of the vertical axis. A missing value is marked as a gap.
    pub values: Vec<Option<Estimate>>,
}

/// A value and its uncertainty.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    /// The value itself.
    pub value: f64,
    /// The ends of its interval, in the same unit, shown as an error bar.
    pub interval: Option<(f64, f64)>,
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend; an empty one is not listed.
    pub name: String,
    /// Its points as (x, y), in the units of the axes, joined in this order.
    pub points: Vec<(f64, f64)>,
    /// The lines between its points.
    pub style: CurveStyle,
}

impl Curve {
    /// Points joined by straight lines.
    pub fn line(name: String, points: Vec<(f64, f64)>) -> Curve {
        Curve {
            name,
            points,
            style: CurveStyle::Line,
        }
    }

    /// Points joined by steps: a value holds until the next point.
    pub fn steps(name: String, points: Vec<(f64, f64)>) -> Curve {
        Curve {
            name,
            points,
            style: CurveStyle::Steps,
        }
    }

    /// Points alone.
    pub fn points(name: String, points: Vec<(f64, f64)>) -> Curve {
        Curve {
            name,
            points,
            style: CurveStyle::Points,
        }
    }
}

/// The lines between the points of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum CurveStyle {
    /// By straight lines.
    #[default]
    Line,
    /// By steps: a value holds until the next point.
    Steps,
    /// Not at all.
    Points,
}

/// Rows, such as CPUs, and the series on them over time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of the series, such as programs.
    pub series: Vec<String>,
    /// The spans. A later one is drawn over an earlier one.
    pub spans: Vec<Span>,
}

/// A series on a row for a while.
#[derive(Clone, Debug)]
pub struct Span {
    /// Its name under the pointer; an empty one is that of its series.
    pub name: String,
    /// The row, as an index.
    pub row: usize,
    /// The series, as an index.
    pub series: usize,
    /// Its begin in the unit of the horizontal axis.
    pub from: f64,
    /// Its end in the same unit.
    pub to: f64,
}
