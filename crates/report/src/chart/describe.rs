//! The description of a chart in a sentence or two.

use super::bars::{estimate, line_value};
use super::curves::finite;
use super::model::{Axis, Bars, Chart, Curve, CurveStyle, Plot, Timeline};
use super::number::{value, with_unit};
use super::scale::Range;
use super::timeline::shown;
use crate::text::count;

/// Maximum number of names listed.
const MAX_LISTED: usize = 12;

/// Return the description of a chart: its kind, its axes, and the range of each series.
pub(super) fn sentence(chart: &Chart) -> String {
    let text = match &chart.plot {
        Plot::Bars(bars) => of_bars(chart, bars),
        Plot::Curves(curves) => of_curves(chart, curves),
        Plot::Timeline(timeline) => of_timeline(chart, timeline),
    };
    match chart.subtitle.as_deref().map(str::trim) {
        None | Some("") => text,
        Some(subtitle) => format!(
            "{subtitle}{} {text}",
            if subtitle.ends_with('.') { "" } else { "." }
        ),
    }
}

fn of_bars(chart: &Chart, bars: &Bars) -> String {
    let groups = bars.groups.len();
    if groups == 0 || (bars.series.is_empty() && bars.line.is_none()) {
        return "Bar chart without data.".to_owned();
    }
    let mut text = format!(
        "Bar chart of {} for {} ({}).",
        named(&chart.y, "values"),
        count(groups as u64, "group"),
        listed(bars.groups.clone(), ", ")
    );
    let mut series = Vec::new();
    for (ix, one) in bars.series.iter().enumerate() {
        let values: Vec<f64> = (0..groups)
            .filter_map(|group| Some(estimate(bars, ix, group)?.value))
            .collect();
        series.push(from_to(&one.name, &chart.y, &values, groups - values.len()));
    }
    if !series.is_empty() {
        text.push_str(&format!(" {}.", listed(series, "; ")));
    }
    if let Some(line) = &bars.line {
        let values: Vec<f64> = (0..groups)
            .filter_map(|group| line_value(line, group))
            .collect();
        let shown = from_to(&line.axis.label, &line.axis, &values, groups - values.len());
        text.push_str(&format!(" Line on the right axis: {shown}."));
    }
    text
}

fn of_curves(chart: &Chart, curves: &[Curve]) -> String {
    if curves.iter().all(|curve| finite(curve).next().is_none()) {
        return "Chart of curves without data.".to_owned();
    }
    let kind = if curves.iter().all(|curve| curve.style == CurveStyle::Points) {
        "Points"
    } else {
        "Curves"
    };
    let mut texts = Vec::new();
    for curve in curves {
        let values: Vec<f64> = finite(curve).map(|(_, y)| y).collect();
        let absent = curve.points.len() - values.len();
        let shown = from_to(&curve.name, &chart.y, &values, absent);
        texts.push(format!(
            "{shown} in {}",
            count(values.len() as u64, "point")
        ));
    }
    let x = Range::of(curves.iter().flat_map(finite).map(|(x, _)| x));
    let over = match x.ends() {
        Some((from, to)) => format!(" from {}", between(from, to, &chart.x)),
        None => String::new(),
    };
    format!(
        "{kind} of {} over {}{over}. {}.",
        named(&chart.y, "values"),
        named(&chart.x, "values"),
        listed(texts, "; ")
    )
}

fn of_timeline(chart: &Chart, timeline: &Timeline) -> String {
    let range = Range::of(shown(timeline).flat_map(|span| [span.from, span.to]));
    let Some((from, to)) = range.ends() else {
        return "Timeline without data.".to_owned();
    };
    let mut spans = vec![0_u64; timeline.series.len()];
    for span in shown(timeline) {
        spans[span.series] += 1;
    }
    let series = timeline.series.iter().zip(&spans);
    let series = series.map(|(name, n)| join(name, &count(*n, "span")));
    format!(
        "Timeline of {} ({}) over {} from {}. {}.",
        count(timeline.rows.len() as u64, "row"),
        listed(timeline.rows.clone(), ", "),
        named(&chart.x, "time"),
        between(from, to, &chart.x),
        listed(series.collect(), "; ")
    )
}

/// Return the label of an axis, or another word if it has none.
fn named<'a>(axis: &'a Axis, otherwise: &'a str) -> &'a str {
    if axis.label.trim().is_empty() {
        otherwise
    } else {
        axis.label.trim()
    }
}

/// Return the name of a series with its least and greatest value.
fn from_to(name: &str, axis: &Axis, values: &[f64], absent: usize) -> String {
    let mut shown = match Range::of(values.iter().copied()).ends() {
        None => return join(name, "no value"),
        Some((from, to)) => between(from, to, axis),
    };
    if absent > 0 {
        shown.push_str(&format!(", {absent} without a value"));
    }
    join(name, &shown)
}

fn between(from: f64, to: f64, axis: &Axis) -> String {
    let to_shown = with_unit(to, axis.unit.as_deref());
    if from == to {
        to_shown
    } else {
        format!("{} to {to_shown}", value(from))
    }
}

fn join(name: &str, shown: &str) -> String {
    if name.trim().is_empty() {
        shown.to_owned()
    } else {
        format!("{}: {shown}", name.trim())
    }
}

/// Join the first few texts, and the number of the others.
fn listed(mut texts: Vec<String>, between: &str) -> String {
    let more = texts.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        texts.truncate(MAX_LISTED);
        texts.push(format!("and {more} more"));
    }
    texts.join(between)
}
