//! The charts of reports.

use crate::view::ComparisonView;
use cosched_core::metric::Better;
use cosched_experiments::comparison::{Comparison, Judged};
use cosched_report::chart::{Axis, BarSeries, Bars, Chart, Curve, Estimate, Plot};
use cosched_report::{Record, Timeline, Traffic};

/// Draw the number of ended jobs over the time of each named run.
pub(crate) fn completion(runs: &[(String, &Record)], title: &str) -> Option<Chart> {
    let curves: Vec<Curve> = runs
        .iter()
        .map(|(name, record)| completion_curve(name, record))
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: None,
        x: Axis::new("time since the start", "s"),
        y: Axis::new("jobs ended", ""),
        plot: Plot::Curves(curves),
    })
}

fn completion_curve(name: &str, record: &Record) -> Curve {
    let mut ends: Vec<f64> = record.jobs.iter().filter_map(|job| job.finish_s).collect();
    ends.sort_by(f64::total_cmp);
    let mut points = vec![(0.0, 0.0)];
    for (before, end) in ends.into_iter().enumerate() {
        points.push((end, before as f64 + 1.0));
    }
    Curve::steps(name.to_owned(), points)
}

/// Draw the slowdowns of all jobs, the greatest first.
pub(crate) fn slowdowns(runs: &[(String, &Record)], title: &str) -> Option<Chart> {
    let curves: Vec<Curve> = runs
        .iter()
        .map(|(name, record)| slowdown_curve(name, record))
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: Some("a level line is fair; 1 is as fast as alone".to_owned()),
        x: Axis::new("jobs, the greatest slowdown first", ""),
        y: Axis::new("slowdown", ""),
        plot: Plot::Curves(curves),
    })
}

fn slowdown_curve(name: &str, record: &Record) -> Curve {
    let mut slowdowns: Vec<f64> = record.jobs.iter().filter_map(|job| job.slowdown).collect();
    slowdowns.sort_by(|a, b| b.total_cmp(a));
    let mut points = Vec::new();
    for (before, slowdown) in slowdowns.into_iter().enumerate() {
        points.push((before as f64 + 1.0, slowdown));
    }
    Curve::line(name.to_owned(), points)
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
    (!curves.is_empty()).then(|| Chart {
        title: "Memory traffic of the jobs".to_owned(),
        subtitle: None,
        x: Axis::new("time since the start", "s"),
        y: Axis::new("bandwidth", "GB/s"),
        plot: Plot::Curves(curves),
    })
}

fn traffic_curve(name: &str, lines: &[f64], traffic: &Traffic) -> Curve {
    let mut points = Vec::new();
    for (part, lines) in lines.iter().enumerate() {
        let at_s = part as f64 * traffic.width.as_s();
        points.push((at_s, traffic.gb_per_s(*lines)));
    }
    Curve::steps(name.to_owned(), points)
}

/// Draw the change of a metric from the baseline to each candidate: for each mix, and over all.
pub(crate) fn against(view: &ComparisonView<'_>, judged: &Judged) -> Option<Chart> {
    let design = &view.answer.manifest.design;
    let groups = mix_groups(view, judged);
    let others = (0..design.candidates.len()).filter(|&at| at != design.baseline);
    let series: Vec<BarSeries> = others
        .map(|candidate| BarSeries {
            name: design.candidates[candidate].name.clone(),
            values: changes(judged, candidate),
        })
        .collect();
    let has_values = series
        .iter()
        .any(|one| one.values.iter().any(Option::is_some));
    let baseline = &design.candidates[design.baseline].name;
    let better = match judged.metric.better {
        Better::Lower => "less",
        Better::Higher => "more",
    };
    has_values.then(|| Chart {
        title: format!("{} against {baseline}", judged.metric.name),
        subtitle: Some(format!("{better} is better; lines are 95 % intervals")),
        x: Axis::new(if judged.by_mix.is_empty() { "" } else { "mix" }, ""),
        y: Axis::new("change", "%"),
        plot: Plot::Bars(Bars { groups, series }),
    })
}

/// Names of the groups of bars: each mix, then all; or the only mix.
fn mix_groups(view: &ComparisonView<'_>, judged: &Judged) -> Vec<String> {
    let mixes = view.answer.manifest.design.mixes.iter();
    let names = mixes.map(|mix| mix.name.clone());
    if judged.by_mix.is_empty() {
        names.take(1).collect()
    } else {
        names.chain(["all".to_owned()]).collect()
    }
}

/// The changes of a candidate in the order of the groups.
fn changes(judged: &Judged, candidate: usize) -> Vec<Option<Estimate>> {
    let comparisons = judged.by_mix.iter().chain(&judged.over_all);
    comparisons
        .filter(|one| one.candidate == candidate)
        .map(percent)
        .collect()
}

/// The change in percent, with its interval.
fn percent(comparison: &Comparison) -> Option<Estimate> {
    let change = comparison.change.as_ref().ok()?;
    Some(Estimate {
        value: 100.0 * change.mean,
        interval: change
            .interval
            .map(|(low, high)| (100.0 * low, 100.0 * high)),
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
    let mixes = answer.manifest.design.mixes.len();
    let over = if mixes > 1 {
        format!("; geometric means over {mixes} mixes")
    } else {
        String::new()
    };
    (curves.len() > 1).then(|| Chart {
        title: "Unfairness against turnaround".to_owned(),
        subtitle: Some(format!(
            "to the left is faster, below is fairer; medians of the blocks{over}"
        )),
        x: Axis::new("turnaround", "s"),
        y: Axis::new("unfairness", ""),
        plot: Plot::Curves(curves),
    })
}
