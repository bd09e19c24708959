//! The charts of reports.

use crate::view::ComparisonView;
use cosched_core::metric::Better;
use cosched_experiments::comparison::{Comparison, MetricVerdicts};
use cosched_report::chart::{Axis, BarSeries, Bars, Chart, Curve, Estimate, Plot};
use cosched_report::{RunRecord, Timeline, TrafficTimeline};

/// Draw the number of ended jobs over the time of each named run.
pub(crate) fn completion(runs: &[(String, &RunRecord)], title: &str) -> Option<Chart> {
    let mut curves = Vec::new();
    for (name, record) in runs {
        let points = ends(record);
        if points.len() > 1 {
            curves.push(Curve::steps(name.clone(), points));
        }
    }
    let x = Axis::new("time since the start", "s");
    let y = Axis::new("jobs ended", "");
    chart_of(curves, title, x, y)
}

/// Draw curves, if there are any.
fn chart_of(curves: Vec<Curve>, title: &str, x: Axis, y: Axis) -> Option<Chart> {
    if curves.is_empty() {
        return None;
    }
    Some(Chart {
        title: title.to_owned(),
        subtitle: None,
        x,
        y,
        plot: Plot::Curves(curves),
    })
}

fn ends(record: &RunRecord) -> Vec<(f64, f64)> {
    let mut ends: Vec<f64> = record.jobs.iter().filter_map(|job| job.end.end_s).collect();
    ends.sort_by(f64::total_cmp);
    let mut points = vec![(0.0, 0.0)];
    for (before, end) in ends.into_iter().enumerate() {
        points.push((end, before as f64 + 1.0));
    }
    points
}

/// Draw the slowdowns of all jobs, the greatest first.
pub(crate) fn slowdowns(runs: &[(String, &RunRecord)], title: &str) -> Option<Chart> {
    let mut curves = Vec::new();
    for (name, record) in runs {
        let points = sorted_slowdowns(record);
        if points.len() > 1 {
            curves.push(Curve::line(name.clone(), points));
        }
    }
    let x = Axis::new("jobs, the greatest slowdown first", "");
    let y = Axis::new("slowdown", "");
    let mut chart = chart_of(curves, title, x, y)?;
    chart.subtitle = Some("a level line is fair; 1 is as fast as alone".to_owned());
    Some(chart)
}

fn sorted_slowdowns(record: &RunRecord) -> Vec<(f64, f64)> {
    let mut slowdowns: Vec<f64> = record.jobs.iter().filter_map(|job| job.slowdown).collect();
    slowdowns.sort_by(|a, b| b.total_cmp(a));
    let mut points = Vec::new();
    for (before, slowdown) in slowdowns.into_iter().enumerate() {
        points.push((before as f64 + 1.0, slowdown));
    }
    points
}

/// Draw the memory traffic over the time of a run.
pub(crate) fn memory(timeline: &Timeline) -> Option<Chart> {
    let traffic = timeline.traffic.as_ref()?;
    let mut curves = Vec::new();
    for (name, lines) in [("read", &traffic.reads), ("written", &traffic.writes)] {
        if !lines.is_empty() {
            curves.push(traffic_curve(name, lines, traffic));
        }
    }
    let x = Axis::new("time since the start", "s");
    let y = Axis::new("bandwidth", "GB/s");
    chart_of(curves, "Memory traffic of the jobs", x, y)
}

fn traffic_curve(name: &str, lines: &[f64], traffic: &TrafficTimeline) -> Curve {
    let mut points = Vec::new();
    for (part, lines) in lines.iter().enumerate() {
        let at_s = part as f64 * traffic.width.as_s();
        points.push((at_s, traffic.gb_per_s(*lines)));
    }
    Curve::steps(name.to_owned(), points)
}

/// Draw the change of a metric from the baseline to each candidate: for each mix, and over all.
pub(crate) fn against(view: &ComparisonView<'_>, judged: &MetricVerdicts) -> Option<Chart> {
    let design = &view.answer.manifest.design;
    let mut series = Vec::new();
    for (at, candidate) in design.candidates.iter().enumerate() {
        if at != design.baseline {
            series.push(BarSeries {
                name: candidate.name.clone(),
                values: changes(judged, at),
            });
        }
    }
    let mut values = series.iter().flat_map(|one| &one.values);
    if !values.any(Option::is_some) {
        return None;
    }
    let baseline = &design.candidates[design.baseline].name;
    let better = match judged.metric.better {
        Better::Lower => "less",
        Better::Higher => "more",
    };
    let groups = mix_groups(view, judged);
    Some(Chart {
        title: format!("{} against {baseline}", judged.metric.name),
        subtitle: Some(format!("{better} is better; lines are 95 % intervals")),
        x: Axis::new(if judged.by_mix.is_empty() { "" } else { "mix" }, ""),
        y: Axis::new("change", "%"),
        plot: Plot::Bars(Bars { groups, series }),
    })
}

/// Names of the groups of bars: each mix, then all; or the only mix.
fn mix_groups(view: &ComparisonView<'_>, judged: &MetricVerdicts) -> Vec<String> {
    let mixes = view.answer.manifest.design.mixes.iter();
    let names = mixes.map(|mix| mix.name.clone());
    if judged.by_mix.is_empty() {
        names.take(1).collect()
    } else {
        names.chain(["all".to_owned()]).collect()
    }
}

/// The changes of a candidate in the order of the groups.
fn changes(judged: &MetricVerdicts, candidate: usize) -> Vec<Option<Estimate>> {
    let comparisons = judged.by_mix.iter().chain(&judged.over_all);
    comparisons
        .filter(|one| one.candidate == candidate)
        .map(percent)
        .collect()
}

/// The change in percent, with its interval.
fn percent(comparison: &Comparison) -> Option<Estimate> {
    let change = comparison.change.as_ref().ok()?;
    let interval = change.interval;
    Some(Estimate {
        value: 100.0 * change.mean,
        interval: interval.map(|(low, high)| (100.0 * low, 100.0 * high)),
    })
}

/// Draw unfairness against turnaround: for each candidate the medians over the blocks.
pub(crate) fn fair_and_fast(view: &ComparisonView<'_>) -> Option<Chart> {
    let answer = view.answer;
    let turnarounds_s = view.medians("turnaround_s")?;
    let unfairness = view.medians("unfairness")?;
    let mut curves = Vec::new();
    for (at, candidate) in answer.manifest.design.candidates.iter().enumerate() {
        if let (Some(x), Some(y)) = (turnarounds_s[at], unfairness[at]) {
            curves.push(Curve::points(candidate.name.clone(), vec![(x, y)]));
        }
    }
    if curves.len() < 2 {
        return None;
    }
    let over = match answer.manifest.design.mixes.len() {
        0 | 1 => String::new(),
        mixes => format!("; geometric means over {mixes} mixes"),
    };
    let x = Axis::new("turnaround", "s");
    let y = Axis::new("unfairness", "");
    let mut chart = chart_of(curves, "Unfairness against turnaround", x, y)?;
    let meaning = "to the left is faster, below is fairer; medians of the blocks";
    chart.subtitle = Some(format!("{meaning}{over}"));
    Some(chart)
}
