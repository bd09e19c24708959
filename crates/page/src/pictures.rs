//! The charts of a report as single pictures.

use crate::charts::{against, completion, fair_and_fast, memory, slowdowns};
use crate::timeline::timeline_chart;
use crate::view::{ComparisonView, RunView};
use cosched_report::chart::Chart;

/// A chart with a name for its file.
#[derive(Clone, Debug)]
pub struct Picture {
    /// The name, without an ending.
    pub name: String,
    /// The chart.
    pub chart: Chart,
}

/// Return the pictures of a run.
pub fn run_pictures(view: &RunView<'_>) -> Vec<Picture> {
    let mut pictures = Vec::new();
    if let Some(timeline) = view.timeline {
        let chart = timeline_chart(&view.label, timeline, view.record);
        add(&mut pictures, "timeline".to_owned(), chart);
    }
    pictures.extend(run_charts(view));
    pictures
}

/// Return the pictures of a run but its timeline.
pub(crate) fn run_charts(view: &RunView<'_>) -> Vec<Picture> {
    let named = [(view.record.policy.clone(), view.record)];
    let charts = [
        ("completion", completion(&named, "Jobs ended over time")),
        ("slowdowns", slowdowns(&named, "Slowdown of each job")),
        ("memory", view.timeline.and_then(memory)),
    ];
    let mut pictures = Vec::new();
    for (name, chart) in charts {
        add(&mut pictures, name.to_owned(), chart);
    }
    pictures
}

fn add(pictures: &mut Vec<Picture>, name: String, chart: Option<Chart>) {
    pictures.extend(chart.map(|chart| Picture { name, chart }));
}

/// Return the pictures of a comparison.
pub fn comparison_pictures(view: &ComparisonView<'_>) -> Vec<Picture> {
    let mut pictures = Vec::new();
    for judged in &view.answer.judged {
        let name = judged.metric.name.to_owned();
        add(&mut pictures, name, against(view, judged));
    }
    let name = "fair-and-fast".to_owned();
    add(&mut pictures, name, fair_and_fast(view));
    for (at, mix) in view.answer.manifest.design.mixes.iter().enumerate() {
        let [ends, slow] = mix_charts(view, at);
        add(&mut pictures, format!("completion-{}", mix.name), ends);
        add(&mut pictures, format!("slowdowns-{}", mix.name), slow);
    }
    pictures
}

/// Return the charts of the runs with a mix that are shown.
pub(crate) fn mix_charts(view: &ComparisonView<'_>, mix: usize) -> [Option<Chart>; 2] {
    let runs = view.shown_runs(mix);
    let name = &view.answer.manifest.design.mixes[mix].name;
    [
        completion(&runs, &format!("Jobs of {name} ended over time")),
        slowdowns(&runs, &format!("Slowdown of each job of {name}")),
    ]
}
