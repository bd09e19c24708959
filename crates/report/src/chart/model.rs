//! The contents of a chart.

/// A chart: texts, axes, and what is plotted.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title, also for screen readers.
    pub title: String,
    /// A line below the title: the origin of the data, the baseline.
    pub subtitle: Option<String>,
    /// The horizontal axis. Bars stand along groups, so only its label is used there.
    pub x: Axis,
    /// The vertical axis, on the left. The rows of a timeline use only its label.
    pub y: Axis,
    /// The data.
    pub plot: Plot,
}

/// A linear axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// The quantity, such as `turnaround`.
    pub label: String,
    /// Its unit, such as `s`; `None` for ratios and counts. It is shown behind the label and behind every value.
    pub unit: Option<String>,
    /// Begin of the axis in its unit; `None` for the least value. An axis begins at a tick, so at most one step before.
    /// Values before it are cut off.
    pub from: Option<f64>,
}

/// The data of a chart.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Bars in groups.
    Bars(Bars),
    /// Curves or clouds of points over a number.
    Curves(Vec<Curve>),
    /// Rows, and the series on them over time.
    Timeline(Timeline),
}

/// Bars in groups, one bar of each series in each group, and perhaps a line over the groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bars {
    /// The names of the groups, from left to right.
    pub groups: Vec<String>,
    /// The series, in the order of their bars within a group.
    pub series: Vec<BarSeries>,
    /// A further quantity on an axis of its own.
    pub line: Option<GroupLine>,
}

/// The bars of one series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BarSeries {
    /// Its name in the legend; an empty one is not listed.
    pub name: String,
    /// One value per group, in the unit of the vertical axis. `None`, and one that is not finite, is marked as a gap; so
    /// is one that is missing at the end.
    pub values: Vec<Option<Estimate>>,
}

/// A value and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The value itself.
    pub value: f64,
    /// The ends of its interval, in the same unit, shown as an error bar. It is left out if an end is not finite.
    pub interval: Option<(f64, f64)>,
}

impl From<f64> for Estimate {
    /// A value without an interval.
    fn from(value: f64) -> Estimate {
        Estimate {
            value,
            interval: None,
        }
    }
}

/// A line over the groups of bars, with an axis on the right.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupLine {
    /// The axis on the right. Its label is the line's name in the legend.
    pub axis: Axis,
    /// One value per group, in the unit of that axis. The line has a gap where there is none.
    pub values: Vec<Option<f64>>,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend; an empty one is not listed.
    pub name: String,
    /// Its points as (x, y), in the units of the axes, joined in this order. A point that is not finite is a gap.
    pub points: Vec<(f64, f64)>,
    /// Names of single points, by their index in `points`, shown beside them where there is room; an empty one is none.
    pub labels: Vec<String>,
    /// The lines between its points.
    pub style: CurveStyle,
}

/// The lines between the points of a curve.
///
/// Each point has a marker. A joined curve of more than 50 points has about a dozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of the series, such as programs.
    pub series: Vec<String>,
    /// The spans. A later one is drawn over an earlier one.
    pub spans: Vec<Span>,
}

/// A series on a row for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The row, as an index; a span of a row that does not exist is left out.
    pub row: usize,
    /// The series, as an index; a span of a series that does not exist is left out.
    pub series: usize,
    /// Its begin in the unit of the horizontal axis; a span with an end that is not finite is left out.
    pub from: f64,
    /// Its end in the same unit. Ends in the wrong order are swapped.
    pub to: f64,
}
