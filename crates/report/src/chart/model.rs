//! What a chart consists of.

/// A chart: texts, axes, and what is plotted.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What the chart shows, in a few words; it is also the document's title for screen readers.
    pub title: String,
    /// A line below the title: where the data are from, what is normalised to what.
    pub subtitle: Option<String>,
    /// The horizontal axis. Bars stand along groups, so only its label is used there.
    pub x: Axis,
    /// The vertical axis, on the left. The rows of a timeline use only its label.
    pub y: Axis,
    /// Straight lines across the plot at given values, such as the baseline of a normalised figure.
    pub marks: Vec<Mark>,
    /// What is plotted.
    pub plot: Plot,
}

/// A linear axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured, such as `turnaround`.
    pub label: String,
    /// Its unit, such as `s`; `None` for ratios and counts. It is shown behind the label and behind every value.
    pub unit: Option<String>,
    /// Where the axis begins, in its unit; `None` lets the data say. An axis begins and ends at a tick, so at most one
    /// step before. What lies beyond the axis is cut off.
    pub from: Option<f64>,
    /// Where the axis ends, in its unit; as `from`.
    pub to: Option<f64>,
}

/// What is plotted.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Bars in groups.
    Bars(Bars),
    /// Curves or clouds of points over a number.
    Curves(Vec<Curve>),
    /// Which series occupies which row from when to when.
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

/// A value and how sure it is.
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
    /// How the points are joined.
    pub style: CurveStyle,
}

/// How the points of a curve are joined.
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

/// A straight line across the plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// The axis on which its value lies.
    pub axis: MarkAxis,
    /// Its value, in the unit of that axis; the axis reaches that far unless its `from` or `to` says otherwise.
    pub at: f64,
    /// What it stands for, shown beside it where there is room.
    pub label: String,
}

/// The axis of a [`Mark`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkAxis {
    /// A value of the horizontal axis: the line is vertical. Bars have none, since their groups are no numbers.
    X,
    /// A value of the vertical axis: the line is horizontal. A timeline has none.
    Y,
}

/// Rows, such as CPUs, and what occupies them over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// The names of the rows, from top to bottom.
    pub rows: Vec<String>,
    /// The names of what can occupy a row, such as programs.
    pub series: Vec<String>,
    /// Who was where. A later one is drawn over an earlier one.
    pub spans: Vec<Span>,
}

/// A series on a row for a while.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// The row, as an index; a span of a row that does not exist is left out.
    pub row: usize,
    /// The series, as an index; a span of a series that does not exist is left out.
    pub series: usize,
    /// When it begins, in the unit of the horizontal axis; a span with an end that is not finite is left out.
    pub from: f64,
    /// When it ends, in the same unit. Ends in the wrong order are swapped.
    pub to: f64,
}
