//! The charts of reports.

use crate::facts::{JobFacts, RunFacts};
use crate::view::ComparisonView;
use cosched_compare::{Comparison, Judged};
use cosched_core::metric::Better;
use cosched_report::Traffic;
use cosched_report::chart::{
    Axis, BarSeries, Bars, Chart, Curve, CurveStyle, Estimate, Mark, MarkAxis, Plot,
};

fn axis(label: &str, unit: Option<&str>) -> Axis {
    Axis {
        label: label.to_owned(),
        unit: unit.map(str::to_owned),
        ..Axis::default()
    }
}

/// How many jobs had ended, over the time of the run. Each of `runs` has a name.
pub(crate) fn completion(runs: &[(String, &RunFacts)], title: &str) -> Option<Chart> {
    let curve = |(name, facts): &(String, &RunFacts)| {
        let mut ends: Vec<f64> = facts.jobs.iter().filter_map(|job| job.finish_s).collect();
        ends.sort_by(f64::total_cmp);
        let points = std::iter::once((0.0, 0.0)).chain(
            ends.iter()
                .enumerate()
                .map(|(at, end)| (*end, at as f64 + 1.0)),
        );
        Curve {
            name: name.clone(),
            points: points.collect(),
            labels: Vec::new(),
            style: CurveStyle::Steps,
        }
    };
    let curves: Vec<Curve> = runs
        .iter()
        .map(curve)
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: None,
        x: axis("time since the start", Some("s")),
        y: axis("jobs ended", None),
        marks: Vec::new(),
        plot: Plot::Curves(curves),
    })
}

/// The slowdowns of all jobs, the greatest first.
pub(crate) fn slowdowns(runs: &[(String, &RunFacts)], title: &str) -> Option<Chart> {
    let curve = |(name, facts): &(String, &RunFacts)| {
        let mut all: Vec<f64> = facts.jobs.iter().filter_map(|job| job.slowdown).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        let points = all
            .into_iter()
            .enumerate()
            .map(|(at, slowdown)| (at as f64 + 1.0, slowdown));
        Curve {
            name: name.clone(),
            points: points.collect(),
            labels: Vec::new(),
            style: CurveStyle::Line,
        }
    };
    let curves: Vec<Curve> = runs
        .iter()
        .map(curve)
        .filter(|curve| curve.points.len() > 1)
        .collect();
    (!curves.is_empty()).then(|| Chart {
        title: title.to_owned(),
        subtitle: Some("a level line is fair; 1 is as fast as alone".to_owned()),
        x: axis("jobs, the greatest slowdown first", None),
        y: Axis {
            from: Some(0.0),
            ..axis("slowdown", None)
        },
        marks: Vec::new(),
        plot: Plot::Curves(curves),
    })
}

/// Estimated against true slowdowns, of each estimate a cloud of points.
pub(crate) fn estimates(runs: &[(String, &RunFacts)], title: &str) -> Option<Chart> {
    type Which = fn(&JobFacts) -> Option<f64>;
    let kinds: [(&str, Which); 2] = [
        ("by progress", |job| job.by_progress),
        ("learnt", |job| job.by_learning),
    ];
    let mut curves = Vec::new();
    for (name, facts) in runs {
        for (kind, which) in kinds {
            let points: Vec<(f64, f64)> = facts
                .jobs
                .iter()
                .filter_map(|job| Some((job.slowdown?, which(job)?)))
                .collect();
            let name = if runs.len() == 1 {
                kind.to_owned()
            } else {
                format!("{name}, {kind}")
            };
            if !points.is_empty() {
                curves.push(Curve {
                    name,
                    points,
                    labels: Vec::new(),
                    style: CurveStyle::Points,
                });
            }
        }
    }
    if curves.is_empty() {
        return None;
    }
    let all = || {
        curves
            .iter()
            .flat_map(|curve| &curve.points)
            .flat_map(|point| [point.0, point.1])
    };
    let (least, most) = all().fold((f64::INFINITY, 0.0_f64), |(least, most), one| {
        (least.min(one), most.max(one))
    });
    let right = Curve {
        name: "right".to_owned(),
        points: vec![(least, least), (most, most)],
        labels: Vec::new(),
        style: CurveStyle::Line,
    };
    curves.insert(0, right);
    Some(Chart {
        title: title.to_owned(),
        subtitle: Some("on the line the estimate is right".to_owned()),
        x: axis("true slowdown", None),
        y: axis("estimated slowdown", None),
        marks: Vec::new(),
        plot: Plot::Curves(curves),
    })
}

/// What memory moved over the time of a run.
pub(crate) fn memory(traffic: &Traffic) -> Option<Chart> {
    let width = traffic.width.as_s();
    let curve = |(name, parts): (&str, &Vec<f64>)| {
        let points = parts
            .iter()
            .enumerate()
            .map(|(at, lines)| (at as f64 * width, traffic.gb_per_s(*lines)));
        Curve {
            name: name.to_owned(),
            points: points.collect(),
            labels: Vec::new(),
            style: CurveStyle::Steps,
        }
    };
    let all = [("read", &traffic.reads), ("written", &traffic.writes)];
    let curves: Vec<Curve> = all
        .into_iter()
        .filter(|(_, parts)| !parts.is_empty())
        .map(curve)
        .collect();
    (!curves.is_empty()).then(|| Chart {
        title: "Memory traffic of the jobs".to_owned(),
        subtitle: None,
        x: axis("time since the start", Some("s")),
        y: Axis {
            from: Some(0.0),
            ..axis("bandwidth", Some("GB/s"))
        },
        marks: Vec::new(),
        plot: Plot::Curves(curves),
    })
}

/// A metric of every candidate against the baseline, with intervals: of each mix, and over all.
pub(crate) fn against(view: &ComparisonView<'_>, judged: &Judged) -> Option<Chart> {
    let design = &view.answer.manifest.design;
    let percent = |one: &Comparison| {
        let change = one.change.as_ref().ok()?;
        let interval = change
            .interval
            .map(|(low, high)| (100.0 * low, 100.0 * high));
        Some(Estimate {
            value: 100.0 * change.mean,
            interval,
        })
    };
    let mut groups: Vec<String> = Vec::new();
    if !judged.by_mix.is_empty() {
        groups.extend(design.mixes.iter().map(|mix| mix.name.clone()));
        groups.push("all".to_owned());
    } else {
        groups.push(
            design
                .mixes
                .first()
                .map(|mix| mix.name.clone())
                .unwrap_or_default(),
        );
    }
    let of_candidate = |candidate: usize| {
        let by_mix = judged
            .by_mix
            .iter()
            .filter(|one| one.candidate == candidate);
        let over_all = judged
            .over_all
            .iter()
            .filter(|one| one.candidate == candidate);
        BarSeries {
            name: design.candidates[candidate].name.clone(),
            values: by_mix.chain(over_all).map(percent).collect(),
        }
    };
    let others = (0..design.candidates.len()).filter(|&at| at != design.baseline);
    let series: Vec<BarSeries> = others.map(of_candidate).collect();
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
        x: axis(if judged.by_mix.is_empty() { "" } else { "mix" }, None),
        y: axis("change", Some("%")),
        marks: vec![Mark {
            axis: MarkAxis::Y,
            at: 0.0,
            label: String::new(),
        }],
        plot: Plot::Bars(Bars {
            groups,
            series,
            line: None,
        }),
    })
}

/// How fair against how fast: of each candidate the medians over the blocks.
pub(crate) fn fair_and_fast(view: &ComparisonView<'_>) -> Option<Chart> {
    let answer = view.answer;
    let medians = |name: &str| view.spreads(name);
    let (fast, fair) = (medians("turnaround_s")?, medians("unfairness")?);
    let point = |at: usize| {
        let (x, y) = (fast[at]?, fair[at]?);
        let name = answer.manifest.design.candidates[at].name.clone();
        Some(Curve {
            labels: vec![name.clone()],
            name,
            points: vec![(x, y)],
            style: CurveStyle::Points,
        })
    };
    let curves: Vec<Curve> = (0..answer.manifest.design.candidates.len())
        .filter_map(point)
        .collect();
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
        x: axis("turnaround", Some("s")),
        y: axis("unfairness", None),
        marks: Vec::new(),
        plot: Plot::Curves(curves),
    })
}
